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

use tagwire_base::{ContextId, Tag};
use tagwire_transport::{AmHeader, Arrival, Class, Post, SendBuffer};
use zerocopy::IntoBytes;

use super::Ob1;
use super::core::Core;
use super::header::{EnvelopeHeader, Kind, kind_of};
use super::path::{HEADER, LEND_FROM};
use super::peer::{Health, PeerIndex};
use super::rail::LANE;
use crate::types::SendMode;

/// Messages that go at once before others wait.
pub(super) const AT_ONCE: u32 = 2;

impl Ob1 {
    /// Sends a message to a peer to whom messages may wait for others, or lets it wait. Answers
    /// whether it is off the caller's hands; nothing has happened to it where it is not.
    #[cold]
    pub(super) fn send_coalesced(
        &mut self,
        data: &SendBuffer,
        index: PeerIndex,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> bool {
        let Some(bytes) = data.bytes(0..data.len()) else {
            return false;
        };
        let Some(peer) = self.core.peers.get(index) else {
            return false;
        };
        let (length, lengths) = (bytes.len(), peer.lengths);
        if mode == SendMode::Synchronous
            || !peer.is_free()
            || length > lengths.at_once
            || LEND_FROM <= length && length <= lengths.lent
            || !peer.credit.covers(length)
        {
            return false;
        }
        let waits = length <= lengths.coalesce && self.core.burst >= AT_ONCE;
        let is_full = peer.batch.len() + HEADER + length > lengths.batch;
        if (!waits || is_full) && !self.send_batch(index) {
            return false;
        }
        let Some(peer) = self.core.peers.get_mut(index) else {
            return false;
        };
        let header = EnvelopeHeader {
            kind: Kind::Match,
            context,
            tag,
            sequence: peer.next_out,
            length: length as u32,
        };
        let header = header.encode();
        if waits {
            if peer.batch.is_empty() {
                self.core.batched.push(index);
            }
            peer.batch.extend_from_slice(header.0.as_bytes());
            peer.batch.extend_from_slice(bytes);
        } else {
            let endpoint = peer.endpoint;
            if self.rail.send(LANE, endpoint, Class::Data, header, bytes) != Post::Posted {
                return false;
            }
            self.core.burst += 1;
        }
        peer.spend(length);
        true
    }

    /// Sends the messages that wait for `index`, if any; answers whether none wait any more.
    pub(super) fn send_batch(&mut self, index: PeerIndex) -> bool {
        let Some(peer) = self.core.peers.get_mut(index) else {
            return true;
        };
        if peer.batch.is_empty() {
            return true;
        }
        let header = AmHeader([Kind::Batch as u64, 0]);
        let endpoint = peer.endpoint;
        let posted = self
            .rail
            .send(LANE, endpoint, Class::Data, header, &peer.batch);
        if posted == Post::Busy {
            return false;
        }
        // Where the peer is gone the transport will say how.
        peer.batch.clear();
        self.core.batched.retain(|batched| *batched != index);
        true
    }

    /// Whether messages wait for others.
    #[inline]
    pub(crate) const fn has_batches(&self) -> bool {
        !self.core.batched.is_empty()
    }

    /// Sends whatever waits for others; answers how many batches went.
    pub(crate) fn send_batches(&mut self) -> usize {
        self.core.burst = 0;
        let mut sent = 0;
        for place in (0..self.core.batched.len()).rev() {
            sent += usize::from(self.send_batch(self.core.batched[place]));
        }
        sent
    }
}

impl Core {
    /// Takes the messages of a batch as if they had come one by one.
    pub(super) fn take_apart(&mut self, from: PeerIndex, arrival: &Arrival<'_>) {
        let mut rest = arrival.payload;
        while !rest.is_empty() {
            let mut words = [0; 2];
            let whole = rest.read_into(<[u64; 2]>::as_mut_bytes(&mut words));
            let header = AmHeader(words);
            if !whole || kind_of(header) != Some(Kind::Match) {
                return self.broken(from, "a batch of anything but messages");
            }
            let length = words[1] as u32 as usize;
            let end = HEADER + length;
            let message = Arrival {
                from: arrival.from,
                header,
                payload: rest.slice(HEADER..end),
            };
            if message.payload.len() < length {
                return self.broken(from, "a batch that is cut short");
            }
            if !self.deliver_plain(&message) {
                self.deliver_other(&message);
            }
            if self
                .peers
                .get(from)
                .is_none_or(|peer| peer.health == Health::Broken)
            {
                return;
            }
            rest = rest.slice(end..rest.len());
        }
    }
}
