//! Peers, as this rank knows them: where they are, what is under way, what may be sent.

use std::collections::{BTreeMap, HashMap};

use tagwire_base::{Rank, Time};
use tagwire_transport::{EndpointId, Token};

use crate::fabric::Peer;
use crate::wire::{Header, NO_SLOT};

/// How far ahead of its turn a message may come.
const MAX_AHEAD: u32 = 4096;

/// What a message that came before its turn was.
pub(crate) type Early = (Header, Vec<u8>);

/// A peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) rank: Rank,
    pub(crate) peer: Option<Peer>,
    /// What became of our hello.
    pub(crate) greeting: Greeting,
    /// Until when a way to it is waited for, where there was none.
    pub(crate) awaited: Option<Time>,
    /// Its hello has come: messages with this stamp are its own.
    pub(crate) stamp: Option<u32>,
    /// It has left or failed.
    pub(crate) closed: bool,
    /// It was told that this rank ends: nothing follows.
    pub(crate) farewell_said: bool,
    /// It has heard that.
    pub(crate) farewell_heard: bool,
    /// Where it keeps us.
    pub(crate) slot: u32,
    /// Messages sent to it, counted.
    pub(crate) sent: u32,
    /// How many of them it has consumed, as far as we know.
    credited: u32,
    /// Messages of it that were consumed, counted.
    pub(crate) consumed: u32,
    /// What of that it was told.
    told: u32,
    /// Messages that came before their turn.
    early: BTreeMap<u32, Early>,
    /// Sends that the provider has not completed.
    pub(crate) sending: u32,
    /// Remote accesses that the provider has not completed.
    pub(crate) accessing: u32,
    /// Writes, counted.
    pub(crate) written: u64,
    /// Writes since the last flush that has ended.
    pub(crate) unflushed: bool,
    /// Some of them end before they are delivered.
    pub(crate) undelivered: bool,
    /// Flushes that wait for remote accesses to complete, or for room to ask.
    pub(crate) flushes: Vec<Flush>,
    /// Flushes of the peer to be replied to.
    pub(crate) answers: Vec<u64>,
    /// It is in the list of those for whom there is something to do.
    pub(crate) listed: bool,
}

/// What became of our hello to a peer. Nothing follows it before the provider has completed it:
/// some providers keep what is sent to a peer that has never replied, and lose it when we close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// None was sent.
    Unsaid,
    /// It is under way.
    Said,
    /// The provider has completed it.
    Heard,
}

/// A flush that the layer above, or a fence, has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flush {
    pub(crate) number: u64,
    /// Without one it is for a fence.
    pub(crate) token: Option<Token>,
    /// The peer was asked.
    pub(crate) asked: bool,
    /// How many writes there had been by then.
    pub(crate) covers: u64,
}

impl Link {
    /// A link to a rank, to which the first message has the number `first`.
    fn new(rank: Rank, first: u32) -> Self {
        Self {
            rank,
            peer: None,
            greeting: Greeting::Unsaid,
            awaited: None,
            stamp: None,
            closed: false,
            farewell_said: false,
            farewell_heard: false,
            slot: NO_SLOT,
            sent: first,
            credited: first,
            consumed: 0,
            told: 0,
            early: BTreeMap::new(),
            sending: 0,
            accessing: 0,
            written: 0,
            unflushed: false,
            undelivered: false,
            flushes: Vec::new(),
            answers: Vec::new(),
            listed: false,
        }
    }

    /// Takes note of its hello, whose slot for us is `slot`: its messages count from that one on.
    pub(crate) const fn meet(&mut self, hello: &Header, slot: u32) {
        self.stamp = Some(hello.stamp);
        self.slot = slot;
        self.consumed = hello.sequence.wrapping_add(1);
        self.told = hello.sequence;
    }

    /// Whether this rank is in contact with it, and has not told it that it ends.
    pub(crate) fn is_untold(&self) -> bool {
        let met = self.greeting != Greeting::Unsaid || self.stamp.is_some();
        met && !self.closed && !self.farewell_said
    }

    /// Messages that it has not consumed yet.
    #[inline]
    pub(crate) const fn in_flight(&self) -> u32 {
        self.sent.wrapping_sub(self.credited)
    }

    /// Takes note of what the peer says to have consumed; returns whether that can be. One that has not heard our hello knows nothing of
    /// our numbers.
    #[inline]
    #[must_use]
    pub(crate) const fn credit(&mut self, header: &Header) -> bool {
        header.slot == NO_SLOT || self.credit_up_to(header.credit)
    }

