//! The lock of a target: tried by everybody, waited for by nobody but the owner, and taken over
//! by the owner when its holder has died.
//!
//! ```text
//!   word = times it was given back << 32 | holder's rank + 1, or 0
//! ```
//!
//! Whoever holds it does a bounded piece of work: a few messages, never a bulk copy.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::super::word::Word;

/// Proof that the caller holds the lock, to be given back.
#[derive(Debug)]
#[must_use]
pub(in super::super) struct Held(u64);

/// Takes the lock for `rank` if nobody has it.
#[inline]
pub(in super::super) fn try_lock(word: &impl Word<u64>, rank: u32) -> Option<Held> {
    let now = word.load(Relaxed);
    if now as u32 != 0 {
        return None;
    }
    let mine = now | u64::from(rank.wrapping_add(1));
    word.compare_exchange(now, mine, Acquire, Relaxed)
        .is_ok()
        .then_some(Held(mine))
}

/// Gives the lock back.
#[inline]
pub(in super::super) fn unlock(word: &impl Word<u64>, held: Held) {
    word.store(((held.0 >> 32).wrapping_add(1)) << 32, Release);
}

/// The same for a visitor: its lock may have been taken over meanwhile, by an owner that was told
/// that it has failed.
pub(in super::super) fn unlock_visit(word: &impl Word<u64>, held: Held) {
    let next = ((held.0 >> 32).wrapping_add(1)) << 32;
    let _ = word.compare_exchange(held.0, next, Release, Relaxed);
}

/// Who holds the lock, and the word that says so.
pub(in super::super) fn holder(word: &impl Word<u64>) -> Option<(u32, u64)> {
    let now = word.load(Relaxed);
    (now as u32).checked_sub(1).map(|rank| (rank, now))
}

/// Takes the lock over from a holder that has died, as it was seen in `found`. `None` when it has
/// changed hands meanwhile.
pub(in super::super) fn take_over(word: &impl Word<u64>, found: u64, rank: u32) -> Option<Held> {
    let mine = ((found >> 32).wrapping_add(1)) << 32 | u64::from(rank.wrapping_add(1));
    word.compare_exchange(found, mine, Acquire, Relaxed)
        .is_ok()
        .then_some(Held(mine))
}
