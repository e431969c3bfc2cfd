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
    /// Room for `total` bytes, with `first` in front.
    pub(super) fn eager(total: usize, first: Payload<'_>) -> Self {
        if first.len() == total && total <= INLINE {
            let mut bytes = [0; INLINE];
            first.copy_to_slice(&mut bytes);
            return Self::Inline {
                len: total as u8,
                bytes,
            };
        }
        let mut bytes = vec![0; total].into_boxed_slice();
        first.copy_to_slice(&mut bytes);
        Self::Heap {
            bytes,
            arrived: first.len().min(total),
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
