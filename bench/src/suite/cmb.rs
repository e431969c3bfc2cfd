//! `cmb`: the threads of each rank arrive by a profile, and their buffer leaves for the neighbours of a stencil in pieces, or
//! as a whole after the join (the configurable messaging benchmark of Marts and others, CCGrid 2024).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::Description;
use crate::args::BenchArgs;
use crate::args::arrivals::Model;
use crate::args::granularity::Granularity;
use crate::args::pattern::PatternPlan;
use crate::arrivals::Source;
use crate::body::partitioned::now;
use crate::buffer::{self, Pattern};
use crate::error::{Error, Result};
use crate::kernels::Part;
use crate::pattern::exchange::{Edge, Edges, Exchange};
use crate::pattern::grid::Grid;
use crate::pattern::middleware::Middleware;
use crate::pattern::motif::{self, Motif, Request, Series};
use crate::pattern::remote::Flags;
use crate::pattern::team::Program;
use crate::pattern::{self, Context, Own, Prepared, divides};
use crate::port::barrier;
use crate::port::partitioned::PartitionedPort;
use crate::record::{PatternKeys, Quantity};
use crate::stats::{Seeded, mix};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cmb(Own);

pub(crate) const TESTS: &[Description] = &[Description {
    name: "cmb",
    about: "Ranks of a periodic grid exchange with the neighbours of a stencil while their threads arrive by a profile",
    quantity: Quantity::ITER,
    sizes: "256:1M:x16",
    options: &[
        "ranks",
        "threads",
        "grid",
        "policy",
        "compute-time",
        "cache",
        "stencil",
        "ring",
        "arrivals",
        "record",
        "bandwidth",
        "granularity",
        "interface",
        "profile",
    ],
    rows: BenchArgs::rows_of_pattern,
    motif: Some(Motif {
        dimensions: 3,
        threads: 4,
        compute: Some(Duration::from_nanos(1 << 26)),
        series: motif::granularities,
        check,
    }),
    ..Description::PLAIN
}];

impl pattern::Pattern for Cmb {
    fn new(own: Own) -> Self {
        Self(own)
    }

    fn own(&self) -> &Own {
        &self.0
    }

    fn room(plan: &PatternPlan, largest: usize) -> usize {
        (plan.cmb.stencil as usize - 1) * largest
    }

    fn open<'p, P: PartitionedPort>(
        context: &Context<'p, P>,
        series: &Series,
        size: usize,
    ) -> Result<Prepared<'p>> {
        let (plan, threads) = (&context.pattern.cmb, context.threads);
        let granularity = series.granularity.unwrap_or(Granularity::Bsp);
        let rank = context.port.rank();
        let cut = Cut {
            parts: granularity.parts(threads),
            size,
        };
        let edges = |into| match plan.ring {
            true => ring(context.grid.ranks(), rank.as_u32(), plan.stencil, into, cut),
            false => edges(&context.grid, rank.as_u32(), plan.stencil, into, cut),
        };
        let edges = context
            .memories
            .place_shared(rank, edges(false), edges(true));
        let middleware = series.middleware(Middleware::Posted, Flags::Edges);
        let peers = edges.outs().len();
        let counters = (0..cut.parts).map(|_| AtomicU32::new(0)).collect();
        Ok(Prepared {
            threads,
            keys: PatternKeys {
                stencil: Some(match plan.ring {
                    true => format!("{}-point-ring", plan.stencil),
                    false => format!("{}-point", plan.stencil),
                }),
                arrivals: Some(plan.arrivals.model.to_string()),
                granularity: Some(granularity.to_string()),
                ..PatternKeys::default()
            },
            regions: 1,
            bytes: vec![2.0 * peers as f64 * size as f64; context.grid.ranks() as usize],
            partitions: cut.parts,
            program: Box::new(Messaging {
                port: context.port,
                exchange: context.exchange(&middleware, edges.clone())?,
                edges,
                granularity,
                threads,
                counters,
                source: Source::of(&plan.arrivals, threads)?,
                time: context.time,
                stream: mix(context.seed ^ mix(u64::from(rank.as_u32()))),
                checked: context.checked,
                sweep: Mutex::new(vec![1; context.partitioned.single().sweep() / 8]),
                started: Mutex::new(0),
                parts: match plan.arrivals.model {
                    Model::Kernel(kernel) if !context.time.is_zero() => {
                        let seed = |thread: u32| {
                            mix(context.seed ^ u64::from(rank.as_u32())) + u64::from(thread)
                        };
                        let part = |thread| Mutex::new(Part::new(kernel, seed(thread)));
                        (0..threads).map(part).collect()
                    }
                    _ => Vec::new(),
                },
                arrived: Mutex::default(),
                times: Mutex::default(),
            }),
        })
    }
}

