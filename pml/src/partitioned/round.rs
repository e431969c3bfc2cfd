//! Which round an operation is in, and whether it is under way.

use tagwire_base::sync::{AtomicU32, AtomicU64};
use tagwire_base::sync::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::error::{Error, Result};

/// The number of a round, from 1, and whether it is under way. The thread that starts and ends rounds
/// writes; all look.
#[derive(Debug)]
pub struct Round(AtomicU64);

const ACTIVE: u64 = 1;
/// The operation was freed: no more rounds.
const FREED: u64 = 2;
/// A round did not end well, nor will another.
const FAILED: u64 = 4;
const SHIFT: u32 = 3;

impl Round {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The round that is under way.
    #[inline]
    pub(super) fn active(&self) -> Option<u64> {
        let word = self.0.load(Acquire);
        (word & ACTIVE != 0).then_some(word >> SHIFT)
    }

    /// The round that is under way, or was last.
    pub(super) fn last(&self) -> u64 {
        self.0.load(Acquire) >> SHIFT
    }

    /// Whether a round has failed: nothing of it counts.
    pub(super) fn has_failed(&self) -> bool {
        self.0.load(Acquire) & FAILED != 0
    }

    /// The round that is under way; `None` between rounds.
    ///
    /// # Errors
    /// When the operation has failed.
    #[inline]
    pub(super) fn under_way(&self) -> Result<Option<u64>> {
        let word = self.0.load(Acquire);
        if word & FAILED != 0 {
            return Err(Error::BadRound("has failed"));
        }
        Ok((word & ACTIVE != 0).then_some(word >> SHIFT))
    }

    /// The round that is under way, for calls that need one.
    #[inline]
    pub(super) fn require(&self) -> Result<u64> {
        self.active().ok_or(Error::BadRound("has not been started"))
    }

    /// Begins the next round; returns its number.
    pub(super) fn start(&self) -> Result<u64> {
        let word = self.0.load(Acquire);
        if word & FAILED != 0 {
            return Err(Error::BadRound("has failed"));
        }
        if word & FREED != 0 {
            return Err(Error::BadRound("has been freed"));
        }
        if word & ACTIVE != 0 {
            return Err(Error::BadRound("is under way already"));
        }
        let next = (word >> SHIFT) + 1;
        self.0.store(next << SHIFT | ACTIVE, Release);
        Ok(next)
    }

    /// Ends the round that is under way.
    pub(super) fn end(&self) {
        let word = self.0.load(Acquire);
        self.0.store(word & !ACTIVE, Release);
    }

    /// The operation is over, also in the middle of a round.
    pub(super) fn fail(&self) {
        // In one go: nobody is to find that the round is over before finding that it has failed.
        let word = self.0.load(Acquire);
        self.0.store(word & !ACTIVE | FREED | FAILED, Release);
    }

    /// Ends the operation, unless a round is under way.
    pub(super) fn free(&self) -> Result<()> {
        let word = self.0.load(Acquire);
        if word & ACTIVE != 0 {
            return Err(Error::BadRound("is under way and cannot be freed"));
        }
        self.0.store(word | FREED, Release);
        Ok(())
    }
}

/// Every so many looks, once more is looked at than what is expected. Threads may lose some to each other.
#[derive(Debug, Default)]
pub(super) struct Rhythm(AtomicU32);

impl Rhythm {
    const EVERY: u32 = 4;

    /// Whether this look is one of them.
    pub(super) fn is_time(&self) -> bool {
        let looks = self.0.load(Relaxed).wrapping_add(1);
        self.0.store(looks, Relaxed);
        looks.is_multiple_of(Self::EVERY)
    }
}
