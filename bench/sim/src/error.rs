//! Why a simulated job cannot run, or a rank of it ends early.

use tagwire_pml::Failure;
use tagwire_sim::Stuck;

/// What goes wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of the layer was refused.
    #[error(transparent)]
    Pml(#[from] tagwire_pml::Error),
    /// A collective did not end well.
    #[error(transparent)]
    Collective(#[from] tagwire_coll::Error),
    /// A message did not end well.
    #[error(transparent)]
    Message(#[from] Failure),
    /// Ranks wait for ever.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// The job would not fit.
    #[error("{ranks} ranks take about {needed} MiB, and {available} MiB are available")]
    Memory {
        /// How many were asked for.
        ranks: u32,
        /// What they take, in MiB.
        needed: u64,
        /// What there is, in MiB.
        available: u64,
    },
    /// A rank has other data than it should have.
    #[error("rank {rank} has other bytes than were sent to it: {what}")]
    Wrong {
        /// The rank.
        rank: u32,
        /// What it has.
        what: &'static str,
    },
    /// There is no such program.
    #[error("there is no program '{0}'")]
    Unknown(&'static str),
    /// A rank has ended early.
    #[error("rank {rank}: {why}")]
    Failed {
        /// The rank.
        rank: u32,
        /// Why.
        why: String,
    },
    /// The program does not run on so many ranks.
    #[error("'{program}' takes {takes} ranks at least")]
    TooFew {
        /// The program.
        program: &'static str,
        /// How many it takes.
        takes: u32,
    },
}

/// With [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
