//! The end of contact, where the words that end it may be lost.
//!
//! ```text
//!     leaves                                       stays, or leaves later
//!        ── goodbye, until it is acknowledged ──────> Left is told
//!        <─────────────────────────────────── note ──
//!        ── final note ──────────────────────────────> nothing is waited for
//!
//!     gives up                                     was given up
//!        ── end, until there is a reply ─────────────> Failed is told
//!        <──────────────────────────────────── end ──
//! ```
//!
//! - **A rank that leaves** waits until each peer has acknowledged all that was sent to it, with the goodbye behind it.
//! - **A peer that has said goodbye** does not know that it was heard if the note is lost. A rank that leaves after it goes on answering
//!   until the final note has come. The final note may be lost too: then it asks for another, and leaves when nothing came for
//!   [`DrOptions::disconnect_timeout`](crate::DrOptions::disconnect_timeout).
//! - **A peer that was given up** is told so at once, and again for each packet that it sends, for as long as this rank is there.

use std::time::Duration;

use tagwire_base::Time;

/// The longest time between two of the same last words.
const LONGEST: Duration = Duration::from_millis(200);

/// What is to be done about last words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saying {
    /// There is nothing to do yet.
    Nothing,
    /// They are to be said.
    Now,
    /// The peer was silent for so long that it counts as gone.
    Over,
}

/// What is said to a peer until it replies, or has been silent for so long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastWords {
    next: Time,
    /// The time between those said last and the next.
    wait: Duration,
    /// When a peer of which nothing comes counts as gone.
    until: Time,
}

impl LastWords {
    /// Returns words that are said from `next` on, with `wait` between the first two.
    pub(crate) const fn new(next: Time, wait: Duration) -> Self {
        Self {
            next,
            wait,
            until: next,
        }
    }

    /// Something came of the peer at `heard`: it is there, and does not know yet. It counts as gone `linger` later.
    pub(crate) fn heard(&mut self, heard: Time, linger: Duration) {
        self.until = heard + linger;
    }

    /// Looks at the timers.
    pub(crate) fn tick(&mut self, now: Time) -> Saying {
        if now >= self.until {
            return Saying::Over;
        }
        if now < self.next {
            return Saying::Nothing;
        }
        self.next = now + self.wait;
        self.wait = (2 * self.wait).min(LONGEST);
        Saying::Now
    }

    /// Returns when there is something to do although nothing comes.
    pub(crate) fn deadline(&self) -> Time {
        self.next.min(self.until)
    }
}

/// The goodbye of this rank, once it is said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Farewell {
    /// When peers are waited for no more.
    pub(crate) until: Time,
    /// When who drops the rank waits for them no more.
    pub(crate) dropped_until: Time,
    /// Peers have what was sent to them, or are waited for no more: the transport inside leaves.
    pub(crate) is_heard: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(millis: u64) -> Time {
        Time::default() + MS(millis)
    }

    #[test]
    fn words_are_said_less_and_less_often_and_end() {
        let mut words = LastWords::new(at(0), MS(50));
        words.heard(at(0), MS(1000));
        let mut said = Vec::new();
        for millis in 0..=2000 {
            match words.tick(at(millis)) {
                Saying::Nothing => {}
                Saying::Now => said.push(millis),
                Saying::Over => {
                    assert_eq!(millis, 1000);
                    break;
                }
            }
        }
        assert_eq!(said, [0, 50, 150, 350, 550, 750, 950]);
        assert_eq!(words.tick(at(1001)), Saying::Over);
    }

    #[test]
    fn a_peer_that_is_heard_is_there() {
        let mut words = LastWords::new(at(0), MS(50));
        words.heard(at(0), MS(1000));
        assert_eq!(words.tick(at(0)), Saying::Now);
        assert_eq!(words.deadline(), at(50));
        words.heard(at(900), MS(1000));
        assert_eq!(words.tick(at(1500)), Saying::Now);
        assert_eq!(words.tick(at(1900)), Saying::Over);
    }
}
