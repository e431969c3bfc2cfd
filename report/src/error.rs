//! Why there is no report.

use std::io;
use std::path::PathBuf;

/// A result without an [`Error`] is a report.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}", file = file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what `tagwire bench -o` writes.
    #[error("{file}: {reason}", file = file.display())]
    Input {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What was asked for does not go with the files.
    #[error("{0}")]
    Usage(String),
    /// A plot could not be drawn.
    #[error("cannot draw {plot}: {reason}")]
    Drawing {
        /// Its id.
        plot: String,
        /// What the library said.
        reason: String,
    },
}
