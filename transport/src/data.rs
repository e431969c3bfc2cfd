//! Data cursors: where the bytes of a message come from and where they go.
//!
//! A cursor names memory that its owner has lent until an operation completes. Making one is
//! `unsafe`, because nothing in the type system ties it to the memory: the safe interfaces above
//! (scopes, owned buffers) do. Using one is safe.
//!
//! A region, [`ReadRegion`] or [`WriteRegion`], is the address and the length of such memory. It may outlive
//! the loan, as a raw pointer may: only unsafe code gets at bytes by it.
//!
//! Three shapes exist: one contiguous region, a list of regions, and a pack or unpack callback
//! that walks a layout (an MPI datatype, say).
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::ptr;

use crate::message::Payload;

/// Where memory lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory of this process.
    Host,
}

/// Produces the bytes of a message whose layout is not contiguous.
pub trait Pack: Send {
    /// Total length in bytes.
    fn len(&self) -> usize;

    /// Whether there is nothing to send.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bytes from `offset` on into `out`, which it fills; never asked beyond `len`.
    fn pack(&self, offset: usize, out: &mut [u8]);
}

/// Consumes the bytes of a message whose layout is not contiguous.
pub trait Unpack: Send {
    /// How many bytes there is room for.
    fn capacity(&self) -> usize;

    /// Takes `bytes`, which lie at `offset` in the message; never given more than `capacity`.
    fn unpack(&self, offset: usize, bytes: &[u8]);
}

/// The address and the length of memory that is read. It promises no more than a raw pointer does: the
/// memory is there while the buffer that the region was taken from is lent.
///
/// Safe code does not get at the bytes by it:
///
/// ```compile_fail,E0133
/// # use tagwire_transport::SendBuffer;
/// let region = SendBuffer::EMPTY.region().unwrap();
/// let again = SendBuffer::of(region); // error: call to unsafe function
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ReadRegion {
    start: *const u8,
    len: usize,
}

/// The address and the length of memory that is written; else as a [`ReadRegion`].
#[derive(Debug, Clone, Copy)]
pub struct WriteRegion {
    start: *mut u8,
    len: usize,
}

// SAFETY: an address and a length, by which safe code cannot get at any byte.
unsafe impl Send for ReadRegion {}
// SAFETY: as above.
unsafe impl Send for WriteRegion {}

impl ReadRegion {
    pub(crate) const fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// The address, as an operand for a remote access.
    #[must_use]
    pub fn address(self) -> u64 {
        self.start.addr() as u64
    }

    /// The first byte.
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> *const u8 {
        self.start
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the part at `range`; `None` where that reaches outside.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Option<Self> {
        let fits = range.start <= range.end && range.end <= self.len;
        fits.then(|| Self {
            start: self.start.wrapping_add(range.start),
            len: range.len(),
        })
    }
}

impl WriteRegion {
    /// Room for nothing.
    pub(crate) const EMPTY: Self = Self {
        start: ptr::dangling_mut(),
        len: 0,
    };

    #[cfg(feature = "coll")]
    pub(crate) const fn of(bytes: &mut [u8]) -> Self {
        Self {
            start: bytes.as_mut_ptr(),
            len: bytes.len(),
        }
    }

    /// The address, as an operand for a remote access.
    #[must_use]
    pub fn address(self) -> u64 {
        self.start.addr() as u64
    }

    /// The first byte.
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the part at `range`; `None` where that reaches outside.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Option<Self> {
        let fits = range.start <= range.end && range.end <= self.len;
        fits.then(|| Self {
            start: self.start.wrapping_add(range.start),
            len: range.len(),
        })
    }
}

/// Regions of a message, one after the other.
struct Regions<R> {
    /// Each with the position at which it ends.
    list: Box<[(usize, R)]>,
}

impl<R: Copy> Regions<R> {
    fn new(regions: impl Iterator<Item = R>, len: impl Fn(R) -> usize) -> Self {
        let mut end = 0;
        let list = regions.map(|region| {
            end += len(region);
            (end, region)
        });
        Self {
            list: list.collect(),
        }
    }

