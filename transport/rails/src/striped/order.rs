//! The order of messages between two ranks, whichever rail each of them took: numbers, what is kept and what is early are those of
//! [`tagwire_dr::window`]; which rail has what is known here.
//!
//! Nothing here sends: the owner of both does.

use tagwire_dr::window::{self, WINDOW};
use tagwire_transport::Class;

pub(super) use tagwire_dr::window::Turn;

/// Messages consumed after which the sender is told, where nothing goes back that could tell it.
const TELL_AFTER: u32 = WINDOW / 2;

/// Buffers of messages that are kept for later ones.
const MOST_SPARE: usize = 64;

/// How a message that is kept has gone.
#[derive(Debug)]
struct Ride {
    /// The rail that took it; none while it waits for another.
    rail: Option<usize>,
    /// When that was, in microseconds.
    since: u64,
}

/// What was sent to a peer and not acknowledged.
#[derive(Debug)]
pub(super) struct Outgoing {
    kept: window::Outgoing<Ride>,
    /// Kept ones that no rail has.
    homeless: usize,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::from(0)
    }
}

impl Outgoing {
    /// Returns one whose first message is number `first`.
    const fn from(first: u32) -> Self {
        Self {
            kept: window::Outgoing::new(first),
            homeless: 0,
        }
    }

    /// How many messages were sent in all: the number of the next.
    pub(super) fn sent(&self) -> u32 {
        self.kept.next()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether one more may be sent. What has lost its rail goes first.
    pub(super) fn has_room(&self, class: Class) -> bool {
        self.homeless == 0 && self.kept.has_room(class)
    }

    /// Keeps what `rail` has taken as the next message.
    pub(super) fn keep(&mut self, bytes: Vec<u8>, rail: usize, since: u64) {
        let rail = Some(rail);
        self.kept.keep(bytes, Ride { rail, since });
    }

    /// Takes note of what the peer says to have consumed; returns whether that can be.
    #[must_use]
    pub(super) fn acknowledge(&mut self, consumed: u32, spare: &mut Vec<Vec<u8>>) -> bool {
        let homeless = &mut self.homeless;
        let step = self.kept.acknowledge(consumed, |kept| {
            *homeless -= usize::from(kept.note.rail.is_none());
            if spare.len() < MOST_SPARE {
                spare.push(kept.bytes);
            }
        });
        step.is_some()
    }

    /// What `rail` has taken and not delivered for sure is to be sent again.
    pub(super) fn lose_rail(&mut self, rail: usize) {
        for (_, kept) in self.kept.iter_mut() {
            if kept.note.rail == Some(rail) {
                kept.note.rail = None;
                self.homeless += 1;
            }
        }
    }

    /// The first message that is to be sent again, with its number.
    pub(super) fn first_homeless(&self) -> Option<(u32, &[u8])> {
        if self.homeless == 0 {
            return None;
        }
        let first = (self.kept.iter()).find(|(_, kept)| kept.note.rail.is_none());
        first.map(|(number, kept)| (number, &kept.bytes[..]))
    }

    /// The message `number` was sent again, by `rail`.
    pub(super) fn rehouse(&mut self, number: u32, rail: usize, since: u64) {
        if let Some(kept) = self.kept.find_mut(number)
            && kept.note.rail.is_none()
        {
            let rail = Some(rail);
            kept.note = Ride { rail, since };
            self.homeless -= 1;
        }
    }

    /// Since when `rail` has had something that is not acknowledged.
    pub(super) fn waits_since(&self, rail: usize) -> Option<u64> {
        let rides = self.kept.iter().map(|(_, kept)| &kept.note);
        let of_rail = rides.filter(|ride| ride.rail == Some(rail));
        of_rail.map(|ride| ride.since).min()
    }

    /// The peer is gone: nothing is kept for it.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.homeless = 0;
    }
}

/// What came from a peer.
#[derive(Debug)]
pub(super) struct Incoming(window::Incoming<()>);

impl Default for Incoming {
    fn default() -> Self {
        Self(window::Incoming::new(0))
    }
}

impl Incoming {
    /// How many messages were delivered.
    pub(super) const fn consumed(&self) -> u32 {
        self.0.consumed()
    }

    pub(super) fn turn(&self, number: u32) -> Turn {
        self.0.turn(number)
    }

    /// Keeps a message until its turn.
    pub(super) fn hold(&mut self, number: u32, bytes: Vec<u8>) {
        self.0.hold(number, (), bytes);
    }

    /// The message whose turn it was is delivered.
    pub(super) const fn step(&mut self) {
        self.0.step();
    }

    /// The kept message whose turn it is.
    pub(super) fn next_early(&mut self) -> Option<Vec<u8>> {
        self.0.next_early().map(|((), bytes)| bytes)
    }

    /// Whether something has come before its turn, and waits.
    pub(super) fn has_gap(&self) -> bool {
        self.0.has_gap()
    }

    /// What was consumed has been said to the sender.
    pub(super) const fn tell(&mut self) {
        self.0.tell();
    }

    /// Whether the sender should be told how much was consumed.
    pub(super) const fn owes(&self) -> bool {
        self.0.untold() >= TELL_AFTER
    }

    /// The peer is gone: what came before its turn never has one.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lost_its_rail_goes_by_another_before_the_next() {
        // Numbers wrap.
        let (mut out, mut spare) = (Outgoing::from(u32::MAX - 4), Vec::new());
        let number = |offset: u32| (u32::MAX - 4).wrapping_add(offset);
        for offset in 0..10 {
            out.keep(vec![offset], usize::from(offset % 2), u64::from(offset));
        }
        assert!(out.acknowledge(number(3), &mut spare));
        assert_eq!((out.sent(), spare.len()), (number(10), 3));
        assert!(
            !out.acknowledge(number(11), &mut spare),
            "more than was ever sent"
        );
        assert_eq!((out.waits_since(0), out.waits_since(1)), (Some(4), Some(3)));

        out.lose_rail(1);
        assert!(
            !out.has_room(Class::Control),
            "what lost its rail goes first"
        );
        let mut again = Vec::new();
        while let Some((number, bytes)) = out.first_homeless() {
            again.push((number, bytes[0]));
            out.rehouse(number, 0, 99);
        }
        let expected = [3u8, 5, 7, 9].map(|offset| (number(offset.into()), offset));
        assert_eq!(again, expected);
        assert!(out.has_room(Class::Data));
        out.lose_rail(0);
        assert!(out.acknowledge(number(10), &mut spare));
        assert!(out.is_empty() && out.first_homeless().is_none());
        assert!(out.has_room(Class::Data));
    }
}
