//! Lending a layer's own memory to the transport.
#![allow(unsafe_code)]

use tagwire_transport::{RecvBuffer, SendBuffer};

/// The bytes of a copy, to be sent. The request that owns `copy` keeps it, unchanged and in its
/// place, until the transport is done with it.
pub(crate) fn lend(copy: &[u8]) -> SendBuffer {
    // SAFETY: a boxed copy does not move when its request does, nobody writes to it, and the
    // request lives until its operation is complete.
    unsafe { SendBuffer::contiguous(copy.as_ptr(), copy.len()) }
}

/// Room for bytes that arrive, on the same terms: nobody looks at it before the transport is done.
pub(crate) fn lend_room(room: &mut [u8]) -> RecvBuffer {
    // SAFETY: as above, and the request does not touch its room meanwhile.
    unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) }
}
