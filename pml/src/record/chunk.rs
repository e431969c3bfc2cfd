//! The piece of a trace's file that is in memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::slice;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io::Errno;
use tagwire_matching::trace::{PART, RECORD};

/// A mapped piece of a file: places for records, which are taken in order. One that is full is copied to another place of the
/// file and used again: a copy of pages costs a fraction of what it costs to map and touch as many.
///
/// ```text
///   | taken | near: taken without a look at anything else | far, of which the last is a place of its own |
/// ```
pub(super) struct Chunk {
    near: slice::IterMut<'static, [u8; RECORD]>,
    far: &'static mut [[u8; RECORD]],
    /// What the places above are in: private, so that they do not outlive it.
    map: MmapMut,
}

impl Chunk {
    /// Bytes of a chunk.
    pub(super) const BYTES: u64 = PART as u64;

    /// The last place of a chunk.
    pub(super) const LAST: usize = PART / RECORD - 1;

    /// Maps the chunk that begins at `begin`, a multiple of the page size, and has the disk keep its room: to write into a mapping
    /// for which there is none ends the process.
    pub(super) fn map(file: &File, begin: u64) -> io::Result<Self> {
        reserve(file, begin)?;
        let mut options = MmapOptions::new();
        let options = options.offset(begin).len(PART);
        // SAFETY: the file was made by this rank and is new (`create_new`); nobody else maps it, and those who read it do so by
        // calls of the system, into memory of their own. Who changes or cuts it from outside changes bytes that this process
        // writes and does not read; past a cut end the process is ended by a signal.
        let mut map = unsafe { options.map_mut(file) }?;
        let far = places(&mut map);
        Ok(Self {
            near: [].iter_mut(),
            far,
            map,
        })
    }

    /// Takes a place that was [brought near](Chunk::bring_near).
    #[inline(always)]
    pub(super) fn take_near(&mut self) -> Option<&mut [u8; RECORD]> {
        self.near.next()
    }

    /// Takes a place when none is near; `None` where only the last is left.
    pub(super) fn take(&mut self) -> Option<&mut [u8; RECORD]> {
        if self.far.len() <= 1 {
            return None;
        }
        self.far.split_off_first_mut()
    }

    /// Stores what `record` returns into a place that is not near, where there is one; returns whether it did.
    #[inline(always)]
    pub(super) fn take_if(&mut self, record: impl FnOnce() -> Option<[u8; RECORD]>) -> bool {
        if self.far.len() <= 1 {
            return false;
        }
        let Some(record) = record() else {
            return false;
        };
        let place = self.far.split_off_first_mut();
        place.map(|place| *place = record).is_some()
    }

    /// The last place.
    pub(super) fn last(&mut self) -> Option<&mut [u8; RECORD]> {
        self.far.last_mut()
    }

    /// Makes at most so many places, and not the last, such that they are taken the short way. Returns how many there are.
    pub(super) fn bring_near(&mut self, places: usize) -> usize {
        let places = places.min(self.far.len().saturating_sub(1));
        let (near, far) = mem::take(&mut self.far).split_at_mut(places);
        (self.near, self.far) = (near.iter_mut(), far);
        places
    }

    /// Writes what is in the chunk into the file at another place, and empties it. Where that fails, the last place alone is left.
    pub(super) fn move_to(&mut self, file: &File, begin: u64) -> io::Result<()> {
        (self.near, self.far) = ([].iter_mut(), &mut []);
        let written = file.write_all_at(&self.map, begin);
        self.far = places(&mut self.map);
        match written {
            Ok(()) => self.clear(),
            Err(_) => self.far = &mut mem::take(&mut self.far)[Self::LAST..],
        }
        written
    }

    /// Empties the chunk, of which no place is taken.
    fn clear(&mut self) {
        let Some((first, rest)) = self.far.split_first_mut() else {
            return;
        };
        *first = [0; RECORD];
        // Whoever finds it half empty finds no beginning.
        compiler_fence(SeqCst);
        rest.fill([0; RECORD]);
    }

    /// How many places are taken, the last left out.
    pub(super) fn taken(&self) -> usize {
        Self::LAST + 1 - self.near.len() - self.far.len()
    }
}

/// Returns the places of a mapping, of which no other reference may be there.
fn places(map: &mut MmapMut) -> &'static mut [[u8; RECORD]] {
    let first = map.as_mut_ptr().cast::<[u8; RECORD]>();
    // SAFETY: the mapping has PART bytes, whole records of bytes, any of which is valid; it does not move with `map`. Both callers
    // are of `Chunk`, which keeps the mapping as long as the places and gives out references to them only for as long as it is
    // borrowed alone: `map` has no places yet, and `move_to` has dropped those of before.
    unsafe { slice::from_raw_parts_mut(first, PART / RECORD) }
}

/// Whether the file is in memory, where room that is kept is pages that are filled, and so no less work than to write them.
pub(super) fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| system.f_type as u64 == TMPFS_MAGIC)
}

/// Has the disk keep room for these bytes of the file, which is then at least so long.
pub(super) fn reserve_blocks(file: &File, bytes: Range<u64>) -> Result<(), Errno> {
    let length = bytes.end - bytes.start;
    fallocate(file, FallocateFlags::empty(), bytes.start, length)
}

/// The type of a file system in memory (statfs(2)).
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Makes room for a chunk on the disk. A file system that cannot reserve is written to. So is one whose reserving a signal has
/// interrupted (fallocate(2), EINTR): a program's timer may do so every time, and a write goes on where it was.
fn reserve(file: &File, begin: u64) -> io::Result<()> {
    match reserve_blocks(file, begin..begin + Chunk::BYTES) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {
            file.write_all_at(&vec![0; Chunk::BYTES as usize], begin)
        }
        Err(error) => Err(error.into()),
    }
}
