//! Packets of accesses that the transport has not done: their kinds and bodies.
//!
//! ```text
//!   kind       handle    argument   body                       reply
//!   Put        region    offset     access u64, bytes          Done: so many bytes
//!   Get        region    offset     access u64, length u64     Data: bytes from this offset on
//!   Atomic     region    offset     access u64, operation u64,
//!                                   operand u64, compare u64   Value: the old one
//!   any        access    -                                     Refused
//! ```
//!
//! A region is named as its owner has it, an access as its initiator has it. A put or a get of many bytes is so many packets.

use tagwire_transport::Payload;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::atomic::Atomic;
use crate::packet::{Kind, PacketKinds};
use crate::slab::Handle;

impl Kind {
    pub(super) const RMA_PUT: Self = Self::control(40);
    pub(super) const RMA_GET: Self = Self::control(41);
    pub(super) const RMA_ATOMIC: Self = Self::control(42);
    pub(super) const RMA_DONE: Self = Self::control(43);
    pub(super) const RMA_DATA: Self = Self::control(44);
    pub(super) const RMA_VALUE: Self = Self::control(45);
    pub(super) const RMA_REFUSED: Self = Self::control(46);
}

/// The packets of accesses.
pub(super) const KINDS: PacketKinds = &[
    Kind::RMA_PUT,
    Kind::RMA_GET,
    Kind::RMA_ATOMIC,
    Kind::RMA_DONE,
    Kind::RMA_DATA,
    Kind::RMA_VALUE,
    Kind::RMA_REFUSED,
];

/// What stands in front of the bytes of a put.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct PutBody {
    pub access: U64,
}

/// Bytes in front of those of a put: most that a packet of an access has besides.
pub(super) const FRONT: usize = size_of::<PutBody>();

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct GetBody {
    pub access: U64,
    pub length: U64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct AtomicBody {
    pub access: U64,
    pub operation: U64,
    pub operand: U64,
    pub compare: U64,
}

impl AtomicBody {
    pub(super) fn new(access: Handle, atomic: Atomic) -> Self {
        let (operation, operand, compare) = match atomic {
            Atomic::Sum(operand) => (0, operand, 0),
            Atomic::Replace(operand) => (1, operand, 0),
            Atomic::And(operand) => (2, operand, 0),
            Atomic::Or(operand) => (3, operand, 0),
            Atomic::Xor(operand) => (4, operand, 0),
            Atomic::Min(operand) => (5, operand, 0),
            Atomic::Max(operand) => (6, operand, 0),
            Atomic::CompareSwap { compare, swap } => (7, swap, compare),
        };
        Self {
            access: access.to_wire().into(),
            operation: operation.into(),
            operand: operand.into(),
            compare: compare.into(),
        }
    }

    /// Returns the operation, or `None` where it is none.
    pub(super) const fn atomic(&self) -> Option<Atomic> {
        let operand = self.operand.get();
        Some(match self.operation.get() {
            0 => Atomic::Sum(operand),
            1 => Atomic::Replace(operand),
            2 => Atomic::And(operand),
            3 => Atomic::Or(operand),
            4 => Atomic::Xor(operand),
            5 => Atomic::Min(operand),
            6 => Atomic::Max(operand),
            7 => Atomic::CompareSwap {
                compare: self.compare.get(),
                swap: operand,
            },
            _ => return None,
        })
    }
}

/// Reads a body that stands at the start of a packet.
pub(super) fn read<T: FromBytes + IntoBytes>(payload: Payload<'_>) -> Option<T> {
    let mut body = T::new_zeroed();
    payload.read_into(body.as_mut_bytes()).then_some(body)
}

/// What peers need to reach a region.
///
/// ```text
///   0  region    u64   as its owner has it
///   8  length    u64
///  16  address   u64   in the owner's terms
///  24  key             of the registration; nothing where there is none
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub region: Handle,
    pub length: u64,
    pub address: u64,
    /// The transport's.
    pub memory: Box<[u8]>,
}

impl Key {
    pub(super) fn encode(&self) -> Vec<u8> {
        let words = [self.region.to_wire(), self.length, self.address];
        let front = words.iter().flat_map(|word| word.to_le_bytes());
        front.chain(self.memory.iter().copied()).collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, memory) = <[U64; 3]>::read_from_prefix(bytes).ok()?;
        let [region, length, address] = words.map(U64::get);
        Some(Self {
            region: Handle::from_wire(region),
            length,
            address,
            memory: memory.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_and_keys_come_back() {
        let all = [
            Atomic::Sum(1),
            Atomic::Replace(2),
            Atomic::And(3),
            Atomic::Or(4),
            Atomic::Xor(5),
            Atomic::Min(6),
            Atomic::Max(7),
            Atomic::CompareSwap {
                compare: 8,
                swap: 9,
            },
        ];
        for atomic in all {
            assert_eq!(AtomicBody::new(Handle::NONE, atomic).atomic(), Some(atomic));
        }
        let mut unknown = AtomicBody::new(Handle::NONE, all[0]);
        unknown.operation = 8.into();
        assert_eq!(unknown.atomic(), None);
        let key = Key {
            region: Handle::from_wire(77),
            length: 3,
            address: u64::MAX,
            memory: [1, 2, 3].into(),
        };
        let bytes = key.encode();
        assert_eq!(Key::decode(&bytes), Some(key));
        assert_eq!(Key::decode(&bytes[..23]), None);
    }
}
