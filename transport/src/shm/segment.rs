//! Segments: making one's own, opening a peer's, and mapping what is needed of either.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use tagwire_base::error::is_shortage;
use tagwire_base::{Rank, prefetch};

use super::arena::{self, Arena, ArenaMap};
use super::layout::{
    AREA, CONTROL_SLOTS, LONG, MAX_SEND, OFFERS, PAYLOAD, PairArea, REGISTRATIONS, REUSED, ROOMS,
    ROOMY, RegistrationLine, SLOTS, SegmentHeader, header_len, registrations_at,
};
use super::matching::{Shape, TargetMap};
use super::memfd::{self, SEALS};
use super::ring::{Place, RingMemory};
use super::room::{Size, Table, Words};
use crate::data::copy_bytes;
use crate::message::Payload;
use crate::shared_writes::{SharedWrites, Way, Ways};

/// Shorter payloads are written through the caches.
const STREAMED: usize = 1024;

/// Which parts a segment has, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Ranks of the job: an area for each.
    pub size: u32,
    /// Whether there is a match list.
    pub matches: bool,
    /// The largest room behind an area.
    pub room: Size,
    /// Bytes of the arena, a multiple of [`arena::STEP`].
    pub arena: u64,
}

impl Extent {
    /// The same where a file may have `limit` bytes: where that is too little for all, without rooms, and with as much of the arena as
    /// fits.
    pub(super) fn within(self, limit: u64) -> Self {
        let all = self.len() <= limit;
        let fitting = Self {
            room: if all { self.room } else { Size::NONE },
            ..self
        };
        let left = limit.saturating_sub(fitting.arena_at());
        Self {
            arena: self.arena.min(left / arena::STEP * arena::STEP),
            ..fitting
        }
    }

    /// Bytes of the whole, most of which never exist.
    pub(super) fn len(self) -> u64 {
        self.arena_at() + self.arena
    }

    fn arena_at(self) -> u64 {
        let target = if self.matches {
            Shape::of(self.size).len.next_multiple_of(page_size())
        } else {
            0
        };
        self.target_at() + target as u64
    }

    fn target_at(self) -> u64 {
        header_len(self.size, page_size()) as u64 + u64::from(self.size) * self.stride() as u64
    }

    /// Bytes of an area with its room.
    fn stride(self) -> usize {
        AREA + self.room.len(&ROOMS) as usize
    }

    /// Where the area of rank `sender` is.
    fn area_at(self, sender: u32) -> u64 {
        header_len(self.size, page_size()) as u64 + u64::from(sender) * self.stride() as u64
    }
}

/// Why a peer's segment cannot be opened.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// This process lacks descriptors or memory at the moment. Says nothing of the peer.
    Shortage(io::Error),
    /// Anything else.
    Other(String),
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl Obstacle {
    /// The obstacle that `error` means, which came up doing `what`.
    pub(super) fn of(what: &str, error: io::Error) -> Self {
        if is_shortage(&error) {
            Self::Shortage(error)
        } else {
            Self::Other(format!("{what}: {error}"))
        }
    }
}

/// The memfd of a rank, its own or a peer's.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    extent: Extent,
}

impl Segment {
    /// Makes the segment of a rank. It cannot be resized any more, by nobody: a peer cannot make accesses of others
    /// fault.
    pub(super) fn create(extent: Extent) -> io::Result<Self> {
        let file = memfd::create("tagwire-shm", extent.len())?;
        Ok(Self { file, extent })
    }

    /// Takes a descriptor for a peer's segment, if it is one with these parts.
    pub(super) fn adopt(file: File, extent: Extent) -> Result<Self, String> {
        let segment = Self { file, extent };
        let seals = rustix::fs::fcntl_get_seals(&segment.file)
            .map_err(|error| format!("its descriptor is no memfd: {error}"))?;
        if !seals.contains(SEALS) {
            return Err("its segment is not sealed against resizing".to_owned());
        }
        let len = segment
            .file
            .metadata()
            .map_err(|error| format!("its segment cannot be looked at: {error}"))?
            .len();
        if len != extent.len() {
            return Err(format!(
                "its segment has {len} bytes instead of {}",
                extent.len()
            ));
        }
        Ok(segment)
    }

