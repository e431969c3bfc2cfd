//! The same for messages that move beside others, by what many of them take together.
//!
//! ```text
//!   a block of messages by the known way: 128, two windows of many programs, or fewer where they are long
//!   a sixteenth of a block by the candidate, one by one among others, up to six times while its time changes, as where its memory grows;
//!   dropped where it takes twice as long then
//!   a block by the known way, a block by the candidate, three times at least, and up to eight times while it becomes faster;
//!   dropped as soon as it takes twice as long, in the first block four times, and when a block took half as long again and was no faster than
//!   the one before
//!   the one with the smaller median is known from then on
//!   a block by the known way now and then: where it has become slower or faster, the others are tried soon
//! ```
//!
//! Ends are counted, not begins: what is begun by one way ends while others begin by the next one. From one end to the next is the time of
//! the message that ended, and of one that begins alone it is counted from its begin: what a program does between its messages is no
//! part of it.

use super::CopyWay;
use super::turns::Turns;
use tagwire_base::Time;

/// The share of a block that is not counted, since the one before goes on beside it.
const SETTLING: u32 = 4;
/// The share of a block that a candidate's first ones are, and how many of these there are at most.
const SIXTEENTH: u32 = 16;
const FIRSTS: u32 = 6;
/// Nanoseconds that a first block may take however fast the known way is: each page of a room is touched by both sides once, 4 MiB in 2 to 3 ms.
const GROWTH: u64 = 4_000_000;
/// Blocks by either way that are compared, and how many there are at most.
const ROUNDS: (usize, usize) = (3, 8);
/// Blocks before the first trials, and between two.
const EARLY: u32 = 2;
const PERIOD: u32 = 1024;
/// Blocks between two of the known way that are timed outside of trials, and before the next trials where it took another time.
const SAMPLED: u32 = 16;
const CHANGED: u32 = 64;
/// A trial is given up when more messages than this have failed.
const LOST: u32 = 4;

/// Is the number of the block of those that go on beside a trial: when they end is to be known, too.
const BESIDE: u32 = 0;