    fn total(&self) -> usize {
        self.list.last().map_or(0, |(end, _)| *end)
    }

    /// Returns the regions from that at `position` on, and how much of the first lies before it. Where that is, is not found by
    /// going through the list: each packet of a long message asks.
    fn from(&self, position: usize) -> (usize, impl Iterator<Item = R>) {
        let first = self.list.partition_point(|(end, _)| *end <= position);
        let (before, rest) = self.list.split_at(first);
        let skip = position - before.last().map_or(0, |(end, _)| *end);
        (skip, rest.iter().map(|(_, region)| *region))
    }
}

enum SendShape {
    Contiguous(ReadRegion),
    Regions(Regions<ReadRegion>),
    Packed(Box<dyn Pack>),
}

/// The bytes of a message to be sent.
///
/// Whoever makes one of memory lends that memory: to the buffer while it exists, and to each operation that the
/// buffer is given to until that has completed. A call that panics may have begun its operation, which then never
/// completes. That the transport and the layers below report completion truthfully is part of the promise:
/// the maker knows to whom the buffer goes.
pub struct SendBuffer(SendShape);

impl SendBuffer {
    /// A buffer of no bytes.
    pub const EMPTY: Self = Self(SendShape::Contiguous(ReadRegion {
        start: ptr::dangling(),
        len: 0,
    }));

    /// The `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory stays valid for reads, and nobody writes to it, while it is lent: as long as the buffer
    /// exists, and until the operations that it is given to have completed.
    #[inline]
    #[must_use]
    pub const unsafe fn contiguous(start: *const u8, len: usize) -> Self {
        Self(SendShape::Contiguous(ReadRegion { start, len }))
    }

    /// The bytes of `region`.
    ///
    /// # Safety
    /// As [`SendBuffer::contiguous`], for the region's memory. The buffer that it was taken from lends it no
    /// longer than it is lent itself.
    #[inline]
    #[must_use]
    pub const unsafe fn of(region: ReadRegion) -> Self {
        Self(SendShape::Contiguous(region))
    }

    /// The pieces in `list`, one after the other.
    ///
    /// # Safety
    /// As [`SendBuffer::contiguous`], for each piece.
    #[must_use]
    pub unsafe fn gather(list: &[(*const u8, usize)]) -> Self {
        let regions = list.iter().map(|&(start, len)| ReadRegion { start, len });
        Self(SendShape::Regions(Regions::new(regions, ReadRegion::len)))
    }

    /// What `pack` produces.
    #[must_use]
    pub fn packed(pack: Box<dyn Pack>) -> Self {
        Self(SendShape::Packed(pack))
    }