    /// Opens the segment that process `pid` has as descriptor `number`; see [`adopt`](Self::adopt).
    pub(super) fn open_in(pid: u32, number: u32, extent: Extent) -> Result<Self, Obstacle> {
        let path = format!("/proc/{pid}/fd/{number}");
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| Obstacle::of(&path, error))?;
        Ok(Self::adopt(file, extent)?)
    }

    /// Maps what the owner shares with its senders for matching. Only addresses are taken; memory
    /// exists once it is touched.
    pub(super) fn map_target(&self) -> io::Result<TargetMap> {
        if !self.extent.matches {
            return Err(io::Error::other("it has no match list"));
        }
        let shape = Shape::of(self.extent.size);
        let map = MmapOptions::new()
            .len(shape.len)
            .offset(self.extent.target_at())
            .map_raw(&self.file)?;
        TargetMap::new(map, shape).ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    /// Maps a peer's arena. Only addresses are taken; `None` where it has none.
    pub(super) fn map_peer_arena(&self) -> io::Result<Option<ArenaMap>> {
        if self.extent.arena == 0 {
            return Ok(None);
        }
        let map = self.map_arena()?;
        // A dump of this process would make every page of it exist. It is the same without the advice.
        let _ = map.advise(memmap2::Advice::DontDump);
        ArenaMap::new(map)
            .map(Some)
            .ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    /// Maps the own arena, which may outlive this value.
    pub(super) fn map_own_arena(&self) -> io::Result<Arena> {
        let (map, file) = (self.map_arena()?, self.file.try_clone()?);
        Ok(Arena::new(map, file, self.extent.arena_at(), page_size()))
    }

    fn map_arena(&self) -> io::Result<MmapRaw> {
        let len = usize::try_from(self.extent.arena).map_err(io::Error::other)?;
        MmapOptions::new()
            .len(len)
            .offset(self.extent.arena_at())
            .map_raw(&self.file)
    }

    /// The descriptor, to be passed on.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The descriptor's number in this process.
    pub(super) fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Bytes of memory that exist.
    pub(super) fn memory_in_use(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.file)?.st_blocks.unsigned_abs() * 512)
    }

    /// Maps the header.
    pub(super) fn map_header(&self) -> io::Result<HeaderMap> {
        let len = header_len(self.extent.size, page_size());
        let map = MmapOptions::new().len(len).map_raw(&self.file)?;
        Ok(HeaderMap {
            header: non_null(map.as_mut_ptr())?.cast(),
            size: self.extent.size,
            _map: Arc::new(map),
        })
    }

    /// Maps what rank `sender` sends to the owner.
    pub(super) fn map_area(&self, sender: u32) -> io::Result<AreaMap> {
        if sender >= self.extent.size {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let room = self.extent.room;
        let map = MmapOptions::new()
            .len(self.extent.stride())
            .offset(self.extent.area_at(sender))
            .map_raw(&self.file)?;
        if room != Size::NONE {
            // As for an arena.
            let len = room.len(&ROOMS) as usize;
            let _ = map.advise_range(memmap2::Advice::DontDump, AREA, len);
        }
        Ok(AreaMap {
            area: non_null(map.as_mut_ptr())?.cast(),
            room,
            writes: Arc::new(SharedWrites::new(Ways::PLAIN, REUSED, STREAMED)),
            _map: Arc::new(map),
        })
    }

    /// Gives the memory of the room of rank `sender` back to the system. Whoever reads it finds zeros.
    pub(super) fn free_room(&self, sender: u32) -> io::Result<()> {
        let at = self.extent.area_at(sender) + AREA as u64;
        self.free(at, at + u64::from(self.extent.room.len(&ROOMS)))
    }

    /// The same of the payload ring of rank `sender`, as far as it has whole pages. Where the system cannot, the memory stays.
    pub(super) fn free_payload(&self, sender: Rank) {
        let area = self.extent.area_at(sender.as_u32());
        let payload = area + offset_of!(PairArea, payload) as u64;
        let start = payload.next_multiple_of(page_size() as u64);
        if let Err(error) = self.free(start, area + AREA as u64) {
            tracing::debug!(rank = %sender, %error, "its payload ring cannot be freed");
        }
    }

    /// Gives the memory from `start` to `end` back to the system.
    fn free(&self, start: u64, end: u64) -> io::Result<()> {
        if start >= end {
            return Ok(());
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, hole, start, end - start)?)
    }
}

