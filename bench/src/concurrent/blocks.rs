//! How callers are measured: rank 0 leads through warm-up and blocks, all callers of all ranks work at once, and each has its
//! own clock.

use std::time::{Duration, Instant};

use super::run::Run;
use super::work::{Alone, Caller, Tally, Team, Workers};
use crate::args::Begin;
use crate::error::{Error, Result};
use crate::load::Load;
use crate::measure::{BLOCK, REPETITIONS, SIZE, WARMUP, divide, first_block_pct};
use crate::port::Port;
use crate::port::null::NullPort;
use crate::record::{FIRST_BLOCK, Figures};
use crate::stats::Summary;
use crate::time::nanoseconds;

/// How many iterations a test has at least where nothing is said, and before them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub least: u64,
    pub warmup: u64,
}

/// What the blocks of a size came to. Times are of one iteration, in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub size: usize,
    pub iterations: u64,
    pub repetitions: u32,
    /// The mean over callers.
    pub mean: Summary,
    /// The slowest caller.
    pub slowest: Summary,
    /// Iterations per nanosecond, of all callers together.
    pub rate: Summary,
    pub first_block: Option<f64>,
    pub load: Load,
    /// An iteration of rank 0's first caller over a port that carries nothing.
    pub harness: f64,
}

impl Sample {
    /// A figure of it times `by`.
    pub(super) fn scaled(&self, of: Summary, by: f64) -> Summary {
        Summary {
            median: of.median * by,
            min: of.min * by,
            max: of.max * by,
        }
    }

    /// Adds what every row has beside the figures of its test, of whose units an iteration has so many.
    pub(super) fn add_to(&self, figures: &mut Figures, units: f64) {
        figures.set("harness_us", self.harness / units / 1e3);
        if let Some(longer) = self.first_block {
            figures.set(FIRST_BLOCK, longer);
        }
    }
}

/// What rank 0 announces.
const FINISH: u64 = 0;
const WORK: u64 = 1;
const WATCH: u64 = 2;
const REPORT: u64 = 3;

