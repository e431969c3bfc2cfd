//! Process sets (MPI-5.0, section 11.3.2).

use tagwire_base::Rank;

use crate::error::{Class, Error, Result};
use crate::process::Process;

/// A process set that this process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessSet {
    /// All processes of the job.
    World,
    /// This one.
    Own,
}

impl ProcessSet {
    /// Those that there are, in the order of their numbers.
    pub(crate) const ALL: [Self; 2] = [Self::World, Self::Own];

    /// Returns the name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::World => "mpi://WORLD",
            Self::Own => "mpi://SELF",
        }
    }

    /// Returns the one with a name, in which capitals make no difference.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|set| set.name().eq_ignore_ascii_case(name))
    }

    /// Returns the one with a number.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    pub(crate) fn numbered(number: i32) -> Result<Self> {
        let place = usize::try_from(number).ok();
        let found = place.and_then(|place| Self::ALL.get(place)).copied();
        found.ok_or_else(|| {
            let text = format!("there is no process set {number}");
            Error::new(Class::Arg, text)
        })
    }

    /// Returns the members, as ranks of the job.
    pub(crate) fn members(self, process: &Process) -> Vec<Rank> {
        match self {
            Self::World => (0..process.messenger.size()).map(Rank::new).collect(),
            Self::Own => vec![process.messenger.rank()],
        }
    }
}
