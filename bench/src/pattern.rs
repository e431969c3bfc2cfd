//! The tests that put partitioned communication into patterns of applications: the ranks of a grid compute and exchange
//! messages, in one thread, in threads with messages of their own, or in threads that share partitioned operations.
//!
//! A pattern is a file here and a line in `tests!`. It is written over [`exchange::Exchange`], and so once for every
//! middleware. `docs/benchmarking.md` has the definitions.

use std::time::Duration;

use crate::args::partitioned::PartitionedPlan;
use crate::args::pattern::{Accounting, Mode, PatternArgs, PatternPlan};
use crate::args::{BenchArgs, ComputeMode, PartitionedArgs, TestName};
use crate::body::compute::Computation;
use crate::error::{Error, Result};
use crate::noise::Model;
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::stats::{Seeded, mix};

use self::exchange::Memories;
use self::grid::Grid;
use self::team::Program;

pub(crate) use self::measure::{Target, measure};

mod channels;
mod exchange;
pub(crate) mod grid;
mod measure;
mod messages;
mod team;
#[cfg(test)]
mod tests;

/// What the command has to know of a pattern.
pub(crate) struct Description {
    pub test: TestName,
    /// The sizes where none are named, as the option takes them.
    pub sizes: &'static str,
    /// Of the grid of ranks.
    pub dimensions: usize,
    /// Threads of a rank where that is not told.
    pub threads: u32,
    /// The options that not every test has.
    pub options: &'static [&'static str],
    /// Refuses what does not fit.
    pub check: fn(&BenchArgs) -> Result<()>,
}

/// One of the series of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Series {
    pub mode: Mode,
    /// Of partitioned operations.
    pub policy: Option<String>,
    pub accounting: Accounting,
}

/// A pattern set up for a size and a series on this rank.
struct Prepared<'p> {
    program: Box<dyn Program + 'p>,
    threads: u32,
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
    plan: &'p Plan,
    pattern: &'p PatternPlan,
    partitioned: &'p PartitionedPlan,
    grid: Grid,
    memories: &'p Memories,
    /// How long a thread computes at a time.
    time: Duration,
    computation: Computation,
    /// Bytes are filled and checked when there is one.
    seed: Option<u64>,
}

impl<P: PartitionedPort> Context<'_, P> {
    fn work(&self, threads: u32) -> Work {
        Work {
            time: self.time,
            computation: self.computation,
            model: Model {
                noise: self.partitioned.noise,
                pct: self.partitioned.noise_pct,
            },
            stream: mix(self.plan.seed ^ mix(u64::from(self.port.rank().as_u32()))),
            threads,
            seed: self.seed,
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
    fn room(plan: &Plan, largest: usize) -> usize;

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
            $(if <$module::$test as Test>::DESCRIPTION.test == context.plan.test {
                return <$module::$test as Test>::open(context, series, size);
            })*
            Err(no_pattern(context.plan.test))
        }

        fn room(plan: &Plan, largest: usize) -> Result<usize> {
            $(if <$module::$test as Test>::DESCRIPTION.test == plan.test {
                return Ok(<$module::$test as Test>::room(plan, largest));
            })*
            Err(no_pattern(plan.test))
        }
    };
}

tests! {
    halo3d::Halo3d,
    sweep3d::Sweep3d,
}

fn no_pattern(test: TestName) -> Error {
    Error::Usage(format!("{test} is no pattern"))
}

/// Returns the description of a test; `None` of one of another kind.
pub(crate) fn of(test: TestName) -> Option<&'static Description> {
    DESCRIPTIONS.iter().find(|known| known.test == test)
}

/// Options that not every test has, beside those of `PatternArgs` and `PartitionedArgs`.
const SOME: [&str; 14] = [
    "ranks",
    "window",
    "threads",
    "posted",
    "unexpected",
    "seconds",
    "side",
    "nonblocking",
    "memory",
    "profile",
    "percentiles",
    "raw",
    "layers",
    "cache-bytes",
];

/// Returns whether a test has an option; `None` where that is no affair of patterns.
pub(crate) fn has_option(test: TestName, name: &str) -> Option<bool> {
    let is_own = PatternArgs::has_option(name);
    match of(test) {
        None => is_own.then_some(false),
        Some(known) => {
            let is_some = is_own || SOME.contains(&name) || PartitionedArgs::has_option(name);
            is_some.then(|| known.options.contains(&name))
        }
    }
}