    /// Total length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            SendShape::Contiguous(region) => region.len,
            SendShape::Regions(regions) => regions.total(),
            SendShape::Packed(pack) => pack.len(),
        }
    }

    /// Whether there is nothing to send.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the memory lives.
    #[must_use]
    pub const fn memory_kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    /// The region, when the buffer is one. It may outlive the loan: whoever uses it sees to it that it is
    /// not used for longer.
    #[inline]
    #[must_use]
    pub const fn region(&self) -> Option<ReadRegion> {
        match &self.0 {
            SendShape::Contiguous(region) => Some(*region),
            _ => None,
        }
    }

    /// All bytes, when the buffer is one region.
    #[inline(always)]
    #[must_use]
    pub fn whole(&self) -> Option<&[u8]> {
        match &self.0 {
            SendShape::Contiguous(region) => {
                // SAFETY: the region is what the maker promised to keep readable and unwritten while the buffer is in use.
                Some(unsafe { std::slice::from_raw_parts(region.start, region.len) })
            }
            _ => None,
        }
    }

    /// The bytes in `range`, when the buffer is one region and holds them.
    #[inline]
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> Option<&[u8]> {
        self.whole()?.get(range)
    }

    /// Writes the bytes from `offset` on into `out`, up to its length; returns how many.
    pub fn copy_out(&self, offset: usize, out: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(offset).min(out.len());
        let out = &mut out[..count];
        match &self.0 {
            SendShape::Contiguous(_) => {
                if let Some(bytes) = self.bytes(offset..offset + count) {
                    out.copy_from_slice(bytes);
                }
            }
            SendShape::Regions(regions) => {
                let ((mut skip, rest), mut filled) = (regions.from(offset), 0);
                for region in rest {
                    let take = (region.len - skip).min(count - filled);
                    // SAFETY: `skip + take` lies inside the region, `filled + take` inside `out`;
                    // user memory and the transport's do not overlap.
                    unsafe {
                        ptr::copy_nonoverlapping(
                            region.start.add(skip),
                            out[filled..].as_mut_ptr(),
                            take,
                        );
                    }
                    filled += take;
                    skip = 0;
                    if filled == count {
                        break;
                    }
                }
            }
            SendShape::Packed(pack) => pack.pack(offset, out),
        }
        count
    }
}

/// A part of a [`RecvBuffer`], lent as the buffer is.
#[derive(Debug)]
pub struct RecvPart<'a> {
    part: RecvBuffer,
    whole: PhantomData<&'a RecvBuffer>,
}

impl Deref for RecvPart<'_> {
    type Target = RecvBuffer;

    #[inline]
    fn deref(&self) -> &RecvBuffer {
        &self.part
    }
}

impl fmt::Debug for SendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBuffer({} bytes)", self.len())
    }
}

enum RecvShape {
    Contiguous(WriteRegion),
    Regions(Regions<WriteRegion>),
    Unpacked(Box<dyn Unpack>),
}

/// Where the bytes of a message go. The memory is lent as that of a [`SendBuffer`] is.
pub struct RecvBuffer(RecvShape);

impl RecvBuffer {
    /// A buffer with room for nothing.
    pub const EMPTY: Self = Self(RecvShape::Contiguous(WriteRegion {
        start: ptr::dangling_mut(),
        len: 0,
    }));

    /// The `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory stays valid for writes, and nobody else touches it, while it is lent: as long as the buffer
    /// exists, and until the operations that it is given to have completed.
    #[inline]
    #[must_use]
    pub const unsafe fn contiguous(start: *mut u8, len: usize) -> Self {
        Self(RecvShape::Contiguous(WriteRegion { start, len }))
    }

    /// The room in `region`.
    ///
    /// # Safety
    /// As [`RecvBuffer::contiguous`], for the region's memory.
    #[inline]
    #[must_use]
    pub const unsafe fn of(region: WriteRegion) -> Self {
        Self(RecvShape::Contiguous(region))
    }

    /// The pieces in `list`, one after the other.
    ///
    /// # Safety
    /// As [`RecvBuffer::contiguous`], for each piece; the pieces do not overlap.
    #[must_use]
    pub unsafe fn scatter(list: &[(*mut u8, usize)]) -> Self {
        let regions = list.iter().map(|&(start, len)| WriteRegion { start, len });
        Self(RecvShape::Regions(Regions::new(regions, WriteRegion::len)))
    }

    /// Whatever `unpack` does with the bytes.
    #[must_use]
    pub fn unpacked(unpack: Box<dyn Unpack>) -> Self {
        Self(RecvShape::Unpacked(unpack))
    }

