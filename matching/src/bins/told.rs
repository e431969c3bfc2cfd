//! Outcomes of the calls behind the hot path.

use crate::engine::{ArriveOutcome, PostOutcome};
use crate::envelope::{Cookie, Handle};

/// What became of a receive or of a message, in two words.
///
/// The outcomes that callers see are returned through memory: such a call has one register less, and stores and loads more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    what: What,
    /// The cookie, or the handle's slot and above it its generation.
    word: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum What {
    Matched,
    Queued,
    Full,
}

impl Told {
    /// Nothing: the queue is full.
    pub(super) const FULL: Self = Self {
        what: What::Full,
        word: 0,
    };

    #[inline(always)]
    pub(super) fn matched(Cookie(cookie): Cookie) -> Self {
        Self {
            what: What::Matched,
            word: u64::from(cookie),
        }
    }

    #[inline(always)]
    pub(super) fn queued(handle: Handle) -> Self {
        Self {
            what: What::Queued,
            word: u64::from(handle.slot) | u64::from(handle.generation) << 32,
        }
    }

    #[inline(always)]
    pub(super) const fn into_post(self) -> PostOutcome {
        match self.what {
            What::Matched => PostOutcome::Matched(self.cookie()),
            What::Queued => PostOutcome::Queued(self.handle()),
            What::Full => PostOutcome::Full,
        }
    }

    #[inline(always)]
    pub(super) const fn into_arrival(self) -> ArriveOutcome {
        match self.what {
            What::Matched => ArriveOutcome::Matched(self.cookie()),
            What::Queued => ArriveOutcome::Queued(self.handle()),
            What::Full => ArriveOutcome::Full,
        }
    }

    #[inline(always)]
    const fn cookie(self) -> Cookie {
        Cookie(self.word as u32)
    }

    #[inline(always)]
    const fn handle(self) -> Handle {
        Handle {
            slot: self.word as u32,
            generation: (self.word >> 32) as u32,
        }
    }
}
