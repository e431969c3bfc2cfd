//! Which way of copying is the fastest, of copies of about one length by one writer.
//!
//! ```text
//!   many copies by the known way          not timed
//!   a block of copies by the known way    a sample: what they take now
//!   where a trial is due, each way twice: a block of copies by it, of which the first ones are made so to an eighth, and to a half
//!   the way with the smallest time is known from then on
//! ```
//!
//! What is timed is a copy with all that follows until the next one, or until an answer to it was read: what a writer gains so its readers may
//! lose. With messages that are rare, and are answered, the time between them is left out; those that nobody answers take as long by
//! each way, so that the known one stays.
//!
//! **Cost.** A block of a way that takes more than twice as long as the known one ends at once, and says nothing. What trials have cost puts the next one off, so that they
//! take less than a hundredth of the time. One after which the known way stays puts the next one off as well; a sample that takes longer or shorter than when the way
//! was chosen calls it.

use super::way::{Way, Ways};

/// Copies between two samples.
const CALM: u32 = 1024;
/// Between two samples there are fewer copies than [`CALM`] by fewer than this.
const JITTER: u32 = 256;
/// Copies of a block. The time of the last one is that until another block begins, and not looked at.
const BLOCK: u32 = 25;
/// Of a block so many are not timed: readers still have what was written before it.
const SETTLING: u32 = 8;
/// Blocks of each way in a trial.
const ROUNDS: u32 = 2;
/// A block may take twice the known time of its copies, and of so many more.
const SLACK: u64 = 4;
/// Copies between two trials, at least and at most.
const PERIOD: (u32, u32) = (4096, 65_536);
/// The first trial finds memory that nobody has touched: another one comes after so many copies.
const SOON: u32 = CALM;
/// Copies between two trials for each one that could have been made in the time that the first has cost, and the most of them.
const WORTH: (u64, u32) = (128, 1 << 20);
/// Samples in a row that differ from the chosen time, after which ways are tried again.
const CHANGED: u32 = 2;

/// Returns whether a time is less than another one by more than a sixteenth: what is as fast is not changed for.
const fn is_less(time: u64, other: u64) -> bool {
    time < other - other / 16
}

/// Returns whether two times differ by more than a quarter of the larger one.
const fn differ(time: u64, other: u64) -> bool {
    let most = if time > other { time } else { other };
    time.abs_diff(other) > most / 4
}

/// How the next copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub way: Way,
    /// Of the bytes one in so many goes that way, the rest by the known one.
    pub part: usize,
}

/// What the copies of a block took.
#[derive(Debug, Default)]
struct Block {
    copies: u32,
    /// Bytes and ticks of those that count.
    bytes: u64,
    ticks: u64,
    /// Those of them that went into memory that was reused.
    reused: u32,
    /// When the last one began, and its bytes, as long as nothing has ended it.
    open: Option<(u64, u64)>,
    /// Ticks of all so far, and those that the known way would have taken.
    took: u64,
    usual: u64,
}

impl Block {
    /// Ticks for a KiB. `None` where it says nothing of `way`: little was reused.
    fn time(&self, way: Way) -> Option<u64> {
        let is_reuse = way == Way::Reuse;
        let says = !is_reuse || self.reused > (BLOCK - SETTLING) / 2;
        says.then(|| self.ticks.saturating_mul(1024) / self.bytes.max(1))
    }
}

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Sample,
    /// The number of the block in the trial, over all ways and rounds.
    Trial(u32),
}

/// The choice for copies of one class of lengths.
#[derive(Debug)]
pub(super) struct Trial {
    ways: Ways,
    known: Way,
    /// The way of those that find no memory to reuse.
    other: Way,
    /// What the known way took when it was chosen, and in the last sample, in ticks for a KiB.
    chosen: Option<u64>,
    sampled: Option<u64>,
    /// Samples in a row that differed.
    changed: u32,
    /// Copies until the next trial, until one that a change calls, and how many there are from one to the next.
    due: u32,
    worth: u32,
    period: u32,
    is_seasoned: bool,
    stage: Stage,
    block: Block,
    /// The best times of the trial under way, and how many copies could have been made in the time that it has cost.
    best: [Option<u64>; Way::ALL.len()],
    cost: u64,
}

impl Trial {
    /// Returns a choice among `ways`, of which it knows the first.
    pub(super) fn new(ways: Ways) -> Self {
        Self {
            ways,
            known: ways.first(),
            other: ways.first(),
            chosen: None,
            sampled: None,
            changed: 0,
            due: 0,
            worth: 0,
            period: PERIOD.0,
            is_seasoned: false,
            stage: Stage::Sample,
            block: Block::default(),
            best: [None; Way::ALL.len()],
            cost: 0,
        }
    }

    /// The way that is known to be the fastest, and what it took when it was chosen, in ticks for a KiB; where nothing is to be chosen,
    /// in the last sample.
    pub(super) fn known(&self) -> (Way, Option<u64>) {
        (self.known, self.chosen.or(self.sampled))
    }

    /// The way of copies that find no memory to reuse.
    pub(super) const fn other(&self) -> Way {
        self.other
    }

    /// The way of the block under way.
    pub(super) fn way(&self) -> Way {
        match self.stage {
            Stage::Trial(number) if number < self.blocks() => self.ways.nth(number),
            _ => self.known,
        }
    }

    /// Blocks of a trial.
    const fn blocks(&self) -> u32 {
        ROUNDS * self.ways.count()
    }

