//! Compares the keys of many queue entries at once.
//!
//! A kernel takes an array of 64 bytes, of 8-, 16- or 32-bit keys, an array of masks, and a needle. It returns one bit for each
//! slot: set where `(key ^ needle) & mask` is 0. So a slot with mask 0 hits any needle. There is one set of kernels for each
//! instruction set ([`Isa`]), and all return the same bits.
//!
//! ```text
//!   eq_mask_u8x64    64 keys of  8 bits -> u64
//!   eq_mask_u16x32   32 keys of 16 bits -> u32
//!   eq_mask_u32x16   16 keys of 32 bits -> u16
//!   hit_mask_u32x16  16 pairs of 32-bit keys, both of which have to hit -> u16
//! ```
//!
//! [`Kernels`] names a set that the processor has, so that its methods are safe.
//!
//! ```
//! use tagwire_lanes::Kernels;
//!
//! let kernels = Kernels::best();
//! let mut keys = [0_u32; 16];
//! keys[3] = 42;
//! assert_eq!(kernels.eq_mask_u32x16(&keys, &[u32::MAX; 16], 42), 1 << 3);
//! assert_eq!(kernels.eq_mask_u32x16(&keys, &[0; 16], 42), u16::MAX);
//! ```

#![no_std]

#[cfg(target_arch = "x86_64")]
extern crate std;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod isa;
mod kernels;
mod line;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub use isa::{Isa, Missing};
pub use kernels::Kernels;
