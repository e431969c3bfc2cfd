//! Copies of many blocks: out of a program's memory into packed bytes, and back.
//!
//! Blocks of one length have a loop of that length, of which the compiler makes moves of registers. Lengths in between take
//! two moves that overlap. Each call checks once that all of its blocks lie in memory that may be touched.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::memory::{Source, Target};
use crate::program::{List, Mover};
use crate::rows::{Rows, one};

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

    /// Returns the next packed bytes, to be written.
    #[inline]
    fn take(&mut self, bytes: usize) -> &'a mut [u8] {
        let (now, rest) = std::mem::take(&mut self.out).split_at_mut(bytes);
        self.out = rest;
        now
    }
}

impl<'a, 'm> Unpacking<'a, 'm> {
    pub(crate) const fn new(target: &'a mut Target<'m>, bytes: &'a [u8]) -> Self {
        Self { target, bytes }
    }

    /// Returns the next packed bytes.
    #[inline]
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (now, rest) = self.bytes.split_at(bytes);
        self.bytes = rest;
        now
    }
}

impl Mover for Packing<'_, '_> {
    #[inline]
    fn strided(&mut self, offset: i64, length: usize, stride: i64, count: usize) {
        let span = span(offset, (0, length as i64), stride, count);
        assert!(
            self.source.holds(span),
            "a block lies outside of its memory"
        );
        let now = self.take(product(length, count));
        let rows = Rows {
            source: self.source.pointer(offset),
            source_stride: stride as isize,
            target: now.as_mut_ptr(),
            target_stride: length as isize,
            count,
        };
        // SAFETY: all blocks lie in what the source holds, which may be read, and `now` has the bytes of as many. They do not
        // overlap: `now` is borrowed exclusively, and who made the source of an address promised it.
        // JUSTIFICATION: copies of slices would check each block (bench `packing`).
        unsafe { rows.copy(length) };
    }

    #[inline]
    fn list(&mut self, offset: i64, list: &List, range: Range<usize>) {
        let span = span(offset, list.span(), 0, 1);
        assert!(self.source.holds(span), "a list lies outside of its memory");
        let packed = list.begin(range.end) - list.begin(range.start);
        let mut out = self.take(packed as usize).as_mut_ptr();
        for block in &list.blocks()[range] {
            let length = block.length as usize;
            // SAFETY: the block lies in the span of its list, which the source holds. There is room for the bytes of all
            // blocks in the range, as `List::new` counted them. JUSTIFICATION: as in `strided`.
            unsafe {
                one(
                    self.source.pointer(offset.wrapping_add(block.offset)),
                    out,
                    length,
                );
                out = out.add(length);
            }
        }
    }

    fn lists(&mut self, offset: i64, list: &List, stride: i64, count: usize) {
        let span = span(offset, list.span(), stride, count);
        assert!(self.source.holds(span), "a list lies outside of its memory");
        let packed = list.packed() as usize;
        let now = self.take(product(packed, count)).as_mut_ptr();
        for tile in tiles(list, stride, count) {
            let turn = offset.wrapping_add(stride * tile.start as i64);
            let out = tile.start * packed;
            for (number, block) in list.blocks().iter().enumerate() {
                let begin = out + list.begin(number) as usize;
                let rows = Rows {
                    source: self.source.pointer(turn.wrapping_add(block.offset)),
                    source_stride: stride as isize,
                    // SAFETY: `begin` is less than the bytes of all lists, which `now` has.
                    target: unsafe { now.add(begin) },
                    target_stride: packed as isize,
                    count: tile.len(),
                };
                // SAFETY: the blocks of this number lie in the spans of the lists, all of which the source holds. Those of
                // the packed bytes lie in the packed bytes of as many lists, as `List::new` counted them.
                // JUSTIFICATION: a loop for each length takes a twentieth of the time of blocks one by one (bench `packing`).
                unsafe { rows.copy(block.length as usize) };
            }
        }
    }
}

impl Mover for Unpacking<'_, '_> {
    #[inline]
    fn strided(&mut self, offset: i64, length: usize, stride: i64, count: usize) {
        let span = span(offset, (0, length as i64), stride, count);
        assert!(
            self.target.holds(span),
            "a block lies outside of its memory"
        );
        let now = self.take(product(length, count));
        let rows = Rows {
            source: now.as_ptr(),
            source_stride: length as isize,
            target: self.target.pointer(offset),
            target_stride: stride as isize,
            count,
        };
        // SAFETY: all blocks lie in what the target holds, which may be written, and `now` has the bytes of as many. They do
        // not overlap: the target stands for memory that is borrowed exclusively. JUSTIFICATION: as for `Packing`.
        unsafe { rows.copy(length) };
    }

