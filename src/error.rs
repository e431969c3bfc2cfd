//! The errors of the safe interface.

use tagwire_pml::Failure;

/// What can go wrong in a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation was refused.
    #[error(transparent)]
    Pml(#[from] tagwire_pml::Error),
    /// The operation did not end well: truncated, or the peer is gone.
    #[error(transparent)]
    Failed(#[from] Failure),
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
}

impl Error {
    /// The truncation, dead peer, ... that this is, if it is one.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed(failure) | Self::Pml(tagwire_pml::Error::Failed(failure)) => {
                Some(*failure)
            }
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
            Self::Base(error) => error.code(),
            Self::Launch(_) => 400,
            Self::NegativeTag(_) => 500,
            Self::Fraction { .. } => 501,
            Self::OtherSession => 502,
            Self::UnderWay => 503,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
