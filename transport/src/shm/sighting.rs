//! Whether a process still has its number.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tagwire_base::Clock;

use super::liveness::Liveness;

/// For how long a process that was there is taken to have its number still. The system gives numbers
/// out in turn: a number comes again after tens of thousands of new processes or threads.
pub(super) const FRESH: Duration = Duration::from_millis(1);

/// When a process was last found to be there.
pub(super) struct Sighting {
    clock: Clock,
    /// Until when that is taken to be so still, in nanoseconds of the clock.
    fresh_until: AtomicU64,
}

impl Sighting {
    pub(super) const fn new(clock: Clock) -> Self {
        let fresh_until = AtomicU64::new(0);
        Self { clock, fresh_until }
    }

    /// Returns whether the process is the one that it was: by its descriptor or, without one, by `has_nonce`. Looks at
    /// most once in [`FRESH`].
    pub(super) fn is_still(&self, liveness: &Liveness, has_nonce: impl FnOnce() -> bool) -> bool {
        if matches!(liveness, Liveness::SameProcess) {
            return true;
        }
        // Before the look, so that what it shows is not taken for newer than it is.
        let now = self.clock.now();
        if now.as_nanos() < self.fresh_until.load(Relaxed) {
            return true;
        }
        let is_there = match liveness {
            Liveness::Descriptor(_) => !liveness.is_over(),
            _ => has_nonce(),
        };
        if is_there {
            self.fresh_until.store((now + FRESH).as_nanos(), Relaxed);
        }
        is_there
    }
}
