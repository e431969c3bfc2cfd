//! The order of messages between two ranks, whichever rail each of them took: what a sender keeps
//! until it is acknowledged, and what a receiver keeps until its turn.
//!
//! ```text
//!   sender    acknowledged ──────── kept, at most WINDOW ──────── next
//!   receiver           consumed ──── early ones, with gaps ─────
//! ```
//!
//! Nothing here sends: the owner of both does.

use std::collections::{HashMap, VecDeque};

use tagwire_transport::Class;

/// Messages that may be kept for a peer; it never has more than that come before their turn.
pub(super) const WINDOW: u32 = 256;

/// How many of them data leaves to control.
const RESERVED: u32 = 16;

/// Messages consumed after which the sender is told, where nothing goes back that could tell it.
const TELL_AFTER: u32 = WINDOW / 2;

/// Buffers of messages that are kept for later ones.
const MOST_SPARE: usize = 64;

/// A message that may have to be sent again.
#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    /// The rail that took it; none while it waits for another.
    rail: Option<usize>,
    /// When that was, in microseconds.
    since: u64,
}

/// What was sent to a peer and not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    kept: VecDeque<Kept>,
    acknowledged: u32,
    /// Kept ones that no rail has.
    homeless: usize,
}

impl Outgoing {
    /// How many messages were sent in all: the number of the next.
    pub(super) fn sent(&self) -> u32 {
        self.acknowledged.wrapping_add(self.kept.len() as u32)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether one more may be sent. What has lost its rail goes first.
    pub(super) fn has_room(&self, class: Class) -> bool {
        let most = match class {
            Class::Data => WINDOW - RESERVED,
            Class::Control => WINDOW,
        };
        self.homeless == 0 && self.kept.len() < most as usize
    }

    /// Keeps what `rail` has taken as the next message.
    pub(super) fn keep(&mut self, bytes: Vec<u8>, rail: usize, since: u64) {
        self.kept.push_back(Kept {
            bytes,
            rail: Some(rail),
            since,
        });
    }

    /// Takes note of what the peer says to have consumed; returns whether that can be.
    #[must_use]
    pub(super) fn acknowledge(&mut self, consumed: u32, spare: &mut Vec<Vec<u8>>) -> bool {
        let step = consumed.wrapping_sub(self.acknowledged);
        if step as usize > self.kept.len() {
            // One that was overtaken says less than is known already.
            return step > u32::MAX / 2;
        }
        for kept in self.kept.drain(..step as usize) {
            self.homeless -= usize::from(kept.rail.is_none());
            if spare.len() < MOST_SPARE {
                spare.push(kept.bytes);
            }
        }
        self.acknowledged = consumed;
        true
    }

    /// What `rail` has taken and not delivered for sure is to be sent again.
    pub(super) fn lose_rail(&mut self, rail: usize) {
        for kept in &mut self.kept {
            if kept.rail == Some(rail) {
                kept.rail = None;
                self.homeless += 1;
            }
        }
    }

    /// The first message that is to be sent again, with its number.
    pub(super) fn first_homeless(&self) -> Option<(u32, &[u8])> {
        if self.homeless == 0 {
            return None;
        }
        let place = self.kept.iter().position(|kept| kept.rail.is_none())?;
        let number = self.acknowledged.wrapping_add(place as u32);
        Some((number, &self.kept[place].bytes))
    }

    /// The message `number` was sent again, by `rail`.
    pub(super) fn rehouse(&mut self, number: u32, rail: usize, since: u64) {
        let place = number.wrapping_sub(self.acknowledged) as usize;
        if let Some(kept) = self.kept.get_mut(place)
            && kept.rail.is_none()
        {
            (kept.rail, kept.since) = (Some(rail), since);
            self.homeless -= 1;
        }
    }

    /// Since when `rail` has had something that is not acknowledged.
    pub(super) fn waits_since(&self, rail: usize) -> Option<u64> {
        let of_rail = self.kept.iter().filter(|kept| kept.rail == Some(rail));
        of_rail.map(|kept| kept.since).min()
    }

    /// The peer is gone: nothing is kept for it.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.homeless = 0;
    }
}

