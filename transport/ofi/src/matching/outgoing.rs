//! Sends under way.

use tagwire_transport::data::ReadRegion;
use tagwire_transport::{EndpointId, Token};

use crate::fabric::{OpId, Registered};

/// Bits of a slot in the number of a send: with more open ones a rank is busy, also for the one that its peer waits for.
pub(super) const SLOT_BITS: u32 = 22;

/// A send whose buffer is lent.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// The receiver knows of it.
    Announced {
        to: EndpointId,
        data: ReadRegion,
        token: Token,
    },
    /// The receiver waits for its bytes.
    Granted {
        to: EndpointId,
        data: ReadRegion,
        granted: usize,
        receive: u64,
        token: Token,
        /// The provider has it.
        op: Option<OpId>,
        registered: Option<Registered>,
    },
}

impl Outgoing {
    pub(super) const fn to(&self) -> EndpointId {
        match self {
            Self::Announced { to, .. } | Self::Granted { to, .. } => *to,
        }
    }

    /// Its bytes are under way.
    pub(super) const fn moves(&self) -> bool {
        matches!(self, Self::Granted { .. })
    }

    pub(super) const fn token(&self) -> Token {
        match self {
            Self::Announced { token, .. } | Self::Granted { token, .. } => *token,
        }
    }
}
