//! Sleeping until something arrives, or is to be sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tagwire_base::{Clock, Time};
use tagwire_transport::{WaitKey, Waiter};

/// Nothing is to be done although nothing comes.
const NEVER: u64 = u64::MAX;

/// The waiter of the transport inside, whose sleeps end when a timer goes off.
pub(crate) struct DrWaiter {
    inner: Arc<dyn Waiter>,
    clock: Clock,
    /// When the next timer goes off, in nanoseconds of the clock.
    next: AtomicU64,
    /// How many are armed and do not sleep yet.
    armed: AtomicUsize,
}

impl DrWaiter {
    pub(crate) const fn new(inner: Arc<dyn Waiter>, clock: Clock) -> Self {
        Self {
            inner,
            clock,
            next: AtomicU64::new(NEVER),
            armed: AtomicUsize::new(0),
        }
    }

    /// Sets when the next timer goes off. A rank that is called only for what comes, and has read its clock `now`, is called then.
    pub(crate) fn set_next(&self, next: Option<Time>, now: Option<Time>) {
        let (old, nanos) = (
            self.next.load(Ordering::Relaxed),
            next.map_or(NEVER, Time::as_nanos),
        );
        if let (Some(next), Some(now)) = (next, now)
            && (nanos < old || old <= now.as_nanos())
        {
            self.inner.call_at(next);
        } else if now.is_some() && nanos != NEVER {
            // The call that is to come is earlier, and sees to this one.
            return;
        }
        self.next.store(nanos, Ordering::Relaxed);
    }

    /// Whether somebody is about to sleep.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed) > 0
    }

    /// One fewer is armed.
    fn leave(&self) {
        let one_less = |armed: usize| armed.checked_sub(1);
        // With none left nothing changes.
        let _ = (self.armed).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}

impl Waiter for DrWaiter {
    fn arm(&self) -> WaitKey {
        self.armed.fetch_add(1, Ordering::Relaxed);
        self.inner.arm()
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        self.leave();
        let next = self.next.load(Ordering::Relaxed);
        let left = match next {
            NEVER => timeout,
            _ => Duration::from_nanos(next.saturating_sub(self.clock.now().as_nanos())),
        };
        if left.is_zero() {
            self.inner.disarm();
        } else {
            self.inner.sleep(key, timeout.min(left));
        }
    }

    fn disarm(&self) {
        self.leave();
        self.inner.disarm();
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn call_at(&self, at: Time) -> bool {
        self.inner.call_at(at)
    }
}
