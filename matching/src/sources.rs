//! The per-source engine: one pair of lists for each source, one list of any-source receives.

mod directory;

use crate::engine::{ArriveOutcome, CancelOutcome, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::queue::{self, View};
use crate::storage::{ANY_SOURCE, Capacity, Cells, Node, Private, Selector, Storage, Word};

/// Keeps the receives and the messages of each source apart, as Open MPI's ob1 does.
///
/// A receive from any source waits in a list of its own; an arrival walks its source's list and
/// that one, and the earlier of the two finds wins. Messages are also in one list in order of
/// arrival, which any-source receives walk. Sources are found through a directory that grows with
/// the sources that were heard of, never with the size of the job.
///
/// Flat in the number of sources; linear in the entries of one source.
#[derive(Debug)]
pub struct PerSource<S = Private<LINKS>> {
    storage: S,
}

impl PerSource {
    /// An empty engine in private memory.
    #[must_use]
    pub fn with_capacity(capacity: Capacity) -> Self {
        Self::new(Private::new(capacity))
    }
}

impl<S: Storage<LINKS>> PerSource<S> {
    /// An empty engine over `storage`, whatever that held before.
    ///
    /// The first table holds the buckets of the directory, the second four words for each source.
    /// Storage that cannot grow bounds the number of sources: a receive from, or a message of, one
    /// source too many results in `Full`.
    pub fn new(storage: S) -> Self {
        storage.control().reset();
        directory::clear(&storage);
        Self { storage }
    }

    /// Goes on with the engine whose state is in `storage`.
    pub const fn attach(storage: S) -> Self {
        Self { storage }
    }

    #[inline]
    fn posted(&self) -> View<'_, S::Cells, 1> {
        queue::posted(&self.storage)
    }

    #[inline]
    fn unexpected(&self) -> View<'_, S::Cells, LINKS> {
        queue::unexpected(&self.storage)
    }

    /// The head of the list on which a receive with this selector waits, if there is one.
    #[inline]
    fn posted_head(&self, receive: Selector) -> Option<&<S::Cells as Cells>::Word> {
        if receive.kind & ANY_SOURCE != 0 {
            return Some(&self.storage.control().posted.head);
        }
        let record = directory::find(&self.storage, receive.source())?;
        directory::posted_head(&self.storage, record)
    }

    /// The head of the list of a source's unexpected messages, if there is one.
    #[inline]
    fn unexpected_head(&self, source: u32) -> Option<&<S::Cells as Cells>::Word> {
        let record = directory::find(&self.storage, source)?;
        directory::unexpected_head(&self.storage, record)
    }

    fn take_posted(&self, message: Selector) -> Option<Cookie> {
        let view = self.posted();
        if view.is_empty() {
            return None;
        }
        let (best, attempts) = self.find_posted(message);
        view.count_search(best.is_some(), attempts);
        let (head, slot, node) = best?;
        view.unlink(CHAIN, head, slot, node);
        Some(view.release(slot, node))
    }

    /// The earliest receive that accepts the message, the head of its list, and how many were
    /// looked at.
    #[inline]
    fn find_posted(&self, message: Selector) -> (Option<PostedEntry<'_, S>>, u64) {
        let view = self.posted();
        let any = &view.queue.head;
        let mut best = None;
        let mut attempts = 0;
        if let Some(head) = self.posted_head(message) {
            let (found, looked) = view.find(CHAIN, head.load(), |entry, _| entry.accepts(message));
            attempts += looked;
            best = found.map(|(slot, node)| (head, slot, node));
        }
        let limit = best.map_or(u64::MAX, |(_, _, node)| node.sequence.load());
        // Past the limit no any-source receive can win, so the walk ends there.
        let (found, looked) = view.find(CHAIN, any.load(), |entry, node| {
            node.sequence.load() >= limit || entry.accepts(message)
        });
        attempts += looked;
        if let Some((slot, node)) = found.filter(|(_, node)| node.sequence.load() < limit) {
            best = Some((any, slot, node));
        }
        (best, attempts)
    }

    fn find_unexpected(&self, receive: Selector) -> (Option<(u32, &UnexpectedNode<S>)>, u64) {
        let view = self.unexpected();
        if receive.kind & ANY_SOURCE != 0 {
            let head = view.queue.head.load();
            return view.find(ORDER, head, |entry, _| receive.accepts(entry));
        }
        let Some(head) = self.unexpected_head(receive.source()) else {
            return (None, 0);
        };
        view.find(SOURCE, head.load(), |entry, _| receive.accepts(entry))
    }

    fn take_unexpected(&self, receive: Selector) -> Option<(Selector, Cookie)> {
        let view = self.unexpected();
        if view.is_empty() {
            return None;
        }
        let (found, looked) = self.find_unexpected(receive);
        view.count_search(found.is_some(), looked);
        let (slot, node) = found?;
        Some((node.selector(), self.remove_unexpected(slot, node)))
    }

    fn queue_posted(&mut self, receive: Selector, cookie: Cookie) -> Option<Handle> {
        if receive.kind & ANY_SOURCE == 0 {
            directory::find_or_add(&mut self.storage, receive.source())?;
        }
        let handle = queue::insert_posted(&mut self.storage, receive, cookie)?;
        if let Some(head) = self.posted_head(receive) {
            self.posted().append(CHAIN, head, handle.slot);
        }
        Some(handle)
    }

    fn queue_unexpected(&mut self, message: Selector, cookie: Cookie) -> Option<Handle> {
        let record = directory::find_or_add(&mut self.storage, message.source())?;
        let handle = queue::insert_unexpected(&mut self.storage, message, cookie)?;
        let view = self.unexpected();
        view.append(ORDER, &view.queue.head, handle.slot);
        if let Some(head) = directory::unexpected_head(&self.storage, record) {
            view.append(SOURCE, head, handle.slot);
        }
        Some(handle)
    }

    fn remove_unexpected(&self, slot: u32, node: &UnexpectedNode<S>) -> Cookie {
        let view = self.unexpected();
        view.unlink(ORDER, &view.queue.head, slot, node);
        if let Some(head) = self.unexpected_head(node.selector().source()) {
            view.unlink(SOURCE, head, slot, node);
        }
        view.release(slot, node)
    }
}

