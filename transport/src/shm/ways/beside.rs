//! The same for messages that move beside others, by what many of them take together.
//!
//! ```text
//!   a block of messages by the known way: 32, or fewer where they are long
//!   an eighth of a block by the candidate, one by one among others; dropped once they have taken four times as long
//!   a block by the known way, a block by the candidate, three times at least, and up to eight times while it becomes faster;
//!   dropped as soon as it takes twice as long, and when a block took half as long again and was no faster than the one before
//!   the one with the smaller median is known from then on
//! ```
//!
//! Ends are counted, not begins: what is begun by one way ends while others begin by the next one. From one end to the next is the time of
//! the message that ended, and of one that begins alone it is counted from its begin: what a program does between its messages is no
//! part of it.

use super::CopyWay;
use super::turns::Turns;
use tagwire_base::Time;

/// The share of a block that is not counted, since the one before goes on beside it; a candidate's first block is as long.
const EIGHTH: u32 = 8;
/// Blocks by either way that are compared, and how many there are at most.
const ROUNDS: (usize, usize) = (3, 8);
/// Blocks before the first trials, and between two.
const EARLY: u32 = 2;
const PERIOD: u32 = 1024;
/// A trial is given up when more messages than this have failed.
const LOST: u32 = 4;

/// Is the number of the block of those that go on beside a trial: when they end is to be known, too.
const BESIDE: u32 = 0;

/// Messages that go one way in a row.
#[derive(Debug, Clone, Copy)]
struct Block {
    number: u32,
    way: CopyWay,
    /// The first one of a candidate.
    is_first: bool,
    /// How many are to end, and how many of them are not counted.
    size: u32,
    settling: u32,
    begun: u32,
    ended: u32,
    /// Of those that are counted.
    bytes: u64,
    nanos: u64,
}

impl Block {
    const fn new(number: u32, way: CopyWay, is_first: bool, size: u32) -> Self {
        let eighth = size / EIGHTH;
        Self {
            number,
            way,
            is_first,
            size: if is_first { eighth } else { size },
            settling: if is_first { 0 } else { eighth },
            begun: 0,
            ended: 0,
            bytes: 0,
            nanos: 0,
        }
    }

    /// Nanoseconds for a KiB.
    const fn time(&self) -> Option<u64> {
        self.nanos.saturating_mul(1024).checked_div(self.bytes)
    }
}

/// A candidate that is tried.
#[derive(Debug)]
struct Trial {
    way: CopyWay,
    known: CopyWay,
    block: Block,
    /// Messages of a block.
    size: u32,
    /// When the last message ended, or one began alone.
    last: Option<Time>,
    /// Times of the blocks of either way, the last three by turns, and how many there were.
    candidates: [u64; ROUNDS.0],
    knowns: [u64; ROUNDS.0],
    rounds: usize,
    /// The time of the known way in its last block, which comes first, and of the candidate in the round before.
    known_time: u64,
    before: u64,
    lost: u32,
}

impl Trial {
    fn next_block(&mut self, way: CopyWay) {
        let is_first = way == self.way && self.rounds == 0 && self.before == u64::MAX;
        let number = self.block.number.wrapping_add(1);
        self.block = Block::new(number, way, is_first, self.size);
    }

    /// Whether the block has already taken so many times as long as the known way would for all of it.
    fn is_late(&self, times: u64) -> bool {
        let block = &self.block;
        let counted = u64::from(block.ended.saturating_sub(block.settling));
        let all = u64::from(block.size - block.settling);
        let known = block.bytes / 1024 * self.known_time / counted.max(1) * all;
        counted > 0 && block.nanos > known.saturating_mul(times)
    }

    /// Goes on to the next block. Returns the way that the trial speaks for, where it is over.
    fn judge(&mut self) -> Option<CopyWay> {
        let Some(time) = self.block.time() else {
            // Each of its messages began alone, or failed.
            return Some(self.known);
        };
        if self.block.way == self.known {
            self.known_time = time;
            self.next_block(self.way);
            return None;
        }
        if self.block.is_first {
            self.before = time;
            self.next_block(self.known);
            return None;
        }
        let (at, known) = (self.rounds % ROUNDS.0, self.known_time);
        (self.candidates[at], self.knowns[at]) = (time, known);
        self.rounds += 1;
        let has_gained = time < self.before / 10 * 9;
        self.before = time;
        if !has_gained && time / 3 * 2 > known {
            return Some(self.known);
        }
        let has_enough = self.rounds >= ROUNDS.0;
        // Less than a twentieth is not worth a change.
        if has_enough && median(self.candidates) * 20 < median(self.knowns) * 19 {
            return Some(self.way);
        }
        if has_enough && (!has_gained || self.rounds >= ROUNDS.1) {
            return Some(self.known);
        }
        self.next_block(self.known);
        None
    }
}

fn median(mut times: [u64; ROUNDS.0]) -> u64 {
    times.sort_unstable();
    times[ROUNDS.0 / 2]
}

