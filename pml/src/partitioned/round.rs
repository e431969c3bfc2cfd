//! Which round an operation is in, and whether it is under way.

use tagwire_base::sync::{AtomicU64, Ordering::Acquire, Ordering::Release};

use crate::error::{Error, Result};

/// The number of a round, from 1, and whether it is under way. The thread that starts and ends rounds
/// writes; all look.
#[derive(Debug)]
pub(super) struct Round(AtomicU64);

const ACTIVE: u64 = 1;
/// The operation was freed: no more rounds.
const FREED: u64 = 2;
const SHIFT: u32 = 2;

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

    /// The round that is under way, for calls that need one.
    #[inline]
    pub(super) fn require(&self) -> Result<u64> {
        self.active().ok_or(Error::BadRound("has not been started"))
    }

    /// Begins the next round; answers its number.
    pub(super) fn start(&self) -> Result<u64> {
        let word = self.0.load(Acquire);
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
        self.end();
        // No round is under way any more.
        let _ = self.free();
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
