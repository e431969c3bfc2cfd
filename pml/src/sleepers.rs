//! The threads of a rank that sleep until something comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tagwire_transport::{WaitKey, Waiter};

use crate::error::Result;

/// The threads of a rank between their look for work and the end of their sleep.
pub(crate) struct Sleepers {
    pub(crate) waiter: Arc<dyn Waiter>,
    count: AtomicU32,
    /// How often something has happened: for those who have to know whether it has since they looked.
    noted: AtomicUsize,
}

impl Sleepers {
    pub(crate) fn new(waiter: Arc<dyn Waiter>) -> Arc<Self> {
        Arc::new(Self {
            waiter,
            count: AtomicU32::new(0),
            noted: AtomicUsize::new(0),
        })
    }

    /// Something has happened. Where the rank is shared by threads, others may wait for it.
    #[inline]
    pub(crate) fn note(&self, is_shared: bool) {
        if !is_shared {
            let noted = self.noted.load(Relaxed);
            self.noted.store(noted.wrapping_add(1), Relaxed);
            return;
        }
        self.noted.fetch_add(1, Relaxed);
        if self.count.load(Relaxed) > 0 {
            self.wake();
        }
    }

    /// Returns how often something has happened.
    pub(crate) fn noted(&self) -> usize {
        self.noted.load(Relaxed)
    }

    /// Wakes all.
    pub(crate) fn wake(&self) {
        #[cfg(test)]
        if crate::planted::UNTOLD_WAITERS.get() {
            return;
        }
        self.waiter.wake();
    }

    /// Announces that a thread is about to sleep, and then has it look once more: `look` returns how long it may sleep, or `None`
    /// where it may not.
    ///
    /// What came before the announcement is for `look` to see, also where another thread has dealt with it, which did not know
    /// that anyone waits. What comes after it wakes.
    pub(crate) fn arm(
        self: &Arc<Self>,
        look: impl FnOnce() -> Result<Option<Duration>>,
    ) -> Result<Option<Armed>> {
        self.count.fetch_add(1, Relaxed);
        let key = self.waiter.arm();
        let mut armed = Armed {
            sleepers: Arc::clone(self),
            key: Some(key),
            sleep: Duration::ZERO,
        };
        // Dropped where there is no sleep, it is taken back.
        let sleep = look()?;
        armed.sleep = sleep.unwrap_or_default();
        Ok(sleep.is_some().then_some(armed))
    }
}

/// A sleep that was announced.
pub(crate) struct Armed {
    sleepers: Arc<Sleepers>,
    key: Option<WaitKey>,
    sleep: Duration,
}

impl Armed {
    /// Sleeps until something comes, or for as long as was allowed.
    pub(crate) fn sleep(mut self) {
        if let Some(key) = self.key.take() {
            self.sleepers.waiter.sleep(key, self.sleep);
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if self.key.is_some() {
            self.sleepers.waiter.disarm();
        }
        self.sleepers.count.fetch_sub(1, Relaxed);
    }
}
