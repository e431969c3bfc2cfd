//! Where context, tag and source lie in the match bits.
//!
//! ```text
//!      63                                                            0
//!     +-------------------+----------+---------+---+------------------+
//!     |  the transport's  |  source  | context | i |       tag        |
//!     +-------------------+----------+---------+---+------------------+
//!                           0 or s     up to 16  1        up to 31
//! ```
//!
//! `i` distinguishes the layer's own tags (negative ones) from the users': a receive of any tag ignores
//! `tag` and asks for `i` = 0. With all bits to be had, `i` and `tag` are the tag as it is. The
//! source lies there only where the transport's directed receives cannot be trusted.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{Directed, MatchEnvelope, MatchLimits, MatchPattern};

use crate::error::{Error, Result};

/// Context and tag bits to choose among, the best first.
const SHAPES: [(u32, u32); 8] = [
    (16, 31),
    (15, 31),
    (14, 31),
    (12, 31),
    (12, 23),
    (8, 23),
    (8, 15),
    (4, 15),
];

/// The bits of each field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    tag_bits: u32,
    context_bits: u32,
    /// 0 where the source goes by itself.
    source_bits: u32,
    /// This rank's number in its place.
    own: u64,
    /// The transport ignores any part of the tag.
    in_part: bool,
}

impl Layout {
    /// The widest layout that fits a transport's limits.
    pub(super) fn choose(
        limits: &MatchLimits,
        transport: &'static str,
        rank: Rank,
        size: u32,
    ) -> Result<Self> {
        let available = limits.bits.trailing_ones();
        let in_bits = limits.directed == Directed::InBits;
        let source_bits = if in_bits {
            (u32::BITS - size.saturating_sub(1).leading_zeros()).max(1)
        } else {
            0
        };
        for (context_bits, tag_bits) in SHAPES {
            let mut layout = Self {
                tag_bits,
                context_bits,
                source_bits,
                own: 0,
                in_part: limits.ignorable_in_part,
            };
            let fits = tag_bits + 1 + context_bits + source_bits <= available;
            let whole = limits.ignorable == layout.tag_mask() && !in_bits;
            let in_part = limits.ignorable_in_part && layout.wild() & !limits.ignorable == 0;
            if fits && (whole || in_part) {
                if in_bits {
                    layout.own = u64::from(rank.as_u32()) << layout.source_shift();
                }
                return Ok(layout);
            }
        }
        Err(Error::TooFewMatchBits {
            transport,
            available,
        })
    }

    /// The largest tag of a user.
    pub(super) const fn largest_tag(&self) -> i32 {
        self.tag_mask() as i32
    }

    /// How many contexts there can be.
    pub(super) const fn contexts(&self) -> usize {
        1 << self.context_bits
    }

    const fn tag_mask(&self) -> u64 {
        (1 << self.tag_bits) - 1
    }

    const fn context_shift(&self) -> u32 {
        self.tag_bits + 1
    }

    const fn source_shift(&self) -> u32 {
        self.context_shift() + self.context_bits
    }

    /// All bits that some receive ignores.
    const fn wild(&self) -> u64 {
        let sources = ((1 << self.source_bits) - 1) << self.source_shift();
        self.tag_mask() | sources
    }

    /// Whether the tag has a place.
    #[inline]
    pub(super) const fn fits(&self, tag: Tag) -> bool {
        let beyond = tag.as_i32() >> self.tag_bits;
        beyond == 0 || beyond == -1
    }

    #[inline]
    const fn tag_and_context(&self, tag: Tag, context: ContextId) -> u64 {
        let tag = tag.as_i32() as u32 as u64 & ((self.tag_mask() << 1) | 1);
        tag | (context.as_u16() as u64) << self.context_shift()
    }

    /// The bits of a message from this rank.
    #[inline]
    pub(super) const fn bits(&self, tag: Tag, context: ContextId) -> u64 {
        self.tag_and_context(tag, context) | self.own
    }

