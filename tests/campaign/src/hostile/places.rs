//! Buffers of victims: bytes that nobody looks at.

use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

/// So many bytes, which lie nowhere.
#[derive(Debug)]
pub struct Scattered(usize);

impl Scattered {
    /// Returns a buffer of so many bytes that are sent.
    pub fn of(len: usize) -> SendBuffer {
        SendBuffer::packed(Box::new(Self(len)))
    }
}

impl Pack for Scattered {
    fn len(&self) -> usize {
        self.0
    }

    fn pack(&self, _offset: usize, out: &mut [u8]) {
        out.fill(7);
    }
}

impl Unpack for Scattered {
    fn capacity(&self) -> usize {
        self.0
    }

    fn unpack(&self, offset: usize, bytes: &[u8]) {
        assert!(
            offset.saturating_add(bytes.len()) <= self.0,
            "more than there is room for"
        );
    }
}

/// Returns a buffer that so many bytes are received into.
pub fn buffer(len: usize) -> RecvBuffer {
    RecvBuffer::unpacked(Box::new(Scattered(len)))
}
