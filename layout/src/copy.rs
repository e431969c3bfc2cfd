//! Copies of many blocks: out of a program's memory into packed bytes, and back.
//!
//! Blocks of one length have a loop of that length, which the compiler unrolls and makes vector instructions of. Lengths in
//! between take two moves that overlap.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr;

use crate::memory::{Source, Target};
use crate::program::{List, Mover};

/// Packs: fills `out` from the front.
pub(crate) struct Packing<'a, 'm> {
    source: Source<'m>,
    out: &'a mut [u8],
}

/// Unpacks: takes `bytes` from the front.
pub(crate) struct Unpacking<'a, 'm> {
    target: &'a mut Target<'m>,
    bytes: &'a [u8],
}

impl<'a, 'm> Packing<'a, 'm> {
    pub(crate) const fn new(source: Source<'m>, out: &'a mut [u8]) -> Self {
        Self { source, out }
    }
}

impl<'a, 'm> Unpacking<'a, 'm> {
    pub(crate) const fn new(target: &'a mut Target<'m>, bytes: &'a [u8]) -> Self {
        Self { target, bytes }
    }
}

impl Mover for Packing<'_, '_> {
    #[inline]
    fn strided(&mut self, offset: i64, length: usize, stride: i64, count: usize) {
        let (low, high) = ends(offset, length, stride, count);
        assert!(
            self.source.holds(low, high),
            "a block lies outside of its memory"
        );
        let (now, rest) = std::mem::take(&mut self.out).split_at_mut(length * count);
        let rows = Rows {
            source: self.source.pointer(offset),
            target: now.as_mut_ptr(),
            count,
        };
        // SAFETY: all blocks lie in what the source holds, which may be read, and `now` has the bytes of as many. They do not
        // overlap: `now` is borrowed exclusively, and who made the source of an address promised it.
        // JUSTIFICATION: copies of slices would check each block (bench `packing`).
        unsafe { rows.copy::<true>(length, stride as isize) };
        self.out = rest;
    }

    #[inline]
    fn list(&mut self, offset: i64, list: &List, range: Range<usize>) {
        let (low, high) = list.span();
        let ends = (offset.checked_add(low), offset.checked_add(high));
        let (Some(low), Some(high)) = ends else {
            panic!("a list lies outside of all memory");
        };
        assert!(
            self.source.holds(low, high),
            "a list lies outside of its memory"
        );
        let packed = list.begin(range.end) - list.begin(range.start);
        let (now, rest) = std::mem::take(&mut self.out).split_at_mut(packed as usize);
        let mut out = now.as_mut_ptr();
        for block in &list.blocks()[range] {
            let length = block.length as usize;
            // SAFETY: the block lies in the span of its list, which the source holds. `now` has the bytes of all blocks in the
            // range, as `List::new` counted them, so there is room for this one. JUSTIFICATION: as in `strided`.
            unsafe {
                one(self.source.pointer(offset + block.offset), out, length);
                out = out.add(length);
            }
        }
        self.out = rest;
    }
}

impl Mover for Unpacking<'_, '_> {
    #[inline]
    fn strided(&mut self, offset: i64, length: usize, stride: i64, count: usize) {
        let (low, high) = ends(offset, length, stride, count);
        assert!(
            self.target.holds(low, high),
            "a block lies outside of its memory"
        );
        let (now, rest) = self.bytes.split_at(length * count);
        let rows = Rows {
            source: now.as_ptr(),
            target: self.target.pointer(offset),
            count,
        };
        // SAFETY: all blocks lie in what the target holds, which may be written, and `now` has the bytes of as many. They do
        // not overlap: the target stands for memory that is borrowed exclusively. JUSTIFICATION: as for `Packing`.
        unsafe { rows.copy::<false>(length, stride as isize) };
        self.bytes = rest;
    }

    #[inline]
    fn list(&mut self, offset: i64, list: &List, range: Range<usize>) {
        let (low, high) = list.span();
        let ends = (offset.checked_add(low), offset.checked_add(high));
        let (Some(low), Some(high)) = ends else {
            panic!("a list lies outside of all memory");
        };
        assert!(
            self.target.holds(low, high),
            "a list lies outside of its memory"
        );
        let packed = list.begin(range.end) - list.begin(range.start);
        let (now, rest) = self.bytes.split_at(packed as usize);
        let mut bytes = now.as_ptr();
        for block in &list.blocks()[range] {
            let length = block.length as usize;
            // SAFETY: the block lies in the span of its list, which the target holds. `now` has the bytes of all blocks in the
            // range, as `List::new` counted them. JUSTIFICATION: as for `Packing`.
            unsafe {
                one(bytes, self.target.pointer(offset + block.offset), length);
                bytes = bytes.add(length);
            }
        }
        self.bytes = rest;
    }
}

