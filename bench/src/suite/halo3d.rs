//! `halo3d`: each rank computes and exchanges the faces of its box with up to six neighbours (section 2.7 of the paper's
//! specification; the motif is that of Ember).

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::args::pattern::{Mode, PatternPlan};
use crate::buffer::Pattern;
use crate::error::{Error, Result};
use crate::pattern::exchange::{Edge, Edges, Exchange};
use crate::pattern::grid::{Grid, Way};
use crate::pattern::middleware::Middleware;
use crate::pattern::motif::{self, Motif, Request, Series};
use crate::pattern::remote::Flags;
use crate::pattern::team::Program;
use crate::pattern::{self, Context, Own, Prepared, divides};
use crate::port::partitioned::PartitionedPort;
use crate::record::{PatternKeys, Quantity};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Halo3d(Own);

/// Faces of a box.
const FACES: usize = 6;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "halo3d",
    about: "Ranks of a box compute and exchange their faces with six neighbours",
    quantity: Quantity::THROUGHPUT,
    sizes: "4K:1M:x4",
    options: &[
        "ranks",
        "threads",
        "grid",
        "mode",
        "policy",
        "compute",
        "compute-time",
        "noise",
        "noise-pct",
        "profile",
    ],
    rows: BenchArgs::rows_of_pattern,
    motif: Some(Motif {
        dimensions: 3,
        threads: 8,
        compute: None,
        series: motif::modes,
        check,
    }),
    ..Description::PLAIN
}];

impl pattern::Pattern for Halo3d {
    fn new(own: Own) -> Self {
        Self(own)
    }

    fn own(&self) -> &Own {
        &self.0
    }

    fn room(_: &PatternPlan, largest: usize) -> usize {
        FACES * largest
    }

    fn open<'p, P: PartitionedPort>(
        context: &Context<'p, P>,
        series: &Series,
        size: usize,
    ) -> Result<Prepared<'p>> {
        let side = match series.mode {
            Mode::Single => 1,
            _ => cube_root(context.threads).ok_or_else(no_cube)?,
        };
        let shape = Shape {
            side,
            face: size,
            rank: context.port.rank().as_u32(),
        };
        let shares = match series.mode {
            Mode::Multiple => shape.shares_of_threads(&context.grid),
            _ => vec![shape.whole(&context.grid)],
        };
        let middleware = series.middleware(Middleware::Posted, Flags::Edges);
        let mut offset = 0;
        let mut all = Vec::new();
        for (outs, ins) in shares {
            let bytes = |list: &[Edge]| list.iter().map(Edge::bytes).sum::<usize>();
            let longest = bytes(&outs).max(bytes(&ins));
            let edges = context
                .memories
                .place(context.port.rank(), outs, ins, offset);
            offset += longest;
            all.push((context.exchange(&middleware, edges.clone())?, edges));
        }
        let threads = side.pow(3);
        let neighbours = |rank| context.grid.neighbours(rank) as f64;
        Ok(Prepared {
            threads,
            keys: PatternKeys::default(),
            regions: 1,
            bytes: (0..context.grid.ranks())
                .map(|rank| neighbours(rank) * 2.0 * size as f64)
                .collect(),
            partitions: side.pow(2),
            program: Box::new(Halo {
                mode: series.mode,
                shape,
                all,
                work: context.work(threads),
            }),
        })
    }
}

fn check(request: &Request) -> Result<()> {
    let side = cube_root(request.threads).ok_or_else(no_cube)?;
    divides(
        &request.sizes,
        side * side,
        "the parts of a face (--threads is a cube of which a face has so many)",
    )
}

fn no_cube() -> Error {
    Error::Usage("the threads of halo3d form a cube: --threads 1, 8, 27 or 64".to_owned())
}

fn cube_root(threads: u32) -> Option<u32> {
    (1..=10_u32).find(|side| side.pow(3) == threads)
}

/// The threads of a rank as a cube over its box.
#[derive(Debug, Clone, Copy)]
struct Shape {
    side: u32,
    /// Bytes of a face.
    face: usize,
    rank: u32,
}

impl Shape {
    fn parts(self) -> u32 {
        self.side * self.side
    }

    /// The edge over a face: with all parts of it, or one.
    fn edge(self, grid: &Grid, face: usize, part: Option<u32>) -> Option<(Edge, Edge)> {
        let (axis, way) = (face / 2, [Way::Down, Way::Up][face % 2]);
        let peer = grid.neighbour(self.rank, axis, way)?;
        let len = self.face / self.parts() as usize;
        // The peer sends over its opposite face.
        let edge = |face: usize| Edge {
            peer,
            number: part.map_or(face as u32, |part| face as u32 * self.parts() + part),
            parts: if part.is_some() { 1 } else { self.parts() },
            len,
            place: 0,
        };
        Some((edge(face), edge(face ^ 1)))
    }

    fn whole(self, grid: &Grid) -> (Vec<Edge>, Vec<Edge>) {
        let faces = (0..FACES).filter_map(|face| self.edge(grid, face, None));
        faces.unzip()
    }

