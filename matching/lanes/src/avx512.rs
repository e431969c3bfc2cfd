//! The kernels with AVX-512F and AVX-512BW: one vector of 64 bytes, and a test that leaves a bit for each slot.
#![allow(
    unsafe_code,
    reason = "vectors are loaded from arrays by their address"
)]

use core::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_mask_testn_epi32_mask, _mm512_set1_epi8, _mm512_set1_epi16,
    _mm512_set1_epi32, _mm512_testn_epi8_mask, _mm512_testn_epi16_mask, _mm512_testn_epi32_mask,
    _mm512_xor_si512,
};

use crate::line::{BYTES, Line};

#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn eq_mask_u8x64(keys: &[u8; 64], masks: &[u8; 64], needle: u8) -> u64 {
    let differing = _mm512_xor_si512(load(keys), _mm512_set1_epi8(needle as i8));
    _mm512_testn_epi8_mask(differing, load(masks))
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn eq_mask_u16x32(keys: &[u16; 32], masks: &[u16; 32], needle: u16) -> u32 {
    let differing = _mm512_xor_si512(load(keys), _mm512_set1_epi16(needle as i16));
    _mm512_testn_epi16_mask(differing, load(masks))
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn eq_mask_u32x16(keys: &[u32; 16], masks: &[u32; 16], needle: u32) -> u16 {
    let differing = _mm512_xor_si512(load(keys), _mm512_set1_epi32(needle as i32));
    _mm512_testn_epi32_mask(differing, load(masks))
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn hit_mask_u32x16(
    keys: [&[u32; 16]; 2],
    masks: [&[u32; 16]; 2],
    needles: [u32; 2],
) -> u16 {
    let first = eq_mask_u32x16(keys[0], masks[0], needles[0]);
    let differing = _mm512_xor_si512(load(keys[1]), _mm512_set1_epi32(needles[1] as i32));
    _mm512_mask_testn_epi32_mask(first, differing, load(masks[1]))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load<L: Line>(line: &L) -> __m512i {
    const { assert!(size_of::<L>() == BYTES) };
    // SAFETY: the line has 64 bytes, all initialised, which are read; the load takes any alignment.
    unsafe { _mm512_loadu_si512(core::ptr::from_ref(line).cast()) }
}
