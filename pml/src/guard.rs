//! Thread levels: who may call, and what that costs.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use tagwire_base::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering, spin_loop};

use crate::error::{Error, Result};

/// From which threads a rank may be called (MPI-5.0, section 11.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadLevel {
    /// The process has one thread. Checked: another thread is refused.
    Single,
    /// Only the thread that opened the rank calls. Checked.
    Funneled,
    /// Any thread calls, one at a time. Kept by a lock, so that a mistake does no harm.
    Serialized,
    /// Any thread calls at any time.
    Multiple,
}

impl ThreadLevel {
    const fn is_shared(self) -> bool {
        matches!(self, Self::Serialized | Self::Multiple)
    }
}

/// Names the calling thread by the place of a thread-local: two instructions, no state in it.
fn thread_identity() -> usize {
    thread_local! {
        static ANCHOR: u8 = const { 0 };
    }
    ANCHOR.with(|anchor| std::ptr::from_ref(anchor).addr())
}

/// A value that one caller at a time gets at. At the levels of one thread that is checked with a
/// compare and a flag; at the others a lock keeps it.
pub(crate) struct Guarded<T> {
    shared: bool,
    owner: AtomicUsize,
    busy: AtomicBool,
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` hands out the value to one caller at a time: at the shared levels `lock` sees
// to that across threads; else only the owning thread passes the identity check, and `busy` keeps
// it from entering twice. A value that may move between threads may so be reached from them.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T: fmt::Debug> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl<T> Guarded<T> {
    /// Guards `value` at `level`; the calling thread is the owner.
    pub(crate) fn new(level: ThreadLevel, value: T) -> Self {
        Self {
            shared: level.is_shared(),
            owner: AtomicUsize::new(thread_identity()),
            busy: AtomicBool::new(false),
            lock: Lock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Whether several threads may call.
    pub(crate) const fn is_shared(&self) -> bool {
        self.shared
    }

    /// Makes the calling thread the owner: for a value that was moved to it.
    pub(crate) fn adopt(&mut self) {
        self.owner.store(thread_identity(), Ordering::Relaxed);
    }

    /// The value, for this caller alone.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_, T>> {
        if self.shared {
            self.lock.lock();
        } else {
            // The flag is only ever touched by the owner, which the first half establishes.
            if self.owner.load(Ordering::Relaxed) != thread_identity()
                || self.busy.load(Ordering::Relaxed)
            {
                return Err(Error::WrongThread);
            }
            self.busy.store(true, Ordering::Relaxed);
        }
        Ok(Entered { guarded: self })
    }
}

/// The value of a [`Guarded`], until dropped.
pub(crate) struct Entered<'a, T> {
    guarded: &'a Guarded<T>,
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `enter` made this the only way to the value.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and this guard is borrowed exclusively.
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.guarded.shared {
            self.guarded.lock.unlock();
        } else {
            self.guarded.busy.store(false, Ordering::Relaxed);
        }
    }
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A lock whose fast path is one exchange to take and one to give, and whose waiters sleep.
///
/// Written here because the holder may be descheduled on a machine with more threads than
/// cores: waiters must go to the kernel soon.
struct Lock {
    state: AtomicU32,
}

impl Lock {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
        }
    }

    #[inline]
    fn lock(&self) {
        if self
            .state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.lock_slowly();
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        for _ in 0..40 {
            if self.state.load(Ordering::Relaxed) == FREE
                && self
                    .state
                    .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
            spin_loop();
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            sleep_while(&self.state, CONTENDED);
        }
    }

    #[inline]
    fn unlock(&self) {
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            wake_one(&self.state);
        }
    }
}

#[cfg(not(loom))]
fn sleep_while(word: &AtomicU32, value: u32) {
    use rustix::thread::futex;
    // A second bounds the harm of a wake-up that got lost to a signal.
    let bound = rustix::time::Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, Some(&bound));
}

#[cfg(not(loom))]
fn wake_one(word: &AtomicU32) {
    let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::PRIVATE, 1);
}

#[cfg(loom)]
fn sleep_while(_: &AtomicU32, _: u32) {
    spin_loop();
}

#[cfg(loom)]
fn wake_one(_: &AtomicU32) {}

/// How long a sleeping thread lets others wait for news of peers.
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(100);

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn single_refuses_other_threads_and_reentry() {
        let guarded = Arc::new(Guarded::new(ThreadLevel::Single, 7));
        let other = Arc::clone(&guarded);
        let refused = std::thread::spawn(move || other.enter().is_err())
            .join()
            .unwrap();
        assert!(refused);
        let entered = guarded.enter().unwrap();
        assert!(guarded.enter().is_err());
        drop(entered);
        assert_eq!(*guarded.enter().unwrap(), 7);
    }

    #[test]
    fn multiple_counts_right() {
        let guarded = Arc::new(Guarded::new(ThreadLevel::Multiple, 0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let guarded = Arc::clone(&guarded);
                std::thread::spawn(move || {
                    for _ in 0..10_000 {
                        *guarded.enter().unwrap() += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*guarded.enter().unwrap(), 40_000);
    }
}
