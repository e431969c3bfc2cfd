//! What UCX matches on: 64 bits.
//!
//! ```text
//!     63        48   47        46    45                0
//!     source rank | counted | access | the layer's bits
//! ```
//!
//! *Counted* says that the sender holds the message against the receiver's allowance, see
//! `matching/flow.rs`; receives ignore it. *Access* says that it is no message of the layer's, but the bytes of a get or a
//! put: what its other bits are is the name of that, see `byte/remote.rs`.

use tagwire_base::Rank;
use tagwire_transport::MatchEnvelope;

/// The bits of the layer above.
pub(crate) const USER_MASK: u64 = ACCESS - 1;

/// The bytes of a get or a put.
pub(crate) const ACCESS: u64 = 1 << 46;

/// The message is held against the allowance.
pub(crate) const COUNTED: u64 = 1 << 47;

/// The bits of the source.
pub(crate) const SOURCE_MASK: u64 = !0 << SOURCE_SHIFT;

/// Where they begin.
pub(crate) const SOURCE_SHIFT: u32 = 48;

/// The most ranks that a job can have.
pub(crate) const MAX_RANKS: u32 = 1 << 16;

/// The tag of the bytes of the get or put of this name, which it has alone for the next 2^31 uses of a slot.
pub(crate) const fn access_tag(name: u64) -> u64 {
    let (low, high) = (name & USER_MASK, name >> ACCESS.trailing_zeros());
    low | ACCESS | high << COUNTED.trailing_zeros()
}

/// Who sent a message under `tag`.
#[inline]
pub(crate) const fn source_of(tag: u64) -> Rank {
    Rank::new((tag >> SOURCE_SHIFT) as u32)
}

/// The envelope of a message under `tag`.
#[inline]
pub(crate) const fn envelope_of(tag: u64, length: u64) -> MatchEnvelope {
    MatchEnvelope {
        source: source_of(tag),
        bits: tag & USER_MASK,
        length,
    }
}
