//! Operations on words.

/// What is done to a word of 8 bytes, in the byte order of the machine, in one step (fi_atomic(3)). The result is what the word
/// was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Atomic {
    /// Adds, modulo 2^64.
    Sum(u64),
    /// Writes.
    Replace(u64),
    /// Keeps the bits that are set here.
    And(u64),
    /// Sets the bits that are set here.
    Or(u64),
    /// Turns the bits that are set here.
    Xor(u64),
    /// Writes where this is less, unsigned.
    Min(u64),
    /// Writes where this is greater, unsigned.
    Max(u64),
    /// Writes `swap` where the word is `compare`.
    CompareSwap {
        /// What the word has to be.
        compare: u64,
        /// What it is then.
        swap: u64,
    },
}