fn page_size() -> usize {
    rustix::param::page_size()
}

fn non_null(start: *mut u8) -> io::Result<NonNull<u8>> {
    NonNull::new(start).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// A mapped header of a segment.
#[derive(Clone)]
pub(super) struct HeaderMap {
    header: NonNull<SegmentHeader>,
    size: u32,
    _map: Arc<MmapRaw>,
}

// SAFETY: the pointer is into the mapping that the value keeps alive, and what lies there is
// made of atomics.
unsafe impl Send for HeaderMap {}
// SAFETY: as above.
unsafe impl Sync for HeaderMap {}

impl Deref for HeaderMap {
    type Target = SegmentHeader;

    #[inline]
    fn deref(&self) -> &SegmentHeader {
        // SAFETY: the mapping is page-aligned, at least as long as the header, lives as long as
        // `self`, and cannot shrink (sealed). All fields are atomics, for which any bytes are
        // valid and which other processes may change.
        unsafe { self.header.as_ref() }
    }
}

impl HeaderMap {
    /// The words of the bitmap of contacts.
    pub(super) fn bitmap(&self) -> &[AtomicU64] {
        let words = (self.size as usize).div_ceil(64);
        // SAFETY: `header_len` made room for so many words behind the header, whose size keeps
        // them aligned; the rest is as for `deref`.
        unsafe {
            let first = self.header.as_ptr().add(1).cast::<AtomicU64>();
            std::slice::from_raw_parts(first, words)
        }
    }

    /// The table of registrations.
    pub(super) fn registrations(&self) -> &[RegistrationLine; REGISTRATIONS] {
        let start = registrations_at(self.size, page_size());
        // SAFETY: `header_len` made room for the table on whole pages from there on, in the mapping that lives as long as
        // `self`; the fields are atomics, for which any bytes are valid.
        unsafe { &*self.header.as_ptr().cast::<u8>().add(start).cast() }
    }
}

/// A mapped pair area.
#[derive(Clone)]
pub(super) struct AreaMap {
    area: NonNull<PairArea>,
    /// The largest room that is mapped behind it.
    room: Size,
    /// How long payloads are written.
    writes: Arc<SharedWrites>,
    _map: Arc<MmapRaw>,
}

// SAFETY: as for the header; the byte cells are only used through the ring's two ends.
unsafe impl Send for AreaMap {}
// SAFETY: as above.
unsafe impl Sync for AreaMap {}

impl Deref for AreaMap {
    type Target = PairArea;

    #[inline]
    fn deref(&self) -> &PairArea {
        // SAFETY: the mapping is page-aligned, at least `AREA` bytes long, lives as long as `self`, and
        // cannot shrink (sealed). The fields are atomics and cells of bytes.
        unsafe { self.area.as_ref() }
    }
}

impl AreaMap {
    /// Chooses among `ways` how payloads are written.
    pub(super) fn write_by(&mut self, ways: Ways) {
        self.writes = Arc::new(SharedWrites::new(ways, REUSED, STREAMED));
    }

    /// How payloads are written.
    pub(super) fn writes(&self) -> &SharedWrites {
        &self.writes
    }

    /// The first byte of a payload's place.
    #[inline]
    fn place(&self, place: Place) -> (*mut u8, usize) {
        match place {
            Place::Inline(index) => {
                let cell = &self.slots[index & (SLOTS - 1)].inline;
                (cell.get().cast(), super::layout::INLINE)
            }
            Place::Bulk(offset) => {
                let offset = offset.min(PAYLOAD);
                // SAFETY: at most one past the end of the payload ring.
                let start = unsafe { self.payload.get().cast::<u8>().add(offset) };
                (start, PAYLOAD - offset)
            }
            Place::Room(offset) => {
                let len = self.room.len(&ROOMS) as usize;
                let offset = offset.min(len);
                // SAFETY: the mapping has `len` bytes behind the area; at most one past the end of them.
                let start = unsafe { self.area.as_ptr().cast::<u8>().add(AREA + offset) };
                (start, len - offset)
            }
        }
    }
}

impl AreaMap {
    /// Hints that descriptor `number` will be written soon: its peer wrote there last.
    pub(super) fn will_offer(&self, number: usize) {
        prefetch::for_write(&raw const self.offers[number % OFFERS]);
    }
}

impl RingMemory for AreaMap {
    type Word = AtomicU64;
    const SLOTS: u32 = SLOTS as u32;
    const CONTROL_SLOTS: u32 = CONTROL_SLOTS as u32;
    const PAYLOAD: u32 = PAYLOAD as u32;
    const MAX_SEND: u32 = MAX_SEND as u32;
    const ROOMS: Table = ROOMS;
    const LONG: usize = LONG;
    const ROOMY: usize = ROOMY;
    const REUSED: usize = REUSED;

    #[inline]
    fn slot(&self, index: usize) -> &[AtomicU64; 3] {
        &self.slots[index & (SLOTS - 1)].words
    }

    #[inline]
    fn will_write(&self, index: usize) {
        prefetch::for_write(&raw const self.slots[index & (SLOTS - 1)].words);
    }

    #[inline]
    fn will_read(&self, index: usize) {
        prefetch::for_read(&self.slots[index & (SLOTS - 1)].words);
    }

    #[inline]
    fn will_write_payload(&self, place: Place, len: usize) {
        if self.writes.next(len) == Way::Stream {
            return;
        }
        let (start, room) = self.place(place);
        prefetch::range_for_write(start, len.min(room));
    }

    #[inline]
    fn credit(&self) -> &AtomicU64 {
        &self.credit.word
    }

    #[inline]
    fn payload_state(&self) -> &AtomicU64 {
        &self.payload_state.word
    }

    #[inline]
    fn room(&self) -> Option<Words<'_, AtomicU64>> {
        (self.room != Size::NONE).then_some(Words {
            grant: &self.grant.word,
            credit: &self.credit.room,
            left: &self.left.word,
            most: self.room,
        })
    }

    /// A fault for each page, on either side, takes longer than the page's copy: a trial that found the room untouched would time them.
    #[cold]
    fn map_room(&self, from: Size, to: Size) {
        let (from, to) = (from.len(&ROOMS), to.min(self.room).len(&ROOMS));
        let (start, _) = self.place(Place::Room(from as usize));
        let len = to.saturating_sub(from) as usize;
        // SAFETY: the mapping has the `len` bytes, and populating changes nothing that is there. A kernel that cannot says so, and pages come
        // one by one.
        let _ = unsafe {
            let populate = rustix::mm::Advice::LinuxPopulateWrite;
            rustix::mm::madvise(start.cast(), len, populate)
        };
    }

    #[inline(always)]
    fn write(&self, place: Place, data: &[u8]) {
        let (start, room) = self.place(place);
        let (from, len) = (data.as_ptr(), data.len().min(room));
        // SAFETY: `start` is followed by `room` mapped bytes. `data` is private memory of this
        // process: nobody makes references into segments. The peer reads only after the stamp.
        // In a slot there are at most 40 bytes: two short copies, without a call of the library.
        unsafe {
            match place {
                Place::Inline(_) if len > 24 => {
                    copy_bytes(from, start, 24);
                    copy_bytes(from.add(24), start.add(24), len - 24);
                }
                Place::Inline(_) => copy_bytes(from, start, len),
                Place::Bulk(_) | Place::Room(_) => self.writes.copy(from, start, len),
            }
        }
    }

    #[inline]
    fn write_plain(&self, place: Place, data: &[u8]) {
        let (start, room) = self.place(place);
        // SAFETY: as in `write`.
        unsafe { copy_bytes(data.as_ptr(), start, data.len().min(room)) };
    }

    #[inline]
    fn tries_reuse(&self, len: usize) -> bool {
        self.writes.next(len) == Way::Reuse
    }

    #[inline]
    fn count_reuse(&self, len: usize) {
        self.writes.count_reuse(len);
    }

    #[inline]
    fn note_answer(&self) {
        self.writes.note_answer();
    }

    #[inline]
    fn read<R>(&self, place: Place, len: usize, look: impl FnOnce(Payload<'_>) -> R) -> R {
        let (start, room) = self.place(place);
        // SAFETY: `start` is followed by `room` mapped bytes, for as long as `self` lives.
        look(unsafe { Payload::from_raw(start.cast_const(), len.min(room)) })
    }
}
