//! The plain engine: one list of receives, one list of messages.

use tagwire_base::named::{Named, Spec};
#[cfg(feature = "engines")]
use tagwire_base::named::{Parameter, Range};

use crate::description::{Description, Grade};
use crate::engine::{ArriveOutcome, CancelOutcome, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::queue::{self, View};
use crate::storage::{Capacity, Cells, Node, Private, Selector, Storage, Word};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "list",
        #[cfg(not(feature = "engines"))]
        parameters: &[],
        #[cfg(feature = "engines")]
        parameters: &[
            Parameter {
                name: "per",
                range: Range::Word {
                    default: "vci",
                    words: &["vci", "context"],
                },
                help: "one list for all contexts, each entry's compared, or one for each context",
            },
            Parameter {
                name: "stride",
                range: Range::Word {
                    default: "32",
                    words: &["32", "64", "128", "256", "512"],
                },
                help: "bytes from one entry to the next in memory; a peer's entry is a request of several cache lines",
            },
        ],
    },
    about: "one list in order for each queue, walked from its head",
    source: "MPICH ch4 (mpidig_recvq.h, per=vci); Open MPI's matching queues of a communicator (per=context)",
    limits: "linear in the entries ahead of the match; with stride=32 nodes lie side by side, which peers' requests do not",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    #[cfg(feature = "engines")]
    {
        let storage = Private::<LINKS, C>::apart(capacity, step(spec));
        match spec.word("per") {
            "context" => crate::engines::contexts::open(storage),
            _ => Box::new(PlainList::new(storage)),
        }
    }
    #[cfg(not(feature = "engines"))]
    {
        let _ = spec;
        Box::new(PlainList::new(Private::<LINKS, C>::new(capacity)))
    }
}

/// How many nodes of 32 bytes lie from one entry to the next.
#[cfg(feature = "engines")]
fn step(spec: &Spec) -> u32 {
    let bytes: usize = spec.word("stride").parse().unwrap_or(NODE);
    (bytes / NODE) as u32
}

/// Bytes of a node.
#[cfg(feature = "engines")]
const NODE: usize = size_of::<Node<crate::storage::Local, LINKS>>();

/// Keeps each queue as one list in order and walks it: no index, so nothing to keep up.
///
/// Posting and arriving cost as much as the entries ahead of the match; cancelling is constant.
/// Right for queues of a few entries, and the yardstick for the other engines.
#[derive(Debug)]
pub struct PlainList<S = Private<LINKS>> {
    storage: S,
}

impl PlainList {
    /// An empty engine in private memory.
    #[must_use]
    pub fn with_capacity(capacity: Capacity) -> Self {
        Self::new(Private::new(capacity))
    }
}

impl<S: Storage<LINKS>> PlainList<S> {
    /// An empty engine over `storage`, whatever that held before.
    pub fn new(storage: S) -> Self {
        storage.control().reset();
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

    #[inline]
    fn take_posted(&self, message: Selector) -> Option<Cookie> {
        let view = self.posted();
        let head = &view.queue.head;
        if let Some((slot, node)) = view.first_equal(head, message) {
            view.unlink_first(ORDER, head, node);
            return Some(view.release(slot, node));
        }
        if view.is_empty() {
            return None;
        }
        self.search_posted(message)
    }

    #[inline(never)]
    fn search_posted(&self, message: Selector) -> Option<Cookie> {
        let view = self.posted();
        let head = view.queue.head.load();
        let (found, looked) = view.find(ORDER, head, |entry, _| entry.accepts(message));
        view.count_search(found.is_some(), looked);
        found.map(|(slot, node)| remove(view, slot, node))
    }

    #[inline]
    fn queue_posted(&mut self, receive: Selector, cookie: Cookie) -> PostOutcome {
        let view = self.posted();
        let Some((handle, node)) = view.insert(receive, cookie) else {
            return self.place_posted(receive, cookie);
        };
        view.push(ORDER, &view.queue.head, handle.slot, node);
        PostOutcome::Queued(handle)
    }

    /// The same with no used slot free.
    #[inline(never)]
    fn place_posted(&mut self, receive: Selector, cookie: Cookie) -> PostOutcome {
        let Some(handle) = queue::insert_posted(&mut self.storage, receive, cookie) else {
            return PostOutcome::Full;
        };
        let view = self.posted();
        view.append(ORDER, &view.queue.head, handle.slot);
        PostOutcome::Queued(handle)
    }

    #[inline(never)]
    fn queue_unexpected(&mut self, message: Selector, cookie: Cookie) -> ArriveOutcome {
        let Some(handle) = queue::insert_unexpected(&mut self.storage, message, cookie) else {
            return ArriveOutcome::Full;
        };
        let view = self.unexpected();
        view.append(ORDER, &view.queue.head, handle.slot);
        ArriveOutcome::Queued(handle)
    }

    #[inline]
    fn find_unexpected(&self, receive: Selector) -> (Option<(u32, &UnexpectedNode<S>)>, u64) {
        let view = self.unexpected();
        view.find(ORDER, view.queue.head.load(), |entry, _| {
            receive.accepts(entry)
        })
    }

    #[inline]
    fn take_unexpected(&self, receive: Selector) -> Option<(Selector, Cookie)> {
        if self.unexpected().is_empty() {
            return None;
        }
        self.search_unexpected(receive)
    }

    #[inline(never)]
    fn search_unexpected(&self, receive: Selector) -> Option<(Selector, Cookie)> {
        let view = self.unexpected();
        let (found, looked) = self.find_unexpected(receive);
        view.count_search(found.is_some(), looked);
        found.map(|(slot, node)| (node.selector(), remove(view, slot, node)))
    }
}

impl<S: Storage<LINKS>> Engine for PlainList<S> {
    #[inline]
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let receive = Selector::of_receive(pattern);
        match self.take_unexpected(receive) {
            Some((_, taken)) => PostOutcome::Matched(taken),
            None => self.queue_posted(receive, cookie),
        }
    }

    #[inline]
    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        let message = Selector::of_message(envelope);
        match self.take_posted(message) {
            Some(taken) => ArriveOutcome::Matched(taken),
            None => self.queue_unexpected(message, cookie),
        }
    }

    #[inline]
    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.take_posted(Selector::of_message(envelope))
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let view = self.posted();
        if view.is_empty() {
            return None;
        }
        let message = Selector::of_message(envelope);
        let head = view.queue.head.load();
        let (found, looked) = view.find(ORDER, head, |entry, _| entry.accepts(message));
        view.count_probe(looked);
        found.map(|(_, node)| node.cookie())
    }

    #[inline]
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

    #[inline]
    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (selector, cookie) = self.take_unexpected(Selector::of_receive(pattern))?;
        Some((selector.envelope()?, cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let view = self.posted();
        let node = view.named(handle);
        view.withdrawn(node.map(|node| remove(view, handle.slot, node)))
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let view = self.unexpected();
        let node = view.named(handle);
        view.withdrawn(node.map(|node| remove(view, handle.slot, node)))
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

#[inline]
fn remove<C: Cells>(view: View<'_, C, LINKS>, slot: u32, node: &Node<C, LINKS>) -> Cookie {
    view.unlink(ORDER, &view.queue.head, slot, node);
    view.release(slot, node)
}

type UnexpectedNode<S> = Node<<S as Storage<LINKS>>::Cells, LINKS>;

/// How many lists an entry is on.
pub const LINKS: usize = 1;
/// The list of all entries in order.
const ORDER: usize = 0;
