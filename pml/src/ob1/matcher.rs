//! Matching with its tables: the engine, and the messages that came before their receive.
//!
//! Inputs are envelopes, patterns and slots of receives, what is to be done comes back as a value. Nothing here knows a
//! transport or a buffer of the user's; of a peer it keeps the index that it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tagwire_matching::{
    self as matching, AnyEngine, ArriveOutcome, CancelOutcome, Cookie, Engine, Envelope, Pattern,
    PostOutcome,
};
use tagwire_transport::Payload;

use super::peer::PeerIndex;
use super::unexpected::{Content, Unexpected};
use crate::record::Direct;
use crate::slab::{Handle, Slab};

/// A receive's place among those that wait for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its entry in the engine.
    queued: matching::Handle,
    /// Its number in the order of posting.
    pub order: u64,
}

/// What became of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Posted {
    /// It waits.
    Waits(Place),
    /// It takes this message, which is here; [`Matcher::take`] has it.
    Takes(Handle),
    /// There are too many receives.
    Full,
}

/// What became of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The receive in this slot takes the message.
    Matched(u32),
    /// No receive takes it: it is to be [kept](Matcher::keep) under this entry at once.
    Unexpected(matching::Handle),
    /// There are too many messages.
    Full,
}

/// The matching of one rank.
#[derive(Debug)]
pub(super) struct Matcher {
    engine: AnyEngine<Direct>,
    unexpected: Slab<Unexpected>,
    /// How many receives were posted.
    posted: u64,
    bound: Bound,
}

/// What bounds the receives that are posted at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// The most of them.
    pub(super) receives: u32,
    /// What a user sets to have more.
    pub(super) set_by: &'static str,
}

impl Matcher {
    pub(super) fn new(engine: AnyEngine<Direct>, bound: Bound) -> Self {
        Self {
            engine,
            unexpected: Slab::default(),
            posted: 0,
            bound,
        }
    }

    /// Returns what bounds the receives.
    pub(super) const fn bound(&self) -> Bound {
        self.bound
    }

