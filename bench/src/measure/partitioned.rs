//! How partitioned operations are measured, and what the figures are.
//!
//! The metrics are those of Temucin, Grant and Afsahi, "Micro-Benchmarking MPI Partitioned Point-to-Point
//! Communication" (ICPP 2022); `docs/benchmarking.md` has their formulas. Blocks of all operations and of the
//! message in their place alternate. Nothing is pruned: figures are medians, and the samples are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Effort;
use crate::args::partitioned::{Circumstances, Definition};
use crate::body::partitioned::{Case, Kind, Rounds, Setting, Stamps};
use crate::error::{Error, Result};
use crate::leader::{Leader, Script};
use crate::port::partitioned::{Operation, PartitionedPort};
use crate::stats::Summary;

use self::paper::{Paced, Phase};

mod algebra;
mod paper;

pub(crate) use self::paper::Paper;

/// How often each kind of block is repeated.
const REPETITIONS: u64 = 15;
/// How long a block should take, in nanoseconds.
const BLOCK: f64 = 2e6;
/// How many rounds a block has, at least and at most.
const COUNTS: (f64, f64) = (4.0, 2_000.0);
/// How many rounds are looked at closely, and how long they may take together, in nanoseconds.
const STAMPED: (u64, f64) = (50, 1e9);

/// What one policy came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub ours: Option<Ours>,
    pub paper: Option<Paper>,
    /// The samples that the figures are of.
    pub samples: BTreeMap<String, Vec<f64>>,
    pub rounds: u64,
    pub repetitions: u32,
    /// Which way the operation took, in words.
    pub way: Option<String>,
}

/// Tagwire's metrics.
#[derive(Debug, Clone)]
pub(crate) struct Ours {
    /// t_part / t_pt2pt, by repetition.
    pub overhead: Summary,
    /// m / t_last, in bytes per nanosecond, by round.
    pub bandwidth: Summary,
    /// 1 - t_after_join / t_pt2pt, by round.
    pub availability: Summary,
    /// t_before_join / t_part, by round.
    pub early: Summary,
}

/// What a block consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Block {
    /// So many rounds without computation.
    Rounds(Kind, u64),
    /// One round with the time of everything.
    Closely(Kind),
    /// So many rounds as the paper defines them.
    Paper(Phase, u64),
}

/// What rank 0 has learned of a block.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The time of each round, in nanoseconds.
    times: Vec<u64>,
    stamps: Option<Stamps>,
    paper: Paced,
}

/// What the ranks do.
pub(crate) struct Blocks<'p, 'o, P: PartitionedPort> {
    port: &'p P,
    operations: &'o [Operation],
    /// That of the next case.
    setting: Setting,
    rounds: Option<Rounds<'p, P>>,
    learned: Learned,
}

impl<'p, 'o, P: PartitionedPort> Blocks<'p, 'o, P> {
    pub(crate) fn new(port: &'p P, operations: &'o [Operation], setting: Setting) -> Self {
        Self {
            port,
            operations,
            setting,
            rounds: None,
            learned: Learned::default(),
        }
    }

    fn rounds(&mut self) -> Result<&mut Rounds<'p, P>> {
        let missing = || Error::Peer("rank 0 announced rounds of no case".to_owned());
        self.rounds.as_mut().ok_or_else(missing)
    }
}

impl<P: PartitionedPort> Script for Blocks<'_, '_, P> {
    type Case = Case;
    type Block = Block;
    type Told = ();

    fn begin(&mut self, case: &Case) -> Result<()> {
        let (port, setting, operations) = (self.port, self.setting, self.operations);
        // One more acknowledges.
        self.setting.tag = (setting.tag + operations.len() as u32 + 1) % 4096;
        let rounds = Rounds::open(port, setting, *case, operations)?;
        self.rounds = Some(rounds);
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        let (rounds, mut learned) = (self.rounds()?, Learned::default());
        match *block {
            Block::Rounds(kind, count) => learned.times = rounds.block(kind, count)?,
            Block::Closely(kind) => learned.stamps = rounds.stamped(kind)?,
            Block::Paper(phase, count) => learned.paper = phase.run(rounds, count)?,
        }
        self.learned = learned;
        Ok(())
    }

    fn end(&mut self, _: &Case) -> Result<()> {
        self.rounds = None;
        Ok(())
    }
}

/// The blocks over any port, and what rank 0 asks of them beside.
pub(crate) trait Rank0: Script<Case = Case, Block = Block, Told = ()> {
    /// Returns how many operations are compared.
    fn operations(&self) -> usize;

