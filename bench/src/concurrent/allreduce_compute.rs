//! `allreduce-compute`: threads compute beside one that calls allreduces (figure 14).

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::arrays::Arrays;
use super::maximum::Maximum;
use super::run::Run;
use crate::time::{nanoseconds, time_of};
use super::{Description, Shape, Test};
use crate::args::TestName;
use crate::error::{Error, Result};
use crate::port::Port;
use crate::port::group::Divide;
use crate::port::null::NullGroup;
use crate::record::{Figures, Quantity};
use crate::stats::Summary;
use crate::units::UnitKind;

pub(super) struct AllreduceCompute;

/// How often the whole is repeated, and the allreduces of each time.
const REPETITIONS: u64 = 3;
const CALLS: u64 = 10;
/// How long they take together at least, where their number is not told.
const LEAST: Duration = Duration::from_millis(200);

impl Test for AllreduceCompute {
    const DESCRIPTION: Description = Description {
        test: TestName::AllreduceCompute,
        quantity: Quantity::PASSES,
        sizes: "16M",
        granule: 4,
        units: "threads:2",
        count: 2,
        window: 0,
        options: &["units", "ranks"],
        sessions: false,
        shape: |unit, ranks| match (unit.kind, ranks.unwrap_or(3)) {
            (UnitKind::Processes, _) => Err("threads:N compute in each rank beside the one that calls"),
            (_, 1) => Err("it needs at least 2 ranks (option -n)"),
            (_, ranks) => Ok(Shape::of_nodes(ranks, unit.count + 1)),
        },
        paired: None,
    };

    fn measure<P: Port + Sync>(run: &mut Run<'_, P>, _: Option<&P>) -> Result<()> {
        let (rank, ranks) = (run.port.rank().as_u32(), run.port.size());
        let checked = run.seed().map(|_| (0..ranks).collect());
        let group = run.port.group(Divide::All)?;
        let mut maximum = Maximum::new(group, run.plan().largest()?, rank, checked)?;
        let mut threads: Vec<Arrays> = (0..run.callers()).map(|_| Arrays::new()).collect();
        for size in run.sizes()? {
            let warmup = run.plan().warmup.unwrap_or(1);
            let warming = time_of(|| (0..warmup).try_for_each(|_| maximum.call(size)))?;
            let calls = calls(run, warming / warmup.max(1) as u32)?;
            run.watch();
            let mut found = Vec::new();
            for _ in 0..REPETITIONS {
                run.barrier()?;
                let call = || (0..calls).try_for_each(|_| maximum.call(size));
                let (with, time) = beside(&mut threads, call)?;
                run.barrier()?;
                let sleep = || {
                    std::thread::sleep(time);
                    Ok(())
                };
                let (alone, _) = beside(&mut threads, sleep)?;
                let words = [with.to_bits(), alone.to_bits(), nanoseconds(time), 0, 0];
                found.push(Found::of(&run.gather(words)?, calls));
            }
            let load = run.load()?;
            if run.leads() {
                let mut row = run.row(size, &load);
                (row.iterations, row.repetitions) = (calls * REPETITIONS, REPETITIONS as u32);
                Found::set(&found, &mut row.figures);
                row.figures.set("harness_us", harness(size, rank)? / 1e3);
                run.emit(row)?;
            }
        }
        Ok(())
    }
}

/// How many allreduces each time has, where one alone takes `time`: on all ranks what rank 0 finds.
fn calls<P: Port>(run: &mut Run<'_, P>, time: Duration) -> Result<u64> {
    let fitting = nanoseconds(LEAST) / nanoseconds(time).max(1);
    let calls = run.plan().iterations.unwrap_or_else(|| fitting.clamp(CALLS, 10_000));
    Ok(run.broadcast([calls, 0, 0, 0, 0])?[0])
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
    fn of(all: &[[u64; 5]], calls: u64) -> Self {
        let ranks = all.len() as f64;
        let mean = |place: usize| {
            let values = all.iter().map(|words| f64::from_bits(words[place]));
            values.sum::<f64>() / ranks
        };
        let longest = all.iter().map(|words| words[2]).max().unwrap_or(0);
        Self {
            with: mean(0),
            alone: mean(1),
            call: longest as f64 / calls as f64 / 1e3,
        }
    }

    fn set(all: &[Self], figures: &mut Figures) {
        let mut set = |quantity, of: &dyn Fn(&Self) -> f64| {
            let values: Vec<f64> = all.iter().map(of).collect();
            let summary = Summary::of(&values).expect("at least one time, of finite figures");
            figures.set_summary(quantity, summary);
        };
        set(Quantity::PASSES, &|it| it.with);
        set(Quantity::PASSES_ALONE, &|it| it.alone);
        set(Quantity::LOSS, &|it| 100.0 * (1.0 - it.with / it.alone.max(1e-9)));
        set(Quantity::LATENCY, &|it| it.call);
    }
}

/// The time of a call that does nothing, in nanoseconds.
fn harness(size: usize, rank: u32) -> Result<f64> {
    const COUNT: u64 = 1_000;
    let mut maximum = Maximum::new(Box::new(NullGroup), size, rank, None)?;
    let mut least = u64::MAX;
    for _ in 0..5 {
        let calls = time_of(|| (0..COUNT).try_for_each(|_| maximum.call(size)))?;
        least = least.min(nanoseconds(calls));
    }
    Ok(least as f64 / COUNT as f64)
}
