//! Time, as protocols see it: nanoseconds from an arbitrary start, handed in from outside so
//! that the same code runs in real and in simulated time.

use std::time::{Duration, Instant};

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

/// A moment after which waiting ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// Never.
    pub const NEVER: Self = Self(u64::MAX);

    /// `timeout` from `now_ns`; `None` is never.
    #[must_use]
    pub fn after(now_ns: u64, timeout: Option<Duration>) -> Self {
        timeout.map_or(Self::NEVER, |timeout| {
            Self(now_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)))
        })
    }

    /// Whether the moment has come.
    #[must_use]
    pub const fn is_past(self, now_ns: u64) -> bool {
        self.0 != u64::MAX && now_ns >= self.0
    }

    /// What is left, capped at `cap`.
    #[must_use]
    pub fn remaining(self, now_ns: u64, cap: Duration) -> Duration {
        if self == Self::NEVER {
            return cap;
        }
        cap.min(Duration::from_nanos(self.0.saturating_sub(now_ns)))
    }
}
