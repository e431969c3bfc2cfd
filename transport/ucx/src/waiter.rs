//! Sleeping until UCX has something, or another thread of the rank calls.
//!
//! UCX is armed by the thread that drives it: a sleeper announces itself, and the next call of
//! progress that finds nothing arms the worker. From then on its descriptor becomes readable with
//! the next event, and stays so until the worker is armed again. A sleeper that finds the worker
//! not armed sleeps for a moment only.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use tagwire_base::Error as BaseError;
use tagwire_transport::{Result, WaitKey, Waiter};

/// How long a sleep is where nothing would end it.
const MOMENT: Duration = Duration::from_millis(1);

/// What threads of one rank sleep on.
#[derive(Debug)]
pub(crate) struct UcxWaiter {
    /// The worker's descriptor, where it has one.
    events: Option<OwnedFd>,
    /// Readable while a wake is to be seen by a sleeper.
    calls: OwnedFd,
    state: Mutex<State>,
    /// How many have announced that they are about to sleep.
    wanted: AtomicU32,
    /// The worker was armed and nothing has happened since.
    armed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Counts the wakes.
    epoch: u32,
    asleep: u32,
}

impl UcxWaiter {
    pub(crate) fn new(events: Option<OwnedFd>) -> Result<Self> {
        let calls = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let calls = calls.map_err(|error| BaseError::System {
            what: "ucx: a descriptor to wake sleepers".to_owned(),
            source: error.into(),
        })?;
        Ok(Self {
            events,
            calls,
            state: Mutex::default(),
            wanted: AtomicU32::new(0),
            armed: AtomicBool::new(false),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the worker is to be armed.
    #[inline]
    pub(crate) fn wants_arming(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
            && self.events.is_some()
            && !self.armed.load(Ordering::Relaxed)
    }

    /// The worker is armed.
    pub(crate) fn armed(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// Something happened, so that the worker is not armed any more: whoever sleeps on it has to
    /// see to that again.
    #[inline]
    pub(crate) fn disturbed(&self) {
        if self.armed.load(Ordering::Relaxed) {
            self.armed.store(false, Ordering::Release);
            self.wake();
        }
    }

    /// Sleeps on the descriptors for at most `timeout`.
    fn doze(&self, timeout: Duration) {
        let armed = self.armed.load(Ordering::Acquire);
        let events = self.events.as_ref().filter(|_| armed);
        let timeout = match events {
            Some(_) => timeout,
            None => timeout.min(MOMENT),
        };
        let calls = PollFd::new(&self.calls, PollFlags::IN);
        let mut descriptors = [
            calls,
            PollFd::new(events.unwrap_or(&self.calls), PollFlags::IN),
        ];
        let timeout = Timespec::try_from(timeout).ok();
        // A signal ends the sleep early, which a sleep may do.
        let _ = poll(&mut descriptors, timeout.as_ref());
        if events.is_some() && !descriptors[1].revents().is_empty() {
            self.armed.store(false, Ordering::Release);
        }
    }

    fn withdraw(&self) {
        let _ = self
            .wanted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |wanted| {
                wanted.checked_sub(1)
            });
    }
}

impl Waiter for UcxWaiter {
    fn arm(&self) -> WaitKey {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        WaitKey(self.state().epoch)
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        let mut state = self.state();
        if state.epoch == key.0 {
            state.asleep += 1;
            drop(state);
            self.doze(timeout);
            state = self.state();
            state.asleep -= 1;
        }
        if state.asleep == 0 {
            // Whoever sleeps from now on has seen the calls so far in the epoch.
            let _ = rustix::io::read(&self.calls, &mut [0_u8; 8]);
        }
        drop(state);
        self.withdraw();
    }

    fn disarm(&self) {
        self.withdraw();
    }

    fn wake(&self) {
        let mut state = self.state();
        state.epoch = state.epoch.wrapping_add(1);
        if state.asleep > 0 {
            // Full is as good as written.
            let _ = rustix::io::write(&self.calls, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_sleep_ends_by_a_wake_by_time_or_at_once() {
        let waiter = UcxWaiter::new(None).unwrap();
        let long = Duration::from_secs(60);
        let start = Instant::now();
        let key = waiter.arm();
        waiter.wake();
        waiter.sleep(key, long);
        let key = waiter.arm();
        waiter.sleep(key, Duration::from_millis(1));
        std::thread::scope(|scope| {
            let key = waiter.arm();
            scope.spawn(|| waiter.wake());
            waiter.sleep(key, long);
        });
        assert!(start.elapsed() < long);
        assert!(!waiter.wants_arming());
    }
}
