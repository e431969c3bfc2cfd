//! What waiting costs: rank 0 blocks in a receive and looks at the processor time of its process.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::{Traffic, other};
use crate::error::Result;
use crate::port::{Port, barrier, tags};

/// What a wait took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idle {
    /// By the wall clock.
    pub elapsed: Duration,
    /// Processor time of the whole process, all threads.
    pub busy: Duration,
}

/// Rank 1 sleeps for `pause` and then sends; rank 0 waits for it and returns what that took, the
/// others `None`.
pub(crate) fn measure<P: Port>(
    port: &P,
    traffic: &mut Traffic,
    size: usize,
    pause: Duration,
) -> Result<Option<Idle>> {
    let peer = other(port.rank());
    barrier(port)?;
    if port.rank().as_u32() != 0 {
        std::thread::sleep(pause);
        traffic.send(port, size, peer, tags::DATA)?;
        return Ok(None);
    }
    let (start, before) = (Instant::now(), processor_time());
    traffic.recv(port, size, peer, tags::DATA)?;
    let (elapsed, after) = (start.elapsed(), processor_time());
    Ok(Some(Idle {
        elapsed,
        busy: after.saturating_sub(before),
    }))
}

/// The processor time of this process so far, all threads, also those that have ended.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // The kernel gives neither a negative time nor more than a billion nanoseconds.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
