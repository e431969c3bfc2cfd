//! Flow control: what peers may send unasked, and the budgets behind it.
//!
//! A sender holds two credits per receiver: envelopes, and bytes of eager payload. Every envelope
//! costs one; eager payload costs its length. Without byte credit a message goes as an envelope
//! alone (rendezvous). Without envelope credit the sender keeps it, in order.
//!
//! The receiver's side: a budget for all peers together, of which each grant takes. What arrives
//! and finds its receive gives its share back; what has to be kept gives it back when it is
//! received. So the sum of all that peers may still send and all that is kept never passes
//! the budget (plus [`Window::INITIAL`] for each active peer, which senders have from the start).
//!
//! A peer whose window cannot be refilled is *starved*: it may be holding envelopes back. Then
//! each posted receive without a match asks it for one (`Pull`), so that no receive hangs on the
//! budget.

use super::core::{Chore, Core};
use super::header::{ControlHeader, Kind, PullBody};
use super::peer::{Health, PeerIndex, Window};
use super::unexpected::Unexpected;
use crate::slab::Handle;
use tagwire_matching::{Cookie, Engine};
use zerocopy::IntoBytes;

/// A peer's window is refilled to this, as far as the budget allows.
const FULL: Window = Window {
    envelopes: 2048,
    bytes: 2 << 20,
};

/// What an unexpected message costs in the engine, in bytes: its node, and a word in each of four indexes,
/// which have up to twice as many words as there are messages.
const ENGINE_ENTRY: usize = 64 + 4 * 6;

/// What the table of messages and the allocator add to each: a generation, a block's header, rounding.
const ALLOCATION: usize = 32;

/// Where the envelopes' part starts in the argument of a `Credit`.
const ENVELOPE_SHIFT: u32 = 40;

/// The receiver's budget: what is neither granted nor kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub envelopes: i64,
    pub bytes: i64,
    pub total: Window,
}

impl Budget {
    /// A budget of `payload` bytes, and as many envelopes as fit into `headers` bytes.
    pub(super) fn new(payload: usize, headers: usize) -> Self {
        let per_envelope = size_of::<Unexpected>() + ENGINE_ENTRY + ALLOCATION;
        let total = Window {
            envelopes: (headers / per_envelope) as i64,
            bytes: payload as i64,
        };
        Self {
            envelopes: total.envelopes,
            bytes: total.bytes,
            total,
        }
    }
}

/// Packs a grant into a control packet's argument.
const fn pack(grant: Window) -> u64 {
    ((grant.envelopes as u64) << ENVELOPE_SHIFT) | grant.bytes as u64
}

/// What a `Credit` grants.
pub(super) const fn unpack(argument: u64) -> Window {
    Window {
        envelopes: (argument >> ENVELOPE_SHIFT) as i64,
        bytes: (argument & ((1 << ENVELOPE_SHIFT) - 1)) as i64,
    }
}

impl Core {
    /// What a full window is now: a fair part of the budget when many peers are active.
    fn full_window(&self) -> Window {
        let share = 2 * self.peers.len().max(1) as i64;
        Window {
            envelopes: FULL
                .envelopes
                .min(self.budget.total.envelopes / share)
                .max(1),
            bytes: FULL.bytes.min(self.budget.total.bytes / share).max(1),
        }
    }

    /// Takes an envelope and `bytes` of payload from what `peer` may send. Answers whether the
    /// window should be refilled.
    #[inline]
    pub(super) fn charge(&mut self, index: PeerIndex, bytes: usize) -> bool {
        let Some(peer) = self.peers.get_mut(index) else {
            return false;
        };
        if !peer.unsettled {
            peer.unsettled = true;
            self.unsettled.push(index);
        }
        peer.granted.envelopes -= 1;
        peer.granted.bytes -= bytes as i64;
        if peer.health != Health::Alive {
            // Its window is not refilled; its last words have to fit into what it had.
            return peer.granted.envelopes < 0 || peer.granted.bytes < 0;
        }
        peer.granted.envelopes < self.refill_below.envelopes
            || peer.granted.bytes < self.refill_below.bytes
    }

