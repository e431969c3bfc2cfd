//! The metrics as the paper defines them: ratios of means over rounds, the join of other rounds, every time with the way back.

use super::algebra::Union;
use serde::{Deserialize, Serialize};

use super::{Block, Found, Lead};
use crate::body::partitioned::Rounds;
use crate::body::partitioned::paper::{Interval, Single};
use crate::error::Result;
use crate::port::partitioned::PartitionedPort;
use crate::stats::Summary;

/// Rounds of each phase, and before them.
const ROUNDS: u64 = 100;
const WARMUP: u64 = 10;
/// Rounds of each phase at least, and how long threads may compute in all of them together, in seconds.
const LEAST: u64 = 10;
const COMPUTING: f64 = 1.0;
/// In how many parts the rounds are divided, to see how a metric scatters.
const PARTS: usize = 5;

/// What rounds are of; partitions, by the number of their operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Message,
    Partitions(usize),
    Perceived(usize),
}

/// What rounds of one phase came to, on rank 0.
#[derive(Debug, Default)]
pub(crate) struct Paced {
    singles: Vec<Single>,
    parts: Vec<Vec<Interval>>,
    last: Vec<f64>,
}

impl Phase {
    pub(super) fn run<P: PartitionedPort>(
        self,
        rounds: &mut Rounds<'_, P>,
        count: u64,
    ) -> Result<Paced> {
        let mut paced = Paced::default();
        for _ in 0..count {
            match self {
                Self::Message => paced.singles.extend(rounds.paper_message()?),
                Self::Partitions(number) => paced.parts.extend(rounds.paper_partitions(number)?),
                Self::Perceived(number) => {
                    let last = rounds.paper_perceived(number)?;
                    paced.last.extend(last.map(|ns| ns as f64));
                }
            }
        }
        Ok(paced)
    }
}

/// The metrics. Their values are those of all rounds; least and greatest those of a fifth of them.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    /// mean(t_part) / mean(t_pt2pt).
    pub overhead: Summary,
    /// m / mean(t_part_last), in bytes per nanosecond.
    pub bandwidth: Summary,
    /// 1 - mean(t_after_join) / mean(t_pt2pt).
    pub availability: Summary,
    /// mean(t_before_join) / mean(t_part).
    pub early: Summary,
    /// The overhead with t_part from the first ready call to the last arrival, as the text has it.
    pub overhead_of_text: f64,
    /// Time inside ready calls of a round, which t_part does not count, in nanoseconds: the mean.
    pub ready: f64,
    /// Overhead, bandwidth, availability and early-bird share by means of what lies within 1.5 interquartile ranges.
    pub pruned: [f64; 4],
}

impl Paper {
    /// Returns the metrics of rounds of one message, of rounds of partitions, and of what their last ones took, in nanoseconds.
    pub(crate) fn of(
        singles: &[Single],
        parts: &[Vec<Interval>],
        last: Vec<f64>,
        size: usize,
    ) -> Self {
        Taken::of(singles, parts, last).metrics(size)
    }
}

impl Lead<'_, '_, '_> {
    /// What so many rounds of a phase came to after the first ones.
    fn paced(&mut self, phase: Phase, warmup: u64, count: u64) -> Result<Paced> {
        let mut paced = self.learn(Block::Paper(phase, warmup + count))?.paper;
        let skipped = warmup as usize;
        paced.singles.drain(..skipped.min(paced.singles.len()));
        paced.parts.drain(..skipped.min(paced.parts.len()));
        paced.last.drain(..skipped.min(paced.last.len()));
        Ok(paced)
    }

    pub(super) fn measure_paper(&mut self, found: &mut [Found], size: usize) -> Result<()> {
        let circumstances = self.leader.script.circumstances()?;
        // The paper warms nothing up where caches are cold.
        let warmup = match circumstances.sweep() {
            0 => self.effort.warmup.unwrap_or(WARMUP),
            _ => 0,
        };
        let fitting = (COMPUTING / circumstances.time.as_secs_f64().max(1e-9)) as u64;
        let count = fitting.clamp(LEAST, ROUNDS);
        let count = self.effort.iterations.unwrap_or(count).max(1);
        let singles = self.paced(Phase::Message, warmup, count)?.singles;
        for (place, found) in found.iter_mut().enumerate() {
            let parts = self.paced(Phase::Partitions(place), warmup, count)?.parts;
            let last = self.paced(Phase::Perceived(place), warmup, count)?.last;
            let taken = Taken::of(&singles, &parts, last);
            found.paper = Some(taken.metrics(size));
            found.rounds = found.rounds.max(count);
            found.repetitions = found.repetitions.max(1);
            found.samples.extend([
                ("paper_t_pt2pt_ns".to_owned(), taken.message),
                ("paper_fork_join_ns".to_owned(), taken.fork_join),
                ("paper_t_part_ns".to_owned(), taken.part),
                ("paper_t_before_join_ns".to_owned(), taken.before),
                ("paper_t_part_last_ns".to_owned(), taken.last),
            ]);
        }
        Ok(())
    }
}

/// What rounds took, in nanoseconds.
struct Taken {
    message: Vec<f64>,
    fork_join: Vec<f64>,
    part: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
    /// From the first ready call to the last arrival.
    whole: Vec<f64>,
    ready: Vec<f64>,
    last: Vec<f64>,
}

