//! Which ranges of memory are watched: a table that one reader of events and any number of owners share without a lock.
//!
//! ```text
//!  owner     enter(range) ── watch it ── register it with the provider ── use it ... ── is_whole? ── use it
//!  kernel                                              range changes: `changing` + 1, event queued ┐
//!  reader                             round odd ── event read: `changing` - 1 ── slot ended ── round even
//! ```
//!
//! The reader waits for nobody, so whoever changes memory waits for the reader alone, whatever locks it holds: an allocator
//! may return memory to the system in the middle of a look-up, and so may a signal handler.

use std::ops::Range;

use super::sync::{AtomicU64, AtomicUsize, DISCARDED, LOOKS, Ordering, fence, yield_now};

/// What became of memory that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// It was unmapped, also by another mapping in its place.
    Unmapped(Range<usize>),
    /// It was moved elsewhere, in the place of what was there.
    Moved {
        from: Range<usize>,
        to: Range<usize>,
    },
    /// It stays mapped, but its pages are given back, right after this is read.
    Discarded(Range<usize>),
}

/// A range, or nothing where it ends at 0.
#[derive(Debug, Default)]
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Slot {
    fn range(&self) -> Range<usize> {
        let end = self.end.load(Ordering::Acquire);
        self.start.load(Ordering::Acquire).min(end)..end
    }

    fn set(&self, range: &Range<usize>) {
        self.start.store(range.start, Ordering::Release);
        self.end.store(range.end, Ordering::Release);
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// All ranges of the process that are watched.
#[derive(Debug)]
pub(super) struct Ranges {
    /// Odd while the reader reads events and ends slots.
    round: AtomicU64,
    /// Slots that events have ended.
    ended: AtomicU64,
    slots: Box<[Slot]>,
    /// Slots from here on were never used.
    used: AtomicUsize,
    /// Ranges whose pages were given back while they stay mapped; only the reader writes them. Such an event comes before the pages go,
    /// and nothing says when they are gone: what is registered in between would keep the old ones. So nothing in them is watched
    /// again before it is unmapped.
    discarded: [Slot; DISCARDED],
}

impl Ranges {
    pub(super) fn new(count: usize) -> Self {
        Self {
            round: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            slots: (0..count).map(|_| Slot::default()).collect(),
            used: AtomicUsize::new(0),
            discarded: std::array::from_fn(|_| Slot::default()),
        }
    }

    /// Enters a range in a slot that its owner has for itself. Events that are read from now on end it.
    pub(super) fn enter(&self, slot: usize, range: &Range<usize>) {
        self.slots[slot].set(range);
        self.used.fetch_max(slot + 1, Ordering::Release);
    }

    /// Empties a slot.
    pub(super) fn leave(&self, slot: usize) {
        self.slots[slot].end.store(0, Ordering::Release);
    }

    /// Returns whether no event that was read has ended the slot.
    pub(super) fn is_whole(&self, slot: usize) -> bool {
        self.slots[slot].end.load(Ordering::Acquire) != 0
    }

    /// Returns how many slots events have ended so far.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns what `look` returns, where no event was read meanwhile; `None` where there was no such moment in a while.
    ///
    /// An event is read in an odd round, which ends after the slots. Where `look` sees that an event was read, that round had begun: with
    /// the same even round before and after, it had ended before `look` as well, and the slots that it ended are seen to be.
    pub(super) fn settled<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        for _ in 0..LOOKS {
            let round = self.round.load(Ordering::SeqCst);
            if round.is_multiple_of(2)
                && let Some(seen) = look()
            {
                fence(Ordering::SeqCst);
                if self.round.load(Ordering::SeqCst) == round {
                    return Some(seen);
                }
            }
            yield_now();
        }
        None
    }

    /// Returns whether pages of a range that was entered were discarded, or may have been. A round in which they are either sees the slot,
    /// or is seen to have begun.
    pub(super) fn is_discarded(&self, range: &Range<usize>) -> bool {
        let found = || {
            Some(
                self.discarded
                    .iter()
                    .any(|one| overlap(&one.range(), range)),
            )
        };
        self.settled(found).unwrap_or(true)
    }

    /// Calls `each` with the parts of `range` that no slot has, and that were not discarded: the unmapping of those is waited for.
    pub(super) fn uncovered(&self, range: &Range<usize>, mut each: impl FnMut(Range<usize>)) {
        let used = self.used.load(Ordering::Acquire);
        let mut rest = range.clone();
        while !rest.is_empty() {
            let first = self.slots[..used]
                .iter()
                .chain(&self.discarded)
                .map(Slot::range)
                .filter(|other| overlap(other, &rest))
                .min_by_key(|other| other.start)
                .unwrap_or(rest.end..rest.end);
            if rest.start < first.start {
                each(rest.start..first.start);
            }
            rest.start = first.end.min(rest.end);
        }
    }

    /// Has `read` read what has changed, and ends the slots of that. One thread calls this, which neither allocates nor frees meanwhile.
    pub(super) fn take(&self, read: impl FnOnce(&mut dyn FnMut(Change))) {
        self.round.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        read(&mut |change| match change {
            Change::Unmapped(range) => {
                self.end(&range);
                self.unlist(&range);
            }
            Change::Moved { from, to } => {
                self.end(&from);
                self.end(&to);
                self.unlist(&from);
            }
            Change::Discarded(range) => {
                self.list(&range);
                self.end(&range);
            }
        });
        self.round.fetch_add(1, Ordering::SeqCst);
    }

    fn end(&self, range: &Range<usize>) {
        let used = self.used.load(Ordering::Acquire);
        for slot in &self.slots[..used] {
            let own = slot.range();
            // Its owner may have entered another range meanwhile, which this event is not about.
            if overlap(&own, range)
                && slot
                    .end
                    .compare_exchange(own.end, 0, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                self.ended.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Adds a discarded range: to the one that grows least by it, where there is no empty place.
    fn list(&self, range: &Range<usize>) {
        let joined = |own: Range<usize>| match own.is_empty() {
            true => range.clone(),
            false => own.start.min(range.start)..own.end.max(range.end),
        };
        let growth = |slot: &&Slot| joined(slot.range()).len() - slot.range().len();
        if let Some(place) = self.discarded.iter().min_by_key(growth) {
            place.set(&joined(place.range()));
        }
    }

    /// Takes what was unmapped off the discarded ranges, but for the middle of one.
    fn unlist(&self, range: &Range<usize>) {
        for slot in &self.discarded {
            let own = slot.range();
            if !overlap(&own, range) {
                continue;
            }
            match (range.start <= own.start, range.end >= own.end) {
                (true, true) => slot.end.store(0, Ordering::Release),
                (true, false) => slot.start.store(range.end, Ordering::Release),
                (false, true) => slot.end.store(range.start, Ordering::Release),
                (false, false) => {}
            }
        }
    }
}
