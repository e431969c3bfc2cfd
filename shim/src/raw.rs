//! The caller's addresses. A stand-in until the real one is merged.

#![allow(unsafe_code, reason = "the caller's addresses")]
#![allow(dead_code, reason = "a stand-in")]

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::abi;

/// A buffer to read.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct In(*const c_void);

impl In {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *const c_void) -> Self {
        Self(pointer)
    }
}

/// A buffer to write, or to read and write.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Out(*mut c_void);

impl Out {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }
}

/// An address that is kept or handed on.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Pointer(*mut c_void);

impl Pointer {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }
}

/// A string.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *const c_char) -> Self {
        Self(pointer)
    }
}

/// Room for a string.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct TextOut(*mut c_char);

impl TextOut {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut c_char) -> Self {
        Self(pointer)
    }
}

/// A status, or `MPI_STATUS_IGNORE`.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct StatusRef(*mut abi::Status);

impl StatusRef {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut abi::Status) -> Self {
        Self(pointer)
    }
}

/// An array of statuses, or `MPI_STATUSES_IGNORE`.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Statuses(*mut abi::Status);

impl Statuses {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut abi::Status) -> Self {
        Self(pointer)
    }
}

/// A value that the callee writes, or reads and writes.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Ref<T>(*mut T);

impl<T: Copy> Ref<T> {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// What the caller's function does not have.
    pub fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Writes the value.
    pub fn set(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the address is the caller's, for this.
            unsafe { self.0.write(value) }
        }
    }
}

/// An array to read.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct List<T>(*const T);

impl<T: Copy> List<T> {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *const T) -> Self {
        Self(pointer)
    }
}

/// An array that the callee writes.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Array<T>(*mut T);

impl<T: Copy> Array<T> {
    /// Wraps a caller's address.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// What the caller's function does not have.
    pub fn null() -> Self {
        Self(ptr::null_mut())
    }
}

/// An array of counts or displacements, of either width.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// Of `int`.
    Int(*const i32),
    /// Of `MPI_Count` or `MPI_Aint`.
    Big(*const i64),
}

/// What a count becomes that does not fit into an `int`.
#[derive(Debug, Clone, Copy)]
pub enum Narrow {
    /// `MPI_UNDEFINED`.
    Undefined,
    /// An error of the call, `MPI_ERR_VALUE_TOO_LARGE`.
    Error,
}

/// A count that the callee writes, of either width.
#[derive(Debug, Clone, Copy)]
pub struct CountOut {
    pointer: *mut c_void,
    narrow: Option<Narrow>,
}

impl CountOut {
    /// Wraps the address of an `int`.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn int(pointer: *mut i32, narrow: Narrow) -> Self {
        let (pointer, narrow) = (pointer.cast(), Some(narrow));
        Self { pointer, narrow }
    }

    /// Wraps the address of a large count.
    ///
    /// # Safety
    ///
    /// The callee may use it as the standard says.
    pub unsafe fn big(pointer: *mut i64) -> Self {
        let (pointer, narrow) = (pointer.cast(), None);
        Self { pointer, narrow }
    }
}
