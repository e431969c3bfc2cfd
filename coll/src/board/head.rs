//! What a member says of its call beside each thing that it shows: others compare it with their own.
//!
//! ```text
//!     bit  63      members read each other's memory
//!     bits 56..63  the operation: 0 for a barrier, else its number and 1
//!          52..56  the root and 1, or 0
//!          48..52  what a reduction combines by and 1, or 0
//!          40..48  the basic type of its values and 1, or 0
//!           0..40  the length
//! ```

use tagwire_base::Rank;
use tagwire_layout::{Basic, Operation};

use crate::algorithms::Collective;
use crate::error::{Error, Result};
use crate::members::Members;
use crate::reduction::Reduction;

/// What a member says of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head(u64);

impl Head {
    /// That of a barrier.
    pub(crate) const BARRIER: Self = Self(0);

    const SINGLE_COPY: u64 = 1 << 63;
    const WHAT_AT: u32 = 56;
    const ROOT_AT: u32 = 52;
    const BY_AT: u32 = 48;
    const BASIC_AT: u32 = 40;
    const LENGTH: u64 = (1 << Self::BASIC_AT) - 1;

    /// Returns that of an operation on so many bytes.
    #[inline]
    pub(crate) const fn of(what: Collective, bytes: usize) -> Self {
        Self((what as u64 + 1) << Self::WHAT_AT | (bytes as u64 & Self::LENGTH))
    }

    /// Returns the same with a root: one of the members of a board, who are few.
    #[inline]
    pub(crate) const fn at(self, root: usize) -> Self {
        Self(self.0 | ((root as u64 + 1) & 0xf) << Self::ROOT_AT)
    }

    /// Returns the same with what combines the values.
    #[inline]
    pub(crate) const fn by(self, reduction: &Reduction<'_>) -> Self {
        let basic = match reduction.layout.basic() {
            Some(basic) => basic as u64 + 1,
            None => 0,
        };
        let by = reduction.operation.number() as u64 + 1;
        Self(self.0 | by << Self::BY_AT | basic << Self::BASIC_AT)
    }

    /// Returns the same of members that read each other's memory.
    pub(super) const fn of_single_copy(self) -> Self {
        Self(self.0 | Self::SINGLE_COPY)
    }

    /// Returns the same of members that copy through the board.
    pub(super) const fn of_slots(self) -> Self {
        Self(self.0 & !Self::SINGLE_COPY)
    }

    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the length.
    pub(super) const fn bytes(self) -> usize {
        (self.0 & Self::LENGTH) as usize
    }

    /// Checks that one of `members` says the same of its call.
    #[inline]
    pub(super) fn check(self, theirs: u64, members: &Members, member: usize) -> Result<()> {
        match theirs == self.to_bits() {
            true => Ok(()),
            false => Err(self.differs(theirs, member, members.rank(member))),
        }
    }

    /// Returns the error of a call of which a member says something else.
    #[cold]
    fn differs(self, theirs: u64, member: usize, source: Option<Rank>) -> Error {
        let theirs = Self::from_bits(theirs);
        let has_other_length = self.is_like(theirs) && self.bytes() != theirs.bytes();
        let Some(source_rank) = source.filter(|_| has_other_length) else {
            return Error::Different {
                own: self.describe(),
                member,
                theirs: theirs.describe(),
            };
        };
        Error::Length {
            source_rank,
            sent: theirs.bytes(),
            expected: self.bytes(),
        }
    }

    /// Whether both are of the same call but for its length.
    pub(super) const fn is_like(self, other: Self) -> bool {
        let but_length = !(Self::LENGTH | Self::SINGLE_COPY);
        self.0 & but_length == other.0 & but_length
    }

    /// Returns what it says, for an error.
    pub(super) fn describe(self) -> String {
        let number = |at: u32, most: u64| (self.0 >> at & most).checked_sub(1);
        let what = number(Self::WHAT_AT, 0x7f).map_or("barrier", |what| {
            let mut all = (0..).zip(Collective::ALL);
            let found = all.find(|(one, _)| *one == what);
            found.map_or("something unknown", |(_, what)| what.name())
        });
        let by = number(Self::BY_AT, 0xf).map(|by| {
            let by = Operation::PREDEFINED
                .iter()
                .find(|it| it.number() as u64 == by);
            by.map_or("an operation of the user's", Operation::name)
        });
        let basic = number(Self::BASIC_AT, 0xff).and_then(|basic| Basic::ALL.get(basic as usize));
        let mut text = what.to_owned();
        if let Some(by) = by {
            text += &format!(" by {by}");
        }
        if let Some(basic) = basic {
            text += &format!(" of {}", basic.name());
        }
        if let Some(root) = number(Self::ROOT_AT, 0xf) {
            text += &format!(" with root {root}");
        }
        if self.0 & Self::SINGLE_COPY != 0 {
            text += " by a single copy";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use tagwire_layout::Layout;

    use super::*;

    #[test]
    fn calls_that_differ_have_heads_that_differ() {
        let sum = |basic| {
            let layout = Layout::of(basic);
            let reduction = Reduction {
                operation: &Operation::Sum,
                layout: &layout,
            };
            Head::of(Collective::Reduce, 80).at(2).by(&reduction)
        };
        let text = sum(Basic::F64).describe();
        assert!(
            text.starts_with("reduce by ") && text.ends_with(" with root 2"),
            "{text}"
        );
        assert!(!sum(Basic::F64).is_like(sum(Basic::I64)));
        let broadcast = |bytes, root| Head::of(Collective::Broadcast, bytes).at(root);
        assert!(broadcast(8, 1).is_like(broadcast(9, 1)));
        assert!(!broadcast(8, 1).is_like(broadcast(8, 0)));
        assert_eq!(broadcast(9, 7).bytes(), 9);
        assert_eq!(broadcast(9, 7).describe(), "broadcast with root 7");
        assert_eq!(Head::BARRIER.describe(), "barrier");
        assert_eq!(Head::from_bits(sum(Basic::U8).to_bits()), sum(Basic::U8));
    }
}
