//! Memory that the ranks of a simulation lend to operations.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use tagwire_transport::{RecvBuffer, SendBuffer};

/// All rooms of a job: they are freed with it, after its ranks.
#[derive(Debug, Default)]
pub(super) struct Memory(RefCell<Vec<Room>>);

/// A piece of it, which one thread uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room(*mut [u8]);

impl Memory {
    /// Returns a room of zeros.
    pub(super) fn room(&self, len: usize) -> Room {
        // Words of it are changed as such.
        let words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let start = Box::into_raw(words).cast::<u8>();
        let room = Room(std::ptr::slice_from_raw_parts_mut(start, len));
        self.0.borrow_mut().push(room);
        room
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for Room(bytes) in self.0.take() {
            let words = std::ptr::slice_from_raw_parts_mut(bytes.cast(), bytes.len().div_ceil(8));
            // SAFETY: it comes from a box of so many words, and the ranks that had it are gone.
            drop(unsafe { Box::<[u64]>::from_raw(words) });
        }
    }
}

impl Room {
    pub(super) const fn lend(self) -> RecvBuffer {
        // SAFETY: it is there as long as the ranks are, and read once it is received into.
        unsafe { RecvBuffer::contiguous(self.0.cast(), self.0.len()) }
    }

    pub(super) const fn lend_to_send(self) -> SendBuffer {
        // SAFETY: it is there as long as the ranks are. What travels is not written meanwhile.
        unsafe { SendBuffer::contiguous(self.0.cast(), self.0.len()) }
    }

    pub(super) fn write(self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.0.len());
        // SAFETY: the bytes are in the room; there is one thread, and nobody has a reference.
        unsafe {
            let start = self.0.cast::<u8>().add(at);
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    pub(super) fn read(self, range: Range<usize>) -> Vec<u8> {
        assert!(range.end <= self.0.len());
        // SAFETY: as above.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.0.cast::<u8>().add(range.start), range.len())
        };
        bytes.to_vec()
    }
}
