//! The errors of the safe interface.

#[cfg(test)]
mod tests;

use std::fmt;

use tagwire_pml::Failure;

use crate::coll;
use crate::plain::{Plain, Status};

/// What can go wrong in a call.
///
/// Both `{}` and `{:?}` print one sentence, so that a program whose `main` returns [`Result`] ends with a line for its
/// user; `{:#?}` prints the variant and its fields.
///
/// ```
/// let error = tagwire::Error::NegativeTag(-3);
/// assert_eq!(format!("{error:?}"), format!("{error}"));
/// assert_eq!(format!("{error:#?}"), "NegativeTag(\n    -3,\n)");
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation was refused.
    #[error(transparent)]
    Pml(#[from] tagwire_pml::Error),
    /// The operation did not end well: the peer is gone. A receive that was cut off is [`Truncated`](Error::Truncated).
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The message was longer than the buffer of the receive. What fits is in it, but for transports with the capability
    /// `all-or-nothing` (see `tagwire info`), which leave it as it was.
    #[error(
        "the message from rank {source_rank} with tag {tag} has {sent} bytes, and the receive had room for {room}: the rest is lost",
        source_rank = .status.source(), tag = .status.tag(), sent = .status.bytes()
    )]
    Truncated {
        /// The message's source, tag and true length.
        status: Status,
        /// Bytes that the receive had room for.
        room: usize,
    },
    /// A collective did not end well.
    #[error(transparent)]
    Collective(coll::Error),
    /// A setting is wrong, or the ground below failed.
    #[error(transparent)]
    Base(#[from] tagwire_base::Error),
    /// The launcher's variables are wrong, or its store is gone.
    #[error(transparent)]
    Launch(#[from] tagwire_launch::Error),
    /// A context of one session was used in a scope of another.
    #[error("the context and the scope belong to different sessions")]
    OtherSession,
    /// The buffer of a persistent operation is lent while the operation is under way.
    #[error("the operation is under way: wait for it before its data is touched")]
    UnderWay,
    /// Tags of messages are not negative.
    #[error("tag {0} is negative; tags go from 0 to {max}", max = i32::MAX)]
    NegativeTag(i32),
    /// The message is no whole number of elements.
    #[error("{bytes} bytes are no whole number of elements of {element} bytes")]
    Fraction {
        /// Length of the message.
        bytes: usize,
        /// Size of an element.
        element: usize,
    },
    /// A block of an exchange was asked for as another type than it was given, or there is none for the rank.
    #[error("there is no block of this type for rank {rank}")]
    BlockType {
        /// Whose block it is.
        rank: u32,
    },
}

impl Error {
    /// The truncation, dead peer, ... that this is, if it is one.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        match self {
            Self::Truncated { status, .. } => status.0.failure,
            Self::Failed(failure) | Self::Pml(tagwire_pml::Error::Failed(failure)) => {
                Some(*failure)
            }
            _ => None,
        }
    }

    /// The status of a receive that was [cut off](Error::Truncated): whose message it was, its tag and its true length.
    #[must_use]
    pub const fn status(&self) -> Option<Status> {
        match self {
            Self::Truncated { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether a wait gave up because its time had passed. What it waited for goes on.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::Pml(tagwire_pml::Error::TimedOut(_)))
    }

    /// A stable number for this kind of error, for C callers.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Pml(error) => error.code(),
            Self::Failed(failure) => failure.code(),
            Self::Truncated { .. } => Failure::Truncated { room: 0 }.code(),
            Self::Collective(error) => error.code(),
            Self::Base(error) => error.code(),
            Self::Launch(_) => 400,
            Self::NegativeTag(_) => 500,
            Self::Fraction { .. } => 501,
            Self::BlockType { .. } => 504,
            Self::OtherSession => 502,
            Self::UnderWay => 503,
        }
    }
}

impl From<coll::Error> for Error {
    fn from(error: coll::Error) -> Self {
        match error {
            coll::Error::Pml(error) => Self::Pml(error),
            coll::Error::Failed(failure) => Self::Failed(failure),
            other => Self::Collective(other),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        match self {
            Self::Pml(error) => f.debug_tuple("Pml").field(error).finish(),
            Self::Failed(failure) => f.debug_tuple("Failed").field(failure).finish(),
            Self::Truncated { status, room } => f
                .debug_struct("Truncated")
                .field("status", status)
                .field("room", room)
                .finish(),
            Self::Collective(error) => f.debug_tuple("Collective").field(error).finish(),
            Self::Base(error) => f.debug_tuple("Base").field(error).finish(),
            Self::Launch(error) => f.debug_tuple("Launch").field(error).finish(),
            Self::OtherSession => f.write_str("OtherSession"),
            Self::UnderWay => f.write_str("UnderWay"),
            Self::NegativeTag(tag) => f.debug_tuple("NegativeTag").field(tag).finish(),
            Self::Fraction { bytes, element } => f
                .debug_struct("Fraction")
                .field("bytes", bytes)
                .field("element", element)
                .finish(),
            Self::BlockType { rank } => f.debug_struct("BlockType").field("rank", rank).finish(),
        }
    }
}

/// How an operation that owns its buffer failed, with the buffer. `?` makes an [`Error`] of it.
pub struct OwnedError<T: Plain> {
    pub(crate) error: Error,
    pub(crate) data: Option<Vec<T>>,
}

impl<T: Plain> OwnedError<T> {
    /// The failure.
    #[must_use]
    pub const fn error(&self) -> &Error {
        &self.error
    }

    /// The failure, and the buffer at its full length. There is none where the call itself was refused: the operation
    /// goes on, and its buffer is freed at its end.
    #[must_use]
    pub fn into_parts(self) -> (Error, Option<Vec<T>>) {
        (self.error, self.data)
    }
}

impl<T: Plain> From<OwnedError<T>> for Error {
    fn from(failed: OwnedError<T>) -> Self {
        failed.error
    }
}

impl<T: Plain> fmt::Display for OwnedError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: Plain> fmt::Debug for OwnedError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<T: Plain> std::error::Error for OwnedError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
