//! The memory of a board, as it is mapped.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memmap2::{MmapRaw, UncheckedAdvice};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use tagwire_base::prefetch;

use super::ring::{Cells, LINE, Place, RESULTS_AT, SLOT};
use super::shape::Shape;
use crate::data::copy_bytes;
use crate::shared_writes::{SharedWrites, Ways};

/// Bytes of a page at least.
pub(super) const PAGE: usize = 4096;

/// What follows a member's lines; its slots follow, from the next page on.
#[repr(C, align(64))]
struct Member {
    done: Lone,
    results: Lone,
    claimed: Lone,
}

/// What a member shows in a round, or the head of it.
#[repr(C, align(64))]
struct Line {
    round: AtomicU64,
    head: AtomicU64,
    bytes: UnsafeCell<[u8; LINE]>,
}

/// The start of the memory.
#[repr(C, align(64))]
struct Whole {
    nonce: Lone,
    broken: Lone,
    leavers: Lone,
}

/// A word with a line of its own.
#[repr(C, align(64))]
struct Lone(AtomicU64);

const _: () = assert!(size_of::<Line>() == 64 && size_of::<Whole>() <= PAGE);

/// Shorter slots are written through the caches.
const STREAMED: usize = 4096;

/// So many bytes of memory are had at a time: a signal that is pending undoes what one call has had of shared memory, however often it
/// is made again.
const RESERVED_AT_ONCE: usize = 4 * 1024 * 1024;

/// The memory of a board, whatever its shape: a page of the whole board, then that of each member.
pub struct BoardMemory {
    start: NonNull<u8>,
    len: usize,
    /// By which others join.
    file: Option<File>,
    map: MmapRaw,
    /// Whether slots are written past the caches, always or never; `None`: as is found by trial.
    streams: Option<bool>,
}

/// Where things are in the memory of a board of a shape.
pub(super) struct Laid<S> {
    memory: BoardMemory,
    members: usize,
    /// How this member's slots are written.
    writes: SharedWrites,
    shape: PhantomData<S>,
}

// SAFETY: the pointer is into the mapping that the value keeps. Words are atomics; bytes are written and read through a ring
// alone, whose rounds give each place to its writer or to its readers.
unsafe impl Send for BoardMemory {}
// SAFETY: as above.
unsafe impl Sync for BoardMemory {}

impl fmt::Debug for BoardMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoardMemory of {} bytes", self.len)
    }
}

impl BoardMemory {
    /// Returns a board in `map`, which was zero when its first member mapped it and is of memory that cannot shrink. `None` where it
    /// is too short for any.
    pub(crate) fn new(map: MmapRaw, file: Option<File>) -> Option<Self> {
        let start = NonNull::new(map.as_mut_ptr())?;
        (map.len() >= PAGE).then_some(Self {
            start,
            len: map.len(),
            file,
            map,
            streams: None,
        })
    }

    /// A number by which those who join know that it is this board.
    pub(crate) const fn nonce(&self) -> &AtomicU64 {
        &self.whole().nonce.0
    }

    const fn whole(&self) -> &Whole {
        // SAFETY: the mapping is page-aligned, no shorter than a page, and lives as long as `self`. All fields are atomics, for which
        // any bytes are valid.
        unsafe { self.start.cast().as_ref() }
    }

    /// Says whether slots are written past the caches, always or never; `None`: as is found by trial.
    pub(crate) const fn stream(&mut self, streams: Option<bool>) {
        self.streams = streams;
    }

    /// Closes the descriptor by which others join: all have.
    pub fn forget_descriptor(&mut self) {
        self.file = None;
    }

