//! The allowance: how many messages a peer keeps that nobody has received.
//!
//! A send that is complete before its match leaves its bytes with the receiver. It carries a bit
//! by which the receiver counts it once it is received, and informs the sender of many at once.

use tagwire_transport::EndpointId;
use zerocopy::little_endian::{U32, U64};

use super::UcxMatch;
use crate::layout::COUNTED;
use crate::wire::ControlKind;

/// Longer messages end with their match anyway: UCX sends them by rendezvous.
const LONGEST_COUNTED: u64 = 64 * 1024;

/// Messages, and bytes of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Amount {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// What is counted with one peer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    /// Sent, and not known to be received.
    sent: Amount,
    /// Received, and not told yet.
    received: Amount,
}

impl UcxMatch {
    /// The account of `peer`.
    fn account(&mut self, peer: EndpointId) -> &mut Account {
        if self.accounts.len() <= peer.index() {
            self.accounts.resize(peer.index() + 1, Account::default());
        }
        &mut self.accounts[peer.index()]
    }

    /// Whether `peer` may be left with one more message of `len` bytes; if so, it is counted.
    #[inline]
    pub(super) fn count_sent(&mut self, peer: EndpointId, len: u64) -> bool {
        let most = self.allowance;
        let sent = &mut self.account(peer).sent;
        let fits = len <= LONGEST_COUNTED
            && sent.messages < most.messages
            && sent.bytes.saturating_add(len) <= most.bytes;
        if fits {
            sent.messages += 1;
            sent.bytes += len;
        }
        fits
    }

    /// It was not sent after all.
    pub(super) fn uncount_sent(&mut self, peer: EndpointId, len: u64) {
        let sent = &mut self.account(peer).sent;
        sent.messages = sent.messages.saturating_sub(1);
        sent.bytes = sent.bytes.saturating_sub(len);
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
        let most = self.allowance;
        let received = &mut self.account(peer).received;
        received.messages += 1;
        received.bytes = received.bytes.saturating_add(len);
        if received.messages * 2 >= most.messages || received.bytes * 2 >= most.bytes {
            self.tell_received(peer);
        }
    }

    /// Tells `peer` what was received of it.
    #[cold]
    fn tell_received(&mut self, peer: EndpointId) {
        if self.bytes.core.links[peer.index()].endpoint.is_none() {
            return;
        }
        let received = std::mem::take(&mut self.account(peer).received);
        let mut control = self.bytes.core.control(ControlKind::Credit, peer);
        control.a = U32::new(u32::try_from(received.messages).unwrap_or(u32::MAX));
        control.b = U64::new(received.bytes);
        self.bytes.core.send_control(peer, &control, &[]);
    }

    /// Takes note of what peers have received.
    pub(super) fn take_credits(&mut self) {
        let credits = std::mem::take(&mut self.bytes.core.shared.inbox.borrow_mut().credits);
        for (peer, messages, bytes) in credits {
            let sent = &mut self.account(peer).sent;
            sent.messages = sent.messages.saturating_sub(messages.into());
            sent.bytes = sent.bytes.saturating_sub(bytes);
        }
    }
}