    /// What a receive accepts.
    #[inline]
    pub(super) fn pattern(
        &self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> MatchPattern {
        let (bits, ignore) = match tag.tag() {
            Some(tag) => (self.tag_and_context(tag, context), 0),
            None => (
                (context.as_u16() as u64) << self.context_shift(),
                self.tag_mask(),
            ),
        };
        let mut pattern = MatchPattern {
            bits,
            ignore,
            source: from.rank(),
        };
        if self.source_bits > 0 {
            match pattern.source.take() {
                Some(rank) => pattern.bits |= u64::from(rank.as_u32()) << self.source_shift(),
                None => pattern.ignore |= ((1 << self.source_bits) - 1) << self.source_shift(),
            }
        }
        pattern
    }

    /// What accepts any internal message of a context.
    pub(super) fn internal(&self, context: ContextId) -> MatchPattern {
        let mut pattern = self.pattern(SourceSelector::ANY, TagSelector::ANY, context);
        pattern.bits |= 1 << self.tag_bits;
        pattern
    }

    /// What accepts any message of a context's collectives, and nothing else where the transport can tell them apart.
    pub(super) fn collectives(&self, context: ContextId) -> MatchPattern {
        if !self.in_part {
            return self.internal(context);
        }
        let (from, first) = (SourceSelector::ANY, TagSelector::exact(Tag::internal(0)));
        let mut pattern = self.pattern(from, first, context);
        pattern.ignore |= u64::from(Tag::COLLECTIVES) - 1;
        pattern
    }

    /// The tag and context of a message; `None` for what no correct peer sends.
    #[inline]
    pub(super) const fn read(&self, envelope: &MatchEnvelope) -> Option<(Tag, ContextId)> {
        let unused = u32::BITS - 1 - self.tag_bits;
        // The sign bit goes to the top and comes back, filling what lies between.
        let tag = ((envelope.bits as u32) << unused) as i32 >> unused;
        let context =
            (envelope.bits >> self.context_shift()) as u32 & ((1 << self.context_bits) - 1);
        match Tag::from_wire(tag) {
            Some(tag) => Some((tag, ContextId::new(context as u16))),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(limits: MatchLimits) -> Result<Layout> {
        Layout::choose(&limits, "test", Rank::new(2), 5)
    }

    fn limits(bits: u64, directed: Directed) -> MatchLimits {
        let mut limits = MatchLimits::UNLIMITED;
        limits.bits = bits;
        limits.ignorable = bits;
        limits.directed = directed;
        limits
    }

    fn layouts() -> Vec<Layout> {
        [64, 60, 48, 44, 36, 32, 24, 23]
            .into_iter()
            .flat_map(|width| {
                let bits = u64::MAX >> (64 - width);
                [
                    choose(limits(bits, Directed::BySource)),
                    choose(limits(bits, Directed::InBits)),
                ]
            })
            .filter_map(Result::ok)
            .collect()
    }

    #[test]
    fn all_bits_leave_the_tag_as_it_is() {
        let layout = choose(MatchLimits::UNLIMITED).unwrap();
        let tag = Tag::internal(4);
        assert_eq!(
            layout.bits(tag, ContextId::new(3)),
            3 << 32 | u64::from(tag.as_i32() as u32)
        );
        let any = layout.pattern(SourceSelector::ANY, TagSelector::ANY, ContextId::new(3));
        assert_eq!((any.bits, any.ignore), (3 << 32, 0x7fff_ffff));
        assert_eq!(layout.largest_tag(), i32::MAX);
        assert_eq!(layout.contexts(), 1 << 16);
    }

    #[test]
    fn messages_say_what_they_were_sent_with() {
        let layouts = layouts();
        assert!(layouts.len() > 10);
        for layout in layouts {
            let last = ContextId::new((layout.contexts() - 1) as u16);
            let largest = Tag::user(layout.largest_tag()).unwrap();
            let smallest = Tag::internal(layout.largest_tag().min(i32::MAX - 1) as u32);
            for tag in [Tag::user(0).unwrap(), largest, Tag::internal(0), smallest] {
                assert!(layout.fits(tag), "{tag:?} in {layout:?}");
                for context in [ContextId::WORLD, last] {
                    let envelope = MatchEnvelope {
                        source: Rank::new(2),
                        bits: layout.bits(tag, context),
                        length: 0,
                    };
                    assert_eq!(layout.read(&envelope), Some((tag, context)));
                    for from in [SourceSelector::ANY, SourceSelector::exact(Rank::new(2))] {
                        for asked in [TagSelector::ANY, TagSelector::exact(tag)] {
                            let pattern = layout.pattern(from, asked, context);
                            assert_eq!(pattern.accepts(&envelope), asked.accepts(tag));
                            let other = layout.pattern(from, asked, ContextId::new(1));
                            assert!(!other.accepts(&envelope));
                        }
                    }
                    let stranger = SourceSelector::exact(Rank::new(3));
                    let pattern = layout.pattern(stranger, TagSelector::ANY, context);
                    assert!(!pattern.accepts(&envelope));
                }
            }
            if layout.largest_tag() < i32::MAX {
                assert!(!layout.fits(Tag::user(layout.largest_tag() + 1).unwrap()));
            }
        }
    }

    #[test]
    fn internal_messages_are_told_from_users_and_collectives_from_others() {
        let context = ContextId::new(1);
        for layout in layouts() {
            for tag in [
                Tag::user(0).unwrap(),
                Tag::user(layout.largest_tag()).unwrap(),
                Tag::internal(0),
                Tag::internal(Tag::COLLECTIVES - 1),
                Tag::internal(Tag::COLLECTIVES),
                Tag::internal(layout.largest_tag().min(i32::MAX - 1) as u32),
            ] {
                let envelope = MatchEnvelope {
                    source: Rank::new(2),
                    bits: layout.bits(tag, context),
                    length: 0,
                };
                let [internal, collectives] =
                    [layout.internal(context), layout.collectives(context)]
                        .map(|pattern| pattern.accepts(&envelope));
                assert_eq!(internal, tag.is_internal(), "{tag:?} in {layout:?}");
                assert_eq!(collectives, tag.is_collective(), "{tag:?} in {layout:?}");
                let other = layout.internal(ContextId::WORLD);
                assert!(!other.accepts(&envelope));
            }
        }
    }

    #[test]
    fn too_few_bits_are_named() {
        for (bits, directed) in [
            (0x7_ffff, Directed::BySource),
            (0x3f_ffff, Directed::InBits),
            (u64::MAX << 1, Directed::BySource),
        ] {
            let error = choose(limits(bits, directed)).unwrap_err();
            assert!(matches!(error, Error::TooFewMatchBits { .. }));
        }
    }
}
