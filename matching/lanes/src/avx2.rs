//! The kernels with AVX2: two vectors of 32 bytes.
#![allow(
    unsafe_code,
    reason = "vectors are loaded from arrays by their address"
)]

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi8, _mm256_cmpeq_epi16,
    _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_movemask_ps,
    _mm256_packs_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_setzero_si256, _mm256_xor_si256,
};

use crate::line::{BYTES, Line};

#[target_feature(enable = "avx2")]
pub(crate) fn eq_mask_u8x64(keys: &[u8; 64], masks: &[u8; 64], needle: u8) -> u64 {
    let needle = _mm256_set1_epi8(needle as i8);
    let zero = _mm256_setzero_si256();
    let low = _mm256_cmpeq_epi8(differing(keys, masks, needle, 0), zero);
    let high = _mm256_cmpeq_epi8(differing(keys, masks, needle, 1), zero);
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

#[target_feature(enable = "avx2")]
pub(crate) fn eq_mask_u16x32(keys: &[u16; 32], masks: &[u16; 32], needle: u16) -> u32 {
    let needle = _mm256_set1_epi16(needle as i16);
    let zero = _mm256_setzero_si256();
    let low = _mm256_cmpeq_epi16(differing(keys, masks, needle, 0), zero);
    let high = _mm256_cmpeq_epi16(differing(keys, masks, needle, 1), zero);
    // Each half of the vector is narrowed by itself: low and high alternate in groups of eight slots.
    let mixed = _mm256_packs_epi16(low, high);
    _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)) as u32
}

#[target_feature(enable = "avx2")]
pub(crate) fn eq_mask_u32x16(keys: &[u32; 16], masks: &[u32; 16], needle: u32) -> u16 {
    bits(
        equal_u32(keys, masks, needle, 0),
        equal_u32(keys, masks, needle, 1),
    )
}

#[target_feature(enable = "avx2")]
pub(crate) fn hit_mask_u32x16(
    keys: [&[u32; 16]; 2],
    masks: [&[u32; 16]; 2],
    needles: [u32; 2],
) -> u16 {
    let low = _mm256_and_si256(
        equal_u32(keys[0], masks[0], needles[0], 0),
        equal_u32(keys[1], masks[1], needles[1], 0),
    );
    let high = _mm256_and_si256(
        equal_u32(keys[0], masks[0], needles[0], 1),
        equal_u32(keys[1], masks[1], needles[1], 1),
    );
    bits(low, high)
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal_u32(keys: &[u32; 16], masks: &[u32; 16], needle: u32, half: usize) -> __m256i {
    let differing = differing(keys, masks, _mm256_set1_epi32(needle as i32), half);
    _mm256_cmpeq_epi32(differing, _mm256_setzero_si256())
}

/// A bit for each of 16 slots of 32 bits, each all ones or all zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(low: __m256i, high: __m256i) -> u16 {
    let low = _mm256_movemask_ps(_mm256_castsi256_ps(low));
    let high = _mm256_movemask_ps(_mm256_castsi256_ps(high));
    (low | high << 8) as u16
}

/// The bits in which the keys of a half differ from the needle, where their masks have ones.
#[inline]
#[target_feature(enable = "avx2")]
fn differing<L: Line>(keys: &L, masks: &L, needle: __m256i, half: usize) -> __m256i {
    let keys = _mm256_xor_si256(load(keys, half), needle);
    _mm256_and_si256(keys, load(masks, half))
}

/// The half of this number, 0 or 1.
#[inline]
#[target_feature(enable = "avx2")]
fn load<L: Line>(line: &L, half: usize) -> __m256i {
    const { assert!(size_of::<L>() == BYTES) };
    assert!(half < BYTES / 32, "a line has two halves");
    let first = core::ptr::from_ref(line).cast::<__m256i>();
    // SAFETY: the line has 64 bytes, all initialised, of which the 32 of the half are read; the load takes any alignment.
    unsafe { _mm256_loadu_si256(first.add(half)) }
}
