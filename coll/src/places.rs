//! The shape of the one tree in which reductions combine.

/// The places of a tree of a power of two members: where there are more, the first go in pairs of neighbours, and a pair has one place,
/// so that operands stay in the order of members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// How many places there are.
    pub(crate) count: usize,
    /// How many of them, the first, are of pairs.
    pub(crate) pairs: usize,
}

impl Places {
    pub(crate) const fn of(size: usize) -> Self {
        let count = 1 << size.ilog2();
        Self {
            count,
            pairs: size - count,
        }
    }

    /// Whether a member is one of a pair.
    pub(crate) const fn is_paired(self, member: usize) -> bool {
        member < 2 * self.pairs
    }

    /// Returns the place of a member, or of its pair.
    pub(crate) const fn of_member(self, member: usize) -> usize {
        match self.is_paired(member) {
            true => member / 2,
            false => member - self.pairs,
        }
    }

    /// Returns the member at a place: of a pair the second, which goes on for both.
    pub(crate) const fn member(self, place: usize) -> usize {
        match place < self.pairs {
            true => 2 * place + 1,
            false => place + self.pairs,
        }
    }
}
