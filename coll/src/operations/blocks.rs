//! The blocks of buffers: one for each member, for each of the other side in a group of two, or for each neighbour.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut, Range};

use crate::algorithms::{Algorithm, Collective};
use crate::call::{Call, check_length};
use crate::error::{Error, Result};
use crate::scattered::{parts, parts_mut};
use crate::team::Team;

/// The lengths of the blocks of one buffer, which follow each other there.
#[derive(Debug, Clone)]
pub enum Parts<'a> {
    /// All have the same length.
    Equal,
    /// These are their lengths.
    Of(Cow<'a, [usize]>),
}

impl Parts<'_> {
    /// Checks that a buffer of `total` bytes has a block for each of those that a member exchanges data with.
    pub(super) fn check(&self, team: &Team, total: usize) -> Result<()> {
        match self {
            Self::Of(lengths) => check_lengths(team, lengths, total),
            Self::Equal if total.is_multiple_of(peers(team)) => Ok(()),
            Self::Equal => Err(Error::Argument(format!(
                "{total} bytes are not {} equal blocks",
                peers(team)
            ))),
        }
    }

    /// The same, where one block is this member's `own`, which has so many bytes unless it lies there.
    pub(super) fn check_with(&self, team: &Team, total: usize, own: Option<usize>) -> Result<()> {
        match (self, own) {
            (Self::Equal, Some(own)) => check_length("the buffer of all", total, own * team.size()),
            _ => self.check(team, total),
        }?;
        match (self, own) {
            (Self::Of(lengths), Some(own)) => check_length("the own part", own, lengths[team.me()]),
            _ => Ok(()),
        }
    }

    /// Returns the lengths of as many blocks.
    pub(super) fn lengths(&self, total: usize, blocks: usize) -> Cow<'_, [usize]> {
        match self {
            Self::Equal => Cow::Owned(vec![total / blocks.max(1); blocks]),
            Self::Of(lengths) => Cow::Borrowed(lengths),
        }
    }

    /// Returns the same, borrowed.
    pub(super) fn borrowed(&self) -> Parts<'_> {
        match self {
            Self::Equal => Parts::Equal,
            Self::Of(lengths) => Parts::Of(Cow::Borrowed(lengths)),
        }
    }

    /// Returns those that the members of a group of one side compare: each knows its own alone.
    pub(super) fn compared(&self, team: &Team) -> Option<&[usize]> {
        match self {
            Self::Of(lengths) if team.sides().is_none() => Some(lengths),
            _ => None,
        }
    }

    /// Returns the algorithm by a board that the table gives to the operation on equal blocks. Blocks of varying lengths go by messages.
    #[inline]
    pub(super) fn by_board(
        &self,
        team: &Team,
        what: Collective,
        bytes: usize,
    ) -> Option<&'static Algorithm> {
        match self {
            Self::Equal => team.by_board(what, bytes, true),
            Self::Of(_) => None,
        }
    }

    /// Returns where the block of a member lies in the buffer of `total` bytes of `size` members.
    pub(super) fn range(&self, total: usize, size: usize, member: usize) -> Range<usize> {
        match self {
            Self::Equal => {
                let block = total / size;
                member * block..(member + 1) * block
            }
            Self::Of(lengths) => Call::range(lengths, member),
        }
    }
}

/// Blocks that are read (`D` is `&[u8]`) or written (`&mut [u8]`).
#[derive(Debug, Clone)]
pub enum Blocks<'a, D> {
    /// They follow each other in one buffer.
    Together(D, Parts<'a>),
    /// They lie anywhere. Each may have a type of its own, of which nothing is known here (MPI-5.0, section 6.8,
    /// `MPI_Alltoallw`).
    Apart(Vec<D>),
}

impl<'a, D: Deref<Target = [u8]>> Blocks<'a, D> {
    /// Checks that there is a block for each of those that a member exchanges data with.
    pub(super) fn check(&self, team: &Team, members: &str) -> Result<()> {
        match self {
            Self::Together(data, parts) => parts.check(team, data.len()),
            Self::Apart(blocks) => check_blocks(blocks.len(), peers(team), members),
        }
    }

    /// Returns how many bytes there are, if the blocks are equal ones.
    pub(super) fn equal(&self) -> Option<usize> {
        match self {
            Self::Together(data, Parts::Equal) => Some(data.len()),
            _ => None,
        }
    }

    /// Returns the lengths of as many blocks.
    pub(super) fn lengths(&self, blocks: usize) -> Cow<'_, [usize]> {
        match self {
            Self::Together(data, parts) => parts.lengths(data.len(), blocks),
            Self::Apart(list) => list.iter().map(|block| block.len()).collect(),
        }
    }

    /// Returns as many blocks.
    pub(super) fn cut(&self, blocks: usize) -> Vec<&[u8]> {
        match self {
            Self::Together(data, _) => {
                let lengths = self.lengths(blocks);
                parts(data, lengths.iter().copied()).collect()
            }
            Self::Apart(list) => list.iter().map(|block| &**block).collect(),
        }
    }

    /// Returns the same blocks of what `data` makes of each buffer.
    pub(super) fn each<'b, T>(&'b self, data: impl Fn(&'b D) -> T) -> Blocks<'a, T> {
        match self {
            Self::Together(buffer, parts) => Blocks::Together(data(buffer), parts.clone()),
            Self::Apart(list) => Blocks::Apart(list.iter().map(data).collect()),
        }
    }
}

impl<D: DerefMut<Target = [u8]>> Blocks<'_, D> {
    /// Returns as many blocks, to be changed.
    pub(super) fn cut_mut(&mut self, blocks: usize) -> Vec<&mut [u8]> {
        match self {
            Self::Together(data, lengths) => {
                let lengths = lengths.lengths(data.len(), blocks);
                parts_mut(data, lengths.iter().copied()).collect()
            }
            Self::Apart(list) => list.iter_mut().map(|block| &mut **block).collect(),
        }
    }
}

/// Checks that there are as many blocks as members that have one.
pub(super) fn check_blocks(given: usize, expected: usize, members: &str) -> Result<()> {
    match given == expected {
        true => Ok(()),
        false => Err(Error::Argument(format!(
            "{given} blocks were given for {expected} {members}"
        ))),
    }
}

/// Returns how many members this one exchanges data with: all, or those of the other side.
fn peers(team: &Team) -> usize {
    match team.sides() {
        None => team.size(),
        Some(sides) => sides.remote().len(),
    }
}

/// Checks the lengths of the parts of a buffer of `total` bytes, one for each of those.
pub(super) fn check_lengths(team: &Team, lengths: &[usize], total: usize) -> Result<()> {
    check_each(lengths, peers(team), total, || match team.sides() {
        None => format!("for a group of {}", team.size()),
        Some(_) => format!("where the remote group has {}", peers(team)),
    })
}

/// Checks that there are as many lengths as are `wanted`, and that they are those of the parts of a buffer of `total` bytes.
pub(super) fn check_each(
    lengths: &[usize],
    count: usize,
    total: usize,
    wanted: impl FnOnce() -> String,
) -> Result<()> {
    if lengths.len() != count {
        return Err(Error::Argument(format!(
            "{} lengths were given {}",
            lengths.len(),
            wanted()
        )));
    }
    check_total("the buffer", total, lengths)
}

/// Checks that blocks of these lengths fill a buffer.
pub(super) fn check_total(what: &str, given: usize, lengths: &[usize]) -> Result<()> {
    let mut lengths = lengths.iter();
    let total = lengths.try_fold(0usize, |sum, length| sum.checked_add(*length));
    check_length(what, given, total.unwrap_or(usize::MAX))
}
