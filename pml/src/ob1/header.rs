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
//! Envelopes ([`Kind::Match`], [`Kind::Head`], [`Kind::Sync`], [`Kind::Rendezvous`],
//! [`Kind::Pulled`], [`Kind::Peeked`]) and [`Kind::Body`] carry a sequence number per peer: they are processed in
//! that order whatever the transport does. Control packets name an operation of their receiver
//! by slot and generation and need no order.

#[cfg(target_endian = "big")]
compile_error!(
    "the bodies of ob1's packets are little-endian, and are written as the machine has them"
);

use tagwire_base::{ContextId, Sequence, Tag};
use tagwire_transport::{AmHeader, Payload, Ticket};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::reading::{MAX_KEY, Reading, Source};
use crate::slab::Handle;

/// What packets there are, with the byte of each on the wire: one list for the type and for what reads it.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = $byte:literal,)*) => {
        /// What a packet is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Kind {
            $($(#[$about])* $kind = $byte,)*
        }

        impl Kind {
            /// All of them.
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$kind,)*];

            pub(super) const fn from_wire(byte: u8) -> Option<Self> {
                Some(match byte {
                    $($byte => Self::$kind,)*
                    _ => return None,
                })
            }
        }
    };
}

kinds! {
    /// An eager message, whole.
    Match = 1,
    /// The first packet of an eager message; `length` is the message's.
    Head = 2,
    /// More bytes of the eager message that the last `Head` began.
    Body = 3,
    /// An eager message whose sender waits for the match; its handle comes before the bytes.
    Sync = 4,
    /// The envelope of a message that stays with its sender until matched.
    Rendezvous = 5,
    /// As `Rendezvous`, in answer to a pull: names the receive it is meant for.
    Pulled = 6,
    /// As `Rendezvous`, in answer to a peek: names the tag that was asked for.
    Peeked = 7,
    /// As `Rendezvous`, with bytes that may be read: address and length of the key are in place of
    /// the ticket, the key follows.
    Readable = 8,
    /// To a sender: your synchronous message has matched. Handle: the send.
    Matched = 16,
    /// To a sender: send the bytes in fragments. Handle: the send; argument: the receive.
    Fragments = 17,
    /// Bytes of a rendezvous. Handle: the receive; argument: the offset.
    Data = 18,
    /// To a sender: more envelopes and bytes may come.
    Credit = 19,
    /// To a sender that holds envelopes back: a receive waits for one like this.
    Pull = 20,
    /// To a sender: the pulled envelope has found its receive.
    PullTaken = 21,
    /// To a sender: the pulled envelope came too late; put it back in its place.
    PullReturned = 22,
    /// To a receiver that asked for fragments: claim this instead. Handle: the receive.
    Ticket = 23,
    /// To a sender that holds envelopes back: a probe looks for one like this.
    Peek = 24,
    /// To a sender: the bytes have been read. Handle: the send.
    Got = 25,
    /// Short eager messages, each a header of [`Kind::Match`] with its bytes behind it.
    Batch = 26,
    /// To the sender of a channel: its receiver has opened a round. Handle: the channel, as the receiver
    /// calls it; argument: the round.
    ChannelOpened = 27,
    /// To the receiver of a channel: partitions were written. Argument: the first, and the one after the last.
    ChannelLanded = 28,
    /// To the receiver of a channel: its sender has closed it. Argument: the rounds that it has sent.
    ChannelEnded = 29,
    /// To the sender of a channel: its receiver has closed it. Argument: the rounds that it has received.
    ChannelClosed = 30,
}

impl Kind {
    /// Whether the packet has a place in its sender's sequence.
    pub(super) const fn is_sequenced(self) -> bool {
        (self as u8) < 16
    }
}

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
        let word = (tag << 32) | ((self.context.as_u16() as u64) << 16) | self.kind as u64;
        AmHeader([
            word,
            ((self.sequence.as_u32() as u64) << 32) | self.length as u64,
        ])
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

/// The header of a control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ControlHeader {
    pub kind: Kind,
    pub handle: Handle,
    pub argument: u64,
}

impl ControlHeader {
    #[inline]
    pub(super) const fn encode(self) -> AmHeader {
        let handle = self.handle.to_wire();
        let generation = (handle >> 32) << 8;
        AmHeader([
            ((handle & 0xffff_ffff) << 32) | generation | self.kind as u64,
            self.argument,
        ])
    }

    #[inline]
    pub(super) const fn decode(kind: Kind, header: AmHeader) -> Self {
        let AmHeader([word, argument]) = header;
        let handle = Handle::from_wire((((word >> 8) & 0xff_ffff) << 32) | (word >> 32));
        Self {
            kind,
            handle,
            argument,
        }
    }
}

