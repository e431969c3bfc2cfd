//! The root of an operation.

use super::blocks::Parts;
use crate::algorithms::Collective;
use crate::call::{Call, check_root, sides_of};
use crate::error::{Error, Result};
use crate::levels::Among;
use crate::team::Team;

/// Whose data the others get, or who gets that of the others. In a group of two sides that is a member of one, and the others are
/// those of the other side (MPI-5.0, section 6.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A member of a group of one side, by its number.
    Member(usize),
    /// This member of a group of two sides (`MPI_ROOT`).
    Here,
    /// A member of the other side, by its number there.
    There(usize),
    /// Another member of this side (`MPI_PROC_NULL`): this one does nothing but to count the operation.
    Beside,
}

impl From<usize> for Root {
    fn from(member: usize) -> Self {
        Self::Member(member)
    }
}

impl Root {
    /// Returns whether it is this member.
    #[must_use]
    pub fn is_me(self, team: &Team) -> bool {
        match self {
            Self::Member(root) => root == team.me(),
            Self::Here => true,
            Self::There(_) | Self::Beside => false,
        }
    }

    #[inline]
    pub(super) fn check(self, team: &Team) -> Result<()> {
        match (self, team.sides()) {
            (Self::Member(root), None) if root < team.size() => Ok(()),
            _ => self.check_at_length(team),
        }
    }

    #[cold]
    fn check_at_length(self, team: &Team) -> Result<()> {
        match (self, team.sides()) {
            (Self::Member(root), None) => check_root(team, root),
            (Self::Member(_), Some(_)) => Err(Error::Argument(
                "the root is given as in a group of one side".to_owned(),
            )),
            (Self::There(root), Some(sides)) if root >= sides.remote().len() => {
                Err(Error::Argument(format!(
                    "there is no rank {root} in a remote group of {}",
                    sides.remote().len()
                )))
            }
            _ => sides_of(team).map(drop),
        }
    }

    /// Checks the root, and there a buffer of `total` bytes for all. One of its blocks is this member's `own`, which has so many bytes
    /// unless it lies there.
    pub(super) fn check_blocks(
        self,
        team: &Team,
        parts: &Parts<'_>,
        total: usize,
        own: Option<usize>,
    ) -> Result<()> {
        self.check(team)?;
        match (self, own) {
            (Self::Here, _) => parts.check(team, total),
            (Self::Member(root), _) if root == team.me() => parts.check_with(team, total, own),
            (Self::Member(_) | Self::There(_), None) => Err(Error::Argument(
                "only the root of a gather or a scatter has its own data in the buffer of all"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns its number in a group of one side.
    #[inline]
    pub(super) const fn member(self) -> Option<usize> {
        match self {
            Self::Member(root) => Some(root),
            _ => None,
        }
    }

    /// Returns what all members say of an operation, which is `described` for a group of one side and its root.
    pub(super) fn describe(
        self,
        what: Collective,
        described: impl FnOnce(usize) -> String,
    ) -> String {
        match self {
            Self::Member(root) => described(root),
            _ => between(what),
        }
    }

    /// Returns those who take part in a group of two sides, by their numbers: the root is the first one.
    pub(super) fn members(self, call: Call<'_>) -> Vec<usize> {
        match (self, call.sides()) {
            (Self::Here, Some(sides)) => sides.with_me(),
            (Self::There(root), Some(sides)) => sides.with_remote(root),
            _ => Vec::new(),
        }
    }

    /// Returns the call among those who take part, and the place of the root there; `None` where this member does not.
    pub(super) fn among<'c>(
        self,
        call: Call<'c>,
        members: &'c [usize],
    ) -> Option<(Call<'c>, usize)> {
        let me = match (self, call.sides()) {
            (Self::Member(root), _) => return Some((call, root)),
            (Self::There(_), Some(sides)) => 1 + sides.me(),
            (Self::Here, _) => 0,
            _ => return None,
        };
        let among = Among {
            members,
            me,
            is_host: false,
        };
        Some((call.among(among), 0))
    }

    /// Returns the blocks of all `members` who take part, of which those of a buffer of `total` bytes are `parts`: in a group of two
    /// sides the root, which is the first one, has none.
    pub(super) fn parts<'p>(self, parts: &'p Parts<'_>, total: usize, members: usize) -> Parts<'p> {
        match self {
            Self::Member(_) => parts.borrowed(),
            _ => {
                let lengths = parts.lengths(total, members - 1);
                let all = std::iter::once(0).chain(lengths.iter().copied());
                Parts::Of(all.collect())
            }
        }
    }
}

/// Returns what all members of a group of two sides say of an operation: of the data each knows its own part alone.
pub(super) fn between(what: Collective) -> String {
    format!("a {} between groups", what.name())
}
