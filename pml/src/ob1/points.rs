//! Places in exposing a receive and filling it at which tests let a side die, or be late.

/// A place on the way of a message into memory that its receiver exposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(super) enum Point {
    /// The receiver has opened its memory, of which the sender has no word.
    Opened,
    /// The word is out.
    Exposed,
    /// The sender has claimed the memory, and copied nothing. Its envelope is out where it heard of the memory later.
    Claimed,
    /// The memory is filled, and the envelope is not out.
    Filled,
    /// The envelope is out.
    Noted,
    /// A side has made progress once. Tests come here by themselves.
    Turn,
}

#[cfg(not(all(test, not(loom))))]
#[inline(always)]
pub(super) const fn reach(_: Point) {}

#[cfg(all(test, not(loom)))]
pub(super) use super::tests::deaths::reach;
