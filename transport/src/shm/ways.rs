//! Which way moves the long messages of a pair fastest, found by trial in the traffic itself.
//!
//! What is fastest depends on what two processors share and on what a copy by the kernel costs, and changes where the system moves a
//! process. A [`Chooser`] knows one way for one class of lengths: at first that of the set-up. Now and then it tries another one.
//!
//! ```text
//!   the known way, timed now and then
//!   a candidate: an eighth of a message, twice, up to eight times while it is three times as slow; then dropped
//!                one half of a message, as often while it is half as slow again; then dropped
//!                whole messages of about one length, eight, up to four times eight while it becomes faster; five of each eight count
//!   after each of these parts the same by the known way, and after each eight whole ones: what it takes to begin is in the time of a
//!   part, and counts for most of a short one
//!   the one with the smaller median is known from then on
//! ```
//!
//! So a message of which a part is tried takes no more than twice as long as by the known way, beside one unit of the candidate: the part that a candidate moves is small until it has shown what
//! it costs, and whoever moves it goes on by the known way once the part has taken as long as the whole message would have
//! ([`Plan::limit`]). A whole message by the candidate has no such limit: it goes so only after one of two halves was at most half as slow again.
//! A trial takes some ten times the time of a message, beside the messages themselves, and there are thousands between two; more of
//! them where it took longer, so that trials cost less than a hundredth.
//!
//! What is timed is the exchange of one message, from the moment that both sides know of it: how often messages come does not matter. One
//! that is moved beside others is not timed so, since they take its time as well: [`beside`] chooses for those. The
//! times come from outside, by the clock of the rank, so that a simulated run is the same each time; there is no chance in it.

pub(super) mod beside;
mod turns;

use std::time::Duration;

use turns::Turns;

/// How the bytes of a transfer are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyWay {
    /// By the kernel's copy, one half by each side.
    Halves,
    /// By the kernel's copy, all by the side that joined the transfer.
    OneSide,
    /// By plain copies of both sides, through the memory of the ring.
    Ring,
}

impl CopyWay {
    pub(super) const ALL: [Self; 3] = [Self::Halves, Self::OneSide, Self::Ring];

    /// The name in settings and reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Halves => "halves",
            Self::OneSide => "one-side",
            Self::Ring => "ring",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }
}

/// How much of a message a way moves that is tried; the rest goes by the known way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Eighth,
    Half,
    All,
}

impl Part {
    /// Returns how many of `units` it is, one at least.
    pub(super) fn of(self, units: u32) -> u32 {
        let part = match self {
            Self::Eighth => units / 8,
            Self::Half => units / 2,
            Self::All => units,
        };
        part.clamp(1, units.max(1))
    }
}

/// How one message is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// The way of the part that is tried, which goes first, where one is.
    pub first: Option<(CopyWay, Part)>,
    /// The way of the rest.
    pub rest: CopyWay,
    /// Whether the chooser is to be told how long it took.
    timed: Timed,
    /// Nanoseconds for each KiB of the message after which the trial of a part is over.
    limit: u64,
}

/// What the time of a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
    Nothing,
    /// To know how long the known way takes.
    Sample,
    /// For the trial under way.
    Trial,
}

impl Plan {
    /// All by the kernel, one half by each side, and not timed.
    pub(super) const HALVES: Self = Self::all(CopyWay::Halves);

    /// All by one way, and not timed.
    pub(super) const fn all(way: CopyWay) -> Self {
        Self::of(way, Timed::Nothing)
    }

    const fn of(rest: CopyWay, timed: Timed) -> Self {
        Self {
            first: None,
            rest,
            timed,
            limit: u64::MAX,
        }
    }

    /// How long the part that is tried of a message of `bytes` may take. After that the known way moves what nobody has begun.
    pub(super) fn limit(&self, bytes: u64) -> Duration {
        Duration::from_nanos(self.limit.saturating_mul(bytes) / 1024)
    }

    /// Whether the chooser is to be told how long it took.
    pub(super) fn is_timed(&self) -> bool {
        self.timed != Timed::Nothing
    }
}

