//! What comes from one peer: put in order, and acknowledged.

use std::time::Duration;

use tagwire_base::Time;

use crate::window::{Incoming, Seen, Turn, WINDOW};
use crate::wire::Kind;

/// Messages after which the sender is told, where nothing goes back that could tell it.
const TELL_AFTER: u32 = WINDOW / 4;

/// Early messages after which the sender is told what is missing.
const EARLY: u32 = 3;

/// The same for those that follow.
const EARLY_AGAIN: u32 = 8;

/// After this time what is missing is overdue, and no sooner than after two round trips.
const OVERDUE: Duration = Duration::from_micros(200);

/// One direction of a pair, at its receiver.
#[derive(Debug)]
pub(crate) struct Receiver {
    incoming: Incoming<Kind>,
    /// The sender is to be told what has come.
    owes_note: bool,
    /// It is to be told that what is missing is overdue.
    is_overdue: bool,
    /// The note is owed to a message that had come before.
    has_come_again: bool,
    /// Early messages before the next note.
    early_left: u32,
    /// A tick has found something untold.
    was_untold: bool,
    /// Since when the message of this number was missing.
    missing: Option<(u32, Time)>,
}

impl Receiver {
    pub(crate) fn new(first: u32) -> Self {
        Self {
            incoming: Incoming::new(first),
            owes_note: false,
            is_overdue: false,
            has_come_again: false,
            early_left: EARLY,
            was_untold: false,
            missing: None,
        }
    }

    /// Returns where a message stands, and takes note of what the sender is to be told of it.
    #[inline]
    pub(crate) fn turn(&mut self, number: u32) -> Turn {
        let turn = self.incoming.turn(number);
        match turn {
            Turn::Now if !self.incoming.has_gap() => {}
            // Where something waits, each step closes a gap, and may be the first of several.
            Turn::Now => self.early_left = EARLY,
            Turn::Early => {
                self.early_left = self.early_left.saturating_sub(1);
                if self.early_left == 0 {
                    self.early_left = EARLY_AGAIN;
                    self.owes_note = true;
                }
            }
            // Its sender does not know.
            Turn::Again => (self.owes_note, self.has_come_again) = (true, true),
            Turn::Never => {}
        }
        turn
    }

