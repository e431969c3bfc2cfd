//! Times of pieces of work.

use std::time::{Duration, Instant};

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
