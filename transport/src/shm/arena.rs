//! The arena: memory for user data in a rank's own segment, which its peers can map.
//!
//! ```text
//!   0              target          arena
//!   | header, areas | match list    | what the owner's program has allocated, in pages
//!
//!   a buffer's name, where a word carries the address of user memory:
//!     bit 63 clear   an address, an operand of cross-memory attach
//!     bit 63 set     an offset into the owner's arena
//! ```
//!
//! Who copies from or to a buffer in the arena of another does it through its own mapping, without a
//! call of the system, so that it works where cross-memory attach is forbidden. Which pages are in use is known to
//! the owner alone. An offset is checked against the mapping at each use; one that reaches outside is what no correct peer
//! writes. The segment is sealed against shrinking: what is mapped can be touched.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::MmapRaw;
use rustix::fs::FallocateFlags;

use super::segment::Segment;
use crate::allocation::{Allocation, Lender, PeerAllocations};
use crate::data::{ReadRegion, WriteRegion, copy_bytes};
use crate::message::Payload;

/// The bit of a name that says arena.
pub(super) const IN_ARENA: u64 = 1 << 63;

/// Arenas are multiples of this: of the pages of every machine.
pub(super) const STEP: u64 = 64 * 1024;

/// Longest arena.
pub(super) const MOST: u64 = 1 << 40;

/// Where the own arena is mapped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u64,
    len: u64,
}

impl Span {
    /// Nothing has been allocated yet.
    pub(super) const NONE: Self = Self { start: 0, len: 0 };

    /// Whether the `len` bytes at `address` lie in it.
    #[inline]
    pub(super) const fn holds(self, address: u64, len: usize) -> bool {
        self.name(address, len) & IN_ARENA != 0
    }

    /// What peers call the `len` bytes at `address`, which lie in it; `None` where they do not.
    pub(super) fn offset(self, address: u64, len: usize) -> Option<u64> {
        let name = self.name(address, len);
        (name & IN_ARENA != 0).then_some(name)
    }

    /// What peers call the `len` bytes at `address`.
    #[inline]
    pub(super) const fn name(self, address: u64, len: usize) -> u64 {
        let offset = address.wrapping_sub(self.start);
        if offset < self.len && len as u64 <= self.len - offset {
            offset | IN_ARENA
        } else {
            // An address of the program's half has this bit clear.
            address & !IN_ARENA
        }
    }
}

/// The own arena, which is mapped with the first allocation.
pub(super) struct OwnArena {
    arena: Option<Arc<Arena>>,
    /// Where it is.
    pub(super) span: Span,
}

impl OwnArena {
    pub(super) const fn new() -> Self {
        Self {
            arena: None,
            span: Span::NONE,
        }
    }

    /// Takes `len` bytes of the arena of `segment`, if it has them.
    pub(super) fn allocate(&mut self, segment: &Segment, len: usize) -> Option<Allocation> {
        if self.arena.is_none() {
            match segment.map_own_arena().map(Arc::new) {
                Ok(arena) => {
                    self.span = arena.span();
                    self.arena = Some(arena);
                }
                Err(error) => tracing::debug!(%error, "the own arena cannot be mapped"),
            }
        }
        self.arena.as_ref()?.allocate(len)
    }
}

/// The own arena, mapped, with the list of its free pages.
pub(super) struct Arena {
    map: MmapRaw,
    file: File,
    /// Where it begins in the file.
    begins: u64,
    page: usize,
    free: Mutex<FreeList>,
}

impl Arena {
    /// Over `map`, a mapping of what `file` has from `begins` on, in pages of `page` bytes.
    pub(super) fn new(map: MmapRaw, file: File, begins: u64, page: usize) -> Self {
        Self {
            free: Mutex::new(FreeList::new(map.len())),
            map,
            file,
            begins,
            page,
        }
    }

    pub(super) fn span(&self) -> Span {
        Span {
            start: self.map.as_ptr().addr() as u64,
            len: self.map.len() as u64,
        }
    }

