//! Blocks, and the words that say whose they are.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::word::Word;

/// The bytes lie in the sender's buffer, or in the control block, and are nobody's.
const READY: u64 = 1;
/// The sender copies.
const SENDER: u64 = 2;
/// The receiver copies.
const RECEIVER: u64 = 3;
/// The bytes lie in the receiver's buffer.
const DONE: u64 = 4;

/// Which side takes a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sender,
    Receiver,
}

impl Side {
    const fn state(self) -> u64 {
        match self {
            Self::Sender => SENDER,
            Self::Receiver => RECEIVER,
        }
    }
}

const fn mark(epoch: u64, state: u64) -> u64 {
    epoch << 3 | state
}

/// Shows a block. What was written before is visible to whoever finds it ready.
#[inline]
pub(super) fn show(word: &impl Word<u64>, epoch: u64) {
    word.store(mark(epoch, READY), Release);
}

/// Whether a block was shown in `epoch`, or a later one, whatever became of it.
#[inline]
pub(super) fn is_shown(word: &impl Word<u64>, epoch: u64) -> bool {
    word.load(Acquire) >= mark(epoch, READY)
}

/// Whether a block is there to be taken.
#[inline]
pub(super) fn is_free(word: &impl Word<u64>, epoch: u64) -> bool {
    word.load(Relaxed) == mark(epoch, READY)
}

/// Takes a block for `side`; returns whether it is this side's to copy. Whoever took it then looks
/// whether the other side has the epoch open still, behind a full fence.
#[inline]
pub(super) fn take(word: &impl Word<u64>, epoch: u64, side: Side) -> bool {
    let (free, taken) = (mark(epoch, READY), mark(epoch, side.state()));
    word.compare_exchange(free, taken, AcqRel, Relaxed).is_ok()
}

/// The bytes of a block that was taken lie where they belong.
#[inline]
pub(super) fn finish(word: &impl Word<u64>, epoch: u64) {
    word.store(mark(epoch, DONE), Release);
}

/// Whether the bytes of `epoch` lie where they belong. A sender that is in a later epoch has seen that.
#[inline]
pub(super) fn is_done(word: &impl Word<u64>, epoch: u64) -> bool {
    word.load(Acquire) >= mark(epoch, DONE)
}

/// Whether `side` is copying.
pub(super) fn is_taken(word: &impl Word<u64>, side: Side) -> bool {
    word.load(Acquire) & 7 == side.state()
}

/// How the transport partitions of a message are cut.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Where each block ends, in bytes.
    ends: Box<[usize]>,
    /// The first block of each partition, and behind the last.
    first: Box<[u32]>,
}

impl Blocks {
    /// Cuts the partitions that end at `ends` into blocks of about `size` bytes. A partition of no bytes has
    /// a block all the same: it has to arrive.
    pub(super) fn new(ends: &[u64], size: u64) -> Self {
        let (mut cuts, mut first, mut start) = (Vec::new(), vec![0], 0);
        for &end in ends {
            let len = end.saturating_sub(start);
            let pieces = len.div_ceil(size.max(1)).max(1);
            let piece = len.div_ceil(pieces).next_multiple_of(64);
            cuts.extend((1..=pieces).map(|n| (start + n * piece).min(end) as usize));
            first.push(cuts.len() as u32);
            start = end;
        }
        Self {
            ends: cuts.into(),
            first: first.into(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the whole.
    pub(super) fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The blocks of `partitions`; none where there are no such partitions.
    #[inline]
    pub(super) fn of(&self, partitions: Range<u32>) -> Range<usize> {
        let at = |partition: u32| self.first.get(partition as usize).copied();
        match (at(partitions.start), at(partitions.end)) {
            (Some(start), Some(end)) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// Where the bytes of `blocks` lie.
    #[inline]
    pub(super) fn range(&self, blocks: Range<usize>) -> Range<usize> {
        let at = |block: usize| block.checked_sub(1).map_or(0, |before| self.ends[before]);
        at(blocks.start)..at(blocks.end)
    }
}

/// A place in the blocks that only moves within an epoch: whoever looks into another one starts over.
#[derive(Debug)]
pub(super) struct Hint(AtomicU64);

impl Hint {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The place in `epoch`, or `fresh` where it was not set in that.
    #[inline]
    pub(super) fn get(&self, epoch: u64, fresh: usize) -> usize {
        let word = self.0.load(Relaxed);
        if word >> Self::BITS == epoch & (u64::MAX >> Self::BITS) {
            (word & (Self::LIMIT - 1)) as usize
        } else {
            fresh
        }
    }

    #[inline]
    pub(super) fn set(&self, epoch: u64, place: usize) {
        let place = (place as u64).min(Self::LIMIT - 1);
        self.0.store(epoch << Self::BITS | place, Relaxed);
    }

    const BITS: u32 = 20;
    /// More than there are blocks.
    const LIMIT: u64 = 1 << Self::BITS;
}

/// How many of `free` neighbouring blocks, `bytes` long, one side takes at once: half, so that the other
/// has as much to do; all where half is not worth a call; no more than the other side would wait for.
pub(super) fn share(free: usize, bytes: usize) -> usize {
    let each = (bytes / free.max(1)).max(1);
    let least = (WORTH / each).max(1);
    let most = (PATIENCE / each).max(1);
    free.div_ceil(2).max(least).min(most).min(free)
}

/// Bytes that are worth a system call.
const WORTH: usize = 32 * 1024;

/// Bytes that are copied in one call at most.
const PATIENCE: usize = 512 * 1024;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_their_partitions() {
        for (ends, size) in [
            (&[4096, 8192, 8192, 100_000][..], 4096),
            (&[0], 64),
            (&[1, 2, 3], 1 << 20),
            (&[1 << 20], 65_536),
            (&[130], 64),
        ] {
            let blocks = Blocks::new(ends, size);
            assert_eq!(blocks.bytes() as u64, *ends.last().unwrap_or(&0));
            let mut start = 0;
            for (place, end) in ends.iter().enumerate() {
                let place = place as u32;
                let of = blocks.of(place..place + 1);
                assert!(!of.is_empty());
                assert_eq!(blocks.range(of), start..*end as usize, "{ends:?} {size}");
                start = *end as usize;
            }
            assert_eq!(blocks.of(0..ends.len() as u32 + 1), 0..0);
        }
    }

    #[test]
    fn shares_are_halves_within_reason() {
        assert_eq!(share(32, 1 << 20), 16);
        assert_eq!(share(1, 1 << 20), 1);
        assert_eq!(share(8, 64 << 10), 4);
        assert_eq!(share(8, 8 << 10), 8);
        assert_eq!(share(64, 64 << 20), 1);
        assert_eq!(share(3, 0), 3);
    }
}