    /// Returns what the last block taught.
    fn learned(&mut self) -> Learned;

    /// Returns what the case's threads do between start and wait.
    ///
    /// # Errors
    /// Outside of a case.
    fn circumstances(&mut self) -> Result<Circumstances>;

    /// Returns which way an operation took, in words.
    ///
    /// # Errors
    /// Outside of a case.
    fn describe(&mut self, operation: usize) -> Result<Option<String>>;
}

impl<P: PartitionedPort> Rank0 for Blocks<'_, '_, P> {
    fn operations(&self) -> usize {
        self.operations.len()
    }

    fn learned(&mut self) -> Learned {
        std::mem::take(&mut self.learned)
    }

    fn circumstances(&mut self) -> Result<Circumstances> {
        Ok(self.rounds()?.circumstances())
    }

    fn describe(&mut self, operation: usize) -> Result<Option<String>> {
        Ok(self.rounds()?.describe(operation))
    }
}

pub(crate) type Steps<'a> = dyn Rank0 + 'a;

/// What rank 0 does.
pub(crate) struct Lead<'l, 'a, 's> {
    pub leader: &'l mut Leader<'a, Steps<'s>>,
    pub effort: &'l Effort,
}

impl Lead<'_, '_, '_> {
    /// Measures all operations, and the message in their place.
    pub(crate) fn measure(&mut self, size: usize, definition: Definition) -> Result<Vec<Found>> {
        let policies = self.leader.script.operations();
        let mut found = vec![Found::default(); policies];
        if definition.has_ours() {
            self.measure_ours(&mut found, size)?;
        }
        if definition.has_paper() {
            self.measure_paper(&mut found, size)?;
        }
        for (place, found) in found.iter_mut().enumerate() {
            found.way = self.leader.script.describe(place)?;
        }
        Ok(found)
    }

    fn learn(&mut self, block: Block) -> Result<Learned> {
        self.leader.block(&block)?;
        Ok(self.leader.script.learned())
    }

    fn measure_ours(&mut self, found: &mut [Found], size: usize) -> Result<()> {
        let operations: Vec<Kind> = (0..found.len()).map(Kind::Partitioned).collect();
        let all: Vec<Kind> = [Kind::Message].into_iter().chain(operations).collect();
        let blocks = self.blocks(&all)?;
        let stamps = self.closely(&all)?;
        let message = (&blocks[0], &stamps[0]);
        for (place, found) in found.iter_mut().enumerate() {
            let part = (&blocks[place + 1], &stamps[place + 1]);
            let (ours, samples) = figures(size, message, part);
            found.ours = Some(ours);
            found.samples.extend(samples);
            found.rounds = part.1.len() as u64;
            found.repetitions = part.0.len() as u32;
        }
        Ok(())
    }

    /// The median of the times of so many rounds, in nanoseconds.
    fn block(&mut self, kind: Kind, count: u64) -> Result<f64> {
        let mut times = self.learn(Block::Rounds(kind, count))?.times;
        times.sort_unstable();
        Ok(times[times.len() / 2] as f64)
    }

    /// The medians of the repetitions' blocks, in nanoseconds a round, of each kind.
    fn blocks(&mut self, kinds: &[Kind]) -> Result<Vec<Vec<f64>>> {
        let mut slowest: f64 = 1.0;
        for &kind in kinds {
            let warmup = self.effort.warmup.unwrap_or(20).max(1);
            slowest = slowest.max(self.block(kind, warmup)?);
        }
        let fitting = (BLOCK / slowest).clamp(COUNTS.0, COUNTS.1) as u64;
        let asked = self.effort.iterations;
        let count = asked.map_or(fitting, |asked| asked.div_ceil(REPETITIONS));
        let mut times = vec![Vec::new(); kinds.len()];
        for _ in 0..REPETITIONS {
            for (kind, times) in kinds.iter().zip(&mut times) {
                times.push(self.block(*kind, count)?);
            }
        }
        Ok(times)
    }

    /// Rounds of each kind with computation, by turns.
    fn closely(&mut self, kinds: &[Kind]) -> Result<Vec<Vec<Stamps>>> {
        let mut stamps = vec![Vec::new(); kinds.len()];
        let (most, time) = STAMPED;
        let most = self.effort.iterations.map_or(most, |asked| asked.min(most));
        let mut spent = 0.0;
        for round in 0..most.max(1) {
            if round >= 10 && spent > time * kinds.len() as f64 {
                break;
            }
            for (kind, stamps) in kinds.iter().zip(&mut stamps) {
                let began = std::time::Instant::now();
                stamps.extend(self.learn(Block::Closely(*kind))?.stamps);
                spent += began.elapsed().as_nanos() as f64;
            }
        }
        Ok(stamps)
    }
}

