//! How a size is measured: warm-up, calibration, repeated blocks.
//!
//! Where several layers are measured, their blocks alternate.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::Percentiles;
use crate::body::{Body, Measured, Repeat, Times};
use crate::error::{Error, Result};
use crate::leader::{self, Script, warm_up};
use crate::load::Load;
use crate::plan::Plan;
use crate::port::{Endpoint, Port, barrier};
use crate::record::{FIRST_BLOCK, Figures, Quantity};
use crate::stats::Summary;
use crate::time::nanoseconds;

pub(crate) mod overlap;
pub(crate) mod partitioned;

/// Into how many blocks the iterations of a size are divided.
pub(crate) const REPETITIONS: u64 = 5;

/// How long a block should take at least when the number of iterations is ours to choose.
const BLOCK: Duration = Duration::from_millis(20);
/// The same where an iteration may take long.
const LONG_BLOCK: Duration = Duration::from_millis(100);
/// How long a size may take when the number of iterations is ours to choose.
const SIZE: Duration = Duration::from_secs(1);
/// How long the warm-up may take then.
const WARMUP: Duration = Duration::from_millis(250);

/// How many iterations, and how they are timed.
#[derive(Debug, Clone)]
pub(crate) struct Effort {
    /// As asked for; else by size and time.
    pub iterations: Option<u64>,
    /// As asked for; else by size and time.
    pub warmup: Option<u64>,
    /// OSU's numbers for messages up to 8 KiB and for longer ones: iterations, warm-up.
    pub small: (u64, u64),
    pub large: (u64, u64),
    /// How many callers take turns on a core, whose blocks are to be of many turns.
    pub turns: u32,
    /// When there are some, iterations are timed singly.
    pub percentiles: Option<Percentiles>,
}

impl Effort {
    /// As `plan` asks for; else these numbers for messages up to 8 KiB and for longer ones.
    pub(crate) fn of(plan: &Plan, small: (u64, u64), large: (u64, u64)) -> Self {
        Self {
            iterations: plan.iterations,
            warmup: plan.warmup,
            small,
            large,
            turns: 1,
            percentiles: plan.percentiles.clone(),
        }
    }

    /// OSU's numbers for messages that go back and forth.
    pub(crate) fn of_latency(plan: &Plan) -> Self {
        Self::of(plan, (10_000, 100), (1_000, 10))
    }

    /// The percentiles that are asked for, with the time of a unit at each, in nanoseconds.
    fn percentiles_of(&self, times: &Times) -> Vec<(f64, f64)> {
        let list = self
            .percentiles
            .as_ref()
            .map_or(&[][..], Percentiles::as_slice);
        list.iter().map(|&p| (p, times.percentile_ns(p))).collect()
    }

    pub(crate) fn defaults(&self, size: usize) -> (u64, u64) {
        if size <= 8192 { self.small } else { self.large }
    }

    /// Warms up, and returns the iterations of each block that is to be measured. `block` runs so many iterations and returns
    /// their time in nanoseconds.
    pub(crate) fn prepare(
        &self,
        size: usize,
        mut block: impl FnMut(u64) -> Result<u64>,
    ) -> Result<Vec<u64>> {
        let (least, warmup) = self.defaults(size);
        if let Some(count) = self.warmup.filter(|&count| count > 0) {
            block(count)?;
        }
        // One millisecond is enough to know the time of an iteration well enough.
        let enough = if self.iterations.is_some() { 0.0 } else { 1e6 };
        let mut warmed = || {
            let is_enough = |done, time| done >= warmup && time >= enough;
            warm_up(1, WARMUP, is_enough, |count| Ok(block(count)? as f64))
        };
        let total = match self.iterations {
            Some(asked) => {
                if self.warmup.is_none() {
                    warmed()?;
                }
                asked
            }
            None => choose(least, warmed()? as u64, self.turns),
        };
        Ok(divide(total, REPETITIONS))
    }
}

/// A port with a test's body, ready to run blocks.
pub(crate) trait Stage {
    fn begin(&mut self, size: usize) -> Result<()>;
    fn block(&mut self, size: usize, count: u64, each: bool) -> Result<Measured>;
    fn end(&mut self, size: usize) -> Result<()>;
    /// Returns once every rank has ended its part of a block: what is on its way to this rank may need its progress.
    fn settle(&self) -> Result<()>;
    fn times(&self) -> &Times;
    /// Returns the time of a block, in nanoseconds, of which all ranks have measured this.
    fn time(&self, told: &[Measured]) -> u64;
}

