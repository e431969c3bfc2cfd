//! `sweep3d`: wavefronts over a plane of ranks from each corner by turns, slice after slice (section 2.6 of the paper's
//! specification; the motif is that of Ember).

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::args::pattern::{Accounting, Mode, PatternPlan};
use crate::buffer::Pattern;
use crate::error::{Error, Result};
use crate::pattern::exchange::{Edge, Edges, Exchange, word};
use crate::pattern::grid::{Grid, Way};
use crate::pattern::middleware::Middleware;
use crate::pattern::motif::{self, Motif, Request, Series};
use crate::pattern::remote::Flags;
use crate::pattern::team::Program;
use crate::pattern::{self, Context, Own, Prepared, Work, divides};
use crate::port::partitioned::PartitionedPort;
use crate::record::{Figures, PatternKeys, Quantity};
use crate::stats::mix;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sweep3d(Own);

/// From where a sweep comes along x and y.
const CORNERS: [[Way; 2]; 4] = [
    [Way::Down, Way::Down],
    [Way::Up, Way::Down],
    [Way::Up, Way::Up],
    [Way::Down, Way::Up],
];
/// Sweeps of an iteration.
const SWEEPS: u64 = 8;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "sweep3d",
    about: "Wavefronts over a plane of ranks, slice by slice, from each corner",
    quantity: Quantity::THROUGHPUT,
    sizes: "4K:1M:x4",
    options: &[
        "ranks",
        "threads",
        "grid",
        "mode",
        "slices",
        "accounting",
        "policy",
        "compute",
        "compute-time",
        "noise",
        "noise-pct",
        "profile",
    ],
    rows: BenchArgs::rows_of_pattern,
    motif: Some(Motif {
        dimensions: 2,
        threads: 4,
        compute: None,
        series: motif::modes,
        check,
    }),
    ..Description::PLAIN
}];

impl pattern::Pattern for Sweep3d {
    fn new(own: Own) -> Self {
        Self(own)
    }

    fn own(&self) -> &Own {
        &self.0
    }

    fn room(plan: &PatternPlan, largest: usize) -> usize {
        let is_nominal = plan.accounting.contains(&Accounting::Artefact);
        let slices = plan.slices as usize;
        2 * CORNERS.len() * largest * if is_nominal { slices } else { 1 }
    }

    fn open<'p, P: PartitionedPort>(
        context: &Context<'p, P>,
        series: &Series,
        size: usize,
    ) -> Result<Prepared<'p>> {
        let slicing = Slicing::of(context.pattern.slices, series, size);
        let middleware = series.middleware(Middleware::Calls, Flags::Parts);
        let rank = context.port.rank();
        let mut offset = 0;
        let mut sweeps = Vec::new();
        for corner in 0..CORNERS.len() {
            let edges = |into| edges(&context.grid, rank.as_u32(), corner, into, slicing);
            let placed = context
                .memories
                .place(rank, edges(false), edges(true), offset);
            offset += 2 * slicing.slices as usize * slicing.len;
            sweeps.push((context.exchange(&middleware, placed.clone())?, placed));
        }
        let threads = match series.mode {
            Mode::Single => 1,
            Mode::Multiple | Mode::Partitioned | Mode::Rma => context.threads,
        };
        let bytes = |rank| counted(&context.grid, rank, series, slicing, size);
        Ok(Prepared {
            threads,
            keys: PatternKeys::default(),
            regions: SWEEPS,
            bytes: (0..context.grid.ranks()).map(bytes).collect(),
            partitions: slicing.slices,
            program: Box::new(Sweep {
                grid: context.grid.clone(),
                rank: rank.as_u32(),
                slicing,
                threads,
                sweeps,
                work: context.work(threads),
            }),
        })
    }

    /// How much faster SNAP would be if its sends and receives were by as much as the sweep is over one thread.
    fn figures(figures: &mut Figures) {
        let factor = figures.named("ratio_to_single").unwrap_or(1.0);
        for (nodes, share) in SHARES {
            figures.set(
                format!("ratio_snap_{nodes}"),
                speedup(share / 100.0, factor),
            );
        }
    }
}

/// Shares of sends and receives in the time of SNAP, by the nodes at which they were published, in percent.
const SHARES: [(u32, f64); 2] = [(128, 20.4), (256, 54.5)];

/// The gain where a share of the time is divided by a factor.
fn speedup(share: f64, factor: f64) -> f64 {
    1.0 / ((1.0 - share) + share / factor)
}

