//! When a caller that is never idle looks at the clock.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many calls there are from one look to the next, which costs as much as an empty test. Who tests at least every 50 ms hears
/// of a death within a second.
const CALLS_PER_CLOCK: u32 = 16;

/// The calls of a rank. Threads may lose some to each other: it is a rhythm, no sum.
#[derive(Debug, Default)]
pub(super) struct Rhythm(AtomicU32);

impl Rhythm {
    /// Counts a call. Returns whether it is one that looks at the clock.
    #[inline(always)]
    pub(super) fn count(&self) -> bool {
        let calls = self.next();
        self.0.store(calls, Ordering::Relaxed);
        calls.is_multiple_of(CALLS_PER_CLOCK)
    }

    /// Counts a call, but for one that looks at the clock: returns whether it is none.
    #[inline(always)]
    pub(super) fn count_unless_due(&self) -> bool {
        let calls = self.next();
        let is_due = calls.is_multiple_of(CALLS_PER_CLOCK);
        if !is_due {
            self.0.store(calls, Ordering::Relaxed);
        }
        !is_due
    }

    #[inline(always)]
    fn next(&self) -> u32 {
        self.0.load(Ordering::Relaxed).wrapping_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_due_stays_due_until_it_counts() {
        let rhythm = Rhythm::default();
        for _ in 1..CALLS_PER_CLOCK {
            assert!(rhythm.count_unless_due());
        }
        assert!(!rhythm.count_unless_due());
        assert!(!rhythm.count_unless_due());
        assert!(rhythm.count());
        assert!(!rhythm.count());
    }
}
