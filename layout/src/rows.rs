//! Equal blocks, equally spaced on both sides: a loop for each length.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::ptr;

/// Blocks of one length, at distances of their own on both sides.
pub(crate) struct Rows {
    pub(crate) source: *const u8,
    pub(crate) source_stride: isize,
    pub(crate) target: *mut u8,
    pub(crate) target_stride: isize,
    pub(crate) count: usize,
}

impl Rows {
    /// Copies blocks of `length` bytes, the first one first.
    ///
    /// # Safety
    ///
    /// All blocks of the source may be read, all of the target may be written, and none of the source overlaps one of the
    /// target.
    #[inline]
    pub(crate) unsafe fn copy(self, length: usize) {
        // SAFETY: the caller promised for `length` what all of these ask for.
        unsafe {
            match length {
                _ if self.count == 1 => one(self.source, self.target, length),
                1 => self.fixed::<1>(),
                2 => self.fixed::<2>(),
                #[cfg(target_arch = "x86_64")]
                4 if self.target_stride == 4 => self.gather4(),
                4 => self.fixed::<4>(),
                #[cfg(target_arch = "x86_64")]
                8 if self.target_stride == 8 => self.gather8(),
                8 => self.fixed::<8>(),
                12 => self.fixed::<12>(),
                16 => self.fixed::<16>(),
                24 => self.fixed::<24>(),
                32 => self.fixed::<32>(),
                3..=32 => self.each(|from, to| short(from, to, length)),
                #[cfg(target_arch = "x86_64")]
                33..=LONG if is_x86_feature_detected!("avx2") => self.middles_avx2(length),
                33..=MIDDLE => self.singly(|from, to| middle(from, to, length)),
                _ => self.singly(|from, to| ptr::copy_nonoverlapping(from, to, length)),
            }
        }
    }

    /// # Safety
    ///
    /// As [`copy`](Self::copy), for a length of `N`.
    #[inline(always)]
    unsafe fn fixed<const N: usize>(self) {
        // SAFETY: the caller promised it for each block.
        self.each(|from, to| unsafe {
            let block = from.cast::<[u8; N]>().read_unaligned();
            to.cast::<[u8; N]>().write_unaligned(block);
        });
    }

    /// Copies blocks by moves of 32 bytes.
    ///
    /// # Safety
    ///
    /// As [`copy`](Self::copy), for a length of at least 32; the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn middles_avx2(self, length: usize) {
        // SAFETY: the caller promised it for each block.
        // JUSTIFICATION: blocks of 256 bytes take five sixths of the time of calls of the C library (bench `packing`).
        self.singly(|from, to| unsafe { middle(from, to, length) });
    }

    /// Copies blocks of 8 bytes to where they are neighbours, two by one move.
    ///
    /// # Safety
    ///
    /// As [`copy`](Self::copy), for a length of 8; the target has no gaps.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn gather8(self) {
        use std::arch::x86_64::{
            __m128i, _mm_castpd_si128, _mm_castsi128_pd, _mm_loadh_pd, _mm_loadl_epi64,
            _mm_storeu_si128,
        };

        // SAFETY: four blocks are read and 32 bytes written, which the caller promised. SSE2 is part of x86-64.
        // JUSTIFICATION: two thirds of the time of one block after the other (bench `packing`).
        self.fours::<8>(|blocks, to| unsafe {
            let pair = |low: *const u8, high: *const u8, to: *mut u8| {
                let low = _mm_castsi128_pd(_mm_loadl_epi64(low.cast()));
                let both = _mm_loadh_pd(low, high.cast());
                _mm_storeu_si128(to.cast::<__m128i>(), _mm_castpd_si128(both));
            };
            pair(blocks[0], blocks[1], to);
            pair(blocks[2], blocks[3], to.add(16));
        });
    }

    /// Copies blocks of 4 bytes to where they are neighbours, four by one move.
    ///
    /// # Safety
    ///
    /// As [`copy`](Self::copy), for a length of 4; the target has no gaps.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn gather4(self) {
        use std::arch::x86_64::{
            __m128i, _mm_cvtsi32_si128, _mm_storeu_si128, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        };

        // SAFETY: four blocks are read and 16 bytes written, which the caller promised. SSE2 is part of x86-64.
        // JUSTIFICATION: as for blocks of 8 bytes.
        self.fours::<4>(|blocks, to| unsafe {
            let at =
                |number: usize| _mm_cvtsi32_si128(blocks[number].cast::<i32>().read_unaligned());
            let low = _mm_unpacklo_epi32(at(0), at(1));
            let high = _mm_unpacklo_epi32(at(2), at(3));
            _mm_storeu_si128(to.cast::<__m128i>(), _mm_unpacklo_epi64(low, high));
        });
    }

    /// Calls a function with the places of four blocks and of their target, which is one; copies the last ones one by one.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn fours<const N: usize>(self, copy: impl Fn([*const u8; 4], *mut u8)) {
        let (mut source, mut target) = (self.source, self.target);
        let steps = Steps::of(self.source_stride);
        for _ in 0..self.count / 4 {
            copy(steps.from(source), target);
            source = source.wrapping_offset(steps.four);
            target = target.wrapping_add(4 * N);
        }
        let rest = Self {
            source,
            target,
            count: self.count % 4,
            ..self
        };
        // SAFETY: these are the last blocks of those that the caller of the groups was promised.
        unsafe { rest.fixed::<N>() };
    }

    /// Calls a function with the place of each block at the source and at the target, by turns of four.
    #[inline(always)]
    fn each(self, copy: impl Fn(*const u8, *mut u8)) {
        let (mut source, mut target) = (self.source, self.target.cast_const());
        let (from, to) = (Steps::of(self.source_stride), Steps::of(self.target_stride));
        for _ in 0..self.count / 4 {
            for (source, target) in from.from(source).into_iter().zip(to.from(target)) {
                copy(source, target.cast_mut());
            }
            source = source.wrapping_offset(from.four);
            target = target.wrapping_offset(to.four);
        }
        let rest = Self {
            source,
            target: target.cast_mut(),
            count: self.count % 4,
            ..self
        };
        rest.singly(copy);
    }

    /// Calls a function with the place of each block at the source and at the target.
    #[inline(always)]
    fn singly(self, copy: impl Fn(*const u8, *mut u8)) {
        let (mut source, mut target) = (self.source, self.target);
        for _ in 0..self.count {
            copy(source, target);
            source = source.wrapping_offset(self.source_stride);
            target = target.wrapping_offset(self.target_stride);
        }
    }
}

