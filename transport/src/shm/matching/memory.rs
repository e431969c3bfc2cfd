//! The mapped target, and the storage of the engine in it.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use memmap2::MmapRaw;
use tagwire_matching::bins::LINKS;
use tagwire_matching::storage::{Cells, Control, Node, Storage, Table, Word};

use crate::data::copy_bytes;
use crate::message::Payload;
use crate::shm::matching::layout::{
    BINS, CONTROL_AT, Head, Header, POSTED_AT, RECEIVES, Receive, Shape, UNIT,
};

/// A 32-bit word of the engine, stored inverted: fresh memory reads as
/// [`NIL`](tagwire_matching::storage::NIL), the end of every list.
#[repr(transparent)]
pub(in crate::shm) struct Nil32(AtomicU32);

impl fmt::Debug for Nil32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.load(), f)
    }
}

impl Word<u32> for Nil32 {
    #[inline]
    fn with(value: u32) -> Self {
        Self(AtomicU32::new(!value))
    }

    #[inline]
    fn load(&self) -> u32 {
        !self.0.load(Relaxed)
    }

    #[inline]
    fn store(&self, value: u32) {
        self.0.store(!value, Relaxed);
    }
}

/// The memory of a target.
#[derive(Debug)]
pub(in crate::shm) enum Arena {}

impl Cells for Arena {
    type Word = Nil32;
    type Wide = AtomicU64;
}

/// A mapped target, the own or a peer's.
#[derive(Clone)]
pub(in crate::shm) struct TargetMap {
    start: NonNull<u8>,
    shape: Shape,
    _map: Arc<MmapRaw>,
}

// SAFETY: the pointer is into the mapping that the value keeps alive; what lies there is made of
// atomics, and bytes that are only copied under the target's lock.
unsafe impl Send for TargetMap {}
// SAFETY: as above.
unsafe impl Sync for TargetMap {}

impl TargetMap {
    /// Over a mapping of `shape.len` bytes, which stays mapped and does not shrink.
    pub(in crate::shm) fn new(map: MmapRaw, shape: Shape) -> Option<Self> {
        if map.len() < shape.len {
            return None;
        }
        Some(Self {
            start: NonNull::new(map.as_mut_ptr())?,
            shape,
            _map: Arc::new(map),
        })
    }

    /// The `count` values at `offset`.
    ///
    /// # Safety
    /// `offset + count * size_of::<T>()` is within the mapping, `offset` is aligned for `T`, and
    /// `T` is made of atomics only.
    #[inline(always)]
    unsafe fn slice<T>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: in bounds and aligned by the caller's promise (the mapping is page-aligned);
        // for atomics any bytes are valid, and other processes may change them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset).cast(), count) }
    }

    #[inline(always)]
    pub(super) fn head(&self) -> &Head {
        // SAFETY: the head is what the layout has at 0; the rest is as for `slice`.
        unsafe { self.start.cast().as_ref() }
    }

    #[inline]
    pub(super) fn receive(&self, index: u32) -> Option<&Receive> {
        // SAFETY: `Shape::of` laid out `RECEIVES` of them there, on a page's boundary.
        unsafe { self.slice::<Receive>(self.shape.receives_at, RECEIVES) }.get(index as usize)
    }

    #[inline]
    pub(super) fn headers(&self) -> &[Header] {
        // SAFETY: `Shape::of` laid out so many of them there, on a page's boundary.
        unsafe { self.slice(self.shape.headers_at, self.shape.headers) }
    }

    #[inline]
    pub(super) fn header(&self, index: u32) -> Option<&Header> {
        self.headers().get(index as usize)
    }

    /// Units of overflow memory that are laid out.
    pub(super) const fn units(&self) -> usize {
        self.shape.units
    }

    /// The first word of the block at `unit`.
    #[inline]
    pub(super) fn block_word(&self, unit: usize) -> Option<&AtomicU32> {
        if unit >= self.shape.units {
            return None;
        }
        // SAFETY: a unit is 64 bytes, all of them within the mapping.
        unsafe { self.slice::<AtomicU32>(self.shape.blocks_at + unit * UNIT, 1) }.first()
    }

    /// Stores bytes into the units from `unit` on; returns whether they fit.
    pub(super) fn fill(&self, unit: usize, bytes: Payload<'_>) -> bool {
        let Some(len) = self.block_room(unit).filter(|room| bytes.len() <= *room) else {
            return false;
        };
        debug_assert!(len >= bytes.len());
        // SAFETY: `block_room` says how many bytes there are behind the unit; a payload is never
        // in an overflow block (it comes from a ring or from user memory).
        unsafe { bytes.copy_to(self.block_start(unit), bytes.len()) };
        true
    }

    /// Shows `len` bytes of the units from `unit` on; `None` where there are not so many.
    pub(super) fn look<R>(
        &self,
        unit: usize,
        len: usize,
        look: impl FnOnce(Payload<'_>) -> R,
    ) -> Option<R> {
        self.block_room(unit).filter(|room| len <= *room)?;
        // SAFETY: mapped for as long as `self`, which is longer than the call.
        Some(look(unsafe {
            Payload::from_raw(self.block_start(unit), len)
        }))
    }

    fn block_room(&self, unit: usize) -> Option<usize> {
        (unit < self.shape.units).then(|| (self.shape.units - unit) * UNIT)
    }

    fn block_start(&self, unit: usize) -> *mut u8 {
        // SAFETY: callers have checked that the unit is one that is laid out.
        unsafe { self.start.as_ptr().add(self.shape.blocks_at + unit * UNIT) }
    }
}

