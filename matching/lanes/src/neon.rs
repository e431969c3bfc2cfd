//! The kernels with NEON, which every AArch64 processor has: four vectors of 16 bytes.
//!
//! NEON has no instruction that gathers a bit of each slot. A slot that hits keeps the bit of its place in a group of eight
//! (four where slots have 32 bits), and the sum over the group is the group's bits.
#![allow(
    unsafe_code,
    reason = "vectors are loaded from arrays by their address"
)]

use core::arch::aarch64::{
    uint8x16_t, uint16x8_t, uint32x4_t, vaddv_u8, vaddvq_u16, vaddvq_u32, vandq_u8, vandq_u16,
    vandq_u32, vceqzq_u8, vceqzq_u16, vceqzq_u32, vdupq_n_u8, vdupq_n_u16, vdupq_n_u32, veorq_u8,
    vget_high_u8, vget_low_u8, vld1q_u8, vreinterpretq_u8_u16, vreinterpretq_u8_u32,
    vreinterpretq_u16_u8, vreinterpretq_u32_u8,
};

use crate::line::{BYTES, Line};

#[target_feature(enable = "neon")]
pub(crate) fn eq_mask_u8x64(keys: &[u8; 64], masks: &[u8; 64], needle: u8) -> u64 {
    let places = load(&PLACES_U8, 0);
    let needle = vdupq_n_u8(needle);
    let hits = |quarter| {
        let bits = vandq_u8(vceqzq_u8(differing(keys, masks, needle, quarter)), places);
        let (low, high) = (vaddv_u8(vget_low_u8(bits)), vaddv_u8(vget_high_u8(bits)));
        u64::from(low) | u64::from(high) << 8
    };
    hits(0) | hits(1) << 16 | hits(2) << 32 | hits(3) << 48
}

#[target_feature(enable = "neon")]
pub(crate) fn eq_mask_u16x32(keys: &[u16; 32], masks: &[u16; 32], needle: u16) -> u32 {
    let places: uint16x8_t = vreinterpretq_u16_u8(load(&PLACES_U16, 0));
    let needle = vreinterpretq_u8_u16(vdupq_n_u16(needle));
    let hits = |quarter| {
        let differing = vreinterpretq_u16_u8(differing(keys, masks, needle, quarter));
        u32::from(vaddvq_u16(vandq_u16(vceqzq_u16(differing), places)))
    };
    hits(0) | hits(1) << 8 | hits(2) << 16 | hits(3) << 24
}

#[target_feature(enable = "neon")]
pub(crate) fn eq_mask_u32x16(keys: &[u32; 16], masks: &[u32; 16], needle: u32) -> u16 {
    bits(|quarter| equal_u32(keys, masks, needle, quarter))
}

#[target_feature(enable = "neon")]
pub(crate) fn hit_mask_u32x16(
    keys: [&[u32; 16]; 2],
    masks: [&[u32; 16]; 2],
    needles: [u32; 2],
) -> u16 {
    bits(|quarter| {
        vandq_u32(
            equal_u32(keys[0], masks[0], needles[0], quarter),
            equal_u32(keys[1], masks[1], needles[1], quarter),
        )
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn equal_u32(keys: &[u32; 16], masks: &[u32; 16], needle: u32, quarter: usize) -> uint32x4_t {
    let needle = vreinterpretq_u8_u32(vdupq_n_u32(needle));
    vceqzq_u32(vreinterpretq_u32_u8(differing(
        keys, masks, needle, quarter,
    )))
}

/// A bit for each of 16 slots of 32 bits, each all ones or all zeros.
#[inline]
#[target_feature(enable = "neon")]
fn bits(equal: impl Fn(usize) -> uint32x4_t) -> u16 {
    let places = vreinterpretq_u32_u8(load(&PLACES_U32, 0));
    let hits = |quarter| vaddvq_u32(vandq_u32(equal(quarter), places));
    (hits(0) | hits(1) << 4 | hits(2) << 8 | hits(3) << 12) as u16
}

/// The bits in which the keys of a quarter differ from the needle, where their masks have ones.
#[inline]
#[target_feature(enable = "neon")]
fn differing<L: Line>(keys: &L, masks: &L, needle: uint8x16_t, quarter: usize) -> uint8x16_t {
    let keys = veorq_u8(load(keys, quarter), needle);
    vandq_u8(keys, load(masks, quarter))
}

/// The quarter of this number, 0 to 3.
#[inline]
#[target_feature(enable = "neon")]
fn load<L: Line>(line: &L, quarter: usize) -> uint8x16_t {
    const { assert!(size_of::<L>() == BYTES) };
    assert!(quarter < BYTES / 16, "a line has four quarters");
    let first = core::ptr::from_ref(line).cast::<u8>();
    // SAFETY: the line has 64 bytes, all initialised, of which the 16 of the quarter are read; the load takes any alignment.
    unsafe { vld1q_u8(first.add(quarter * 16)) }
}

/// The bit of each slot's place in its group.
static PLACES_U8: [u8; 64] = {
    let mut places = [0; 64];
    let mut slot = 0;
    while slot < places.len() {
        places[slot] = 1 << (slot % 8);
        slot += 1;
    }
    places
};

static PLACES_U16: [u16; 32] = {
    let mut places = [0; 32];
    let mut slot = 0;
    while slot < places.len() {
        places[slot] = 1 << (slot % 8);
        slot += 1;
    }
    places
};

static PLACES_U32: [u32; 16] = {
    let mut places = [0; 16];
    let mut slot = 0;
    while slot < places.len() {
        places[slot] = 1 << (slot % 4);
        slot += 1;
    }
    places
};
