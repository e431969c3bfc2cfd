//! Sleeping on a futex in the own segment.
//!
//! The word in the header is `epoch << 1 | armed`. Whoever has something for the rank looks at it
//! with a plain load after publishing; where it is armed, it moves the word to the next epoch and
//! wakes all sleepers.
//!
//! ```text
//!     sender                            sleeper
//!     publish the message               arm: set the bit
//!                                       membarrier
//!     load the word: armed?  wake       look once more for messages
//!                                       futex wait, while the word is what arm left
//! ```
//!
//! Between the sender's store and its load there is no fence, which it would pay for with every
//! message. The sleeper's `membarrier` puts one into every process of the machine that registered
//! for it, wherever it is in its program: either the sender's load comes after it and sees the
//! bit, or its store came before and the sleeper's last look finds the message. Where `membarrier`
//! is not to be had (a seccomp filter) sleeps are bounded instead.
//!
//! Who is woken on the CPU of its waker goes back to the one where it slept (`slept_on`).

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, compiler_fence, fence};
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};
use rustix::thread::{MembarrierCommand, membarrier};

use super::layout::SleepLine;
use super::segment::HeaderMap;
use super::slept_on::SleptOn;
use crate::wait::{WaitKey, Waiter};
use crate::word::Word;

/// How long a sleep lasts at most where the race with senders cannot be closed, and where a transfer waits for its other side: it goes on
/// without that side after a while, which wakes nobody.
const BOUNDED: Duration = Duration::from_millis(1);

/// The sleeping word, apart from the system calls.
pub(super) mod word {
    use super::*;

    /// Says that the rank is about to sleep; returns what the word is now. The caller then has a
    /// barrier done in all senders.
    pub(in super::super) fn arm(word: &impl Word<u32>) -> u32 {
        word.fetch_or(1, SeqCst) | 1
    }

    /// Whether somebody sleeps there, or is about to.
    #[inline]
    pub(in super::super) fn is_armed(word: &impl Word<u32>) -> bool {
        word.load(Relaxed) & 1 != 0
    }

    /// Moves an armed word to the next epoch; returns whether the caller did it, and so has to
    /// wake the sleepers.
    pub(in super::super) fn advance(word: &impl Word<u32>) -> bool {
        let mut now = word.load(Relaxed);
        while now & 1 != 0 {
            match word.compare_exchange(now, now.wrapping_add(1), Release, Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }
}

/// Wakes everybody who sleeps on a rank's line.
#[cold]
pub(super) fn wake(line: &SleepLine) {
    line.woken_on.store(SleptOn::here().number(), Relaxed);
    if word::advance(&line.word) {
        // It can fail only for addresses that are not mapped.
        let _ = futex::wake(&line.word, Flags::empty(), i32::MAX as u32);
    }
}

/// Wakes the rank of `header`, if it sleeps, after something was written for it.
#[inline]
pub(super) fn wake_sleeper(header: &HeaderMap) {
    // The barrier of a sleeper orders what the processor does here; this orders the compiler.
    compiler_fence(SeqCst);
    let sleeping = &header.sleeping;
    if word::is_armed(&sleeping.word) {
        wake(sleeping);
    }
}

/// Registers this process for the barriers of sleepers; returns whether it worked.
pub(super) fn register_for_barriers() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// What threads of a rank sleep on.
pub(super) struct ShmWaiter {
    header: HeaderMap,
    /// Threads between `arm` and the end of their sleep.
    armed: AtomicU32,
    /// Some process does not take part in barriers.
    bounded: AtomicBool,
    /// A transfer waits for its other side.
    watches: AtomicBool,
}

impl ShmWaiter {
    pub(super) fn new(header: HeaderMap, barriers: bool) -> Self {
        Self {
            header,
            armed: AtomicU32::new(0),
            bounded: AtomicBool::new(!barriers),
            watches: AtomicBool::new(false),
        }
    }

    /// A process that does not take part in barriers is about to send to this rank, or to credit what this rank
    /// sends.
    pub(super) fn bound_sleeps(&self) {
        self.bounded.store(true, Relaxed);
    }

    /// Says whether a transfer waits for its other side.
    pub(super) fn watch_transfers(&self, waits: bool) {
        self.watches.store(waits, Relaxed);
    }

    /// Whether sleeps are bounded.
    pub(super) fn is_bounded(&self) -> bool {
        self.bounded.load(Relaxed) | self.watches.load(Relaxed)
    }

    /// The last thread that leaves takes the bit along, so that senders need not wake nobody.
    fn leave(&self) {
        if self.armed.fetch_sub(1, SeqCst) == 1 {
            word::advance(&self.header.sleeping.word);
        }
    }
}

impl Waiter for ShmWaiter {
    fn arm(&self) -> WaitKey {
        self.armed.fetch_add(1, SeqCst);
        let key = word::arm(&self.header.sleeping.word);
        if membarrier(MembarrierCommand::GlobalExpedited).is_err() {
            self.bound_sleeps();
        }
        fence(SeqCst);
        WaitKey(key)
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        let timeout = match self.is_bounded() {
            true => timeout.min(BOUNDED),
            false => timeout,
        };
        let SleepLine { word, woken_on } = &self.header.sleeping;
        if word.load(Acquire) == key.0 {
            let limit = Timespec::try_from(timeout).ok();
            let slept_on = SleptOn::here();
            // A wake, a signal, the timeout, or a word that has moved on: all end the sleep.
            let _ = futex::wait(word, Flags::empty(), key.0, limit.as_ref());
            slept_on.leave_to_waker(woken_on.load(Relaxed));
        }
        self.leave();
    }

    fn disarm(&self) {
        self.leave();
    }

    fn wake(&self) {
        if word::is_armed(&self.header.sleeping.word) {
            wake(&self.header.sleeping);
        }
    }
}

/// The waiter as the trait wants it.
pub(super) fn shared(waiter: &Arc<ShmWaiter>) -> Arc<dyn Waiter> {
    Arc::clone(waiter) as Arc<dyn Waiter>
}

/// Wakes the owner of a header if it sleeps. For slow paths: fences first, so that what was
/// written before is seen by an owner that is just falling asleep.
pub(super) fn wake_if_armed(header: &HeaderMap) {
    fence(SeqCst);
    if word::is_armed(&header.sleeping.word) {
        wake(&header.sleeping);
    }
}
