//! What UCX matches on: 64 bits.
//!
//! ```text
//!     63        48   47       46                0
//!     source rank | counted | the layer's bits
//! ```
//!
//! *Counted* says that the sender holds the message against the receiver's allowance, see
//! `matching/flow.rs`; receives ignore it.

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
