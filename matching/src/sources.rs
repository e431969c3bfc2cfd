//! The per-source engine: one pair of lists for each source, one list of any-source receives.

#[cfg(feature = "engines")]
mod array;
mod directory;
#[cfg(feature = "engines")]
mod trie;

use tagwire_base::named::{Named, Spec};
#[cfg(feature = "engines")]
use tagwire_base::named::{Parameter, Range};

pub use self::directory::LINKS;
use self::directory::{Directory, Hashed};
use crate::description::{Description, Grade};
use crate::engine::{ArriveOutcome, CancelOutcome, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::queue::{self, View};
use crate::storage::{ANY_SOURCE, Capacity, Cells, Node, Private, Selector, Storage, Word};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "source",
        #[cfg(not(feature = "engines"))]
        parameters: &[],
        #[cfg(feature = "engines")]
        parameters: &[
            Parameter {
                name: "dir",
                range: Range::Word {
                    default: "hash",
                    words: &["hash", "array", "trie4"],
                },
                help: "how a source's lists are found: a hash table of the sources heard of, a word for each rank, or four \
                       levels of tables",
            },
            Parameter::number(
                "ranks",
                1 << 16,
                1..=1 << 24,
                "with trie4: for how many ranks the tables are made; they have the fourth root of it in words",
            ),
            Parameter {
                name: "any",
                range: Range::Word {
                    default: "arrival",
                    words: &["arrival", "rotate"],
                },
                help: "which message an any-source receive takes: the earliest, or that of the next source in turn",
            },
        ],
    },
    about: "lists for each source, one list of any-source receives, merged by sequence number",
    source: "Open MPI ob1 (posted receives; any=rotate,dir=array: unexpected messages too); dir=trie4: Zounmevo and Afsahi, \
             FGCS 30, 2014; dir=hash is ours",
    limits: "linear in the entries of one source, and in the messages ahead for any-source; dir=array has 4 bytes for every \
             rank up to the highest heard of; records and tables stay until the engine goes",
    grade: |spec| {
        if rotates(spec) {
            Grade::Mpi
        } else {
            Grade::Exact
        }
    },
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let storage = Private::<LINKS, C>::new(capacity);
    let rotates = rotates(spec);
    #[cfg(feature = "engines")]
    match spec.word("dir") {
        "array" => return Box::new(PerSource::of(storage, array::Array, rotates)),
        "trie4" => {
            let trie = trie::Trie::for_ranks(spec.number("ranks"));
            return Box::new(PerSource::of(storage, trie, rotates));
        }
        _ => {}
    }
    Box::new(PerSource::of(storage, Hashed, rotates))
}

fn rotates(spec: &Spec) -> bool {
    cfg!(feature = "engines") && spec.word("any") == "rotate"
}

/// Keeps the receives and the messages of each source apart.
///
/// Receives lie as in Open MPI's ob1: one from any source waits in a list of its own; an arrival walks its source's list and
/// that one, and the earlier of the two finds wins. Messages are also in one list in order of
/// arrival, which any-source receives walk; ob1 has no such list and looks at each peer. Sources are found through a
/// directory `D`, by default one that grows with the sources that were heard of, never with the size of the job.
///
/// With the parameter `any=rotate` an any-source receive takes a message of the next source in turn that has one, as ob1
/// does with unexpected messages: MPI orders the messages of one source only (MPI-5.0, section 3.5).
///
/// Flat in the number of sources; linear in the entries of one source.
#[derive(Debug)]
pub struct PerSource<S = Private<LINKS>, D = Hashed> {
    storage: S,
    directory: D,
    rotates: bool,
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
        Self::of(storage, Hashed, false)
    }

    /// Goes on with the engine whose state is in `storage`.
    pub const fn attach(storage: S) -> Self {
        Self {
            storage,
            directory: Hashed,
            rotates: false,
        }
    }
}

impl<S: Storage<LINKS>, D: Directory> PerSource<S, D> {
    fn of(storage: S, directory: D, rotates: bool) -> Self {
        storage.control().reset();
        directory::clear(&storage);
        Self {
            storage,
            directory,
            rotates,
        }
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
        let record = self.directory.find(&self.storage, receive.source())?;
        directory::posted_head(&self.storage, record)
    }

    /// The head of the list of a source's unexpected messages, if there is one.
    #[inline]
    fn unexpected_head(&self, source: u32) -> Option<&<S::Cells as Cells>::Word> {
        let record = self.directory.find(&self.storage, source)?;
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
            if self.rotates {
                return self.find_in_turn(receive);
            }
            let head = view.queue.head.load();
            return view.find(ORDER, head, |entry, _| receive.accepts(entry));
        }
        let Some(head) = self.unexpected_head(receive.source()) else {
            return (None, 0);
        };
        view.find(SOURCE, head.load(), |entry, _| receive.accepts(entry))
    }

    /// The first message that the receive accepts of the source behind the one that was last, or of the next that has one.
    #[inline(never)]
    fn find_in_turn(&self, receive: Selector) -> (Option<(u32, &UnexpectedNode<S>)>, u64) {
        let view = self.unexpected();
        let last = &view.queue.reserved;
        let places = self.directory.places(&self.storage);
        let mut looked = 0;
        for step in 1..=u64::from(places) {
            let place = ((u64::from(last.load()) + step) % u64::from(places)) as u32;
            let record = self.directory.at(&self.storage, place);
            let Some(head) =
                record.and_then(|record| directory::unexpected_head(&self.storage, record))
            else {
                continue;
            };
            let (found, steps) = view.find(SOURCE, head.load(), |entry, _| receive.accepts(entry));
            looked += steps;
            if found.is_some() {
                last.store(place);
                return (found, looked);
            }
        }
        (None, looked)
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
            directory::find_or_add(&self.directory, &mut self.storage, receive.source())?;
        }
        let handle = queue::insert_posted(&mut self.storage, receive, cookie)?;
        if let Some(head) = self.posted_head(receive) {
            self.posted().append(CHAIN, head, handle.slot);
        }
        Some(handle)
    }

    fn queue_unexpected(&mut self, message: Selector, cookie: Cookie) -> Option<Handle> {
        let record = directory::find_or_add(&self.directory, &mut self.storage, message.source())?;
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

impl<S: Storage<LINKS>, D: Directory> Engine for PerSource<S, D> {
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

/// A posted receive is on one list: its source's, or that of any-source receives.
const CHAIN: usize = 0;
/// The list of all messages in order of arrival.
const ORDER: usize = 0;
/// The list of one source's messages.
const SOURCE: usize = 1;
