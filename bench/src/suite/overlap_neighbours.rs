//! `overlap-neighbours`: long messages to four neighbours behind computation, with and without a thread that waits in a
//! receive meanwhile (figures 11 and 12).

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::Description;
use crate::args::{BenchArgs, Progress};
use crate::body::Traffic;
use crate::buffer::Memory;
use crate::concurrent::arrays::Arrays;
use crate::error::{Error, Result};
use crate::leader::{self, Iterations, Script};
use crate::measure::divide;
use crate::plan::Plan;
use crate::port::null::NullPort;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Port, barrier, tags};
use crate::record::{Quantity, Row};
use crate::run::{Ports, Run, Test};
use crate::time::{least, nanoseconds, time_of};
use crate::units::UnitKind;
use crate::units::comparison::{Comparison, Shape};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OverlapNeighbours {
    /// How often a rank passes over its arrays between post and wait.
    passes: u32,
}

/// How far the neighbours are.
const DISTANCES: std::ops::RangeInclusive<u32> = 1..=4;
/// How often the loop is repeated, and its iterations.
const REPETITIONS: u64 = 3;
const ITERATIONS: u64 = 10;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "overlap-neighbours",
    about: "Messages to four neighbours behind computation, with and without a thread that waits",
    quantity: Quantity::ITERATION,
    sizes: "4M",
    options: &["units", "ranks", "progress", "passes", "memory"],
    units: Some(Comparison {
        units: "processes:5",
        count: 5,
        shape: |unit, ranks| match (unit.kind, ranks.unwrap_or(unit.count)) {
            (UnitKind::Threads, _) => {
                Err("processes:N is N ranks, and --progress the threads beside")
            }
            (_, 1) => Err("it needs at least 2 ranks; 5 have four neighbours each"),
            (_, ranks) => Ok(Shape::of_nodes(ranks, 1)),
        },
        paired: Some(pair),
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for OverlapNeighbours {
    fn of(args: &BenchArgs) -> Self {
        Self {
            passes: args.concurrent.passes.unwrap_or(50),
        }
    }

    fn label(&self, _: &Plan, row: &mut Row) {
        row.series.passes = Some(self.passes);
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        let mut blocks = Blocks {
            port: ports.own,
            neighbours: Neighbours::new(run, plan.largest()?, run.seed(), self.passes)?,
            is_helped: plan.callers.progress == Some(Progress::BlockedThread),
        };
        lead(&mut blocks, run)
    }
}

fn lead(
    blocks: &mut dyn Script<Case = (), Block = Iterations, Told = Times>,
    run: &mut Run<'_>,
) -> Result<()> {
    let plan = run.plan();
    let counts = divide(
        plan.iterations.unwrap_or(REPETITIONS * ITERATIONS),
        REPETITIONS,
    );
    leader::run(run.port, blocks, |leader| {
        for size in run.sizes()? {
            if let Some(count) = Some(plan.warmup.unwrap_or(1)).filter(|&count| count > 0) {
                leader.block(&Iterations { size, count })?;
            }
            leader.watch()?;
            let told = leader.by_turns(std::slice::from_ref(&counts), |_, count| Iterations {
                size,
                count,
            })?;
            let load = leader.report()?;
            let found = counts.iter().zip(&told[0]).map(|(&count, all)| {
                let mean = all.iter().map(|it| it.computed).sum::<u64>() / all.len() as u64;
                let longest = all.iter().map(|it| it.whole).max().unwrap_or(0);
                let each = |time: u64| time as f64 / count as f64 / 1e3;
                (each(longest), each(mean))
            });
            let mut row = run.row(size, &load);
            row.sampling.iterations = counts.iter().sum();
            row.sampling.repetitions = counts.len() as u32;
            set(&mut row, &found.collect::<Vec<_>>());
            let harness = Neighbours::harness(run, size)?;
            row.figures.set("harness_us", harness / 1e3);
            run.emit(row)?;
        }
        Ok(())
    })
}

/// The time of all iterations of a loop and that of their computation, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Times {
    whole: u64,
    computed: u64,
}

/// What the ranks do.
struct Blocks<'p, P: Port> {
    port: &'p P,
    neighbours: Neighbours<P>,
    /// A thread waits in a receive meanwhile.
    is_helped: bool,
}