/// The one implementation: static below, dynamic once per block.
pub(crate) struct Runner<'a, P, B> {
    port: &'a P,
    body: B,
    times: Times,
}

impl<'a, P: Port, B: Body<P>> Runner<'a, P, B> {
    pub(crate) fn new(port: &'a P, body: B) -> Self {
        Self {
            port,
            body,
            times: Times::new(),
        }
    }
}

impl<P: Port, B: Body<P>> Stage for Runner<'_, P, B> {
    fn begin(&mut self, size: usize) -> Result<()> {
        self.times.clear();
        self.body.begin(self.port, size)
    }

    fn block(&mut self, size: usize, count: u64, each: bool) -> Result<Measured> {
        let times = each.then_some(&mut self.times);
        self.body.block(self.port, Repeat { size, count, times })
    }

    fn end(&mut self, size: usize) -> Result<()> {
        self.body.end(self.port, size)
    }

    fn settle(&self) -> Result<()> {
        barrier(self.port)
    }

    fn times(&self) -> &Times {
        &self.times
    }

    fn time(&self, told: &[Measured]) -> u64 {
        self.body.time(told)
    }
}

/// What a layer's blocks of one size came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// Which of the stages.
    pub stage: usize,
    pub size: usize,
    pub iterations: u64,
    pub repetitions: u32,
    /// The time of one unit, in nanoseconds, over the repetitions.
    pub unit_ns: Summary,
    /// How much longer the first block took than the longest of the others, in percent; `None`
    /// where there are too few.
    pub first_block_pct: Option<f64>,
    /// What else ran while the blocks of this size were measured.
    pub load: Load,
    /// The time of all blocks together.
    pub elapsed: Duration,
    /// Percentile and the time of one unit, in nanoseconds.
    pub percentiles: Vec<(f64, f64)>,
}

/// A block of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    stage: usize,
    size: usize,
    count: u64,
    each: bool,
}

/// Stages whose blocks alternate.
struct Stages<'a>(Vec<Box<dyn Stage + 'a>>);

impl Script for Stages<'_> {
    type Case = usize;
    type Block = Block;
    type Told = Measured;

    fn begin(&mut self, &size: &usize) -> Result<()> {
        self.0.iter_mut().try_for_each(|stage| stage.begin(size))
    }

    fn block(&mut self, block: &Block) -> Result<Measured> {
        let missing = || Error::Peer("rank 0 announced a stage that does not exist".to_owned());
        let is_one_of_many = self.0.len() > 1;
        let stage = self.0.get_mut(block.stage).ok_or_else(missing)?;
        let measured = stage.block(block.size, block.count, block.each)?;
        // The next step comes over the port of the first stage, which makes no progress on the others.
        if is_one_of_many {
            stage.settle()?;
        }
        Ok(measured)
    }

    fn end(&mut self, &size: &usize) -> Result<()> {
        self.0.iter_mut().try_for_each(|stage| stage.end(size))
    }
}

/// Measures all sizes at all stages. On rank 0, gives the samples of each size to `emit` as they come, one for each stage.
/// Steps are announced over `port`.
pub(crate) fn measure(
    port: &dyn Endpoint,
    stages: Vec<Box<dyn Stage + '_>>,
    sizes: &[usize],
    effort: &Effort,
    emit: &mut dyn FnMut(Vec<Sample>) -> Result<()>,
) -> Result<()> {
    let all = 0..stages.len();
    leader::run(port, &mut Stages(stages), |leader| {
        for &size in sizes {
            leader.begin(&size)?;
            let warming = |stage, count| Block {
                stage,
                size,
                count,
                each: false,
            };
            let prepared = all.clone().map(|stage| {
                effort.prepare(size, |count| {
                    let told = leader.block(&warming(stage, count))?;
                    Ok(leader.script.0[stage].time(&told))
                })
            });
            let counts: Vec<Vec<u64>> = prepared.collect::<Result<_>>()?;
            leader.watch()?;
            let told = leader.by_turns(&counts, |stage, count| Block {
                each: effort.percentiles.is_some(),
                ..warming(stage, count)
            })?;
            let load = leader.report()?;
            leader.end(&size)?;
            let samples = told.iter().zip(&counts).zip(&leader.script.0).enumerate();
            let samples = samples.map(|(stage, ((told, counts), own))| Sample {
                stage,
                size,
                iterations: counts.iter().sum(),
                load: load.clone(),
                percentiles: effort.percentiles_of(own.times()),
                ..Sample::of(&**own, told)
            });
            emit(samples.collect())?;
        }
        Ok(())
    })
}

