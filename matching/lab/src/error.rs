//! The errors of this crate.

use std::io;

use tagwire_base::named::Refused;

/// What the laboratory cannot do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An engine's name or parameter.
    #[error(transparent)]
    Engine(#[from] tagwire_matching::Error),
    /// Options that make no sense together.
    #[error("{0}")]
    Usage(String),
    /// An engine that is to be measured does not pass.
    #[error(
        "{engine} fails as {grade} and is not measured: {why} ('tagwire match check {engine}' shows the calls; --unchecked measures it)"
    )]
    Unsound {
        /// The engine.
        engine: String,
        /// What it promises.
        grade: tagwire_matching::Grade,
        /// What is wrong with an answer.
        why: String,
    },
    /// An answer that no engine gives, or an engine that cannot be made.
    #[error("{0}")]
    Refused(String),
    /// Something that was to be written.
    #[error("cannot write {0}: {1}")]
    Output(String, #[source] io::Error),
    /// Something that was to be read.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    /// A file or folder that is no trace, or a wrong one.
    #[error("{path}: {why}")]
    Trace {
        /// The file.
        path: String,
        /// What is wrong, with the number of the record.
        why: String,
    },
    /// What the ranks of a script cannot do.
    #[error("{0}")]
    Script(String),
    /// Valgrind, or this program under it.
    #[error("cannot count by valgrind: {0}")]
    Valgrind(String),
    /// The counters of the processor.
    #[error(
        "there are no counters of the processor (perf_event_open: {0}); --count lines counts by a model"
    )]
    Counters(#[source] io::Error),
}

impl Error {
    /// Returns the error for what was named, of such a kind, and is not there, or does not take what it was given.
    pub(crate) fn of_name(kind: &str, refused: &Refused) -> Self {
        Self::Usage(match refused {
            Refused::Name { name, .. } => format!("no {kind} is called '{name}': {refused}"),
            _ => refused.to_string(),
        })
    }

    /// Returns the exit status of the command.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::Engine(_) | Self::Usage(_) => 1,
            Self::Output(..)
            | Self::Read(..)
            | Self::Trace { .. }
            | Self::Script(_)
            | Self::Valgrind(_)
            | Self::Counters(_) => 2,
            Self::Unsound { .. } | Self::Refused(_) => 3,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
