//! Time, as protocols see it: nanoseconds from an arbitrary start, handed in from outside so
//! that the same code runs in real and in simulated time.

use std::time::Instant;

/// A clock that never goes back.
pub trait Clock: Send + Sync {
    /// Nanoseconds since this clock's start.
    fn now_ns(&self) -> u64;
}

/// The machine's monotonic clock.
#[derive(Debug, Clone)]
pub struct MonotonicClock {
    start: Instant,
}

impl MonotonicClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
