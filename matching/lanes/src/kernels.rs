//! The kernels of an instruction set that the processor has.
#![allow(
    unsafe_code,
    reason = "kernels are called that are compiled for more than the baseline"
)]

use crate::isa::{Isa, Missing};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use crate::neon;
use crate::scalar;
#[cfg(target_arch = "x86_64")]
use crate::{avx2, avx512, sse2};

/// A set of kernels. There is a value only for an instruction set that the processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernels(Isa);

impl Kernels {
    /// Returns those of the widest instruction set that the processor has.
    #[must_use]
    pub fn best() -> Self {
        Self(Isa::available().next().unwrap_or(Isa::Scalar))
    }

    /// Returns those of an instruction set.
    ///
    /// # Errors
    /// [`Missing`] where the processor lacks it.
    pub fn of(isa: Isa) -> Result<Self, Missing> {
        match isa.is_available() {
            true => Ok(Self(isa)),
            false => Err(Missing { isa }),
        }
    }

    /// Returns the instruction set.
    #[must_use]
    pub const fn isa(self) -> Isa {
        self.0
    }
}

/// Each kernel by the instruction set.
macro_rules! kernels {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $bits:ty;)*) => {
        impl Kernels {
            $(
                $(#[$doc])*
                #[inline]
                #[must_use]
                pub fn $name(self, $($argument: $type),*) -> $bits {
                    match self.0 {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => {
                            // SAFETY: AVX-512F and AVX-512BW are there, or `of` and `best` had not made this value.
                            unsafe { avx512::$name($($argument),*) }
                        }
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => {
                            // SAFETY: AVX2 is there, or `of` and `best` had not made this value.
                            unsafe { avx2::$name($($argument),*) }
                        }
                        #[cfg(target_arch = "x86_64")]
                        Isa::Sse2 => {
                            // SAFETY: every x86-64 processor has SSE2.
                            unsafe { sse2::$name($($argument),*) }
                        }
                        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
                        Isa::Neon => {
                            // SAFETY: every AArch64 processor has NEON.
                            unsafe { neon::$name($($argument),*) }
                        }
                        _ => scalar::$name($($argument),*),
                    }
                }
            )*
        }
    };
}

kernels! {
    /// Returns a bit for each slot whose 8-bit key is that of the needle, in the bits that its mask has.
    fn eq_mask_u8x64(keys: &[u8; 64], masks: &[u8; 64], needle: u8) -> u64;

    /// Returns a bit for each slot whose 16-bit key is that of the needle, in the bits that its mask has.
    fn eq_mask_u16x32(keys: &[u16; 32], masks: &[u16; 32], needle: u16) -> u32;

    /// Returns a bit for each slot whose 32-bit key is that of the needle, in the bits that its mask has.
    fn eq_mask_u32x16(keys: &[u32; 16], masks: &[u32; 16], needle: u32) -> u16;

    /// Returns a bit for each slot of which both 32-bit keys are those of their needles, in the bits that their masks have.
    fn hit_mask_u32x16(keys: [&[u32; 16]; 2], masks: [&[u32; 16]; 2], needles: [u32; 2]) -> u16;
}
