//! Numbered messages between two ranks: what a sender keeps until it is acknowledged, and what a receiver keeps until its turn.
//!
//! ```text
//!   sender    acknowledged ──────── kept, at most WINDOW ──────── next
//!   receiver           consumed ──── early ones, with gaps ─────
//! ```
//!
//! Nothing here sends: the owner of both does. A bundle of rails and a rail that loses messages are two owners: they differ in
//! when they send again, which is what they note of each message that is kept.

use std::collections::{HashMap, VecDeque};

use tagwire_transport::Class;

/// Messages that may be kept for a peer; it never has more than that come before their turn.
pub const WINDOW: u32 = 256;

/// How many of them data leaves to control.
pub const RESERVED: u32 = 16;

/// A message that may have to be sent again.
#[derive(Debug)]
pub struct Kept<T> {
    /// What was sent.
    pub bytes: Vec<u8>,
    /// What its owner knows of it.
    pub note: T,
}

/// What was sent to a peer and not acknowledged.
#[derive(Debug)]
pub struct Outgoing<T> {
    kept: VecDeque<Kept<T>>,
    acknowledged: u32,
}

impl<T> Outgoing<T> {
    /// Returns one whose first message is number `first`.
    #[must_use]
    pub const fn new(first: u32) -> Self {
        Self {
            kept: VecDeque::new(),
            acknowledged: first,
        }
    }

    /// Keeps what was sent as the next message.
    #[inline]
    pub fn keep(&mut self, bytes: Vec<u8>, note: T) {
        self.kept.push_back(Kept { bytes, note });
    }

    /// Takes note of how far the peer says to have consumed; gives each message that need not be kept any more to `freed`.
    /// Returns how many there were, or `None` where such a message was never sent.
    #[inline]
    #[must_use]
    pub fn acknowledge(&mut self, consumed: u32, mut freed: impl FnMut(Kept<T>)) -> Option<usize> {
        let step = consumed.wrapping_sub(self.acknowledged);
        if step as usize > self.kept.len() {
            // One that was overtaken says less than is known already.
            return (step > u32::MAX / 2).then_some(0);
        }
        for _ in 0..step {
            self.kept.pop_front().into_iter().for_each(&mut freed);
        }
        self.acknowledged = consumed;
        Some(step as usize)
    }

    /// The peer is gone: nothing is kept for it.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Returns the message `number`, if it is kept.
    pub fn find_mut(&mut self, number: u32) -> Option<&mut Kept<T>> {
        let place = number.wrapping_sub(self.acknowledged) as usize;
        self.kept.get_mut(place)
    }

    /// Returns all that are kept, with their numbers, the oldest first.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (u32, &mut Kept<T>)> {
        let first = self.acknowledged;
        let number = move |place| first.wrapping_add(place as u32);
        let kept = self.kept.iter_mut().enumerate();
        kept.map(move |(place, kept)| (number(place), kept))
    }

    /// Returns all that are kept, with their numbers, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &Kept<T>)> {
        let first = self.acknowledged;
        let number = move |place| first.wrapping_add(place as u32);
        let kept = self.kept.iter().enumerate();
        kept.map(move |(place, kept)| (number(place), kept))
    }

    /// Returns the number of the next message.
    #[inline]
    #[must_use]
    pub fn next(&self) -> u32 {
        self.acknowledged.wrapping_add(self.kept.len() as u32)
    }

    /// Whether one more may be sent.
    #[inline]
    #[must_use]
    pub fn has_room(&self, class: Class) -> bool {
        let most = match class {
            Class::Data => WINDOW - RESERVED,
            Class::Control => WINDOW,
        };
        self.kept.len() < most as usize
    }

    /// Returns how many messages are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing is kept.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Where a message stands in its sender's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is next.
    Now,
    /// Others come first.
    Early,
    /// It was had before.
    Again,
    /// No correct peer numbers a message like this.
    Never,
}

/// Which of the messages behind the next one have come: bit 0 is the one behind it.
pub type Seen = [u64; (WINDOW / u64::BITS) as usize];

/// What came from a peer. With a message that waits for its turn goes a `T`.
#[derive(Debug)]
pub struct Incoming<T> {
    consumed: u32,
    told: u32,
    early: HashMap<u32, (T, Vec<u8>)>,
}

impl<T> Incoming<T> {
    /// Returns one whose first message is number `first`.
    #[must_use]
    pub fn new(first: u32) -> Self {
        Self {
            consumed: first,
            told: first,
            early: HashMap::new(),
        }
    }

    /// Keeps a message until its turn.
    pub fn hold(&mut self, number: u32, note: T, bytes: Vec<u8>) {
        self.early.insert(number, (note, bytes));
    }

    /// The message whose turn it was is delivered.
    #[inline]
    pub const fn step(&mut self) {
        self.consumed = self.consumed.wrapping_add(1);
    }