    /// How many bytes there is room for.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        match &self.0 {
            RecvShape::Contiguous(region) => region.len,
            RecvShape::Regions(regions) => regions.total(),
            RecvShape::Unpacked(unpack) => unpack.capacity(),
        }
    }

    /// Where the memory lives.
    #[must_use]
    pub const fn memory_kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    /// The region, when the buffer is one; as [`SendBuffer::region`].
    #[inline]
    #[must_use]
    pub const fn region(&self) -> Option<WriteRegion> {
        match &self.0 {
            RecvShape::Contiguous(region) => Some(*region),
            _ => None,
        }
    }

    /// The room at `range`, when the buffer is one region and has it. An operation that the part is given to is one
    /// of the buffer's.
    ///
    /// The part does not outlive the buffer, which may go with the loan:
    ///
    /// ```compile_fail,E0505
    /// # use tagwire_transport::RecvBuffer;
    /// let room = RecvBuffer::EMPTY;
    /// let part = room.part(0..0);
    /// drop(room); // error: cannot move out of `room` because it is borrowed
    /// drop(part);
    /// ```
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Option<RecvPart<'_>> {
        let region = self.region()?.slice(range)?;
        Some(RecvPart {
            // SAFETY: inside of the buffer, whose maker lends it while it exists and to all operations that
            // it is given to. Parts are borrowed from it, and cannot be written to but by operations.
            part: unsafe { Self::of(region) },
            whole: PhantomData,
        })
    }

    /// Takes `payload`, which lies at `offset` in the message. What does not fit is left out.
    #[inline(always)]
    pub fn write(&mut self, offset: usize, payload: Payload<'_>) {
        let count = self.capacity().saturating_sub(offset).min(payload.len());
        if count == 0 {
            return;
        }
        match &self.0 {
            RecvShape::Contiguous(region) => {
                // SAFETY: `offset + count` is at most the region's length; the maker promised
                // that the region is writable and ours until the operation completes.
                unsafe { payload.copy_to(region.start.add(offset), count) };
            }
            _ => self.write_pieces(offset, payload, count),
        }
    }

    /// Takes all of `payload`, where the buffer is one region with room for it. Returns whether it was.
    #[inline(always)]
    pub fn write_whole(&mut self, payload: Payload<'_>) -> bool {
        let RecvShape::Contiguous(region) = &self.0 else {
            return false;
        };
        let len = payload.len();
        if len > region.len {
            return false;
        }
        // SAFETY: the region has `len` bytes; the maker promised that it is writable and ours until
        // the operation completes.
        unsafe { payload.copy_to(region.start, len) };
        true
    }

    #[cold]
    fn write_pieces(&mut self, offset: usize, payload: Payload<'_>, count: usize) {
        match &self.0 {
            RecvShape::Contiguous(_) => {}
            RecvShape::Regions(regions) => {
                let ((mut skip, rest), mut done) = (regions.from(offset), 0);
                for region in rest {
                    let take = (region.len - skip).min(count - done);
                    let piece = payload.slice(done..done + take);
                    // SAFETY: `skip + take` lies inside the region, which is ours to write.
                    unsafe { piece.copy_to(region.start.add(skip), take) };
                    done += take;
                    skip = 0;
                    if done == count {
                        break;
                    }
                }
            }
            RecvShape::Unpacked(unpack) => {
                // A peer could change shared memory under a callback: it sees a private copy.
                let mut window = [0; 1024];
                let mut done = 0;
                while done < count {
                    let take = (count - done).min(window.len());
                    payload
                        .slice(done..done + take)
                        .copy_to_slice(&mut window[..take]);
                    unpack.unpack(offset + done, &window[..take]);
                    done += take;
                }
            }
        }
    }
}

impl fmt::Debug for RecvBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecvBuffer({} bytes)", self.capacity())
    }
}

/// Copies `len` bytes; lengths of up to 32 as a few moves, since most messages are short and a call
/// of the library costs more than the copy.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_bytes(from: *const u8, to: *mut u8, len: usize) {
    // One or two words, as most short messages have, go in line.
    if len.wrapping_sub(8) <= 8 {
        // SAFETY: as the caller promises; `len` lies between one and two words.
        unsafe { copy_ends::<u64>(from, to, len) }
    } else {
        // SAFETY: as the caller promises.
        unsafe { copy_any(from, to, len) }
    }
}

