//! Pieces of memory that are used by turns.

/// Pieces that begin on cache lines of their own.
const LINE: usize = 64;

/// Where the pieces of one memory lie: one after the other, used in an order that no prefetcher follows, each once before one
/// comes again.
#[derive(Debug, Clone)]
pub(crate) struct Rotation {
    /// The length of the memory.
    len: usize,
    stride: usize,
    count: usize,
    step: usize,
    at: usize,
}

impl Rotation {
    /// Over memory of `len` bytes.
    #[inline]
    pub(crate) const fn new(len: usize) -> Self {
        Self {
            len,
            stride: 0,
            count: 1,
            step: 0,
            at: 0,
        }
    }

    /// Cuts the memory into pieces of `size` bytes: one, where it is no longer than that.
    #[inline]
    pub(crate) fn cut(&mut self, size: usize) {
        self.stride = size.next_multiple_of(LINE);
        let pieces = match self.stride {
            0 => 1,
            stride => (self.len.saturating_sub(size)) / stride + 1,
        };
        // A golden section of them, with which steps go through all.
        let golden = (pieces as f64 * 0.618) as usize;
        let coprime = (golden.max(1)..).find(|step| divisor(*step, pieces) == 1);
        (self.count, self.step, self.at) = (pieces, coprime.unwrap_or(1), 0);
    }

    /// Returns where this turn's piece begins.
    #[inline]
    pub(crate) const fn start(&self) -> usize {
        self.at * self.stride
    }

    /// Goes on to the next piece.
    #[inline]
    pub(crate) const fn turn(&mut self) {
        self.at = (self.at + self.step) % self.count;
    }
}

/// The greatest common divisor.
#[inline]
const fn divisor(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        b => divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_pieces_come_before_one_comes_again() {
        for (len, size) in [
            (4096, 8),
            (4096, 100),
            (10_000, 64),
            (10_000, 3000),
            (128, 64),
        ] {
            let mut rotation = Rotation::new(len);
            rotation.cut(size);
            let mut starts = BTreeSet::new();
            while starts.insert(rotation.start()) {
                assert!(rotation.start() + size <= len, "{len}, {size}");
                rotation.turn();
            }
            let stride = size.next_multiple_of(LINE);
            assert_eq!(starts.len(), (len - size) / stride + 1, "{len}, {size}");
            assert_eq!(rotation.start(), 0);
        }
    }

    #[test]
    fn memory_for_one_piece_has_one() {
        for size in [0, 8, 100] {
            let mut rotation = Rotation::new(size);
            rotation.cut(size);
            rotation.turn();
            assert_eq!(rotation.start(), 0);
        }
    }
}