impl<S: Storage<LINKS>> Engine for PerSource<S> {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let receive = Selector::of_receive(pattern);
        if let Some((_, taken)) = self.take_unexpected(receive) {
            return PostOutcome::Matched(taken);
        }
        let queued = self.queue_posted(receive, cookie);
        queued.map_or(PostOutcome::Full, PostOutcome::Queued)
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        let message = Selector::of_message(envelope);
        if let Some(taken) = self.take_posted(message) {
            return ArriveOutcome::Matched(taken);
        }
        let queued = self.queue_unexpected(message, cookie);
        queued.map_or(ArriveOutcome::Full, ArriveOutcome::Queued)
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.take_posted(Selector::of_message(envelope))
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let view = self.posted();
        if view.is_empty() {
            return None;
        }
        let (found, looked) = self.find_posted(Selector::of_message(envelope));
        view.count_probe(looked);
        found.map(|(_, _, node)| node.cookie())
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let view = self.unexpected();
        if view.is_empty() {
            return None;
        }
        let (found, looked) = self.find_unexpected(Selector::of_receive(pattern));
        view.count_probe(looked);
        let (_, node) = found?;
        Some((node.selector().envelope()?, node.cookie()))
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (message, cookie) = self.take_unexpected(Selector::of_receive(pattern))?;
        Some((message.envelope()?, cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let view = self.posted();
        let withdrawn = view.named(handle).and_then(|node| {
            let head = self.posted_head(node.selector())?;
            view.unlink(CHAIN, head, handle.slot, node);
            Some(view.release(handle.slot, node))
        });
        view.withdrawn(withdrawn)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let view = self.unexpected();
        let node = view.named(handle);
        view.withdrawn(node.map(|node| self.remove_unexpected(handle.slot, node)))
    }

    fn posted_len(&self) -> usize {
        self.posted().len() as usize
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected().len() as usize
    }

    fn stats(&self) -> Stats {
        Stats {
            posted: self.posted().queue.stats(),
            unexpected: self.unexpected().queue.stats(),
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.posted().visit_sorted(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        let view = self.unexpected();
        view.visit_envelopes(ORDER, view.queue.head.load(), visit);
    }
}

/// A receive's list, slot and node.
type PostedEntry<'a, S> = (
    &'a <<S as Storage<LINKS>>::Cells as Cells>::Word,
    u32,
    &'a Node<<S as Storage<LINKS>>::Cells, 1>,
);
type UnexpectedNode<S> = Node<<S as Storage<LINKS>>::Cells, LINKS>;

/// How many lists an unexpected message is on.
pub const LINKS: usize = 2;
/// A posted receive is on one list: its source's, or that of any-source receives.
const CHAIN: usize = 0;
/// The list of all messages in order of arrival.
const ORDER: usize = 0;
/// The list of one source's messages.
const SOURCE: usize = 1;
