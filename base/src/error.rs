//! The errors of this crate.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::ids::Rank;

/// Returns what a program is told that needs a feature of the library which its build is without: the feature, and the line
/// for its Cargo.toml.
#[must_use]
pub fn without_feature(feature: &str) -> String {
    format!(
        "made without the feature '{feature}'; in Cargo.toml: tagwire = {{ version = \"{}\", features = [\"{feature}\"] }}",
        env!("CARGO_PKG_VERSION")
    )
}

/// What can go wrong below the transports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bootstrap store said no, or broke.
    #[error("bootstrap: {0}")]
    Bootstrap(String),
    /// The bootstrap store did not reply in time.
    #[error("bootstrap: no value for key '{key}' of rank {rank} within {seconds} s")]
    BootstrapTimeout {
        /// Whose value was asked for.
        rank: Rank,
        /// The key that was asked for.
        key: String,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// Not every rank reached the fence in time.
    #[error("bootstrap: fence not complete within {0:?}")]
    FenceTimeout(Duration),
    /// The bootstrap store did not reply in time.
    #[error("bootstrap: the store '{store}' did not reply within {timeout:?}")]
    SlowStore {
        /// The store.
        store: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// This process was forked from the one that joined the job.
    #[error(
        "the rank belongs to process {owner}, from which this process was forked: only process {owner} may use it"
    )]
    OtherProcess {
        /// The process that joined the job.
        owner: u32,
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

    /// Whether the system lacked resources, or the store was slow: the same call may succeed when it is
    /// made again. Says nothing about any peer.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        match self {
            Self::System { source, .. } => is_shortage(source),
            Self::BootstrapTimeout { .. } | Self::FenceTimeout(_) | Self::SlowStore { .. } => true,
            _ => false,
        }
    }

    /// A stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Bootstrap(_) => 100,
            Self::BootstrapTimeout { .. } => 101,
            Self::FenceTimeout(_) => 102,
            Self::OtherProcess { .. } => 103,
            Self::SlowStore { .. } => 104,
            Self::UnknownSetting { .. } => 110,
            Self::BadSetting { .. } => 111,
            Self::System { .. } => 120,
        }
    }
}

/// Returns whether `error` means that the system lacked descriptors or memory, which may be different a moment later.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        code,
        Some(
            Errno::MFILE
                | Errno::NFILE
                | Errno::NOMEM
                | Errno::NOBUFS
                | Errno::AGAIN
                | Errno::TOOMANYREFS
        )
    )
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortages_are_told_from_other_errors() {
        let system = |errno: Errno| Error::system("open a file", errno);
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS] {
            assert!(system(errno).is_shortage(), "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::CONNRESET, Errno::FBIG] {
            assert!(!system(errno).is_shortage(), "{errno}");
        }
        assert!(Error::FenceTimeout(Duration::ZERO).is_shortage());
        assert!(!Error::Bootstrap("no such rank".to_owned()).is_shortage());
    }
}