    /// The faces that a thread touches, and which part of each is its own.
    fn touched(self, thread: u32) -> impl Iterator<Item = (usize, u32)> {
        let side = self.side;
        let at = [thread % side, thread / side % side, thread / (side * side)];
        (0..FACES).filter_map(move |face| {
            let axis = face / 2;
            let edge = [0, side - 1][face % 2];
            let (u, v) = match axis {
                0 => (at[1], at[2]),
                1 => (at[0], at[2]),
                _ => (at[0], at[1]),
            };
            (at[axis] == edge).then_some((face, u + side * v))
        })
    }

    fn shares_of_threads(self, grid: &Grid) -> Vec<(Vec<Edge>, Vec<Edge>)> {
        let share = |thread| {
            let touched = self.touched(thread);
            touched
                .filter_map(|(face, part)| self.edge(grid, face, Some(part)))
                .unzip()
        };
        (0..self.side.pow(3)).map(share).collect()
    }
}

struct Halo<'p> {
    mode: Mode,
    shape: Shape,
    /// One for all threads, or one for each.
    all: Vec<(Box<dyn Exchange + 'p>, Edges)>,
    work: crate::pattern::Work<'p>,
}

impl Halo<'_> {
    fn start(&self, which: usize) -> Result<()> {
        self.all[which].0.start()
    }

    /// Lets a part leave, with bytes of this round.
    fn ready(&self, which: usize, edge: usize, part: u32, round: u64) -> Result<()> {
        let (exchange, edges) = &self.all[which];
        if let Some(seed) = self.work.seed {
            let to = &edges.outs()[edge];
            let pattern = Pattern::of(seed, self.shape.rank, to.tag(part), round);
            edges.fill(to, part, pattern);
        }
        exchange.ready(edge, part)
    }

    /// Ends the round of all edges, and looks at what has come.
    fn finish(&self, which: usize, round: u64) -> Result<()> {
        let (exchange, edges) = &self.all[which];
        exchange.finish()?;
        let Some(seed) = self.work.seed else {
            return Ok(());
        };
        for edge in edges.ins() {
            for part in 0..edge.parts {
                let pattern = Pattern::of(seed, edge.peer.as_u32(), edge.tag(part), round);
                edges.check(edge, part, pattern, round)?;
            }
        }
        Ok(())
    }

    fn ready_all(&self, which: usize, round: u64) -> Result<()> {
        for edge in 0..self.all[which].1.outs().len() {
            self.ready(which, edge, 0, round)?;
        }
        Ok(())
    }
}

impl Program for Halo<'_> {
    fn before(&self, _: u64) -> Result<()> {
        match self.mode {
            Mode::Partitioned | Mode::Rma => self.start(0),
            Mode::Single | Mode::Multiple => Ok(()),
        }
    }

    fn work(&self, region: u64, thread: u32) -> Result<()> {
        self.work.compute(region, thread);
        let own = thread as usize;
        match self.mode {
            Mode::Single => Ok(()),
            Mode::Multiple => {
                self.start(own)?;
                self.ready_all(own, region)?;
                self.finish(own, region)
            }
            Mode::Partitioned | Mode::Rma => {
                let outs = self.all[0].1.outs();
                for (face, part) in self.shape.touched(thread) {
                    let edge = outs.iter().position(|edge| edge.number == face as u32);
                    edge.map_or(Ok(()), |edge| self.ready(0, edge, part, region))?;
                }
                Ok(())
            }
        }
    }

    fn after(&self, region: u64) -> Result<()> {
        match self.mode {
            Mode::Single => {
                self.start(0)?;
                self.ready_all(0, region)?;
                self.finish(0, region)
            }
            Mode::Multiple => Ok(()),
            Mode::Partitioned | Mode::Rma => self.finish(0, region),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_face_has_one_thread() {
        for side in 1..=4 {
            let shape = Shape {
                side,
                face: 64,
                rank: 0,
            };
            let mut all: Vec<(usize, u32)> =
                (0..side.pow(3)).flat_map(|it| shape.touched(it)).collect();
            all.sort_unstable();
            let parts = |face| (0..side * side).map(move |part| (face, part));
            let wanted: Vec<(usize, u32)> = (0..FACES).flat_map(parts).collect();
            assert_eq!(all, wanted, "{side}");
        }
    }

    #[test]
    fn both_ends_of_a_face_give_it_the_same_number() {
        let grid = Grid::new(&[3, 3, 3]);
        let shape = |rank| Shape {
            side: 2,
            face: 64,
            rank,
        };
        for rank in 0..grid.ranks() {
            let (outs, _) = shape(rank).whole(&grid);
            for out in outs {
                let (_, ins) = shape(out.peer.as_u32()).whole(&grid);
                let meets = ins
                    .iter()
                    .filter(|edge| (edge.peer.as_u32(), edge.number) == (rank, out.number));
                assert_eq!(meets.count(), 1, "{rank} {out:?}");
            }
        }
    }

    #[test]
    fn threads_form_a_cube() {
        assert_eq!([1, 8, 64].map(cube_root), [Some(1), Some(2), Some(4)]);
        assert_eq!([0, 2, 9, 63].map(cube_root), [None; 4]);
    }
}
