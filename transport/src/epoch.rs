//! Sleeping ranks: a counter of events under a lock, and a condition variable.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::wait::{WaitKey, Waiter};

/// What threads of one rank sleep on, for transports inside one process. Every arrival counts the epoch up, so an
/// armed sleeper that checks the epoch under the lock can miss none.
#[derive(Debug, Default)]
pub struct EpochWaiter {
    epoch: Mutex<u32>,
    changed: Condvar,
}

impl EpochWaiter {
    fn epoch(&self) -> MutexGuard<'_, u32> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter for EpochWaiter {
    fn arm(&self) -> WaitKey {
        WaitKey(*self.epoch())
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        let deadline = Instant::now().checked_add(timeout);
        let mut epoch = self.epoch();
        while *epoch == key.0 {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::MAX,
            };
            if left.is_zero() {
                return;
            }
            epoch = self
                .changed
                .wait_timeout(epoch, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn disarm(&self) {}

    fn wake(&self) {
        let mut epoch = self.epoch();
        *epoch = epoch.wrapping_add(1);
        self.changed.notify_all();
    }
}
