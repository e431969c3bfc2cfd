//! What members combine of a piece, a part each.

use std::ops::Range;

/// The parts of a piece, one for each member.
#[derive(Debug)]
pub(super) struct Parts {
    start: usize,
    lengths: Vec<usize>,
}

impl Parts {
    /// Returns those of `lengths`, the first of which lies at `start` in the data.
    pub(super) const fn new(start: usize, lengths: Vec<usize>) -> Self {
        Self { start, lengths }
    }

    /// Returns where the part of a member lies in the data.
    pub(super) fn range(&self, member: usize) -> Range<usize> {
        let start = self.start + self.lengths[..member].iter().sum::<usize>();
        start..start + self.lengths[member]
    }

    /// Returns how much a member shows: all but its own part.
    pub(super) fn shown(&self, by: usize) -> usize {
        self.lengths.iter().sum::<usize>() - self.lengths[by]
    }

    /// Returns where the part of `of` lies in what another member shows.
    pub(super) fn range_in(&self, by: usize, of: usize) -> Range<usize> {
        let before = self.lengths[..of].iter().sum::<usize>();
        let start = if by < of {
            before - self.lengths[by]
        } else {
            before
        };
        start..start + self.lengths[of]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_shows_all_but_its_own_part() {
        let parts = Parts::new(100, vec![3, 2, 2]);
        assert_eq!(parts.range(1), 103..105);
        assert_eq!(parts.shown(1), 5);
        assert_eq!(parts.range_in(1, 0), 0..3);
        assert_eq!(parts.range_in(1, 2), 3..5);
        assert_eq!(parts.range_in(2, 1), 3..5);
    }
}
