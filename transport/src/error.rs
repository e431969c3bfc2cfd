//! The errors of transports.

use tagwire_base::Rank;

/// What can go wrong when a transport opens, connects, or is set up. Once traffic flows,
/// back-pressure is a [`Post`](crate::Post) value and a failed peer a
/// [`PeerEvent`](crate::PeerEvent).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ground below failed: bootstrap, settings, system calls.
    #[error(transparent)]
    Base(#[from] tagwire_base::Error),
    /// A peer's address blob is not one of this transport's.
    #[error("{transport}: rank {peer} published an address that is not understood: {reason}")]
    BadAddress {
        /// The transport.
        transport: &'static str,
        /// Whose address it is.
        peer: Rank,
        /// What is wrong with it.
        reason: String,
    },
    /// A peer cannot be reached.
    #[error("{transport}: cannot reach rank {peer}: {reason}")]
    Unreachable {
        /// The transport.
        transport: &'static str,
        /// The peer.
        peer: Rank,
        /// Why.
        reason: String,
    },
    /// A peer has ended.
    #[error("{transport}: rank {peer} has ended")]
    Gone {
        /// The transport.
        transport: &'static str,
        /// The peer.
        peer: Rank,
    },
    /// A peer did not prove that it belongs to the job, or speaks another version.
    #[error("{transport}: rank {peer} was refused: {reason}")]
    Refused {
        /// The transport.
        transport: &'static str,
        /// The peer, as it calls itself.
        peer: Rank,
        /// Why.
        reason: String,
    },
    /// A peer wrote what no correct peer writes.
    #[error("{transport}: protocol error by rank {peer}: {reason}")]
    Protocol {
        /// The transport.
        transport: &'static str,
        /// The peer.
        peer: Rank,
        /// What was found.
        reason: String,
    },
    /// The transport lacks what was asked for.
    #[error("{transport} does not offer {what}")]
    Unsupported {
        /// The transport.
        transport: &'static str,
        /// What was asked for.
        what: &'static str,
    },
}

impl Error {
    /// Whether the system lacked resources, or the bootstrap was slow: the same call may succeed when it is made
    /// again. Says nothing about the peer.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::Base(error) if error.is_shortage())
    }

    /// Returns the peer that it is about, if it is about one.
    #[must_use]
    pub const fn peer(&self) -> Option<Rank> {
        match self {
            Self::BadAddress { peer, .. }
            | Self::Unreachable { peer, .. }
            | Self::Gone { peer, .. }
            | Self::Refused { peer, .. }
            | Self::Protocol { peer, .. } => Some(*peer),
            Self::Base(_) | Self::Unsupported { .. } => None,
        }
    }

    /// A stable number for this kind of error, for C callers and exit reports.
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::Base(error) => error.code(),
            Self::BadAddress { .. } => 200,
            Self::Unreachable { .. } => 201,
            Self::Refused { .. } => 202,
            Self::Protocol { .. } => 203,
            Self::Unsupported { .. } => 204,
            Self::Gone { .. } => 205,
        }
    }
}

/// This crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