    #[inline]
    fn list(&mut self, offset: i64, list: &List, range: Range<usize>) {
        let span = span(offset, list.span(), 0, 1);
        assert!(self.target.holds(span), "a list lies outside of its memory");
        let packed = list.begin(range.end) - list.begin(range.start);
        let mut bytes = self.take(packed as usize).as_ptr();
        for block in &list.blocks()[range] {
            let length = block.length as usize;
            // SAFETY: the block lies in the span of its list, which the target holds. There are the bytes of all blocks in
            // the range, as `List::new` counted them. JUSTIFICATION: as for `Packing`.
            unsafe {
                one(
                    bytes,
                    self.target.pointer(offset.wrapping_add(block.offset)),
                    length,
                );
                bytes = bytes.add(length);
            }
        }
    }

    fn lists(&mut self, offset: i64, list: &List, stride: i64, count: usize) {
        // Of a byte that is named twice, the last value stays: then the order of the turns must be kept.
        if !list.is_disjoint(stride) {
            for number in 0..count {
                let offset = offset.wrapping_add(stride.wrapping_mul(number as i64));
                self.list(offset, list, 0..list.blocks().len());
            }
            return;
        }
        let span = span(offset, list.span(), stride, count);
        assert!(self.target.holds(span), "a list lies outside of its memory");
        let packed = list.packed() as usize;
        let now = self.take(product(packed, count)).as_ptr();
        for tile in tiles(list, stride, count) {
            let turn = offset.wrapping_add(stride * tile.start as i64);
            let bytes = tile.start * packed;
            for (number, block) in list.blocks().iter().enumerate() {
                let begin = bytes + list.begin(number) as usize;
                let rows = Rows {
                    // SAFETY: `begin` is less than the bytes of all lists, which `now` has.
                    source: unsafe { now.add(begin) },
                    source_stride: packed as isize,
                    target: self.target.pointer(turn.wrapping_add(block.offset)),
                    target_stride: stride as isize,
                    count: tile.len(),
                };
                // SAFETY: as for `Packing`, with the target for the source. JUSTIFICATION: as there.
                unsafe { rows.copy(block.length as usize) };
            }
        }
    }
}

/// Returns the displacements of the first byte and of what is behind the last one, of `count` pieces that are `stride` apart
/// and of which each lies `within` its own displacement.
///
/// Displacements add up modulo 2^64. Where the first piece does not go around, nor does any
/// byte of it.
#[inline]
fn span(offset: i64, within: (i64, i64), stride: i64, count: usize) -> (i64, i64) {
    let ends = || {
        let distance = stride.checked_mul(i64::try_from(count).ok()? - 1)?;
        let low = offset.wrapping_add(within.0);
        let high = offset.wrapping_add(within.1);
        if low > high {
            return None;
        }
        Some((
            low.checked_add(distance.min(0))?,
            high.checked_add(distance.max(0))?,
        ))
    };
    match ends() {
        Some(ends) => ends,
        None => panic!("blocks lie outside of all memory"),
    }
}

/// Returns how many bytes some blocks have.
#[inline]
fn product(length: usize, count: usize) -> usize {
    match length.checked_mul(count) {
        Some(bytes) => bytes,
        None => panic!("blocks are longer than all memory"),
    }
}

/// Returns the turns of a list in ranges: as many as stay in the first-level cache while each block has its own loop. Of a
/// long list each turn is a range.
fn tiles(list: &List, stride: i64, count: usize) -> impl Iterator<Item = Range<usize>> {
    /// How many bytes of memory the turns of a range span.
    const CACHED: u64 = 16 * 1024;
    /// How many blocks a list may have to get loops of their own.
    const SHORT: usize = 32;

    let turns = match list.blocks().len() {
        0..=SHORT => (CACHED / stride.unsigned_abs().max(1)).clamp(1, count as u64) as usize,
        _ => 1,
    };
    (0..count)
        .step_by(turns)
        .map(move |first| first..count.min(first + turns))
}