/// Measures all sizes with one caller for each process, or for each thread of the unit: `caller` makes the one of a number.
/// `idle` makes one for a port that carries nothing. Samples are emitted on rank 0.
pub(super) fn measure<P: Port + Sync, C: Caller<P>, N: Caller<NullPort>>(
    run: &mut Run<'_, P>,
    effort: Effort,
    mut caller: impl FnMut(&mut Run<'_, P>, u32) -> Result<C>,
    idle: impl FnOnce(&mut Run<'_, P>) -> Result<N>,
    emit: &mut dyn FnMut(&mut Run<'_, P>, Sample) -> Result<()>,
) -> Result<()> {
    let callers = (0..run.callers()).map(|number| caller(run, number));
    let mut callers: Vec<C> = callers.collect::<Result<_>>()?;
    let mut times = Vec::new();
    if run.leads() {
        let idle = idle(run)?;
        times = harness(run, idle, effort)?;
    }
    let port = run.port;
    if run.unit().is_threads() {
        let together = run.plan().concurrent.start == Begin::Together;
        return std::thread::scope(|scope| {
            let mut workers = Workers::start(scope, port, callers, together);
            go(run, &mut workers, effort, &times, emit)
        });
    }
    let caller = callers.pop().expect("a process has a caller");
    go(run, &mut Alone { port, caller }, effort, &times, emit)
}

fn go<P: Port>(
    run: &mut Run<'_, P>,
    team: &mut dyn Team,
    effort: Effort,
    harness: &[f64],
    emit: &mut dyn FnMut(&mut Run<'_, P>, Sample) -> Result<()>,
) -> Result<()> {
    if !run.leads() {
        return follow(run, team);
    }
    for (size, harness) in run.sizes()?.into_iter().zip(harness) {
        let mut leader = Leader { run, team, effort };
        let sample = leader.measure(size, *harness)?;
        emit(run, sample)?;
    }
    run.broadcast([FINISH, 0, 0, 0, 0]).map(drop)
}

/// The time of an iteration at each size where nothing is carried: the least of several blocks, in nanoseconds.
fn harness<P: Port>(
    run: &Run<'_, P>,
    mut caller: impl Caller<NullPort>,
    effort: Effort,
) -> Result<Vec<f64>> {
    let port = NullPort::of(run.port);
    let count = effort.least;
    let one = |size| {
        let mut least = f64::INFINITY;
        for _ in 0..5 {
            let time = caller.block(&port, size, count)?.unwrap_or_default();
            least = least.min(nanoseconds(time) as f64 / count as f64);
        }
        Ok(least)
    };
    run.sizes()?.into_iter().map(one).collect()
}

/// Does what rank 0 announces until it announces the end.
fn follow<P: Port>(run: &mut Run<'_, P>, team: &mut dyn Team) -> Result<()> {
    loop {
        match run.broadcast([0; 5])? {
            [FINISH, ..] => return Ok(()),
            [WORK, size, count, ..] => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                let tally = work(run, team, size, count)?;
                run.gather(tally.to_words())?;
            }
            [WATCH, ..] => run.watch(),
            [REPORT, ..] => drop(run.load()?),
            _ => {
                let what = "rank 0 announced a step that does not exist";
                return Err(Error::Peer(what.to_owned()));
            }
        }
    }
}

fn work<P: Port>(run: &Run<'_, P>, team: &mut dyn Team, size: usize, count: u64) -> Result<Tally> {
    if run.plan().concurrent.start == Begin::Together {
        run.barrier()?;
    }
    team.block(size, count)
}

struct Leader<'l, 'r, P: Port> {
    run: &'l mut Run<'r, P>,
    team: &'l mut dyn Team,
    effort: Effort,
}

impl<P: Port> Leader<'_, '_, P> {
    fn block(&mut self, size: usize, count: u64) -> Result<Tally> {
        self.run.broadcast([WORK, size as u64, count, 0, 0])?;
        let tally = work(self.run, self.team, size, count)?;
        Ok(Tally::of_words(&self.run.gather(tally.to_words())?))
    }

    fn measure(&mut self, size: usize, harness: f64) -> Result<Sample> {
        let blocks = self.prepare(size)?;
        self.run.broadcast([WATCH, 0, 0, 0, 0])?;
        self.run.watch();
        let (mut mean, mut slowest, mut rate) = (Vec::new(), Vec::new(), Vec::new());
        for &count in &blocks {
            let tally = self.block(size, count)?;
            let count = count as f64;
            mean.push(tally.sum as f64 / tally.callers.max(1) as f64 / count);
            slowest.push(tally.longest as f64 / count);
            rate.push(tally.rate * count);
        }
        self.run.broadcast([REPORT, 0, 0, 0, 0])?;
        let load = self.run.load()?;
        let summary = |values: &[f64]| Summary::of(values).expect("blocks of finite time");
        Ok(Sample {
            size,
            iterations: blocks.iter().sum(),
            repetitions: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
            first_block: first_block_pct(&mean),
            mean: summary(&mean),
            slowest: summary(&slowest),
            rate: summary(&rate),
            load,
            harness,
        })
    }

    /// Warms up, and returns the iterations of each block.
    fn prepare(&mut self, size: usize) -> Result<Vec<u64>> {
        let plan = self.run.plan();
        if let Some(count) = plan.warmup.filter(|&count| count > 0) {
            self.block(size, count)?;
        }
        if let Some(iterations) = plan.iterations {
            if plan.warmup.is_none() {
                self.warm_up(size, Duration::ZERO)?;
            }
            return Ok(divide(iterations, REPETITIONS));
        }
        let one = self.warm_up(size, Duration::from_millis(1))?;
        let count = choose(self.effort.least, one, plan.callers_per_core);
        Ok(divide(count, REPETITIONS))
    }

    /// Runs blocks of 1, 2, 4, ... iterations until there were enough and the last one took `enough`, or the time is up.
    /// Returns the time of one iteration in the last, in nanoseconds.
    fn warm_up(&mut self, size: usize, enough: Duration) -> Result<u64> {
        let start = Instant::now();
        let (mut next, mut done) = (1, 0);
        loop {
            let longest = self.block(size, next)?.longest;
            done += next;
            let is_enough = done >= self.effort.warmup && longest >= nanoseconds(enough);
            if is_enough || start.elapsed() >= WARMUP {
                return Ok(longest / next);
            }
            next *= 2;
        }
    }
}

/// How many iterations of `one` nanosecond each: at least `least` and as many as give blocks of decent length, but no more
/// than fit into the time of a size. Callers that take turns on a core need blocks of many turns.
fn choose(least: u64, one: u64, callers_per_core: u32) -> u64 {
    let (one, turns) = (one.max(1), u64::from(callers_per_core.max(1)));
    let decent = REPETITIONS * (turns * nanoseconds(BLOCK)).div_ceil(one);
    let most = (turns * nanoseconds(SIZE) / one).max(REPETITIONS);
    least.max(decent).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_share_a_core_have_longer_blocks() {
        assert_eq!(choose(1000, 100, 1), 1_000_000);
        assert_eq!(choose(1000, 100, 4), 4_000_000);
        assert_eq!(choose(1000, 10_000_000, 1), 100);
        assert_eq!(choose(1, 3_000_000_000, 1), 5);
    }
}
