//! How a size is measured: warm-up, calibration, repeated blocks.
//!
//! Rank 0 leads. Before each step it announces what comes next, over the first layer's
//! port, so that only rank 0 knows of clocks and budgets. Where several layers are measured, their
//! blocks alternate, so that whatever disturbs the machine disturbs all of them.

use std::time::{Duration, Instant};

use crate::args::Percentiles;
use crate::body::{Body, Measured, Times};
use crate::error::{Error, Result};
use crate::load::{Load, Watch};
use crate::port::{Control, Port, greatest};
use crate::stats::Summary;
use crate::time::nanoseconds;

pub(crate) mod overlap;
pub(crate) mod partitioned;

/// Into how many blocks the iterations of a size are divided.
pub(crate) const REPETITIONS: u64 = 5;

/// How long a block should take at least when the number of iterations is ours to choose.
pub(crate) const BLOCK: Duration = Duration::from_millis(20);
/// How long a size may take when the number of iterations is ours to choose.
pub(crate) const SIZE: Duration = Duration::from_secs(1);
/// How long the warm-up may take then.
pub(crate) const WARMUP: Duration = Duration::from_millis(250);

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
    /// When there are some, iterations are timed singly.
    pub percentiles: Option<Percentiles>,
}

impl Effort {
    fn defaults(&self, size: usize) -> (u64, u64) {
        if size <= 8192 { self.small } else { self.large }
    }
}

/// A port with a test's body, ready to run blocks.
pub(crate) trait Stage {
    fn begin(&mut self, size: usize) -> Result<()>;
    fn block(&mut self, size: usize, count: u64, each: bool) -> Result<Measured>;
    fn end(&mut self, size: usize) -> Result<()>;
    fn times(&self) -> &Times;
    fn broadcast(&mut self, words: [u64; 5]) -> Result<[u64; 5]>;
    fn gather(&mut self, words: [u64; 5]) -> Result<Vec<[u64; 5]>>;
}

/// The one implementation: static below, dynamic once per block.
pub(crate) struct Runner<'a, P, B> {
    port: &'a P,
    body: B,
    control: Control,
    times: Times,
}

impl<'a, P: Port, B: Body<P>> Runner<'a, P, B> {
    pub(crate) fn new(port: &'a P, body: B) -> Result<Self> {
        Ok(Self {
            port,
            body,
            control: Control::new()?,
            times: Times::new(),
        })
    }
}

impl<P: Port, B: Body<P>> Stage for Runner<'_, P, B> {
    fn begin(&mut self, size: usize) -> Result<()> {
        self.times.clear();
        self.body.begin(self.port, size)
    }

    fn block(&mut self, size: usize, count: u64, each: bool) -> Result<Measured> {
        let times = each.then_some(&mut self.times);
        self.body.block(self.port, size, count, times)
    }

    fn end(&mut self, size: usize) -> Result<()> {
        self.body.end(self.port, size)
    }

    fn times(&self) -> &Times {
        &self.times
    }

    fn broadcast(&mut self, words: [u64; 5]) -> Result<[u64; 5]> {
        self.control.broadcast(self.port, words)
    }

    fn gather(&mut self, words: [u64; 5]) -> Result<Vec<[u64; 5]>> {
        self.control.gather(self.port, words)
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

/// The steps that rank 0 announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin {
        stage: usize,
        size: usize,
    },
    Block {
        stage: usize,
        size: usize,
        count: u64,
        each: bool,
    },
    End {
        stage: usize,
        size: usize,
    },
    /// The measured blocks begin: all ranks watch what else runs.
    Watch,
    /// The measured blocks are over: all ranks report what they saw.
    Report,
    Finish,
}

impl Step {
    const fn to_words(self) -> [u64; 5] {
        match self {
            Self::Begin { stage, size } => [0, stage as u64, size as u64, 0, 0],
            Self::Block {
                stage,
                size,
                count,
                each,
            } => [1, stage as u64, size as u64, count, each as u64],
            Self::End { stage, size } => [2, stage as u64, size as u64, 0, 0],
            Self::Finish => [3, 0, 0, 0, 0],
            Self::Watch => [4, 0, 0, 0, 0],
            Self::Report => [5, 0, 0, 0, 0],
        }
    }