    /// The message whose turn it was is delivered.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.incoming.step();
        self.owes_note |= self.incoming.untold() >= TELL_AFTER;
    }

    pub(crate) fn hold(&mut self, number: u32, kind: Kind, bytes: Vec<u8>) {
        self.incoming.hold(number, kind, bytes);
    }

    #[inline]
    pub(crate) fn next_early(&mut self) -> Option<(Kind, Vec<u8>)> {
        self.incoming.next_early()
    }

    /// The sender waits for a note.
    #[inline]
    pub(crate) const fn owe(&mut self) {
        self.owes_note = true;
    }

    /// What was consumed goes with a packet.
    #[inline]
    pub(crate) fn tell(&mut self) {
        self.incoming.tell();
        self.was_untold = false;
        // Where there is a gap, or something has come again, a note says more.
        self.owes_note &= self.incoming.has_gap() | self.has_come_again;
    }

    /// A note went.
    pub(crate) fn noted(&mut self) {
        self.incoming.tell();
        self.was_untold = false;
        (self.owes_note, self.is_overdue, self.has_come_again) = (false, false, false);
    }

    /// Sees what has been untold, or missing, for long. Who is `to_sleep` tells all.
    pub(crate) fn tick(&mut self, now: Time, usual: Duration, to_sleep: bool) {
        if self.incoming.untold() > 0 {
            self.owes_note |= to_sleep || self.was_untold;
            self.was_untold = true;
        }
        if !self.incoming.has_gap() {
            self.missing = None;
            return;
        }
        let number = self.incoming.consumed();
        match self.missing {
            Some((missing, since)) if missing == number => {
                if now.since(since) >= OVERDUE.max(2 * usual) {
                    self.missing = Some((number, now));
                    (self.owes_note, self.is_overdue) = (true, true);
                }
            }
            _ => self.missing = Some((number, now)),
        }
    }

    /// The peer is gone.
    pub(crate) fn clear(&mut self) {
        self.incoming.clear();
        (self.owes_note, self.is_overdue, self.missing) = (false, false, None);
        self.has_come_again = false;
    }

    /// Returns when there is something to do although nothing comes.
    pub(crate) fn deadline(&self, usual: Duration) -> Option<Time> {
        let (_, since) = self.missing?;
        Some(since + OVERDUE.max(2 * usual))
    }

    /// Whether a tick may find something to do.
    pub(crate) fn is_quiet(&self) -> bool {
        self.incoming.untold() == 0 && !self.incoming.has_gap() && !self.owes_note
    }

    #[inline]
    pub(crate) const fn owes_note(&self) -> bool {
        self.owes_note
    }

    pub(crate) const fn is_overdue(&self) -> bool {
        self.is_overdue
    }

    pub(crate) const fn has_come_again(&self) -> bool {
        self.has_come_again
    }

    #[inline]
    pub(crate) const fn consumed(&self) -> u32 {
        self.incoming.consumed()
    }

    pub(crate) fn has_gap(&self) -> bool {
        self.incoming.has_gap()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.incoming.seen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_micros(10);

    fn at(micros: u64) -> Time {
        Time::default() + Duration::from_micros(micros)
    }

    /// Takes message `number`; returns whether the sender is to be told at once.
    fn take(receiver: &mut Receiver, number: u32) -> bool {
        match receiver.turn(number) {
            Turn::Now => {
                receiver.step();
                while receiver.next_early().is_some() {
                    receiver.step();
                }
            }
            Turn::Early => receiver.hold(number, Kind::Message, Vec::new()),
            Turn::Again | Turn::Never => {}
        }
        receiver.owes_note()
    }

    #[test]
    fn what_goes_back_tells_or_a_second_tick_does() {
        let mut receiver = Receiver::new(0);
        assert!(!take(&mut receiver, 0));
        receiver.tick(at(1), USUAL, false);
        receiver.tell();
        assert!(receiver.is_quiet());
        take(&mut receiver, 1);
        receiver.tick(at(2), USUAL, false);
        assert!(!receiver.owes_note(), "a reply may be under way");
        receiver.tick(at(3), USUAL, false);
        assert!(receiver.owes_note());
        receiver.noted();
        take(&mut receiver, 2);
        receiver.tick(at(4), USUAL, true);
        assert!(receiver.owes_note(), "who sleeps sends no reply");
    }

    #[test]
    fn a_quarter_of_the_window_is_told() {
        let mut receiver = Receiver::new(u32::MAX - 2);
        let owed = (0..WINDOW).map(|count| take(&mut receiver, (u32::MAX - 2).wrapping_add(count)));
        let first = owed.into_iter().position(|owes| owes);
        assert_eq!(first, Some(TELL_AFTER as usize - 1));
    }

    #[test]
    fn gaps_are_told_after_some_and_when_they_are_overdue() {
        let mut receiver = Receiver::new(0);
        let owed = [1, 2, 3].map(|number| take(&mut receiver, number));
        assert_eq!(owed, [false, false, true]);
        assert_eq!(receiver.seen(), [0b111, 0, 0, 0]);
        receiver.noted();
        receiver.tick(at(0), USUAL, false);
        receiver.tick(at(199), USUAL, false);
        assert!(!receiver.owes_note());
        assert_eq!(receiver.deadline(USUAL), Some(at(200)));
        receiver.tick(at(200), USUAL, false);
        assert!(receiver.owes_note() && receiver.is_overdue());
        receiver.noted();
        receiver.tick(at(399), USUAL, false);
        assert!(!receiver.owes_note());
        receiver.tick(at(400), USUAL, false);
        assert!(receiver.owes_note(), "notes may be lost");
        receiver.noted();
        assert!(!take(&mut receiver, 0));
        assert_eq!((receiver.consumed(), receiver.has_gap()), (4, false));
        assert!(take(&mut receiver, 2), "its sender does not know");
    }
}
