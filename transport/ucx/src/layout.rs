//! What UCX matches on: 64 bits.
//!
//! ```text
//!     63        48   47       46                0
//!     source rank | counted | the layer's bits
//! ```
//!
//! *Counted* says that the sender holds the message against the receiver's allowance, see
//! `matching/flow.rs`; receives ignore it.

use tagwire_base::Rank;
use tagwire_transport::MatchEnvelope;

/// The bits of the layer above.
pub(crate) const USER_MASK: u64 = (1 << 47) - 1;

/// The message is held against the allowance.
pub(crate) const COUNTED: u64 = 1 << 47;

/// The bits of the source.
pub(crate) const SOURCE_MASK: u64 = !0 << SOURCE_SHIFT;

/// Where they begin.
pub(crate) const SOURCE_SHIFT: u32 = 48;

/// The most ranks that a job can have.
pub(crate) const MAX_RANKS: u32 = 1 << 16;

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
