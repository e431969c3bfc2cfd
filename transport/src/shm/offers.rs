//! Cooperative transfers: who copies which chunk.
//!
//! One side, the maker, describes its buffer in a line of the pair area and informs the other, by a
//! message of the layer above, which line. The other, the claimer, adds its own buffer. From then on
//! whichever side has time claims a chunk and copies it: the claimer from the front, the maker from the
//! back; who has the source writes the other's memory, who has the target reads it. Both are done when
//! everything is finished, without another message. As a rule the maker has the source; where a receiver
//! offers its buffer before it knows of a message, the maker has the target.
//!
//! ```text
//!   descriptor, one line:          written by
//!     offered     generation | OPEN, WITHDRAWN or TAKEN      maker; TAKEN: claimer
//!                 ... | WRITES                               maker
//!     made, made_len                                         maker, before OPEN
//!     joined, joined_len                                     claimer, before CLAIMED
//!     claims      front u31 | stopped u1 | back u31 | begun u1   both, by compare and exchange
//!     finished    by the claimer u32 | by the maker u32      both, by addition
//!     claimed     generation | CLAIMED | RELEASED            claimer
//!
//!   in units of 4 KiB:
//!     0 ......... front ............ back ......... units
//!     the claimer's     still free        the maker's
//! ```
//!
//! *Finished* means "no longer touched": a side whose copy fails first sets *stopped*, which
//! freezes the claims, and then counts the chunk as finished. Whoever finds everything finished
//! therefore also finds the mark, where there is one. A buffer is given back only when all that
//! the other side claimed is finished, or the other side provably does nothing any more.
//!
//! Before anybody has claimed it, a maker with the source may take units already, and stage them in the ring: *begun* is not set yet.
//! Whoever claims keeps these claims, or begins anew with all units free where it has thrown away what came early.
//!
//! The maker uses a line again once the claimer has marked it released and the maker itself has
//! told its owner how the transfer ended.
//!
//! Whether a receiver's buffer is filled or was revoked before is decided by one compare and exchange of *offered*, from OPEN
//! to TAKEN or to WITHDRAWN: whoever revokes knows at once.

use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::word::Word;

/// Bytes of a unit.
pub(super) const UNIT: u64 = 4096;
/// Largest transfer, in units: the claims' bit 31 is the mark.
pub(super) const MAX_UNITS: u64 = (1 << 31) - 1;

/// State bits of `offered`.
pub(super) const OPEN: u64 = 1;
/// The maker has taken the offer back.
pub(super) const WITHDRAWN: u64 = 2;
/// The claimer fills the buffer that was offered: it cannot be revoked any more.
pub(super) const TAKEN: u64 = 4;
/// A maker with the source, of a transfer that may go through the ring, writes the target itself, or has: set before it claims the first
/// unit for that. While it is not set, what the maker has claimed is written by the claimer.
pub(super) const WRITES: u64 = 8;
/// State bits of `claimed`.
pub(super) const CLAIMED: u64 = 1;
/// The claimer will not touch the line any more.
pub(super) const RELEASED: u64 = 2;

const STOPPED: u64 = 1 << 31;
/// Somebody has claimed the offer.
const BEGUN: u64 = 1 << 63;

/// The first unit that the maker has claimed.
pub(super) const fn back_of(claims: u64) -> u32 {
    (claims >> 32) as u32 & (u32::MAX >> 1)
}

/// Which side of a transfer somebody is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Whoever claimed the offer: claims chunks from the front.
    Claimer,
    /// Whoever made the offer: claims chunks from the back.
    Maker,
}

/// How many units there are in `bytes`; `None` when it is too much for one transfer.
pub(super) fn units(bytes: u64) -> Option<u32> {
    let units = bytes.div_ceil(UNIT);
    (units <= MAX_UNITS).then_some(units as u32)
}

/// Marks `state` of generation `generation`.
pub(super) const fn mark(generation: u32, state: u64) -> u64 {
    (generation as u64) << 32 | state
}

/// The chunk to be claimed next, in units, of `free` ones: the place to tune.
///
/// Half of a transfer that nobody has begun: when both sides copy, each moves one half, in one
/// call. Of what is left of a begun one, half while that is much, else all: a chunk below `min`
/// costs more in calls than it balances.
///
/// The same with many transfers in hand. Sharing by whole transfers (tried) makes both sides
/// write to the same buffer at once where a program receives into one over and over, as OSU's
/// bandwidth test does: 13 against 26 GB/s at 64 KiB, 21 against 45 GB/s at 1 MiB.
pub(super) fn chunk(free: u32, total: u32, min: u32, max: u32) -> u32 {
    let begun = free < total;
    let wanted = match free {
        _ if !begun && free >= min => free.div_ceil(2),
        _ if begun && free > min.saturating_mul(4) => free / 2,
        _ => free,
    };
    wanted.min(max.max(1)).min(free)
}

