//! An engine that changes its structure with the traffic: a list, lists for each source, or hash bins.
//!
//! After Bayatpour and others (Adaptive and dynamic design for MPI tag matching, CLUSTER 2016), who choose among a list, bins
//! and queues for each rank at run time, in each process. Their thresholds are not in what is public of the paper: these are
//! ours. Over a window of searches, a list that looks at more than `up` entries a search on the average gives way to lists for
//! each source where the queued receives have more than a source for every four, else to bins. Both give way to a list where
//! the queues that were searched had less than `up` / 4 entries on the average, so that a list cannot look at more.
//!
//! A move gives every entry to the new structure in the order in which it was queued; handles stay the same.

use std::collections::BTreeSet;
use std::fmt;

use tagwire_base::ContextId;
use tagwire_base::named::{Named, Parameter, Spec};

use super::ordered::Line;
use crate::bins::{self, HashBins};
use crate::description::{Description, Grade};
use crate::engine::{
    ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, QueueStats, Stats,
};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::list::{self, PlainList};
use crate::sources::{self, PerSource};
use crate::storage::{Capacity, Cells, Private};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "adaptive",
        parameters: &[
            Parameter::number(
                "up",
                8,
                1..=1 << 20,
                "entries that a list may look at in a search on the average",
            ),
            Parameter::number(
                "window",
                1024,
                1..=1 << 24,
                "searches after which the structure is chosen again",
            ),
        ],
    },
    about: "a list, lists for each source, or hash bins, by what searches look at",
    source: "Bayatpour and others, CLUSTER 2016; the thresholds are ours",
    limits: "a move costs what it takes to queue all entries again; between moves its structure's limits hold; its own record of \
             each entry is not counted in lines",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    Box::new(Adaptive {
        receives: Line::new(0, capacity.posted),
        messages: Line::new(0, capacity.unexpected),
        counts: [Counts::default(); 2],
        promises: Vec::new(),
        structure: Structure::List,
        inner: open_structure::<C>(Structure::List, capacity),
        open: open_structure::<C>,
        capacity,
        up: u64::from(spec.number("up")),
        window: u64::from(spec.number("window")),
        seen: Window::default(),
    })
}

/// What holds the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structure {
    List,
    Source,
    Bins,
}

fn open_structure<C: Cells>(structure: Structure, capacity: Capacity) -> Box<dyn Engine + Send> {
    match structure {
        Structure::List => {
            let storage = Private::<{ list::LINKS }, C>::new(capacity);
            Box::new(PlainList::new(storage))
        }
        Structure::Source => {
            let storage = Private::<{ sources::LINKS }, C>::new(capacity);
            Box::new(PerSource::new(storage))
        }
        Structure::Bins => {
            let storage = Private::<{ bins::LINKS }, C>::new(capacity);
            Box::new(HashBins::new(storage))
        }
    }
}

struct Adaptive {
    receives: Line<Pattern>,
    messages: Line<Envelope>,
    /// Of the searches among receives, and among messages.
    counts: [Counts; 2],
    /// What was promised of contexts, for the next structure.
    promises: Vec<(ContextId, ContextAssertions)>,
    structure: Structure,
    inner: Box<dyn Engine + Send>,
    open: fn(Structure, Capacity) -> Box<dyn Engine + Send>,
    capacity: Capacity,
    /// Entries that a search may look at on the average.
    up: u64,
    /// Searches of a window.
    window: u64,
    seen: Window,
}

impl fmt::Debug for Adaptive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Adaptive");
        shown.field("structure", &self.structure);
        shown.finish_non_exhaustive()
    }
}

/// What searches of one queue have done.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    hits: u64,
    misses: u64,
    probes: u64,
    /// Entries that structures of before have looked at, less those that the present one had when it took over.
    before: u64,
    /// The most that one search in them looked at.
    deepest: Option<u64>,
}

