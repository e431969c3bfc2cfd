//! Packets from layer to layer: their kinds, and the header of those that need no order.
//!
//! ```text
//!             63                              32 31            8 7      0
//!            +----------------------------------+----------------+--------+
//!  control 0 |      handle: slot (32)           | generation (24)|  kind  |
//!          1 |      argument                                              |
//!            +------------------------------------------------------------+
//! ```
//!
//! `docs/wire.md` has the whole of it.

use tagwire_transport::AmHeader;

use crate::peers::PeerIndex;
use crate::slab::Handle;

/// What a packet is: its first byte. Each protocol and each other part of ob1, and each service of a rank, declares the kinds
/// that are its own beside the code that sends and takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Kind(u8);

impl Kind {
    /// The first kind of packet that has no place in its sender's sequence.
    const FIRST_CONTROL: u8 = 16;

    /// Returns the kind of sequenced packets whose byte is `byte`.
    pub(crate) const fn envelope(byte: u8) -> Self {
        assert!(byte < Self::FIRST_CONTROL, "it is one of a control packet");
        Self(byte)
    }

    /// Returns the kind of control packets whose byte is `byte`.
    pub(crate) const fn control(byte: u8) -> Self {
        assert!(byte >= Self::FIRST_CONTROL, "it is one of an envelope");
        Self(byte)
    }

    /// Returns the kind of a packet, which may be one that nobody knows.
    #[inline]
    pub(crate) const fn of(header: AmHeader) -> Self {
        Self(header.0[0] as u8)
    }

    /// Returns the byte on the wire.
    #[inline]
    pub(crate) const fn as_byte(self) -> u8 {
        self.0
    }

    /// Whether the packet has a place in its sender's sequence.
    #[inline]
    pub(crate) const fn is_sequenced(self) -> bool {
        self.0 < Self::FIRST_CONTROL
    }
}

/// The kinds of packets of one part.
pub(crate) type PacketKinds = &'static [Kind];

/// The header of a control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlHeader {
    pub kind: Kind,
    pub handle: Handle,
    pub argument: u64,
}

impl ControlHeader {
    #[inline]
    pub(crate) const fn encode(self) -> AmHeader {
        let handle = self.handle.to_wire();
        let generation = (handle >> 32) << 8;
        AmHeader([
            ((handle & 0xffff_ffff) << 32) | generation | self.kind.as_byte() as u64,
            self.argument,
        ])
    }

    #[inline]
    pub(crate) const fn decode(kind: Kind, header: AmHeader) -> Self {
        let AmHeader([word, argument]) = header;
        let handle = Handle::from_wire((((word >> 8) & 0xff_ffff) << 32) | (word >> 32));
        Self {
            kind,
            handle,
            argument,
        }
    }
}

/// Most bytes behind the header of a packet that lie beside it.
const BODY: usize = 16;

/// What follows the header of a packet.
#[derive(Debug)]
enum Body {
    Inline { bytes: [u8; BODY], len: u8 },
    Heap(Box<[u8]>),
}

/// A control packet that is to be sent.
#[derive(Debug)]
pub(crate) struct Packet {
    pub to: PeerIndex,
    pub header: AmHeader,
    body: Body,
}

impl Packet {
    pub(crate) fn new(to: PeerIndex, header: ControlHeader, payload: &[u8]) -> Self {
        let body = match payload.len() {
            len @ ..=BODY => {
                let mut bytes = [0; BODY];
                bytes[..len].copy_from_slice(payload);
                let len = len as u8;
                Body::Inline { bytes, len }
            }
            _ => Body::Heap(payload.into()),
        };
        let header = header.encode();
        Self { to, header, body }
    }

    pub(crate) fn body(&self) -> &[u8] {
        match &self.body {
            Body::Inline { bytes, len } => &bytes[..usize::from(*len)],
            Body::Heap(bytes) => bytes,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONTROL: Kind = Kind::control(18);

    #[test]
    fn kinds_below_sixteen_are_sequenced() {
        assert!(Kind::envelope(1).is_sequenced());
        assert!(!CONTROL.is_sequenced());
    }

    proptest! {
        #[test]
        fn handles_come_back(word: u64, argument: u64) {
            let handle = Handle::from_wire(word);
            let header = ControlHeader { kind: CONTROL, handle, argument };
            prop_assert_eq!(Kind::of(header.encode()), CONTROL);
            prop_assert_eq!(ControlHeader::decode(CONTROL, header.encode()), header);
        }
    }
}