impl Taken {
    fn of(singles: &[Single], parts: &[Vec<Interval>], last: Vec<f64>) -> Self {
        let fork_join: Vec<f64> = singles.iter().map(|one| one.fork_join as f64).collect();
        let join = mean(&fork_join);
        let union = |round: &Vec<Interval>| {
            let intervals = round.iter().map(|one| (one.ready, one.arrived));
            Union::of(intervals.collect())
        };
        let unions: Vec<Union> = parts.iter().map(union).collect();
        let whole = |round: &Vec<Interval>| {
            let first = round.iter().map(|one| one.called).min().unwrap_or(0);
            let end = round.iter().map(|one| one.arrived).max().unwrap_or(first);
            (end - first) as f64
        };
        let ready = |round: &Vec<Interval>| {
            let inside = round.iter().map(|one| one.ready - one.called);
            inside.sum::<u64>() as f64
        };
        let before: Vec<f64> = unions.iter().map(|one| one.before(join)).collect();
        let part: Vec<f64> = unions.iter().map(|one| one.measure() as f64).collect();
        let after = part.iter().zip(&before).map(|(part, before)| part - before);
        Self {
            message: singles.iter().map(|one| one.message as f64).collect(),
            after: after.collect(),
            fork_join,
            part,
            before,
            whole: parts.iter().map(whole).collect(),
            ready: parts.iter().map(ready).collect(),
            last,
        }
    }

    fn metrics(&self, size: usize) -> Paper {
        let scattered = |metric: &dyn Fn(&Means) -> f64| {
            let all = metric(&self.means(0, 1));
            let parts = (0..PARTS).map(|part| metric(&self.means(part, PARTS)));
            let parts: Vec<f64> = parts.filter(|value| value.is_finite()).collect();
            Summary {
                median: all,
                min: parts.iter().copied().fold(all, f64::min),
                max: parts.iter().copied().fold(all, f64::max),
            }
        };
        let pruned = Means::of(|list| mean(&within(list)), self);
        let bandwidth = |means: &Means| size as f64 / means.last;
        Paper {
            overhead: scattered(&Means::overhead),
            bandwidth: scattered(&bandwidth),
            availability: scattered(&Means::availability),
            early: scattered(&Means::early),
            overhead_of_text: mean(&self.whole) / mean(&self.message),
            ready: mean(&self.ready),
            pruned: [
                pruned.overhead(),
                bandwidth(&pruned),
                pruned.availability(),
                pruned.early(),
            ],
        }
    }

    /// The means of one of `parts` parts of the rounds.
    fn means(&self, part: usize, parts: usize) -> Means {
        let of = |list: &[f64]| {
            let bound = |part: usize| part * list.len() / parts;
            mean(&list[bound(part)..bound(part + 1)])
        };
        Means::of(of, self)
    }
}

/// Means of rounds.
struct Means {
    message: f64,
    part: f64,
    before: f64,
    after: f64,
    last: f64,
}

impl Means {
    fn of(mean: impl Fn(&[f64]) -> f64, taken: &Taken) -> Self {
        Self {
            message: mean(&taken.message),
            part: mean(&taken.part),
            before: mean(&taken.before),
            after: mean(&taken.after),
            last: mean(&taken.last),
        }
    }

    fn overhead(&self) -> f64 {
        self.part / self.message
    }

    fn availability(&self) -> f64 {
        1.0 - self.after / self.message
    }

    fn early(&self) -> f64 {
        match self.part > 0.0 {
            true => self.before / self.part,
            // Every partition was there when its ready call returned.
            false => 1.0,
        }
    }
}

fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len() as f64
}

/// What of a list lies within 1.5 interquartile ranges of its quartiles.
fn within(list: &[f64]) -> Vec<f64> {
    let mut sorted = list.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return sorted;
    }
    // Between two values where there are few.
    let quartile = |part: usize| {
        let place = part * (sorted.len() - 1);
        let (below, above) = (sorted[place / 4], sorted[place.div_ceil(4)]);
        below + (above - below) * (place % 4) as f64 / 4.0
    };
    let (first, third) = (quartile(1), quartile(3));
    let beyond = 1.5 * (third - first);
    let bounds = first - beyond..=third + beyond;
    let inside = list.iter().copied().filter(|value| bounds.contains(value));
    inside.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(fork_join: u64, message: u64) -> Single {
        Single { fork_join, message }
    }

    fn interval(called: u64, ready: u64, arrived: u64) -> Interval {
        Interval {
            called,
            ready,
            arrived,
        }
    }

    #[test]
    fn metrics_follow_their_formulas() {
        // Joins at 100 and 200: the mean is 150. Messages take 50 and 150: the mean is 100.
        let singles = [single(100, 50), single(200, 150)];
        let rounds = [
            // 100..140 and 180..240: 100 in all, 40 before 150, 60 after.
            vec![interval(90, 100, 140), interval(175, 180, 240)],
            // 110..210: 100 in all, 40 before, 60 after.
            vec![interval(105, 110, 190), interval(140, 150, 210)],
        ];
        let taken = Taken::of(&singles, &rounds, vec![10.0, 30.0]);
        let paper = taken.metrics(400);
        assert_eq!(paper.overhead.median, 1.0);
        assert_eq!(paper.bandwidth.median, 20.0);
        assert_eq!(paper.availability.median, 0.4);
        assert_eq!(paper.early.median, 0.4);
        // 150 and 105 from the first call to the last arrival; 15 inside of ready calls of each round.
        assert_eq!(paper.overhead_of_text, 1.275);
        assert_eq!(paper.ready, 15.0);
        assert_eq!(paper.pruned, [1.0, 20.0, 0.4, 0.4]);
        assert_eq!(
            (paper.overhead.min, paper.overhead.max),
            (100.0 / 150.0, 2.0)
        );
    }

    #[test]
    fn pruning_leaves_out_what_lies_far_off() {
        let list = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 100.0];
        assert_eq!(within(&list), list[..6]);
        assert_eq!(within(&[5.0]), [5.0]);
        assert!(within(&[]).is_empty());
    }
}
