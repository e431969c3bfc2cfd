//! The kernels as loops: what all others have to return.

pub(crate) fn eq_mask_u8x64(keys: &[u8; 64], masks: &[u8; 64], needle: u8) -> u64 {
    let slots = keys.iter().zip(masks).enumerate();
    slots.fold(0, |hits, (slot, (key, mask))| {
        hits | u64::from((key ^ needle) & mask == 0) << slot
    })
}

pub(crate) fn eq_mask_u16x32(keys: &[u16; 32], masks: &[u16; 32], needle: u16) -> u32 {
    let slots = keys.iter().zip(masks).enumerate();
    slots.fold(0, |hits, (slot, (key, mask))| {
        hits | u32::from((key ^ needle) & mask == 0) << slot
    })
}

pub(crate) fn eq_mask_u32x16(keys: &[u32; 16], masks: &[u32; 16], needle: u32) -> u16 {
    let slots = keys.iter().zip(masks).enumerate();
    slots.fold(0, |hits, (slot, (key, mask))| {
        hits | u16::from((key ^ needle) & mask == 0) << slot
    })
}

pub(crate) fn hit_mask_u32x16(
    keys: [&[u32; 16]; 2],
    masks: [&[u32; 16]; 2],
    needles: [u32; 2],
) -> u16 {
    eq_mask_u32x16(keys[0], masks[0], needles[0]) & eq_mask_u32x16(keys[1], masks[1], needles[1])
}
