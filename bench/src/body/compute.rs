//! Computation that touches no memory: what a rank does between post and wait.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tagwire_base::Clock;
use tagwire_base::topology::clock_cost_ns;

use crate::args::partitioned::ComputeMode;

/// Does `units` steps of arithmetic, each of which needs the one before. The compiler can neither
/// leave it out nor shorten it: it knows neither where it begins nor who looks at its end.
#[inline(never)]
pub(crate) fn compute(units: u64) {
    let mut value = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for step in 0..units {
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
    }
    black_box(value);
}

/// How long a unit takes on this core, in nanoseconds: the least of several looks.
#[inline]
pub(crate) fn unit_ns() -> f64 {
    const UNITS: u64 = 1 << 17;
    let look = || {
        let start = Instant::now();
        compute(UNITS);
        start.elapsed().as_nanos() as f64 / UNITS as f64
    };
    (0..8)
        .map(|_| look())
        .fold(f64::INFINITY, f64::min)
        .max(1e-3)
}

/// How threads of a rank pass the time in which they compute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computation {
    mode: ComputeMode,
    unit_ns: f64,
}

impl Computation {
    #[inline]
    pub(crate) fn new(mode: ComputeMode) -> Self {
        Self {
            mode,
            unit_ns: unit_ns(),
        }
    }

    /// Returns one that is not run: nothing is measured for it.
    pub(crate) const fn none() -> Self {
        Self {
            mode: ComputeMode::Sleep,
            unit_ns: 1.0,
        }
    }

    /// Computes for `time`.
    #[inline]
    pub(crate) fn run(self, time: Duration) {
        if time.is_zero() {
            return;
        }
        match self.mode {
            ComputeMode::Sleep => std::thread::sleep(time),
            ComputeMode::Busy => compute((time.as_nanos() as f64 / self.unit_ns) as u64),
        }
    }
}

/// What a look at the clock costs, in nanoseconds.
#[inline]
pub(crate) fn look_ns() -> f64 {
    clock_cost_ns(|| Clock::default().now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_not_optimised_away() {
        // No processor multiplies in this time; a loop that is gone takes less.
        assert!(unit_ns() > 0.05);
        assert!(look_ns() > 0.0);
    }
}