/// Times of whole messages by one way, of which the last few count.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    last: [u64; Self::COUNT],
    count: usize,
    /// Their median, where there are enough.
    median: Option<u64>,
}

impl Times {
    const COUNT: usize = 5;

    fn push(&mut self, time: u64) {
        self.last[self.count % Self::COUNT] = time;
        self.count += 1;
        if self.count >= Self::COUNT {
            let mut sorted = self.last;
            sorted.sort_unstable();
            self.median = Some(sorted[Self::COUNT / 2]);
        }
    }

    const fn median(&self) -> Option<u64> {
        self.median
    }
}

/// The best time of some messages.
#[derive(Debug, Clone, Copy)]
struct Best {
    count: u32,
    time: u64,
}

impl Best {
    const NONE: Self = Self {
        count: 0,
        time: u64::MAX,
    };

    fn push(&mut self, time: u64) {
        self.count += 1;
        self.time = self.time.min(time);
    }
}

/// A candidate that is tried.
#[derive(Debug)]
struct Trial {
    way: CopyWay,
    part: Part,
    /// Messages of this part so far, and the best time among them: by the candidate, and by the known way.
    parts: [Best; 2],
    /// Whole messages so far, and their times: by the candidate, and by the known way in the same time.
    whole: u32,
    candidate: Times,
    known: Times,
    /// What the candidate took in the round before.
    before: u64,
    /// Bytes of the first whole message: only those of about the same length are compared, and how many others there were.
    bytes: Option<u64>,
    others: u32,
    /// A message of it is under way.
    is_open: bool,
    /// Messages whose times say nothing.
    lost: u32,
    /// Nanoseconds that its messages took beyond what the known way takes.
    cost: u64,
}

/// The choice for one class of lengths between two ranks.
#[derive(Debug)]
pub(super) struct Chooser {
    known: CopyWay,
    /// Nothing is tried.
    is_fixed: bool,
    /// Times of the known way since it is, and the length of the last message that has one.
    times: Times,
    bytes: u64,
    /// What it took when it was chosen, or when nothing was found to be better.
    chosen_at: Option<u64>,
    turns: Turns,
    trial: Option<Trial>,
}

/// Of so many messages one is timed.
const TIMED: u32 = 32;
/// Messages before the first trials: those of each candidate in turn.
const EARLY: u32 = 16;
/// Messages between two trials.
const PERIOD: u32 = 4096;
/// Messages between two trials where the known way has become slower or faster.
const CHANGED: u32 = 1024;
/// Messages by either way of each part that is less than a whole one: so many at least, and at most while the candidate is too slow. The first
/// ones find its memory untouched.
const RUNS: (u32, u32) = (2, 8);
/// Whole messages by one way in a row, and how many of them are not timed: what the other way moved before them is in the caches.
const BLOCK: u32 = SETTLING + Times::COUNT as u32;
const SETTLING: u32 = 3;
/// Rounds of such a block by either way, at most.
const ROUNDS: u32 = 4;
/// A trial is given up when more messages than this have said nothing.
const LOST: u32 = 4;
/// A trial is given up when more whole messages than this were of another length.
const OTHERS: u32 = 32;

impl Trial {
    /// Whether it is the known way's turn.
    fn is_known_due(&self) -> bool {
        let [candidate, known] = self.parts;
        match self.part {
            Part::All => self.whole % (2 * BLOCK) >= BLOCK,
            Part::Eighth | Part::Half => known.count < candidate.count,
        }
    }

    /// Counts a whole message that took `time`.
    fn push_whole(&mut self, time: u64) {
        let times = match self.is_known_due() {
            true => &mut self.known,
            false => &mut self.candidate,
        };
        if self.whole % BLOCK >= SETTLING {
            times.push(time);
        }
        self.whole += 1;
    }

    /// Whether the time of a whole message of `bytes` is compared: it is within an eighth of the length of the first one.
    fn compares(&mut self, bytes: u64) -> bool {
        let first = *self.bytes.get_or_insert(bytes);
        let does = bytes.abs_diff(first) <= first / 8;
        self.others += u32::from(!does);
        does
    }
}

