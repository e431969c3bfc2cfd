//! Arrays that fill a cache line.

/// An array of integers with [`BYTES`] in all: no padding, and every pattern of bits is a value.
pub(crate) trait Line {}

impl Line for [u8; 64] {}
impl Line for [u16; 32] {}
impl Line for [u32; 16] {}

/// Bytes of a line.
pub(crate) const BYTES: usize = 64;
