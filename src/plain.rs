//! What can be sent: slices of plain old data.
#![allow(unsafe_code)]

use std::fmt;
use std::num::Wrapping;

use tagwire_pml::{Failure, Status as PmlStatus};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::{Error, Result};

/// Elements of messages: plain old data, without padding, valid for any bytes. Integers, floats,
/// arrays of them, and structs that derive it. Bytes travel as they lie in memory.
///
/// ```
/// use tagwire::{Plain, Session};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Plain)]
/// #[repr(C)]
/// struct Task {
///     id: u64,
///     range: [u32; 2],
/// }
///
/// let session = Session::open()?;
/// let (world, me) = (session.world(), session.rank());
/// let tasks = [Task { id: 1, range: [0, 9] }, Task { id: 2, range: [10, 19] }];
/// let sent = world.isend_owned(tasks.to_vec(), me, 7)?;
/// let mut taken = [Task { id: 0, range: [0, 0] }; 2];
/// let status = world.recv(&mut taken, me, 7)?;
/// assert_eq!((status.count::<Task>()?, taken), (2, tasks));
/// sent.wait()?;
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
///
/// The derive macro asks for `#[repr(C)]` (or `transparent`), and refuses enums and generic parameters:
///
/// ```compile_fail
/// #[derive(tagwire::Plain)] // error: put #[repr(C)] on the struct
/// struct Task {
///     id: u64,
/// }
/// ```
///
/// It refuses fields that are not plain, such as a `bool`, a `char`, a reference or a `String`:
///
/// ```compile_fail,E0277
/// #[derive(tagwire::Plain)]
/// #[repr(C)]
/// struct Task {
///     name: String, // error: `String` is not plain data
/// }
/// ```
///
/// And it refuses padding, whose bytes have no values that could be sent:
///
/// ```compile_fail,E0080
/// #[derive(tagwire::Plain)]
/// #[repr(C)]
/// struct Task {
///     small: u32, // error: Task has padding
///     large: u64,
/// }
/// ```
///
/// # Safety
/// Any bytes are a valid value, every byte of a value is initialised, and a shared reference allows no change.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, so it cannot be sent or received",
    label = "not `Plain`",
    note = "on a struct of yours: #[derive(tagwire::Plain)] #[repr(C)]; its fields are numbers, arrays of them, and structs of the same kind"
)]
pub unsafe trait Plain: Sized + Send + 'static {}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        // SAFETY: a number has no padding, any bytes are one, and nothing in it changes behind a reference.
        unsafe impl Plain for $number {}
    )*};
}

numbers!(u8, u16, u32, u64, u128, usize);
numbers!(i8, i16, i32, i64, i128, isize);
numbers!(f32, f64, ());

// SAFETY: elements follow each other without padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: it is laid out as what it wraps.
unsafe impl<T: Plain> Plain for Wrapping<T> {}

/// A value whose bytes are zero.
pub(crate) const fn zeroed<T: Plain>() -> T {
    // SAFETY: any bytes make a `Plain` value.
    unsafe { std::mem::zeroed() }
}

/// How a receive or probe came out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub(crate) PmlStatus);

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Status");
        fields.field("source", &self.source());
        fields
            .field("tag", &self.tag())
            .field("bytes", &self.bytes());
        if self.is_cancelled() {
            fields.field("cancelled", &true);
        }
        if let Some(failure) = &self.0.failure {
            fields.field("failure", failure);
        }
        fields.finish()
    }
}

impl Status {
    /// That of an operation without an envelope.
    pub(crate) const EMPTY: Self = Self(PmlStatus::EMPTY);

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

    /// The status of an operation that ended well, else its failure; `room` is what a receive has room for, in bytes.
    pub(crate) const fn checked(status: PmlStatus, room: usize) -> Result<Self> {
        match status.failure {
            None => Ok(Self(status)),
            Some(Failure::Truncated { .. }) => Err(Error::Truncated {
                status: Self(status),
                room,
            }),
            Some(failure) => Err(Error::Failed(failure)),
        }
    }
}

/// Returns the bytes of `data`.
pub(crate) const fn bytes<T: Plain>(data: &[T]) -> &[u8] {
    // SAFETY: the same memory, borrowed alike; `Plain` has no padding, so that every byte is initialised.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

/// Returns the bytes of `data`, to be changed.
pub(crate) const fn bytes_mut<T: Plain>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: as above; any bytes make a `Plain` value.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
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