impl Chooser {
    /// Knows `way`.
    pub(super) const fn new(way: CopyWay) -> Self {
        Self {
            known: way,
            is_fixed: false,
            times: Times {
                last: [0; Times::COUNT],
                count: 0,
                median: None,
            },
            bytes: 0,
            chosen_at: None,
            turns: Turns::new(way, [EARLY, PERIOD]),
            trial: None,
        }
    }

    /// Takes `way` always.
    pub(super) const fn fixed(way: CopyWay) -> Self {
        let mut chooser = Self::new(way);
        chooser.is_fixed = true;
        chooser
    }

    /// The way that is known to be the fastest, and its time in nanoseconds for a KiB where that is known.
    pub(super) fn known(&self) -> (CopyWay, Option<u64>) {
        (self.known, self.times.median())
    }

    /// Whether `way` is the candidate that is tried.
    pub(super) fn tries(&self, way: CopyWay) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.way == way)
    }

    /// Returns how the next message is moved; `can` says which ways it could go.
    #[inline]
    pub(super) fn plan(&mut self, can: impl Fn(CopyWay) -> bool) -> Plan {
        let count = self.turns.count.saturating_add(1);
        self.turns.count = count;
        if !can(self.known) {
            // A time of it says nothing of the known way; that the message is looked at does say whether the known way can be used again.
            return match count.is_multiple_of(TIMED) {
                true => Plan::of(CopyWay::Halves, Timed::Sample),
                false => Plan::HALVES,
            };
        }
        let has_time = self.times.median().is_some();
        let is_calm = self.trial.is_none() && (!self.turns.is_due() || self.is_fixed);
        if is_calm && has_time && !count.is_multiple_of(TIMED) {
            return Plan::of(self.known, Timed::Nothing);
        }
        self.plan_timed(&can)
    }

    /// The same of a message that is timed, or of which a part may be tried.
    #[cold]
    fn plan_timed(&mut self, can: &impl Fn(CopyWay) -> bool) -> Plan {
        if self.trial.as_ref().is_some_and(|trial| !can(trial.way)) {
            self.end_open();
        }
        if self.trial.is_none() && self.turns.is_due() && !self.is_fixed {
            self.begin(can);
        }
        let (known, limit) = (self.known, self.times.median());
        let Some(trial) = &mut self.trial else {
            let is_sample = self.turns.count.is_multiple_of(TIMED) || limit.is_none();
            let timed = if is_sample {
                Timed::Sample
            } else {
                Timed::Nothing
            };
            return Plan::of(known, timed);
        };
        if trial.is_open {
            return Plan::of(known, Timed::Nothing);
        }
        trial.is_open = true;
        let way = [trial.way, known][usize::from(trial.is_known_due())];
        let is_first = (way, trial.part) != (known, Part::All);
        Plan {
            first: is_first.then_some((way, trial.part)),
            rest: known,
            timed: Timed::Trial,
            limit: limit.unwrap_or(u64::MAX),
        }
    }

    /// A message that was [planned](Self::plan) so was moved: the `bytes` that are timed, those of the part that is tried or all, in
    /// `took`.
    pub(super) fn took(&mut self, plan: &Plan, bytes: u64, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let time = nanos.saturating_mul(1024) / bytes.max(1);
        if plan.timed == Timed::Sample && plan.rest == self.known {
            self.bytes = bytes;
            self.note(time);
        }
        if plan.timed != Timed::Trial {
            return;
        }
        // Where its trial was given up meanwhile, there is none.
        let Some(mut trial) = self.trial.take() else {
            return;
        };
        trial.is_open = false;
        let usual = self.times.median().unwrap_or(time).saturating_mul(bytes) / 1024;
        trial.cost = trial.cost.saturating_add(nanos.saturating_sub(usual));
        let is_part = matches!(plan.first, Some((_, Part::Eighth | Part::Half)));
        if !is_part && !trial.compares(bytes) {
            self.trial = Some(trial);
            return self.give_up_if(|trial| trial.others > OTHERS);
        }
        match plan.first {
            None | Some((_, Part::All)) => trial.push_whole(time),
            Some((way, _)) => trial.parts[usize::from(way == self.known)].push(time),
        }
        self.trial = self.judge(trial);
    }

    /// A message that was planned so has failed, or something else happened to it: its time says nothing.
    pub(super) fn lost(&mut self, plan: &Plan) {
        if plan.timed != Timed::Trial {
            return;
        }
        let Some(trial) = &mut self.trial else {
            return;
        };
        trial.is_open = false;
        trial.lost += 1;
        self.give_up_if(|trial| trial.lost > LOST);
    }

    fn give_up_if(&mut self, is_vain: impl FnOnce(&Trial) -> bool) {
        if self.trial.as_ref().is_some_and(is_vain) {
            self.end_open();
        }
    }

    /// Ends the trial under way: nothing follows from it.
    fn end_open(&mut self) {
        let cost = self.trial.take().map_or(0, |trial| trial.cost);
        self.end(cost);
    }

    /// Begins to try the next candidate.
    fn begin(&mut self, can: impl Fn(CopyWay) -> bool) {
        if self.times.median().is_none() {
            return;
        }
        let Some(way) = self.turns.next(self.known, can) else {
            return;
        };
        self.trial = Some(Trial {
            way,
            part: Part::Eighth,
            parts: [Best::NONE; 2],
            whole: 0,
            candidate: Times::default(),
            known: Times::default(),
            before: u64::MAX,
            bytes: None,
            others: 0,
            is_open: false,
            lost: 0,
            cost: 0,
        });
    }

    /// A message of the known way took so long, outside of trials.
    fn note(&mut self, time: u64) {
        self.times.push(time);
        let Some(now) = self.times.median() else {
            return;
        };
        let chosen_at = *self.chosen_at.get_or_insert(now);
        let has_changed = now > chosen_at.saturating_mul(3) / 2 || now < chosen_at / 3 * 2;
        if has_changed && self.times.count > Times::COUNT {
            self.turns.due = self.turns.due.min(CHANGED);
        }
    }

    /// Goes on with a trial, or ends it.
    fn judge(&mut self, mut trial: Trial) -> Option<Trial> {
        let [candidate, known] = trial.parts;
        let (part, most) = match trial.part {
            Part::Eighth => (Part::Half, known.time.saturating_mul(3)),
            Part::Half => (Part::All, known.time.saturating_mul(3) / 2),
            Part::All => return self.compare(trial),
        };
        let (count, is_slow) = (known.count, candidate.time > most);
        if count < RUNS.0 || is_slow && count < RUNS.1 {
            return Some(trial);
        }
        if is_slow {
            self.end(trial.cost);
            return None;
        }
        trial.part = part;
        trial.parts = [Best::NONE; 2];
        Some(trial)
    }

    /// Chooses between the ways of a trial once enough whole messages went by either.
    fn compare(&mut self, mut trial: Trial) -> Option<Trial> {
        let is_round_over = trial.whole.is_multiple_of(2 * BLOCK);
        let medians = trial.candidate.median().zip(trial.known.median());
        let Some((candidate, known)) = medians.filter(|_| is_round_over) else {
            return Some(trial);
        };
        // Less than a twentieth is not worth a change.
        let is_better = candidate.saturating_mul(20) < known.saturating_mul(19);
        // One that becomes faster with each round, since what it goes through grows, has another one.
        let has_gained = candidate < trial.before / 10 * 9;
        let may_go_on = candidate / 2 < known && trial.whole < 2 * BLOCK * ROUNDS;
        if !is_better && has_gained && may_go_on {
            trial.before = candidate;
            return Some(trial);
        }
        self.times = trial.known;
        if is_better {
            (self.known, self.times) = (trial.way, trial.candidate);
        }
        self.end(trial.cost);
        None
    }

    /// The trial is over, and has cost so many nanoseconds.
    fn end(&mut self, cost: u64) {
        let each = self.times.median().unwrap_or(0).saturating_mul(self.bytes) / 1024;
        self.turns
            .end(u32::try_from(cost / each.max(1)).unwrap_or(u32::MAX));
        self.chosen_at = self.times.median();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
