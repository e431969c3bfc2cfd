//! The default engine: a list while matches are in front, hash bins once a search looks far.

mod arrival;
#[cfg(feature = "engines")]
mod chosen;
mod hash;
mod posted;
mod told;
mod unexpected;

use std::fmt::Debug;

use tagwire_base::ContextId;
use tagwire_base::named::{Named, Spec};

use crate::description::{Description, Grade};
use crate::engine::{ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
#[cfg(feature = "engines")]
use crate::recorded::Quick;
use crate::storage::{Capacity, Cells, Private, Selector, Storage, Table, Word};

pub(crate) use hash::hash;
use told::Told;

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "bins",
        #[cfg(not(feature = "engines"))]
        parameters: &[],
        #[cfg(feature = "engines")]
        parameters: chosen::PARAMETERS,
    },
    about: "one list for each queue; hash bins by context, source and tag once a search looks far",
    source: "ours; a wildcard receive lies in the bin of its own pattern",
    limits: "two receives that stay posted for ever keep a queue in bins; tags that are chosen to collide make one bin long",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let storage = Private::<LINKS, C>::new(capacity);
    #[cfg(feature = "engines")]
    if !spec.is_plain() {
        return Box::new(HashBins::of(storage, chosen::Chosen::new(spec)));
    }
    let _ = spec;
    Box::new(HashBins::new(storage))
}

/// Keeps a queue as a list while searches find what they want in front, else in bins keyed by
/// context, source and tag.
///
/// A queue begins as one list in order. Nothing beats that as long as the match is among the first
/// few ([`FEW`], [`FEW_UNEXPECTED`]), which it is, at any depth, when messages come in the order of
/// their receives. The first search that has to look further moves the entries to bins. The queue of
/// messages is a list again when it has drained, that of receives when one is left: a receive that
/// stays for ever does not keep it in bins. So an entry is moved twice at most, and the cost of a
/// search is bounded.
///
/// A posted receive lies in the bin of its own *pattern*, wildcards being values like any other. A
/// message with source `s` and tag `t` can be taken by four patterns only: `(s,t)`, `(any,t)`,
/// `(s,any)` and `(any,any)`. So an arrival looks into at most four bins, of which it skips the
/// kinds of wildcard that nobody has posted, and the earliest of what it finds wins. The number of
/// wildcards, and where they stand, costs nothing.
///
/// Unexpected messages are in a list in order of arrival. Beside it there are up to four indexes,
/// one for each kind of receive: exact, any-source (by tag), any-tag (by source), and both (by
/// context). Each is made by the first receive of its kind that would have to look far, and kept up
/// from then until the queue drains. The two that serve any-tag leave internal messages out.
#[derive(Debug)]
pub struct HashBins<S = Private<LINKS>, B = Fixed> {
    storage: S,
    bounds: B,
    /// How many bins the tables hold, less one: derived from the storage, never read from it.
    posted_mask: usize,
    unexpected_mask: usize,
}

impl HashBins {
    /// An empty engine in private memory.
    #[must_use]
    pub fn with_capacity(capacity: Capacity) -> Self {
        Self::new(Private::new(capacity))
    }
}

impl<S: Storage<LINKS>> HashBins<S> {
    /// An empty engine over `storage`, whatever that held before.
    ///
    /// The first table holds the bins of posted receives, the second four times as many words as
    /// it has bins for unexpected messages. Storage that cannot grow should bring about as many
    /// bins as entries; with no tables at all the engine is a plain list.
    pub fn new(storage: S) -> Self {
        Self::of(storage, Fixed)
    }

    /// Goes on with the engine whose state is in `storage`.
    pub fn attach(storage: S) -> Self {
        Self::over(storage, Fixed)
    }
}

impl<S: Storage<LINKS>, B: Bounds> HashBins<S, B> {
    fn of(storage: S, bounds: B) -> Self {
        storage.control().reset();
        for table in [Table::First, Table::Second] {
            clear(storage.table(table));
        }
        Self::over(storage, bounds)
    }

    fn over(storage: S, bounds: B) -> Self {
        let mut engine = Self {
            storage,
            bounds,
            posted_mask: 0,
            unexpected_mask: 0,
        };
        engine.measure();
        engine
    }

