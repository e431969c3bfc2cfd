//! The rules of matching in their plainest form; every engine is compared with this one.

use std::collections::VecDeque;

use crate::engine::{ArriveOutcome, CancelOutcome, Engine, PostOutcome, QueueStats, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::storage::Capacity;

/// Two queues in order, searched from the front: obviously right, and slow.
///
/// Unlike the engines it has no storage and its handles are never reused.
#[derive(Debug, Default)]
pub struct Oracle {
    posted: Line<Pattern>,
    unexpected: Line<Envelope>,
}

#[derive(Debug)]
struct Line<T> {
    entries: VecDeque<Entry<T>>,
    capacity: usize,
    stats: QueueStats,
}

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    what: T,
    cookie: Cookie,
    serial: u64,
}

impl Oracle {
    /// An empty oracle with these bounds.
    #[must_use]
    pub fn with_capacity(capacity: Capacity) -> Self {
        Self {
            posted: Line::with_capacity(capacity.posted),
            unexpected: Line::with_capacity(capacity.unexpected),
        }
    }
}

impl Engine for Oracle {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        if let Some(taken) = self.unexpected.take(|message| pattern.accepts(message)) {
            return PostOutcome::Matched(taken.cookie);
        }
        let queued = self.posted.push(pattern, cookie);
        queued.map_or(PostOutcome::Full, PostOutcome::Queued)
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        if let Some(taken) = self.arrive_expected(envelope) {
            return ArriveOutcome::Matched(taken);
        }
        let queued = self.unexpected.push(envelope, cookie);
        queued.map_or(ArriveOutcome::Full, ArriveOutcome::Queued)
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let taken = self.posted.take(|pattern| pattern.accepts(&envelope))?;
        Some(taken.cookie)
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        if self.posted.entries.is_empty() {
            return None;
        }
        self.posted.stats.probes += 1;
        let index = self.posted.find(|pattern| pattern.accepts(&envelope))?;
        Some(self.posted.entries[index].cookie)
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        if self.unexpected.entries.is_empty() {
            return None;
        }
        self.unexpected.stats.probes += 1;
        let index = self.unexpected.find(|message| pattern.accepts(message))?;
        let entry = self.unexpected.entries[index];
        Some((entry.what, entry.cookie))
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let taken = self.unexpected.take(|message| pattern.accepts(message))?;
        Some((taken.what, taken.cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        self.posted.withdraw(handle)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        self.unexpected.withdraw(handle)
    }

    fn posted_len(&self) -> usize {
        self.posted.entries.len()
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected.entries.len()
    }

    fn stats(&self) -> Stats {
        Stats {
            posted: self.posted.stats,
            unexpected: self.unexpected.stats,
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        for entry in &self.posted.entries {
            visit(entry.what, entry.cookie);
        }
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        for entry in &self.unexpected.entries {
            visit(entry.what, entry.cookie);
        }
    }
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self::with_capacity(Capacity::MAX)
    }
}

impl<T> Line<T> {
    fn with_capacity(capacity: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            capacity: capacity as usize,
            stats: QueueStats::default(),
        }
    }
}

impl<T: Copy> Line<T> {
    fn push(&mut self, what: T, cookie: Cookie) -> Option<Handle> {
        if self.entries.len() >= self.capacity {
            return None;
        }
        let serial = self.stats.queued;
        self.entries.push_back(Entry {
            what,
            cookie,
            serial,
        });
        self.stats.queued += 1;
        self.stats.high_water = self.stats.high_water.max(self.entries.len() as u32);
        Some(handle(serial))
    }

    fn find(&mut self, fits: impl Fn(&T) -> bool) -> Option<usize> {
        let index = self.entries.iter().position(|entry| fits(&entry.what));
        let looked = index.map_or(self.entries.len(), |index| index + 1) as u64;
        self.stats.attempts += looked;
        self.stats.deepest = self.stats.deepest.max(Some(looked));
        index
    }

    fn take(&mut self, fits: impl Fn(&T) -> bool) -> Option<Entry<T>> {
        if self.entries.is_empty() {
            return None;
        }
        let index = self.find(fits);
        match index {
            Some(_) => self.stats.hits += 1,
            None => self.stats.misses += 1,
        }
        index.and_then(|index| self.entries.remove(index))
    }

    fn withdraw(&mut self, wanted: Handle) -> CancelOutcome {
        let mut entries = self.entries.iter();
        let index = entries.position(|entry| handle(entry.serial) == wanted);
        match index.and_then(|index| self.entries.remove(index)) {
            Some(entry) => CancelOutcome::Cancelled(entry.cookie),
            None => CancelOutcome::AlreadyMatched,
        }
    }
}

/// The serial number of an entry, as a handle.
const fn handle(serial: u64) -> Handle {
    Handle::from_parts(serial as u32, (serial >> 32) as u32)
}
