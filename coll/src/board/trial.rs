//! Which algorithm by a board is the fastest here, found by trial in the traffic itself.
//!
//! What a copy through a board costs, and what the system's copy of another process's memory costs, depends on the processor, on what
//! two of them share, and on the system. For each operation and class of lengths a group knows one algorithm, at first that of the
//! table. Now and then it tries the others, one after the other:
//!
//! ```text
//!     a few calls by the known one, a few by the other      a pair of blocks
//!     members show each other how long theirs took          it goes on, unless the other one is far behind
//!     ... five pairs
//!     the one with the smaller median is known from then on
//! ```
//!
//! So all decide alike. Of a block, the time of the member that took the least counts: it waited least for members that came later.
//! The first call of a block does not count: it finds in the caches what the other algorithm has left there.

use super::found::{Standing, Timed};
use crate::algorithms::{ALGORITHMS, Algorithm, Collective, Needs};

const _: () = assert!(ALGORITHMS.len() <= u64::BITS as usize, "a bit for each");

/// Calls of a block.
const BLOCK: u32 = 4;
/// Pairs of blocks in a trial.
const PAIRS: usize = 5;
/// Pairs after which the other algorithm may have shown that it is far behind.
const ENOUGH: usize = 2;
/// Calls before the first trial.
const EARLY: u32 = 16;
/// Calls between two trials of all others.
const PERIOD: u32 = 8192;
/// The length in bytes from which algorithms are tried; shorter operations go as the table says.
pub const TRIED_FROM: usize = 8 << 10;

/// How long the calls of a pair of blocks took, in nanoseconds: of the known algorithm and of the other one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pair([u64; 2]);

impl Pair {
    /// Bytes in which a member shows its own.
    pub(super) const BYTES: usize = size_of::<Self>();

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (words, _) = bytes.as_chunks_mut();
        for (word, time) in words.iter_mut().zip(self.0) {
            *word = time.to_le_bytes();
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        let mut times = Self::default();
        for (time, word) in times.0.iter_mut().zip(words) {
            *time = u64::from_le_bytes(*word);
        }
        times
    }

    /// Returns the least of both for each algorithm.
    pub(super) fn least(self, other: Self) -> Self {
        let [known, tried] = self.0;
        Self([known.min(other.0[0]), tried.min(other.0[1])])
    }
}

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) algorithm: &'static Algorithm,
    /// It is of a trial.
    pub(super) is_tried: bool,
}

/// Returns the class of a length.
pub(super) const fn class(bytes: usize) -> u32 {
    match bytes.checked_ilog2() {
        Some(class) => class,
        None => 0,
    }
}

/// The trials of a group, by operation and class of lengths.
#[derive(Debug, Default)]
pub(super) struct Trials(Vec<((Collective, u32), Chooser)>);

