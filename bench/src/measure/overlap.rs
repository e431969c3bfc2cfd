//! How availability and overlap are measured: calibration of iterations and of the work between
//! post and wait, repeated and alternating blocks.
//!
//! The method is that of the Sandia Micro-Benchmarks (`mpi_overhead`): the work doubles until an
//! iteration takes half as long again as one without work; what it then takes longer than the work
//! alone is the overhead. Refined where noise cut the original short: the work is calibrated, steps
//! are medians of several blocks, the work is no shorter than what one core needs for the message,
//! blocks of all kinds alternate, and each block counts by the mean of the middle half of its
//! iterations.

use std::time::Duration;

use super::{Effort, divide};
use crate::args::Side;
use crate::body::compute::{look_ns, unit_ns};
use crate::body::overlap::{Block, Case, Kind, Order, Overlap};
use crate::error::Result;
use crate::leader::{Leader, Script, warm_up};
use crate::load::Load;
use crate::port::Port;
use crate::stats::Summary;

/// How often each kind of block is repeated.
const REPETITIONS: u64 = 9;
/// How long a block without work should take.
const BLOCK: Duration = Duration::from_millis(4);
/// How many iterations a block has, at least and at most, when their number is ours to choose.
const COUNTS: (f64, f64) = (16.0, 10_000.0);
/// How long the warm-up may take.
const WARMUP: Duration = Duration::from_millis(100);
/// An iteration has enough work when it takes so many times as long as one without.
const ENOUGH: f64 = 1.5;
/// How often the work may double.
const DOUBLINGS: u32 = 24;
/// How many times the time of an iteration the other rank computes while one moves a message alone.
const ALONE: f64 = 6.0;

/// What a case came to, all times in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Availability {
    /// An iteration without work.
    pub base: Summary,
    /// An iteration with work.
    pub iter: Summary,
    /// The work alone, with the handshake.
    pub work: Summary,
    /// What of an iteration is not work, by repetition.
    pub overhead: Summary,
    /// An iteration without work in which one rank moves the message while the other computes;
    /// `None` when no rank can without the other.
    pub base_one_core: Option<f64>,
    pub iterations: u64,
    pub repetitions: u32,
}

/// What a case came to, all times in nanoseconds and without the handshake.
#[derive(Debug, Clone)]
pub(crate) struct Overlapped {
    /// A message alone.
    pub communication: Summary,
    /// The work alone.
    pub computation: Summary,
    /// Both at once.
    pub total: Summary,
    /// Which part of the shorter one the longer one hides, in percent, by repetition.
    pub overlap: Summary,
    pub iterations: u64,
    pub repetitions: u32,
}

/// What the ranks do.
pub(crate) struct Blocks<'a, P: Port> {
    port: &'a P,
    body: Overlap<P>,
    look_ns: f64,
}

impl<'a, P: Port> Blocks<'a, P> {
    pub(crate) fn new(port: &'a P, body: Overlap<P>) -> Self {
        Self {
            port,
            body,
            look_ns: look_ns(),
        }
    }
}

impl<P: Port> Script for Blocks<'_, P> {
    type Case = ();
    type Block = Block;
    /// The time of an iteration, in nanoseconds.
    type Told = f64;

    fn block(&mut self, block: &Block) -> Result<f64> {
        let time = self.body.block(self.port, *block)?;
        Ok((time - self.look_ns).max(0.0))
    }
}

/// The blocks, over any port.
pub(crate) type Steps<'a> = dyn Script<Case = (), Block = Block, Told = f64> + 'a;

/// What rank 0 does.
pub(crate) struct Lead<'l, 'a, 's> {
    leader: &'l mut Leader<'a, Steps<'s>>,
    effort: &'l Effort,
    unit_ns: f64,
}

impl<'l, 'a, 's> Lead<'l, 'a, 's> {
    pub(crate) fn new(leader: &'l mut Leader<'a, Steps<'s>>, effort: &'l Effort) -> Self {
        Self {
            leader,
            effort,
            unit_ns: unit_ns(),
        }
    }

    /// Measures while all ranks watch what else runs.
    pub(crate) fn watched<T>(
        &mut self,
        measure: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Load)> {
        self.leader.watch()?;
        let found = measure(self)?;
        Ok((found, self.leader.report()?))
    }

