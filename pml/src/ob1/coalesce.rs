//! Short messages that leave together, where each costs a call of the system.
//!
//! ```text
//!    send, send | isend, isend, isend ...    progress, wait, test
//!     at once      at once  \______ batch ______/  one packet
//! ```
//!
//! The first few messages after progress go at once: whoever sends one and computes is not made to
//! wait, nor is a ping-pong. What follows without progress in between, as in a window of sends, is
//! put behind the other and leaves when the batch is full, or with the next call that waits,
//! tests or makes progress. A blocking send leaves before it returns.
//!
//! Messages keep their own envelopes, places in the sequence and credits: the receiver takes a batch
//! apart and treats each as if it had come alone.

use tagwire_transport::{AmHeader, Arrival, ByteTransport, Class, Post};
use zerocopy::IntoBytes;

use super::header::{EnvelopeHeader, Kind};
use super::path::HEADER;
use super::peer::{PeerIndex, Peers};
#[cfg(test)]
use super::protocol::PacketKinds;
use super::protocols::zero_copy;
use crate::peers::LANE;

impl Kind {
    /// Short eager messages, each a header of [`MATCH`](Self::MATCH) with its bytes behind it.
    pub(super) const BATCH: Self = Self::control(26);
}

/// The packets of messages that leave together.
#[cfg(test)]
pub(super) const KINDS: PacketKinds = &[Kind::BATCH];

/// Messages that go at once before others wait.
pub(super) const AT_ONCE: u32 = 2;

/// The messages of a rank that wait for others.
#[derive(Debug, Default)]
pub(super) struct Coalescing {
    /// There are peers to whom messages may wait for others.
    pub enabled: bool,
    /// Those for whom some wait.
    batched: Vec<PeerIndex>,
    /// Messages that went at once since this rank last made progress, to such peers.
    burst: u32,
}

impl Coalescing {
    /// Whether no messages wait.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.batched.is_empty()
    }

    /// Returns for how many peers messages wait.
    pub(super) fn len(&self) -> usize {
        self.batched.len()
    }

    /// Sends a message to a peer to whom messages may wait for others, or lets it wait. `header` lacks the message's place in
    /// the sequence. Returns whether the message is off the caller's hands; nothing has happened to it where it is not.
    #[cold]
    pub(super) fn send(
        &mut self,
        rail: &mut dyn ByteTransport,
        peers: &mut Peers,
        index: PeerIndex,
        header: EnvelopeHeader,
        bytes: &[u8],
    ) -> bool {
        let Some(peer) = peers.get(index) else {
            return false;
        };
        let (length, terms) = (bytes.len(), peer.path.terms);
        if !peer.is_free()
            || length > terms.at_once
            || zero_copy::SHORTEST <= length && length <= terms.zero_copy
            || !peer.credit.covers(length)
        {
            return false;
        }
        let waits = length <= terms.coalesce && self.burst >= AT_ONCE;
        let is_full = peer.batch.len() + HEADER + length > terms.batch;
        if (!waits || is_full) && !self.flush(rail, peers, index) {
            return false;
        }
        let Some(peer) = peers.get_mut(index) else {
            return false;
        };
        let header = EnvelopeHeader {
            sequence: peer.next_out,
            ..header
        };
        let header = header.encode();
        if waits {
            if peer.batch.is_empty() {
                self.batched.push(index);
            }
            peer.batch.extend_from_slice(header.0.as_bytes());
            peer.batch.extend_from_slice(bytes);
        } else {
            if rail.send(LANE, peer.endpoint, Class::Data, header, bytes) != Post::Posted {
                return false;
            }
            self.burst += 1;
        }
        peer.spend(header.0[0], length);
        true
    }

    /// Sends the messages that wait for `index`, if any; returns whether none wait any more.
    pub(super) fn flush(
        &mut self,
        rail: &mut dyn ByteTransport,
        peers: &mut Peers,
        index: PeerIndex,
    ) -> bool {
        let Some(peer) = peers.get_mut(index) else {
            return true;
        };
        if peer.batch.is_empty() {
            return true;
        }
        let header = AmHeader([u64::from(Kind::BATCH.as_byte()), 0]);
        let posted = rail.send(LANE, peer.endpoint, Class::Data, header, &peer.batch);
        if posted == Post::Busy {
            return false;
        }
        // Where the peer is gone the transport will say how.
        peer.batch.clear();
        self.forget(index);
        true
    }

    /// Sends whatever waits for others; returns how many batches went.
    pub(super) fn flush_all(&mut self, rail: &mut dyn ByteTransport, peers: &mut Peers) -> usize {
        self.burst = 0;
        let mut sent = 0;
        for place in (0..self.batched.len()).rev() {
            sent += usize::from(self.flush(rail, peers, self.batched[place]));
        }
        sent
    }

    /// No messages wait for `index` any more.
    pub(super) fn forget(&mut self, index: PeerIndex) {
        self.batched.retain(|batched| *batched != index);
    }
}

/// Returns the messages of a batch, each as if it had come alone; the last is an error where the batch is malformed.
pub(super) fn messages<'a>(
    batch: &Arrival<'a>,
) -> impl Iterator<Item = Result<Arrival<'a>, &'static str>> + use<'a> {
    let from = batch.from;
    let mut rest = batch.payload;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut words = [0; 2];
        let whole = rest.read_into(<[u64; 2]>::as_mut_bytes(&mut words));
        let header = AmHeader(words);
        if !whole || Kind::of(header) != Kind::MATCH {
            rest = rest.slice(0..0);
            return Some(Err("a batch of anything but messages"));
        }
        let length = words[1] as u32 as usize;
        let end = HEADER + length;
        let message = Arrival {
            from,
            header,
            payload: rest.slice(HEADER..end),
        };
        if message.payload.len() < length {
            rest = rest.slice(0..0);
            return Some(Err("a batch that is cut short"));
        }
        rest = rest.slice(end..rest.len());
        Some(Ok(message))
    })
}
