//! The caller's pointers.
//!
//! A C program promises that the pointers which it gives to a call are as the standard says: that arrays are as long as counts
//! say, that results may be written, and that the buffers of an operation may be read or written until it is complete. The
//! values of this module carry that promise: whoever makes one of a pointer vouches for it, and from there on they are safe to
//! use. Nothing else is dereferenced in this crate.
//!
//! A slice of the data is for the operation alone, and unsafe to ask for: packing, collectives and their fast path do.
#![allow(unsafe_code)]

mod arrays;
mod data;
mod results;
mod words;

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::error::{Class, Error, Result};

pub use arrays::{Array, Counts, List};
pub(crate) use data::StagingBuffer;
pub use data::{Elements, In, Out, Place};
pub use results::{CountOut, Narrow, Ref, StatusRef, Statuses};
pub(crate) use words::KeptWords;

/// Which function of a pair was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    /// The one with counts of type `int`.
    Int,
    /// The one with counts of type `MPI_Count`, whose name ends in `_c`.
    Big,
}

/// A text that the call reads.
#[derive(Debug, Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// Returns the text at an address.
    ///
    /// # Safety
    /// It is null, or ends with a zero byte.
    #[must_use]
    pub const unsafe fn new(text: *const c_char) -> Self {
        Self(text)
    }

    /// Returns what it says.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    pub fn get(self) -> Result<String> {
        self.read(|text| text.to_string_lossy().into_owned())
    }

    /// Returns its bytes, without the zero at the end: names of files may have any others.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn bytes(self) -> Result<Vec<u8>> {
        self.read(|text| text.to_bytes().to_vec())
    }

    fn read<T>(self, body: impl FnOnce(&CStr) -> T) -> Result<T> {
        if self.0.is_null() {
            return Err(Error::new(Class::Arg, "a string is null"));
        }
        // SAFETY: the promise of this value's maker.
        Ok(body(unsafe { CStr::from_ptr(self.0) }))
    }
}

/// The memory of a text that the call returns.
#[derive(Debug, Clone, Copy)]
pub struct TextOut(*mut c_char);

impl TextOut {
    /// Returns the memory at an address.
    ///
    /// # Safety
    /// It is null, or as long as the standard says for what is returned there.
    #[must_use]
    pub const unsafe fn new(text: *mut c_char) -> Self {
        Self(text)
    }

    /// Sets it to as much of `text` as `size` bytes hold, with a zero byte at the end. Returns the length without that.
    pub fn set(self, text: &str, size: usize) -> i32 {
        let bytes = text.as_bytes();
        let length = bytes.len().min(size.saturating_sub(1));
        if !self.0.is_null() && size > 0 {
            // SAFETY: the promise of this value's maker; `size` is what the standard says, and one byte is left for the zero.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr().cast(), self.0, length);
                self.0.add(length).write(0);
            }
        }
        length as i32
    }
}

/// A pointer that is kept or given back, and not looked behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pointer(pub *mut c_void);

// SAFETY: nobody looks behind it here.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// Returns the pointer as one.
    ///
    /// # Safety
    /// None: nothing is done by it.
    #[must_use]
    pub const unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }
}
