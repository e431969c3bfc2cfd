//! Lending ob1's own memory to the transport.
#![allow(unsafe_code)]

use tagwire_transport::SendBuffer;

/// The bytes of a buffered send's copy. The request that owns `copy` also owns the buffer, drops
/// both together, and is kept until the transport is done with it.
pub(super) fn lend(copy: &[u8]) -> SendBuffer {
    // SAFETY: the boxed copy does not move when its request does, nobody writes to it, and the
    // request lives until its operation is complete.
    unsafe { SendBuffer::contiguous(copy.as_ptr(), copy.len()) }
}