    /// Whether `peer` has sent more than it was granted.
    pub(super) fn overran(&self, peer: PeerIndex) -> bool {
        self.peers
            .get(peer)
            .is_some_and(|peer| peer.granted.envelopes < 0 || peer.granted.bytes < 0)
    }

    /// Takes from the budget what a message costs that has to be kept.
    #[inline]
    pub(super) fn store(&mut self, bytes: usize) {
        self.budget.envelopes -= 1;
        self.budget.bytes -= bytes as i64;
    }

    /// Gives back to the budget what a kept message took, once it is received.
    #[inline]
    pub(super) fn refund(&mut self, bytes: usize) {
        self.budget.envelopes += 1;
        self.budget.bytes += bytes as i64;
    }

    /// Tells the budget what peers have used of their windows. Not done per message: in between,
    /// the budget knows of less than there is, never of more. Only those are looked at who have sent
    /// something since the last time.
    fn settle(&mut self) {
        while let Some(index) = self.unsettled.pop() {
            let Some(peer) = self.peers.get_mut(index) else {
                continue;
            };
            peer.unsettled = false;
            // The budget has the windows of those who are gone already.
            if peer.health != Health::Alive {
                continue;
            }
            self.budget.envelopes += peer.accounted.envelopes - peer.granted.envelopes;
            self.budget.bytes += peer.accounted.bytes - peer.granted.bytes;
            peer.accounted = peer.granted;
        }
    }

    /// Refills the windows of the starved, after something kept was received.
    pub(super) fn feed_the_starved(&mut self) {
        // A refill pays once a good part of a window is free: grants in small change would cost
        // a packet each.
        let full = self.full_window();
        for place in (0..self.starving.len()).rev() {
            if self.budget.envelopes < full.envelopes / 4 && self.budget.bytes < full.bytes / 4 {
                return;
            }
            let peer = self.starving[place];
            self.refill(peer);
        }
    }

    /// Grants `peer` as much as its window lacks and the budget has.
    #[cold]
    pub(super) fn refill(&mut self, index: PeerIndex) {
        let full = self.full_window();
        // At least one: a window of one is low when it is spent.
        self.refill_below = Window {
            envelopes: (full.envelopes / 2).max(1),
            bytes: (full.bytes / 2).max(1),
        };
        self.settle();
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        if peer.health != Health::Alive {
            return;
        }
        let lacks = Window {
            envelopes: (full.envelopes - peer.granted.envelopes).max(0),
            bytes: (full.bytes - peer.granted.bytes).max(0),
        };
        let grant = Window {
            envelopes: lacks.envelopes.min(self.budget.envelopes.max(0)),
            bytes: lacks.bytes.min(self.budget.bytes.max(0)),
        };
        let worth_it = grant.envelopes >= lacks.envelopes.min(full.envelopes / 4)
            && grant.envelopes > 0
            || grant.bytes >= full.bytes / 4;
        let starved = grant.envelopes < lacks.envelopes;
        let was_starved = peer.starved;
        peer.starved = starved;
        if worth_it {
            peer.granted.envelopes += grant.envelopes;
            peer.granted.bytes += grant.bytes;
            peer.accounted = peer.granted;
            self.budget.envelopes -= grant.envelopes;
            self.budget.bytes -= grant.bytes;
            let header = ControlHeader {
                kind: Kind::Credit,
                handle: Handle::NONE,
                argument: pack(grant),
            };
            self.chores.push_back(Chore::control(index, header, &[]));
        }
        match (was_starved, starved) {
            (false, true) => {
                self.starving.push(index);
                self.in_trouble = true;
                self.pull_for_posted(index);
            }
            (true, false) => self.feed(index),
            _ => {}
        }
    }

    /// Takes a peer off the list of the starving.
    pub(super) fn feed(&mut self, index: PeerIndex) {
        self.starving.retain(|other| *other != index);
        self.in_trouble = !(self.losses.is_empty() && self.starving.is_empty());
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
        for place in 0..self.starving.len() {
            self.pull(self.starving[place], receive);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_travel_whole() {
        let grant = Window {
            envelopes: 2048,
            bytes: (1 << ENVELOPE_SHIFT) - 1,
        };
        assert_eq!(unpack(pack(grant)), grant);
    }
}
