//! What `--profile` says of the ways of short messages.

use std::time::Duration;

use tagwire_base::ticks::ticks;
use tagwire_base::{Rank, Time};

use crate::shared_writes::{SharedWrites, Way};

/// How fast the processor's own count of time goes.
pub(super) struct Pace {
    ticks: u64,
    time: Time,
}

/// A shorter time says too little of it.
const LEAST: Duration = Duration::from_millis(1);

impl Pace {
    /// Begins to look.
    pub(super) fn new(now: Time) -> Self {
        Self {
            ticks: ticks(),
            time: now,
        }
    }

    /// Returns how many nanoseconds `count` ticks are, by all that was seen since it began.
    pub(super) fn nanos(&self, count: u64, now: Time) -> Option<u64> {
        let passed = now.since(self.time);
        let counted = ticks().saturating_sub(self.ticks);
        let nanos = u128::from(count) * passed.as_nanos() / u128::from(counted.max(1));
        (passed >= LEAST && counted != 0).then_some(nanos as u64)
    }
}

/// Adds a line for each class of lengths whose copies towards `rank` were timed.
pub(super) fn tell_writes(
    writes: &SharedWrites,
    rank: Rank,
    nanos: impl Fn(u64) -> Option<u64>,
    out: &mut Vec<String>,
) {
    writes.known(|from, end, way, time| {
        let length = match end {
            Some(end) => format!("from {from} B, below {end} B"),
            None => format!("from {from} B"),
        };
        let way = match way {
            Way::Plain => "plain stores",
            Way::Stream => "stores past the caches",
            Way::Reuse => "into memory that goes back and forth",
        };
        if let Some(time) = nanos(time) {
            out.push(format!(
                "shm: rank {rank}, short messages sent, {length}: {way}, {time} ns per KiB"
            ));
        }
    });
}
