//! How callers are measured: rank 0 leads through warm-up and blocks, all callers of all ranks work at once, and each has its
//! own clock.

use super::work::{Alone, Caller, Tally, Team, Workers};
use crate::args::Begin;
use crate::error::Result;
use crate::leader::{self, Iterations, Script};
use crate::load::Load;
use crate::measure::{Effort, first_block_pct};
use crate::port::null::NullPort;
use crate::port::{Endpoint, Port, barrier};
use crate::record::{FIRST_BLOCK, Figures, Quantity, Row};
use crate::run::Run;
use crate::stats::Summary;
use crate::time::{least, nanoseconds};

/// What the blocks of a size came to. Times are of one iteration, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
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
    /// What blocks of so many iterations came to, of which all ranks told this.
    fn of(size: usize, counts: &[u64], told: &[Vec<Tally>], load: Load, harness: f64) -> Self {
        let (mut mean, mut slowest, mut rate) = (Vec::new(), Vec::new(), Vec::new());
        for (&count, told) in counts.iter().zip(told) {
            let (tally, count) = (Tally::of(told), count as f64);
            mean.push(tally.sum as f64 / tally.callers.max(1) as f64 / count);
            slowest.push(tally.longest as f64 / count);
            rate.push(tally.rate * count);
        }
        let summary = |values: &[f64]| Summary::of(values).expect("blocks of finite time");
        Self {
            size,
            iterations: counts.iter().sum(),
            repetitions: u32::try_from(counts.len()).unwrap_or(u32::MAX),
            first_block: first_block_pct(&mean),
            mean: summary(&mean),
            slowest: summary(&slowest),
            rate: summary(&rate),
            load,
            harness,
        }
    }

    /// A row of it with everything but its figures.
    pub(crate) fn row(&self, run: &Run<'_>) -> Row {
        let mut row = run.row(self.size, &self.load);
        row.sampling.set(self.iterations, self.repetitions);
        let is_staggered = run.plan().callers.begin == Begin::Staggered;
        row.series.start = is_staggered.then(|| "staggered".to_owned());
        row
    }

    /// Emits the time of one of the `units` of an iteration, of the mean caller and of the slowest.
    pub(crate) fn emit_times(self, run: &mut Run<'_>, units: f64) -> Result<()> {
        let mut row = self.row(run);
        let times = [
            (Quantity::LATENCY, self.mean),
            (Quantity::SLOWEST, self.slowest),
        ];
        for (quantity, time) in times {
            row.figures.set_summary(quantity, time.times(1e-3 / units));
        }
        self.add_to(&mut row.figures, units);
        run.emit(row)
    }

    /// Adds what every row has beside the figures of its test, of whose units an iteration has so many.
    pub(crate) fn add_to(&self, figures: &mut Figures, units: f64) {
        figures.set("harness_us", self.harness / units / 1e3);
        if let Some(longer) = self.first_block {
            figures.set(FIRST_BLOCK, longer);
        }
    }
}

/// What the callers of a rank do.
struct Blocks<'a> {
    port: &'a dyn Endpoint,
    team: &'a mut dyn Team,
    begins: Begin,
}

impl Script for Blocks<'_> {
    type Case = ();
    type Block = Iterations;
    type Told = Tally;

    fn block(&mut self, block: &Iterations) -> Result<Tally> {
        if self.begins == Begin::Together {
            barrier(self.port)?;
        }
        self.team.block(block.size, block.count)
    }
}

/// Measures all sizes with one caller for each process, or for each thread of the unit: `caller` makes the one of a number, or
/// one for a port that carries nothing. An iteration is done so often, and before that so often, where nothing is said. Samples
/// are emitted on rank 0.
pub(crate) fn measure<P: Port + Sync, C: Caller<P> + Caller<NullPort>>(
    port: &P,
    run: &mut Run<'_>,
    effort: (u64, u64),
    caller: &dyn Fn(&Run<'_>, Option<u32>) -> Result<C>,
    emit: &mut dyn FnMut(&mut Run<'_>, Sample) -> Result<()>,
) -> Result<()> {
    let callers = (0..run.callers()).map(|number| caller(run, Some(number)));
    let mut callers: Vec<C> = callers.collect::<Result<_>>()?;
    let mut times = Vec::new();
    if run.leads() {
        times = harness(run, &mut caller(run, None)?, effort.0)?;
    }
    let plan = run.plan();
    let effort = Effort {
        turns: plan.callers.per_core,
        percentiles: None,
        ..Effort::of(plan, effort, effort)
    };
    if run.unit().is_threads() {
        let together = plan.callers.begin == Begin::Together;
        return std::thread::scope(|scope| {
            let mut workers = Workers::start(scope, port, callers, together);
            go(run, &mut workers, &effort, &times, emit)
        });
    }
    let caller = callers.pop().expect("a process has a caller");
    go(run, &mut Alone { port, caller }, &effort, &times, emit)
}

fn go(
    run: &mut Run<'_>,
    team: &mut dyn Team,
    effort: &Effort,
    harness: &[f64],
    emit: &mut dyn FnMut(&mut Run<'_>, Sample) -> Result<()>,
) -> Result<()> {
    let port = run.port;
    let begins = run.plan().callers.begin;
    let mut blocks = Blocks { port, team, begins };
    leader::run(port, &mut blocks, |leader| {
        for (size, &harness) in run.sizes()?.into_iter().zip(harness) {
            let count = effort.prepare(size, |count| {
                let told = leader.block(&Iterations { size, count })?;
                Ok(Tally::of(&told).longest)
            })?;
            leader.watch()?;
            let told = leader.by_turns(std::slice::from_ref(&count), |_, count| Iterations {
                size,
                count,
            })?;
            let load = leader.report()?;
            emit(run, Sample::of(size, &count, &told[0], load, harness))?;
        }
        Ok(())
    })
}

/// The time of an iteration at each size where nothing is carried: the least of several blocks, in nanoseconds.
fn harness(run: &Run<'_>, caller: &mut dyn Caller<NullPort>, count: u64) -> Result<Vec<f64>> {
    let port = NullPort::of(run.port);
    let one = |size| {
        least(5, || {
            let time = caller.block(&port, size, count)?.unwrap_or_default();
            Ok(nanoseconds(time) as f64 / count as f64)
        })
    };
    run.sizes()?.into_iter().map(one).collect()
}
