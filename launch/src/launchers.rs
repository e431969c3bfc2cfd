//! The launchers that are known: what each sets for a rank, and how the rank joins its job. A new one is a file, and a
//! line in [`KNOWN`].

mod foreign;
mod meeting;
mod pmi;
mod pmix;
mod slurm;
mod tagwire;
mod torchrun;

use std::fmt;

use tagwire_base::Bootstrap;

use crate::environment::Environment;
use crate::error::Result;

pub(crate) use foreign::{is_of_foreign_launcher, one_of_several};
pub use meeting::SECRET as RENDEZVOUS_SECRET;
pub(crate) use meeting::{At, Meeting};
pub(crate) use pmi::{OfPmi, inherited_socket, outer_socket};
pub use pmix::LIBRARY as LIBPMIX;
pub(crate) use pmix::OfPmix;
pub use tagwire::{APPLICATION, LOCAL_RANK, LOCAL_SIZE, RANK, SECRET, SIZE, STORE, VARIABLES};

/// Who may have started this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launcher(&'static str);

impl Launcher {
    /// Nobody that is known: a job of one.
    pub const SINGLE: Self = Self("single process");

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A launcher that is known.
pub(crate) trait Known: fmt::Debug + Sync {
    /// Its name, for people.
    fn launcher(&self) -> Launcher;

    /// The value of `TAGWIRE_LAUNCHER` that asks for it.
    fn choice(&self) -> &'static str;

    /// Returns whether this process is a rank of a job of its.
    ///
    /// # Errors
    /// When some of its variables are missing, or make no sense.
    fn find(&self, environment: &Environment<'_>) -> Result<Found>;
}

/// What the environment says of one launcher.
#[derive(Debug)]
pub(crate) enum Found {
    /// This process is a rank of its.
    Rank(Box<dyn Place>),
    /// It is not, for this reason.
    No(String),
}

impl Found {
    /// Returns what to say where none of the variables is set.
    pub(crate) fn unset(names: &[&str]) -> Self {
        Self::No(format!("no variable of {} is set", names.join(", ")))
    }
}

/// A rank's place in a job that it has not joined yet.
pub(crate) trait Place: Join + fmt::Debug + Send {
    /// Returns which rank of which job this is, for people.
    fn describe(&self) -> String;
}

/// How a rank joins its job, which is with what speaks to its launcher: a build without the feature `launchers` finds the
/// launchers all the same, and joins jobs of `tagwire run` alone.
pub(crate) trait Join {
    /// Joins the job.
    ///
    /// # Errors
    /// When the launcher, or the rank that leads the others together, cannot be reached or says no.
    fn join(&self) -> Result<Box<dyn Bootstrap>>;
}

/// All of them, in the order in which they are asked: those that say most of a job come first.
pub(crate) const KNOWN: &[&dyn Known] = &[
    &tagwire::Tagwire,
    &pmix::Pmix,
    &pmi::Pmi1,
    &torchrun::Torchrun,
    &slurm::Step,
];
