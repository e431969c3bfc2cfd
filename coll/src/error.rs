//! What can go wrong in a collective.

use tagwire_base::Rank;
use tagwire_pml::Failure;

/// What can go wrong in a collective.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The layer below refused.
    #[error(transparent)]
    Pml(tagwire_pml::Error),
    /// A member is gone, or a message could not be received.
    #[error("a collective ended early: {0}")]
    Failed(#[from] Failure),
    /// Members called different operations, or with different counts.
    #[error(
        "rank {source_rank} sent {sent} bytes to a collective where {expected} were expected: not all ranks called it alike (--coll-check on finds whose call differs)"
    )]
    Length {
        /// Whose message it was.
        source_rank: Rank,
        /// Bytes that came.
        sent: usize,
        /// Bytes that were to come.
        expected: usize,
    },
    /// Members called different operations. Found where the setting `coll-check` is on.
    #[error("this rank calls {own}, and rank {member} of the group calls {theirs}")]
    Different {
        /// What this rank calls.
        own: String,
        /// Who calls something else.
        member: usize,
        /// What that is.
        theirs: String,
    },
    /// A member of the group takes part in nothing any more: an operation of it failed, or it has freed the group.
    #[error("rank {member} of the group has left it, after a failure or to free it")]
    Gone {
        /// Its number in the group.
        member: usize,
    },
    /// The operation is not defined for the type.
    #[error("{0}")]
    Operation(String),
    /// An argument is wrong on this rank alone.
    #[error("{0}")]
    Argument(String),
    /// An earlier operation of the team failed.
    #[error(
        "the group is broken since an earlier collective failed: Team::subset makes one of the ranks that are left"
    )]
    Broken,
    /// A persistent operation was started again before the end of its round was taken.
    #[error(
        "the persistent collective is active: its round has to be waited for before it is started again"
    )]
    Active,
    /// The group has as many persistent operations as there can be.
    #[error(
        "the group has {0} persistent collectives that not all ranks have freed, which is the most: free some, or make them of a duplicate of the group"
    )]
    Persistent(usize),
}

impl Error {
    /// Returns a stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Pml(error) => error.code(),
            Self::Failed(_) => 720,
            Self::Length { .. } => 721,
            Self::Operation(_) => 722,
            Self::Argument(_) => 723,
            Self::Broken => 724,
            Self::Different { .. } => 725,
            Self::Active => 726,
            Self::Persistent(_) => 727,
            Self::Gone { .. } => 728,
        }
    }
}

/// The result of a collective.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<tagwire_pml::Error> for Error {
    fn from(error: tagwire_pml::Error) -> Self {
        match error {
            tagwire_pml::Error::Failed(failure) => Self::Failed(failure),
            other => Self::Pml(other),
        }
    }
}
