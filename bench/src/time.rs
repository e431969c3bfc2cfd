//! Times of pieces of work.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::error::Result;

/// Returns the time as nanoseconds, at most those that 64 bits hold.
#[inline]
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns how long `work` took, where it succeeds.
pub(crate) fn time_of(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// Returns the least of what `one` takes in so many tries.
pub(crate) fn least(tries: u32, mut one: impl FnMut() -> Result<f64>) -> Result<f64> {
    (0..tries).try_fold(f64::INFINITY, |least, _| Ok(least.min(one()?)))
}

/// The processor time of this process so far, all threads, also those that have ended.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The kernel gives neither a negative time nor more than a billion nanoseconds.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