    /// Takes `len` bytes; `None` where there are not so many in a row, and for no bytes.
    pub(super) fn allocate(self: &Arc<Self>, len: usize) -> Option<Allocation> {
        let rounded = self.rounded(len).filter(|rounded| *rounded != 0)?;
        let offset = self.free().take(rounded)?;
        let start = NonNull::new(self.map.as_mut_ptr().wrapping_add(offset))?;
        let lender = Arc::clone(self) as Arc<dyn Lender>;
        // SAFETY: the free list gave out `rounded` bytes at `offset`, which lie in the mapping, to this caller alone; the
        // lender keeps them mapped. Pages of a memfd are zero until they are written.
        Some(unsafe { Allocation::new(start, len, lender) })
    }

    /// Whole pages.
    fn rounded(&self, len: usize) -> Option<usize> {
        len.checked_next_multiple_of(self.page)
    }

    fn free(&self) -> MutexGuard<'_, FreeList> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lender for Arena {
    fn take_back(&self, start: NonNull<u8>, len: usize) {
        let offset = start.as_ptr().addr() - self.map.as_ptr().addr();
        let len = self.rounded(len).unwrap_or(len);
        // The system has the pages again before anybody else can have them here. Where it does not take them,
        // they are made zero, as fresh ones are.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let at = self.begins + offset as u64;
        if rustix::fs::fallocate(&self.file, hole, at, len as u64).is_err() {
            // SAFETY: an allocation lies in the mapping with all of its pages, and this one has just ended.
            unsafe { start.write_bytes(0, len) };
        }
        self.free().give(offset, len);
    }
}

/// Free ranges, by their offset; no two of them touch.
struct FreeList(BTreeMap<usize, usize>);

impl FreeList {
    fn new(len: usize) -> Self {
        Self(BTreeMap::from([(0, len)]))
    }

    /// The first `len` bytes in a row.
    fn take(&mut self, len: usize) -> Option<usize> {
        let (&offset, &room) = self.0.iter().find(|(_, room)| **room >= len)?;
        self.0.remove(&offset);
        if room > len {
            self.0.insert(offset + len, room - len);
        }
        Some(offset)
    }

    fn give(&mut self, mut offset: usize, mut len: usize) {
        if let Some((&before, &room)) = self.0.range(..offset).next_back()
            && before + room == offset
        {
            self.0.remove(&before);
            offset = before;
            len += room;
        }
        if let Some(room) = self.0.remove(&(offset + len)) {
            len += room;
        }
        self.0.insert(offset, len);
    }
}

/// A mapped arena of a peer.
pub(super) struct ArenaMap {
    start: NonNull<u8>,
    map: MmapRaw,
}

// SAFETY: the pointer is into the mapping that the value keeps; what lies there is bytes that are only copied.
unsafe impl Send for ArenaMap {}
// SAFETY: as above.
unsafe impl Sync for ArenaMap {}

impl ArenaMap {
    /// `None` where `map` lies at address 0.
    pub(super) fn new(map: MmapRaw) -> Option<Self> {
        let start = NonNull::new(map.as_mut_ptr())?;
        Some(Self { start, map })
    }

    /// Whether the `len` bytes called `name` lie in it.
    pub(super) const fn holds(name: u64, len: u64, arena: u64) -> bool {
        let offset = name & !IN_ARENA;
        name & IN_ARENA != 0 && offset <= arena && len <= arena - offset
    }

    /// Copies the bytes from `name` on into the part `range` of `to`; returns whether both have them.
    ///
    /// # Safety
    /// `to` is lent for writing.
    pub(super) unsafe fn read(&self, name: u64, to: WriteRegion, range: Range<usize>) -> bool {
        let Some(to) = to.slice(range) else {
            return false;
        };
        let Some(from) = self.place(name, to.len()) else {
            return false;
        };
        // SAFETY: `place` has found as many mapped bytes; the caller says that the region is lent. They are two
        // mappings: user memory never lies in one of a peer's. Bytes that a peer changes meanwhile are torn, which
        // hurts nobody.
        unsafe { copy_bytes(from.as_ptr(), to.as_ptr(), to.len()) };
        true
    }

