//! The tests that put partitioned communication into patterns of applications: the ranks of a grid compute and exchange
//! messages, in one thread, in threads with messages of their own, or in threads that share partitioned operations or write into
//! each other's memory.
//!
//! A pattern is a test of the suite that implements [`Pattern`]. It is written over [`exchange::Exchange`], and so once for every
//! middleware.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::BenchArgs;
use crate::args::granularity::Interface;
use crate::args::partitioned::PartitionedPlan;
use crate::args::pattern::{PatternPlan, Sides};
use crate::body::compute::Computation;
use crate::error::{Error, Result};
use crate::noise::Model;
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::port::window::Windows;
use crate::record::{Figures, PatternKeys};
use crate::run::{Run, Test};
use crate::stats::{Seeded, mix};
use crate::suite::TestName;

use self::exchange::{Edges, Exchange, Memories};
use self::grid::Grid;
use self::middleware::Middleware;
use self::motif::Series;
use self::recorded::Recorder;
use self::remote::Flags;
use self::team::Program;

mod arriving;
mod channels;
#[cfg(test)]
pub(crate) mod collected;
pub(crate) mod exchange;
pub(crate) mod grid;
pub(crate) mod measure;
mod messages;
pub(crate) mod middleware;
pub(crate) mod motif;
pub(crate) mod recorded;
pub(crate) mod remote;
pub(crate) mod team;
#[cfg(test)]
mod tests;

impl Series {
    /// Returns what moves its bytes: as it says, or messages of a kind.
    pub(crate) fn middleware(&self, messages: Middleware, flags: Flags) -> Middleware {
        match (&self.policy, self.interface) {
            (Some(policy), _) => Middleware::Partitioned(policy.clone()),
            (None, Interface::Rma) => Middleware::Remote(flags),
            (None, _) => messages,
        }
    }
}

/// A pattern set up for a size and a series on this rank.
pub(crate) struct Prepared<'p> {
    pub program: Box<dyn Program + 'p>,
    pub threads: u32,
    /// What a row says of it beside its mode.
    pub keys: PatternKeys,
    /// Regions of an iteration.
    pub regions: u64,
    /// What an iteration of each rank is credited with, in bytes.
    pub bytes: Vec<f64>,
    /// Parts of an edge.
    pub partitions: u32,
}

/// What a pattern has on its rank.
pub(crate) struct Context<'p, P> {
    pub port: &'p P,
    /// For series with remote access.
    pub windows: Option<&'p dyn Windows>,
    pub seed: u64,
    pub threads: u32,
    pub pattern: &'p PatternPlan,
    pub partitioned: &'p PartitionedPlan,
    pub grid: Grid,
    pub memories: &'p Memories,
    /// How long a thread computes at a time.
    pub time: Duration,
    pub computation: Computation,
    /// Bytes are filled and checked when there is one.
    pub checked: Option<u64>,
    /// Where there is one, calls are written down and not done.
    pub recorder: Option<&'p Recorder>,
}

impl<'p, P: PartitionedPort> Context<'p, P> {
    /// Sets up edges.
    pub(crate) fn exchange(
        &self,
        middleware: &Middleware,
        edges: Edges,
    ) -> Result<Box<dyn Exchange + 'p>> {
        match self.recorder {
            Some(recorder) => recorder.exchange(middleware, &edges),
            None => middleware.open(self.port, self.windows, edges),
        }
    }

    pub(crate) fn work(&self, threads: u32) -> Work<'p> {
        Work {
            time: self.time,
            computation: self.computation,
            model: Model {
                noise: self.partitioned.single().noise,
                pct: self.partitioned.single().noise_pct,
            },
            stream: mix(self.seed ^ mix(u64::from(self.port.rank().as_u32()))),
            threads,
            seed: self.checked,
            recorder: self.recorder,
        }
    }
}

/// What threads do between messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'p> {
    pub time: Duration,
    pub computation: Computation,
    pub model: Model,
    /// Of this rank's noise.
    pub stream: u64,
    pub threads: u32,
    /// Filled and checked when there is one.
    pub seed: Option<u64>,
    /// As that of [`Context`].
    pub recorder: Option<&'p Recorder>,
}

impl Work<'_> {
    /// Computes in a region, as long as its noise says for a thread.
    pub(crate) fn compute(&self, region: u64, thread: u32) {
        if self.time.is_zero() {
            return;
        }
        let mut random = Seeded::new(self.stream ^ mix(region));
        let times = self.model.draw(&mut random, self.time, self.threads);
        let time = times[thread as usize];
        match self.recorder {
            Some(recorder) => recorder.compute(time),
            None => self.computation.run(time),
        }
    }
}

/// What the plan of a pattern's job has of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Own {
    pub pattern: PatternPlan,
    pub partitioned: PartitionedPlan,
}

/// A pattern.
pub(crate) trait Pattern {
    fn new(own: Own) -> Self;

    fn own(&self) -> &Own;

    /// Bytes of all outgoing, and of all incoming, edges of a rank together, for messages of at most `largest` bytes.
    fn room(plan: &PatternPlan, largest: usize) -> usize;

    /// Sets up a size and a series. All ranks do so, in the same order.
    fn open<'p, P: PartitionedPort>(
        context: &Context<'p, P>,
        series: &Series,
        size: usize,
    ) -> Result<Prepared<'p>>;

    /// Adds figures that follow from the others.
    fn figures(figures: &mut Figures) {
        let _ = figures;
    }
}

impl<T: Pattern> Test for T {
    fn of(args: &BenchArgs) -> Self {
        Self::new(args.pattern_plan().expect("a pattern"))
    }

    fn has_rma(&self, test: TestName) -> bool {
        test.motif.is_some_and(|motif| {
            let mut all = (motif.series)(&self.own().pattern, &[]).into_iter();
            all.any(|series| series.interface == Interface::Rma)
        })
    }

    fn check_ranks(&self, _: &Plan, ranks: u32) -> Result<()> {
        check_ranks(&self.own().pattern, ranks)
    }

    fn measure_port<P: PartitionedPort>(&self, port: &P, run: &mut Run<'_>) -> Result<()> {
        measure::measure::<T, P>(self.own(), port, run)
    }
}

/// Refuses a number of ranks that another launcher has decided on and that the grid does not have.
pub(crate) fn check_ranks(pattern: &PatternPlan, ranks: u32) -> Result<()> {
    let grid = Grid::new(&pattern.grid);
    if grid.ranks() == ranks {
        return Ok(());
    }
    let sides = Sides(pattern.grid.clone());
    Err(Error::Usage(format!(
        "a grid of {sides} has {} ranks, and the job has {ranks}",
        grid.ranks()
    )))
}

/// Refuses sizes that do not divide into parts.
pub(crate) fn divides(sizes: &[u64], parts: u32, what: &str) -> Result<()> {
    let fits = |size: &u64| *size > 0 && size.is_multiple_of(u64::from(parts));
    match sizes.iter().find(|size| !fits(size)) {
        None => Ok(()),
        Some(size) => Err(Error::Usage(format!(
            "size {size} does not divide into {parts} {what}: multiples of {parts} do"
        ))),
    }
}
