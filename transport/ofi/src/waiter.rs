//! Sleeping until the provider has something, or another thread of this rank.
//!
//! ```text
//!     arm:       clock + 1 is the key                        any thread
//!     progress:  nothing came, and the provider lets sleep:
//!                ready = clock                               who drives
//!     sleep:     clock is still the key, and ready as well:
//!                poll both descriptors                       any thread
//!     wake:      clock + 1, and a token for each sleeper     any thread
//! ```
//!
//! A provider lets sleep only after a look that found nothing (`fi_trywait`), which only the thread
//! that drives may take. Who comes without one does not sleep, but pauses. Where a post was refused since,
//! what would have ended the sleep may have gone with it: such a sleep is short.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use tagwire_base::Error;
use tagwire_transport::{WaitKey, Waiter};

use crate::fabric::{Net, Refusals};

/// How long those pause who have nothing to sleep on.
const PAUSE: Duration = Duration::from_micros(100);

/// How long those sleep at most who have been refused since they were let sleep.
///
/// Seen with `tcp` of 2.5.1: the send that found a connection half made read the reply of the peer, and was refused all the
/// same. The connection was there, and nothing was left to say so.
const REFUSED: Duration = Duration::from_millis(1);

/// What threads of one rank sleep on.
#[derive(Debug)]
pub(crate) struct OfiWaiter {
    /// What the provider signals, where it does.
    arrivals: Option<OwnedFd>,
    /// Tokens for sleepers who are to wake.
    wakes: OwnedFd,
    clock: AtomicU32,
    ready: AtomicU32,
    armed: AtomicU32,
    sleepers: AtomicU32,
    refusals: Refusals,
    /// How many of them there were when sleep was allowed the last time.
    refused: AtomicU32,
}

/// What a thread sleeps on, and for how long.
#[derive(Debug, PartialEq, Eq)]
struct Sleep {
    arrivals: bool,
    longest: Duration,
}

impl OfiWaiter {
    /// Returns what the threads of a rank sleep on that has this endpoint.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub(crate) fn of(net: &Net) -> Result<Self, Error> {
        let arrivals = net.wait_descriptor();
        let arrivals = arrivals.and_then(|descriptor| descriptor.try_clone_to_owned().ok());
        Self::new(arrivals, net.refusals().clone()).map_err(|source| Error::System {
            what: "eventfd".to_owned(),
            source,
        })
    }

    /// # Errors
    /// When the system has no descriptors left.
    fn new(arrivals: Option<OwnedFd>, refusals: Refusals) -> std::io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        Ok(Self {
            arrivals,
            wakes: eventfd(0, flags)?,
            clock: AtomicU32::new(0),
            ready: AtomicU32::new(u32::MAX),
            armed: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            refusals,
            refused: AtomicU32::new(0),
        })
    }

    /// Whether arrivals end a sleep.
    pub(crate) const fn sees_arrivals(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Whether somebody is about to sleep and wants to know if that is allowed.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed) > 0
    }

    /// Lets those sleep who armed up to now, if `check` finds that nothing is there.
    pub(crate) fn allow(&self, check: impl FnOnce() -> bool) {
        let clock = self.clock.load(Ordering::SeqCst);
        self.refused.store(self.refusals.count(), Ordering::SeqCst);
        if self.sees_arrivals() && check() {
            self.ready.store(clock, Ordering::SeqCst);
        }
    }

    /// Returns how the thread with `key` may sleep; `None` where something came since it armed.
    fn sleep_of(&self, key: WaitKey) -> Option<Sleep> {
        if self.clock.load(Ordering::SeqCst) != key.0 {
            return None;
        }
        let arrivals = self.ready.load(Ordering::SeqCst) == key.0;
        let was_refused = self.refused.load(Ordering::SeqCst) != self.refusals.count();
        let longest = match (arrivals, was_refused) {
            (false, _) => PAUSE,
            (true, true) => REFUSED,
            (true, false) => Duration::MAX,
        };
        Some(Sleep { arrivals, longest })
    }

    fn poll_for(&self, timeout: Duration, arrivals: bool) {
        let second = self.arrivals.as_ref().unwrap_or(&self.wakes);
        let mut descriptors =
            [&self.wakes, second].map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
        let count = if arrivals { 2 } else { 1 };
        let timeout = Timespec::try_from(timeout).ok();
        // A signal ends a sleep as well; the caller looks again whatever the reason.
        let _ = poll(&mut descriptors[..count], timeout.as_ref());
    }
}

impl Waiter for OfiWaiter {
    fn arm(&self) -> WaitKey {
        self.armed.fetch_add(1, Ordering::SeqCst);
        WaitKey(self.clock.fetch_add(1, Ordering::SeqCst).wrapping_add(1))
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if let Some(Sleep { arrivals, longest }) = self.sleep_of(key) {
            self.poll_for(timeout.min(longest), arrivals);
        }
        // The token that a wake has left for this sleeper, if one has.
        let _ = rustix::io::read(&self.wakes, &mut [0; 8]);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        self.disarm();
    }

    fn disarm(&self) {
        self.armed.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        self.clock.fetch_add(1, Ordering::SeqCst);
        let sleepers = self.sleepers.load(Ordering::SeqCst);
        if sleepers > 0 {
            // Full of tokens is as good.
            let _ = rustix::io::write(&self.wakes, &u64::from(sleepers).to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_refused_since_sleep_was_allowed_sleeps_briefly() {
        let refusals = Refusals::default();
        let arrivals = eventfd(0, EventfdFlags::empty()).unwrap();
        let waiter = OfiWaiter::new(Some(arrivals), refusals.clone()).unwrap();
        let armed = |refused_before: bool, refused_after: bool| {
            let key = waiter.arm();
            (0..u32::from(refused_before)).for_each(|_| refusals.note());
            waiter.allow(|| true);
            (0..u32::from(refused_after)).for_each(|_| refusals.note());
            waiter.disarm();
            waiter.sleep_of(key).unwrap().longest
        };
        for (before, after, longest) in [
            (false, false, Duration::MAX),
            (true, false, Duration::MAX),
            (false, true, REFUSED),
        ] {
            assert_eq!(armed(before, after), longest);
        }
        let key = waiter.arm();
        let unallowed = Sleep {
            arrivals: false,
            longest: PAUSE,
        };
        assert_eq!(waiter.sleep_of(key), Some(unallowed));
        waiter.wake();
        assert_eq!(waiter.sleep_of(key), None);
    }
}
