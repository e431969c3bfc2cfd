//! What ends a benchmark early, and the exit statuses of the commands.

use std::io;
use std::path::PathBuf;

/// How a command ended, as its exit status says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// All went well.
    Good,
    /// The command was asked for something that makes no sense.
    Usage,
    /// The run failed.
    Failed,
    /// A message arrived with other bytes than were sent.
    Invalid,
    /// A threshold or a baseline was violated.
    Violated,
    /// What was measured is not to be trusted: whether a threshold was violated cannot be told.
    Untold,
    /// This signal ended the command.
    Signal(u8),
}

impl ExitStatus {
    /// The number for the shell.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Usage => 1,
            Self::Failed => 2,
            Self::Invalid => 3,
            Self::Violated => 4,
            Self::Untold => 6,
            Self::Signal(number) => 128 + number,
        }
    }

    /// The status with this number; any number that is not one of ours is a failed run.
    #[must_use]
    pub const fn from_code(code: i32) -> Self {
        match code {
            0 => Self::Good,
            1 => Self::Usage,
            3 => Self::Invalid,
            4 => Self::Violated,
            _ => Self::Failed,
        }
    }
}

impl From<ExitStatus> for std::process::ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

/// Where the bytes of a message differ from what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "rank {rank} received wrong bytes from rank {from}: message {iteration} of {size} bytes \
     differs at byte {offset}, expected {expected:#04x}, found {found:#04x}"
)]
pub struct Mismatch {
    /// The rank that looked.
    pub rank: u32,
    /// The rank that sent.
    pub from: u32,
    /// Which message of the pair, counted from 0.
    pub iteration: u64,
    /// The message's length in bytes.
    pub size: usize,
    /// The first byte that differs.
    pub offset: usize,
    /// What was sent.
    pub expected: u8,
    /// What was there.
    pub found: u8,
}

