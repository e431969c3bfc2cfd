//! Sleeping on several rails at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tagwire_transport::{WaitKey, Waiter};

/// A sleeper sleeps on one rail at a time, no longer than this: then it looks at all of them. No
/// kernel object wakes for a futex in shared memory and for a descriptor.
const SLICE: Duration = Duration::from_millis(1);

/// The waiters of all rails as one.
pub(crate) struct SeveralWaiter {
    rails: Vec<Arc<dyn Waiter>>,
    armed: Mutex<HashMap<u32, Vec<WaitKey>>>,
    /// How many are armed: read with every look.
    count: AtomicUsize,
    next: AtomicU32,
}

impl SeveralWaiter {
    pub(crate) fn new(rails: Vec<Arc<dyn Waiter>>) -> Self {
        Self {
            rails,
            armed: Mutex::default(),
            count: AtomicUsize::new(0),
            next: AtomicU32::new(0),
        }
    }

    /// Returns whether somebody is armed and does not sleep yet.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// The keys of one arm: those under `number`, or another thread's where that took these to
    /// disarm. A sleep on older keys ends early, which it may.
    fn take(&self, number: Option<u32>) -> Vec<WaitKey> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let own = number.and_then(|number| armed.remove(&number));
        let any = || {
            let number = armed.keys().next().copied()?;
            armed.remove(&number)
        };
        let keys = own.or_else(any).unwrap_or_default();
        self.count.store(armed.len(), Ordering::Relaxed);
        keys
    }
}

impl Waiter for SeveralWaiter {
    fn arm(&self) -> WaitKey {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let keys = self.rails.iter().map(|rail| rail.arm()).collect();
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.insert(number, keys);
        self.count.store(armed.len(), Ordering::Relaxed);
        WaitKey(number)
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        let keys = self.take(Some(key.0));
        let turn = key.0 as usize % self.rails.len().max(1);
        let mut slept_on = None;
        for (number, (rail, key)) in self.rails.iter().zip(keys).enumerate() {
            if number == turn {
                slept_on = Some((rail, key));
            } else {
                rail.disarm();
            }
        }
        if let Some((rail, key)) = slept_on {
            rail.sleep(key, timeout.min(SLICE));
        }
    }

    fn disarm(&self) {
        for (rail, _) in self.rails.iter().zip(self.take(None)) {
            rail.disarm();
        }
    }

    fn wake(&self) {
        self.rails.iter().for_each(|rail| rail.wake());
    }
}
