//! The tests that put partitioned communication into patterns of applications: the ranks of a grid compute and exchange
//! messages, in one thread, in threads with messages of their own, or in threads that share partitioned operations or write into
//! each other's memory.
//!
//! A pattern is a file here and a line in `tests!`. It is written over [`exchange::Exchange`], and so once for every
//! middleware. `docs/benchmarking.md` has the definitions.

use std::time::Duration;

use crate::args::granularity::{Granularity, Interface};
use crate::args::is_of_some_or_ranks;
use crate::args::partitioned::{PartitionedArgs, PartitionedPlan};
use crate::args::pattern::{Accounting, Mode, PatternArgs, PatternPlan, Sides};
use crate::body::compute::Computation;
use crate::error::{Error, Result};
use crate::noise::Model;
use crate::port::partitioned::PartitionedPort;
use crate::port::window::Windows;
use crate::record::PatternKeys;
use crate::stats::{Seeded, mix};

use self::exchange::{Edges, Exchange, Memories};
use self::grid::Grid;
use self::middleware::Middleware;
use self::remote::Flags;
use self::team::Program;

mod arriving;
mod channels;
#[cfg(test)]
pub(crate) mod collected;
mod exchange;
pub(crate) mod grid;
pub(crate) mod measure;
mod messages;
mod middleware;
mod remote;
mod team;
#[cfg(test)]
mod tests;

/// What the command has to know of a pattern.
pub(crate) struct Description {
    /// That of its test.
    pub name: &'static str,
    /// The sizes where none are named, as the option takes them.
    pub sizes: &'static str,
    /// Of the grid of ranks.
    pub dimensions: usize,
    /// Threads of a rank where that is not told.
    pub threads: u32,
    /// The options that not every test has.
    pub options: &'static [&'static str],
    /// How long threads compute where that is not told, and whether caches are cold then.
    pub compute: Option<Duration>,
    /// Its series, where partitioned operations have these policies.
    pub series: fn(&PatternPlan, &[String]) -> Vec<Series>,
    /// Refuses what does not fit.
    pub check: fn(&Request) -> Result<()>,
}

/// What is asked of a pattern.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub threads: u32,
    pub sizes: Vec<u64>,
    pub pattern: PatternPlan,
}

/// One of the series of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Series {
    pub mode: Mode,
    /// Of partitioned operations.
    pub policy: Option<String>,
    pub interface: Interface,
    pub accounting: Accounting,
    /// Of cmb.
    pub granularity: Option<Granularity>,
}

impl Series {
    /// Returns what moves its bytes: as it says, or messages of a kind.
    fn middleware(&self, messages: Middleware, flags: Flags) -> Middleware {
        match (&self.policy, self.interface) {
            (Some(policy), _) => Middleware::Partitioned(policy.clone()),
            (None, Interface::Rma) => Middleware::Remote(flags),
            (None, _) => messages,
        }
    }
}

/// A pattern set up for a size and a series on this rank.
struct Prepared<'p> {
    program: Box<dyn Program + 'p>,
    threads: u32,
    /// What a row says of it beside its mode.
    keys: PatternKeys,
    /// Regions of an iteration.
    regions: u64,
    /// What an iteration of each rank is credited with, in bytes.
    bytes: Vec<f64>,
    /// Parts of an edge.
    partitions: u32,
}

/// What a pattern has on its rank.
struct Context<'p, P> {
    port: &'p P,
    /// For series with remote access.
    windows: Option<&'p dyn Windows>,
    name: &'static str,
    seed: u64,
    threads: u32,
    pattern: &'p PatternPlan,
    partitioned: &'p PartitionedPlan,
    grid: Grid,
    memories: &'p Memories,
    /// How long a thread computes at a time.
    time: Duration,
    computation: Computation,
    /// Bytes are filled and checked when there is one.
    checked: Option<u64>,
}

impl<'p, P: PartitionedPort + Sync> Context<'p, P> {
    /// Sets up edges.
    fn exchange(&self, middleware: &Middleware, edges: Edges) -> Result<Box<dyn Exchange + 'p>> {
        middleware.open(self.port, self.windows, edges)
    }

    fn work(&self, threads: u32) -> Work {
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
        }
    }
}

/// What threads do between messages.
#[derive(Debug, Clone, Copy)]
struct Work {
    time: Duration,
    computation: Computation,
    model: Model,
    /// Of this rank's noise.
    stream: u64,
    threads: u32,
    /// Filled and checked when there is one.
    seed: Option<u64>,
}

impl Work {
    /// Computes in a region, as long as its noise says for a thread.
    fn compute(&self, region: u64, thread: u32) {
        if self.time.is_zero() {
            return;
        }
        let mut random = Seeded::new(self.stream ^ mix(region));
        let times = self.model.draw(&mut random, self.time, self.threads);
        self.computation.run(times[thread as usize]);
    }
}