/// Returns the grid that `args` ask for; `None` of a test of another kind.
pub(crate) fn grid(args: &BenchArgs) -> Option<Grid> {
    let known = of(args.test)?;
    Some(match &args.pattern.grid {
        Some(sides) => Grid::new(&sides.0),
        None => Grid::of_ranks(
            args.ranks.unwrap_or(1 << known.dimensions),
            known.dimensions,
        ),
    })
}

/// Refuses what does not fit a pattern.
///
/// # Errors
/// [`Error::Usage`], with what fits.
pub(crate) fn check(args: &BenchArgs) -> Result<()> {
    let (Some(known), Some(grid)) = (of(args.test), grid(args)) else {
        return Ok(());
    };
    let usage = |reason: String| Err(Error::Usage(reason));
    let sides = grid.sides().len();
    if sides != known.dimensions {
        return usage(format!(
            "{} has a grid of {} sides, not of {sides} (--grid)",
            args.test, known.dimensions
        ));
    }
    let ranks = grid.ranks();
    if args.ranks.is_some_and(|asked| asked != ranks) {
        let asked = args.ranks.unwrap_or(0);
        let fitting =
            crate::args::pattern::Sides(Grid::of_ranks(asked, known.dimensions).sides().to_vec());
        return usage(format!(
            "the grid has {ranks} ranks and -n is {asked}: leave one out, or --grid {fitting}"
        ));
    }
    if ranks < 2 {
        return usage(format!("{} needs at least 2 ranks", args.test));
    }
    (known.check)(args)
}

/// Refuses a number of ranks that another launcher has decided on and that the grid does not have.
pub(crate) fn check_ranks(pattern: &PatternPlan, ranks: u32) -> Result<()> {
    let grid = Grid::new(&pattern.grid);
    if grid.ranks() == ranks {
        return Ok(());
    }
    let sides = crate::args::pattern::Sides(pattern.grid.clone());
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

/// How threads compute where nothing is said: they sleep where they outnumber the cores, which computing would
/// oversubscribe.
fn compute_mode(args: &BenchArgs, cores: usize) -> ComputeMode {
    let threads = args.rank_count() as usize * args.thread_count() as usize;
    args.partitioned.compute.unwrap_or(match threads > cores {
        true => ComputeMode::Sleep,
        false => ComputeMode::Busy,
    })
}

/// Returns the series of a job, where partitioned operations have these policies.
pub(crate) fn series(pattern: &PatternPlan, policies: &[String]) -> Vec<Series> {
    let mut all = Vec::new();
    for &accounting in &pattern.accounting {
        for &mode in &pattern.modes {
            let with = |policy| Series {
                mode,
                policy,
                accounting,
            };
            match mode {
                Mode::Partitioned => all.extend(policies.iter().cloned().map(Some).map(with)),
                Mode::Single | Mode::Multiple => all.push(with(None)),
            }
        }
    }
    all
}

/// Returns how many rows each size of a job of ours has.
pub(crate) fn rows_per_size(args: &BenchArgs) -> usize {
    let Some(grid) = grid(args) else { return 1 };
    series(&args.pattern.plan(&grid), &partitioned(args).policies).len()
}

/// Adds to a plan what a pattern has; nothing to one of another kind.
pub(crate) fn add_to(plan: &mut Plan, args: &BenchArgs) {
    let Some(grid) = grid(args) else { return };
    let threads = (grid.ranks() * args.thread_count()) as usize;
    plan.callers_per_core = threads.div_ceil(cores()) as u32;
    (plan.pattern, plan.partitioned) = (Some(args.pattern.plan(&grid)), Some(partitioned(args)));
}

/// What partitioned operations and threads do in a pattern.
fn partitioned(args: &BenchArgs) -> PartitionedPlan {
    let mut plan = args.partitioned.plan();
    plan.compute = compute_mode(args, cores());
    if args.partitioned.policy.is_none() {
        plan.policies = POLICIES.map(str::to_owned).into();
    }
    plan
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The policies of partitioned operations where none are named.
const POLICIES: [&str; 3] = ["default", "each", "messages"];
