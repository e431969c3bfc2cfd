//! What engines have in common that differ in where entries lie and in how they are searched.

use std::fmt::Debug;

use crate::engine::{ArriveOutcome, CancelOutcome, Engine, PostOutcome, QueueStats, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::queue::{self, View};
use crate::storage::{Node, Selector, Storage};

/// Where an engine keeps the entries of both queues, and how it searches them.
///
/// [`Arranged`] calls it: it fills a slot and has the entry put into place, it has an entry found, and taken out of its place
/// before the slot is free again. An entry that is searched for is in place.
pub(super) trait Arrangement<S: Storage<LINKS>, const LINKS: usize>: Debug {
    /// Makes room for one more receive like this one; `false` when there is none, and nothing has changed.
    fn reserve_posted(&mut self, storage: &mut S, receive: Selector) -> bool {
        let _ = (storage, receive);
        true
    }

    /// The same for a message of so many bytes, where they are known.
    fn reserve_unexpected(&mut self, storage: &mut S, message: Selector, bytes: usize) -> bool {
        let _ = (storage, message, bytes);
        true
    }

    /// Puts the receive in a slot into place, behind all that are there.
    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>);

    /// The same for a message.
    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>);

    /// Takes a receive out of its place.
    fn remove_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>);

    /// The same for a message.
    fn remove_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>);

    /// Finds the receive that such a message goes to, where there are receives.
    fn find_posted(&mut self, storage: &S, message: Selector) -> Found;

    /// Finds the message that such a receive takes, where there are messages.
    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found;
}

/// What a search has found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub slot: Option<u32>,
    /// How many entries it looked at.
    pub looked: u64,
    /// How many of them a coarse comparison had let through, and did not fit.
    pub false_hits: u64,
}

impl Found {
    /// What a search of one list has found.
    pub fn of<N>((found, looked): (Option<(u32, N)>, u64)) -> Self {
        Self {
            slot: found.map(|(slot, _)| slot),
            looked,
            false_hits: 0,
        }
    }
}

/// An engine that keeps its entries in an [`Arrangement`].
#[derive(Debug)]
pub(super) struct Arranged<A, S, const LINKS: usize> {
    arrangement: A,
    storage: S,
    /// Of the searches among receives, and among messages.
    false_hits: [u64; 2],
}

impl<A: Arrangement<S, LINKS>, S: Storage<LINKS>, const LINKS: usize> Arranged<A, S, LINKS> {
    /// Returns an empty engine over `storage`, in which the arrangement has made its tables.
    pub fn new(arrangement: A, storage: S) -> Self {
        storage.control().reset();
        Self {
            arrangement,
            storage,
            false_hits: [0; 2],
        }
    }