/// The choice for one class of lengths between two ranks, where messages move beside others.
#[derive(Debug)]
pub(in crate::shm) struct BesideChooser {
    /// `None`: the one of messages that move alone.
    known: Option<CopyWay>,
    is_fixed: bool,
    /// Messages of a block.
    size: u32,
    /// What the known way took in the last trial, in nanoseconds for a KiB.
    time: Option<u64>,
    turns: Turns,
    /// The number of the last block.
    number: u32,
    trial: Option<Box<Trial>>,
}

impl BesideChooser {
    /// Compares blocks of `size` messages, eight at least.
    pub(in crate::shm) const fn new(size: u32) -> Self {
        Self {
            known: None,
            is_fixed: false,
            size,
            time: None,
            turns: Turns::new(CopyWay::Halves, [EARLY * size, PERIOD * size]),
            number: 0,
            trial: None,
        }
    }

    /// Takes `way` always.
    pub(in crate::shm) const fn fixed(way: CopyWay) -> Self {
        let mut chooser = Self::new(EIGHTH);
        (chooser.known, chooser.is_fixed) = (Some(way), true);
        chooser
    }

    /// The way that a trial found to be the fastest, and its time in nanoseconds for a KiB.
    pub(in crate::shm) fn known(&self) -> Option<(CopyWay, u64)> {
        self.known.zip(self.time)
    }

    /// Whether a candidate is tried.
    pub(in crate::shm) const fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Returns how the next message is moved, and the number of its block where its end is to be told: `alone` is the way that is known for
    /// messages that move alone, `can` says which ways it could go.
    #[inline]
    pub(in crate::shm) fn plan(
        &mut self,
        alone: CopyWay,
        can: impl Fn(CopyWay) -> bool,
    ) -> (CopyWay, Option<u32>) {
        self.turns.count = self.turns.count.saturating_add(1);
        let known = self.known.unwrap_or(alone);
        if self.trial.is_none() && (!self.turns.is_due() || self.is_fixed) {
            let way = if can(known) { known } else { CopyWay::Halves };
            return (way, None);
        }
        self.plan_trial(known, &can)
    }

    #[cold]
    fn plan_trial(
        &mut self,
        known: CopyWay,
        can: &impl Fn(CopyWay) -> bool,
    ) -> (CopyWay, Option<u32>) {
        if !can(known) {
            self.give_up();
            return (CopyWay::Halves, None);
        }
        if self.trial.is_none() {
            self.begin(known, can);
        }
        if self.trial.as_ref().is_some_and(|trial| !can(trial.way)) {
            self.give_up();
        }
        let Some(trial) = &mut self.trial else {
            return (known, None);
        };
        let block = &mut trial.block;
        // Until these have ended, others go on by the known way. The first ones of a candidate go one by one.
        let most = match block.is_first {
            true => block.ended + 1,
            false => block.size,
        };
        if block.begun >= most {
            return (known, Some(BESIDE));
        }
        block.begun += 1;
        (block.way, Some(block.number))
    }

    /// Begins to try the next candidate.
    fn begin(&mut self, known: CopyWay, can: &impl Fn(CopyWay) -> bool) {
        let Some(way) = self.turns.next(known, can) else {
            self.turns.end();
            return;
        };
        let trial = Trial {
            way,
            known,
            block: Block::new(self.number.wrapping_add(1), known, false, self.size),
            size: self.size,
            last: None,
            candidates: [0; ROUNDS.0],
            knowns: [0; ROUNDS.0],
            rounds: 0,
            known_time: 0,
            before: u64::MAX,
            lost: 0,
        };
        self.trial = Some(Box::new(trial));
    }

    /// A message began when no other was under way.
    pub(in crate::shm) fn begins_alone(&mut self, now: Time) {
        if let Some(trial) = &mut self.trial {
            trial.last = Some(now);
        }
    }

    /// A message has ended: of the block of this number, where it is of one, and of so many bytes, where all of them were moved.
    pub(in crate::shm) fn ended(&mut self, number: Option<u32>, bytes: Option<u64>, now: Time) {
        let Some(trial) = &mut self.trial else { return };
        let since = trial.last.replace(now);
        if number != Some(trial.block.number) {
            return;
        }
        let is_candidate = trial.block.way == trial.way;
        let block = &mut trial.block;
        block.ended += 1;
        match (bytes, since) {
            (None, _) => trial.lost += 1,
            (Some(bytes), Some(since)) if block.ended > block.settling => {
                let nanos = u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX);
                block.bytes = block.bytes.saturating_add(bytes);
                block.nanos = block.nanos.saturating_add(nanos);
            }
            _ => {}
        }
        let is_over = trial.block.ended >= trial.block.size;
        let most = if trial.block.is_first { 4 } else { 2 };
        if trial.lost > LOST || is_candidate && trial.is_late(most) {
            self.give_up();
        } else if is_over {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        let Some(trial) = &mut self.trial else { return };
        let Some(way) = trial.judge() else { return };
        if trial.rounds >= ROUNDS.0 {
            let times = [trial.knowns, trial.candidates][usize::from(way == trial.way)];
            (self.known, self.time) = (Some(way), Some(median(times)));
        }
        self.give_up();
    }

    fn give_up(&mut self) {
        if let Some(trial) = self.trial.take() {
            self.number = trial.block.number;
        }
        self.turns.end();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