/// What follows the header of a [`Kind::Rendezvous`] or [`Kind::Pulled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct RendezvousBody {
    /// Length of the message in bytes.
    pub length: u64,
    /// The send, for answers.
    pub sender: u64,
    /// The transport's ticket for the cooperative transfer; all ones where there is none.
    pub ticket: [u64; 2],
    /// The receive that pulled, for [`Kind::Pulled`]; the tag asked for, for [`Kind::Peeked`].
    pub receiver: u64,
}

impl RendezvousBody {
    const NO_TICKET: [u64; 2] = [u64::MAX; 2];

    pub(super) const fn new(length: u64, sender: Handle, ticket: Option<Ticket>) -> Self {
        let ticket = match ticket {
            Some(Ticket(words)) => words,
            None => Self::NO_TICKET,
        };
        Self {
            length,
            sender: sender.to_wire(),
            ticket,
            receiver: 0,
        }
    }

    /// The same for bytes that may be read at `address` with `key`, and the key: what follows the
    /// header of a [`Kind::Readable`], and how long it is.
    pub(super) fn readable(
        length: u64,
        sender: Handle,
        address: u64,
        key: &[u8],
    ) -> ([u8; size_of::<Self>() + MAX_KEY], usize) {
        let body = Self::new(length, sender, Some(Ticket([address, key.len() as u64])));
        let mut bytes = [0; size_of::<Self>() + MAX_KEY];
        let (front, rest) = bytes.split_at_mut(size_of::<Self>());
        front.copy_from_slice(body.as_bytes());
        rest[..key.len()].copy_from_slice(key);
        (bytes, size_of::<Self>() + key.len())
    }

    /// Where the bytes are to be had; `None` where `payload`, which begins with this, is cut short.
    pub(super) fn source(&self, kind: Kind, payload: Payload<'_>) -> Option<Source> {
        if self.ticket == Self::NO_TICKET {
            return Some(Source::Asked);
        }
        if kind != Kind::Readable {
            return Some(Source::Offered(Ticket(self.ticket)));
        }
        let [address, length] = self.ticket;
        let length = usize::try_from(length).ok().filter(|len| *len <= MAX_KEY)?;
        let mut key = [0; MAX_KEY];
        let follows = payload.slice(size_of::<Self>()..payload.len());
        if !follows.read_into(&mut key[..length]) {
            return None;
        }
        let reading = Reading::new(address, &key[..length]);
        Some(Source::Exposed(Box::new(reading)))
    }
}

/// What follows the header of a [`Kind::Pull`] or [`Kind::Peek`]. Of a pull the header's handle is
/// the receive, its argument the receive's place in the order of posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct PullBody {
    /// The tag wanted; `i32::MIN` for any of the users'.
    pub tag: i32,
    /// The context wanted.
    pub context: u16,
    /// Zero.
    pub reserved: u16,
}

/// A packet's kind, or `None` for a number that is none.
#[inline]
pub(super) const fn kind_of(header: AmHeader) -> Option<Kind> {
    Kind::from_wire(header.0[0] as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_kind_comes_back_and_nothing_else_is_one() {
        let known = (0..=u8::MAX).filter_map(Kind::from_wire);
        assert!(known.eq(Kind::ALL.iter().copied()));
    }

    proptest! {
        #[test]
        fn envelopes_come_back(tag in (i32::MIN + 1)..=i32::MAX, context: u16, sequence: u32, length: u32) {
            let header = EnvelopeHeader {
                kind: Kind::Match,
                context: ContextId::new(context),
                tag: Tag::from_wire(tag).unwrap(),
                sequence: Sequence::new(sequence),
                length,
            };
            let wire = header.encode();
            prop_assert_eq!(kind_of(wire), Some(Kind::Match));
            prop_assert_eq!(EnvelopeHeader::decode(Kind::Match, wire), Some(header));
        }

        #[test]
        fn handles_come_back(word: u64, argument: u64) {
            let handle = Handle::from_wire(word);
            let header = ControlHeader { kind: Kind::Data, handle, argument };
            prop_assert_eq!(kind_of(header.encode()), Some(Kind::Data));
            prop_assert_eq!(ControlHeader::decode(Kind::Data, header.encode()), header);
        }

        #[test]
        fn any_words_decode_to_something_or_nothing(words: [u64; 2]) {
            let header = AmHeader(words);
            if let Some(kind) = kind_of(header) {
                if kind.is_sequenced() {
                    let _ = EnvelopeHeader::decode(kind, header);
                } else {
                    let _ = ControlHeader::decode(kind, header);
                }
            }
        }
    }
}