/// Returns the displacements of the first byte of some blocks and of what is behind the last one.
#[inline]
fn ends(offset: i64, length: usize, stride: i64, count: usize) -> (i64, i64) {
    let last = i64::try_from(count)
        .ok()
        .and_then(|count| stride.checked_mul(count - 1))
        .and_then(|distance| offset.checked_add(distance));
    let high = |last: i64| last.max(offset).checked_add(length as i64);
    match last.and_then(|last| Some((last.min(offset), high(last)?))) {
        Some(ends) => ends,
        None => panic!("blocks lie outside of all memory"),
    }
}

/// Blocks of one length, a stride apart on one side and next to each other on the other.
struct Rows {
    source: *const u8,
    target: *mut u8,
    count: usize,
}

impl Rows {
    /// Copies blocks of `length` bytes: those at the source are `stride` apart if `GATHER`, else those at the target.
    ///
    /// # Safety
    ///
    /// All of them may be read or written, and no source overlaps a target.
    #[inline]
    unsafe fn copy<const GATHER: bool>(self, length: usize, stride: isize) {
        // SAFETY: the caller promised for `length` what all of these ask for.
        unsafe {
            match length {
                _ if self.count == 1 => one(self.source, self.target, length),
                1 => self.fixed::<GATHER, 1>(stride),
                2 => self.fixed::<GATHER, 2>(stride),
                4 => self.fixed::<GATHER, 4>(stride),
                8 => self.fixed::<GATHER, 8>(stride),
                12 => self.fixed::<GATHER, 12>(stride),
                16 => self.fixed::<GATHER, 16>(stride),
                24 => self.fixed::<GATHER, 24>(stride),
                32 => self.fixed::<GATHER, 32>(stride),
                3..=32 => self.each::<GATHER>(length, stride, |from, to| short(from, to, length)),
                33..=256 => {
                    self.each::<GATHER>(length, stride, |from, to| middle(from, to, length))
                }
                _ => self.each::<GATHER>(length, stride, |from, to| {
                    ptr::copy_nonoverlapping(from, to, length);
                }),
            }
        }
    }

    /// # Safety
    ///
    /// As [`copy`](Self::copy), for a length of `N`.
    #[inline(always)]
    unsafe fn fixed<const GATHER: bool, const N: usize>(self, stride: isize) {
        let Self {
            mut source,
            mut target,
            count,
        } = self;
        let at = |number: isize| stride.wrapping_mul(number);
        // SAFETY: the blocks that are read and written are among the `count` ones that the caller promised.
        unsafe {
            for _ in 0..count / 4 {
                if GATHER {
                    let four: [[u8; N]; 4] = [
                        source.cast::<[u8; N]>().read_unaligned(),
                        source
                            .wrapping_offset(stride)
                            .cast::<[u8; N]>()
                            .read_unaligned(),
                        source
                            .wrapping_offset(at(2))
                            .cast::<[u8; N]>()
                            .read_unaligned(),
                        source
                            .wrapping_offset(at(3))
                            .cast::<[u8; N]>()
                            .read_unaligned(),
                    ];
                    target.cast::<[[u8; N]; 4]>().write_unaligned(four);
                    source = source.wrapping_offset(at(4));
                    target = target.add(4 * N);
                } else {
                    let four = source.cast::<[[u8; N]; 4]>().read_unaligned();
                    for (number, block) in four.into_iter().enumerate() {
                        let place = target.wrapping_offset(at(number as isize));
                        place.cast::<[u8; N]>().write_unaligned(block);
                    }
                    target = target.wrapping_offset(at(4));
                    source = source.add(4 * N);
                }
            }
            let rest = Self {
                source,
                target,
                count: count % 4,
            };
            rest.each::<GATHER>(N, stride, |from, to| {
                let block = from.cast::<[u8; N]>().read_unaligned();
                to.cast::<[u8; N]>().write_unaligned(block);
            });
        }
    }

    /// Calls a function with the place of each block at the source and at the target.
    #[inline(always)]
    fn each<const GATHER: bool>(
        self,
        length: usize,
        stride: isize,
        copy: impl Fn(*const u8, *mut u8),
    ) {
        let (mut source, mut target) = (self.source, self.target);
        for _ in 0..self.count {
            copy(source, target);
            if GATHER {
                (source, target) = (source.wrapping_offset(stride), target.wrapping_add(length));
            } else {
                (source, target) = (source.wrapping_add(length), target.wrapping_offset(stride));
            }
        }
    }
}

/// Copies one block of any length.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn one(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller promised for `length` what these ask for.
    unsafe {
        match length {
            0..=32 => short(from, to, length),
            33..=256 => middle(from, to, length),
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

/// Copies 33 to 256 bytes by moves of 32, of which the last two may overlap.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`]; there are at least 32 bytes.
#[inline(always)]
unsafe fn middle(from: *const u8, to: *mut u8, length: usize) {
    let mut at = 0;
    // SAFETY: `at + 32` is at most `length` in the loop, and at the end 32 bytes up to `length` are moved.
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
