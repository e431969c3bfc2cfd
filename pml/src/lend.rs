//! Memory of the layers' own, lent to operations.
#![allow(unsafe_code)]

use tagwire_transport::{RecvBuffer, SendBuffer};

/// The bytes of a copy, to be sent.
///
/// # Safety
/// The copy stays where and as it is while it is lent, as [`SendBuffer::contiguous`] says.
pub(crate) const unsafe fn lend(copy: &[u8]) -> SendBuffer {
    // SAFETY: as the caller promises.
    unsafe { SendBuffer::contiguous(copy.as_ptr(), copy.len()) }
}

/// Room for bytes that arrive.
///
/// # Safety
/// As [`lend`], and nobody else looks at the room meanwhile, as [`RecvBuffer::contiguous`] says.
pub(crate) const unsafe fn lend_room(room: &mut [u8]) -> RecvBuffer {
    // SAFETY: as the caller promises.
    unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) }
}
