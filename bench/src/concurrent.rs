//! The tests that compare processes with threads: the suite of Thakur and Gropp, "Test suite for evaluating performance of
//! multithreaded MPI communication" (Parallel Computing 2009).
//!
//! A test is a file here and a line in `tests!`: its description, from which the command learns options, sizes and ranks,
//! and what its ranks do. `docs/benchmarking.md` has the definitions.

use crate::args::{
    BenchArgs, ConcurrentArgs, PartitionedArgs, Progress, Style, Tags, TestName,
    is_of_some_or_ranks,
};
use crate::error::{Error, Result};
use crate::port::Port;
use crate::record::{Quantity, Row};
use crate::units::{Unit, UnitKind};

pub(crate) use self::run::Run;

mod arrays;
mod blocks;
mod maximum;
mod ping_pong;
mod run;
mod work;

/// What the command has to know of a test.
pub(crate) struct Description {
    pub test: TestName,
    /// What it is about.
    pub quantity: Quantity,
    /// The sizes where none are named, as the option takes them.
    pub sizes: &'static str,
    /// Sizes are multiples of it.
    pub granule: u64,
    /// The units where none are named, as the option takes them.
    pub units: &'static str,
    /// How many processes or threads a unit has whose number is not told.
    pub count: u32,
    /// How many messages an iteration has where that is not told, in a test with that option.
    pub window: u32,
    /// The options that not every test has.
    pub options: &'static [&'static str],
    /// Whether units are sessions of the same processes, over our own transports.
    pub sessions: bool,
    /// Where the ranks of a unit are, with the number of `-n`; else what fits.
    pub shape: fn(Unit, Option<u32>) -> Result<Shape, &'static str>,
    /// A figure that follows from a row and from the row of the first unit, or progress, of the same launch.
    pub paired: Option<fn(&mut Row, &Row)>,
}

impl Description {
    /// Whether the test has an option that not every test has.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.options.contains(&name)
    }
}

/// Where the ranks of a job are, and how many processes and threads communicate or compute in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The node of each rank: on two cores, those of a node share one.
    pub nodes: Vec<u32>,
    /// Processes or threads of all ranks together.
    pub callers: u32,
}

impl Shape {
    /// Pairs of neighbouring ranks, each with a rank on both nodes.
    fn pairs(unit: Unit) -> Self {
        let ranks = match unit.kind {
            UnitKind::Processes => 2 * unit.count,
            UnitKind::Threads => 2,
        };
        Self {
            nodes: (0..ranks).map(|rank| rank % 2).collect(),
            callers: 2 * unit.count,
        }
    }

    /// As many ranks as `-n` says, or `own`, each on a node of its own with `each` callers.
    fn of_nodes(nodes: u32, each: u32) -> Self {
        Self {
            nodes: (0..nodes).collect(),
            callers: nodes * each,
        }
    }
}

/// One of the jobs that a test starts over each transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub unit: Unit,
    pub shape: Shape,
    pub progress: Option<Progress>,
}

/// What a test does on its ranks.
trait Test {
    const DESCRIPTION: Description;

    /// Measures all sizes and emits their rows on rank 0. `single` is a session of the same process at level single,
    /// where the test needs one beside its own.
    fn measure<P: Port + Sync>(run: &mut Run<'_, P>, single: Option<&P>) -> Result<()>;
}

/// Declares the module of each test and enters it into the table.
macro_rules! tests {
    ($($module:ident :: $test:ident,)*) => {
        $(mod $module;)*

        static DESCRIPTIONS: &[Description] = &[$(<$module::$test as Test>::DESCRIPTION),*];

        /// Measures on a rank of a job.
        pub(crate) fn measure<P: Port + Sync>(run: &mut Run<'_, P>, single: Option<&P>) -> Result<()> {
            $(if <$module::$test as Test>::DESCRIPTION.test == run.plan().test {
                return <$module::$test as Test>::measure(run, single);
            })*
            Err(Error::Usage(format!("{} has no units", run.plan().test)))
        }
    };
}

tests! {
    thread_cost::ThreadCost,
    concurrent_bandwidth::ConcurrentBandwidth,
    concurrent_latency::ConcurrentLatency,
    message_rate::MessageRate,
    short_long::ShortLong,
    overlap_neighbours::OverlapNeighbours,
    concurrent_allreduce::ConcurrentAllreduce,
    allreduce_compute::AllreduceCompute,
}

/// Returns the description of a test; `None` of one of another kind. Of `message-rate`, it is that of the blocking style.
pub(crate) fn of(test: TestName) -> Option<&'static Description> {
    DESCRIPTIONS.iter().find(|known| known.test == test)
}

/// Returns the quantity of a test by its name; `None` of one of another kind.
pub(crate) fn quantity(test: &str) -> Option<Quantity> {
    let mut known = DESCRIPTIONS.iter();
    Some(known.find(|known| known.test.as_str() == test)?.quantity)
}

/// Returns the description of what `args` ask for; `None` of a test of another kind.
pub(crate) fn asked(args: &BenchArgs) -> Option<&'static Description> {
    let is_other_style = args.test == TestName::MessageRate
        && args.concurrent.style.unwrap_or_default() != Style::Blocking;
    of(args.test).filter(|_| !is_other_style)
}

