//! What can be sent: slices of plain old data.
#![allow(unsafe_code)]

use tagwire_pml::Status as PmlStatus;
use tagwire_transport::{RecvBuffer, SendBuffer};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::{Error, Result};

/// Elements of messages: plain old data, without padding, valid for any bytes. Integers, floats,
/// arrays of them, and structs that derive [`zerocopy`]'s traits. Bytes travel as they lie in
/// memory.
pub trait Plain: FromBytes + IntoBytes + Immutable + Send + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Send + 'static> Plain for T {}

/// How a receive or probe came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub(crate) PmlStatus);

impl Status {
    /// The rank that sent the message.
    #[must_use]
    pub const fn source(&self) -> u32 {
        self.0.source.as_u32()
    }

    /// The message's tag.
    #[must_use]
    pub const fn tag(&self) -> i32 {
        self.0.tag.as_i32()
    }

    /// The message's true length in bytes, also where the receive was too short for it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.0.length
    }

    /// The message's length in elements of `T`.
    ///
    /// # Errors
    /// [`Error::Fraction`] when it is no whole number.
    pub fn count<T: Plain>(&self) -> Result<usize> {
        let element = size_of::<T>();
        if element == 0 || !self.0.length.is_multiple_of(element) {
            return Err(Error::Fraction {
                bytes: self.0.length,
                element,
            });
        }
        Ok(self.0.length / element)
    }

    /// Whether the receive was taken back.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        self.0.cancelled
    }

    /// The status of an operation that ended well, else its failure.
    pub(crate) fn checked(status: PmlStatus) -> Result<Self> {
        Ok(Self(status.ok()?))
    }
}

/// Lends `data` to a send.
///
/// # Safety
/// The slice stays borrowed until the send is complete.
pub(crate) unsafe fn lend<T: Plain>(data: &[T]) -> SendBuffer {
    // SAFETY: the caller keeps the slice borrowed; `Plain` has no padding, so that every byte is
    // initialised.
    unsafe { SendBuffer::contiguous(data.as_ptr().cast(), size_of_val(data)) }
}

/// Lends `data` to a receive.
///
/// # Safety
/// The slice stays mutably borrowed until the receive is complete.
pub(crate) unsafe fn lend_mut<T: Plain>(data: &mut [T]) -> RecvBuffer {
    // SAFETY: the caller keeps the slice borrowed; any bytes make a `Plain` value.
    unsafe { RecvBuffer::contiguous(data.as_mut_ptr().cast(), size_of_val(data)) }
}
