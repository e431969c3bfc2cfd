//! `allreduce-compute`: threads compute beside one that calls allreduces (figure 14).

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::concurrent::arrays::Arrays;
use crate::concurrent::maximum::Maximum;
use crate::error::{Error, Result};
use crate::leader::{self, Script};
use crate::port::group::Divide;
use crate::port::null::NullGroup;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Port, barrier};
use crate::record::{Figures, Quantity};
use crate::run::{Ports, Run, Test};
use crate::time::{least, nanoseconds, time_of};
use crate::units::UnitKind;
use crate::units::comparison::{Comparison, Shape};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AllreduceCompute;

/// How often the whole is repeated, and the allreduces of each time.
const REPETITIONS: u64 = 3;
const CALLS: u64 = 10;
/// How long they take together at least, where their number is not told.
const LEAST: Duration = Duration::from_millis(200);

pub(crate) const TESTS: &[Description] = &[Description {
    name: "allreduce-compute",
    about: "What an allreduce takes from threads that compute beside it",
    quantity: Quantity::PASSES,
    sizes: "16M",
    options: &["units", "ranks"],
    units: Some(Comparison {
        granule: 4,
        units: "threads:2",
        count: 2,
        shape: |unit, ranks| match (unit.kind, ranks.unwrap_or(3)) {
            (UnitKind::Processes, _) => {
                Err("threads:N compute in each rank beside the one that calls")
            }
            (_, 1) => Err("it needs at least 2 ranks (option -n)"),
            (_, ranks) => Ok(Shape::of_nodes(ranks, unit.count + 1)),
        },
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for AllreduceCompute {
    fn of(_: &BenchArgs) -> Self {
        Self
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let (port, plan) = (ports.own, run.plan());
        let (rank, ranks) = (port.rank().as_u32(), port.size());
        let checked = run.seed().map(|_| (0..ranks).collect());
        let mut blocks = Blocks {
            port,
            maximum: Maximum::new(port.group(Divide::All)?, plan.largest()?, rank, checked)?,
            threads: (0..run.callers()).map(|_| Arrays::new()).collect(),
        };
        lead(&mut blocks, run)
    }
}

fn lead(
    blocks: &mut dyn Script<Case = (), Block = Block, Told = Rates>,
    run: &mut Run<'_>,
) -> Result<()> {
    let plan = run.plan();
    leader::run(run.port, blocks, |leader| {
        for size in run.sizes()? {
            let warmup = plan.warmup.unwrap_or(1);
            let warming = leader.block(&Block::Alone(size, warmup))?[0].time;
            let fitting = nanoseconds(LEAST) / (warming / warmup.max(1)).max(1);
            let own = || fitting.clamp(CALLS, 10_000);
            let calls = plan.iterations.unwrap_or_else(own);
            leader.watch()?;
            let counts = [vec![calls; REPETITIONS as usize]];
            let told = leader.by_turns(&counts, |_, calls| Block::Beside(size, calls))?;
            let found: Vec<Found> = told[0].iter().map(|all| Found::of(all, calls)).collect();
            let mut row = run.row(size, &leader.report()?);
            row.sampling.set(calls * REPETITIONS, REPETITIONS as u32);
            Found::set(&found, &mut row.figures);
            row.figures.set("harness_us", harness(size, 0)? / 1e3);
            run.emit(row)?;
        }
        Ok(())
    })
}

/// So many allreduces of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Block {
    Alone(usize, u64),
    /// Beside threads that compute, and then those alone for as long.
    Beside(usize, u64),
}

/// What a block came to on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Rates {
    /// Passes per second of the mean thread, beside allreduces and alone.
    with: f64,
    alone: f64,
    /// All allreduces, in nanoseconds.
    time: u64,
}

/// What the ranks do.
struct Blocks<'p, P> {
    port: &'p P,
    maximum: Maximum<'p>,
    threads: Vec<Arrays>,
}

impl<P: Port> Script for Blocks<'_, P> {
    type Case = ();
    type Block = Block;
    type Told = Rates;

    fn block(&mut self, block: &Block) -> Result<Rates> {
        let maximum = &mut self.maximum;
        let mut call = |size, calls| (0..calls).try_for_each(|_| maximum.call(size));
        let (size, calls) = match *block {
            Block::Alone(size, calls) => {
                let time = nanoseconds(time_of(|| call(size, calls))?);
                return Ok(Rates {
                    time,
                    ..Rates::default()
                });
            }
            Block::Beside(size, calls) => (size, calls),
        };
        barrier(self.port)?;
        let (with, time) = beside(&mut self.threads, || call(size, calls))?;
        barrier(self.port)?;
        let sleep = || {
            std::thread::sleep(time);
            Ok(())
        };
        let (alone, _) = beside(&mut self.threads, sleep)?;
        let time = nanoseconds(time);
        Ok(Rates { with, alone, time })
    }
}

