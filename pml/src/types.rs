//! Requests, statuses and modes: the vocabulary of point-to-point calls.

use tagwire_base::{ContextId, Rank, Tag};

use crate::slab::Handle;

/// Most partitions on one side of a partitioned operation.
pub const MAX_PARTITIONS: u32 = 1 << 15;

/// How a send relates to its receive (MPI-5.0, section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendMode {
    /// Completes when the buffer is the caller's again; whether it was received is not said.
    Standard,
    /// Completes once a receive has matched.
    Synchronous,
    /// Copied at once into the layer's own memory, within the budget `buffer-limit`.
    Buffered,
    /// The caller knows that the receive is posted.
    Ready,
}

/// Names an operation under way. Goes stale when the operation's end has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(pub(crate) Handle);

impl RequestId {
    /// A send that was complete when its call returned. Needs no memory, and can be waited for.
    pub const COMPLETE: Self = Self(Handle::NONE);
}

/// Names a message that a matched probe has taken out of matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId(pub(crate) Handle);

/// Why an operation did not end well. It concerns that operation alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The message was longer than the receive had room for; what fitted was received. The [`Status`] that carries this
    /// has the message's source, tag and true length.
    #[error("the message was longer than the receive buffer")]
    Truncated {
        /// How many bytes the receive had room for; `u32::MAX` also for all that are more.
        room: u32,
    },
    /// The peer failed.
    #[error("rank {0} failed")]
    PeerFailed(Rank),
    /// The peer has left the job in good order, so that the operation cannot happen any more.
    #[error("rank {0} has left the job")]
    PeerLeft(Rank),
    /// The peer sent what no correct peer sends.
    #[error("protocol error by rank {0}")]
    Protocol(Rank),
    /// This rank cannot reach the peer, whose process may live: what was in its way is in the log.
    #[error("rank {0} cannot be reached (the log has the reason)")]
    Unreachable(Rank),
    /// This rank closed before the operation was done.
    #[error("closed before the operation was done")]
    Closed,
}

impl Failure {
    /// Returns that of a receive that had room for so many bytes.
    #[cold]
    #[must_use]
    pub fn truncated(room: usize) -> Self {
        Self::Truncated {
            room: u32::try_from(room).unwrap_or(u32::MAX),
        }
    }

    /// A stable number for this kind of failure, for C callers.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Truncated { .. } => 300,
            Self::PeerFailed(_) => 301,
            Self::PeerLeft(_) => 302,
            Self::Protocol(_) => 303,
            Self::Closed => 304,
            Self::Unreachable(_) => 305,
        }
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Where the message came from; for a send, where it went.
    pub source: Rank,
    /// The message's tag.
    pub tag: Tag,
    /// The message's true length in bytes, also when it was truncated.
    pub length: usize,
    /// The receive was taken back before a message matched.
    pub cancelled: bool,
    /// What went wrong, if anything.
    pub failure: Option<Failure>,
}

impl Status {
    /// The status of a send that was complete when its call returned, and of an inactive
    /// persistent request (MPI-5.0, section 3.7.3: the empty status).
    pub const EMPTY: Self = Self {
        source: Rank::new(0),
        tag: Tag::internal(0),
        length: 0,
        cancelled: false,
        failure: None,
    };

    /// The status itself when all went well, else what went wrong.
    ///
    /// # Errors
    /// The [`Failure`] that the status carries.
    pub const fn ok(self) -> Result<Self, Failure> {
        match self.failure {
            None => Ok(self),
            Some(failure) => Err(failure),
        }
    }
}

/// A context by the ids that two ranks have assigned to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextPair {
    /// This rank's: for what is received here.
    pub own: ContextId,
    /// The peer's: for what is sent there.
    pub peer: ContextId,
}

/// Both ranks have the same id.
impl From<ContextId> for ContextPair {
    fn from(id: ContextId) -> Self {
        Self { own: id, peer: id }
    }
}

/// What a layer's matching has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagLimits {
    /// The largest tag that a user may give.
    pub largest_tag: i32,
    /// How many contexts there can be.
    pub contexts: usize,
    /// How many receives can be posted at once; one more is refused
    /// ([`Error::TooManyReceives`](crate::Error::TooManyReceives)). `usize::MAX` where nothing bounds them.
    pub receives: usize,
}

impl TagLimits {
    /// Every [`Tag`] and every [`ContextId`], and any number of receives.
    pub const ALL: Self = Self {
        largest_tag: Tag::USER_MAX,
        contexts: ContextId::COUNT,
        receives: usize::MAX,
    };
}

/// Messages by the way they took. Counted only off the shortest way, on which nothing is counted:
/// the short ones among the sent are all sends but the long ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Sent with the envelope first: the bytes moved after the match. Where the transport matches,
    /// the messages longer than it sends with their envelope; not the short ones that it kept back
    /// or that waited for their match.
    pub sent_long: u64,
    /// Received whole, or begun, before the receive was posted.
    pub unexpected_short: u64,
    /// Announced before the receive was posted: only the envelope was kept, and the bytes were
    /// fetched after the match.
    pub unexpected_long: u64,
    /// Receives that were shown to their sender, which had copied its message into them before they matched. 0 where the transport
    /// matches.
    pub filled: u64,
}

/// What came of a wish to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelOutcome {
    /// The receive will not take a message; its request completes as cancelled.
    Cancelled,
    /// A message had matched already; the request completes as if never cancelled.
    AlreadyMatched,
}
