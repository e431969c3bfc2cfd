//! The errors of point-to-point calls.

use std::time::Duration;

use tagwire_base::{Rank, Tag};
use tagwire_transport::Refusal;

/// What a call can be refused with. How an accepted operation ended is in its
/// [`Status`](crate::Status).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ground below failed: bootstrap, settings, system calls.
    #[error(transparent)]
    Base(#[from] tagwire_base::Error),
    /// The transport could not be set up.
    #[error(transparent)]
    Transport(#[from] tagwire_transport::Error),
    /// The matching engine could not be set up.
    #[error(transparent)]
    Matching(#[from] tagwire_matching::Error),
    /// No such rank.
    #[error("rank {rank} is not in this job{}", job(*.rank, *.size))]
    NoSuchRank {
        /// The rank as given.
        rank: Rank,
        /// The job's size.
        size: u32,
    },
    /// The request or message is not there (any more).
    #[error("the request is stale: its end has been taken already")]
    StaleRequest,
    /// The call does not fit the request: starting one that is not persistent or that is active,
    /// freeing one that is active, cancelling a send.
    #[error("the request cannot be {0}")]
    WrongRequest(&'static str),
    /// A buffered send has no room left.
    #[error(
        "a buffered send of {wanted} bytes does not fit: {used} of {limit} bytes are in use (setting 'buffer-limit')"
    )]
    BufferFull {
        /// Length of the message.
        wanted: usize,
        /// Bytes that wait to be sent.
        used: usize,
        /// The budget.
        limit: usize,
    },
    /// The matching engine holds as many receives as it may; what bounds them.
    #[error("no room for another posted receive ({0})")]
    TooManyReceives(&'static str),
    /// All contexts are in use.
    #[error("no context is free")]
    NoContext,
    /// The context is not there.
    #[error("context {0} does not exist")]
    NoSuchContext(u16),
    /// The tag has no place in the transport's match bits.
    #[error("{tag} is too wide: over {transport} the largest is {limit}")]
    TagTooWide {
        /// The tag as given.
        tag: Tag,
        /// Whose limit it is.
        transport: &'static str,
        /// The largest tag of a user.
        limit: i32,
    },
    /// The message is longer than the transport takes.
    #[error("a message of {length} bytes is too long: {transport} takes {limit}")]
    MessageTooLong {
        /// Its length in bytes.
        length: u64,
        /// Whose limit it is.
        transport: &'static str,
        /// The longest message, in bytes.
        limit: u64,
    },
    /// The transport's match bits leave no room for context and tag.
    #[error(
        "{transport} has {available} match bits in a row to be used: too few for context and tag"
    )]
    TooFewMatchBits {
        /// The transport.
        transport: &'static str,
        /// How many there are.
        available: u32,
    },
    /// The transport does not match, and the layer leaves matching to it.
    #[error(
        "the layer '{layer}' needs a transport that matches, and '{transport}' does not (settings 'pml' and 'transport')"
    )]
    NoMatching {
        /// The layer.
        layer: &'static str,
        /// The transport.
        transport: String,
    },
    /// An engine is chosen, and the layer, cm, leaves matching to its transport.
    #[error(
        "the engine '{engine}' runs under ob1 alone: under cm the transport matches, here {matcher} (settings 'engine' and 'pml')"
    )]
    NoEngine {
        /// The engine.
        engine: String,
        /// What matches.
        matcher: &'static str,
    },
    /// A trace is asked for, and what matches gives none.
    #[error("'{matcher}' {why} (settings 'record', 'engine' and 'pml')")]
    Unrecorded {
        /// What matches.
        matcher: String,
        /// Why there is no trace of it.
        why: &'static str,
    },
    /// The file of a trace could not be made.
    #[error("the trace {} could not be made: {error} (setting 'record')", .path.display())]
    Record {
        /// The file.
        path: std::path::PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A rank was opened with another layer or transport.
    #[error(
        "rank {rank} speaks '{theirs}', this one '{own}': the settings 'pml' and 'transport' have to be the same in all ranks"
    )]
    OtherStack {
        /// The rank.
        rank: Rank,
        /// Its layer and transport.
        theirs: String,
        /// Those of this rank.
        own: String,
    },
    /// A thread that helps the rank could not be started: for the setting 'progress-thread', or a descriptor to wait on.
    #[error("a thread of the rank could not be started: {0}")]
    NoThread(std::io::Error),
    /// There is no descriptor left to wait on.
    #[error("no descriptor to wait on: {0}")]
    NoDescriptor(std::io::Error),
    /// The transport does not do what was asked.
    #[error("the transport refused: {0:?}")]
    Refused(Refusal),
    /// Waiting took longer than asked for; the operation goes on.
    #[error("not complete within {0:?}")]
    TimedOut(Duration),
    /// A blocking call's operation did not end well.
    #[error(transparent)]
    Failed(#[from] crate::types::Failure),
    /// Another thread than the one that opened the rank called, at a level that forbids it.
    #[error(
        "called from another thread than the one that opened the rank, or from inside a callback; ask for the thread level 'multiple'"
    )]
    WrongThread,
    /// A second thread called, and the kernel refuses what would let it in safely
    /// (`membarrier(2)` and `sched_setaffinity(2)`): a filter of system calls was set up after the
    /// rank was opened. Passes once the thread that opened the rank has called again.
    #[error(
        "the kernel refuses membarrier and sched_setaffinity, so that a second thread can only come in after the thread that opened the rank has called again"
    )]
    NoBarrier,
    /// A buffer cannot have so many partitions.
    #[error(
        "a buffer of {bytes} bytes cannot have {count} partitions: they are equal, and from 1 to {max}",
        max = crate::types::MAX_PARTITIONS
    )]
    BadPartitions {
        /// The partitions asked for.
        count: u32,
        /// Bytes of the whole.
        bytes: usize,
    },
    /// The call does not fit the state of a partition.
    #[error("partition {partition} {what}")]
    BadPartition {
        /// Its number.
        partition: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The call does not fit the state of a partitioned operation.
    #[error("the partitioned operation {0}")]
    BadRound(&'static str),
    /// The memory cannot be a region, or is none, of remote memory access.
    #[error("a region of memory for peers {0}")]
    BadRegion(&'static str),
    /// An access does not lie in the region, or not at a word's place.
    #[error(
        "an access of {len} bytes at {offset} does not fit the region of {length} bytes of rank {rank}"
    )]
    OutsideRegion {
        /// Whose region it is.
        rank: Rank,
        /// Where the access begins, in bytes from the start of the region.
        offset: u64,
        /// How many bytes it has.
        len: u64,
        /// How many the region has.
        length: u64,
    },
    /// A peer has withdrawn the region.
    #[error("rank {0} has no such region of memory any more")]
    NoSuchRegion(Rank),
    /// The two ends of a partitioned channel differ in size.
    #[error("a partitioned send of {sent} bytes has matched a receive of {received} bytes")]
    Mismatch {
        /// Bytes that the sender has.
        sent: u64,
        /// Bytes that the receiver has.
        received: u64,
    },
    /// Not every rank of the job opened in time.
    #[error(
        "not every rank of the job has opened within {0:?} of this one (setting 'open-timeout')"
    )]
    OpenTimeout(Duration),
    /// The rank was closed, or is closing.
    #[error("the rank is closed")]
    Closed,
    /// Closing took longer than its deadline.
    #[error("not everything was done within {deadline:?} of closing: {open}")]
    CloseDeadline {
        /// The deadline.
        deadline: Duration,
        /// What is still open, by name.
        open: String,
    },
}