    /// The same of one that has.
    #[inline]
    const fn credit_up_to(&mut self, credited: u32) -> bool {
        let step = credited.wrapping_sub(self.credited);
        if step <= self.in_flight() {
            self.credited = credited;
            return true;
        }
        // One that was overtaken says less than is known already.
        step > u32::MAX / 2
    }

    /// Takes note of a message that was sent, with the credit in it.
    #[inline]
    pub(crate) const fn note_sent(&mut self) {
        self.sent = self.sent.wrapping_add(1);
        self.told = self.consumed;
    }

    /// Messages consumed that the peer was not told.
    #[inline]
    pub(crate) const fn untold(&self) -> u32 {
        self.consumed.wrapping_sub(self.told)
    }

    /// Whether `sequence` is next, or how it is not.
    #[inline]
    pub(crate) const fn turn(&self, sequence: u32) -> Turn {
        match sequence.wrapping_sub(self.consumed) {
            0 => Turn::Now,
            1..MAX_AHEAD => Turn::Early,
            _ => Turn::Never,
        }
    }

    /// Keeps a message until its turn.
    pub(crate) fn hold(&mut self, header: Header, bytes: Vec<u8>) {
        self.early.insert(header.sequence, (header, bytes));
    }

    /// The kept message whose turn it is.
    #[inline]
    pub(crate) fn next_early(&mut self) -> Option<Early> {
        if self.early.is_empty() {
            return None;
        }
        self.early.remove(&self.consumed)
    }
}

/// Where a message stands in its sender's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is next.
    Now,
    /// Others come first.
    Early,
    /// No correct peer numbers a message like this.
    Never,
}

/// All peers in contact, by endpoint and by rank.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The number of the first message to a peer.
    first: u32,
    list: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
}

impl Links {
    /// Returns none, to whose ranks the first messages will have the number `first`.
    pub(crate) fn counted_from(first: u32) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    /// The link to `rank`, made on first contact.
    pub(crate) fn at(&mut self, rank: Rank) -> EndpointId {
        *self.by_rank.entry(rank).or_insert_with(|| {
            self.list.push(Link::new(rank, self.first));
            EndpointId(self.list.len() as u32 - 1)
        })
    }

    pub(crate) fn find(&self, rank: Rank) -> Option<EndpointId> {
        self.by_rank.get(&rank).copied()
    }

    #[inline]
    pub(crate) fn get(&self, endpoint: EndpointId) -> Option<&Link> {
        self.list.get(endpoint.index())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (EndpointId, &Link)> {
        (0..).map(EndpointId).zip(&self.list)
    }

    /// The link of the sender of `header`, which has said hello before.
    #[inline]
    pub(crate) fn sender(&self, header: &Header) -> Option<EndpointId> {
        let proven = |endpoint: EndpointId| {
            self.get(endpoint)
                .is_some_and(|link| link.rank == header.source && link.stamp == Some(header.stamp))
        };
        let named = EndpointId(header.slot);
        if proven(named) {
            return Some(named);
        }
        self.find(header.source).filter(|found| proven(*found))
    }
}

impl std::ops::Index<EndpointId> for Links {
    type Output = Link;

    #[inline]
    fn index(&self, endpoint: EndpointId) -> &Link {
        &self.list[endpoint.index()]
    }
}

impl std::ops::IndexMut<EndpointId> for Links {
    #[inline]
    fn index_mut(&mut self, endpoint: EndpointId) -> &mut Link {
        &mut self.list[endpoint.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_never_exceeds_what_was_sent() {
        let mut link = Link::new(Rank::new(1), 0);
        for _ in 0..10 {
            link.note_sent();
        }
        assert!(link.credit_up_to(4));
        assert_eq!(link.in_flight(), 6);
        assert!(link.credit_up_to(3), "an overtaken one is no offence");
        assert_eq!(link.in_flight(), 6);
        assert!(!link.credit_up_to(11), "more than was ever sent");
        assert_eq!(link.in_flight(), 6);
    }

    #[test]
    fn counters_wrap() {
        let mut link = Link::new(Rank::new(1), 0);
        (link.sent, link.credited, link.consumed) = (u32::MAX, u32::MAX - 1, u32::MAX);
        link.note_sent();
        assert_eq!(link.in_flight(), 2);
        assert!(link.credit_up_to(0));
        assert_eq!(link.in_flight(), 0);
        assert_eq!(link.turn(u32::MAX), Turn::Now);
        assert_eq!(link.turn(2), Turn::Early);
        assert_eq!(link.turn(u32::MAX - 1), Turn::Never);
    }
}
