//! CRC-32C (Castagnoli's polynomial `0x1EDC6F41`, reflected; RFC 3720, section 12.1 and appendix B.4).
//!
//! With SSE 4.2 by the processor's instruction, which has a latency of three cycles and takes eight bytes: long runs go as three
//! streams at once, which are joined by tables. Elsewhere by tables, eight bytes a step.
#![allow(unsafe_code)]

/// The polynomial, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Bytes of each of the three streams. Shorter ones cost more joins, longer ones leave more to one stream at the end.
#[cfg(target_arch = "x86_64")]
const STRIDE: usize = 256;

/// Returns the checksum of `bytes` behind what came to `crc`; of the first bytes behind 0.
///
/// ```
/// assert_eq!(tagwire_dr::crc::extend(0, b"123456789"), 0xe306_9283);
/// ```
#[inline]
#[must_use]
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has SSE 4.2. JUSTIFICATION: `examples/crc.rs`, ten times the rate of tables.
        return unsafe { sse42::extend(crc, bytes) };
    }
    tables::extend(crc, bytes)
}

/// Returns the checksum of two words, as their little-endian bytes, and `bytes`: [`extend`] of both with one call.
#[inline]
#[must_use]
pub fn with_words(crc: u32, words: [u64; 2], bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has SSE 4.2. JUSTIFICATION: `bench latency -p dr` of short messages.
        return unsafe { sse42::with_words(crc, words, bytes) };
    }
    let [first, second] = words.map(u64::to_le_bytes);
    tables::extend(tables::extend(tables::extend(crc, &first), &second), bytes)
}

/// Returns how checksums are computed here, for reports.
#[must_use]
pub fn means() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        return "SSE 4.2, three streams";
    }
    "tables"
}

#[cfg(target_arch = "x86_64")]
mod sse42 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    use super::{STRIDE, tables};

    #[target_feature(enable = "sse4.2")]
    pub(super) fn extend(crc: u32, bytes: &[u8]) -> u32 {
        !run(!crc, bytes)
    }

    #[target_feature(enable = "sse4.2")]
    pub(super) fn with_words(crc: u32, words: [u64; 2], bytes: &[u8]) -> u32 {
        let state = _mm_crc32_u64(u64::from(!crc), words[0]);
        let state = _mm_crc32_u64(state, words[1]) as u32;
        !run(state, bytes)
    }

    /// Returns the state of the register behind `bytes`.
    #[inline]
    #[target_feature(enable = "sse4.2")]
    fn run(state: u32, mut bytes: &[u8]) -> u32 {
        let mut state = u64::from(state);
        while let Some((block, rest)) = bytes.split_first_chunk::<{ 3 * STRIDE }>() {
            state = three(state, block);
            bytes = rest;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            state = _mm_crc32_u64(state, u64::from_le_bytes(*word));
        }
        let mut state = state as u32;
        for byte in rest {
            state = _mm_crc32_u8(state, *byte);
        }
        state
    }

    /// A block as three streams: each of the later two begins with an empty register, and the earlier ones are moved past it.
    #[inline]
    #[target_feature(enable = "sse4.2")]
    fn three(state: u64, block: &[u8; 3 * STRIDE]) -> u64 {
        let (first, rest) = block.split_at(STRIDE);
        let (second, third) = rest.split_at(STRIDE);
        let [first, second, third] = [first, second, third].map(|bytes| bytes.as_chunks::<8>().0);
        let (mut a, mut b, mut c) = (state, 0, 0);
        for ((x, y), z) in first.iter().zip(second).zip(third) {
            a = _mm_crc32_u64(a, u64::from_le_bytes(*x));
            b = _mm_crc32_u64(b, u64::from_le_bytes(*y));
            c = _mm_crc32_u64(c, u64::from_le_bytes(*z));
        }
        let joined = tables::past_stride(a as u32) ^ b as u32;
        u64::from(tables::past_stride(joined) ^ c as u32)
    }
}

mod tables {
    use super::POLYNOMIAL;
    #[cfg(target_arch = "x86_64")]
    use super::STRIDE;

    /// By byte: what the register becomes, with so many zero bytes behind it as the index says.
    static SLICES: [[u32; 256]; 8] = slices();

    /// By byte of the register: what becomes of it over [`STRIDE`] zero bytes.
    #[cfg(target_arch = "x86_64")]
    static STRIDES: [[u32; 256]; 4] = strides();

