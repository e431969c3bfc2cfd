//! Flow control with its peers: charges what arrives, sends the grants of the [`Budget`], and asks for what senders hold
//! back.

use super::core::Core;
use super::credit::{Budget, Charged};
use super::header::{ControlHeader, Kind};
use super::peer::PeerIndex;
#[cfg(test)]
use super::protocol::PacketKinds;
use super::unexpected::Unexpected;
use crate::slab::Handle;

impl Kind {
    /// To a sender: more envelopes and bytes may come.
    pub(super) const CREDIT: Self = Self::control(19);
}

/// The packets of flow control.
#[cfg(test)]
pub(super) const KINDS: PacketKinds = &[Kind::CREDIT];

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
        match self.lane.peers.get_mut(index) {
            Some(peer) => self.budget.charge(&mut peer.account, index, bytes),
            None => Charged::Overdrawn,
        }
    }

    /// Refills the windows of the starved, after something kept was received.
    pub(super) fn feed_the_starved(&mut self) {
        for place in (0..self.budget.starving().len()).rev() {
            if !self.budget.can_feed(self.lane.peers.len()) {
                return;
            }
            // A refill takes no other than its own peer off the list.
            self.refill(self.budget.starving()[place]);
        }
    }

    /// Grants a peer as much as its window lacks and the budget has.
    #[cold]
    pub(super) fn refill(&mut self, index: PeerIndex) {
        let senders = self.lane.peers.len();
        let refill = self.budget.refill(&mut self.lane.peers, index, senders);
        if let Some(grant) = refill.grant {
            let header = ControlHeader {
                kind: Kind::CREDIT,
                handle: Handle::NONE,
                argument: grant.pack(),
            };
            self.pending.control(index, header, &[]);
            #[cfg(test)]
            if crate::planted::GRANTS_TWICE.get() {
                self.pending.control(index, header, &[]);
            }
        }
        self.look_for_trouble();
        if refill.starves {
            self.pull_for_posted(index);
        }
    }

    /// Sets whether posted receives are looked at twice.
    pub(super) fn look_for_trouble(&mut self) {
        self.in_trouble = !(self.lane.losses.is_empty() && self.budget.starving().is_empty());
    }

    /// Asks `peer`, which may hold envelopes back, for one for each posted receive that would
    /// take it.
    fn pull_for_posted(&mut self, peer: PeerIndex) {
        let Some(rank) = self.lane.peers.get(peer).map(|peer| peer.rank) else {
            return;
        };
        for slot in self.matcher.waiting(|pattern| pattern.source.accepts(rank)) {
            if let Some((receive, _)) = self.requests.at_mut(slot) {
                self.held().pull(peer, receive);
            }
        }
    }

    /// Asks every starved peer for an envelope for `receive`, which was just posted.
    #[cold]
    pub(super) fn pull_from_starved(&mut self, receive: Handle) {
        for place in 0..self.budget.starving().len() {
            let index = self.budget.starving()[place];
            self.held().pull(index, receive);
        }
    }
}