fn check(request: &Request) -> Result<()> {
    let (cmb, threads) = (&request.pattern.cmb, request.threads);
    if request.pattern.grid.iter().all(|side| *side < 2) {
        return Err(Error::Usage(
            "one rank has no neighbours: -n is 2 at least, such as 8 for a grid of 2x2x2"
                .to_owned(),
        ));
    }
    for granularity in &cmb.granularity {
        let parts = granularity.parts(threads);
        if !threads.is_multiple_of(parts) {
            let fitting = (1..=threads).filter(|it| threads.is_multiple_of(*it));
            let fitting: Vec<String> = fitting.map(|it| it.to_string()).collect();
            return Err(Error::Usage(format!(
                "{granularity} does not divide {threads} threads: bins of {} do",
                fitting.join(", ")
            )));
        }
    }
    if cmb.record.is_some() && !matches!(cmb.arrivals.model, Model::Kernel(_)) {
        return Err(Error::Usage(
            "--record needs a kernel: --arrivals kernel:spmv, kernel:particles or kernel:monte-carlo".to_owned(),
        ));
    }
    // Whoever starts the ranks hears of a bad file before they run.
    Source::of(&cmb.arrivals, threads)?;
    divides(&request.sizes, threads, "pieces of threads (--threads)")
}

/// How a buffer is cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    parts: u32,
    size: usize,
}

/// The offsets of a stencil's neighbours.
fn offsets(stencil: u32) -> Vec<[i32; 3]> {
    let around = || [-1, 0, 1].into_iter();
    let all = around().flat_map(|x| around().flat_map(move |y| around().map(move |z| [x, y, z])));
    let sum = |offset: &[i32; 3]| offset.iter().map(|it| it.abs()).sum::<i32>();
    all.filter(|offset| match stencil {
        7 => sum(offset) == 1,
        _ => sum(offset) > 0,
    })
    .collect()
}

/// The edges of a rank: an edge along each offset, to the rank there or from the rank opposite. Along a side of 1 a rank is
/// its own neighbour, to whom nothing travels: there is no such edge.
fn edges(grid: &Grid, rank: u32, stencil: u32, into: bool, cut: Cut) -> Vec<Edge> {
    let edge = |(number, offset): (u32, [i32; 3])| Edge {
        peer: grid.around(rank, if into { offset.map(|it| -it) } else { offset }),
        number,
        parts: cut.parts,
        len: cut.size / cut.parts as usize,
        place: 0,
    };
    let edges = (0..).zip(offsets(stencil)).map(edge);
    edges.filter(|edge| edge.peer.as_u32() != rank).collect()
}

/// The edges of a rank of a ring: to the next ranks, as many as a stencil has neighbours, or from as many before. Where the others
/// are fewer, they are met several times.
fn ring(ranks: u32, rank: u32, stencil: u32, into: bool, cut: Cut) -> Vec<Edge> {
    let edge = |number: u32| {
        let step = 1 + number % (ranks - 1);
        let step = if into { ranks - step } else { step };
        Edge {
            peer: Rank::new((rank + step) % ranks),
            number,
            parts: cut.parts,
            len: cut.size / cut.parts as usize,
            place: 0,
        }
    };
    (0..stencil - 1).map(edge).collect()
}

struct Messaging<'p, P> {
    port: &'p P,
    exchange: Box<dyn Exchange + 'p>,
    edges: Edges,
    granularity: Granularity,
    threads: u32,
    /// How many threads have arrived in each bin, over all iterations.
    counters: Vec<AtomicU32>,
    source: Source,
    time: Duration,
    /// Of this rank's arrivals.
    stream: u64,
    checked: Option<u64>,
    sweep: Mutex<Vec<u64>>,
    started: Mutex<u64>,
    /// Of each thread, where threads work.
    parts: Vec<Mutex<Part>>,
    /// When they were done: iteration, thread, nanoseconds.
    arrived: Mutex<Vec<[u64; 3]>>,
    times: Mutex<Vec<u64>>,
}

impl<P: PartitionedPort> Messaging<'_, P> {
    /// Bytes of a thread's piece of the buffer.
    fn piece(&self) -> usize {
        self.edges.outs()[0].bytes() / self.threads as usize
    }

    /// Whether a thread is the last of its bin in this iteration.
    fn completes(&self, bin: u32) -> bool {
        let members = self.threads / self.counters.len() as u32;
        let arrived = self.counters[bin as usize].fetch_add(1, Ordering::AcqRel) + 1;
        arrived.is_multiple_of(members)
    }

    /// What is done after the join.
    fn end(&self) -> Result<()> {
        let peers = 0..self.edges.outs().len();
        match self.granularity {
            Granularity::Bsp => peers.into_iter().try_for_each(|peer| {
                self.exchange.ready(peer, 0)?;
                self.exchange.finish_out(peer)?;
                self.exchange.finish_in(peer)
            }),
            Granularity::BspAll => {
                peers
                    .into_iter()
                    .try_for_each(|peer| self.exchange.ready(peer, 0))?;
                self.exchange.finish()
            }
            Granularity::Bins(_) | Granularity::Each => self.exchange.finish(),
        }
    }

    fn check(&self, seed: u64, region: u64) -> Result<()> {
        for edge in self.edges.ins() {
            for thread in 0..self.threads {
                let pattern = Pattern::of(seed, edge.peer.as_u32(), thread, region);
                let start = thread as usize * self.piece();
                self.edges
                    .check_range(edge, start..start + self.piece(), pattern, region)?;
            }
        }
        Ok(())
    }
}