/// A pattern.
trait Test {
    const DESCRIPTION: Description;

    /// Bytes of all outgoing, and of all incoming, edges of a rank together, for messages of at most `largest` bytes.
    fn room(plan: &PatternPlan, largest: usize) -> usize;

    /// Sets up a size and a series. All ranks do so, in the same order.
    fn open<'p, P: PartitionedPort + Sync>(
        context: &Context<'p, P>,
        series: &Series,
        size: usize,
    ) -> Result<Prepared<'p>>;
}

/// Declares the module of each pattern and enters it into the table.
macro_rules! tests {
    ($($module:ident :: $test:ident,)*) => {
        $(mod $module;)*

        static DESCRIPTIONS: &[Description] = &[$(<$module::$test as Test>::DESCRIPTION),*];

        fn open<'p, P: PartitionedPort + Sync>(
            context: &Context<'p, P>,
            series: &Series,
            size: usize,
        ) -> Result<Prepared<'p>> {
            $(if <$module::$test as Test>::DESCRIPTION.name == context.name {
                return <$module::$test as Test>::open(context, series, size);
            })*
            Err(no_pattern(context.name))
        }

        fn room(name: &str, plan: &PatternPlan, largest: usize) -> Result<usize> {
            $(if <$module::$test as Test>::DESCRIPTION.name == name {
                return Ok(<$module::$test as Test>::room(plan, largest));
            })*
            Err(no_pattern(name))
        }
    };
}

tests! {
    halo3d::Halo3d,
    sweep3d::Sweep3d,
    cmb::Cmb,
}

fn no_pattern(name: &str) -> Error {
    Error::Usage(format!("{name} is no pattern"))
}

/// Returns the description of a test; `None` of one of another kind.
pub(crate) fn of(test: &str) -> Option<&'static Description> {
    DESCRIPTIONS.iter().find(|known| known.name == test)
}

/// Returns whether a test has an option; `None` where that is no affair of patterns.
pub(crate) fn has_option(test: &str, name: &str) -> Option<bool> {
    let is_own = PatternArgs::has_option(name);
    match of(test) {
        None => is_own.then_some(false),
        Some(known) => {
            let is_some = is_own || is_of_some_or_ranks(name) || PartitionedArgs::has_option(name);
            is_some.then(|| known.options.contains(&name))
        }
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
fn divides(sizes: &[u64], parts: u32, what: &str) -> Result<()> {
    let fits = |size: &u64| *size > 0 && size.is_multiple_of(u64::from(parts));
    match sizes.iter().find(|size| !fits(size)) {
        None => Ok(()),
        Some(size) => Err(Error::Usage(format!(
            "size {size} does not divide into {parts} {what}: multiples of {parts} do"
        ))),
    }
}

/// Returns each mode with each accounting.
fn modes(pattern: &PatternPlan, policies: &[String]) -> Vec<Series> {
    let mut all = Vec::new();
    for &accounting in &pattern.accounting {
        for &mode in &pattern.modes {
            let with = |policy, interface| Series {
                mode,
                policy,
                interface,
                accounting,
                granularity: None,
            };
            match mode {
                Mode::Partitioned => {
                    let policies = policies.iter().cloned().map(Some);
                    all.extend(policies.map(|policy| with(policy, Interface::Partitioned)));
                }
                Mode::Rma => all.push(with(None, Interface::Rma)),
                Mode::Single | Mode::Multiple => all.push(with(None, Interface::P2p)),
            }
        }
    }
    all
}

/// Returns each granularity with each interface that has it.
fn granularities(plan: &PatternPlan, policies: &[String]) -> Vec<Series> {
    let mut all = Vec::new();
    for &granularity in &plan.cmb.granularity {
        let mut add = |policy, interface| {
            all.push(Series {
                mode: if granularity.is_early() {
                    Mode::Multiple
                } else {
                    Mode::Single
                },
                policy,
                interface,
                accounting: Accounting::Equal,
                granularity: Some(granularity),
            });
        };
        if !granularity.is_early() || plan.cmb.interface.contains(&Interface::P2p) {
            add(None, Interface::P2p);
        }
        if granularity.is_early() && plan.cmb.interface.contains(&Interface::Rma) {
            add(None, Interface::Rma);
        }
        // Their policy collects partitions of threads.
        let is_each = granularity == Granularity::Each;
        if is_each && plan.cmb.interface.contains(&Interface::Partitioned) {
            let policies = policies.iter().cloned().map(Some);
            policies.for_each(|policy| add(policy, Interface::Partitioned));
        }
    }
    all
}
