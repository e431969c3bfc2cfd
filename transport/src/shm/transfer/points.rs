//! Places in a transfer at which tests let a side die, or be late.

/// A place: in filling memory that a peer has exposed, or in copying a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(in crate::shm) enum Point {
    /// The memory is open, and may still be revoked.
    Seen,
    /// It cannot be revoked any more, and is not claimed.
    Taken,
    /// It is claimed. Whoever claims has not looked whether it was withdrawn.
    Claimed,
    /// A chunk is claimed, of which nothing is copied.
    Begun,
    /// The chunk is copied, and not counted.
    Copied,
    /// It is counted.
    Finished,
}

#[cfg(not(all(test, not(loom))))]
#[inline(always)]
pub(in crate::shm) const fn reach(_: Point) {}

#[cfg(all(test, not(loom)))]
pub(in crate::shm) use crate::shm::tests::deaths::reach;