/// Writes up to 16 bytes into two words, and back.
pub(super) fn pack(bytes: Payload<'_>) -> [u64; 2] {
    let mut out = [0_u8; 16];
    bytes.copy_to_slice(&mut out);
    let mut words = [0; 2];
    // SAFETY: both are 16 bytes of plain data.
    unsafe { copy_bytes(out.as_ptr(), words.as_mut_ptr().cast(), 16) };
    words
}

/// The bytes of [`pack`].
pub(super) fn unpack(words: [u64; 2]) -> [u8; 16] {
    let mut out = [0; 16];
    // SAFETY: both are 16 bytes of plain data.
    unsafe { copy_bytes(words.as_ptr().cast(), out.as_mut_ptr(), 16) };
    out
}

/// The engine's storage in a target. Nothing grows: the tables are there from the beginning.
#[derive(Clone)]
pub(in crate::shm) struct ArenaStorage(pub(super) TargetMap);

impl fmt::Debug for ArenaStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArenaStorage")
    }
}

impl Storage<LINKS> for ArenaStorage {
    type Cells = Arena;

    #[inline(always)]
    fn control(&self) -> &Control<Arena> {
        // SAFETY: the layout has a page for it there.
        unsafe { &*self.0.start.as_ptr().add(CONTROL_AT).cast() }
    }

    #[inline(always)]
    fn posted(&self) -> &[Node<Arena, 1>] {
        // SAFETY: as laid out by `Shape::of`.
        unsafe { self.0.slice(POSTED_AT, RECEIVES) }
    }

    #[inline(always)]
    fn unexpected(&self) -> &[Node<Arena, LINKS>] {
        // SAFETY: as laid out by `Shape::of`.
        unsafe {
            self.0
                .slice(self.0.shape.unexpected_at, self.0.shape.headers)
        }
    }

    #[inline]
    fn table(&self, which: Table) -> &[Nil32] {
        let (offset, words) = match which {
            Table::First => (self.0.shape.first_table_at, BINS),
            Table::Second => (self.0.shape.second_table_at, 4 * BINS),
        };
        // SAFETY: as laid out by `Shape::of`.
        unsafe { self.0.slice(offset, words) }
    }

    fn grow_posted(&mut self) -> bool {
        false
    }

    fn grow_unexpected(&mut self) -> bool {
        false
    }

    fn grow_table(&mut self, _which: Table, _words: usize) -> bool {
        false
    }
}
