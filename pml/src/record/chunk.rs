//! A piece of a trace's file in memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use tagwire_matching::trace::RECORD;

/// A mapped piece of a file: places for records.
pub(super) struct Chunk(MmapMut);

impl Chunk {
    /// Bytes of a chunk.
    pub(super) const BYTES: u64 = 1 << 20;

    /// The last place of a chunk.
    pub(super) const LAST: usize = Self::BYTES as usize / RECORD - 1;

    /// Maps the chunk that begins at `begin`, a multiple of the page size, and has the disk keep its room: to write into a mapping
    /// for which there is none ends the process.
    pub(super) fn map(file: &File, begin: u64) -> io::Result<Self> {
        reserve(file, begin)?;
        let mut options = MmapOptions::new();
        let options = options.offset(begin).len(Self::BYTES as usize);
        // SAFETY: the file was made by this rank and is new (`create_new`); nobody else maps it, and those who read it do so by
        // calls of the system, into memory of their own. Who changes or cuts it from outside changes bytes that this process
        // writes and does not read; past a cut end the process is ended by a signal.
        let map = unsafe { options.map_mut(file) }?;
        Ok(Self(map))
    }

    /// Returns the places.
    #[inline(always)]
    pub(super) fn records(&mut self) -> &mut [[u8; RECORD]] {
        self.0.as_chunks_mut().0
    }
}

/// Makes room for a chunk on the disk. A file system that cannot reserve is written to. So is one whose reserving a signal has
/// interrupted (fallocate(2), EINTR): a program's timer may do so every time, and a write goes on where it was.
fn reserve(file: &File, begin: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), begin, Chunk::BYTES) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {
            file.write_all_at(&vec![0; Chunk::BYTES as usize], begin)
        }
        Err(error) => Err(error.into()),
    }
}
