//! What a board has for each of its members.

use super::ring::{LINE, SLOT};

/// What a board has for each of its members.
pub trait Shape: Send + Sync + 'static {
    /// Lines.
    const LINES: u64;
    /// Slots.
    const SLOTS: u64;
    /// Slots besides, which two members hand on to each other: as many as one may have shown that the other has not read, 4 at most.
    const HANDED: usize;
    /// No member shows a round that is further from the last one that it has done with: at most as many as it has lines, and fewer
    /// than it has slots.
    const AHEAD: u64;
    /// What was shown last in each slot's rounds.
    type Lengths: Default + AsRef<[usize]> + AsMut<[usize]> + Send + Sync;

    /// How many rounds a member may show before others have done with the first of them, where they show what is longer than a
    /// line: at most as many as it has slots. Each round has a line, whatever it shows.
    const ROOM: u64;
    /// Most bytes of a round.
    const MOST: usize = if Self::SLOTS == 0 { LINE } else { SLOT };
}

/// Lines, so many that the next ones can be taken over ahead while others are still read, and slots for what is longer.
#[derive(Debug, Clone, Copy)]
pub enum Slotted {}

impl Shape for Slotted {
    #[cfg(not(loom))]
    const LINES: u64 = 32;
    #[cfg(loom)]
    const LINES: u64 = Self::SLOTS;
    /// So many that what is written again has left the readers' own caches. A line that a reader still has there is taken from it
    /// first, which costs more than the copy.
    #[cfg(not(loom))]
    const SLOTS: u64 = 32;
    /// As few as there may be, so that models come round: what is shown AHEAD rounds later needs no look at `done`.
    #[cfg(loom)]
    const SLOTS: u64 = Self::AHEAD + 1;
    const HANDED: usize = Self::AHEAD as usize + 1;
    const AHEAD: u64 = 3;
    #[cfg(not(loom))]
    const ROOM: u64 = 8;
    #[cfg(loom)]
    const ROOM: u64 = Self::SLOTS;
    #[cfg(not(loom))]
    type Lengths = [usize; 32];
    #[cfg(loom)]
    type Lengths = [usize; 4];
}

/// Lines alone, so many that a member is far ahead of others before it waits for them.
#[derive(Debug, Clone, Copy)]
pub enum Lined {}

impl Shape for Lined {
    const LINES: u64 = 128;
    const SLOTS: u64 = 0;
    const HANDED: usize = 0;
    const AHEAD: u64 = Self::LINES;
    const ROOM: u64 = Self::SLOTS;
    type Lengths = [usize; 0];
}