/// Units that were claimed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub first: u32,
    pub count: u32,
}

impl Chunk {
    /// The bytes of it, of `total`.
    pub(super) fn range(self, total: u64) -> Range<usize> {
        let start = u64::from(self.first) * UNIT;
        let end = (start + u64::from(self.count) * UNIT).min(total);
        start as usize..end as usize
    }
}

/// What an attempt to claim gave before anybody had claimed the offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Early {
    /// These are the caller's to copy.
    Chunk(Chunk),
    /// The next one does not fit.
    Later,
    /// All are claimed, or the offer is.
    Over,
}

/// What an attempt to claim gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// These are the caller's to copy.
    Chunk(Chunk),
    /// All are claimed, or the transfer is stopped.
    Nothing,
    /// What no correct peer writes.
    Insane,
}

/// Prepares the claims of an offer: everything is free, and nothing has begun. By the maker, before it marks the descriptor open.
pub(super) fn open(claims: &impl Word<u64>, units: u32) {
    claims.store(u64::from(units) << 32, Relaxed);
}

/// Prepares the claims of a transfer: everything is free. By the claimer, before it marks the
/// descriptor claimed.
pub(super) fn prepare(claims: &impl Word<u64>, finished: &impl Word<u64>, units: u32) {
    finished.store(0, Relaxed);
    // What the maker takes just now is replaced, or fails.
    claims.swap(BEGUN | u64::from(units) << 32, AcqRel);
}

/// The same, and what the maker has taken stays its own. Returns whether that is what a correct maker has: if not, everything
/// is to be [prepared](prepare).
pub(super) fn prepare_begun(
    claims: &impl Word<u64>,
    finished: &impl Word<u64>,
    units: u32,
) -> bool {
    finished.store(0, Relaxed);
    let before = claims.fetch_or(BEGUN, AcqRel);
    before as u32 == 0 && before & BEGUN == 0 && back_of(before) <= units
}

/// Claims the next chunk, of `most` units, of an offer that nobody has claimed yet, by its maker, where the chunk `fits`.
pub(super) fn take_early(
    claims: &impl Word<u64>,
    most: u32,
    fits: impl FnOnce(Chunk) -> bool,
) -> Early {
    let now = claims.load(Acquire);
    let back = back_of(now);
    let count = most.min(back);
    if now & BEGUN != 0 || count == 0 {
        return Early::Over;
    }
    let first = back - count;
    let chunk = Chunk { first, count };
    if !fits(chunk) {
        return Early::Later;
    }
    let new = now - (u64::from(count) << 32);
    match claims.compare_exchange(now, new, AcqRel, Acquire) {
        Ok(_) => Early::Chunk(chunk),
        Err(_) => Early::Over,
    }
}

/// Claims the next chunk of a transfer of `units`; `size` decides how much of what is free.
pub(super) fn take(
    claims: &impl Word<u64>,
    side: Side,
    units: u32,
    size: impl Fn(u32) -> u32,
) -> Taken {
    let mut now = claims.load(Acquire);
    loop {
        let (front, back) = (now as u32, back_of(now));
        if now & STOPPED != 0 {
            return Taken::Nothing;
        }
        if front > back || back > units {
            return Taken::Insane;
        }
        let free = back - front;
        if free == 0 {
            return Taken::Nothing;
        }
        let count = size(free).clamp(1, free);
        let (new, first) = match side {
            Side::Claimer => (now + u64::from(count), front),
            Side::Maker => (now - (u64::from(count) << 32), back - count),
        };
        match claims.compare_exchange(now, new, AcqRel, Acquire) {
            Ok(_) => return Taken::Chunk(Chunk { first, count }),
            Err(other) => now = other,
        }
    }
}

/// Counts units as no longer touched.
pub(super) fn finish(finished: &impl Word<u64>, side: Side, count: u32) {
    let count = match side {
        Side::Claimer => u64::from(count),
        Side::Maker => u64::from(count) << 32,
    };
    finished.fetch_add(count, AcqRel);
}

/// Freezes the claims.
pub(super) fn stop(claims: &impl Word<u64>) {
    claims.fetch_or(STOPPED, AcqRel);
}

/// Whether the claims are frozen.
pub(super) fn is_stopped(claims: &impl Word<u64>) -> bool {
    claims.load(Acquire) & STOPPED != 0
}

