//! Packing and unpacking: the data of elements in memory, and the same data as bytes one after the other.

use crate::copy::{Packing, Unpacking};
use crate::memory::{Source, Target};
use crate::program::Op;
use crate::{Error, Program, Result};

/// A cursor over the data of some elements in memory, which copies it out as packed bytes.
///
/// It may be at any position of the packed data, also in the middle of a value.
///
/// ```
/// use tagwire_layout::{Basic, Datatype, Packer, Program, Source};
///
/// let every_second = Program::of(&Datatype::of(Basic::U8).vector(4, 1, 2)?);
/// let mut packer = Packer::new(&every_second, 1, Source::of(b"a.b.c.d."))?;
/// let mut out = [0; 3];
/// assert_eq!((packer.pack(&mut out), &out), (3, b"abc"));
/// packer.seek(1)?;
/// assert_eq!((packer.pack(&mut out), &out), (3, b"bcd"));
/// assert_eq!(packer.pack(&mut out), 0);
/// # Ok::<(), tagwire_layout::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Packer<'a> {
    cursor: Cursor,
    source: Source<'a>,
}

/// A cursor over the data of some elements in memory, which fills it from packed bytes. See [`Packer`].
#[derive(Debug)]
pub struct Unpacker<'a> {
    cursor: Cursor,
    target: Target<'a>,
}

/// A position in the packed data of some elements.
#[derive(Debug, Clone)]
struct Cursor {
    step: Op,
    length: u64,
    position: u64,
}

impl<'a> Packer<'a> {
    /// Begins to pack `count` elements.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] if the data does not lie within `source`. [`Error::Overflow`] if its size or a bound does not fit
    /// 64 bits.
    pub fn new(program: &Program, count: u64, source: Source<'a>) -> Result<Self> {
        let cursor = Cursor::new(program, count, |span| source.holds(span))?;
        Ok(Self { cursor, source })
    }

    /// Returns how many bytes there are to be packed.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.cursor.length
    }

    /// Returns how many bytes of the packed data come before what is packed next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.cursor.position
    }

    /// Goes to a position of the packed data.
    ///
    /// # Errors
    ///
    /// [`Error::Position`] if it lies behind the end.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        self.cursor.seek(position)
    }

    /// Packs what comes next into the beginning of `out`, and goes on behind it. Returns how many bytes: less than `out` has
    /// only at the end.
    pub fn pack(&mut self, out: &mut [u8]) -> usize {
        let packed = self.pack_at(self.cursor.position, out);
        self.cursor.position += packed as u64;
        packed
    }

    /// Packs what is at a position into the beginning of `out`. Returns how many bytes.
    pub fn pack_at(&self, position: u64, out: &mut [u8]) -> usize {
        let (end, bytes) = self.cursor.part(position, out.len());
        if bytes == 0 {
            return 0;
        }
        let mut packing = Packing::new(self.source, &mut out[..bytes]);
        self.cursor.step.run(0, position, end, &mut packing);
        bytes
    }
}

impl<'a> Unpacker<'a> {
    /// Begins to unpack `count` elements.
    ///
    /// # Errors
    ///
    /// As [`Packer::new`], of `target`.
    pub fn new(program: &Program, count: u64, target: Target<'a>) -> Result<Self> {
        let cursor = Cursor::new(program, count, |span| target.holds(span))?;
        Ok(Self { cursor, target })
    }

    /// Returns how many bytes there is room for.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.cursor.length
    }

    /// Returns how many bytes of the packed data come before what is unpacked next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.cursor.position
    }

    /// Goes to a position of the packed data.
    ///
    /// # Errors
    ///
    /// [`Error::Position`] if it lies behind the end.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        self.cursor.seek(position)
    }

    /// Unpacks the beginning of `bytes`, and goes on behind it. Returns how many bytes: less than there are only at the end.
    pub fn unpack(&mut self, bytes: &[u8]) -> usize {
        let unpacked = self.unpack_at(self.cursor.position, bytes);
        self.cursor.position += unpacked as u64;
        unpacked
    }

    /// Unpacks the beginning of `bytes` as what is at a position. Returns how many bytes.
    pub fn unpack_at(&mut self, position: u64, bytes: &[u8]) -> usize {
        let (end, length) = self.cursor.part(position, bytes.len());
        if length == 0 {
            return 0;
        }
        let mut unpacking = Unpacking::new(&mut self.target, &bytes[..length]);
        self.cursor.step.run(0, position, end, &mut unpacking);
        length
    }
}

impl Cursor {
    fn new(program: &Program, count: u64, holds: impl Fn((i64, i64)) -> bool) -> Result<Self> {
        let (step, span) = program.placed(count)?;
        let (low, high) = (span.start, span.end);
        let length = step.packed();
        if length > 0 && !holds((low, high)) {
            return Err(Error::Outside { low, high });
        }
        Ok(Self {
            step,
            length,
            position: 0,
        })
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        let length = self.length;
        if position > length {
            return Err(Error::Position { position, length });
        }
        self.position = position;
        Ok(())
    }

    /// Returns where a part ends that begins at a position and has `room`, and how long it is.
    #[inline]
    fn part(&self, position: u64, room: usize) -> (u64, usize) {
        let left = self.length.saturating_sub(position);
        let bytes = left.min(room as u64);
        (position + bytes, bytes as usize)
    }
}