impl Sample {
    /// What blocks came to at `stage`, of which all ranks told this.
    fn of(stage: &dyn Stage, blocks: &[Vec<Measured>]) -> Self {
        let times: Vec<u64> = blocks.iter().map(|told| stage.time(told)).collect();
        let units = blocks.iter().map(|told| told[0].units);
        let unit = |(&time, units): (&u64, u64)| time.max(1) as f64 / units as f64;
        let unit_ns: Vec<f64> = times.iter().zip(units).map(unit).collect();
        Self {
            stage: 0,
            size: 0,
            iterations: 0,
            repetitions: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
            unit_ns: Summary::of(&unit_ns).expect("at least one block, of finite time"),
            first_block_pct: first_block_pct(&unit_ns),
            load: Load::default(),
            elapsed: Duration::from_nanos(times.iter().sum()),
            percentiles: Vec::new(),
        }
    }

    /// The time of a unit, as a latency.
    pub(crate) fn latency(&self) -> Figures {
        let mut figures = Figures::default();
        figures.set_summary(Quantity::LATENCY, self.unit_ns.times(1e-3));
        self.with_rest(figures)
    }

    /// Units are messages: their bandwidth, and how many there are.
    pub(crate) fn bandwidth(&self) -> Figures {
        let mut figures = Figures::default();
        figures.set_summary(Quantity::BANDWIDTH, self.megabytes_a_second());
        figures.set(Quantity::RATE.key(), self.inverse(1e9).median);
        self.with_rest(figures)
    }

    /// Units are messages: how many there are, and their bandwidth.
    pub(crate) fn rate(&self) -> Figures {
        let mut figures = Figures::default();
        figures.set_summary(Quantity::RATE, self.inverse(1e9));
        figures.set(Quantity::BANDWIDTH.key(), self.megabytes_a_second().median);
        self.with_rest(figures)
    }

    fn inverse(&self, scale: f64) -> Summary {
        let time = self.unit_ns;
        Summary {
            median: scale / time.median,
            min: scale / time.max,
            max: scale / time.min,
        }
    }

    /// Bytes per nanosecond are 10^3 MB/s.
    fn megabytes_a_second(&self) -> Summary {
        self.inverse(self.size as f64 * 1e3)
    }

    fn with_rest(&self, mut figures: Figures) -> Figures {
        if let Some(longer) = self.first_block_pct {
            figures.set(FIRST_BLOCK, longer);
        }
        for &(percentile, time) in &self.percentiles {
            figures.set(Percentiles::key(percentile), time / 1e3);
        }
        figures
    }
}

/// How many iterations of `one` nanoseconds each: at least `least` and as many as give blocks of decent length, but no more
/// than fit into the time of a size. Callers that take turns on a core need blocks of many turns.
fn choose(least: u64, one: u64, turns: u32) -> u64 {
    let (one, turns) = (one.max(1), u64::from(turns.max(1)));
    let decent = REPETITIONS * (turns * nanoseconds(BLOCK)).div_ceil(one);
    let most = (turns * nanoseconds(SIZE) / one).max(REPETITIONS);
    least.max(decent).min(most)
}

/// How many iterations a block has where one may take long, `one` nanoseconds: as many as `plan` asks for, else as many as give
/// a block of [`LONG_BLOCK`], but at most `most`.
pub(crate) fn long_block(plan: &Plan, most: u64, one: u64) -> u64 {
    plan.iterations.map_or_else(
        || (nanoseconds(LONG_BLOCK) / one.max(1)).clamp(1, most),
        |all| all.div_ceil(REPETITIONS).max(1),
    )
}

/// `total` in at most `parts` parts that differ by one at most; none is empty.
pub(crate) fn divide(total: u64, parts: u64) -> Vec<u64> {
    let parts = parts.min(total).max(1);
    (0..parts)
        .map(|part| total / parts + u64::from(part < total % parts))
        .collect()
}