/// How a transfer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Something is left to claim or to finish.
    Running,
    /// All bytes are there.
    Complete,
    /// Stopped; the other side may still be copying.
    Stopping,
    /// Stopped, and the other side touches nothing any more.
    Stopped,
}

/// How a transfer of `units` stands, seen from `side`, which is not copying at the moment.
pub(super) fn standing(
    claims: &impl Word<u64>,
    finished: &impl Word<u64>,
    side: Side,
    units: u32,
) -> Standing {
    // In this order: a mark that was set before something was finished is seen with it.
    let done = finished.load(Acquire);
    let now = claims.load(Acquire);
    let (by_claimer, by_maker) = (done as u32, (done >> 32) as u32);
    let (front, back) = ((now & !STOPPED) as u32, back_of(now));
    if now & STOPPED == 0 {
        return if u64::from(by_claimer) + u64::from(by_maker) == u64::from(units) {
            Standing::Complete
        } else {
            Standing::Running
        };
    }
    let other_is_done = match side {
        Side::Claimer => by_maker == units.wrapping_sub(back),
        Side::Maker => by_claimer == front,
    };
    if other_is_done {
        Standing::Stopped
    } else {
        Standing::Stopping
    }
}

/// Changes an open offer to `state`. Returns whether it was open.
pub(super) fn settle(word: &impl Word<u64>, generation: u32, state: u64) -> bool {
    let (open, settled) = (mark(generation, OPEN), mark(generation, state));
    word.compare_exchange(open, settled, AcqRel, Acquire)
        .is_ok()
}

/// Publishes a state word.
pub(super) fn publish(word: &impl Word<u64>, generation: u32, state: u64) {
    word.store(mark(generation, state), Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn both_sides_get_a_half() {
        // 64 KiB: two chunks of 32; 128 KiB: two of 64.
        assert_eq!((chunk(16, 16, 8, 128), chunk(8, 16, 8, 128)), (8, 8));
        assert_eq!((chunk(32, 32, 8, 128), chunk(16, 32, 8, 128)), (16, 16));
        // Odd sizes leave no crumbs.
        assert_eq!((chunk(17, 17, 8, 128), chunk(8, 17, 8, 128)), (9, 8));
        // Short ones are not worth sharing.
        assert_eq!((chunk(7, 7, 8, 128), chunk(1, 1, 8, 128)), (7, 1));
        // Long ones go in pieces, the last of which are halved.
        assert_eq!(
            (chunk(4096, 4096, 8, 128), chunk(200, 4096, 8, 128)),
            (128, 100)
        );
    }

    #[test]
    fn claims_meet_in_the_middle() {
        let (claims, finished) = (AtomicU64::new(0), AtomicU64::new(0));
        prepare(&claims, &finished, 10);
        let four = |_| 4;
        let take = |side| take(&claims, side, 10, four);
        assert_eq!(
            take(Side::Claimer),
            Taken::Chunk(Chunk { first: 0, count: 4 })
        );
        assert_eq!(
            take(Side::Maker),
            Taken::Chunk(Chunk { first: 6, count: 4 })
        );
        assert_eq!(
            take(Side::Maker),
            Taken::Chunk(Chunk { first: 4, count: 2 })
        );
        assert_eq!(take(Side::Claimer), Taken::Nothing);
        let stands = |side| standing(&claims, &finished, side, 10);
        finish(&finished, Side::Maker, 6);
        assert_eq!(stands(Side::Maker), Standing::Running);
        finish(&finished, Side::Claimer, 4);
        assert_eq!(stands(Side::Claimer), Standing::Complete);
    }

    #[test]
    fn a_stopped_transfer_waits_for_the_other_side() {
        let (claims, finished) = (AtomicU64::new(0), AtomicU64::new(0));
        prepare(&claims, &finished, 8);
        let all = |free| free / 2;
        assert!(matches!(
            take(&claims, Side::Claimer, 8, all),
            Taken::Chunk(_)
        ));
        stop(&claims);
        assert_eq!(take(&claims, Side::Maker, 8, all), Taken::Nothing);
        let stands = |side| standing(&claims, &finished, side, 8);
        assert_eq!(stands(Side::Maker), Standing::Stopping);
        assert_eq!(stands(Side::Claimer), Standing::Stopped);
        finish(&finished, Side::Claimer, 4);
        assert_eq!(stands(Side::Maker), Standing::Stopped);
    }

    #[test]
    fn impossible_claims_are_noticed() {
        for word in [5 | 4 << 32, 9 << 32, 1 | u64::from(u32::MAX) << 32] {
            let claims = AtomicU64::new(word);
            assert_eq!(take(&claims, Side::Claimer, 8, |n| n), Taken::Insane);
        }
    }
}