impl Error {
    /// Whether the system lacked resources, or the job's bootstrap was slow: the same call may succeed when it is
    /// made again. Says nothing about any peer.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        match self {
            Self::Base(error) => error.is_shortage(),
            Self::Transport(error) => error.is_shortage(),
            _ => false,
        }
    }

    /// A stable number for this kind of error, for C callers.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Base(error) => error.code(),
            Self::Transport(error) => error.code(),
            Self::Matching(_) => 250,
            Self::NoSuchRank { .. } => 310,
            Self::StaleRequest => 311,
            Self::WrongRequest(_) => 312,
            Self::BufferFull { .. } => 313,
            Self::TooManyReceives(_) => 314,
            Self::NoContext => 315,
            Self::NoSuchContext(_) => 316,
            Self::TimedOut(_) => 317,
            Self::Failed(failure) => failure.code(),
            Self::WrongThread => 318,
            Self::Closed => 319,
            Self::CloseDeadline { .. } => 320,
            Self::NoBarrier => 321,
            Self::TagTooWide { .. } => 330,
            Self::MessageTooLong { .. } => 331,
            Self::TooFewMatchBits { .. } => 332,
            Self::NoMatching { .. } => 333,
            Self::Refused(_) => 334,
            Self::NoThread(_) => 335,
            Self::BadPartitions { .. } => 336,
            Self::BadPartition { .. } => 337,
            Self::BadRound(_) => 338,
            Self::Mismatch { .. } => 339,
            Self::OtherStack { .. } => 341,
            Self::OpenTimeout(_) => 342,
            Self::NoDescriptor(_) => 343,
            Self::BadRegion(_) => 344,
            Self::OutsideRegion { .. } => 345,
            Self::NoSuchRegion(_) => 346,
            Self::NoEngine { .. } => 347,
            Self::Unrecorded { .. } => 348,
            Self::Record { .. } => 349,
        }
    }
}

/// The job that lacks `rank`, in words. A job of one is most often a program that was started without a launcher.
fn job(rank: Rank, size: u32) -> String {
    match size {
        1 => format!(
            ", which has one rank; start the program with 'tagwire run -n {} -- PROGRAM'",
            u64::from(rank.as_u32()) + 1
        ),
        _ => format!(" of {size} ranks, 0 to {}", size - 1),
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
