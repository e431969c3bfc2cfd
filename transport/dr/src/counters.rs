//! What dr has had to do.

use std::fmt;
use std::time::Duration;

/// Counts of one rank, over all peers, since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages that were sent again.
    pub retransmitted: u64,
    /// Messages that came again, and were dropped.
    pub duplicates: u64,
    /// Packets whose checksum was wrong, and that were dropped.
    pub corrupt: u64,
    /// Messages that came before their turn, and waited.
    pub early: u64,
    /// Acknowledgements that went alone, and not with a message.
    pub notes: u64,
    /// Timers that went off.
    pub timeouts: u64,
    /// The smoothed round trip of the peer for which it is longest; `None` before the first was measured.
    pub round_trip: Option<Duration>,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            retransmitted,
            duplicates,
            corrupt,
            early,
            notes,
            timeouts,
            round_trip,
        } = self;
        write!(
            f,
            "{retransmitted} retransmitted, {duplicates} duplicates, {corrupt} corrupt, {early} early, \
             {notes} acknowledgements alone, {timeouts} time-outs"
        )?;
        match round_trip {
            Some(time) => write!(f, ", round trip {:.1} us", time.as_secs_f64() * 1e6),
            None => Ok(()),
        }
    }
}