    fn posted(&self) -> View<'_, S::Cells, 1> {
        queue::posted(&self.storage)
    }

    fn unexpected(&self) -> View<'_, S::Cells, LINKS> {
        queue::unexpected(&self.storage)
    }

    fn find_posted(&mut self, message: Selector) -> Found {
        let found = self.arrangement.find_posted(&self.storage, message);
        self.false_hits[0] += found.false_hits;
        found
    }

    fn find_unexpected(&mut self, receive: Selector) -> Found {
        let found = self.arrangement.find_unexpected(&self.storage, receive);
        self.false_hits[1] += found.false_hits;
        found
    }

    fn take_posted(&mut self, message: Selector) -> Option<Cookie> {
        if self.posted().is_empty() {
            return None;
        }
        let found = self.find_posted(message);
        let view = self.posted();
        view.count_search(found.slot.is_some(), found.looked);
        self.remove_posted(found.slot?)
    }

    fn remove_posted(&mut self, slot: u32) -> Option<Cookie> {
        let view = queue::posted(&self.storage);
        let node = view.node(slot)?;
        self.arrangement.remove_posted(&self.storage, slot, node);
        Some(view.release(slot, node))
    }

    fn take_unexpected(&mut self, receive: Selector) -> Option<(Selector, Cookie)> {
        if self.unexpected().is_empty() {
            return None;
        }
        let found = self.find_unexpected(receive);
        let view = self.unexpected();
        view.count_search(found.slot.is_some(), found.looked);
        let slot = found.slot?;
        let message = view.node(slot)?.selector();
        Some((message, self.remove_unexpected(slot)?))
    }

    fn remove_unexpected(&mut self, slot: u32) -> Option<Cookie> {
        let view = queue::unexpected(&self.storage);
        let node = view.node(slot)?;
        self.arrangement
            .remove_unexpected(&self.storage, slot, node);
        Some(view.release(slot, node))
    }

    fn queue_posted(&mut self, receive: Selector, cookie: Cookie) -> Option<Handle> {
        if !self.arrangement.reserve_posted(&mut self.storage, receive) {
            return None;
        }
        let handle = queue::insert_posted(&mut self.storage, receive, cookie)?;
        let node = queue::posted(&self.storage).node(handle.slot)?;
        self.arrangement
            .place_posted(&self.storage, handle.slot, node);
        Some(handle)
    }

    fn queue_unexpected(
        &mut self,
        message: Selector,
        cookie: Cookie,
        bytes: usize,
    ) -> Option<Handle> {
        let arrangement = &mut self.arrangement;
        if !arrangement.reserve_unexpected(&mut self.storage, message, bytes) {
            return None;
        }
        let handle = queue::insert_unexpected(&mut self.storage, message, cookie)?;
        let node = queue::unexpected(&self.storage).node(handle.slot)?;
        arrangement.place_unexpected(&self.storage, handle.slot, node);
        Some(handle)
    }
}

impl<A: Arrangement<S, LINKS>, S: Storage<LINKS>, const LINKS: usize> Engine
    for Arranged<A, S, LINKS>
{
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let receive = Selector::of_receive(pattern);
        if let Some((_, taken)) = self.take_unexpected(receive) {
            return PostOutcome::Matched(taken);
        }
        let queued = self.queue_posted(receive, cookie);
        queued.map_or(PostOutcome::Full, PostOutcome::Queued)
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        self.arrive_sized(envelope, cookie, 0)
    }

    fn arrive_sized(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        let message = Selector::of_message(envelope);
        if let Some(taken) = self.take_posted(message) {
            return ArriveOutcome::Matched(taken);
        }
        let queued = self.queue_unexpected(message, cookie, bytes);
        queued.map_or(ArriveOutcome::Full, ArriveOutcome::Queued)
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.take_posted(Selector::of_message(envelope))
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        if self.posted().is_empty() {
            return None;
        }
        let found = self.find_posted(Selector::of_message(envelope));
        let view = self.posted();
        view.count_probe(found.looked);
        Some(view.node(found.slot?)?.cookie())
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        if self.unexpected().is_empty() {
            return None;
        }
        let found = self.find_unexpected(Selector::of_receive(pattern));
        let view = self.unexpected();
        view.count_probe(found.looked);
        let node = view.node(found.slot?)?;
        Some((node.selector().envelope()?, node.cookie()))
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (message, cookie) = self.take_unexpected(Selector::of_receive(pattern))?;
        Some((message.envelope()?, cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let live = self.posted().named(handle).is_some();
        let taken = if live {
            self.remove_posted(handle.slot)
        } else {
            None
        };
        self.posted().withdrawn(taken)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let live = self.unexpected().named(handle).is_some();
        let taken = if live {
            self.remove_unexpected(handle.slot)
        } else {
            None
        };
        self.unexpected().withdrawn(taken)
    }

    fn posted_len(&self) -> usize {
        self.posted().len() as usize
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected().len() as usize
    }

    fn stats(&self) -> Stats {
        let [posted, unexpected] = self.false_hits;
        Stats {
            posted: QueueStats {
                false_hits: posted,
                ..self.posted().queue.stats()
            },
            unexpected: QueueStats {
                false_hits: unexpected,
                ..self.unexpected().queue.stats()
            },
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.posted().visit_sorted(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.unexpected().visit_sorted_envelopes(visit);
    }
}
