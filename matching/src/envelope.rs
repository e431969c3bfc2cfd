//! What is matched with what: envelopes, patterns, and the names of queued entries.

use std::fmt;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};

/// The caller's word kept with an entry, usually an index into a table of its own.
///
/// An engine never looks at it. In a shared arena a peer may have overwritten it: check it before
/// use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Cookie(pub u32);

/// What a message says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Envelope {
    /// Who sent it.
    pub source: Rank,
    /// Its tag, the user's or internal.
    pub tag: Tag,
    /// The context it was sent in.
    pub context: ContextId,
}

/// What a receive accepts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// One source, or any.
    pub source: SourceSelector,
    /// One tag, or any of the users'.
    pub tag: TagSelector,
    /// The one context.
    pub context: ContextId,
}

impl Pattern {
    /// The pattern that accepts messages like this one only.
    #[inline]
    #[must_use]
    pub const fn exact(envelope: Envelope) -> Self {
        Self {
            source: SourceSelector::exact(envelope.source),
            tag: TagSelector::exact(envelope.tag),
            context: envelope.context,
        }
    }

    /// Whether a receive with this pattern may take a message with this envelope.
    #[inline]
    #[must_use]
    pub fn accepts(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.accepts(envelope.source)
            && self.tag.accepts(envelope.tag)
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}, {:?}", self.source, self.tag, self.context)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}, {:?}", self.source, self.tag, self.context)
    }
}

/// Names a queued entry; goes stale when the entry leaves its queue.
///
/// The generation is the low half of the entry's 64-bit sequence number, so a stale handle is
/// taken for a live one only if exactly a multiple of 2^32 entries were queued in between and the
/// last of them got the same slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Handle {
    /// Puts together what [`Handle::slot`] and [`Handle::generation`] gave. A handle that names no
    /// entry is harmless: every engine reports that it has left.
    #[inline]
    #[must_use]
    pub const fn from_parts(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// The slot in the queue's storage.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Which of the entries that used the slot is meant.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}