type Measured<'a> = (&'a Vec<f64>, &'a Vec<Stamps>);

/// The metrics of an operation, against those of a message of the same size.
fn figures(
    size: usize,
    message: Measured<'_>,
    part: Measured<'_>,
) -> (Ours, BTreeMap<String, Vec<f64>>) {
    let summary = |values: &[f64]| Summary::of(values).expect("at least one round, of finite time");
    let times = message.0.iter().zip(part.0);
    let overhead: Vec<f64> = times.map(|(message, part)| part / message).collect();
    let single = |stamps: &Stamps| span(stamps.first, stamps.end);
    let singles: Vec<f64> = message.1.iter().map(single).collect();
    let t_pt2pt = summary(&singles).median;
    let rounds = |metric: &dyn Fn(&Stamps) -> f64| part.1.iter().map(metric).collect::<Vec<f64>>();
    let bandwidth = rounds(&|stamps| size as f64 / span(stamps.last, stamps.end));
    let after_join = rounds(&|stamps| stamps.end.saturating_sub(stamps.join) as f64);
    let availability: Vec<f64> = after_join.iter().map(|time| 1.0 - time / t_pt2pt).collect();
    let early = rounds(&before_join);
    let samples = [
        ("t_part_ns", part.0.clone()),
        ("t_pt2pt_ns", message.0.clone()),
        ("t_pt2pt_after_compute_ns", singles),
        ("t_last_ns", rounds(&|stamps| span(stamps.last, stamps.end))),
        ("t_after_join_ns", after_join),
        ("early_bird", early.clone()),
        ("early_bird_clock", rounds(&before_join_by_clock)),
    ];
    let ours = Ours {
        overhead: summary(&overhead),
        bandwidth: summary(&bandwidth),
        availability: summary(&availability),
        early: summary(&early),
    };
    let samples = samples.map(|(name, list)| (name.to_owned(), list)).into();
    (ours, samples)
}

/// From one time to a later one; at least a nanosecond, since it is divided by.
fn span(from: u64, to: u64) -> f64 {
    to.saturating_sub(from).max(1) as f64
}

/// The part of the communication that was over when the threads were joined: of equal partitions, those
/// that had arrived.
fn before_join(stamps: &Stamps) -> f64 {
    let early = stamps.arrived.iter().filter(|time| **time <= stamps.join);
    early.count() as f64 / stamps.arrived.len().max(1) as f64
}

/// The same by the clock: of the time from the first ready call to the last arrival, what lay before the
/// join.
fn before_join_by_clock(stamps: &Stamps) -> f64 {
    let before = stamps.join.min(stamps.end).saturating_sub(stamps.first);
    before as f64 / span(stamps.first, stamps.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_their_formulas() {
        let stamps = |first, last, join, end, arrived: &[u64]| Stamps {
            first,
            last,
            join,
            end,
            arrived: arrived.to_vec(),
        };
        let message = (
            vec![100.0, 200.0],
            vec![stamps(1000, 1000, 1000, 1100, &[])],
        );
        let part = (
            vec![150.0, 200.0],
            vec![stamps(2000, 2500, 2600, 2640, &[2100, 2590, 2610, 2640])],
        );
        let (found, samples) = figures(1400, (&message.0, &message.1), (&part.0, &part.1));
        assert_eq!(found.overhead.median, 1.25);
        assert_eq!(found.bandwidth.median, 10.0);
        assert_eq!(found.availability.median, 0.6);
        assert_eq!(found.early.median, 0.5);
        assert_eq!(samples["t_after_join_ns"], [40.0]);
        assert_eq!(samples["early_bird_clock"], [600.0 / 640.0]);
    }

    #[test]
    fn what_is_over_before_the_join_costs_nothing_after_it() {
        let stamps = Stamps {
            first: 10,
            last: 20,
            join: 50,
            end: 30,
            arrived: vec![15, 30],
        };
        let part = (vec![1.0], vec![stamps.clone()]);
        let (found, _) = figures(8, (&vec![1.0], &vec![stamps]), (&part.0, &part.1));
        assert_eq!((found.availability.median, found.early.median), (1.0, 1.0));
    }
}