    /// Begins a copy of `len` bytes at `now`. Returns how it is made, and how many copies after it are made by the known way without
    /// another call; `None` while ways are tried.
    pub(super) fn begin(&mut self, len: usize, now: u64) -> (Step, Option<u32>) {
        self.close(now);
        let way = self.way();
        let part = match self.block.copies {
            _ if way == self.known || way == Way::Reuse => 1,
            ..4 => 8,
            4..SETTLING => 2,
            _ => 1,
        };
        let step = Step { way, part };
        self.block.copies += 1;
        if self.block.copies < BLOCK {
            self.block.open = Some((now, len as u64));
            return (step, None);
        }
        (step, self.end_block(now))
    }

    /// A copy went into memory that is reused.
    pub(super) const fn count_reuse(&mut self) {
        if self.block.copies > SETTLING {
            self.block.reused += 1;
        }
    }

    /// An answer to what was copied last was read.
    pub(super) fn close(&mut self, now: u64) {
        let Some((since, len)) = self.block.open.take() else {
            return;
        };
        let took = now.saturating_sub(since);
        let block = &mut self.block;
        if block.copies > SETTLING {
            block.bytes += len;
            block.ticks += took;
        }
        let Some(known) = self.sampled.filter(|_| self.stage != Stage::Sample) else {
            return;
        };
        let usual = known.saturating_mul(len) / 1024;
        block.took += took;
        block.usual += usual;
        let most = 2 * block.usual + SLACK * usual;
        let way = self.way();
        if way != self.known && self.block.took > most {
            self.next_block(None);
        }
    }

    /// The block under way is over. Returns how many copies are made by the known way now, where none begins.
    fn end_block(&mut self, now: u64) -> Option<u32> {
        let time = self.block.time(self.way());
        match self.stage {
            Stage::Sample => self.sample(time, now),
            Stage::Trial(_) => self.next_block(time).then(|| self.choose(now)),
        }
    }

    /// A sample has said `time`. Returns how many copies are made by the known way now; `None` where a trial begins.
    fn sample(&mut self, time: Option<u64>, now: u64) -> Option<u32> {
        self.block = Block::default();
        // Where the known way is that of memory which was not there, others are to be found.
        let has_changed = match (time, self.chosen) {
            (Some(time), Some(chosen)) => differ(time, chosen),
            (time, _) => time.is_none(),
        };
        self.sampled = time.or(self.sampled);
        self.changed = if has_changed { self.changed + 1 } else { 0 };
        let is_due = self.due == 0 || (self.changed >= CHANGED && self.worth == 0);
        if !is_due || self.ways.count() == 1 {
            return Some(self.calm(now));
        }
        if self.changed >= CHANGED {
            self.period = PERIOD.0;
        }
        self.best = [None; Way::ALL.len()];
        self.cost = 0;
        self.stage = Stage::Trial(0);
        None
    }

    /// Notes the time of the block under way, and goes on with the next one. Returns whether there is none.
    fn next_block(&mut self, time: Option<u64>) -> bool {
        let (way, Stage::Trial(number)) = (self.way(), self.stage) else {
            return false;
        };
        let best = &mut self.best[way as usize];
        *best = [*best, time].into_iter().flatten().min();
        let block = std::mem::take(&mut self.block);
        if way != self.known {
            let copy = block.usual / u64::from(block.copies.max(1));
            self.cost += block.took.saturating_sub(block.usual) / copy.max(1);
        }
        let number = number + 1;
        self.stage = Stage::Trial(number);
        number >= self.blocks()
    }

    /// All ways were tried: chooses one. Returns how many copies are made by it now.
    fn choose(&mut self, now: u64) -> u32 {
        let before = (self.known, self.other);
        let best = self.best;
        let time = |way: Way| best[way as usize];
        let choose = |known: Way, among: &dyn Fn(Way) -> bool| {
            let tried = self.ways.iter().filter(|way| among(*way));
            let timed = tried.filter_map(|way| Some((time(way)?, way)));
            match (timed.min_by_key(|(time, _)| *time), time(known)) {
                (Some((fastest, _)), Some(known_time)) if !is_less(fastest, known_time) => known,
                (Some((_, fastest)), _) => fastest,
                (None, _) => known,
            }
        };
        self.other = choose(self.other, &|way| way != Way::Reuse);
        let known = match self.known {
            Way::Reuse if time(Way::Reuse).is_some() => Way::Reuse,
            _ => self.other,
        };
        self.known = choose(known, &|_| true);
        if self.known != Way::Reuse {
            self.other = self.known;
        }
        self.chosen = time(self.known);
        self.sampled = self.chosen.or(self.sampled);
        self.changed = 0;
        self.stage = Stage::Sample;
        let stays = before == (self.known, self.other);
        self.period = match stays && self.is_seasoned {
            true => (2 * self.period).min(PERIOD.1),
            false => PERIOD.0,
        };
        let worth = u32::try_from(self.cost.saturating_mul(WORTH.0)).unwrap_or(u32::MAX);
        self.worth = worth.clamp(CALM, WORTH.1);
        self.due = match std::mem::replace(&mut self.is_seasoned, true) {
            true => self.period.max(self.worth),
            false => SOON,
        };
        self.calm(now)
    }

    /// Two ranks that answer each other count alike: where one tried one way whenever the other tried the other, neither would see a
    /// difference. So they do not try at the same time again.
    const fn calm(&mut self, now: u64) -> u32 {
        let copies = CALM - now as u32 % JITTER;
        self.due = self.due.saturating_sub(copies);
        self.worth = self.worth.saturating_sub(copies);
        copies
    }
}
