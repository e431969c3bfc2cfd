//! Receives, looks and claims under way.

use tagwire_transport::data::WriteRegion;
use tagwire_transport::{EndpointId, MatchEnvelope, Token};

use crate::fabric::{OpId, Pattern, Place, Registered};

/// A receive or a look under way, or a claimed message.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The provider matches it.
    Posted {
        token: Token,
        target: WriteRegion,
        pattern: Pattern,
        /// The provider has it.
        op: Option<OpId>,
        registered: Option<Registered>,
        /// The layer above wants it back.
        unwanted: bool,
    },
    /// It has matched, and waits for bytes.
    Fetching {
        token: Token,
        target: WriteRegion,
        from: EndpointId,
        envelope: MatchEnvelope,
        /// The provider has it.
        op: Option<OpId>,
        registered: Option<Registered>,
    },
    /// A look.
    Looking {
        token: Token,
        pattern: Pattern,
        claim: bool,
    },
    /// What a look has claimed is taken out. Where the provider asks for the bytes of an unmatched message, that waits for the
    /// sender, and for no other look: so a message is told at once, an announcement when it is out.
    Taking {
        envelope: MatchEnvelope,
        from: EndpointId,
        place: Place,
        length: u64,
        op: OpId,
        /// The look, of an announcement.
        untold: Option<Token>,
        /// The receive that waits for the message.
        wanted: Option<(WriteRegion, Token)>,
    },
    /// What a look has seen has lost its sender, and is taken out before another look.
    Clearing {
        token: Token,
        pattern: Pattern,
        claim: bool,
    },
    /// A step of the sweep after a peer that is gone.
    Sweeping,
    /// A message of which the layer above has the name.
    Claimed {
        envelope: MatchEnvelope,
        from: EndpointId,
        content: Content,
    },
}

impl Incoming {
    /// Its bytes are under way.
    pub(super) const fn moves(&self) -> bool {
        matches!(self, Self::Fetching { .. })
    }
}

/// What is here of a claimed message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    /// All bytes, in room for so many.
    Kept(Place, u64),
    /// The number to ask for.
    Announced(u32),
    /// Nothing: its sender is gone.
    Lost,
}