/// What there was since the structure was last chosen.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    searches: u64,
    /// Entries of the queues that were searched, summed up.
    lengths: u64,
    /// What the structure had looked at when the window began.
    attempts: u64,
}

/// The queues, as places in the counts.
const RECEIVES: usize = 0;
const MESSAGES: usize = 1;

impl Adaptive {
    /// Counts a search of a queue that had so many entries.
    fn searched(&mut self, queue: usize, entries: u32, is_hit: bool) {
        if entries == 0 {
            return;
        }
        match is_hit {
            true => self.counts[queue].hits += 1,
            false => self.counts[queue].misses += 1,
        }
        self.passed(entries);
    }

    fn probed(&mut self, queue: usize, entries: u32) {
        if entries == 0 {
            return;
        }
        self.counts[queue].probes += 1;
        self.passed(entries);
    }

    /// Ends the window after its last search, and chooses the structure for the next one.
    fn passed(&mut self, entries: u32) {
        self.seen.searches += 1;
        self.seen.lengths += u64::from(entries);
        if self.seen.searches < self.window {
            return;
        }
        let looked = self.inner.stats().attempts() - self.seen.attempts;
        let next = match self.structure {
            Structure::List if looked > self.up * self.seen.searches => self.better_than_list(),
            Structure::Source | Structure::Bins
                if 4 * self.seen.lengths < self.up * self.seen.searches =>
            {
                Structure::List
            }
            same => same,
        };
        if next != self.structure {
            self.move_to(next);
        }
        self.seen = Window {
            attempts: self.inner.stats().attempts(),
            ..Window::default()
        };
    }

    fn better_than_list(&self) -> Structure {
        let mut sources = BTreeSet::new();
        let mut note = |pattern: Pattern, _| {
            sources.extend(pattern.source.rank().map(|rank| rank.as_u32()));
        };
        self.receives.visit(&mut note);
        match 4 * sources.len() > self.receives.len() as usize {
            true => Structure::Source,
            false => Structure::Bins,
        }
    }

    /// Gives all entries to another structure.
    fn move_to(&mut self, structure: Structure) {
        let mut next = (self.open)(structure, self.capacity);
        for (context, promise) in &self.promises {
            next.set_assertions(*context, *promise);
        }
        // No receive accepts a message that is queued, so that all are queued again.
        for slot in self.receives.slots() {
            let Some((pattern, _)) = self.receives.entry(slot) else {
                continue;
            };
            if let PostOutcome::Queued(handle) = next.post(pattern, Cookie(slot)) {
                self.receives.rename(slot, handle);
            }
        }
        for slot in self.messages.slots() {
            let Some((envelope, _)) = self.messages.entry(slot) else {
                continue;
            };
            if let ArriveOutcome::Queued(handle) = next.arrive(envelope, Cookie(slot)) {
                self.messages.rename(slot, handle);
            }
        }
        debug_assert!(
            next.posted_len() == self.receives.len() as usize
                && next.unexpected_len() == self.messages.len() as usize,
            "an entry was lost in a move"
        );
        let (old, new) = (self.inner.stats(), next.stats());
        let queues = [(old.posted, new.posted), (old.unexpected, new.unexpected)];
        for (counts, (old, new)) in self.counts.iter_mut().zip(queues) {
            let looked = counts.before.wrapping_add(old.attempts);
            counts.before = looked.wrapping_sub(new.attempts);
            counts.deepest = counts.deepest.max(old.deepest);
        }
        (self.inner, self.structure) = (next, structure);
    }

    fn take_receive(&mut self, slot: u32) -> Option<Cookie> {
        Some(self.receives.remove(slot)?.cookie)
    }

    fn take_message(&mut self, slot: u32) -> Option<(Envelope, Cookie)> {
        let left = self.messages.remove(slot)?;
        Some((left.what, left.cookie))
    }
}

