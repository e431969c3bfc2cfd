//! What is sent to one peer: kept until it is acknowledged, and sent again when it was lost.
//!
//! - A message is lost when [`LATER`] that were sent after it have come, or when the peer says that it is overdue; once it
//!   was sent again, not before a round trip has passed.
//! - Where nothing is acknowledged for a time-out, the oldest message is sent again, and the last: the reply to that says what is missing.
//! - Where nothing is acknowledged for `patience`, and not for want of trying, the peer has failed. Time in which this rank was away does not count.
//! - Which of two that were sent is acknowledged nobody knows (Karn's algorithm). But where the peer says afterwards that the second had come
//!   before, the first was acknowledged, and was not lost (RFC 3708): then its round trip is known, and was longer than the time-out. Where
//!   two in a row are so, it is the network that is slow, and not a peer that was away.
//!
//! Nothing here reads a clock unless a round trip is measured: the timer is armed by the first tick that finds something kept.

use std::time::Duration;

use tagwire_base::Time;
use tagwire_transport::Class;

use crate::rtt::RoundTrip;
use crate::window::{Outgoing, Seen};
use crate::wire::Kind;

/// So many later messages have come before a missing one is taken for lost, and not for late (RFC 5681, section 3.2).
const LATER: u32 = 3;

/// One round trip in so many messages is measured, and one after the other where the time-out is longer than the least.
const MEASURED: u32 = 32;

/// A peer is tried so often before it fails, whatever time has passed.
const TRIES: u32 = 5;

/// What is known of a message that is kept.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) kind: Kind,
    state: State,
    /// When it was sent again at last.
    resent: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Sent, and nothing is known of it.
    Sent,
    /// To be sent again.
    Lost,
    /// It came before its turn.
    Come,
}

/// What a tick comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// There is nothing to do.
    Quiet,
    /// Messages are to be sent again.
    Resend,
    /// The peer does not reply.
    Failed,
}

/// One direction of a pair, at its sender.
#[derive(Debug)]
pub(crate) struct Sender {
    out: Outgoing<Flight>,
    pub(crate) trip: RoundTrip,
    /// The message whose round trip is measured, and when it was sent.
    measured: Option<(u32, Time)>,
    /// When the oldest is sent again.
    deadline: Option<Time>,
    /// Since when nothing was acknowledged, later by as much as this rank was away.
    silent_since: Option<Time>,
    /// Timers that went off since.
    tries: u32,
    /// The timer went off late, and was set again without a try.
    was_away: bool,
    /// Messages to be sent again.
    lost: usize,
    /// What came after the timer had gone off: when, and how long after it was waited for.
    late: Option<(Time, Duration)>,
    /// The round trip that was known last to be longer than the time-out, and none that was not since.
    slow: Option<Duration>,
}

impl Sender {
    pub(crate) fn new(first: u32, least: Duration) -> Self {
        Self {
            out: Outgoing::new(first),
            trip: RoundTrip::new(least),
            measured: None,
            deadline: None,
            silent_since: None,
            tries: 0,
            was_away: false,
            lost: 0,
            late: None,
            slow: None,
        }
    }

    /// Keeps what was sent.
    #[inline]
    pub(crate) fn keep(&mut self, bytes: Vec<u8>, kind: Kind, now: impl FnOnce() -> Time) {
        let number = self.out.next();
        let is_due = number.is_multiple_of(MEASURED) || self.trip.is_long();
        if is_due && self.measured.is_none() {
            self.measured = Some((number, now()));
        }
        let flight = Flight {
            kind,
            state: State::Sent,
            resent: None,
        };
        self.out.keep(bytes, flight);
    }

    /// Takes note of how far the peer has consumed, and returns whether that is news; `None` where it cannot be. `is_again` where the peer
    /// says with it that a message has come twice: it may be the second that is acknowledged, and nothing is known of the first.
    #[inline]
    pub(crate) fn acknowledge(
        &mut self,
        (consumed, is_again): (u32, bool),
        spare: &mut Vec<Vec<u8>>,
        most_spare: usize,
        now: impl FnOnce() -> Time,
    ) -> Option<bool> {
        let lost = &mut self.lost;
        let step = self.out.acknowledge(consumed, |kept| {
            *lost -= usize::from(kept.note.state == State::Lost);
            if spare.len() < most_spare {
                spare.push(kept.bytes);
            }
        })?;
        if step > 0 {
            if let (1.., Some(since)) = (self.tries, self.silent_since) {
                let now = now();
                self.late = (!is_again).then(|| (now, now.since(since)));
                self.measured = None;
                self.heard();
                return Some(true);
            }
            if self.slow.is_some() {
                self.slow = None;
            }
            self.heard();
            if let Some((number, at)) = self.measured
                && consumed.wrapping_sub(number) as i32 > 0
            {
                self.trip.sample(now().since(at));
                self.measured = None;
            }
        }
        Some(step > 0)
    }

    /// The peer has got something.
    #[inline]
    const fn heard(&mut self) {
        self.deadline = None;
        self.silent_since = None;
        self.tries = 0;
        self.was_away = false;
        self.trip.relax();
    }

