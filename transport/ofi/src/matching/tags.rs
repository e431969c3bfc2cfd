//! What the tags and the data of tagged messages say.
//!
//! ```text
//!      63  62   61 ..                                   0
//!     +---+---+----------+-------------------------------+
//!     | 0 | a |  source  |   match bits of the user      |   a message
//!     +---+---+----------+-------------------------------+
//!     | 1 |          number of a receive                 |   the bytes of a long one
//!     +---+---+----------+-------------------------------+
//! ```
//!
//! `a` says that the message is announced only; every receive ignores it.
//!
//! The source rides in the tag always: directed receives are not to be trusted (libfabric since
//! 1.19 lets them pass an earlier receive from any source).
//!
//! A message of which the receiver has to ask for the bytes is empty and says in its data, 64
//! bits that come with the completion, who to ask and how long it is:
//!
//! ```text
//!      63 .. 40   number of the send      39 .. 0   length
//! ```
//!
//! Where completions have room for 32 bits only, they are the number, and the length comes in a
//! message of its own.

use tagwire_base::Rank;
use tagwire_transport::MatchPattern;

use crate::fabric::Pattern;

/// Marks tags of the bytes of long messages.
const PRIVATE: u64 = 1 << 63;

/// Marks messages that are announced only. Not every provider says with a look that there is data.
const ANNOUNCED: u64 = 1 << 62;

/// Bits of a length.
const LENGTH_BITS: u32 = 40;

/// Longest message.
pub(super) const MAX_MESSAGE: u64 = (1 << LENGTH_BITS) - 1;

/// Bits of the number of a send.
pub(super) const NUMBER_BITS: u32 = 64 - LENGTH_BITS;

/// Where the source lies in tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tags {
    source_bits: u32,
}

impl Tags {
    /// For a job of `size` ranks.
    pub(super) fn new(size: u32) -> Self {
        let needed = u32::BITS - size.saturating_sub(1).leading_zeros();
        Self {
            source_bits: needed.max(1),
        }
    }

    const fn user_width(self) -> u32 {
        62 - self.source_bits
    }

    /// The bits that users may set.
    pub(super) const fn user(self) -> u64 {
        (1 << self.user_width()) - 1
    }

    const fn sources(self) -> u64 {
        ((1 << self.source_bits) - 1) << self.user_width()
    }

    /// The tag of a message.
    #[inline]
    pub(super) const fn message(self, source: Rank, bits: u64) -> u64 {
        (source.as_u32() as u64) << self.user_width() | bits
    }

    /// The tag of a message that is announced only.
    pub(super) const fn announcement(tag: u64) -> u64 {
        tag | ANNOUNCED
    }

    /// Whether a message is announced only.
    #[inline]
    pub(super) const fn is_announcement(tag: u64) -> bool {
        tag & ANNOUNCED != 0
    }

    /// What a receive accepts.
    #[inline]
    pub(super) const fn pattern(self, pattern: &MatchPattern) -> Pattern {
        match pattern.source {
            Some(source) => Pattern {
                tag: self.message(source, pattern.bits),
                ignore: pattern.ignore | ANNOUNCED,
            },
            None => Pattern {
                tag: pattern.bits,
                ignore: pattern.ignore | self.sources() | ANNOUNCED,
            },
        }
    }

    /// What `source` has announced, and nothing else.
    pub(super) const fn announced_by(self, source: Rank) -> Pattern {
        Pattern {
            tag: self.message(source, 0) | ANNOUNCED,
            ignore: self.user(),
        }
    }

    /// Source and bits of a message.
    #[inline]
    pub(super) const fn read(self, tag: u64) -> (Rank, u64) {
        let source = (tag & self.sources()) >> self.user_width();
        (Rank::new(source as u32), tag & self.user())
    }

    /// The tag under which receive `number` waits for the bytes of a long message.
    pub(super) const fn private(number: u64) -> u64 {
        PRIVATE | number
    }
}

/// What the data of a message says whose bytes are to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// Number and length.
    Wide,
    /// The number.
    Narrow,
}

impl Asks {
    /// Bytes of data that are needed at least.
    pub(super) const NEEDED: usize = size_of::<u32>();

    /// For a provider with so many bytes of data.
    pub(super) const fn new(width: usize) -> Self {
        if width < size_of::<u64>() {
            Self::Narrow
        } else {
            Self::Wide
        }
    }

    /// Whether the length comes by itself.
    pub(super) const fn lack_length(self) -> bool {
        matches!(self, Self::Narrow)
    }

    pub(super) const fn encode(self, number: u32, length: u64) -> u64 {
        match self {
            Self::Wide => (number as u64) << LENGTH_BITS | length,
            Self::Narrow => number as u64,
        }
    }

    pub(super) const fn decode(self, data: u64) -> (u32, Option<u64>) {
        match self {
            Self::Wide => ((data >> LENGTH_BITS) as u32, Some(data & MAX_MESSAGE)),
            Self::Narrow => (data as u32, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_come_back_and_never_touch_the_bits() {
        for size in [1, 2, 3, 1000, 1 << 20] {
            let tags = Tags::new(size);
            for source in [0, size / 2, size - 1].map(Rank::new) {
                for bits in [0, 1, tags.user()] {
                    let tag = tags.message(source, bits);
                    assert_eq!(tags.read(tag), (source, bits));
                    assert_eq!(tag & (PRIVATE | ANNOUNCED), 0);
                    assert_eq!(tags.read(Tags::announcement(tag)), (source, bits));
                }
            }
            assert_eq!(tags.user() & tags.sources(), 0);
        }
        let tags = Tags::new(4);
        let one = tags.announced_by(Rank::new(1));
        let takes = |tag| (tag ^ one.tag) & !one.ignore == 0;
        assert!(takes(Tags::announcement(tags.message(Rank::new(1), 77))));
        assert!(!takes(tags.message(Rank::new(1), 77)));
        assert!(!takes(Tags::announcement(tags.message(Rank::new(2), 77))));
        assert!(Tags::new(1 << 14).user().trailing_ones() >= 48);
    }

    #[test]
    fn asks_come_back() {
        const MOST: u32 = (1 << NUMBER_BITS) - 1;
        for (number, length) in [(MOST, MAX_MESSAGE), (7, 9)] {
            let data = Asks::new(8).encode(number, length);
            assert_eq!(Asks::Wide.decode(data), (number, Some(length)));
            let data = Asks::new(4).encode(number, length);
            assert!(data <= u64::from(u32::MAX));
            assert_eq!(Asks::Narrow.decode(data), (number, None));
        }
    }
}
