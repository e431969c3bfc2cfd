//! The allowance: how many messages a peer keeps that nobody has received.
//!
//! A send that is complete before its match leaves its bytes with the receiver. It carries a bit
//! by which the receiver counts it once it is received, and informs the sender of many at once.

use tagwire_transport::EndpointId;
use tagwire_transport::flow::Count;
use zerocopy::little_endian::{U32, U64};

use super::UcxMatch;
use crate::layout::COUNTED;
use crate::wire::ControlKind;

/// Longer messages end with their match anyway: UCX sends them by rendezvous.
const LONGEST_COUNTED: u64 = 64 * 1024;

impl UcxMatch {
    /// Whether `peer` may be left with one more message of `len` bytes; if so, it is counted.
    #[inline]
    pub(super) fn count_sent(&mut self, peer: EndpointId, len: u64) -> bool {
        let fits = len <= LONGEST_COUNTED && self.flows.allows(peer, len);
        if fits {
            self.flows.note_sent(peer, len);
        }
        fits
    }

    /// A message under `tag` was received.
    #[inline]
    pub(super) fn count_received(&mut self, tag: u64, len: u64) {
        if tag & COUNTED == 0 {
            return;
        }
        let source = crate::layout::source_of(tag);
        let Some(peer) = self.peer(source) else {
            return;
        };
        if self.flows.note_received(peer, len) {
            self.tell_received(peer);
        }
    }

    /// Tells `peer` what was received of it.
    #[cold]
    fn tell_received(&mut self, peer: EndpointId) {
        if self.bytes.core.links[peer.index()].endpoint.is_none() {
            return;
        }
        let (_, received) = self.flows.tell(peer);
        let mut control = self.bytes.core.control(ControlKind::Credit, peer);
        control.a = U32::new(u32::try_from(received.messages).unwrap_or(u32::MAX));
        control.b = U64::new(received.bytes);
        self.bytes.core.send_control(peer, &control, &[]);
    }

    /// Takes note of what peers have received.
    pub(super) fn take_credits(&mut self) {
        let credits = std::mem::take(&mut self.bytes.core.shared.inbox.borrow_mut().credits);
        for (peer, messages, bytes) in credits {
            let messages = messages.into();
            let more = Count { messages, bytes };
            self.flows.note_more_matched(peer, more);
        }
    }
}