/// Multiples of a stride, so that no address waits for the one before it. The compiler would make a chain of additions of
/// them, so it is kept from knowing what they are (bench `packing`).
#[derive(Clone, Copy)]
struct Steps {
    one: isize,
    two: isize,
    three: isize,
    four: isize,
}

impl Steps {
    #[inline(always)]
    fn of(stride: isize) -> Self {
        let times = |number| black_box(stride.wrapping_mul(number));
        Self {
            one: stride,
            two: times(2),
            three: times(3),
            four: times(4),
        }
    }

    #[inline(always)]
    fn from(self, first: *const u8) -> [*const u8; 4] {
        [
            first,
            first.wrapping_offset(self.one),
            first.wrapping_offset(self.two),
            first.wrapping_offset(self.three),
        ]
    }
}

/// Longer blocks are left to the C library: where there are registers of 16 bytes, and where there are some of 32.
const MIDDLE: usize = 128;
#[cfg(target_arch = "x86_64")]
const LONG: usize = 512;

/// Copies one block of any length.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`].
#[inline(always)]
pub(crate) unsafe fn one(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller promised for `length` what these ask for.
    unsafe {
        match length {
            0..=32 => short(from, to, length),
            33..=MIDDLE => middle(from, to, length),
            _ => ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

/// Copies up to 32 bytes by two moves, which overlap unless the length is twice theirs.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn short(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: each arm moves bytes from 0 on and bytes up to `length`, and is taken where those are no more than there are.
    unsafe {
        match length {
            17..=32 => twice::<16>(from, to, length),
            8..=16 => twice::<8>(from, to, length),
            4..=7 => twice::<4>(from, to, length),
            2..=3 => twice::<2>(from, to, length),
            1 => *to = *from,
            _ => {}
        }
    }
}

/// Copies more than 32 bytes by moves of 32, of which the last two may overlap.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`]; there are at least 32 bytes.
#[inline(always)]
unsafe fn middle(from: *const u8, to: *mut u8, length: usize) {
    let mut at = 0;
    // SAFETY: `at + 32` is less than `length` in the loop, and at the end 32 bytes up to `length` are moved.
    unsafe {
        while at + 32 < length {
            let part = from.add(at).cast::<[u8; 32]>().read_unaligned();
            to.add(at).cast::<[u8; 32]>().write_unaligned(part);
            at += 32;
        }
        let part = from.add(length - 32).cast::<[u8; 32]>().read_unaligned();
        to.add(length - 32).cast::<[u8; 32]>().write_unaligned(part);
    }
}

/// Copies `N` bytes at the beginning and `N` at the end.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`]; there are at least `N` bytes.
#[inline(always)]
unsafe fn twice<const N: usize>(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: both moves lie within the `length` bytes.
    unsafe {
        let first = from.cast::<[u8; N]>().read_unaligned();
        let last = from.add(length - N).cast::<[u8; N]>().read_unaligned();
        to.cast::<[u8; N]>().write_unaligned(first);
        to.add(length - N).cast::<[u8; N]>().write_unaligned(last);
    }
}
