//! The payload ring of a pair, as its producer sees it, and who has its memory.
//!
//! ```text
//!   FREE       nobody uses the memory: its pages need not exist
//!     |          the producer, before a payload
//!   TAKEN      the producer may write at any time
//!     |          the producer, in silence, once all of it is credited
//!   LEFT       the producer writes nothing: it goes back to TAKEN before a payload
//!     |          the consumer, at its next look
//!   FREEING    the consumer gives the pages back to the system
//!     |          the consumer
//!   FREE
//! ```
//!
//! The producer takes the ring again without its consumer. While that one frees the memory, for as long as a call of the system takes, there is
//! no space. Positions go on: what was freed had been read.
//!
//! While the producer has left the ring it takes it for one of 0 bytes, which has no space for any payload. To take it costs payloads nothing that
//! find space.
//!
//! A state that the other side cannot have made ends it. Whoever writes into memory that it has left, or leaves what was not read, spoils its own
//! messages.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tagwire_base::Time;

use super::room::{Cursor, IDLE};
use crate::word::Word;

/// The payload ring, as its producer sees it.
#[derive(Debug, Default)]
pub(super) struct PayloadOut {
    cursor: Cursor,
    /// Position up to which it is consumed, as far as known.
    consumed: u32,
    /// Bytes that may be written: 0 while the ring is not taken.
    len: u32,
    /// Where the producer stood at the last look, and when it stood elsewhere.
    seen: u32,
    active: Time,
}

impl PayloadOut {
    /// Begins to count at `position`.
    pub(super) const fn begin_at(&mut self, position: u32) {
        self.cursor.position = position;
        self.consumed = position;
    }

    /// Returns where a payload of `len` bytes goes in a ring of `ring` bytes, and the position behind it.
    #[inline]
    pub(super) const fn advance(&self, len: usize, ring: u32) -> (usize, Cursor) {
        self.cursor.advance(len, ring)
    }

    /// Whether there is space up to `next`, as far as is known.
    #[inline]
    pub(super) const fn has_space(&self, next: Cursor) -> bool {
        next.position.wrapping_sub(self.consumed) <= self.len
    }

    /// A payload was written before `next`.
    #[inline]
    pub(super) const fn go_on(&mut self, next: Cursor) {
        self.cursor = next;
    }

    /// Takes note that the ring is consumed up to `position`.
    pub(super) const fn note_consumed(&mut self, position: u32) {
        self.consumed = position;
    }

    /// Takes a ring of `ring` bytes, where it is not taken and its consumer is not freeing it.
    pub(super) fn take(&mut self, state: &impl Word<u64>, ring: u32) {
        let take_from = |from| {
            state
                .compare_exchange(from, TAKEN, Acquire, Relaxed)
                .is_ok()
        };
        if self.len == 0 && (take_from(FREE) || take_from(LEFT)) {
            self.len = ring;
        }
    }

    /// Leaves the ring where it is consumed up to `position`, which is all, and nothing was written for some time.
    pub(super) fn look(&mut self, state: &impl Word<u64>, position: u32, now: Time) {
        if self.seen != self.cursor.position {
            (self.seen, self.active) = (self.cursor.position, now);
        }
        let is_empty = self.cursor.position == position;
        if self.len != 0 && is_empty && now.since(self.active) >= IDLE {
            self.consumed = position;
            self.len = 0;
            state.store(LEFT, Release);
        }
    }

    /// Whether state and credit are such that a correct consumer could have written them, of a ring of `ring` bytes.
    pub(super) fn is_sane(&self, state: &impl Word<u64>, position: u32, ring: u32) -> bool {
        let state = state.load(Relaxed);
        let is_known = match self.len {
            0 => matches!(state, FREE | LEFT | FREEING),
            _ => state == TAKEN,
        };
        is_known && self.cursor.position.wrapping_sub(position) <= ring
    }
}

/// Has its consumer `free` the memory of a ring that its producer has left; returns whether it did.
///
/// # Errors
/// The state, where no correct producer leaves it.
pub(super) fn free_where_left(state: &impl Word<u64>, free: impl FnOnce()) -> Result<bool, u64> {
    match state.load(Relaxed) {
        FREE | TAKEN => return Ok(false),
        LEFT => {}
        other => return Err(other),
    }
    let is_left = (state.compare_exchange(LEFT, FREEING, Acquire, Relaxed)).is_ok();
    if is_left {
        free();
        state.store(FREE, Release);
    }
    Ok(is_left)
}

/// Nobody uses the memory: as of an area that is new.
const FREE: u64 = 0;
/// The producer may write there.
const TAKEN: u64 = 1;
/// The producer writes there no more.
const LEFT: u64 = 2;
/// The consumer gives the memory back to the system.
pub(super) const FREEING: u64 = 3;
