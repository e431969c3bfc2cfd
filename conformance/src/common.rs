//! What the kits of byte transports and of matching ones have in common.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tagwire_transport::fault::SplitMix64;
use tagwire_transport::message::Lane;

pub(super) const LANE: Lane = Lane(0);

/// Rounds in a row without an event after which a rig begins to pause between rounds.
const IDLE_ROUNDS: u32 = 1000;

/// How long a rig waits without an event before it gives up. Nothing that works is that slow, also where the
/// machine does ten other things; for emulated devices `TAGWIRE_CONFORMANCE_IDLE` gives more seconds.
static IDLE_TIME: LazyLock<Duration> = LazyLock::new(|| {
    let given = std::env::var("TAGWIRE_CONFORMANCE_IDLE").ok();
    Duration::from_secs(given.and_then(|text| text.parse().ok()).unwrap_or(3))
});

/// Whether checks run at length: `TAGWIRE_CONFORMANCE_ROUNDS` is set, as `ci/full` does.
pub(super) fn at_length() -> bool {
    std::env::var_os("TAGWIRE_CONFORMANCE_ROUNDS").is_some()
}

/// Returns how many rounds of a race to run: all `at_length`, else a quarter.
pub(super) fn rounds(all: u64) -> u64 {
    if at_length() { all } else { all / 4 }
}

/// How long a rig waits for anything at all, for transports that are busy with nothing.
const BUSY_TIME: Duration = Duration::from_secs(60);

/// Gives up in the end on what never happens.
pub(super) struct Patience {
    start: Instant,
    last_event: Instant,
    idle: u32,
}

impl Patience {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            start: now,
            last_event: now,
            idle: 0,
        }
    }

    /// Takes note of a round in which `events` happened. Returns whether to go on.
    pub(super) fn goes_on(&mut self, events: usize) -> bool {
        if events > 0 {
            self.idle = 0;
            self.last_event = Instant::now();
            return self.start.elapsed() < BUSY_TIME;
        }
        self.idle += 1;
        if self.idle > IDLE_ROUNDS {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.idle <= IDLE_ROUNDS || self.last_event.elapsed() < *IDLE_TIME
    }
}

/// The `len` bytes that go with `seed`.
pub(super) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    SplitMix64::new(seed).bytes(len)
}

/// `Ok` when `condition` holds.
pub(super) fn ensure(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise()) }
}