/// Why a benchmark or a comparison ended without a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file that was given is not what it should be.
    #[error("{file}: {reason}", file = file.display())]
    Input {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The results could not be written.
    #[error("cannot write {what}: {source}")]
    Output {
        /// Where to.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A library could not be loaded.
    #[error("cannot load {file}: {reason}", file = file.display())]
    Library {
        /// The library.
        file: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// A library lacks a symbol.
    #[error("{file} lacks the symbol {symbol}", file = file.display())]
    Symbol {
        /// The library.
        file: PathBuf,
        /// The symbol.
        symbol: String,
    },
    /// No library or launcher was found.
    #[error("{0}")]
    NotFound(String),
    /// A call into an MPI library failed.
    #[error("{call} failed: {message}")]
    Mpi {
        /// The function.
        call: &'static str,
        /// The library's own words.
        message: String,
    },
    /// There is not enough memory for the message buffers.
    #[error("the message buffers need {needed} bytes and {available} bytes of memory are free")]
    Memory {
        /// What the run needs, in bytes.
        needed: u64,
        /// What the machine has left, in bytes.
        available: u64,
    },
    /// The transport has no arena, or not so much of it.
    #[error(
        "the message buffers need {needed} bytes of the arena in a row, which it has not: see 'shm-arena'"
    )]
    Arena {
        /// What was asked for, in bytes.
        needed: u64,
    },
    /// A message arrived with other bytes than were sent.
    #[error("validation: {0}")]
    Validation(#[from] Mismatch),
    /// A peer ended, or sent what no correct peer sends.
    #[error("{0}")]
    Peer(String),
    /// A rank of the job failed.
    #[error("rank {rank}: {message}")]
    Rank {
        /// Which rank.
        rank: u32,
        /// What it said.
        message: String,
        /// The exit status that it asks for.
        status: i32,
    },
    /// The other one of two machines failed.
    #[error("{text}")]
    Elsewhere {
        /// In words.
        text: String,
        /// The exit status that it asks for.
        status: i32,
    },
    /// Some of several transports cannot be used.
    #[error(
        "{count} of {all} transports cannot be used; --keep-going measures the others: {list}",
        count = list.len(), list = enumerate(list)
    )]
    Unusable {
        /// How many there are.
        all: usize,
        /// The names of those, and why.
        list: Vec<(String, String)>,
    },
    /// With `--keep-going`, jobs have failed.
    #[error("{count} of {all} jobs failed; their rows have an error")]
    Incomplete {
        /// How many.
        count: usize,
        /// Of how many.
        all: usize,
        /// The exit status of the worst.
        status: ExitStatus,
    },
    /// A signal ended the run.
    #[error("interrupted by signal {signal} ({name})", name = signal_name(*signal))]
    Interrupted {
        /// Its number.
        signal: i32,
    },
    /// A job ended without its results.
    #[error("{0}")]
    Job(String),
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The ground below failed.
    #[error(transparent)]
    Base(#[from] tagwire_base::Error),
    /// The transport could not be set up.
    #[error(transparent)]
    Transport(#[from] tagwire_transport::Error),
    /// A message could not be sent or received.
    #[error(transparent)]
    Pml(#[from] tagwire_pml::Error),
    /// A collective failed.
    #[error(transparent)]
    Collective(#[from] tagwire_coll::Error),
    /// The ranks could not be started.
    #[error(transparent)]
    Launch(#[from] tagwire_launch::Error),
}

impl Error {
    /// A failed system call, with what was tried.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// The exit status for this error.
    #[must_use]
    pub const fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Usage(_)
            | Self::Input { .. }
            | Self::Base(
                tagwire_base::Error::UnknownSetting { .. } | tagwire_base::Error::BadSetting { .. },
            )
            | Self::Launch(tagwire_launch::Error::Usage(_)) => ExitStatus::Usage,
            Self::Validation(_) => ExitStatus::Invalid,
            Self::Incomplete { status, .. } => *status,
            Self::Interrupted { signal } => ExitStatus::Signal(*signal as u8),
            Self::Rank { status, .. } | Self::Elsewhere { status, .. } => {
                match ExitStatus::from_code(*status) {
                    ExitStatus::Good => ExitStatus::Failed,
                    status => status,
                }
            }
            _ => ExitStatus::Failed,
        }
    }

    /// Whether the reader of the standard output has gone away.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether a job failed by itself: the next one may do better.
    pub(crate) const fn is_of_a_job(&self) -> bool {
        matches!(
            self,
            Self::Rank { .. }
                | Self::Elsewhere { .. }
                | Self::Job(_)
                | Self::Launch(_)
                | Self::Base(_)
        )
    }

    /// A stable number for this kind of error, for exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Usage(_) => 600,
            Self::Input { .. } => 601,
            Self::Output { .. } => 602,
            Self::Library { .. } => 603,
            Self::Symbol { .. } => 604,
            Self::NotFound(_) => 605,
            Self::Mpi { .. } => 606,
            Self::Memory { .. } => 607,
            Self::Validation(_) => 608,
            Self::Peer(_) => 609,
            Self::Rank { .. } => 610,
            Self::Job(_) => 611,
            Self::System { .. } => 612,
            Self::Arena { .. } => 613,
            Self::Unusable { .. } => 614,
            Self::Incomplete { .. } => 615,
            Self::Interrupted { .. } => 616,
            Self::Elsewhere { .. } => 617,
            Self::Base(error) => error.code(),
            Self::Transport(error) => error.code(),
            Self::Pml(error) => error.code(),
            Self::Collective(error) => error.code(),
            Self::Launch(error) => error.code(),
        }
    }
}

/// A signal's name.
pub(crate) fn signal_name(signal: i32) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("no known name")
}

fn enumerate(list: &[(String, String)]) -> String {
    let parts = list.iter().map(|(name, why)| format!("{name}: {why}"));
    parts.collect::<Vec<_>>().join("; ")
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