    fn from_words(words: [u64; 5], stages: usize) -> Result<Self> {
        let nonsense = || Error::Peer("rank 0 announced a step that does not exist".to_owned());
        let stage = usize::try_from(words[1])
            .ok()
            .filter(|&stage| stage < stages);
        let stage = stage.ok_or_else(nonsense)?;
        let size = usize::try_from(words[2]).map_err(|_| nonsense())?;
        match words[0] {
            0 => Ok(Self::Begin { stage, size }),
            1 => Ok(Self::Block {
                stage,
                size,
                count: words[3],
                each: words[4] == 1,
            }),
            2 => Ok(Self::End { stage, size }),
            3 => Ok(Self::Finish),
            4 => Ok(Self::Watch),
            5 => Ok(Self::Report),
            _ => Err(nonsense()),
        }
    }
}

/// Does what rank 0 announces until it announces the end.
pub(crate) fn follow(stages: &mut [Box<dyn Stage + '_>]) -> Result<()> {
    let mut watch = Watch::begin();
    loop {
        let words = stages[0].broadcast([0; 5])?;
        match Step::from_words(words, stages.len())? {
            Step::Begin { stage, size } => stages[stage].begin(size)?,
            Step::End { stage, size } => stages[stage].end(size)?,
            Step::Watch => watch = Watch::begin(),
            Step::Report => drop(watch.report(|words| stages[0].gather(words))?),
            Step::Finish => return Ok(()),
            Step::Block {
                stage,
                size,
                count,
                each,
            } => {
                let measured = stages[stage].block(size, count, each)?;
                stages[0].gather([nanoseconds(measured.elapsed), 0, 0, 0, 0])?;
            }
        }
    }
}

/// Measures all sizes at all stages, and gives the samples of each size to `emit` as they come,
/// one for each stage.
pub(crate) fn lead(
    stages: &mut [Box<dyn Stage + '_>],
    sizes: &[usize],
    effort: &Effort,
    emit: &mut dyn FnMut(Vec<Sample>) -> Result<()>,
) -> Result<()> {
    let mut leader = Leader { stages, effort };
    for &size in sizes {
        emit(leader.measure(size)?)?;
    }
    leader.announce(Step::Finish)
}

struct Leader<'a, 'b> {
    stages: &'a mut [Box<dyn Stage + 'b>],
    effort: &'a Effort,
}

/// The blocks of one stage so far.
struct Progress {
    /// Iterations of each block.
    blocks: Vec<u64>,
    unit_ns: Vec<f64>,
    elapsed: Duration,
}

impl Leader<'_, '_> {
    fn announce(&mut self, step: Step) -> Result<()> {
        self.stages[0].broadcast(step.to_words()).map(drop)
    }

    fn block(&mut self, stage: usize, size: usize, count: u64, each: bool) -> Result<Measured> {
        self.announce(Step::Block {
            stage,
            size,
            count,
            each,
        })?;
        let measured = self.stages[stage].block(size, count, each)?;
        let elapsed = nanoseconds(measured.elapsed);
        let longest = greatest(&self.stages[0].gather([elapsed, 0, 0, 0, 0])?);
        Ok(Measured {
            elapsed: Duration::from_nanos(longest),
            units: measured.units,
        })
    }

    fn measure(&mut self, size: usize) -> Result<Vec<Sample>> {
        let stages = 0..self.stages.len();
        for stage in stages.clone() {
            self.announce(Step::Begin { stage, size })?;
            self.stages[stage].begin(size)?;
        }
        let mut progress = Vec::new();
        for stage in stages.clone() {
            let blocks = self.prepare(stage, size)?;
            progress.push(Progress {
                blocks,
                unit_ns: Vec::new(),
                elapsed: Duration::ZERO,
            });
        }
        let each = self.effort.percentiles.is_some();
        self.announce(Step::Watch)?;
        let watch = Watch::begin();
        for repetition in 0..progress[0].blocks.len() {
            for (stage, progress) in progress.iter_mut().enumerate() {
                let measured = self.block(stage, size, progress.blocks[repetition], each)?;
                let time = nanoseconds(measured.elapsed).max(1) as f64;
                progress.unit_ns.push(time / measured.units as f64);
                progress.elapsed += measured.elapsed;
            }
        }
        self.announce(Step::Report)?;
        let load = watch.report(|words| self.stages[0].gather(words))?;
        for stage in stages {
            self.announce(Step::End { stage, size })?;
            self.stages[stage].end(size)?;
        }
        let sample = |(stage, progress)| self.sample(stage, size, &progress, &load);
        Ok(progress.into_iter().enumerate().map(sample).collect())
    }

    fn sample(&self, stage: usize, size: usize, progress: &Progress, load: &Load) -> Sample {
        let times = self.stages[stage].times();
        let list = self
            .effort
            .percentiles
            .as_ref()
            .map_or(&[][..], Percentiles::as_slice);
        Sample {
            stage,
            size,
            iterations: progress.blocks.iter().sum(),
            repetitions: u32::try_from(progress.blocks.len()).unwrap_or(u32::MAX),
            unit_ns: Summary::of(&progress.unit_ns).expect("at least one block, of finite time"),
            first_block_pct: first_block_pct(&progress.unit_ns),
            load: load.clone(),
            elapsed: progress.elapsed,
            percentiles: list.iter().map(|&p| (p, times.percentile_ns(p))).collect(),
        }
    }

    /// Warms up, and returns the iterations of each block that is to be measured.
    fn prepare(&mut self, stage: usize, size: usize) -> Result<Vec<u64>> {
        let (least, warmup) = self.effort.defaults(size);
        let asked = self.effort.warmup;
        if let Some(count) = asked.filter(|&count| count > 0) {
            self.block(stage, size, count, false)?;
        }
        if let Some(iterations) = self.effort.iterations {
            if asked.is_none() {
                self.warm_up(stage, size, warmup, Duration::ZERO)?;
            }
            return Ok(divide(iterations, REPETITIONS));
        }
        // One millisecond is enough to know the time of an iteration well enough.
        let enough = Duration::from_millis(1);
        let one = self.warm_up(stage, size, warmup, enough)?;
        Ok(divide(choose(least, one), REPETITIONS))
    }

    /// Runs blocks of 1, 2, 4, ... iterations until there were `count` and the last one took
    /// `enough`, or the time is up. Returns the time of one iteration in the last.
    fn warm_up(
        &mut self,
        stage: usize,
        size: usize,
        count: u64,
        enough: Duration,
    ) -> Result<Duration> {
        let start = Instant::now();
        let (mut next, mut done) = (1_u64, 0);
        loop {
            let elapsed = self.block(stage, size, next, false)?.elapsed;
            done += next;
            let one = Duration::from_secs_f64(elapsed.as_secs_f64() / next as f64);
            if (done >= count && elapsed >= enough) || start.elapsed() >= WARMUP {
                return Ok(one);
            }
            next *= 2;
        }
    }
}

/// How many iterations of `one` each: at least `least` and as many as give blocks of decent
/// length, but no more than fit into the time of a size.
fn choose(least: u64, one: Duration) -> u64 {
    let one = nanoseconds(one).max(1);
    let decent = REPETITIONS * nanoseconds(BLOCK).div_ceil(one);
    let most = (nanoseconds(SIZE) / one).max(REPETITIONS);
    least.max(decent).min(most)
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
    use super::*;

    #[test]
    fn iterations_are_chosen_by_time() {
        // Fast: blocks of 20 ms. Slow: a second in all. Very slow: one per block.
        assert_eq!(choose(10_000, Duration::from_nanos(100)), 1_000_000);
        assert_eq!(choose(1000, Duration::from_micros(500)), 1000);
        assert_eq!(choose(1000, Duration::from_millis(10)), 100);
        assert_eq!(choose(1000, Duration::from_secs(3)), 5);
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

    #[test]
    fn steps_survive_their_words() {
        for step in [
            Step::Begin { stage: 1, size: 9 },
            Step::Block {
                stage: 0,
                size: 8,
                count: 7,
                each: true,
            },
            Step::End {
                stage: 1,
                size: 1 << 40,
            },
            Step::Watch,
            Step::Report,
            Step::Finish,
        ] {
            assert_eq!(Step::from_words(step.to_words(), 2).unwrap(), step);
        }
        assert!(Step::from_words([1, 2, 0, 0, 0], 2).is_err());
        assert!(Step::from_words([9, 0, 0, 0, 0], 2).is_err());
    }
}