    /// Has all of the memory exist, so that no later access to it lacks memory. Its maker calls it.
    ///
    /// # Errors
    /// When there is not so much memory: what was had of it is given back with the board. When the descriptor is closed.
    pub(super) fn reserve(&self) -> io::Result<()> {
        let file = self.file.as_ref();
        let file = file.ok_or_else(|| io::Error::other("the descriptor is closed"))?;
        for start in (0..self.len).step_by(RESERVED_AT_ONCE) {
            let bytes = RESERVED_AT_ONCE.min(self.len - start);
            let (start, bytes) = (start as u64, bytes as u64);
            while let Err(error) = fallocate(file, FallocateFlags::empty(), start, bytes) {
                if error != Errno::INTR {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Returns what follows the page of the whole board: its start, at a page, and how many bytes there are.
    pub(super) const fn rest(&self) -> (NonNull<u8>, usize) {
        // SAFETY: the mapping is no shorter than a page.
        (unsafe { self.start.add(PAGE) }, self.len - PAGE)
    }
}

impl<S: Shape> Laid<S> {
    /// Bytes of a member before its slots: whole pages.
    const HEAD: usize =
        (S::LINES as usize * size_of::<Line>() + size_of::<Member>()).next_multiple_of(PAGE);

    /// Bytes of a member.
    const STRIDE: usize = Self::HEAD + (S::SLOTS as usize + S::HANDED) * SLOT;

    /// Returns how many bytes a board of so many members has.
    pub(super) const fn len(members: usize) -> usize {
        PAGE + members * Self::STRIDE
    }

    /// Returns the board in `memory`. `None` where it is of another length.
    pub(super) fn new(memory: BoardMemory, members: usize) -> Option<Self> {
        let ways = Ways::of_stores(memory.streams);
        (memory.len == Self::len(members)).then(|| Self {
            memory,
            members,
            writes: SharedWrites::new(ways, STREAMED, STREAMED),
            shape: PhantomData,
        })
    }

    pub(super) fn forget_descriptor(&mut self) {
        self.memory.forget_descriptor();
    }

    /// Takes the memory of a member, once. Two who wrote it would not know of each other.
    pub(super) fn claim(&self, member: usize) -> bool {
        let claimed = &self.member(member).claimed.0;
        claimed.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
    }

    /// Where the memory of a member begins.
    #[inline]
    const fn base(&self, member: usize) -> *mut u8 {
        assert!(member < self.members, "a member of the board");
        // SAFETY: the mapping has so many bytes for each member.
        unsafe { self.memory.start.as_ptr().add(PAGE + member * Self::STRIDE) }
    }

    #[inline]
    const fn line(&self, member: usize, index: usize) -> &Line {
        assert!(index < S::LINES as usize, "a line of the member");
        // SAFETY: the place is aligned to a page and begins with so many lines of this member. The mapping lives as long as `self`
        // and cannot shrink. All fields are atomics or cells of bytes, for which any bytes are valid and which others may change.
        unsafe { &*self.base(member).cast::<Line>().add(index) }
    }

    #[inline]
    const fn member(&self, member: usize) -> &Member {
        // SAFETY: as above; it follows the lines, in the same pages.
        unsafe {
            let lines = self.base(member).cast::<Line>();
            &*lines.add(S::LINES as usize).cast::<Member>()
        }
    }

    /// Where a slot begins in the memory of its member.
    #[inline]
    const fn slot(index: usize) -> usize {
        assert!(
            index < S::SLOTS as usize + S::HANDED,
            "a slot of the member"
        );
        Self::HEAD + index * SLOT
    }

    /// The first byte of a place, and how many there are.
    #[inline]
    const fn place(&self, member: usize, place: Place) -> (*mut u8, usize) {
        match place {
            Place::Line(index) => (self.line(member, index).bytes.get().cast(), LINE),
            // SAFETY: the slots of a member follow the pages that it begins with.
            Place::Slot(index) => unsafe { (self.base(member).add(Self::slot(index)), SLOT) },
            // SAFETY: as above. Those that are handed on follow the others.
            Place::Handed(index) => unsafe {
                let at = Self::slot(S::SLOTS as usize + index);
                (self.base(member).add(at), SLOT)
            },
            // SAFETY: as above.
            Place::Result(index) => unsafe {
                (
                    self.base(member).add(Self::slot(index) + RESULTS_AT),
                    RESULTS_AT,
                )
            },
        }
    }
}

impl<S: Shape> Cells for Laid<S> {
    type Shape = S;
    type Word = AtomicU64;

    #[inline]
    fn round(&self, member: usize, line: usize) -> &AtomicU64 {
        &self.line(member, line).round
    }

    #[inline]
    fn head(&self, member: usize, line: usize) -> &AtomicU64 {
        &self.line(member, line).head
    }

    #[inline]
    fn done(&self, member: usize) -> &AtomicU64 {
        &self.member(member).done.0
    }

    #[inline]
    fn results(&self, member: usize) -> &AtomicU64 {
        &self.member(member).results.0
    }

    fn broken(&self) -> &AtomicU64 {
        &self.memory.whole().broken.0
    }

    fn leavers(&self) -> &AtomicU64 {
        &self.memory.whole().leavers.0
    }

    #[inline]
    fn write(&self, member: usize, place: Place, at: usize, data: &[u8]) {
        let (start, len) = self.place(member, place);
        assert!(at <= len && data.len() <= len - at, "within the place");
        // SAFETY: the bounds were checked. The ring gives the place to its writer: all others have done with the round that had
        // it before, and read it only once the round's number is stored.
        unsafe { self.writes.copy(data.as_ptr(), start.add(at), data.len()) };
    }

    #[inline]
    fn will_write(&self, member: usize, line: usize) {
        prefetch::for_write(self.line(member, line));
    }

    #[inline]
    fn write_read(&self, member: usize, place: Place, at: usize, data: &[u8]) {
        let (start, len) = self.place(member, place);
        assert!(at <= len && data.len() <= len - at, "within the place");
        // SAFETY: as in `write`.
        unsafe { copy_bytes(data.as_ptr(), start.add(at), data.len()) };
    }

    fn give_back(&self, member: usize) -> bool {
        let at = PAGE + member * Self::STRIDE + Self::HEAD;
        // What is handed on may be the other member's at any time.
        let len = S::SLOTS as usize * SLOT;
        assert!(member < self.members, "a member of the board");
        let map = &self.memory.map;
        // SAFETY: the range is that of the member's slots, in the mapping. It becomes zero, as if it was written so: the ring gives it
        // to its writer as in `write`.
        len > 0 && unsafe { map.unchecked_advise_range(UncheckedAdvice::Remove, at, len) }.is_ok()
    }

    #[inline]
    fn read<R>(
        &self,
        member: usize,
        place: Place,
        range: Range<usize>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let (start, len) = self.place(member, place);
        assert!(
            range.start <= range.end && range.end <= len,
            "within the place"
        );
        // SAFETY: the bounds were checked. The ring gives the place to its readers: its writer writes it again only once this member
        // has done with the round, which it has not while `look` runs, since the ring is borrowed. A process of the job
        // that keeps to nothing could write all the same, as it could into an arena.
        // JUSTIFICATION: to combine values where they lie spares a copy of each byte.
        look(unsafe { std::slice::from_raw_parts(start.add(range.start), range.len()) })
    }
}
