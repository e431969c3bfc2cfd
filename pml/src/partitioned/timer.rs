//! What is ready is posted after a while, whatever becomes of the rest of its group.
//!
//! A ready call that finds a group's time passed posts it, and so does whoever moves the rank on. Where all
//! threads compute nobody would: a thread of the rank sleeps in the kernel until the next group is due.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use tagwire_base::Clock;
use tagwire_base::sync::{AtomicBool, AtomicU64, fence};
use tagwire_base::sync::{Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use tagwire_base::sync::{Ordering::Release, Ordering::SeqCst};

use super::ends::SendingEnd;

/// No time: nothing waits.
pub(super) const NEVER: u64 = u64::MAX;

/// What is due and cannot be posted is tried again after so many nanoseconds.
const AGAIN: u64 = 200_000;

/// A due time that has passed: the group is complete.
const AT_ONCE: u64 = 1;

/// The times of one operation's groups.
#[derive(Debug)]
pub(super) struct Timer {
    after: u64,
    alarm: Arc<Alarm>,
    /// Nanoseconds of the alarm's clock when what waits in each group is due; 0 where nothing does.
    due: Box<[AtomicU64]>,
}

impl Timer {
    pub(super) fn new(after: Duration, groups: u32, alarm: Arc<Alarm>) -> Self {
        Self {
            after: u64::try_from(after.as_nanos()).unwrap_or(NEVER),
            alarm,
            due: (0..groups).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.alarm.now()
    }

    /// A round begins: nothing waits.
    pub(super) fn reset(&self) {
        self.due.iter().for_each(|due| due.store(0, Relaxed));
    }

    /// Something of a group is ready: the first sets the time.
    pub(super) fn set(&self, group: u32) {
        let due = self.now().saturating_add(self.after).min(NEVER - 1);
        let place = &self.due[group as usize];
        if place.compare_exchange(0, due, AcqRel, Relaxed).is_ok() {
            self.alarm.set(due);
        }
    }

    /// All of a group are ready. What cannot be posted at once is tried again.
    pub(super) fn complete(&self, group: u32) {
        self.due[group as usize].store(AT_ONCE, Relaxed);
    }

    /// Something of a complete group could not be posted.
    pub(super) fn try_again(&self) {
        self.alarm.set(self.now() + AGAIN);
    }

    pub(super) fn is_due(&self, group: u32, now: u64) -> bool {
        let due = self.due[group as usize].load(Relaxed);
        due != 0 && due <= now
    }

    /// When the next group is due of those that are not yet, or, where something is `overdue`, when to try
    /// again.
    pub(super) fn next(&self, overdue: bool) -> u64 {
        let now = self.now();
        let times = self.due.iter().map(|due| due.load(Acquire));
        let next = times.filter(|due| *due > now).min().unwrap_or(NEVER);
        match overdue {
            true => next.min(now + AGAIN),
            false => next,
        }
    }
}

/// When a thread that sleeps is to wake up.
#[derive(Debug)]
pub(super) struct Wake(AtomicU64);

impl Wake {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// The thread is about to look for times: those that are set from here on are in what it sees, or
    /// [`earlier`](Wake::earlier) says so.
    pub(super) fn look(&self) {
        self.0.store(NEVER, Release);
        fence(SeqCst);
    }

    /// The thread has found `next`, or nothing; returns until when it sleeps.
    pub(super) fn sleep(&self, next: u64) -> u64 {
        self.0.fetch_min(next, AcqRel).min(next)
    }

    /// A time was set; returns whether the thread has to be woken for that.
    pub(super) fn earlier(&self, due: u64) -> bool {
        fence(SeqCst);
        self.0.fetch_min(due, AcqRel) > due
    }
}

/// When a rank's timers go off, and the thread that sleeps until then.
#[derive(Debug)]
pub(super) struct Alarm {
    clock: Clock,
    wake: Wake,
    /// To be woken earlier; none where the system had no thread left.
    thread: OnceLock<Thread>,
    sendings: Mutex<Vec<Weak<dyn SendingEnd>>>,
    stop: AtomicBool,
}

impl Alarm {
    /// At least 2: earlier numbers have meanings of their own.
    fn now(&self) -> u64 {
        self.clock.now().as_nanos() + 2
    }

    /// Wakes the thread at `due`, or earlier. No lock: the call that wakes it is the kernel's.
    fn set(&self, due: u64) {
        if self.wake.earlier(due)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn sendings(&self) -> MutexGuard<'_, Vec<Weak<dyn SendingEnd>>> {
        self.sendings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts for `sending` from now on what is due.
    pub(super) fn attend_to(&self, sending: &Arc<dyn SendingEnd>) {
        self.sendings().push(Arc::downgrade(sending));
    }

    /// Does so no longer. The handle lives until this has returned, so that the thread never has the last.
    pub(super) fn forget(&self, gone: &dyn SendingEnd) {
        let is_gone = |sending: &Weak<dyn SendingEnd>| std::ptr::addr_eq(sending.as_ptr(), gone);
        self.sendings().retain(|sending| !is_gone(sending));
    }

    fn run(&self) {
        while !self.stop.load(Acquire) {
            self.wake.look();
            let sendings = self.sendings();
            let next = sendings.iter().filter_map(Weak::upgrade);
            let next = next.map(|sending| sending.ring()).min();
            drop(sendings);
            let next = self.wake.sleep(next.unwrap_or(NEVER));
            if next == NEVER {
                std::thread::park();
            } else {
                std::thread::park_timeout(Duration::from_nanos(next.saturating_sub(self.now())));
            }
        }
    }
}

/// A rank's alarm, with its thread; ends with this.
#[derive(Debug)]
pub(super) struct AlarmThread {
    alarm: Arc<Alarm>,
    thread: Option<JoinHandle<()>>,
}

impl AlarmThread {
    /// Starts the thread. Where that is impossible, timers go off with the calls that move the rank on.
    pub(super) fn hang(clock: Clock) -> Self {
        let alarm = Arc::new(Alarm {
            clock,
            wake: Wake::new(),
            thread: OnceLock::new(),
            sendings: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let rung = Arc::clone(&alarm);
        let thread = std::thread::Builder::new()
            .name("tagwire timers".to_owned())
            .spawn(move || rung.run());
        match &thread {
            Ok(thread) => drop(alarm.thread.set(thread.thread().clone())),
            Err(error) => tracing::warn!("no thread for timers: {error}"),
        }
        Self {
            alarm,
            thread: thread.ok(),
        }
    }

    pub(super) fn alarm(&self) -> Arc<Alarm> {
        Arc::clone(&self.alarm)
    }
}

impl Drop for AlarmThread {
    fn drop(&mut self) {
        self.alarm.stop.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}