/// Has threads compute while `work` runs. Returns the mean over them of their passes per second, and how long it ran.
fn beside(threads: &mut [Arrays], work: impl FnOnce() -> Result<()>) -> Result<(f64, Duration)> {
    let is_over = AtomicBool::new(false);
    let begin = Barrier::new(threads.len() + 1);
    let count = threads.len() as f64;
    std::thread::scope(|scope| {
        let compute = |arrays| {
            let (is_over, begin) = (&is_over, &begin);
            scope.spawn(move || passes(arrays, begin, is_over))
        };
        let computing: Vec<_> = threads.iter_mut().map(compute).collect();
        begin.wait();
        let start = Instant::now();
        let ended = work();
        let time = start.elapsed();
        is_over.store(true, Ordering::Relaxed);
        let mut rates = 0.0;
        for thread in computing {
            let rate = thread.join();
            rates += rate.map_err(|_| Error::Peer("a thread panicked".to_owned()))?;
        }
        ended.map(|()| (rates / count, time))
    })
}

/// Computes until the end, one pass at least, and returns its passes per second.
fn passes(arrays: &mut Arrays, begin: &Barrier, is_over: &AtomicBool) -> f64 {
    begin.wait();
    let start = Instant::now();
    let mut passes = 0.0;
    loop {
        arrays.pass();
        passes += 1.0;
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::yield_now();
    }
    passes / start.elapsed().as_secs_f64().max(1e-9)
}

/// What one time came to: passes per second of the mean thread, and microseconds for an allreduce.
struct Found {
    with: f64,
    alone: f64,
    call: f64,
}

impl Found {
    fn of(all: &[Rates], calls: u64) -> Self {
        let mean = |of: fn(&Rates) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let longest = all.iter().map(|it| it.time).max().unwrap_or(0);
        Self {
            with: mean(|it| it.with),
            alone: mean(|it| it.alone),
            call: longest as f64 / calls as f64 / 1e3,
        }
    }

    fn set(all: &[Self], figures: &mut Figures) {
        let mut set =
            |quantity, of: fn(&Self) -> f64| figures.set_all(quantity, all.iter().map(of));
        set(Quantity::PASSES, |it| it.with);
        set(Quantity::PASSES_ALONE, |it| it.alone);
        set(Quantity::LOSS, |it| {
            100.0 * (1.0 - it.with / it.alone.max(1e-9))
        });
        set(Quantity::LATENCY, |it| it.call);
    }
}

/// The time of a call that does nothing, in nanoseconds.
fn harness(size: usize, rank: u32) -> Result<f64> {
    const COUNT: u64 = 1_000;
    let mut maximum = Maximum::new(Box::new(NullGroup), size, rank, None)?;
    least(5, || {
        let calls = time_of(|| (0..COUNT).try_for_each(|_| maximum.call(size)))?;
        Ok(nanoseconds(calls) as f64 / COUNT as f64)
    })
}