/// The same for every length.
///
/// # Safety
/// As [`copy_bytes`].
#[inline(never)]
unsafe fn copy_any(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: every access below lies within the first `len` bytes of either side: the two
    // moves of each pair start at 0 and at `len - width`, and overlap where `len` is less than
    // twice the width.
    unsafe {
        if len > 32 {
            ptr::copy_nonoverlapping(from, to, len);
        } else if len >= 16 {
            copy_ends::<[u64; 2]>(from, to, len);
        } else if len >= 8 {
            copy_ends::<u64>(from, to, len);
        } else if len >= 4 {
            copy_ends::<u32>(from, to, len);
        } else if len >= 2 {
            copy_ends::<u16>(from, to, len);
        } else if len == 1 {
            *to = *from;
        }
    }
}

/// Copies the first and the last `T` of `len` bytes.
///
/// # Safety
/// As [`copy_bytes`], and `len` lies between one and two widths of `T`.
#[inline(always)]
unsafe fn copy_ends<T: Copy>(from: *const u8, to: *mut u8, len: usize) {
    let last = len - size_of::<T>();
    // SAFETY: `last + size_of::<T>()` is `len`; the caller vouches for the rest.
    unsafe {
        let head = from.cast::<T>().read_unaligned();
        let tail = from.add(last).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(head);
        to.add(last).cast::<T>().write_unaligned(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_copies_are_exact() {
        let from: Vec<u8> = (1..=80).collect();
        for len in 0..=80 {
            let mut to = vec![0; 96];
            // SAFETY: both vectors are longer than `len`.
            unsafe { copy_bytes(from.as_ptr(), to.as_mut_ptr(), len) };
            assert_eq!(&to[..len], &from[..len]);
            assert!(to[len..].iter().all(|byte| *byte == 0), "wrote past {len}");
        }
    }

    #[test]
    fn regions_gather_and_scatter() {
        let (a, b) = (*b"hello, ", *b"world");
        // SAFETY: the arrays outlive the buffers.
        let send = unsafe {
            SendBuffer::gather(&[
                (a.as_ptr(), a.len()),
                (b.as_ptr(), 0),
                (b.as_ptr(), b.len()),
            ])
        };
        let mut out = [0; 6];
        assert_eq!(send.copy_out(5, &mut out), 6);
        assert_eq!(&out, b", worl");
        assert_eq!(send.copy_out(11, &mut out), 1);
        assert_eq!(send.copy_out(99, &mut out), 0);

        let (mut x, mut y) = ([0; 3], [0; 9]);
        // SAFETY: as above.
        let mut recv =
            unsafe { RecvBuffer::scatter(&[(x.as_mut_ptr(), x.len()), (y.as_mut_ptr(), y.len())]) };
        recv.write(1, Payload::from_slice(b"abcd"));
        recv.write(10, Payload::from_slice(b"too long"));
        assert_eq!((&x, &y), (b"\0ab", b"cd\0\0\0\0\0to"));
    }

    #[test]
    fn pack_and_unpack_walk_a_layout() {
        struct EveryOther(Vec<u8>);
        impl Pack for EveryOther {
            fn len(&self) -> usize {
                self.0.len() / 2
            }
            fn pack(&self, offset: usize, out: &mut [u8]) {
                for (i, byte) in out.iter_mut().enumerate() {
                    *byte = self.0[2 * (offset + i)];
                }
            }
        }
        let send = SendBuffer::packed(Box::new(EveryOther((0..20).collect())));
        let mut out = [0; 4];
        assert_eq!(send.copy_out(3, &mut out), 4);
        assert_eq!(out, [6, 8, 10, 12]);
        assert!(send.bytes(0..1).is_none());
    }
}
