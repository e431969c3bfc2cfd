//! Ranks, tags and wildcards, as users write them.

use tagwire_base::{Tag, TagSelector};

use crate::error::{Error, Result};

/// From whom a receive takes a message: a rank's number, or [`ANY_SOURCE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This rank.
    Rank(u32),
    /// Whoever it is.
    Any,
}

/// With what tag a receive takes a message: a number from 0, or [`ANY_TAG`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagChoice {
    /// This tag.
    Exactly(i32),
    /// Whichever it is.
    Any,
}

/// A receive that takes messages from any rank (`MPI_ANY_SOURCE`).
pub const ANY_SOURCE: Source = Source::Any;

/// A receive that takes messages with any tag (`MPI_ANY_TAG`).
pub const ANY_TAG: TagChoice = TagChoice::Any;

impl From<u32> for Source {
    fn from(rank: u32) -> Self {
        Self::Rank(rank)
    }
}

impl From<i32> for TagChoice {
    fn from(tag: i32) -> Self {
        Self::Exactly(tag)
    }
}

impl TagChoice {
    pub(crate) fn selector(self) -> Result<TagSelector> {
        match self {
            Self::Exactly(value) => Ok(TagSelector::exact(tag_of(value)?)),
            Self::Any => Ok(TagSelector::ANY),
        }
    }
}

pub(crate) fn tag_of(value: i32) -> Result<Tag> {
    Tag::user(value).ok_or(Error::NegativeTag(value))
}