impl<P: Port + Sync> Script for Blocks<'_, P> {
    type Case = ();
    type Block = Iterations;
    type Told = Times;

    fn block(&mut self, block: &Iterations) -> Result<Times> {
        let (port, neighbours) = (self.port, &mut self.neighbours);
        if !self.is_helped {
            return neighbours.iterations(port, block);
        }
        let own = port.rank();
        let (empty, room) = (Memory::new(0)?, Memory::new(0)?);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(move || port.recv(room.incoming(0..0), own, tags::AHEAD));
            let measured = neighbours.iterations(port, block);
            // After a failure too: the thread waits for it.
            port.send(empty.outgoing(0..0), own, tags::AHEAD)?;
            let ended = blocked.join();
            ended.map_err(|_| Error::Peer("a thread panicked".to_owned()))??;
            measured
        })
    }
}

/// The figures of blocks, each with the time of an iteration and of its computation, in microseconds.
fn set(row: &mut Row, found: &[(f64, f64)]) {
    let figures = &mut row.figures;
    figures.set_all(Quantity::ITERATION, found.iter().map(|it| it.0));
    figures.set_all(Quantity::COMPUTATION, found.iter().map(|it| it.1));
    figures.set_all(Quantity::COMMUNICATION, found.iter().map(|it| it.0 - it.1));
}

/// Which part of the messages' time is hidden that is not without help.
fn pair(row: &mut Row, base: &Row) {
    let of = |row: &Row, quantity: Quantity| row.figures.named(&quantity.key());
    let times = (of(base, Quantity::ITERATION), of(row, Quantity::ITERATION));
    if let ((Some(none), Some(helped)), Some(messages)) = (times, of(base, Quantity::COMMUNICATION))
    {
        let hidden = 100.0 * (none - helped) / messages.max(1e-3);
        row.figures.set(Quantity::HIDDEN.key(), hidden);
    }
}

struct Neighbours<P: Port> {
    /// The messages to and from each distance.
    traffic: Vec<Traffic>,
    requests: Vec<P::Request>,
    arrays: Arrays,
    passes: u32,
}

impl<P: Port> Neighbours<P> {
    fn new(run: &Run<'_>, largest: usize, seed: Option<u64>, passes: u32) -> Result<Self> {
        let traffic = DISTANCES.map(|distance| run.traffic(distance, largest, seed));
        Ok(Self {
            traffic: traffic.collect::<Result<_>>()?,
            requests: Vec::new(),
            arrays: Arrays::new(),
            passes,
        })
    }

    /// Posts everything, computes, waits; returns how long it computed.
    fn iteration(&mut self, port: &P, size: usize) -> Result<Duration> {
        let (rank, ranks) = (port.rank().as_u32(), port.size());
        // With fewer ranks the same neighbours come again.
        let far = |distance: u32| (distance - 1) % (ranks - 1) + 1;
        let before = |distance| Rank::new((rank + ranks - far(distance)) % ranks);
        let after = |distance| Rank::new((rank + far(distance)) % ranks);
        for (distance, traffic) in DISTANCES.zip(&self.traffic) {
            let (tag, _) = tags::thread(distance);
            let room = traffic.incoming(0, size);
            self.requests.push(port.irecv(room, before(distance), tag)?);
        }
        for (distance, traffic) in DISTANCES.zip(&mut self.traffic) {
            let (tag, _) = tags::thread(distance);
            let data = traffic.outgoing(0, size);
            self.requests.push(port.isend(data, after(distance), tag)?);
        }
        let start = Instant::now();
        for _ in 0..self.passes {
            self.arrays.pass();
        }
        let computed = start.elapsed();
        port.wait_all(&mut self.requests)?;
        for (distance, traffic) in DISTANCES.zip(&mut self.traffic) {
            traffic.check(1, size, before(distance))?;
        }
        Ok(computed)
    }

    /// The loop.
    fn iterations(&mut self, port: &P, block: &Iterations) -> Result<Times> {
        let mut computed = Duration::ZERO;
        barrier(port)?;
        let start = Instant::now();
        for _ in 0..block.count {
            computed += self.iteration(port, block.size)?;
        }
        barrier(port)?;
        Ok(Times {
            whole: nanoseconds(start.elapsed()),
            computed: nanoseconds(computed),
        })
    }
}

impl Neighbours<NullPort> {
    /// The time of an iteration that neither computes nor carries anything, in nanoseconds.
    fn harness(run: &Run<'_>, size: usize) -> Result<f64> {
        let port = NullPort::of(run.port);
        let mut own = Self::new(run, size, None, 0)?;
        least(100, || {
            let iteration = time_of(|| own.iteration(&port, size).map(drop))?;
            Ok(nanoseconds(iteration) as f64)
        })
    }
}
