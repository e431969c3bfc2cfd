//! Sleeping ranks: a counter of events under a lock, and a condition variable.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
        let (is_old, changed) = (|epoch: &mut u32| *epoch == key.0, &self.changed);
        drop(changed.wait_timeout_while(self.epoch(), timeout, is_old));
    }

    fn disarm(&self) {}

    fn wake(&self) {
        let mut epoch = self.epoch();
        *epoch = epoch.wrapping_add(1);
        self.changed.notify_all();
    }
}
