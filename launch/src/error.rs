//! The errors of this crate.

use std::io;

/// Why a job could not be started, or ended without a result of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job cannot be run as asked for.
    #[error("{0}")]
    Usage(String),
    /// There is no such program.
    #[error("program '{program}' not found")]
    NotFound {
        /// The program as given.
        program: String,
    },
    /// The program exists and cannot be executed.
    #[error("program '{program}' cannot be executed: {source}")]
    NotExecutable {
        /// The program as given.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The environment holds some of the variables that a launcher sets, and not the others, or
    /// a value that cannot be.
    #[error("{0}")]
    Environment(String),
    /// The bootstrap store said no, or broke.
    #[error(transparent)]
    Bootstrap(#[from] tagwire_base::Error),
    /// The job was ended before it had begun.
    #[error("cannot {what}: {why}")]
    Ended {
        /// What was tried.
        what: String,
        /// Who has ended it.
        why: String,
        /// The job's exit status.
        status: i32,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// A failed system call, with what was tried.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// The exit status for this error: 1 for bad usage, 127 and 126 as shells have it
    /// for a program that is not there or cannot be executed, the job's where it was ended, 2 for the rest.
    #[must_use]
    pub const fn exit_status(&self) -> i32 {
        match self {
            Self::Usage(_) => 1,
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Ended { status, .. } => *status,
            Self::Environment(_) | Self::Bootstrap(_) | Self::System { .. } => 2,
        }
    }

    /// A stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Usage(_) => 500,
            Self::NotFound { .. } => 501,
            Self::NotExecutable { .. } => 502,
            Self::Environment(_) => 510,
            Self::Bootstrap(inner) => inner.code(),
            Self::System { .. } => 520,
            Self::Ended { .. } => 521,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