    /// The post-work-wait method, with the receive posted early.
    pub(crate) fn availability(&mut self, size: usize, side: Side) -> Result<Availability> {
        let order = Order::Early;
        let case = Case { size, side, order };
        let rough = self.warm_up(case)?;
        let blocks = self.blocks(rough);
        let alone = self.units(ALONE * rough);
        let mut units = self.enough_work(case, blocks[0], alone)?;
        for doubled in 0.. {
            let mut times = Times::default();
            for &count in &blocks {
                times.shake.push(self.block(case, Kind::Work, count, 0)?);
                times.base.push(self.block(case, Kind::Both, count, 0)?);
                times.iter.push(self.block(case, Kind::Both, count, units)?);
                times.work.push(self.block(case, Kind::Work, count, units)?);
                times
                    .here
                    .push(self.block(case, Kind::AloneHere, count, alone)?);
                times
                    .there
                    .push(self.block(case, Kind::AloneThere, count, alone)?);
            }
            // Noise may have ended the search for the work too early.
            if times.has_enough_work() || doubled >= 3 {
                return Ok(times.availability(alone as f64 * self.unit_ns, &blocks));
            }
            units *= 2;
        }
        unreachable!("the loop ends with the fourth round")
    }

    /// A message alone, computation that takes as long alone, and both at once.
    pub(crate) fn overlap(&mut self, case: Case) -> Result<Overlapped> {
        let rough = self.warm_up(case)?;
        let blocks = self.blocks(rough);
        let shake = self.steady(case, Kind::Work, blocks[0], 0)?;
        let communication = self.steady(case, Kind::Both, blocks[0], 0)? - shake;
        let units = self.units(communication);
        let mut times = Times::default();
        for &count in &blocks {
            times.shake.push(self.block(case, Kind::Work, count, 0)?);
            times.base.push(self.block(case, Kind::Both, count, 0)?);
            times.work.push(self.block(case, Kind::Work, count, units)?);
            times.iter.push(self.block(case, Kind::Both, count, units)?);
        }
        Ok(times.overlapped(&blocks))
    }

    fn block(&mut self, case: Case, kind: Kind, count: u64, units: u64) -> Result<f64> {
        let block = Block {
            case,
            kind,
            count,
            units,
        };
        let times = self.leader.block(&block)?;
        Ok(times[usize::from(kind == Kind::AloneThere)])
    }

    /// The median of three blocks.
    fn steady(&mut self, case: Case, kind: Kind, count: u64, units: u64) -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(self.block(case, kind, count, units)?);
        }
        Ok(summary(&times).median)
    }

    /// Returns the time of an iteration without work.
    fn warm_up(&mut self, case: Case) -> Result<f64> {
        let (asked, least) = (self.effort.warmup, self.effort.defaults(case.size).1);
        let is_told = self.effort.iterations.is_some();
        let is_enough = |done, time| (asked.is_some() || done >= least) && (is_told || time >= 1e6);
        warm_up(asked.unwrap_or(1).max(1), WARMUP, is_enough, |count| {
            Ok(self.block(case, Kind::Both, count, 0)? * count as f64)
        })
    }

    /// The iterations of each block, where one without work takes `time`.
    fn blocks(&self, time: f64) -> Vec<u64> {
        let fitting = BLOCK.as_nanos() as f64 / time.max(1.0);
        let count = || fitting.clamp(COUNTS.0, COUNTS.1) as u64 * REPETITIONS;
        divide(self.effort.iterations.unwrap_or_else(count), REPETITIONS)
    }

    /// The work that takes so many nanoseconds.
    fn units(&self, time: f64) -> u64 {
        (time / self.unit_ns).max(1.0) as u64
    }

    /// Doubles the work until iterations take long enough, and the work itself as long as one core
    /// needs for the message: what two cores do in less is not to count as overhead because one of
    /// them had no time for it yet.
    fn enough_work(&mut self, case: Case, count: u64, alone: u64) -> Result<u64> {
        let mut times = Times::default();
        for _ in 0..3 {
            times.shake.push(self.block(case, Kind::Work, count, 0)?);
            times.base.push(self.block(case, Kind::Both, count, 0)?);
            let here = self.block(case, Kind::AloneHere, count, alone)?;
            times.here.push(here);
            let there = self.block(case, Kind::AloneThere, count, alone)?;
            times.there.push(there);
        }
        let base = summary(&times.base).median;
        let computed = alone as f64 * self.unit_ns;
        let least = times.one_core(computed).unwrap_or(0.0);
        let mut units = self.units(base / 8.0);
        for _ in 0..DOUBLINGS {
            let long = units as f64 * self.unit_ns >= least;
            if long && self.steady(case, Kind::Both, count, units)? > ENOUGH * base {
                break;
            }
            units *= 2;
        }
        Ok(units)
    }
}

/// The times of a case's blocks, by kind, in nanoseconds an iteration.
#[derive(Debug, Default)]
struct Times {
    /// The handshake alone.
    shake: Vec<f64>,
    /// A message.
    base: Vec<f64>,
    /// A message and work.
    iter: Vec<f64>,
    /// Work.
    work: Vec<f64>,
    /// A message that rank 0 moves, or that rank 1 moves, while the other computes.
    here: Vec<f64>,
    there: Vec<f64>,
}