    /// Returns the name of the engine.
    pub(super) const fn name(&self) -> &'static str {
        self.engine.name()
    }

    /// Posts the receive in `slot` (MPI-5.0, section 3.5).
    #[inline(always)]
    pub(super) fn post(&mut self, pattern: Pattern, slot: u32) -> Posted {
        match self.engine.post(pattern, Cookie(slot)) {
            PostOutcome::Queued(queued) => {
                let order = self.posted;
                self.posted += 1;
                Posted::Waits(Place { queued, order })
            }
            PostOutcome::Matched(Cookie(slot)) => match self.unexpected.at(slot) {
                Some((message, _)) => Posted::Takes(message),
                None => {
                    debug_assert!(false, "what the engine matches is kept");
                    Posted::Full
                }
            },
            PostOutcome::Full => Posted::Full,
        }
    }

    /// Takes back a receive that waits. Returns whether it waited.
    pub(super) fn withdraw(&mut self, place: Place) -> bool {
        matches!(
            self.engine.cancel(place.queued),
            CancelOutcome::Cancelled(_)
        )
    }

    /// Matches an envelope that has arrived, of a message with so many bytes (MPI-5.0, section 3.5).
    #[inline(always)]
    pub(super) fn arrive(&mut self, envelope: Envelope, bytes: usize) -> Arrived {
        let next = Cookie(self.unexpected.next_slot());
        match self.engine.arrive_sized(envelope, next, bytes) {
            ArriveOutcome::Matched(Cookie(slot)) => Arrived::Matched(slot),
            ArriveOutcome::Queued(queued) => Arrived::Unexpected(queued),
            ArriveOutcome::Full => Arrived::Full,
        }
    }

    /// Keeps the message that [`arrive`](Matcher::arrive) has just found unexpected, or one that is claimed already.
    pub(super) fn keep(&mut self, message: Unexpected) -> Handle {
        self.unexpected.insert(message)
    }

    /// The same of a message that `make` makes in its place, with the first of its bytes.
    #[inline(always)]
    pub(super) fn keep_made(
        &mut self,
        make: impl FnOnce() -> Unexpected,
        first: Payload<'_>,
    ) -> Handle {
        let (handle, message) = self.unexpected.insert_made(make);
        message.content.write_first(first);
        handle
    }

    /// Returns a message that is kept.
    #[inline]
    pub(super) fn kept(&self, message: Handle) -> Option<&Unexpected> {
        self.unexpected.get(message)
    }

    /// Drops a message whose bytes its receive has.
    #[inline]
    pub(super) fn discard(&mut self, message: Handle) {
        self.unexpected.discard(message);
    }

    /// Takes out a message, for its receive.
    pub(super) fn take(&mut self, message: Handle) -> Option<Unexpected> {
        self.unexpected.remove(message)
    }

    /// Adds bytes that arrived later to a kept message.
    pub(super) fn add(&mut self, message: Handle, offset: usize, payload: Payload<'_>) {
        if let Some(Unexpected {
            content: Content::Heap { bytes, arrived },
            ..
        }) = self.unexpected.get_mut(message)
        {
            let end = offset + payload.len();
            payload.copy_to_slice(&mut bytes[offset..end]);
            *arrived = end;
        }
    }

    /// Whether no message is here that waits for its receive.
    #[inline(always)]
    pub(super) fn has_nothing_unexpected(&self) -> bool {
        self.engine.unexpected_len() == 0
    }

    /// Takes out the receive that [`expects`](Matcher::expects) such a message, which another way has brought.
    pub(super) fn take_expected(&mut self, envelope: Envelope) -> Option<u32> {
        let taken = self.engine.arrive_expected(envelope);
        taken.map(|Cookie(slot)| slot)
    }

    /// Returns the slot of the receive that would take such a message.
    pub(super) fn expects(&mut self, envelope: Envelope) -> Option<u32> {
        self.engine.expects(envelope).map(|Cookie(slot)| slot)
    }

    /// Returns the earliest message that a receive of this pattern would take (MPI-5.0, section 3.8.1).
    pub(super) fn probe(&mut self, pattern: Pattern) -> Option<&Unexpected> {
        let (_, Cookie(slot)) = self.engine.probe(pattern)?;
        self.unexpected.at(slot).map(|(_, message)| message)
    }

    /// Sets aside the earliest message that a receive of this pattern would take: no receive matches it any more
    /// (MPI-5.0, section 3.8.2).
    pub(super) fn claim(&mut self, pattern: Pattern) -> Option<(Handle, &Unexpected)> {
        let (_, Cookie(slot)) = self.engine.claim(pattern)?;
        let (handle, message) = self.unexpected.at_mut(slot)?;
        message.queued = None;
        Some((handle, message))
    }

    /// Returns a message that was set aside.
    pub(super) fn claimed(&self, message: Handle) -> Option<&Unexpected> {
        let message = self.unexpected.get(message);
        message.filter(|message| message.queued.is_none())
    }

    /// Returns how many receives wait.
    pub(super) fn posted_len(&self) -> usize {
        self.engine.posted_len()
    }

    /// Returns the slots of the receives that wait and that `accept` their pattern, in the order of posting.
    pub(super) fn waiting(&self, accept: impl Fn(Pattern) -> bool) -> Vec<u32> {
        let mut slots = Vec::new();
        if self.engine.posted_len() > 0 {
            self.engine.for_each_posted(&mut |pattern, Cookie(slot)| {
                if accept(pattern) {
                    slots.push(slot);
                }
            });
        }
        slots
    }

    /// Drops the messages of a lost peer whose bytes can no longer come, and what came behind one of them in its context: a
    /// receive that takes a later message in place of a lost one would not tell that there was one. Those that are claimed
    /// stay, and their receive reports the failure. Calls `dropped` with what each was charged.
    pub(super) fn forget(&mut self, peer: PeerIndex, mut dropped: impl FnMut(usize)) {
        let here: BTreeMap<u32, (Handle, &Unexpected)> = self
            .unexpected
            .iter()
            .filter(|(_, message)| message.peer == peer)
            .map(|(handle, message)| (handle.slot(), (handle, message)))
            .collect();
        let (mut broken, mut lost) = (BTreeSet::new(), Vec::new());
        self.engine.for_each_unexpected(&mut |_, Cookie(slot)| {
            let Some((handle, message)) = here.get(&slot) else {
                return;
            };
            let context = message.context.as_u16();
            if !message.content.is_whole() {
                broken.insert(context);
            }
            if broken.contains(&context)
                && let Some(queued) = message.queued
            {
                lost.push((*handle, queued));
            }
        });
        for (handle, queued) in lost {
            let discarded = self.engine.discard(queued);
            debug_assert!(matches!(discarded, CancelOutcome::Cancelled(_)));
            if let Some(message) = self.unexpected.remove(handle) {
                dropped(message.charged);
            }
        }
    }

    /// Returns how many messages are here, claimed ones too.
    pub(super) fn len(&self) -> usize {
        self.unexpected.count()
    }

    /// Returns the messages that are here, by slot.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Unexpected> {
        self.unexpected.iter().map(|(_, message)| message)
    }

    /// Returns how many slots there are for messages, of which each that is here has one.
    pub(super) fn slots(&self) -> u32 {
        self.unexpected.slots()
    }

    /// Returns the messages in these slots.
    pub(super) fn messages_in(&self, slots: Range<u32>) -> impl Iterator<Item = &Unexpected> {
        slots.filter_map(|slot| self.unexpected.at(slot).map(|(_, message)| message))
    }

    /// Returns what the engine has done.
    pub(super) fn stats(&self) -> matching::Stats {
        self.engine.stats()
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
    use tagwire_matching::Capacity;

    use super::*;

    const ANY: Pattern = Pattern {
        source: SourceSelector::ANY,
        tag: TagSelector::ANY,
        context: ContextId::WORLD,
    };

    fn matcher(capacity: u32) -> Matcher {
        let capacity = Capacity::new(capacity, capacity);
        let bound = Bound {
            receives: capacity.posted,
            set_by: "it",
        };
        Matcher::new(
            AnyEngine::by_name("list", capacity).unwrap().beside(),
            bound,
        )
    }

    fn envelope(tag: i32) -> Envelope {
        Envelope {
            source: Rank::new(3),
            tag: Tag::user(tag).unwrap(),
            context: ContextId::WORLD,
        }
    }

    fn exact(tag: i32) -> Pattern {
        Pattern {
            tag: TagSelector::exact(Tag::user(tag).unwrap()),
            ..ANY
        }
    }

    /// Lets a message of `total` bytes arrive, of which `here` are here; it is unexpected.
    fn keep(matcher: &mut Matcher, tag: i32, total: usize, here: usize) -> Handle {
        let Arrived::Unexpected(queued) = matcher.arrive(envelope(tag), total) else {
            panic!("nobody waits");
        };
        let message = || Unexpected {
            peer: PeerIndex::NONE,
            tag: Tag::user(tag).unwrap(),
            context: ContextId::WORLD,
            length: total,
            charged: total,
            queued: Some(queued),
            synchronous: None,
            content: Content::room(total, here),
        };
        matcher.keep_made(message, Payload::from_slice(&[1; 64][..here]))
    }

    #[test]
    fn receives_wait_in_the_order_of_posting() {
        let mut matcher = matcher(8);
        let places: Vec<_> = (0..3).map(|slot| matcher.post(ANY, slot)).collect();
        let orders: Vec<_> = places
            .iter()
            .map(|posted| match posted {
                Posted::Waits(place) => place.order,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(orders, [0, 1, 2]);
        assert_eq!(matcher.waiting(|pattern| pattern == ANY), [0, 1, 2]);
        assert!(matcher.waiting(|_| false).is_empty());
        let Posted::Waits(second) = places[1] else {
            unreachable!()
        };
        assert!(matcher.withdraw(second));
        assert!(!matcher.withdraw(second), "it waits no more");
        assert_eq!(matcher.expects(envelope(1)), Some(0));
        assert_eq!(matcher.arrive(envelope(1), 0), Arrived::Matched(0));
        assert_eq!(matcher.arrive(envelope(1), 0), Arrived::Matched(2));
        assert_eq!(matcher.expects(envelope(1)), None);
    }

    #[test]
    fn a_receive_takes_the_earliest_message_that_it_accepts() {
        let mut matcher = matcher(8);
        assert!(matcher.has_nothing_unexpected());
        let messages: Vec<_> = [5, 6, 6].map(|tag| keep(&mut matcher, tag, 8, 8)).into();
        assert!(!matcher.has_nothing_unexpected());
        assert_eq!(matcher.probe(exact(6)).unwrap().tag, envelope(6).tag);
        assert!(matcher.probe(exact(7)).is_none());
        assert_eq!(matcher.post(exact(6), 0), Posted::Takes(messages[1]));
        assert_eq!(matcher.take(messages[1]).unwrap().length, 8);
        assert_eq!(matcher.post(ANY, 1), Posted::Takes(messages[0]));
        assert_eq!(matcher.len(), 2, "until it is taken");
        assert!(matcher.take(messages[0]).is_some());
        assert!(matcher.take(messages[0]).is_none());
        assert_eq!(matcher.messages().count(), 1);
    }

    #[test]
    fn what_is_claimed_matches_nothing_more() {
        let mut matcher = matcher(8);
        let message = keep(&mut matcher, 5, 8, 8);
        assert!(matcher.claimed(message).is_none());
        assert_eq!(matcher.claim(exact(5)).unwrap().0, message);
        assert!(matcher.claim(exact(5)).is_none());
        assert!(matcher.claimed(message).is_some());
        assert!(matches!(matcher.post(ANY, 0), Posted::Waits(_)));
        assert!(matcher.has_nothing_unexpected());
        assert_eq!(matcher.len(), 1);
    }

    #[test]
    fn bytes_that_come_later_are_added() {
        let mut matcher = matcher(8);
        let message = keep(&mut matcher, 5, 100, 40);
        assert!(!matcher.messages().next().unwrap().content.is_whole());
        matcher.add(message, 40, Payload::from_slice(&[2; 60]));
        let message = matcher.take(message).unwrap();
        assert!(message.content.is_whole());
        let bytes = message.content.arrived().to_vec();
        assert_eq!((&bytes[..40], &bytes[40..]), (&[1; 40][..], &[2; 60][..]));
    }

    #[test]
    fn a_lost_peer_keeps_what_is_whole_or_claimed_up_to_the_first_that_is_lost() {
        let mut matcher = matcher(8);
        let whole = keep(&mut matcher, 1, 64, 64);
        let half = keep(&mut matcher, 2, 64, 10);
        let claimed = keep(&mut matcher, 3, 64, 10);
        let behind = keep(&mut matcher, 1, 32, 32);
        assert!(matcher.claim(exact(3)).is_some());
        let mut charged = Vec::new();
        matcher.forget(PeerIndex::NONE, |bytes| charged.push(bytes));
        assert_eq!(charged, [64, 32]);
        assert!(matcher.take(half).is_none());
        assert!(matcher.take(behind).is_none());
        assert!(
            matcher.probe(exact(2)).is_none(),
            "the engine forgot it too"
        );
        assert!(matcher.take(whole).is_some());
        assert!(matcher.take(claimed).is_some());
    }

    #[test]
    fn there_may_be_too_many_of_both() {
        let mut matcher = matcher(1);
        assert!(matches!(matcher.post(exact(1), 0), Posted::Waits(_)));
        assert_eq!(matcher.post(exact(1), 1), Posted::Full);
        keep(&mut matcher, 2, 0, 0);
        assert_eq!(matcher.arrive(envelope(2), 0), Arrived::Full);
    }
}