    pub(super) fn extend(crc: u32, bytes: &[u8]) -> u32 {
        let mut state = !crc;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let mixed = u64::from_le_bytes(*word) ^ u64::from(state);
            let bytes = mixed.to_le_bytes();
            let slices = SLICES.iter().rev().zip(bytes);
            state = slices.fold(0, |state, (slice, byte)| state ^ slice[usize::from(byte)]);
        }
        for byte in rest {
            state = (state >> 8) ^ SLICES[0][usize::from(state as u8 ^ byte)];
        }
        !state
    }

    /// Returns the register past [`STRIDE`] zero bytes.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn past_stride(state: u32) -> u32 {
        let [a, b, c, d] = state.to_le_bytes().map(usize::from);
        STRIDES[0][a] ^ STRIDES[1][b] ^ STRIDES[2][c] ^ STRIDES[3][d]
    }

    const fn slices() -> [[u32; 256]; 8] {
        let mut slices = [[0; 256]; 8];
        let mut byte = 0;
        while byte < 256 {
            let (mut state, mut bit) = (byte as u32, 0);
            while bit < 8 {
                state = (state >> 1) ^ (POLYNOMIAL & (state & 1).wrapping_neg());
                bit += 1;
            }
            slices[0][byte] = state;
            byte += 1;
        }
        let mut slice = 1;
        while slice < 8 {
            let mut byte = 0;
            while byte < 256 {
                let before = slices[slice - 1][byte];
                slices[slice][byte] = (before >> 8) ^ slices[0][(before & 0xff) as usize];
                byte += 1;
            }
            slice += 1;
        }
        slices
    }

    #[cfg(target_arch = "x86_64")]
    const fn strides() -> [[u32; 256]; 4] {
        // The register is linear: each of its bits by itself first.
        let bytes = slices();
        let mut of_bit = [0; 32];
        let mut bit = 0;
        while bit < 32 {
            let (mut state, mut count) = (1u32 << bit, 0);
            while count < STRIDE {
                state = (state >> 8) ^ bytes[0][(state & 0xff) as usize];
                count += 1;
            }
            of_bit[bit] = state;
            bit += 1;
        }
        let mut strides = [[0; 256]; 4];
        let mut index = 0;
        while index < 4 * 256 {
            let (place, byte) = (index / 256, index % 256);
            let mut bit = 0;
            while bit < 8 {
                if byte >> bit & 1 == 1 {
                    strides[place][byte] ^= of_bit[8 * place + bit];
                }
                bit += 1;
            }
            index += 1;
        }
        strides
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tagwire_transport::fault::SplitMix64;

    /// Bit by bit, as the polynomial says.
    fn plain(crc: u32, bytes: &[u8]) -> u32 {
        let mut state = !crc;
        for byte in bytes {
            state ^= u32::from(*byte);
            for _ in 0..8 {
                state = (state >> 1) ^ if state & 1 == 1 { POLYNOMIAL } else { 0 };
            }
        }
        !state
    }

    /// RFC 3720, appendix B.4.
    #[test]
    fn the_published_values_come_out() {
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        let values: [(&[u8], u32); 4] = [
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&rising, 0x46dd_794e),
            (&falling, 0x113f_db5c),
        ];
        for (bytes, crc) in values {
            assert_eq!((extend(0, bytes), tables::extend(0, bytes)), (crc, crc));
        }
    }

    #[test]
    fn all_ways_are_one_function() {
        let mut random = SplitMix64::new(1);
        let bytes = random.bytes(5000);
        for len in (0..100).chain([767, 768, 769, 1535, 1536, 2304, 4999]) {
            let start = random.below(2) as usize;
            let (crc, bytes) = (random.next_u64() as u32, &bytes[start..start + len]);
            let expected = plain(crc, bytes);
            assert_eq!(extend(crc, bytes), expected, "{len} bytes");
            assert_eq!(
                tables::extend(crc, bytes),
                expected,
                "{len} bytes by tables"
            );
            let (first, second) = bytes.split_at(len / 3);
            assert_eq!(extend(extend(crc, first), second), expected, "{len} in two");
            let words = [random.next_u64(), random.next_u64()];
            let all = [&words[0].to_le_bytes(), &words[1].to_le_bytes(), bytes].concat();
            assert_eq!(
                with_words(crc, words, bytes),
                plain(crc, &all),
                "{len} behind words"
            );
        }
    }
}
