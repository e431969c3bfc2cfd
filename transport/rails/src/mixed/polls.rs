//! When networks are looked at beside shared memory.
//!
//! A look at a network is a call of the system, which takes as long as several messages on one host. While
//! shared memory brings messages and no network has anything to do, networks are looked at by the clock.

use std::time::Duration;

use tagwire_base::clock::{Clock, Time};

/// After so many looks in a row that brought nothing from shared memory every look is at the networks too.
const QUIET: u64 = 64;

/// A network with something to do is looked at with every so manieth look. Open MPI's `opal_progress` calls what
/// it holds for slow as rarely.
const BUSY_EVERY: u64 = 8;

/// The clock is read with every so manieth look: a rank that seldom looks still finds what a network brings.
const CLOCK_EVERY: u64 = 8;

/// Looks at a network with nothing to do are so far apart: 0.4 us of 50 us is a hundredth of the time.
const APART: Duration = Duration::from_micros(50);

/// A network has something to do until so many looks at it in a row brought nothing.
const BUSY_FOR: u32 = 16;

/// The rhythm of looks at networks.
#[derive(Debug)]
pub(super) struct Polls {
    clock: Clock,
    /// Looks at shared memory so far.
    looks: u64,
    /// The last look that brought something.
    fruitful: u64,
    /// The look with which networks are considered next.
    next: u64,
    /// Fruitless looks at networks after which they have nothing to do.
    busy: u32,
    last: Time,
}

impl Polls {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            last: clock.now(),
            clock,
            looks: QUIET,
            fruitful: 0,
            next: 0,
            busy: 0,
        }
    }

    /// Returns whether this look, which brought nothing from shared memory, is at the networks too.
    #[inline(always)]
    pub(super) fn is_due(&mut self) -> bool {
        self.looks += 1;
        self.looks >= self.next && self.consider()
    }

    /// The same of a look that brought something.
    #[inline(always)]
    pub(super) fn is_due_after_events(&mut self) -> bool {
        self.fruitful = self.looks + 1;
        self.is_due()
    }

    #[cold]
    fn consider(&mut self) -> bool {
        let (quiet, busy) = (self.fruitful + QUIET, self.busy > 0);
        if self.looks >= quiet {
            return true;
        }
        let wait = if busy { BUSY_EVERY } else { CLOCK_EVERY };
        self.next = quiet.min(self.looks + wait);
        if busy {
            return true;
        }
        let now = self.clock.now();
        let is_due = now.since(self.last) >= APART;
        if is_due {
            self.last = now;
        }
        is_due
    }

    /// Takes note that the networks brought `events`.
    pub(super) fn looked(&mut self, events: usize) {
        self.busy = match events {
            0 => self.busy.saturating_sub(1),
            _ => BUSY_FOR,
        };
    }

    /// Takes note that something was given to a network, whose end is to be found soon.
    #[inline]
    pub(super) fn posted(&mut self) {
        self.busy = BUSY_FOR;
        self.next = self.looks;
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::clock::ManualClock;

    use super::*;

    /// How many of `looks` that bring `events` from shared memory are at the networks too.
    fn due(polls: &mut Polls, looks: u64, events: usize) -> usize {
        let is_due = match events {
            0 => Polls::is_due,
            _ => Polls::is_due_after_events,
        };
        (0..looks).filter(|_| is_due(polls)).count()
    }

    #[test]
    fn silence_on_the_host_leaves_all_looks_to_the_network() {
        let mut polls = Polls::new(ManualClock::default().clock());
        assert_eq!(due(&mut polls, 100, 0), 100);
        assert_eq!(due(&mut polls, 1, 1), 0);
        assert_eq!(due(&mut polls, QUIET - 1, 0), 0);
        assert_eq!(due(&mut polls, 100, 0), 100);
    }

    #[test]
    fn a_network_with_nothing_to_do_is_looked_at_by_the_clock() {
        let clock = ManualClock::default();
        let mut polls = Polls::new(clock.clock());
        assert_eq!(due(&mut polls, 1000, 1), 0);
        clock.advance(APART);
        assert_eq!(due(&mut polls, CLOCK_EVERY, 1), 1);
        assert_eq!(due(&mut polls, 1000, 1), 0);
    }

    #[test]
    fn a_network_with_something_to_do_is_looked_at_often() {
        let mut polls = Polls::new(ManualClock::default().clock());
        due(&mut polls, 1, 1);
        polls.posted();
        assert!(polls.is_due_after_events(), "at once after a post");
        for _ in 0..BUSY_FOR {
            polls.looked(0);
            assert!(due(&mut polls, BUSY_EVERY, 1) <= 1);
        }
        assert_eq!(due(&mut polls, 1000, 1), 0, "nothing came: it is idle");
        polls.posted();
        polls.looked(1);
        assert_eq!(due(&mut polls, 10 * BUSY_EVERY, 1), 10);
    }
}