/// Messages that go one way in a row.
#[derive(Debug, Clone, Copy)]
struct Block {
    number: u32,
    way: CopyWay,
    /// One of the first ones of a candidate.
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
        let (size, settling) = match is_first {
            true => (size / SIXTEENTH, 0),
            false => (size, size / SETTLING),
        };
        Self {
            number,
            way,
            is_first,
            size,
            settling,
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

/// A candidate that is tried; or the known way, whose time is looked at.
#[derive(Debug)]
struct Trial {
    way: CopyWay,
    known: CopyWay,
    block: Block,
    /// The first blocks by the candidate so far, which are short; `None` once it is about as fast.
    firsts: Option<u32>,
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
        let is_first = way == self.way && self.firsts.is_some();
        let number = self.block.number.wrapping_add(1);
        self.block = Block::new(number, way, is_first, self.size);
    }

    fn is_sample(&self) -> bool {
        self.way == self.known
    }

    /// Whether a candidate's block has already taken far longer than the known way would for all of it.
    fn is_late(&self) -> bool {
        let block = &self.block;
        if block.way == self.known {
            return false;
        }
        let (times, least) = match (block.is_first, self.rounds) {
            (true, _) => (SIXTEENTH, GROWTH),
            (false, 0) => (4, 0),
            (false, _) => (2, 0),
        };
        let counted = u64::from(block.ended.saturating_sub(block.settling));
        let all = u64::from(block.size - block.settling);
        let known = block.bytes / 1024 * self.known_time / counted.max(1) * all;
        counted > 0 && block.nanos > known.saturating_mul(u64::from(times)).max(least)
    }

    /// Goes on to the next block. Returns the way that the trial speaks for, where it is over.
    fn judge(&mut self) -> Option<CopyWay> {
        let Some(time) = self.block.time() else {
            // Each of its messages began alone, or failed.
            return Some(self.known);
        };
        if self.block.way == self.known {
            self.known_time = time;
            if self.is_sample() {
                return Some(self.known);
            }
            self.next_block(self.way);
            return None;
        }
        if let Some(firsts) = self.firsts {
            // Where its memory grows, it takes less or far more than in the block before.
            let is_steady = time >= self.before / 10 * 9 && time / 3 * 2 < self.before;
            self.before = time;
            let is_slow = time / 2 > self.known_time;
            if is_slow && (is_steady || firsts + 1 == FIRSTS) {
                return Some(self.known);
            }
            self.firsts = is_slow.then_some(firsts + 1);
            self.next_block(if is_slow { self.way } else { self.known });
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
    /// What the known way took when it was looked at last, in nanoseconds for a KiB.
    time: Option<u64>,
    turns: Turns,
    /// Messages since the last trial after which the known way is looked at.
    sample_at: u32,
    /// The number of the last block.
    number: u32,
    trial: Option<Box<Trial>>,
}

impl BesideChooser {
    /// Compares blocks of `size` messages, 16 at least.
    pub(in crate::shm) const fn new(size: u32) -> Self {
        Self {
            known: None,
            is_fixed: false,
            size,
            time: None,
            turns: Turns::new(CopyWay::Halves, [EARLY * size, PERIOD * size]),
            sample_at: SAMPLED * size,
            number: 0,
            trial: None,
        }
    }

    /// Takes `way` always.
    pub(in crate::shm) const fn fixed(way: CopyWay) -> Self {
        let mut chooser = Self::new(SIXTEENTH);
        (chooser.known, chooser.is_fixed) = (Some(way), true);
        chooser
    }

    /// The way that a trial found to be the fastest, and its time in nanoseconds for a KiB.
    pub(in crate::shm) fn known(&self) -> Option<(CopyWay, u64)> {
        self.known.zip(self.time)
    }

    /// Whether messages are timed.
    pub(in crate::shm) const fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether `way` is the candidate that is tried.
    pub(in crate::shm) fn tries(&self, way: CopyWay) -> bool {
        let trial = self.trial.as_ref();
        trial.is_some_and(|trial| trial.way == way && !trial.is_sample())
    }

    #[inline]
    const fn is_trial_due(&self) -> bool {
        let is_sample_due = self.time.is_some() && self.turns.count >= self.sample_at;
        (self.turns.is_due() || is_sample_due) && !self.is_fixed
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
        if self.trial.is_none() && !self.is_trial_due() {
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

    /// Begins to try the next candidate, or to look at the known way where no trial is due yet.
    fn begin(&mut self, known: CopyWay, can: &impl Fn(CopyWay) -> bool) {
        let way = match self.turns.is_due() {
            true => self.turns.next(known, can),
            false => Some(known),
        };
        let Some(way) = way else {
            self.end();
            return;
        };
        let trial = Trial {
            way,
            known,
            block: Block::new(self.number.wrapping_add(1), known, false, self.size),
            firsts: Some(0),
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
        if trial.lost > LOST || trial.is_late() {
            self.give_up();
        } else if is_over {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        let Some(trial) = &mut self.trial else { return };
        let Some(way) = trial.judge() else { return };
        if trial.is_sample() {
            let now = trial.known_time;
            let before = self.time.replace(now).unwrap_or(now);
            if now > before / 2 * 3 || now < before / 3 * 2 {
                self.turns.due = self.turns.due.min(CHANGED * self.size);
            }
        }
        if trial.rounds >= ROUNDS.0 {
            let times = [trial.knowns, trial.candidates][usize::from(way == trial.way)];
            (self.known, self.time) = (Some(way), Some(median(times)));
        }
        self.give_up();
    }

    fn give_up(&mut self) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        self.number = trial.block.number;
        if trial.is_sample() {
            self.sample_at = self.turns.count.saturating_add(SAMPLED * self.size);
        } else {
            self.end();
        }
    }

    /// The turn of a candidate is over.
    fn end(&mut self) {
        self.turns.end(0);
        self.sample_at = SAMPLED * self.size;
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