impl Engine for Adaptive {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let entries = self.messages.len();
        let slot = Cookie(self.receives.next_slot());
        let outcome = match self.inner.post(pattern, slot) {
            PostOutcome::Matched(Cookie(slot)) => match self.take_message(slot) {
                Some((_, taken)) => PostOutcome::Matched(taken),
                None => PostOutcome::Full,
            },
            PostOutcome::Queued(handle) => {
                PostOutcome::Queued(self.receives.push(pattern, cookie, Some(handle)))
            }
            PostOutcome::Full => PostOutcome::Full,
        };
        let is_hit = matches!(outcome, PostOutcome::Matched(_));
        self.searched(MESSAGES, entries, is_hit);
        outcome
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        let entries = self.receives.len();
        let slot = Cookie(self.messages.next_slot());
        let outcome = match self.inner.arrive(envelope, slot) {
            ArriveOutcome::Matched(Cookie(slot)) => match self.take_receive(slot) {
                Some(taken) => ArriveOutcome::Matched(taken),
                None => ArriveOutcome::Full,
            },
            ArriveOutcome::Queued(handle) => {
                ArriveOutcome::Queued(self.messages.push(envelope, cookie, Some(handle)))
            }
            ArriveOutcome::Full => ArriveOutcome::Full,
        };
        let is_hit = matches!(outcome, ArriveOutcome::Matched(_));
        self.searched(RECEIVES, entries, is_hit);
        outcome
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let entries = self.receives.len();
        let taken = self.inner.arrive_expected(envelope);
        let taken = taken.and_then(|Cookie(slot)| self.take_receive(slot));
        self.searched(RECEIVES, entries, taken.is_some());
        taken
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let found = self.inner.expects(envelope);
        let found = found.and_then(|Cookie(slot)| self.receives.entry(slot));
        self.probed(RECEIVES, self.receives.len());
        Some(found?.1)
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let found = self.inner.probe(pattern);
        let found = found.and_then(|(_, Cookie(slot))| self.messages.entry(slot));
        self.probed(MESSAGES, self.messages.len());
        found
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let entries = self.messages.len();
        let taken = self.inner.claim(pattern);
        let taken = taken.and_then(|(_, Cookie(slot))| self.take_message(slot));
        self.searched(MESSAGES, entries, taken.is_some());
        taken
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let receives = &mut self.receives;
        let slot = receives.named(handle);
        let Some(left) = slot.and_then(|slot| receives.remove(slot)) else {
            return CancelOutcome::AlreadyMatched;
        };
        if let Some(inner) = left.inner {
            let _ = self.inner.cancel(inner);
        }
        CancelOutcome::Cancelled(left.cookie)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let messages = &mut self.messages;
        let slot = messages.named(handle);
        let Some(left) = slot.and_then(|slot| messages.remove(slot)) else {
            return CancelOutcome::AlreadyMatched;
        };
        if let Some(inner) = left.inner {
            let _ = self.inner.discard(inner);
        }
        CancelOutcome::Cancelled(left.cookie)
    }

    fn posted_len(&self) -> usize {
        self.receives.len() as usize
    }

    fn unexpected_len(&self) -> usize {
        self.messages.len() as usize
    }

    fn stats(&self) -> Stats {
        let inner = self.inner.stats();
        let of = |queue: usize, entries: QueueStats, inner: QueueStats| {
            let counts = self.counts[queue];
            QueueStats {
                hits: counts.hits,
                misses: counts.misses,
                probes: counts.probes,
                attempts: counts.before.wrapping_add(inner.attempts),
                deepest: counts.deepest.max(inner.deepest),
                ..entries
            }
        };
        Stats {
            posted: of(RECEIVES, self.receives.stats(), inner.posted),
            unexpected: of(MESSAGES, self.messages.stats(), inner.unexpected),
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.receives.visit(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.messages.visit(visit);
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        self.promises.retain(|(other, _)| *other != context);
        self.promises.push((context, assertions));
        self.inner.set_assertions(context, assertions);
    }
}