impl Trials {
    /// Returns the choice for an operation on so many bytes, for which the table has `first`.
    pub(super) fn chooser(&mut self, bytes: usize, first: &'static Algorithm) -> &mut Chooser {
        let key = (first.collective, class(bytes));
        let known = self.0.iter().position(|(known, _)| *known == key);
        let place = known.unwrap_or_else(|| {
            self.0.push((key, Chooser::new(first)));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

/// The choice for an operation and a class of lengths. It depends on the number of calls and on the times that all members have shown
/// alone.
#[derive(Debug)]
pub(super) struct Chooser {
    first: &'static Algorithm,
    known: &'static Algorithm,
    /// Calls since the last trial, and how many there are to be before the next one.
    calls: u32,
    due: u32,
    /// A bit for each of [`ALGORITHMS`] that is still to be tried.
    left: u64,
    /// The best of those that have lost since all others were to be tried.
    next: Option<Timed>,
    trial: Option<Trial>,
}

/// A trial under way.
#[derive(Debug)]
struct Trial {
    other: &'static Algorithm,
    /// The calls of it so far.
    calls: u32,
    /// The time of the pair of blocks under way.
    pair: Pair,
    /// The times of the pairs before it, which all members know.
    pairs: [Pair; PAIRS],
}

impl Trial {
    /// Returns which of both the next call goes by: the known one, or the other.
    const fn which(&self) -> usize {
        (self.calls / BLOCK % 2) as usize
    }

    /// Returns the number of pairs that are over.
    const fn over(&self) -> usize {
        (self.calls / (2 * BLOCK)) as usize
    }

    /// Returns the times of the pairs that are over, of one of both.
    fn times(&self, which: usize) -> impl Iterator<Item = u64> {
        let over = &self.pairs[..self.over()];
        over.iter().map(move |pair| pair.0[which])
    }

    /// Whether the other algorithm takes half as long again at its best.
    fn is_vain(&self) -> bool {
        let [known, other] = [0, 1].map(|which| self.times(which).min().unwrap_or(0));
        self.over() >= ENOUGH && other / 3 > known / 2
    }

    /// Returns the median of the pairs that are over, of one of both.
    fn median(&self, which: usize) -> u64 {
        let mut times = [0; PAIRS];
        let over = times.iter_mut().zip(self.times(which));
        let over = over.map(|(time, of_pair)| *time = of_pair).count();
        times[..over].sort_unstable();
        times[over / 2]
    }

    /// Whether the other algorithm is better after all pairs: less than a twentieth is not worth a change.
    fn is_won(&self) -> bool {
        let [known, other] = [0, 1].map(|which| self.median(which));
        other.saturating_mul(20) < known.saturating_mul(19)
    }
}

impl Chooser {
    const fn new(first: &'static Algorithm) -> Self {
        Self {
            first,
            known: first,
            calls: 0,
            due: EARLY,
            left: 0,
            next: None,
            trial: None,
        }
    }

    /// Returns how the next call goes; `can` says which algorithms can be taken.
    pub(super) fn plan(&mut self, can: impl Fn(&Algorithm) -> bool) -> Plan {
        self.calls += 1;
        if !can(self.known) {
            self.known = self.first;
        }
        if self.trial.is_none() && self.calls > self.due {
            self.begin(&can);
        }
        if self.trial.as_ref().is_some_and(|trial| !can(trial.other)) {
            self.end();
        }
        let Some(trial) = &self.trial else {
            return Plan {
                algorithm: self.known,
                is_tried: false,
            };
        };
        Plan {
            algorithm: [self.known, trial.other][trial.which()],
            is_tried: true,
        }
    }

    fn begin(&mut self, can: impl Fn(&Algorithm) -> bool) {
        if self.left == 0 {
            let others = ALGORITHMS.iter().enumerate().filter(|(_, it)| {
                let is_own = it.collective == self.known.collective && **it != *self.known;
                is_own && it.needs == Needs::Board && can(it)
            });
            self.left = others.fold(0, |all, (place, _)| all | 1 << place);
            self.next = None;
        }
        let Some(other) = ALGORITHMS.get(self.left.trailing_zeros() as usize) else {
            return self.end();
        };
        self.left &= self.left - 1;
        self.trial = Some(Trial {
            other,
            calls: 0,
            pair: Pair::default(),
            pairs: Default::default(),
        });
    }

    fn end(&mut self) {
        self.trial = None;
        self.calls = 0;
        self.due = if self.left == 0 { PERIOD } else { 0 };
    }

    /// A call of the trial has taken so many nanoseconds. Returns the times of a pair of blocks where it was the last one of it: then
    /// members are to show each other theirs, and to [judge](Self::judge).
    pub(super) fn took(&mut self, nanos: u64) -> Option<Pair> {
        let trial = self.trial.as_mut()?;
        if !trial.calls.is_multiple_of(BLOCK) {
            trial.pair.0[trial.which()] += nanos;
        }
        trial.calls += 1;
        trial.calls.is_multiple_of(2 * BLOCK).then_some(trial.pair)
    }

    /// Goes on with the trial after a pair of blocks, of which the least times of all members are these, or ends it. Returns how the
    /// algorithms stand then.
    pub(super) fn judge(&mut self, least: Pair) -> Option<Standing> {
        let trial = self.trial.as_mut()?;
        if let Some(place) = trial.over().checked_sub(1) {
            trial.pairs[place] = least;
        }
        trial.pair = Pair::default();
        let is_over = trial.over() == PAIRS;
        if !is_over && !trial.is_vain() {
            return None;
        }
        let both = [self.known, trial.other];
        let timed = |which: usize| Timed {
            algorithm: both[which],
            nanos: trial.median(which) / u64::from(BLOCK - 1),
        };
        let (mut known, mut lost) = (timed(0), timed(1));
        if is_over && trial.is_won() {
            tracing::debug!(before = %self.known, now = %trial.other, "found faster");
            (known, lost) = (lost, known);
        }
        let next = self.next.filter(|next| next.nanos <= lost.nanos);
        let next = next.unwrap_or(lost);
        self.known = known.algorithm;
        self.next = Some(next);
        self.end();
        Some(Standing { known, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of a trial.
    const TRIAL: u32 = PAIRS as u32 * 2 * BLOCK;

    fn named(name: &str) -> &'static Algorithm {
        let mut all = ALGORITHMS.iter();
        all.find(|it| it.to_string() == name).unwrap()
    }

    /// Makes calls of 64 KiB each that take what `nanos` says of an algorithm, and returns how often each one was taken.
    fn run(
        trials: &mut Trials,
        calls: u32,
        can: impl Fn(&Algorithm) -> bool,
        nanos: impl Fn(&str) -> u64,
    ) -> Vec<(&'static str, u32)> {
        judged(trials, calls, can, nanos).0
    }

    /// The same, with how the algorithms stood after each trial.
    fn judged(
        trials: &mut Trials,
        calls: u32,
        can: impl Fn(&Algorithm) -> bool,
        nanos: impl Fn(&str) -> u64,
    ) -> (Vec<(&'static str, u32)>, Vec<Standing>) {
        let mut taken: Vec<(&str, u32)> = Vec::new();
        let mut standings = Vec::new();
        for _ in 0..calls {
            let chooser = trials.chooser(64 << 10, named("allreduce:board"));
            let plan = chooser.plan(&can);
            let name = plan.algorithm.name;
            match taken.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => taken.push((name, 1)),
            }
            if plan.is_tried
                && let Some(times) = chooser.took(nanos(name))
            {
                standings.extend(chooser.judge(times));
            }
        }
        (taken, standings)
    }

    #[test]
    fn the_fastest_is_found_and_found_again_when_another_one_is() {
        let mut trials = Trials::default();
        let fast = |fastest: &'static str| move |name: &str| 100 - 10 * u64::from(name == fastest);
        let early = EARLY + 2 * TRIAL;
        run(&mut trials, early, |_| true, fast("single-copy"));
        let taken = run(&mut trials, PERIOD, |_| true, fast("single-copy"));
        assert_eq!(taken, [("single-copy", PERIOD)]);
        run(&mut trials, 2 * TRIAL, |_| true, fast("board"));
        let taken = run(&mut trials, PERIOD, |_| true, fast("board"));
        assert_eq!(taken, [("board", PERIOD)]);
    }

    #[test]
    fn less_than_a_twentieth_changes_nothing_and_trials_are_few() {
        let mut trials = Trials::default();
        let nanos = |name: &str| 100 - 5 * u64::from(name != "board");
        let calls = 10 * PERIOD;
        let taken = run(&mut trials, calls, |_| true, nanos);
        let others: u32 = taken[1..].iter().map(|(_, count)| count).sum();
        assert_eq!(taken[0].0, "board");
        assert!(others > 0 && others * 100 < calls, "{taken:?}");
    }

    #[test]
    fn what_cannot_be_taken_is_not_tried_and_not_kept() {
        let mut trials = Trials::default();
        let nanos = |name: &str| 100 - 50 * u64::from(name == "single-copy");
        let no_copy = |it: &Algorithm| it.name != "single-copy";
        let taken = run(&mut trials, 10 * PERIOD, no_copy, nanos);
        assert!(
            taken.iter().all(|(name, _)| *name != "single-copy"),
            "{taken:?}"
        );
        let mut trials = Trials::default();
        run(&mut trials, PERIOD, |_| true, nanos);
        let taken = run(&mut trials, 8, no_copy, nanos);
        assert_eq!(taken, [("board", 8)]);
        // Amid its trial, too.
        let mut trials = Trials::default();
        run(&mut trials, EARLY + TRIAL + BLOCK, |_| true, nanos);
        assert_eq!(run(&mut trials, 8, no_copy, nanos)[0], ("board", 8));
    }

    #[test]
    fn one_that_is_far_behind_is_given_up_early() {
        let mut trials = Trials::default();
        let nanos = |name: &str| 100 + 60 * u64::from(name != "board");
        let taken = run(&mut trials, PERIOD, |_| true, nanos);
        let tried = ENOUGH as u32 * BLOCK;
        let all = [
            ("board", PERIOD - 2 * tried),
            ("board-parts", tried),
            ("single-copy", tried),
        ];
        assert_eq!(taken, all);
    }

    /// The times are those of one call, and the next best is so among all that were tried.
    #[test]
    fn a_trial_ends_with_the_best_and_the_next_best() {
        let stand = |times: [u64; 3]| {
            let nanos = |name: &str| {
                let names = ["board", "board-parts", "single-copy"];
                times[names.iter().position(|it| *it == name).unwrap()]
            };
            let mut trials = Trials::default();
            let (_, standings) = judged(&mut trials, EARLY + 2 * TRIAL, |_| true, nanos);
            let told = |it: &Timed| (it.algorithm.name, it.nanos);
            let told = standings.iter().map(|it| (told(&it.known), told(&it.next)));
            told.collect::<Vec<_>>()
        };
        let [board, parts, copy] = ["board", "board-parts", "single-copy"];
        for (times, ends) in [
            (
                [100, 90, 80],
                [((parts, 90), (board, 100)), ((copy, 80), (parts, 90))],
            ),
            (
                [100, 110, 90],
                [((board, 100), (parts, 110)), ((copy, 90), (board, 100))],
            ),
            (
                [100, 120, 140],
                [((board, 100), (parts, 120)), ((board, 100), (parts, 120))],
            ),
            // Given up early.
            (
                [100, 900, 800],
                [((board, 100), (parts, 900)), ((board, 100), (copy, 800))],
            ),
        ] {
            assert_eq!(stand(times), ends, "{times:?}");
        }
    }

    #[test]
    fn times_of_members_are_shown_and_the_least_count() {
        let (one, other) = (Pair([5, u64::MAX]), Pair([6, 7]));
        assert_eq!(Pair::from_bytes(&one.to_bytes()), one);
        assert_eq!(one.least(other), Pair([5, 7]));
    }
}
