//! Memory that services of victims reach: it is contiguous, and nobody looks at what is in it.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

use tagwire_transport::{RecvBuffer, SendBuffer};

/// How long each piece is.
pub const LEN: usize = 64 << 10;

/// Bytes that last as long as the process: a peer may be at them after a failure.
#[derive(Debug, Clone, Copy)]
pub struct Memory(&'static UnsafeCell<[u8; LEN]>);

impl Memory {
    /// Returns one that nobody else has.
    pub fn new() -> Self {
        Self(Box::leak(Box::new(UnsafeCell::new([0; LEN]))))
    }

    /// Returns the first bytes of it, to be sent.
    ///
    /// # Panics
    /// When it has not so many.
    pub fn send_buffer(self, len: usize) -> SendBuffer {
        assert!(len <= LEN);
        // SAFETY: it has so many bytes, which last; those that are sent are written by nobody.
        unsafe { SendBuffer::contiguous(self.0.get().cast(), len) }
    }

    /// Returns the first bytes of it, to be written.
    ///
    /// # Panics
    /// When it has not so many.
    pub fn recv_buffer(self, len: usize) -> RecvBuffer {
        assert!(len <= LEN);
        // SAFETY: it has so many bytes, which last; transports alone write them, by copies, in the one thread of a round, and nobody
        // makes a reference to them.
        unsafe { RecvBuffer::contiguous(self.0.get().cast(), len) }
    }
}