fn check(request: &Request) -> Result<()> {
    let (slices, threads) = (request.pattern.slices, request.threads);
    if !slices.is_multiple_of(threads) {
        return Err(Error::Usage(format!(
            "{slices} slices do not divide among {threads} threads: --slices {} would, or --threads {}",
            slices.next_multiple_of(threads),
            (1..=threads)
                .rev()
                .find(|it| slices.is_multiple_of(*it))
                .unwrap_or(1),
        )));
    }
    if request.pattern.accounting.contains(&Accounting::Artefact) && !slices.is_multiple_of(2) {
        return Err(Error::Usage(format!(
            "--accounting artefact gives one thread half the slices: {slices} are odd"
        )));
    }
    divides(&request.sizes, slices, "slices (--slices)")
}

/// How a message of a neighbour is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slicing {
    slices: u32,
    /// Bytes of a slice.
    len: usize,
}

impl Slicing {
    fn of(slices: u32, series: &Series, size: usize) -> Self {
        let (slices, len) = match (series.accounting, series.mode) {
            (Accounting::Artefact, Mode::Single) => (slices / 2, size),
            (Accounting::Artefact, Mode::Multiple) => (slices, size),
            _ => (slices, size / slices as usize),
        };
        Self { slices, len }
    }
}

/// The bytes that an iteration of a rank is credited with.
fn counted(grid: &Grid, rank: u32, series: &Series, slicing: Slicing, size: usize) -> f64 {
    if series.accounting == Accounting::Artefact {
        return grid.neighbours(rank) as f64 * 2.0 * size as f64;
    }
    let both = |corner| {
        let count = |into| edges(grid, rank, corner, into, slicing).len();
        count(false) + count(true)
    };
    let edges: usize = (0..CORNERS.len()).map(both).sum();
    2.0 * edges as f64 * f64::from(slicing.slices) * slicing.len as f64
}

/// The edges of a rank in the sweep from a corner: those from which it receives, or to which it sends.
fn edges(grid: &Grid, rank: u32, corner: usize, into: bool, slicing: Slicing) -> Vec<Edge> {
    let edge = |axis: usize| {
        let from = CORNERS[corner][axis];
        let way = if into { from } else { from.opposite() };
        Some(Edge {
            peer: grid.neighbour(rank, axis, way)?,
            number: (2 * corner + axis) as u32,
            parts: slicing.slices,
            len: slicing.len,
            place: 0,
        })
    };
    [0, 1].into_iter().filter_map(edge).collect()
}

struct Sweep<'p> {
    grid: Grid,
    rank: u32,
    slicing: Slicing,
    threads: u32,
    /// Of each corner.
    sweeps: Vec<(Box<dyn Exchange + 'p>, Edges)>,
    work: Work<'p>,
}

impl Sweep<'_> {
    fn slice(&self, region: u64, slice: u32, thread: u32) -> Result<()> {
        let (exchange, edges) = &self.sweeps[corner(region)];
        let mut words = [0; 2];
        for (place, edge) in edges.ins().iter().enumerate() {
            exchange.arrive(place, slice)?;
            if let Some(seed) = self.work.seed {
                let wanted = self.contents(seed, region, slice, edge.peer.as_u32());
                edges.check(edge, slice, wanted, region)?;
                words[(edge.number % 2) as usize] = edges.first_word(edge, slice);
            }
        }
        self.work.compute(region, thread);
        for (place, edge) in edges.outs().iter().enumerate() {
            if let Some(seed) = self.work.seed {
                let pattern = contents(seed, region, slice, self.rank, words);
                edges.fill(edge, slice, pattern);
            }
            exchange.ready(place, slice)?;
        }
        Ok(())
    }

    /// The serial oracle: what a rank sends in a slice, by going over the grid from the corner.
    fn contents(&self, seed: u64, region: u64, slice: u32, rank: u32) -> Pattern {
        let from = CORNERS[corner(region)];
        let (wide, high) = (self.grid.sides()[0], self.grid.sides()[1]);
        let along = |way: Way, len: u32| {
            let down = (0..len).collect::<Vec<_>>();
            match way {
                Way::Down => down,
                Way::Up => down.into_iter().rev().collect(),
            }
        };
        let mut words = vec![0; (wide * high) as usize];
        for y in along(from[1], high) {
            for x in along(from[0], wide) {
                let at = x + wide * y;
                let before = |axis| self.grid.neighbour(at, axis, from[axis]);
                let of = |axis| before(axis).map_or(0, |rank| words[rank.index()]);
                let pattern = contents(seed, region, slice, at, [of(0), of(1)]);
                if at == rank {
                    return pattern;
                }
                words[at as usize] = word(&pattern.word(0)[..self.slicing.len.min(8)]);
            }
        }
        unreachable!("a rank outside the grid")
    }
}

