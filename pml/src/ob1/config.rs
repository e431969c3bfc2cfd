//! The settings of ob1.

use tagwire_matching::Engines;
use tagwire_transport::{Capabilities, Limits, Preference};

use super::path::{FULL, HEADER, Terms};
use crate::Recording;
use crate::contact::OpenTimeout;

/// The name of the layer.
pub(super) const LAYER: &str = "ob1";

/// Most bytes of one get or put: several are under way, so that one is served while the next is asked.
const PIECE: usize = 1 << 20;

/// Returns the longest piece of one get or put, in bytes; 0 where the transport has neither.
pub(super) fn piece(capabilities: Capabilities, limits: &Limits) -> usize {
    if !capabilities.intersects(Capabilities::GET | Capabilities::PUT) {
        return 0;
    }
    usize::try_from(limits.max_remote_access).map_or(PIECE, |most| most.min(PIECE))
}

/// How ob1 works. Sizes in bytes.
#[derive(Debug, Clone)]
pub struct Ob1Options {
    /// The matching engine's name.
    pub engine: String,
    /// The engines that have names.
    pub engines: Engines,
    /// Entries that the engine may hold, posted and unexpected each.
    pub match_capacity: u32,
    /// Where what the engine is given is recorded; `None`: nowhere.
    pub record: Option<Recording>,
    /// Most bytes of payload in one packet; a longer eager message takes several, so that its
    /// receiver copies out while its sender copies in. What the transport
    /// [prefers](tagwire_transport::Preference) where it is not said.
    pub packet: Option<usize>,
    /// The longest message that is sent before it is matched; the same.
    pub eager_limit: Option<usize>,
    /// The longest message that may wait for others to the same rank, see `coalesce.rs`: 0 where
    /// none may; [`COALESCE`](Self::COALESCE) over transports that prefer it where it is not said.
    pub coalesce: Option<usize>,
    /// The rendezvous protocol that long messages take where the transport has it: one of
    /// [`RENDEZVOUS`](Self::RENDEZVOUS).
    pub rendezvous: String,
    /// Receives past `eager_limit` that name source and tag are shown to their sender, where the transport can fill them.
    pub exposes: bool,
    /// Budget for the payload of unexpected messages, over all peers.
    pub unexpected_payload: usize,
    /// Budget for the envelopes of unexpected messages, over all peers.
    pub unexpected_headers: usize,
    /// Budget for buffered sends that wait.
    pub buffer_limit: usize,
    /// How long a rank that opens waits for the others.
    pub open_timeout: OpenTimeout,
    /// The number of the first message between two ranks, the same at all ranks of a job. They wrap at 2^32.
    pub first_sequence: u32,
}

impl Ob1Options {
    /// The choices of a rendezvous protocol, and `auto`: the first of them that the transport has.
    pub const RENDEZVOUS: &[&str] = &["auto", "offer", "get", "put", "push"];

    /// The longest message that waits for others over transports that prefer it.
    pub const COALESCE: usize = 1 << 10;

    /// Returns the terms with a peer that its transport, with these capabilities and limits, has this preference for: the
    /// user's, where he chose.
    pub(super) fn terms(
        &self,
        preference: Preference,
        capabilities: Capabilities,
        limits: &Limits,
    ) -> Terms {
        // Who names a protocol gets it.
        let is_named = ["get", "put"].contains(&&*self.rendezvous);
        let capabilities = match preference.remote_access || is_named {
            true => capabilities,
            false => capabilities - (Capabilities::GET | Capabilities::PUT),
        };
        let max_send = limits.max_send;
        let packet = self.packet.unwrap_or(preference.packet).min(max_send);
        let eager = self.eager_limit.unwrap_or(preference.eager);
        let at_once = packet.min(eager);
        let preferred = if preference.coalesce {
            Self::COALESCE
        } else {
            0
        };
        let batch = FULL.min(max_send);
        let most = at_once.min(batch.saturating_sub(HEADER));
        Terms {
            packet,
            eager,
            at_once,
            ahead: max_send,
            inline: limits.max_inline.min(at_once),
            zero_copy: limits.max_zero_copy.min(eager),
            coalesce: self.coalesce.unwrap_or(preferred).min(most),
            batch,
            piece: piece(capabilities, limits),
            capabilities,
        }
    }
}

impl Default for Ob1Options {
    fn default() -> Self {
        Self {
            engine: "bins".to_owned(),
            engines: Engines::default(),
            match_capacity: 1 << 26,
            record: None,
            packet: None,
            eager_limit: None,
            coalesce: None,
            rendezvous: "auto".to_owned(),
            exposes: true,
            unexpected_payload: 64 << 20,
            unexpected_headers: 16 << 20,
            buffer_limit: 64 << 20,
            open_timeout: OpenTimeout::Auto,
            first_sequence: 0,
        }
    }
}
