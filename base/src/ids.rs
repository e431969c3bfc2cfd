//! Newtypes for the numbers that cross Tagwire's boundaries.
//!
//! The words are those of the MPI standard (MPI-5.0, chapter 3): a message travels in an
//! *envelope* of source rank, tag and context; a receive selects by the same three, where
//! source and tag may be wildcards.

use std::fmt;

/// A process of the job, numbered from 0 to `size - 1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rank(u32);

impl Rank {
    /// The largest number of ranks in a job; `u32::MAX` stands for "any source".
    pub const MAX: u32 = u32::MAX - 1;

    /// Names rank `number`.
    ///
    /// # Panics
    /// When `number` is above [`Rank::MAX`], which no job reaches.
    #[inline]
    #[must_use]
    pub const fn new(number: u32) -> Self {
        assert!(number <= Self::MAX, "rank out of range");
        Self(number)
    }

    /// The number, as it travels on the wire.
    #[inline]
    #[must_use]
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// The number, as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A message's tag.
///
/// Users own the tags from 0 to [`Tag::USER_MAX`]. Negative tags are Tagwire's own (collectives,
/// control): a receive with [`TagSelector::ANY`] never takes them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Tag(i32);

impl Tag {
    /// The largest tag that a user may give.
    pub const USER_MAX: i32 = i32::MAX;

    /// A user's tag, or `None` when `value` is negative.
    #[inline]
    #[must_use]
    pub const fn user(value: i32) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// The internal tag number `number`, outside the space of users.
    ///
    /// # Panics
    /// When `number` is above `i32::MAX - 1`.
    #[inline]
    #[must_use]
    pub const fn internal(number: u32) -> Self {
        assert!(number < i32::MAX as u32, "internal tag out of range");
        Self(-1 - number as i32)
    }

    /// How many internal tags are for collectives, from the first on: few enough for every layout of match bits.
    pub const COLLECTIVES: u32 = 1 << 13;

    /// Whether this is the tag of a collective's messages.
    #[inline]
    #[must_use]
    pub const fn is_collective(self) -> bool {
        self.0 < 0 && -1 - self.0 < Self::COLLECTIVES as i32
    }

    /// The tag as it came over the wire: any value but `i32::MIN`, which is reserved.
    #[inline]
    #[must_use]
    pub const fn from_wire(value: i32) -> Option<Self> {
        if value == i32::MIN {
            None
        } else {
            Some(Self(value))
        }
    }

    /// The value, as it travels on the wire.
    #[inline]
    #[must_use]
    pub const fn as_i32(self) -> i32 {
        self.0
    }

    /// Whether this tag is outside the space of users.
    #[inline]
    #[must_use]
    pub const fn is_internal(self) -> bool {
        self.0 < 0
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {}", self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A context: the matching space of one communicator. Messages never cross contexts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ContextId(u16);

impl ContextId {
    /// The context that every rank of the job has from the start.
    pub const WORLD: Self = Self(0);

    /// How many numbers there are, the world's among them: 65,536.
    pub const COUNT: usize = u16::MAX as usize + 1;

    /// Context number `number`.
    #[inline]
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number, as it travels on the wire.
    #[inline]
    #[must_use]
    pub const fn as_u16(self) -> u16 {
        self.0
    }
}

impl fmt::Debug for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context {}", self.0)
    }
}

/// What a receive accepts as source: one rank, or any.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SourceSelector(u32);

impl SourceSelector {
    /// Any source (`MPI_ANY_SOURCE`).
    pub const ANY: Self = Self(u32::MAX);

    /// Exactly this rank.
    #[inline]
    #[must_use]
    pub const fn exact(rank: Rank) -> Self {
        Self(rank.0)
    }

    /// The rank, or `None` for any.
    #[inline]
    #[must_use]
    pub const fn rank(self) -> Option<Rank> {
        if self.0 == u32::MAX {
            None
        } else {
            Some(Rank(self.0))
        }
    }

    /// Whether any source is accepted.
    #[inline]
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.0 == u32::MAX
    }

    /// Whether a message from `source` is accepted.
    #[inline]
    #[must_use]
    pub const fn accepts(self, source: Rank) -> bool {
        self.0 == source.0 || self.is_any()
    }

    /// The value for storage; [`SourceSelector::from_u32`] takes it back.
    #[inline]
    #[must_use]
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// Takes back what [`SourceSelector::as_u32`] gave.
    #[inline]
    #[must_use]
    pub const fn from_u32(value: u32) -> Self {
        Self(value)
    }
}

impl From<Rank> for SourceSelector {
    fn from(rank: Rank) -> Self {
        Self::exact(rank)
    }
}

impl fmt::Debug for SourceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank() {
            Some(rank) => write!(f, "{rank:?}"),
            None => f.write_str("any source"),
        }
    }
}

/// What a receive accepts as tag: one tag, or any of the users'.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct TagSelector(i32);

impl TagSelector {
    /// Any tag of the users' (`MPI_ANY_TAG`); never an internal one.
    pub const ANY: Self = Self(i32::MIN);

    /// Exactly this tag.
    #[inline]
    #[must_use]
    pub const fn exact(tag: Tag) -> Self {
        Self(tag.0)
    }

    /// The tag, or `None` for any.
    #[inline]
    #[must_use]
    pub const fn tag(self) -> Option<Tag> {
        if self.0 == i32::MIN {
            None
        } else {
            Some(Tag(self.0))
        }
    }

    /// Whether any tag of the users' is accepted.
    #[inline]
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.0 == i32::MIN
    }

    /// Whether a message with `tag` is accepted.
    #[inline]
    #[must_use]
    pub const fn accepts(self, tag: Tag) -> bool {
        self.0 == tag.0 || (self.is_any() && !tag.is_internal())
    }

    /// The value for storage; [`TagSelector::from_i32`] takes it back.
    #[inline]
    #[must_use]
    pub const fn as_i32(self) -> i32 {
        self.0
    }

    /// Takes back what [`TagSelector::as_i32`] gave.
    #[inline]
    #[must_use]
    pub const fn from_i32(value: i32) -> Self {
        Self(value)
    }
}

impl From<Tag> for TagSelector {
    fn from(tag: Tag) -> Self {
        Self::exact(tag)
    }
}

impl fmt::Debug for TagSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag() {
            Some(tag) => write!(f, "{tag:?}"),
            None => f.write_str("any tag"),
        }
    }
}

/// A sequence number that wraps around: order is meant within a window of 2^31.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Sequence(u32);

impl Sequence {
    /// The number `value`.
    #[inline]
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The number, as it travels on the wire.
    #[inline]
    #[must_use]
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// The number after this one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// How far `self` lies ahead of `earlier`; negative when it lies behind.
    #[inline]
    #[must_use]
    pub const fn distance_from(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tag_refuses_internal_tags() {
        let user = Tag::user(7).unwrap();
        assert!(TagSelector::ANY.accepts(user));
        assert!(!TagSelector::ANY.accepts(Tag::internal(0)));
        assert!(TagSelector::exact(Tag::internal(3)).accepts(Tag::internal(3)));
        assert_eq!(Tag::user(-1), None);
        assert_eq!(Tag::from_wire(i32::MIN), None);
    }

    #[test]
    fn sequences_order_across_the_wrap() {
        let last = Sequence::new(u32::MAX);
        assert_eq!(last.next(), Sequence::new(0));
        assert_eq!(last.next().distance_from(last), 1);
        assert_eq!(last.distance_from(last.next()), -1);
    }
}