    /// Copies the first `len` bytes of `from` to `name`; returns whether both have them.
    pub(super) fn write(&self, name: u64, from: Payload<'_>, len: usize) -> bool {
        let Some(to) = self.place(name, len).filter(|_| len <= from.len()) else {
            return false;
        };
        // SAFETY: `place` has found as many mapped bytes. A payload lies in a ring or in user memory, never in the mapping of
        // a peer's arena.
        unsafe { from.copy_to(to.as_ptr(), len) };
        true
    }

    /// As [`write`](Self::write), the part `range` of `from`.
    ///
    /// # Safety
    /// `from` is lent for reading.
    pub(super) unsafe fn write_part(
        &self,
        name: u64,
        from: ReadRegion,
        range: Range<usize>,
    ) -> bool {
        let Some(from) = from.slice(range) else {
            return false;
        };
        // SAFETY: the caller says that the region is lent; the payload ends with this call.
        let payload = unsafe { Payload::from_raw(from.as_ptr(), from.len()) };
        self.write(name, payload, from.len())
    }

    /// Adds to the word called `name`, and returns what it held; `None` where there is no aligned word.
    pub(super) fn fetch_add(&self, name: u64, operand: u64) -> Option<u64> {
        let place = self.place(name, size_of::<u64>())?.cast::<AtomicU64>();
        if !place.is_aligned() {
            return None;
        }
        // SAFETY: eight mapped bytes, aligned, for as long as `self` lives. Nobody makes references to what lies in an arena
        // but its owner's program, which has lent this memory to its peers.
        Some(unsafe { place.as_ref() }.fetch_add(operand, AcqRel))
    }

    fn place(&self, name: u64, len: usize) -> Option<NonNull<u8>> {
        if !Self::holds(name, len as u64, self.map.len() as u64) {
            return None;
        }
        // SAFETY: the offset is at most the mapping's length.
        Some(unsafe { self.start.add((name & !IN_ARENA) as usize) })
    }
}

impl PeerAllocations for ArenaMap {
    fn at(&self, name: u64, len: usize) -> Option<NonNull<u8>> {
        self.place(name, len)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn free_ranges_are_split_and_joined() {
        let mut list = FreeList::new(100);
        let taken: Vec<_> = (0..10).map(|_| list.take(10)).collect();
        assert_eq!(taken, (0..10).map(|n| Some(10 * n)).collect::<Vec<_>>());
        assert_eq!(list.take(1), None);
        for offset in [20, 40, 30] {
            list.give(offset, 10);
        }
        assert_eq!(list.take(31), None);
        // The first that is long enough, and what is left of it.
        assert_eq!((list.take(20), list.take(10)), (Some(20), Some(40)));
        let mut list = FreeList(BTreeMap::new());
        list.give(0, 10);
        list.give(20, 10);
        list.give(10, 10);
        assert_eq!(list.0, BTreeMap::from([(0, 30)]));
    }

    #[test]
    fn names_are_offsets_inside_and_addresses_outside() {
        let span = Span {
            start: 0x7000_0000_0000,
            len: 8192,
        };
        let name = |address, len| span.name(address, len);
        assert_eq!(name(0x7000_0000_0000, 8192), IN_ARENA);
        assert_eq!(name(0x7000_0000_0010, 8176), IN_ARENA | 16);
        // What reaches outside, or lies outside, goes by its address.
        assert_eq!(name(0x7000_0000_0010, 8177), 0x7000_0000_0010);
        assert_eq!(name(0x6fff_ffff_ffff, 1), 0x6fff_ffff_ffff);
        assert_eq!(name(0x7000_0000_2000, 0), 0x7000_0000_2000);
        assert_eq!(Span::NONE.name(0, 0), 0);
    }

    #[test]
    fn names_that_reach_outside_hold_nothing() {
        let holds = |name, len| ArenaMap::holds(name, len, 8192);
        assert!(holds(IN_ARENA, 8192) && holds(IN_ARENA | 8192, 0));
        assert!(!holds(0, 1), "an address");
        for (offset, len) in [
            (0, 8193),
            (8191, 2),
            (8193, 0),
            (16, u64::MAX - 8),
            (!IN_ARENA, 1),
            (!IN_ARENA, u64::MAX),
        ] {
            assert!(!holds(IN_ARENA | offset, len), "{offset:#x} {len:#x}");
        }
    }
}
