//! The errors of this crate.

use tagwire_base::named::Refused;

/// What can go wrong when an engine is set up. Nothing fails later: a full queue is a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No engine has this name.
    #[error("unknown matching engine '{name}'; did you mean '{nearest}'?")]
    UnknownEngine {
        /// The name as given.
        name: String,
        /// The nearest name that exists.
        nearest: &'static str,
    },
    /// The engine does not take these parameters.
    #[error("matching engine '{engine}': {why}")]
    BadEngine {
        /// The name and the parameters as given.
        engine: String,
        /// What is wrong with them.
        why: Box<Refused>,
    },
    /// The library has no engine, or its engine does not take these parameters.
    #[error("matching engine '{engine}': {why}")]
    Library {
        /// The path and the parameters as given.
        engine: String,
        /// What is wrong with them.
        why: String,
    },
}

impl Error {
    /// A stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::UnknownEngine { .. } => 200,
            Self::BadEngine { .. } => 201,
            Self::Library { .. } => 202,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