/// What a rank sends in a slice, by what it has received in it from both sides.
fn contents(seed: u64, region: u64, slice: u32, rank: u32, words: [u64; 2]) -> Pattern {
    let place = mix(seed ^ mix(region)) ^ (u64::from(slice) << 32 | u64::from(rank));
    Pattern::of_number(mix(mix(place) ^ words[0]) ^ words[1].rotate_left(17))
}

fn corner(region: u64) -> usize {
    (region % CORNERS.len() as u64) as usize
}

impl Program for Sweep<'_> {
    fn before(&self, region: u64) -> Result<()> {
        if corner(region) > 0 {
            return Ok(());
        }
        self.sweeps
            .iter()
            .try_for_each(|(exchange, _)| exchange.start())
    }

    fn work(&self, region: u64, thread: u32) -> Result<()> {
        let first_of = |thread| thread * self.slicing.slices / self.threads;
        (first_of(thread)..first_of(thread + 1))
            .try_for_each(|slice| self.slice(region, slice, thread))
    }

    fn after(&self, region: u64) -> Result<()> {
        if corner(region) + 1 < CORNERS.len() {
            return Ok(());
        }
        self.sweeps
            .iter()
            .try_for_each(|(exchange, _)| exchange.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::granularity::Interface;

    fn series(mode: Mode, accounting: Accounting) -> Series {
        Series {
            mode,
            policy: None,
            interface: Interface::P2p,
            accounting,
            granularity: None,
        }
    }

    #[test]
    fn a_sweep_goes_from_its_corner_to_the_opposite_one() {
        let grid = Grid::new(&[3, 2]);
        let slicing = Slicing { slices: 1, len: 8 };
        let peers = |rank, corner, into| {
            let edges = edges(&grid, rank, corner, into, slicing);
            edges
                .iter()
                .map(|edge| edge.peer.as_u32())
                .collect::<Vec<_>>()
        };
        // 0 1 2
        // 3 4 5
        for (corner, first, last) in [(0, 0, 5), (1, 2, 3), (2, 5, 0), (3, 3, 2)] {
            assert!(peers(first, corner, true).is_empty(), "{corner}");
            assert_eq!(peers(first, corner, false).len(), 2, "{corner}");
            assert!(peers(last, corner, false).is_empty(), "{corner}");
        }
        assert_eq!(peers(4, 0, true), [3, 1]);
        assert_eq!(peers(4, 0, false), [5]);
        assert_eq!(peers(1, 3, true), [0, 4]);
        assert_eq!(peers(1, 3, false), [2]);
    }

    #[test]
    fn the_public_code_moves_unequal_bytes_and_counts_the_same() {
        let grid = Grid::new(&[2, 2]);
        let moved = |mode, accounting| {
            let series = series(mode, accounting);
            let slicing = Slicing::of(16, &series, 1600);
            let counted = counted(&grid, 0, &series, slicing, 1600);
            (slicing.slices as usize * slicing.len, counted)
        };
        let nominal = 2.0 * 2.0 * 1600.0;
        let artefact = |mode| moved(mode, Accounting::Artefact);
        assert_eq!(artefact(Mode::Single), (8 * 1600, nominal));
        assert_eq!(artefact(Mode::Multiple), (16 * 1600, nominal));
        assert_eq!(artefact(Mode::Partitioned), (1600, nominal));
        // A corner sends or receives over each of two axes in each of eight sweeps.
        for mode in [Mode::Single, Mode::Multiple, Mode::Partitioned] {
            assert_eq!(moved(mode, Accounting::Equal), (1600, 16.0 * 1600.0));
        }
    }

    #[test]
    fn the_projection_gives_the_published_values() {
        for (share, wanted) in [(1.0, 1.009), (6.0, 1.059), (20.4, 1.235), (54.5, 2.036)] {
            let found = speedup(share / 100.0, 15.1);
            assert!((found - wanted).abs() < 1e-3, "{share}: {found}");
        }
        assert!((speedup(0.5, 1.0) - 1.0).abs() < 1e-12);
    }
}