/// Returns the description that says whether a test has an option; `None` where that is no affair of this suite.
pub(crate) fn decides(test: TestName, option: &str) -> Option<&'static Description> {
    let is_own = ConcurrentArgs::has_option(option);
    let is_some = is_own || is_of_some_or_ranks(option) || PartitionedArgs::has_option(option);
    match test {
        // Its other style has options of its own.
        TestName::MessageRate => of(test).filter(|_| is_own),
        _ => match of(test) {
            None if is_own => Some(&NOTHING),
            known => known.filter(|_| is_some),
        },
    }
}

/// Whether an option has a meaning for what `args` ask for.
pub(crate) fn has_option(args: &BenchArgs, name: &str) -> bool {
    match asked(args) {
        Some(test) if ConcurrentArgs::has_option(name) || is_of_some_or_ranks(name) => {
            test.has_option(name)
        }
        _ => args.test.has_option(name),
    }
}

/// Refuses what makes no sense together.
///
/// # Errors
/// [`Error::Usage`], with the reason.
pub(crate) fn check(args: &BenchArgs, has_mpi: bool) -> Result<()> {
    let usage = |reason: String| Err(Error::Usage(reason));
    let Some(test) = asked(args) else {
        let given = args.concurrent.given().into_iter();
        let mut given = given.filter(|(name, given)| *given && *name != "style");
        return match given.next() {
            Some((name, _)) if args.test == TestName::MessageRate => usage(format!(
                "--{name} needs --style blocking; windows have -n, --threads and --window"
            )),
            _ => Ok(()),
        };
    };
    if let (Some(_), false) = (args.ranks, test.has_option("ranks")) {
        return usage(format!(
            "{} has no -n: its ranks follow from --units",
            args.test
        ));
    }
    let sizes = args.size_list();
    let odd = sizes
        .as_slice()
        .iter()
        .find(|size| !size.is_multiple_of(test.granule));
    if let Some(odd) = odd {
        return usage(format!(
            "{} takes 32-bit integers: size {odd} is no multiple of {}",
            args.test, test.granule
        ));
    }
    if args.validate && args.concurrent.tags == Some(Tags::Shared) {
        return usage(
            "--tags shared mixes the messages of threads: -c cannot check them".to_owned(),
        );
    }
    if has_mpi && args.concurrent.progress.contains(&Progress::LibraryThread) {
        let reason =
            "--progress progress-thread is a setting of ours; for 'mpi': none,blocked-thread";
        return usage(reason.to_owned());
    }
    let variants = variants(args)?;
    if test.sessions && variants.len() != 2 {
        return usage(format!(
            "{} compares {}: both are needed",
            args.test, test.units
        ));
    }
    Ok(())
}

/// What a test has none of.
static NOTHING: Description = Description {
    test: TestName::Latency,
    quantity: Quantity::LATENCY,
    sizes: "",
    granule: 1,
    units: "",
    count: 1,
    window: 0,
    options: &[],
    sessions: false,
    shape: |_, _| Err("it has no units"),
    paired: None,
};

/// Returns the jobs that `args` ask for over each transport, in their order; none of a test of another kind.
///
/// # Errors
/// [`Error::Usage`] where a unit does not fit the test, with what fits.
pub(crate) fn variants(args: &BenchArgs) -> Result<Vec<Variant>> {
    let Some(test) = asked(args) else {
        return Ok(Vec::new());
    };
    let own = || test.units.parse().expect("a test's own units");
    let units = args.concurrent.units.clone().unwrap_or_else(own);
    let progress: Vec<Option<Progress>> = match test.has_option("progress") {
        false => vec![None],
        true if args.concurrent.progress.is_empty() => {
            vec![Some(Progress::None), Some(Progress::BlockedThread)]
        }
        true => args.concurrent.progress.iter().copied().map(Some).collect(),
    };
    let mut all = Vec::new();
    for unit in units.resolve(test.count) {
        let shape = (test.shape)(unit, args.ranks);
        let shape = shape.map_err(|fits| {
            Error::Usage(format!("{} does not run on {unit}: {fits}", args.test))
        })?;
        all.extend(progress.iter().map(|&progress| Variant {
            unit,
            shape: shape.clone(),
            progress,
        }));
    }
    Ok(all)
}

/// Whether units are pairs of neighbouring ranks in what `args` ask for.
pub(crate) fn pairs(args: &BenchArgs) -> bool {
    let of_pairs = Shape::pairs(Unit::processes(3));
    asked(args).is_some_and(|test| (test.shape)(Unit::processes(3), None) == Ok(of_pairs))
}

/// Adds what follows from rows of one launch together, such as what a level costs over the other.
pub(crate) fn pair(test: &str, rows: &mut [Row]) {
    let mut known = DESCRIPTIONS.iter();
    let paired = known.find_map(|known| known.paired.filter(|_| known.test.as_str() == test));
    let (Some(paired), Some(added)) = (paired, rows.last()) else {
        return;
    };
    let place = |row: &Row| {
        let by = (row.transport.clone(), row.library.clone(), row.pml.clone());
        (row.size, row.launch, by)
    };
    let added = place(added);
    let is_base = |row: &&Row| {
        row.unit.as_deref() == Some("processes:1") || row.progress.as_deref() == Some("none")
    };
    let mut beside = rows
        .iter()
        .filter(|row| place(row) == added && row.error.is_none());
    let Some(base) = beside.find(is_base).cloned() else {
        return;
    };
    for row in rows.iter_mut() {
        if place(row) == added && row.error.is_none() && *row != base {
            paired(row, &base);
        }
    }
}
