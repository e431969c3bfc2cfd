//! Memory of one host that several ranks map: that of a board, without rounds, for whatever its members agree on.
//!
//! It is made and joined as a board is, by [`Boards`](super::Boards). Its first page is the board's; the rest is the members'.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

use tagwire_base::config::parse::format_bytes;

use super::available::available;
use super::memory::{BoardMemory, PAGE};

/// Memory that several ranks of a host map, at an address of its own in each. It was zero when its maker mapped it.
pub struct SharedMemory(BoardMemory);

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory of {} bytes", self.len())
    }
}

impl SharedMemory {
    /// Returns how many bytes the board has in which `len` bytes are shared: what [`Boards`](super::Boards) are asked for. `None`
    /// where no memory is so long.
    #[must_use]
    pub fn board_bytes(len: usize) -> Option<usize> {
        len.checked_add(PAGE)
            .filter(|bytes| isize::try_from(*bytes).is_ok())
    }

    /// Returns the memory of a board that was made for this.
    #[must_use]
    pub const fn new(memory: BoardMemory) -> Self {
        Self(memory)
    }

    /// Has all of the memory exist, so that no later access to it lacks memory (fallocate(2)). Its maker calls it, before it tells
    /// others the key.
    ///
    /// # Errors
    /// When there is not so much memory: where the system says so, nothing is taken.
    pub fn reserve(&self) -> io::Result<()> {
        if let Some(available) = available()
            && self.len() as u64 > available
        {
            let text = format!("{} of memory are available", format_bytes(available));
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, text));
        }
        self.0.reserve()
    }

    /// Closes the descriptor by which others join: all have.
    pub fn forget_descriptor(&mut self) {
        self.0.forget_descriptor();
    }

    /// Returns how many bytes there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a size of memory, and no list")]
    pub const fn len(&self) -> usize {
        self.0.rest().1
    }

    /// Returns the first byte, which is at a page. The memory is mapped as long as this value is there.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.0.rest().0
    }

    /// Returns so many words from `offset` on.
    ///
    /// # Panics
    /// Where they are not there: the offset is no multiple of 8, or the memory ends before.
    #[inline]
    #[must_use]
    pub fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        let (start, len) = self.0.rest();
        let is_there = offset.is_multiple_of(8) && offset <= len && count <= (len - offset) / 8;
        assert!(is_there, "words of the memory");
        // SAFETY: they are aligned, since the start is at a page, and in the mapping, which lives as long as `self` and cannot shrink.
        // Any bytes are valid for them, and others may change them.
        unsafe { slice::from_raw_parts(start.add(offset).cast::<AtomicU64>().as_ptr(), count) }
    }

    /// Returns the word at `offset`.
    ///
    /// # Panics
    /// As [`words`](Self::words).
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words(offset, 1)[0]
    }
}
