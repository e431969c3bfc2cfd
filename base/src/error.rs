//! The errors of this crate.

use std::io;

use crate::ids::Rank;

/// What can go wrong below the transports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bootstrap store said no, or broke.
    #[error("bootstrap: {0}")]
    Bootstrap(String),
    /// The bootstrap store gave no answer in time.
    #[error("bootstrap: no value for key '{key}' of rank {rank} within {seconds} s")]
    BootstrapTimeout {
        /// Whose value was asked for.
        rank: Rank,
        /// The key that was asked for.
        key: String,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// A setting does not exist.
    #[error("unknown setting '{name}'{}", hint(.nearest))]
    UnknownSetting {
        /// The name as given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// A setting has a value outside its range or kind.
    #[error("setting '{name}' cannot be '{value}': {expected}")]
    BadSetting {
        /// The setting's name.
        name: String,
        /// The value as given.
        value: String,
        /// What is accepted.
        expected: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

impl Error {
    /// A failed system call, with what was tried.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// A stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Bootstrap(_) => 100,
            Self::BootstrapTimeout { .. } => 101,
            Self::UnknownSetting { .. } => 110,
            Self::BadSetting { .. } => 111,
            Self::System { .. } => 120,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
