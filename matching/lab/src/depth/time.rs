//! How long a match takes.

use std::hint::black_box;
use std::time::Instant;

use tagwire_matching::{Capacity, EngineName};

use super::scenario::Scenario;

/// Nanoseconds of one match.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub median: f64,
    pub least: f64,
    pub greatest: f64,
}

/// Returns the time of matches in a row: of blocks, each on an engine of its own.
pub(super) fn hot(engine: &EngineName, scenario: &Scenario, blocks: u32) -> Times {
    let matches = scenario.matches(HOT);
    let block = |_| {
        let mut engine = engine.open(Capacity::default());
        scenario.prepare(&mut engine, matches);
        let start = Instant::now();
        for index in 0..matches {
            black_box(scenario.operate(black_box(&mut engine), index));
        }
        start.elapsed().as_nanos() as f64 / f64::from(matches)
    };
    times((0..blocks).map(block).collect())
}

/// Returns the time of single matches, before each of which so many bytes were written; what two looks at the clock take is
/// not in it.
pub(super) fn cold(engine: &EngineName, scenario: &Scenario, blocks: u32, sweep: usize) -> Times {
    let matches = blocks.clamp(1, COLD);
    let mut sweep = Sweep::of(sweep);
    let mut engine = engine.open(Capacity::default());
    scenario.prepare(&mut engine, matches);
    let match_after_sweep = |index| {
        sweep.write();
        let start = Instant::now();
        black_box(scenario.operate(black_box(&mut engine), index));
        start.elapsed().as_nanos() as f64
    };
    let all = times((0..matches).map(match_after_sweep).collect());
    let clock = times(
        (0..CLOCK)
            .map(|_| Instant::now().elapsed().as_nanos() as f64)
            .collect(),
    );
    let less = |time: f64| (time - clock.median).max(0.0);
    Times {
        median: less(all.median),
        least: less(all.least),
        greatest: less(all.greatest),
    }
}

/// Memory that is written so that nothing else is left in the caches.
pub(super) struct Sweep(Vec<u8>);

impl Sweep {
    pub(super) fn of(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    pub(super) fn write(&mut self) {
        for byte in self.0.iter_mut().step_by(64) {
            *byte = byte.wrapping_add(1);
        }
        black_box(&mut self.0);
    }
}

fn times(mut samples: Vec<f64>) -> Times {
    samples.sort_by(f64::total_cmp);
    let at = |place: usize| samples.get(place).copied().unwrap_or_default();
    Times {
        median: at(samples.len() / 2),
        least: at(0),
        greatest: at(samples.len().saturating_sub(1)),
    }
}

/// Matches of a block.
pub(super) const HOT: u32 = 256;
/// Matches after a sweep.
pub(super) const COLD: u32 = 64;
/// Looks at the clock.
const CLOCK: u32 = 101;