    /// Takes the kept message whose turn it is.
    #[inline]
    pub fn next_early(&mut self) -> Option<(T, Vec<u8>)> {
        if self.early.is_empty() {
            return None;
        }
        self.early.remove(&self.consumed)
    }

    /// What was consumed has been said to the sender.
    #[inline]
    pub const fn tell(&mut self) {
        self.told = self.consumed;
    }

    /// The peer is gone: what came before its turn never has one.
    pub fn clear(&mut self) {
        self.early.clear();
    }

    /// Returns the number of the next message: all before were delivered.
    #[inline]
    #[must_use]
    pub const fn consumed(&self) -> u32 {
        self.consumed
    }

    /// Returns how many messages were delivered that the sender was not told of.
    #[inline]
    #[must_use]
    pub const fn untold(&self) -> u32 {
        self.consumed.wrapping_sub(self.told)
    }

    /// Returns where message `number` stands.
    #[inline]
    #[must_use]
    pub fn turn(&self, number: u32) -> Turn {
        match number.wrapping_sub(self.consumed) {
            0 => Turn::Now,
            1..WINDOW if self.early.contains_key(&number) => Turn::Again,
            1..WINDOW => Turn::Early,
            ahead if ahead > u32::MAX / 2 => Turn::Again,
            _ => Turn::Never,
        }
    }

    /// Whether something has come before its turn, and waits.
    #[inline]
    #[must_use]
    pub fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// Returns which messages have come before their turn.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let mut seen = Seen::default();
        for number in self.early.keys() {
            let bit = number.wrapping_sub(self.consumed).wrapping_sub(1);
            if let Some(word) = seen.get_mut((bit / u64::BITS) as usize) {
                *word |= 1 << (bit % u64::BITS);
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledge(out: &mut Outgoing<u8>, consumed: u32) -> (Option<usize>, Vec<u8>) {
        let mut freed = Vec::new();
        let step = out.acknowledge(consumed, |kept| freed.push(kept.note));
        (step, freed)
    }

    #[test]
    fn what_is_acknowledged_is_kept_no_more() {
        let mut out = Outgoing::new(0);
        (0..10).for_each(|number| out.keep(vec![number], number));
        assert_eq!(acknowledge(&mut out, 3), (Some(3), vec![0, 1, 2]));
        assert_eq!((out.next(), out.len()), (10, 7));
        let overtaken = acknowledge(&mut out, 2);
        assert_eq!(
            overtaken,
            (Some(0), vec![]),
            "an overtaken one is no offence"
        );
        assert_eq!(acknowledge(&mut out, 11).0, None, "more than was ever sent");
        let numbers: Vec<_> = out
            .iter()
            .map(|(number, kept)| (number, kept.note))
            .collect();
        assert_eq!(numbers[0], (3, 3));
        assert_eq!(out.find_mut(9).map(|kept| kept.note), Some(9));
        assert!(out.find_mut(10).is_none() && out.find_mut(2).is_none());
        assert_eq!(acknowledge(&mut out, 10).0, Some(7));
        assert!(out.is_empty());
    }

    #[test]
    fn the_window_bounds_what_is_kept() {
        // Numbers wrap.
        let mut out = Outgoing::new(u32::MAX - 5);
        while out.has_room(Class::Data) {
            out.keep(Vec::new(), 0);
        }
        assert_eq!(out.len() as u32, WINDOW - RESERVED);
        while out.has_room(Class::Control) {
            out.keep(Vec::new(), 0);
        }
        assert_eq!(out.len() as u32, WINDOW);
        let next = out.next();
        assert_eq!(acknowledge(&mut out, next).0, Some(WINDOW as usize));
    }

    #[test]
    fn each_message_has_one_turn() {
        let mut incoming = Incoming::new(u32::MAX);
        assert_eq!(incoming.turn(u32::MAX), Turn::Now);
        assert_eq!(incoming.turn(0), Turn::Early);
        incoming.hold(0, 'a', vec![7]);
        assert_eq!(incoming.turn(0), Turn::Again);
        assert_eq!(incoming.next_early(), None);
        assert_eq!(incoming.seen(), [1, 0, 0, 0]);
        incoming.step();
        assert_eq!(incoming.next_early(), Some(('a', vec![7])));
        incoming.step();
        assert_eq!(incoming.untold(), 2);
        assert_eq!(incoming.turn(u32::MAX), Turn::Again);
        assert_eq!(incoming.turn(WINDOW), Turn::Early);
        assert_eq!(incoming.turn(WINDOW + 1), Turn::Never);
        incoming.hold(WINDOW, 'z', vec![]);
        assert_eq!(incoming.seen(), [0, 0, 0, 1 << 62]);
    }
}