impl Times {
    fn has_enough_work(&self) -> bool {
        summary(&self.iter).median > ENOUGH * summary(&self.base).median
    }

    /// `computed` is how long the other rank computed while one was to move a message alone.
    fn availability(&self, computed: f64, blocks: &[u64]) -> Availability {
        let overhead = pairwise(&self.iter, &self.work, |iter, work| iter - work);
        Availability {
            base: summary(&self.base),
            iter: summary(&self.iter),
            work: summary(&self.work),
            overhead: summary(&overhead),
            base_one_core: self.one_core(computed),
            iterations: blocks.iter().sum(),
            repetitions: repetitions(blocks),
        }
    }

    /// The faster of the two ranks that may have moved the message alone. One that needed nearly
    /// as long as the other computed has waited for it; one that was done in much less time than
    /// both together need has only handed the message over.
    fn one_core(&self, computed: f64) -> Option<f64> {
        let (shake, base) = (summary(&self.shake).median, summary(&self.base).median);
        let moved = |time: &f64| *time <= 0.8 * computed && *time >= 0.75 * (base - shake);
        [&self.here, &self.there]
            .map(|times| summary(times).median)
            .into_iter()
            .filter(moved)
            .reduce(f64::min)
            .map(|time| (shake + time).max(base))
    }

    fn overlapped(&self, blocks: &[u64]) -> Overlapped {
        let shake = summary(&self.shake).median;
        let without = |times: &[f64]| times.iter().map(|time| (time - shake).max(1.0)).collect();
        let communication: Vec<f64> = without(&self.base);
        let computation: Vec<f64> = without(&self.work);
        let total: Vec<f64> = without(&self.iter);
        let hidden = pairwise(&communication, &computation, |a, b| (a + b, a.min(b)));
        let overlap = pairwise(&hidden, &total, |(sum, shorter), total| {
            100.0 * (sum - total) / shorter
        });
        Overlapped {
            communication: summary(&communication),
            computation: summary(&computation),
            total: summary(&total),
            overlap: summary(&overlap),
            iterations: blocks.iter().sum(),
            repetitions: repetitions(blocks),
        }
    }
}

fn pairwise<A: Copy, B: Copy, T>(a: &[A], b: &[B], both: impl Fn(A, B) -> T) -> Vec<T> {
    a.iter().zip(b).map(|(&a, &b)| both(a, b)).collect()
}

fn summary(times: &[f64]) -> Summary {
    Summary::of(times).expect("at least one block, of finite time")
}

fn repetitions(blocks: &[u64]) -> u32 {
    u32::try_from(blocks.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Times {
        Times {
            shake: vec![100.0; 3],
            base: vec![1100.0, 1000.0, 1200.0],
            iter: vec![2300.0, 2310.0, 2320.0],
            work: vec![2100.0, 2090.0, 2080.0],
            here: vec![9000.0; 3],
            there: vec![1500.0; 3],
        }
    }

    #[test]
    fn overhead_is_what_is_not_work() {
        let found = times().availability(10_000.0, &[4, 4, 3]);
        assert_eq!((found.base.median, found.overhead.median), (1100.0, 220.0));
        assert_eq!((found.overhead.min, found.overhead.max), (200.0, 240.0));
        assert_eq!((found.iterations, found.repetitions), (11, 3));
        assert!(times().has_enough_work());
    }

    #[test]
    fn one_core_is_the_faster_rank_that_moved_the_message() {
        // Rank 0 waited for the other; rank 1 moved it.
        assert_eq!(times().one_core(10_000.0), Some(1600.0));
        // Rank 0 moved it, and rank 1 only handed it over.
        let there = vec![50.0; 3];
        assert_eq!(Times { there, ..times() }.one_core(20_000.0), Some(9100.0));
        assert_eq!(times().one_core(1000.0), None);
        // Alone is never faster than together.
        let there = vec![900.0; 3];
        assert_eq!(Times { there, ..times() }.one_core(10_000.0), Some(1100.0));
    }

    #[test]
    fn overlap_is_the_part_of_the_shorter_that_is_hidden() {
        let times = |total: f64| Times {
            shake: vec![100.0],
            base: vec![1100.0],
            work: vec![2100.0],
            iter: vec![total],
            ..Times::default()
        };
        let overlap = |total| times(total).overlapped(&[1]).overlap.median;
        assert_eq!(overlap(3100.0), 0.0);
        assert_eq!(overlap(2100.0), 100.0);
        assert_eq!(overlap(2600.0), 50.0);
        assert_eq!(overlap(3600.0), -50.0);
    }
}
