//! The kernels with SSE2, which every x86-64 processor has: four vectors of 16 bytes.
#![allow(
    unsafe_code,
    reason = "vectors are loaded from arrays by their address"
)]

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_loadu_si128,
    _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi8, _mm_set1_epi16,
    _mm_set1_epi32, _mm_setzero_si128, _mm_xor_si128,
};

use crate::line::{BYTES, Line};

#[target_feature(enable = "sse2")]
pub(crate) fn eq_mask_u8x64(keys: &[u8; 64], masks: &[u8; 64], needle: u8) -> u64 {
    let needle = _mm_set1_epi8(needle as i8);
    let hits = |quarter| {
        let equal = _mm_cmpeq_epi8(differing(keys, masks, needle, quarter), _mm_setzero_si128());
        u64::from(_mm_movemask_epi8(equal) as u16)
    };
    hits(0) | hits(1) << 16 | hits(2) << 32 | hits(3) << 48
}

#[target_feature(enable = "sse2")]
pub(crate) fn eq_mask_u16x32(keys: &[u16; 32], masks: &[u16; 32], needle: u16) -> u32 {
    let needle = _mm_set1_epi16(needle as i16);
    let equal =
        |quarter| _mm_cmpeq_epi16(differing(keys, masks, needle, quarter), _mm_setzero_si128());
    // All ones and all zeros stay such when they are narrowed with saturation.
    let hits = |first, second| {
        let bytes = _mm_packs_epi16(equal(first), equal(second));
        u32::from(_mm_movemask_epi8(bytes) as u16)
    };
    hits(0, 1) | hits(2, 3) << 16
}

#[target_feature(enable = "sse2")]
pub(crate) fn eq_mask_u32x16(keys: &[u32; 16], masks: &[u32; 16], needle: u32) -> u16 {
    bits([0, 1, 2, 3].map(|quarter| equal_u32(keys, masks, needle, quarter)))
}

#[target_feature(enable = "sse2")]
pub(crate) fn hit_mask_u32x16(
    keys: [&[u32; 16]; 2],
    masks: [&[u32; 16]; 2],
    needles: [u32; 2],
) -> u16 {
    bits([0, 1, 2, 3].map(|quarter| {
        _mm_and_si128(
            equal_u32(keys[0], masks[0], needles[0], quarter),
            equal_u32(keys[1], masks[1], needles[1], quarter),
        )
    }))
}

#[inline]
#[target_feature(enable = "sse2")]
fn equal_u32(keys: &[u32; 16], masks: &[u32; 16], needle: u32, quarter: usize) -> __m128i {
    let differing = differing(keys, masks, _mm_set1_epi32(needle as i32), quarter);
    _mm_cmpeq_epi32(differing, _mm_setzero_si128())
}

/// A bit for each of 16 slots of 32 bits, each all ones or all zeros.
#[inline]
#[target_feature(enable = "sse2")]
fn bits([first, second, third, fourth]: [__m128i; 4]) -> u16 {
    let low = _mm_packs_epi32(first, second);
    let high = _mm_packs_epi32(third, fourth);
    _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u16
}

/// The bits in which the keys of a quarter differ from the needle, where their masks have ones.
#[inline]
#[target_feature(enable = "sse2")]
fn differing<L: Line>(keys: &L, masks: &L, needle: __m128i, quarter: usize) -> __m128i {
    let keys = _mm_xor_si128(load(keys, quarter), needle);
    _mm_and_si128(keys, load(masks, quarter))
}

/// The quarter of this number, 0 to 3.
#[inline]
#[target_feature(enable = "sse2")]
fn load<L: Line>(line: &L, quarter: usize) -> __m128i {
    const { assert!(size_of::<L>() == BYTES) };
    assert!(quarter < BYTES / 16, "a line has four quarters");
    let first = core::ptr::from_ref(line).cast::<__m128i>();
    // SAFETY: the line has 64 bytes, all initialised, of which the 16 of the quarter are read; the load takes any alignment.
    unsafe { _mm_loadu_si128(first.add(quarter)) }
}
