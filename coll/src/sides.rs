//! The two groups that a group is made of.

use std::ops::Range;
use std::sync::Arc;

use crate::levels::Among;

/// The two groups of an intercommunicator (MPI-5.0, section 7.6), as ranges of the numbers of a group that has the members of both:
///
/// ```text
///     members     0 1 2 | 3 4
///                 first   second side
/// ```
///
/// Which is the first one is the same for all members. A member's own side is the local group, the other one the remote group.
#[derive(Debug, Clone)]
pub struct Sides {
    /// The numbers of all members.
    numbers: Arc<[usize]>,
    first: usize,
    me: usize,
}

impl Sides {
    /// Returns those of a group of `size`, where the first side has `first` members, and this one is `me`.
    pub(crate) fn new(first: usize, size: usize, me: usize) -> Self {
        debug_assert!(first > 0 && first < size && me < size);
        Self {
            numbers: (0..size).collect(),
            first,
            me,
        }
    }

    /// Returns how many members the first side has.
    pub(crate) const fn first(&self) -> usize {
        self.first
    }

    /// Returns the numbers of this member's side.
    #[must_use]
    pub fn local(&self) -> Range<usize> {
        match self.me < self.first {
            true => 0..self.first,
            false => self.first..self.numbers.len(),
        }
    }

    /// Returns the numbers of the other side.
    #[must_use]
    pub fn remote(&self) -> Range<usize> {
        match self.me < self.first {
            true => self.first..self.numbers.len(),
            false => 0..self.first,
        }
    }

    /// Returns this member's place on its side.
    #[must_use]
    pub fn me(&self) -> usize {
        self.me - self.local().start
    }

    /// Returns this member's side.
    pub(crate) fn beside(&self) -> Among<'_> {
        Among {
            members: &self.numbers[self.local()],
            me: self.me(),
            is_host: false,
        }
    }

    /// Returns the members that take part in what a member of the other side is the root of: that one first, then this side.
    pub(crate) fn with_remote(&self, root: usize) -> Vec<usize> {
        let root = self.remote().start + root;
        std::iter::once(root).chain(self.local()).collect()
    }

    /// Returns the members that take part in what this one is the root of: itself first, then the other side.
    pub(crate) fn with_me(&self) -> Vec<usize> {
        std::iter::once(self.me).chain(self.remote()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_the_others_remote_one() {
        let (one, other) = (Sides::new(3, 5, 2), Sides::new(3, 5, 4));
        assert_eq!((one.local(), one.remote(), one.me()), (0..3, 3..5, 2));
        assert_eq!((other.local(), other.remote(), other.me()), (3..5, 0..3, 1));
        assert_eq!(
            (other.beside().members, other.beside().me),
            (&[3, 4][..], 1)
        );
        assert_eq!(one.with_remote(1), [4, 0, 1, 2]);
        assert_eq!(other.with_me(), [4, 0, 1, 2]);
    }
}
