//! The lock of a target: tried by everybody, waited for by nobody but the owner, and taken over
//! by the owner when its holder has died. Its word is a [`LockWord`].
//!
//! Whoever holds it does a bounded piece of work: a few messages, never a bulk copy.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::shm::matching::packed::LockWord;
use crate::word::Word;

/// Proof that the caller holds the lock, to be given back.
#[derive(Debug)]
#[must_use]
pub(in crate::shm) struct Held(u64);

/// Takes the lock for `rank` if nobody has it.
#[inline]
pub(in crate::shm) fn try_lock(word: &impl Word<u64>, rank: u32) -> Option<Held> {
    let now = word.load(Relaxed);
    let LockWord {
        turns,
        holder: None,
    } = LockWord::unpack(now)
    else {
        return None;
    };
    acquire(word, now, turns, rank)
}

/// Gives the lock back.
#[inline]
pub(in crate::shm) fn unlock(word: &impl Word<u64>, held: Held) {
    word.store(given_back(&held), Release);
}

/// Gives the lock back that a matching sender has taken. It may have been taken over meanwhile, by an owner that was told
/// that the sender has failed.
pub(in crate::shm) fn unlock_visit(word: &impl Word<u64>, held: Held) {
    let _ = word.compare_exchange(held.0, given_back(&held), Release, Relaxed);
}

/// Returns who holds the lock, and the word that says so.
pub(in crate::shm) fn holder(word: &impl Word<u64>) -> Option<(u32, u64)> {
    let now = word.load(Relaxed);
    LockWord::unpack(now).holder.map(|rank| (rank, now))
}

/// Takes the lock over from a holder that has died, as it was seen in `found`. Returns `None` when it has
/// changed hands meanwhile.
pub(in crate::shm) fn take_over(word: &impl Word<u64>, found: u64, rank: u32) -> Option<Held> {
    let turns = LockWord::unpack(found).turns.wrapping_add(1);
    acquire(word, found, turns, rank)
}

#[inline]
fn acquire(word: &impl Word<u64>, found: u64, turns: u32, rank: u32) -> Option<Held> {
    let mine = LockWord {
        turns,
        holder: Some(rank),
    };
    word.compare_exchange(found, mine.pack(), Acquire, Relaxed)
        .is_ok()
        .then_some(Held(mine.pack()))
}

/// Returns the word behind a holder's turn.
#[inline]
const fn given_back(held: &Held) -> u64 {
    let next = LockWord {
        turns: LockWord::unpack(held.0).turns.wrapping_add(1),
        holder: None,
    };
    next.pack()
}