/// Where a message stands in its sender's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is next.
    Now,
    /// Others come first.
    Early,
    /// It was had before.
    Again,
    /// No correct peer numbers a message like this.
    Never,
}

/// What came from a peer.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    consumed: u32,
    told: u32,
    early: HashMap<u32, Vec<u8>>,
}

impl Incoming {
    /// How many messages were delivered.
    pub(super) const fn consumed(&self) -> u32 {
        self.consumed
    }

    pub(super) fn turn(&self, number: u32) -> Turn {
        match number.wrapping_sub(self.consumed) {
            0 => Turn::Now,
            1..WINDOW if self.early.contains_key(&number) => Turn::Again,
            1..WINDOW => Turn::Early,
            ahead if ahead > u32::MAX / 2 => Turn::Again,
            _ => Turn::Never,
        }
    }

    /// Keeps a message until its turn.
    pub(super) fn hold(&mut self, number: u32, bytes: Vec<u8>) {
        self.early.insert(number, bytes);
    }

    /// The message whose turn it was is delivered.
    pub(super) const fn step(&mut self) {
        self.consumed = self.consumed.wrapping_add(1);
    }

    /// The kept message whose turn it is.
    pub(super) fn next_early(&mut self) -> Option<Vec<u8>> {
        if self.early.is_empty() {
            return None;
        }
        self.early.remove(&self.consumed)
    }

    /// Whether something has come before its turn, and waits.
    pub(super) fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// What was consumed has been said to the sender.
    pub(super) const fn tell(&mut self) {
        self.told = self.consumed;
    }

    /// Whether the sender should be told how much was consumed.
    pub(super) const fn owes(&self) -> bool {
        self.consumed.wrapping_sub(self.told) >= TELL_AFTER
    }

    /// The peer is gone: what came before its turn never has one.
    pub(super) fn clear(&mut self) {
        self.early.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acknowledged_is_kept_no_more() {
        let (mut out, mut spare) = (Outgoing::default(), Vec::new());
        for number in 0..10 {
            out.keep(vec![number], usize::from(number % 2), u64::from(number));
        }
        assert!(out.acknowledge(3, &mut spare));
        assert_eq!((out.sent(), spare.len()), (10, 3));
        assert!(
            out.acknowledge(2, &mut spare),
            "an overtaken one is no offence"
        );
        assert!(!out.acknowledge(11, &mut spare), "more than was ever sent");
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
        assert_eq!(again, [(3, 3), (5, 5), (7, 7), (9, 9)]);
        assert!(out.has_room(Class::Data));
        out.lose_rail(0);
        assert!(out.acknowledge(10, &mut spare));
        assert!(out.is_empty() && out.first_homeless().is_none());
        assert!(out.has_room(Class::Data));
    }

    #[test]
    fn the_window_bounds_what_is_kept() {
        let (mut out, mut spare) = (Outgoing::default(), Vec::new());
        // Numbers wrap.
        out.acknowledged = u32::MAX - 5;
        while out.has_room(Class::Data) {
            out.keep(Vec::new(), 0, 0);
        }
        assert_eq!(out.kept.len() as u32, WINDOW - RESERVED);
        while out.has_room(Class::Control) {
            out.keep(Vec::new(), 0, 0);
        }
        assert_eq!(out.kept.len() as u32, WINDOW);
        let sent = out.sent();
        assert!(out.acknowledge(sent, &mut spare) && out.is_empty());
    }

    #[test]
    fn each_message_has_one_turn() {
        let mut incoming = Incoming {
            consumed: u32::MAX,
            ..Incoming::default()
        };
        assert_eq!(incoming.turn(u32::MAX), Turn::Now);
        assert_eq!(incoming.turn(0), Turn::Early);
        incoming.hold(0, vec![7]);
        assert_eq!(incoming.turn(0), Turn::Again);
        assert_eq!(incoming.next_early(), None);
        incoming.step();
        assert_eq!(incoming.next_early(), Some(vec![7]));
        incoming.step();
        assert_eq!(incoming.turn(u32::MAX), Turn::Again);
        assert_eq!(incoming.turn(WINDOW), Turn::Early);
        assert_eq!(incoming.turn(WINDOW + 1), Turn::Never);
    }
}
