//! Time, as protocols see it: read from a clock that comes from outside, so that code runs alike in real and simulated time.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment by a rank's clock. The default is the clock's start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// Returns the nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns how long before this moment `earlier` was; zero where it was not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// What ends after the clock does never comes.
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// A rank's clock, which never goes back. The default is the machine's monotonic clock, which its ranks share.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// Reads the clock.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        if let Some(manual) = &self.0 {
            return Time(manual.load(Relaxed));
        }
        let time = clock_gettime(ClockId::Monotonic);
        Time(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// Returns whether it is the machine's clock, and not one that is advanced.
    #[must_use]
    pub const fn is_of_machine(&self) -> bool {
        self.0.is_none()
    }
}

/// A clock that stands still until it is advanced: for tests, and for simulated ranks. A clone is the same clock.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Moves the clock forward by `time`.
    pub fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Returns the clock as ranks read it.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock(Some(Arc::clone(&self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_do_not_wrap() {
        let (early, late) = (Time(1_000), Time(3_000));
        assert_eq!(late.since(early), Duration::from_micros(2));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early + Duration::from_micros(2), late);
        assert_eq!(late + Duration::MAX, Time(u64::MAX));
    }

    #[test]
    fn the_machine_has_one_clock() {
        let times: [Time; 3] = std::array::from_fn(|_| Clock::default().now());
        assert!(times.is_sorted(), "{times:?}");
    }
}
