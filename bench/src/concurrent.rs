//! The tests that compare processes with threads: the suite of Thakur and Gropp, "Test suite for evaluating performance of
//! multithreaded MPI communication" (Parallel Computing 2009).
//!
//! What they have in common: what a [`Comparison`] asks for, and callers whose blocks begin together.

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use crate::args::names::name_of;
use crate::args::{Begin, BenchArgs, ConcurrentArgs, Progress, Style, Tags, usage};
use crate::error::{Error, Result};
use crate::record::Row;
use crate::suite::TestName;
use crate::units::Unit;
use crate::units::comparison::{Comparison, Shape};

pub(crate) mod arrays;
pub(crate) mod blocks;
pub(crate) mod maximum;
pub(crate) mod ping_pong;
pub(crate) mod work;

/// The other rank of a pair of neighbours.
pub(crate) const fn partner(rank: Rank) -> Rank {
    Rank::new(rank.as_u32() ^ 1)
}

/// Whether a rank of a pair sends.
pub(crate) const fn sends(rank: Rank) -> bool {
    rank.as_u32().is_multiple_of(2)
}

/// One of the jobs that a test starts over each transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub unit: Unit,
    pub shape: Shape,
    pub progress: Option<Progress>,
}

/// What communicates at once in a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Callers {
    /// Of a test that compares processes with threads.
    pub unit: Option<Unit>,
    /// Who makes progress while ranks compute.
    pub progress: Option<Progress>,
    /// How many processes or threads share a core.
    pub per_core: u32,
    pub begin: Begin,
}

impl Callers {
    /// Returns those of the job that `args` ask for, or of one of several, on so many cores.
    pub(crate) fn of(args: &BenchArgs, variant: Option<(&Variant, usize)>) -> Self {
        let begin = args.concurrent.start.unwrap_or_default();
        let Some((variant, cores)) = variant else {
            return Self {
                unit: None,
                progress: None,
                per_core: args.threads_per_core(),
                begin,
            };
        };
        Self {
            unit: Some(variant.unit),
            progress: variant.progress,
            per_core: (variant.shape.callers as usize).div_ceil(cores.max(1)) as u32,
            begin,
        }
    }

    /// Whether several threads of a rank communicate.
    pub(crate) fn any_thread(&self) -> bool {
        let is_helped = self.progress.is_some_and(|by| by != Progress::None);
        is_helped || self.unit.is_some_and(Unit::is_threads)
    }

    /// Adds to a row what they are.
    pub(crate) fn label(&self, threads: u32, row: &mut Row) {
        row.series.unit = self.unit.map(|unit| unit.to_string());
        row.series.progress = self.progress.map(name_of);
        row.series.oversubscribed = self.per_core > 1;
        row.series.threads = self.unit.map(|_| threads);
    }
}

/// Returns what units `args` compare; `None` of a test of another kind.
pub(crate) fn asked(args: &BenchArgs) -> Option<&'static Comparison> {
    let is_other_form = args.test.has_option("style")
        && args.concurrent.style.unwrap_or_default() != Style::Blocking;
    let units = args.test.description().units.as_ref();
    units.filter(|_| !is_other_form)
}

/// Refuses what makes no sense together.
///
/// # Errors
/// [`Error::Usage`], with the reason.
pub(crate) fn check(args: &BenchArgs, has_mpi: bool) -> Result<()> {
    let Some(test) = asked(args) else {
        return match args.given.first_but::<ConcurrentArgs>("style") {
            Some(name) if args.test.has_option("style") => usage(format!(
                "--{name} needs --style blocking; windows have -n, --threads and --window"
            )),
            _ => Ok(()),
        };
    };
    if let (Some(_), false) = (args.ranks, args.has_option("ranks")) {
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
        return usage("--tags shared mixes the messages of threads: -c cannot check them");
    }
    if has_mpi && args.concurrent.progress.contains(&Progress::LibraryThread) {
        let reason =
            "--progress progress-thread is a setting of ours; for 'mpi': none,blocked-thread";
        return usage(reason);
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
    let progress: Vec<Option<Progress>> = match args.has_option("progress") {
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
    let units = test.parse::<TestName>().ok().and_then(|test| test.units);
    let paired = units.and_then(|units| units.paired);
    let (Some(paired), Some(added)) = (paired, rows.last()) else {
        return;
    };
    let place = |row: &Row| {
        let by = (
            row.series.transport.clone(),
            row.series.library.clone(),
            row.series.pml.clone(),
        );
        (row.size, row.sampling.launch, by)
    };
    let added = place(added);
    let is_base = |row: &&Row| {
        row.series.unit.as_deref() == Some("processes:1")
            || row.series.progress.as_deref() == Some("none")
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