    /// Takes note of which messages behind number `consumed` the peer has, and of those that it lacks.
    pub(crate) fn heed_seen(&mut self, consumed: u32, seen: &Seen, is_overdue: bool, now: Time) {
        let usual = self.trip.usual();
        let enough = if is_overdue { 1 } else { LATER };
        let (mut later, mut is_news, mut lost) = (0, false, self.lost);
        for (number, kept) in self.out.iter_mut().rev() {
            let offset = number.wrapping_sub(consumed);
            let bit = offset.wrapping_sub(1);
            let word = seen.get((bit / u64::BITS) as usize);
            let has_come = word.is_some_and(|word| word >> (bit % u64::BITS) & 1 == 1);
            let flight = &mut kept.note;
            if has_come || flight.state == State::Come {
                later += 1;
                lost -= usize::from(flight.state == State::Lost);
                is_news |= flight.state != State::Come;
                flight.state = State::Come;
                // Where the oldest is lost over and over, this alone tells how long the network takes.
                if let Some((_, at)) = self.measured.take_if(|(measured, _)| *measured == number) {
                    self.trip.sample(now.since(at));
                    self.slow = None;
                }
            } else if later >= enough && flight.state == State::Sent {
                let again = flight.resent.is_none_or(|at| now.since(at) >= usual);
                if again {
                    flight.state = State::Lost;
                    lost += 1;
                }
            }
        }
        self.lost = lost;
        if is_news {
            self.heard();
        }
    }

    /// Looks at the timer. A rank that calls late by more than a time-out was away, as its peer may have been: what has come is heard first.
    pub(crate) fn tick(&mut self, now: Time, patience: Duration) -> Tick {
        if self.out.is_empty() {
            (self.deadline, self.silent_since) = (None, None);
            return Tick::Quiet;
        }
        let timeout = self.trip.timeout();
        let since = self.silent_since.get_or_insert(now);
        let deadline = *self.deadline.get_or_insert(now + timeout);
        if now < deadline {
            return Tick::Quiet;
        }
        self.deadline = Some(now + timeout);
        let late = now.since(deadline);
        if late > timeout {
            *since = *since + late;
            if !std::mem::replace(&mut self.was_away, true) {
                return Tick::Quiet;
            }
        }
        if self.tries >= TRIES && now.since(*since) >= patience {
            return Tick::Failed;
        }
        self.tries += 1;
        self.trip.back_off();
        self.deadline = Some(now + self.trip.timeout());
        self.lose_ends();
        Tick::Resend
    }

    /// The oldest message that has not come is to be sent again, and the last.
    fn lose_ends(&mut self) {
        let mut lost = self.lost;
        let lose = |flight: &mut Flight| {
            if flight.state == State::Sent {
                flight.state = State::Lost;
                lost += 1;
            }
        };
        let missing = |flight: &Flight| flight.state != State::Come;
        let mut ends = (self.out.iter_mut())
            .map(|(_, kept)| &mut kept.note)
            .filter(|flight| missing(flight));
        let ends = [ends.next(), ends.next_back()];
        ends.into_iter().flatten().for_each(lose);
        self.lost = lost;
    }

    /// The peer says that a message which was sent again had come before, and acknowledges nothing new.
    #[cold]
    pub(crate) fn came_again(&mut self, now: Time) {
        // What comes much later is of another message.
        if let Some((at, time)) = self.late.take()
            && now.since(at) <= 2 * time
            && let Some(before) = self.slow.replace(time)
        {
            self.trip.sample(time.min(before));
        }
    }

    /// Message `number` was sent again.
    pub(crate) fn resent(&mut self, number: u32, now: Time) {
        // Which of the two is acknowledged nobody knows.
        self.measured = None;
        if let Some(kept) = self.out.find_mut(number)
            && kept.note.state == State::Lost
        {
            kept.note.state = State::Sent;
            kept.note.resent = Some(now);
            self.lost -= 1;
        }
    }

    /// The peer is gone: nothing is kept for it.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.lost = 0;
        (self.measured, self.deadline, self.silent_since) = (None, None, None);
    }

    /// Returns the first message that is to be sent again.
    pub(crate) fn first_lost(&self) -> Option<(u32, Kind, &[u8])> {
        if self.lost == 0 {
            return None;
        }
        let lost = (self.out.iter()).find(|(_, kept)| kept.note.state == State::Lost);
        lost.map(|(number, kept)| (number, kept.note.kind, &kept.bytes[..]))
    }

    /// Whether messages are to be sent again.
    #[inline]
    pub(crate) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Whether a message of the layer above is not acknowledged.
    pub(crate) fn lacks_messages(&self) -> bool {
        let mut kept = self.out.iter();
        kept.any(|(_, kept)| kept.note.kind == Kind::Message)
    }

    /// Returns when there is something to do although nothing comes.
    pub(crate) const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    #[inline]
    pub(crate) fn has_room(&self, class: Class) -> bool {
        self.out.has_room(class)
    }

    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.out.next()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }
}

#[cfg(test)]
mod tests;
