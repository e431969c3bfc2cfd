//! The threads of a rank: up to when each is busy, and which of them is in the library.

use crate::time::{Moment, Span};

/// Which thread of a rank; 0 is the one that opened it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber(pub(crate) u32);

/// A thread.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Thread {
    /// Up to when it was busy.
    pub(crate) local: Moment,
    /// It is in the queue to go on.
    pub(crate) is_scheduled: bool,
    /// It computes: what comes does not make it go on.
    pub(crate) is_computing: bool,
}

/// The threads of a rank, and the lock of its library, which one of them has at a time.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    first: Thread,
    others: Vec<Thread>,
    /// The one that runs, or ran last.
    turn: ThreadNumber,
    /// When the library is free again.
    free: Moment,
}

impl Threads {
    /// Opens one more, and returns its number.
    pub(crate) fn add(&mut self, now: Moment) -> ThreadNumber {
        self.others.push(Thread {
            local: now,
            ..Thread::default()
        });
        ThreadNumber(self.others.len() as u32)
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> u32 {
        self.others.len() as u32 + 1
    }

    /// Returns one. Numbers come from [`add`](Self::add).
    pub(crate) fn at(&mut self, number: ThreadNumber) -> &mut Thread {
        match number.0 {
            0 => &mut self.first,
            other => &mut self.others[other as usize - 1],
        }
    }

    /// It is the turn of a thread.
    pub(crate) const fn turn_to(&mut self, number: ThreadNumber) {
        self.turn = number;
    }

    /// Returns the thread whose turn it is.
    pub(crate) fn current(&mut self) -> &mut Thread {
        self.at(self.turn)
    }

    /// Returns the number of the thread whose turn it is.
    pub(crate) const fn turn(&self) -> ThreadNumber {
        self.turn
    }

    /// The thread whose turn it is works for `span` in the library from `now` on, or from when it is free. Where another thread is in
    /// there, it waits for it, and then for `handover`. Returns when it is done.
    pub(crate) fn enter_library(&mut self, now: Moment, span: Span, handover: Span) -> Moment {
        let free = self.free;
        let is_alone = self.others.is_empty();
        let thread = self.current();
        let mut begin = thread.local.max(now);
        if !is_alone && begin < free {
            begin = free + handover;
        }
        thread.local = begin + span;
        self.free = begin + span;
        begin + span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::default() + Span::nanos(nanos)
    }

    #[test]
    fn one_thread_at_a_time_is_in_the_library() {
        let mut threads = Threads::default();
        let (own, over) = (Span::nanos(10), Span::nanos(3));
        assert_eq!(threads.enter_library(at(5), own, over), at(15));
        // Alone it hands over to nobody.
        assert_eq!(threads.enter_library(at(5), own, over), at(25));
        let second = threads.add(at(0));
        threads.turn_to(second);
        assert_eq!(threads.enter_library(at(20), own, over), at(38));
        threads.turn_to(ThreadNumber(0));
        assert_eq!(threads.enter_library(at(30), own, over), at(51));
        // What is free is entered at once.
        assert_eq!(threads.enter_library(at(100), own, over), at(110));
        assert_eq!(threads.count(), 2);
    }
}
