//! Thread levels: who may call, and what that costs.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use tagwire_base::sync::{AtomicBool, AtomicU32, Ordering, spin_loop};

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
///
/// The lock is biased: until a second thread comes, the thread that opened the rank enters by a
/// flag of its own and pays no locked instruction. The second thread takes the bias away for good
/// and pays for closing the race, with a barrier on all threads of the process (`membarrier(2)`,
/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`).
pub(crate) struct Guarded<T> {
    shared: bool,
    owner: usize,
    bias: Bias,
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` hands out the value to one caller at a time: either the owner, by the bias, or
// whoever holds `lock`, after the bias was revoked. A value that may move between threads may so
// be reached from them.
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
            owner: thread_identity(),
            bias: Bias::new(level.is_shared() && !register_barrier()),
            lock: Lock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Whether several threads may call.
    pub(crate) const fn is_shared(&self) -> bool {
        self.shared
    }

    /// The value, for this caller alone.
    ///
    /// # Errors
    /// [`Error::WrongThread`] at a level of one thread, and when the owner enters twice.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_, T>> {
        if self.owner == thread_identity() {
            match self.bias.enter() {
                Bid::Inside => {
                    return Ok(Entered {
                        guarded: self,
                        locked: false,
                    });
                }
                Bid::Twice => return Err(Error::WrongThread),
                Bid::Revoked => {}
            }
        } else if !self.shared {
            return Err(Error::WrongThread);
        }
        self.lock.lock();
        if !self.bias.is_revoked() {
            self.bias.revoke(barrier);
        }
        Ok(Entered {
            guarded: self,
            locked: true,
        })
    }
}

/// The value of a [`Guarded`], until dropped.
pub(crate) struct Entered<'a, T> {
    guarded: &'a Guarded<T>,
    locked: bool,
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
        if self.locked {
            self.guarded.lock.unlock();
        } else {
            self.guarded.bias.leave();
        }
    }
}

/// How the owner's wish to enter by the bias came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bid {
    Inside,
    /// It is inside already: a call from within a callback.
    Twice,
    /// The lock has to be taken.
    Revoked,
}

/// The owner's own way in, for as long as nobody else has come.
///
/// ```text
///     owner                        second thread, holding the lock
///     inside = true                revoked = true
///     (compiler barrier)           barrier on all threads
///     revoked?  no: enter          wait while inside
/// ```
///
/// Either the owner's store was made before the barrier, and the second thread sees it; or its
/// load comes after the barrier, and sees the revocation.
struct Bias {
    inside: AtomicBool,
    revoked: AtomicBool,
}

impl Bias {
    fn new(revoked: bool) -> Self {
        Self {
            inside: AtomicBool::new(false),
            revoked: AtomicBool::new(revoked),
        }
    }

    #[inline]
    fn enter(&self) -> Bid {
        if self.inside.load(Ordering::Relaxed) {
            return Bid::Twice;
        }
        self.inside.store(true, Ordering::Relaxed);
        light_barrier();
        if self.revoked.load(Ordering::Acquire) {
            self.inside.store(false, Ordering::Release);
            return Bid::Revoked;
        }
        Bid::Inside
    }

    #[inline]
    fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }

    #[inline]
    fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }

    /// Takes the bias away. Called under the lock, by one thread.
    #[cold]
    fn revoke(&self, barrier: impl FnOnce()) {
        self.revoked.store(true, Ordering::Release);
        barrier();
        while self.inside.load(Ordering::Acquire) {
            yield_core();
        }
    }
}

/// The owner's half of the barrier: keeps the compiler from reordering; the processor is kept by
/// the other half. Under loom, which has no such asymmetric pair, a full fence on each side.
#[inline]
fn light_barrier() {
    #[cfg(loom)]
    tagwire_base::sync::fence(Ordering::SeqCst);
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

#[cfg(not(loom))]
fn register_barrier() -> bool {
    let command = rustix::thread::MembarrierCommand::RegisterPrivateExpedited;
    rustix::thread::membarrier(command).is_ok()
}

/// The second thread's half of the barrier. Registered for, so that it cannot fail.
#[cfg(not(loom))]
fn barrier() {
    let command = rustix::thread::MembarrierCommand::PrivateExpedited;
    rustix::thread::membarrier(command).expect("registered when the guard was made");
}

#[cfg(not(loom))]
fn yield_core() {
    rustix::thread::sched_yield();
}

#[cfg(loom)]
fn register_barrier() -> bool {
    true
}

#[cfg(loom)]
fn barrier() {
    tagwire_base::sync::fence(Ordering::SeqCst);
}

#[cfg(loom)]
fn yield_core() {
    spin_loop();
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

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Owner by bias, second thread by lock: the counter, a plain cell, is never torn.
    #[test]
    fn loom_a_biased_owner_and_a_second_thread_exclude_each_other() {
        loom::model(|| {
            struct Shared {
                bias: Bias,
                lock: Lock,
                count: loom::cell::UnsafeCell<u32>,
            }
            // SAFETY: the model's own check is what is tested.
            unsafe impl Sync for Shared {}
            impl Shared {
                fn add(&self) {
                    // SAFETY: exclusive, by bias or lock; loom reports it if not.
                    self.count.with_mut(|count| unsafe { *count += 1 });
                }
            }
            let shared = Arc::new(Shared {
                bias: Bias::new(false),
                lock: Lock::new(),
                count: loom::cell::UnsafeCell::new(0),
            });
            let second = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.lock.lock();
                    if !shared.bias.is_revoked() {
                        shared.bias.revoke(barrier);
                    }
                    shared.add();
                    shared.lock.unlock();
                })
            };
            for _ in 0..2 {
                match shared.bias.enter() {
                    Bid::Inside => {
                        shared.add();
                        shared.bias.leave();
                    }
                    Bid::Revoked => {
                        shared.lock.lock();
                        shared.add();
                        shared.lock.unlock();
                    }
                    Bid::Twice => unreachable!("the owner is not inside"),
                }
            }
            second.join().unwrap();
            // SAFETY: the other thread has ended.
            shared.count.with(|count| assert_eq!(unsafe { *count }, 3));
        });
    }
}

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
