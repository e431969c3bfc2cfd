//! What ob1 puts on the wire. `docs/wire.md` has the whole of it.
//!
//! Every packet starts with the 16-byte header that transports carry, two little-endian words:
//!
//! ```text
//!              63            48 47            32 31            16 15     8 7      0
//!             +-----------------------------------+---------------+--------+--------+
//!  envelope 0 |                tag                |    context    | flags  |  kind  |
//!           1 |            sequence               |          length (low 32)        |
//!             +-----------------------------------+---------------+--------+--------+
//!  control  0 |      handle: slot (32)            | handle: generation (24) | kind   |
//!           1 |      argument                                                       |
//!             +---------------------------------------------------------------------+
//! ```
//!
//! Envelopes, and what belongs to their eager bytes, carry a sequence number per peer: they are processed in
//! that order whatever the transport does. Control packets name an operation of their receiver
//! by slot and generation and need no order.

#[cfg(target_endian = "big")]
compile_error!(
    "the bodies of ob1's packets are little-endian, and are written as the machine has them"
);

use tagwire_base::{ContextId, Rank, Sequence, Tag};
use tagwire_matching::Envelope;
use tagwire_transport::AmHeader;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub(super) use crate::packet::{ControlHeader, Kind};
use crate::slab::Handle;

/// The header of a sequenced packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EnvelopeHeader {
    pub kind: Kind,
    pub context: ContextId,
    pub tag: Tag,
    pub sequence: Sequence,
    /// Length of the message, its low 32 bits.
    pub length: u32,
}

impl EnvelopeHeader {
    #[inline]
    pub(super) const fn encode(self) -> AmHeader {
        let tag = self.tag.as_i32() as u32 as u64;
        let word =
            (tag << 32) | ((self.context.as_u16() as u64) << 16) | self.kind.as_byte() as u64;
        AmHeader([
            word,
            ((self.sequence.as_u32() as u64) << 32) | self.length as u64,
        ])
    }

    /// Returns what is matched of a packet that `source` has sent.
    #[inline(always)]
    pub(super) const fn envelope(self, source: Rank) -> Envelope {
        Envelope {
            source,
            tag: self.tag,
            context: self.context,
        }
    }

    /// The fields of a header of `kind`, or `None` where the tag is one that nobody may send, or a flag is
    /// set: there are none in this version.
    #[inline]
    pub(super) const fn decode(kind: Kind, header: AmHeader) -> Option<Self> {
        let AmHeader([word, rest]) = header;
        let Some(tag) = Tag::from_wire((word >> 32) as i32) else {
            return None;
        };
        if (word >> 8) as u8 != 0 {
            return None;
        }
        Some(Self {
            kind,
            context: ContextId::new((word >> 16) as u16),
            tag,
            sequence: Sequence::new((rest >> 32) as u32),
            length: rest as u32,
        })
    }
}

/// What follows the header of an envelope whose message stays with its sender until it is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct RendezvousBody {
    /// Length of the message in bytes.
    pub length: u64,
    /// The send, for replies.
    pub sender: u64,
    /// Two words of the protocol's own.
    pub words: [u64; 2],
    /// The receive that pulled, or the tag that was asked for; see `held.rs`.
    pub receiver: u64,
}

impl RendezvousBody {
    /// The words of an envelope that says no more than that there is a message.
    pub(super) const NO_WORDS: [u64; 2] = [u64::MAX; 2];

    pub(super) const fn new(length: usize, sender: Handle, words: [u64; 2]) -> Self {
        Self {
            length: length as u64,
            sender: sender.to_wire(),
            words,
            receiver: 0,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIND: Kind = Kind::envelope(1);

    proptest! {
        #[test]
        fn envelopes_come_back(tag in (i32::MIN + 1)..=i32::MAX, context: u16, sequence: u32, length: u32) {
            let header = EnvelopeHeader {
                kind: KIND,
                context: ContextId::new(context),
                tag: Tag::from_wire(tag).unwrap(),
                sequence: Sequence::new(sequence),
                length,
            };
            let wire = header.encode();
            prop_assert_eq!(Kind::of(wire), KIND);
            prop_assert_eq!(EnvelopeHeader::decode(KIND, wire), Some(header));
        }

        #[test]
        fn any_words_decode_to_something_or_nothing(words: [u64; 2]) {
            let header = AmHeader(words);
            let kind = Kind::of(header);
            if kind.is_sequenced() {
                let _ = EnvelopeHeader::decode(kind, header);
            } else {
                let _ = ControlHeader::decode(kind, header);
            }
        }
    }
}
