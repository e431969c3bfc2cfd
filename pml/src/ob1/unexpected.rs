//! Messages that came before their receive.

use tagwire_base::{ContextId, Tag};
use tagwire_matching as matching;
use tagwire_transport::Payload;

use super::peer::PeerIndex;
use super::protocols::State;
use crate::slab::Handle;

/// Short payloads are kept in the entry itself.
const INLINE: usize = 32;

/// What there is of the message.
#[derive(Debug)]
pub(super) enum Content {
    /// All of it, short.
    Inline { len: u8, bytes: [u8; INLINE] },
    /// All of it, or what has arrived so far.
    Heap { bytes: Box<[u8]>, arrived: usize },
    /// Its envelope; the bytes are with the sender. The state is that of the receive that takes it.
    Announced(State),
}

impl Content {
    /// Returns room for `total` bytes, of which the first are about to be [written](Self::write_first).
    #[inline(always)]
    pub(super) fn room(total: usize, first: usize) -> Self {
        match first == total && total <= INLINE {
            true => Self::Inline {
                len: total as u8,
                bytes: [0; INLINE],
            },
            false => Self::heap(total, first),
        }
    }

    #[inline(never)]
    fn heap(total: usize, first: usize) -> Self {
        Self::Heap {
            bytes: vec![0; total].into_boxed_slice(),
            arrived: first.min(total),
        }
    }

    /// Writes the first bytes of its room.
    #[inline(always)]
    pub(super) fn write_first(&mut self, first: Payload<'_>) {
        match self {
            Self::Inline { bytes, .. } => first.copy_to_slice(bytes),
            Self::Heap { bytes, .. } => first.copy_to_slice(bytes),
            Self::Announced(_) => debug_assert!(false, "its bytes are with the sender"),
        }
    }

    /// Whether all bytes are here.
    pub(super) const fn is_whole(&self) -> bool {
        match self {
            Self::Inline { .. } => true,
            Self::Heap { bytes, arrived } => *arrived == bytes.len(),
            Self::Announced(_) => false,
        }
    }

    /// Returns the bytes that are here.
    pub(super) fn arrived(&self) -> Payload<'_> {
        match self {
            Self::Inline { len, bytes } => Payload::from_slice(bytes).slice(0..usize::from(*len)),
            Self::Heap { bytes, arrived } => Payload::from_slice(bytes).slice(0..*arrived),
            Self::Announced(_) => Payload::EMPTY,
        }
    }
}

/// A message without a receive.
#[derive(Debug)]
pub(super) struct Unexpected {
    pub peer: PeerIndex,
    pub tag: Tag,
    pub context: ContextId,
    /// The message's length in bytes.
    pub length: usize,
    /// What it was charged to the payload budget.
    pub charged: usize,
    /// Its place in the engine; stale once claimed.
    pub queued: Option<matching::Handle>,
    /// The send that waits for the match.
    pub synchronous: Option<Handle>,
    pub content: Content,
}
