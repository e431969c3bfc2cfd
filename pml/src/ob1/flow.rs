//! Flow control with its peers: charges what arrives, sends the grants of the [`Budget`], and asks for what senders hold
//! back.
//!
//! Each posted receive without a match asks every starved peer for an envelope (`Pull`), so that no receive hangs on
//! the budget.

use super::core::{Chore, Core};
use super::credit::{Budget, Charged};
use super::header::{ControlHeader, Kind, PullBody};
use super::peer::{Health, PeerIndex};
use super::unexpected::Unexpected;
use crate::slab::Handle;
use tagwire_matching::{Cookie, Engine};
use zerocopy::IntoBytes;

/// What an unexpected message costs in the engine, in bytes: its node, and a word in each of four indexes,
/// which have up to twice as many words as there are messages.
const ENGINE_ENTRY: usize = 64 + 4 * 6;

/// What the table of messages and the allocator add to each: a generation, a block's header, rounding.
const ALLOCATION: usize = 32;

/// Returns a budget of `payload` bytes, and of as many envelopes as fit into `headers` bytes.
pub(super) const fn budget(payload: usize, headers: usize) -> Budget {
    Budget::new(
        payload,
        headers,
        size_of::<Unexpected>() + ENGINE_ENTRY + ALLOCATION,
    )
}

impl Core {
    /// Charges a message with `bytes` of eager payload to the account of its sender.
    #[inline]
    pub(super) fn charge(&mut self, index: PeerIndex, bytes: usize) -> Charged {
        match self.peers.get_mut(index) {
            Some(peer) => self.budget.charge(&mut peer.account, index, bytes),
            None => Charged::Overdrawn,
        }
    }

    /// Refills the windows of the starved, after something kept was received.
    pub(super) fn feed_the_starved(&mut self) {
        for place in (0..self.budget.starving().len()).rev() {
            if !self.budget.can_feed(self.peers.len()) {
                return;
            }
            // A refill takes no other than its own peer off the list.
            self.refill(self.budget.starving()[place]);
        }
    }

    /// Grants a peer as much as its window lacks and the budget has.
    #[cold]
    pub(super) fn refill(&mut self, index: PeerIndex) {
        let senders = self.peers.len();
        let refill = self.budget.refill(&mut self.peers, index, senders);
        if let Some(grant) = refill.grant {
            let header = ControlHeader {
                kind: Kind::Credit,
                handle: Handle::NONE,
                argument: grant.pack(),
            };
            self.chores.push_back(Chore::control(index, header, &[]));
        }
        self.look_for_trouble();
        if refill.starves {
            self.pull_for_posted(index);
        }
    }

    /// Sets whether posted receives are looked at twice.
    pub(super) fn look_for_trouble(&mut self) {
        self.in_trouble = !(self.losses.is_empty() && self.budget.starving().is_empty());
    }

    /// Asks `peer`, which may hold envelopes back, for one for each posted receive that would
    /// take it.
    fn pull_for_posted(&mut self, peer: PeerIndex) {
        let Some(rank) = self.peers.get(peer).map(|peer| peer.rank) else {
            return;
        };
        let mut waiting = Vec::new();
        if self.engine.posted_len() > 0 {
            self.engine.for_each_posted(&mut |pattern, Cookie(slot)| {
                if pattern.source.accepts(rank) {
                    waiting.push(slot);
                }
            });
        }
        for slot in waiting {
            if let Some((receive, _)) = self.requests.at_mut(slot) {
                self.pull(peer, receive);
            }
        }
    }

    /// Asks every starved peer for an envelope for `receive`, which was just posted.
    #[cold]
    pub(super) fn pull_from_starved(&mut self, receive: Handle) {
        for place in 0..self.budget.starving().len() {
            self.pull(self.budget.starving()[place], receive);
        }
    }

    pub(super) fn pull(&mut self, index: PeerIndex, receive: Handle) {
        let (Some(peer), Some(request)) = (self.peers.get(index), self.requests.get(receive))
        else {
            return;
        };
        if peer.health != Health::Alive || !request.from.accepts(peer.rank) {
            return;
        }
        let body = PullBody {
            tag: request.tag.as_i32(),
            context: request.context.as_u16(),
            reserved: 0,
        };
        let header = ControlHeader {
            kind: Kind::Pull,
            handle: receive,
            argument: request.order,
        };
        // What is shown to probes would keep the peer from answering.
        self.give_back(index);
        self.chores
            .push_back(Chore::control(index, header, body.as_bytes()));
    }
}