/// How much longer the first of the blocks took than the longest of the others, in percent; `None`
/// where fewer than three are others.
pub(crate) fn first_block_pct(unit_ns: &[f64]) -> Option<f64> {
    let (first, others) = unit_ns.split_first()?;
    let longest = others.iter().copied().fold(0.0, f64::max);
    (others.len() >= 3 && longest > 0.0).then(|| 100.0 * (first / longest - 1.0))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn iterations_are_chosen_by_time() {
        // Fast: blocks of 20 ms. Slow: a second in all. Very slow: one per block.
        assert_eq!(choose(10_000, 100, 1), 1_000_000);
        assert_eq!(choose(1000, 500_000, 1), 1000);
        assert_eq!(choose(1000, 10_000_000, 1), 100);
        assert_eq!(choose(1000, 3_000_000_000, 1), 5);
        // Callers that share a core have longer blocks.
        assert_eq!(choose(1000, 100, 4), 4_000_000);
    }

    #[test]
    fn blocks_add_up_to_what_was_asked_for() {
        assert_eq!(divide(12, 5), [3, 3, 2, 2, 2]);
        assert_eq!(divide(3, 5), [1, 1, 1]);
        assert_eq!(divide(1, 5), [1]);
    }

    #[test]
    fn the_first_block_is_held_against_the_longest_of_the_others() {
        assert_eq!(
            first_block_pct(&[3.0, 1.0, 2.0, 1.0]).unwrap().round(),
            50.0
        );
        assert_eq!(first_block_pct(&[1.0, 1.0, 2.0, 1.0]), Some(-50.0));
        assert_eq!(first_block_pct(&[3.0, 1.0, 2.0]), None);
        assert_eq!(first_block_pct(&[]), None);
    }

    /// Counts how often it settles.
    struct Settling(Cell<u32>, Times);

    impl Stage for &Settling {
        fn begin(&mut self, _: usize) -> Result<()> {
            Ok(())
        }

        fn block(&mut self, _: usize, units: u64, _: bool) -> Result<Measured> {
            Ok(Measured {
                elapsed: Duration::ZERO,
                units,
            })
        }

        fn end(&mut self, _: usize) -> Result<()> {
            Ok(())
        }

        fn settle(&self) -> Result<()> {
            self.0.set(self.0.get() + 1);
            Ok(())
        }

        fn times(&self) -> &Times {
            &self.1
        }

        fn time(&self, _: &[Measured]) -> u64 {
            1
        }
    }

    #[test]
    fn one_of_several_layers_settles_after_each_of_its_blocks() {
        let all = [(); 2].map(|()| Settling(Cell::new(0), Times::new()));
        let block = Block {
            stage: 1,
            size: 8,
            count: 3,
            each: false,
        };
        let stage = |one| Box::new(one) as Box<dyn Stage + '_>;
        let mut stages = Stages(all.iter().map(stage).collect());
        for _ in 0..2 {
            assert_eq!(stages.block(&block).unwrap().units, 3);
        }
        assert_eq!(all.each_ref().map(|one| one.0.get()), [0, 2]);
        let alone = Block { stage: 0, ..block };
        Stages(vec![stage(&all[0])]).block(&alone).unwrap();
        assert_eq!(all[0].0.get(), 0, "nothing else is driven meanwhile");
    }

    fn sample() -> Sample {
        Sample {
            stage: 0,
            size: 1000,
            iterations: 10,
            repetitions: 5,
            unit_ns: Summary {
                median: 500.0,
                min: 400.0,
                max: 1000.0,
            },
            first_block_pct: Some(-10.0),
            load: Load::default(),
            elapsed: Duration::from_millis(5),
            percentiles: vec![(99.9, 800.0)],
        }
    }

    #[test]
    fn units_are_those_of_their_names() {
        let latency = sample().latency();
        assert_eq!(latency.named("latency_us"), Some(0.5));
        assert_eq!(latency.named("p99_9_us"), Some(0.8));
        let bandwidth = sample().bandwidth();
        assert_eq!(bandwidth.named("bandwidth_mb_s"), Some(2000.0));
        assert_eq!(bandwidth.named("bandwidth_min_mb_s"), Some(1000.0));
        assert_eq!(bandwidth.named("bandwidth_max_mb_s"), Some(2500.0));
        let rate = sample().rate();
        assert_eq!(rate.named("rate_msg_s"), Some(2e6));
    }
}
