//! Values that are lent to operations which may outlive whoever started them.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use tagwire_transport::{RecvBuffer, SendBuffer};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A value on the heap that is lent to operations. It is freed by being [reclaimed](Held::reclaim) alone: dropped, it
/// stays, since an operation may still be at it.
#[derive(Debug)]
pub(crate) struct Held<T: ?Sized>(NonNull<T>);

// SAFETY: owns the value as a box does.
unsafe impl<T: ?Sized + Send> Send for Held<T> {}

impl<T: ?Sized + IntoBytes> Held<T> {
    /// Lends the bytes of `value` to sends.
    pub(crate) fn for_sends(value: Box<T>) -> (Self, SendBuffer)
    where
        T: Immutable,
    {
        let (start, len, held) = Self::hold(value);
        // SAFETY: the value stays until whoever reclaims it says that nothing is lent; nobody writes to it.
        (held, unsafe { SendBuffer::contiguous(start, len) })
    }

    /// Lends the room in `value` to receives, which may leave any bytes there.
    pub(crate) fn for_receives(value: Box<T>) -> (Self, RecvBuffer)
    where
        T: FromBytes,
    {
        let (start, len, held) = Self::hold(value);
        // SAFETY: as above, and nobody reads it.
        (held, unsafe { RecvBuffer::contiguous(start, len) })
    }

    fn hold(value: Box<T>) -> (*mut u8, usize, Self) {
        let len = size_of_val(&*value);
        let value = NonNull::from(Box::leak(value));
        (value.as_ptr().cast(), len, Self(value))
    }

    /// Takes the value back.
    ///
    /// # Safety
    /// The buffer made of it is gone, and the operations that it was given to have completed.
    pub(crate) unsafe fn reclaim(self) -> Box<T> {
        // SAFETY: the pointer comes from a box, whose owner this is; nobody else uses it any more.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}
