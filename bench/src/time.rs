//! Times of pieces of work.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the time as nanoseconds, at most those that 64 bits hold.
#[inline]
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns how long `work` took, where it succeeds.
pub(crate) fn time_of<E>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, E> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// The processor time of this process so far, all threads, also those that have ended.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The kernel gives neither a negative time nor more than a billion nanoseconds.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