impl<P: PartitionedPort> Program for Messaging<'_, P> {
    fn before(&self, _: u64) -> Result<()> {
        buffer::sweep(&mut lock(&self.sweep));
        barrier(self.port)?;
        *lock(&self.started) = now();
        self.exchange.start()
    }

    fn work(&self, region: u64, thread: u32) -> Result<()> {
        if let Some(part) = self.parts.get(thread as usize) {
            lock(part).step();
            let time = now() - *lock(&self.started);
            lock(&self.arrived).push([region, u64::from(thread), time]);
        } else if !self.time.is_zero() {
            let mut random = Seeded::new(self.stream ^ mix(region));
            let arrivals = self
                .source
                .draw(&mut random, region, self.time, self.threads);
            std::thread::sleep(arrivals[thread as usize]);
        }
        if let Some(seed) = self.checked {
            let rank = self.port.rank().as_u32();
            let start = thread as usize * self.piece();
            let pattern = Pattern::of(seed, rank, thread, region);
            self.edges
                .fill_range(&self.edges.outs()[0], start..start + self.piece(), pattern);
        }
        if !self.granularity.is_early() {
            return Ok(());
        }
        let bin = thread * self.counters.len() as u32 / self.threads;
        if self.completes(bin) {
            let peers = 0..self.edges.outs().len();
            peers
                .into_iter()
                .try_for_each(|peer| self.exchange.ready(peer, bin))?;
        }
        Ok(())
    }

    fn after(&self, region: u64) -> Result<()> {
        self.end()?;
        let time = now() - *lock(&self.started);
        lock(&self.times).push(time);
        self.checked.map_or(Ok(()), |seed| self.check(seed, region))
    }

    fn arrivals(&self) -> Vec<[u64; 3]> {
        std::mem::take(&mut *lock(&self.arrived))
    }

    fn times(&self) -> Vec<u64> {
        std::mem::take(&mut *lock(&self.times))
    }
}

/// A thread that panicked has ended the test.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_narrow_grid_only_other_ranks_are_neighbours() {
        let cut = Cut { parts: 2, size: 8 };
        for (sides, stencil, count) in [
            ([2, 1, 1], 7, 2),
            ([2, 1, 1], 27, 18),
            ([3, 2, 1], 27, 24),
            ([2, 2, 2], 27, 26),
        ] {
            let grid = Grid::new(&sides);
            for rank in 0..grid.ranks() {
                assert_eq!(
                    edges(&grid, rank, stencil, false, cut).len(),
                    count,
                    "{sides:?}"
                );
            }
        }
    }

    #[test]
    fn on_a_ring_each_sends_to_the_next_and_receives_from_those_before() {
        let cut = Cut { parts: 2, size: 8 };
        let peers = |into| -> Vec<u32> {
            let edges = ring(8, 6, 7, into, cut);
            edges.iter().map(|edge| edge.peer.as_u32()).collect()
        };
        assert_eq!(peers(false), [7, 0, 1, 2, 3, 4]);
        assert_eq!(peers(true), [5, 4, 3, 2, 1, 0]);
        // 26 are the 7 others several times, and never the rank itself.
        let many = ring(8, 6, 27, false, cut);
        assert!(many.len() == 26 && many.iter().all(|edge| edge.peer.as_u32() != 6));
        for rank in 0..8 {
            for out in ring(8, rank, 27, false, cut) {
                let ins = ring(8, out.peer.as_u32(), 27, true, cut);
                let meets = |edge: &&Edge| (edge.peer.as_u32(), edge.number) == (rank, out.number);
                assert_eq!(ins.iter().filter(meets).count(), 1, "{rank} {out:?}");
            }
        }
    }

    #[test]
    fn stencils_have_their_neighbours() {
        assert_eq!((offsets(7).len(), offsets(27).len()), (6, 26));
        let grid = Grid::new(&[3, 2, 1]);
        let cut = Cut { parts: 2, size: 8 };
        for stencil in [7, 27] {
            for rank in 0..grid.ranks() {
                let outs = edges(&grid, rank, stencil, false, cut);
                assert!(outs.iter().all(|edge| edge.peer.as_u32() != rank));
                for out in outs {
                    let ins = edges(&grid, out.peer.as_u32(), stencil, true, cut);
                    let meets =
                        |edge: &&Edge| (edge.peer.as_u32(), edge.number) == (rank, out.number);
                    assert_eq!(ins.iter().filter(meets).count(), 1, "{rank} {out:?}");
                }
            }
        }
    }
}