    /// Derives the masks from the tables.
    fn measure(&mut self) {
        self.posted_mask = mask(self.storage.table(Table::First).len());
        self.unexpected_mask = mask(self.storage.table(Table::Second).len() / INDEXES);
    }
}

impl<S: Storage<LINKS>, B: Bounds> Engine for HashBins<S, B> {
    // The three calls of the hot path are inlined always: each is some forty instructions, and
    // leaves the rest to one tail call.
    #[inline(always)]
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        self.post_receive(Selector::of_receive(pattern), cookie)
    }

    #[inline(always)]
    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        let message = Selector::of_message(envelope);
        match self.take_first_posted(message) {
            Some(taken) => ArriveOutcome::Matched(taken),
            None => self.arrive_at_length(message, cookie).into_arrival(),
        }
    }

    #[inline(always)]
    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let message = Selector::of_message(envelope);
        match self.take_first_posted(message) {
            Some(taken) => Some(taken),
            None => self.search_posted(message),
        }
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.probe_posted(Selector::of_message(envelope))
    }

    #[inline]
    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (message, cookie) = self.probe_unexpected(Selector::of_receive(pattern))?;
        Some((message.envelope()?, cookie))
    }

    #[inline]
    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (message, cookie) = self.take_unexpected(Selector::of_receive(pattern))?;
        Some((message.envelope()?, cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        self.posted().withdrawn(self.withdraw_posted(handle))
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        self.unexpected()
            .withdrawn(self.withdraw_unexpected(handle))
    }

    #[inline]
    fn posted_len(&self) -> usize {
        self.posted().len() as usize
    }

    #[inline]
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
        self.visit_unexpected(visit);
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        self.promise(context, assertions);
    }
}

#[cfg(feature = "engines")]
impl<S: Storage<LINKS>, B: Bounds> Quick for HashBins<S, B> {
    #[inline(always)]
    fn post_quickly(
        &mut self,
        pattern: Pattern,
        cookie: Cookie,
        note: impl FnOnce() -> bool,
    ) -> Option<Handle> {
        self.list_receive(Selector::of_receive(pattern), cookie, note)
    }

    #[inline(always)]
    fn take_quickly(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.take_first_posted(Selector::of_message(envelope))
    }
}

/// When lists get bins, and how many.
pub trait Bounds: Copy + Debug {
    /// An arrival looks at this many receives of a list before the list gets bins.
    fn few(self) -> usize;

    /// A receive looks at this many messages of the list before there is an index.
    fn few_unexpected(self) -> usize;

    /// How many bins a queue gets when it first needs some.
    fn first_bins(self) -> usize;
}

/// The bounds of jobs: [`FEW`], [`FEW_UNEXPECTED`] and 64 bins.
#[derive(Debug, Clone, Copy)]
pub struct Fixed;

impl Bounds for Fixed {
    #[inline(always)]
    fn few(self) -> usize {
        FEW
    }

    #[inline(always)]
    fn few_unexpected(self) -> usize {
        FEW_UNEXPECTED
    }

    #[inline(always)]
    fn first_bins(self) -> usize {
        FIRST_BINS
    }
}

/// The largest mask whose values all index `bins` bins.
fn mask(bins: usize) -> usize {
    bins.checked_ilog2().map_or(0, |bits| (1 << bits) - 1)
}

fn clear<W: Word<u32>>(heads: &[W]) {
    heads
        .iter()
        .for_each(|head| head.store(crate::storage::NIL));
}

/// How many lists an unexpected message may be on: arrival order, and one for each index.
pub const LINKS: usize = 1 + INDEXES;

/// An arrival looks at this many receives of a list before the list gets bins. Measured:
/// `docs/matching.md`.
pub const FEW: usize = 4;

/// A receive looks at this many messages of the list before there is an index: more, since a
/// message is then on two lists.
pub const FEW_UNEXPECTED: usize = 16;

/// Indexes over the unexpected messages: one for each kind of receive.
const INDEXES: usize = 4;

/// How many bins a queue gets when it first needs some. A power of two.
const FIRST_BINS: usize = 64;
