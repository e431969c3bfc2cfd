//! What calls write: results, counts and statuses.
#![allow(unsafe_code)]

use std::ptr;

use crate::abi::{Status, UNDEFINED};
use crate::error::{Class, Error, Result};

/// A result of a call. Where the caller's pointer is null, it is dropped.
#[derive(Debug, Clone, Copy)]
pub struct Ref<T>(*mut T);

impl<T: Copy> Ref<T> {
    /// Returns the result at an address.
    ///
    /// # Safety
    /// It is null, or may be read and written during the call.
    #[inline]
    #[must_use]
    pub const unsafe fn new(result: *mut T) -> Self {
        Self(result)
    }

    /// Sets it.
    #[inline]
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the promise of this value's maker.
            unsafe { self.0.write(value) };
        }
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    #[inline]
    pub fn get(self) -> Result<T> {
        if self.0.is_null() {
            return Err(Error::new(Class::Arg, "a pointer is null"));
        }
        // SAFETY: as above.
        Ok(unsafe { self.0.read() })
    }

    /// Returns no result: it is dropped.
    #[must_use]
    pub const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Returns whether the caller's pointer is null.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// What a count becomes that does not fit its `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrow {
    /// `MPI_UNDEFINED`.
    Undefined,
    /// An error of the call, `MPI_ERR_VALUE_TOO_LARGE`.
    Error,
}

/// A count that a call returns, or moves on: in an `int` or in an `MPI_Count`.
#[derive(Debug, Clone, Copy)]
pub struct CountOut(Width);

#[derive(Debug, Clone, Copy)]
enum Width {
    Int(Ref<i32>, Narrow),
    Big(Ref<i64>),
}

impl CountOut {
    /// Returns the count in an `int`.
    ///
    /// # Safety
    /// It is null, or may be read and written during the call.
    #[must_use]
    pub const unsafe fn int(count: *mut i32, narrow: Narrow) -> Self {
        // SAFETY: the caller's promise.
        Self(Width::Int(unsafe { Ref::new(count) }, narrow))
    }

    /// Returns the count in an `MPI_Count`.
    ///
    /// # Safety
    /// As [`int`](Self::int).
    #[must_use]
    pub const unsafe fn big(count: *mut i64) -> Self {
        // SAFETY: the caller's promise.
        Self(Width::Big(unsafe { Ref::new(count) }))
    }

    /// Returns the same for a result that is an `MPI_Count` in any case.
    #[must_use]
    pub const fn wide(count: Ref<i64>) -> Self {
        Self(Width::Big(count))
    }

    /// Sets it.
    ///
    /// # Errors
    /// `MPI_ERR_VALUE_TOO_LARGE` where it does not fit, and is not to be `MPI_UNDEFINED` then.
    pub fn set(self, value: i64) -> Result {
        match (self.0, i32::try_from(value)) {
            (Width::Big(count), _) => count.set(value),
            (Width::Int(count, _), Ok(narrow)) => count.set(narrow),
            (Width::Int(count, Narrow::Undefined), Err(_)) => count.set(UNDEFINED),
            (Width::Int(_, Narrow::Error), Err(_)) => {
                let text = format!("{value} does not fit an int");
                return Err(Error::new(Class::ValueTooLarge, text));
            }
        }
        Ok(())
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    pub fn get(self) -> Result<i64> {
        match self.0 {
            Width::Int(count, _) => Ok(i64::from(count.get()?)),
            Width::Big(count) => count.get(),
        }
    }
}

/// A status, or `MPI_STATUS_IGNORE`.
#[derive(Debug, Clone, Copy)]
pub struct StatusRef(*mut Status);

impl StatusRef {
    /// Returns the status at an address.
    ///
    /// # Safety
    /// It is null, or may be read and written during the call.
    #[inline]
    #[must_use]
    pub const unsafe fn new(status: *mut Status) -> Self {
        Self(status)
    }

    /// Returns whether nobody asks for it.
    #[inline]
    #[must_use]
    pub const fn is_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Sets it, but for its error (MPI-5.0, section 3.2.5).
    #[inline]
    pub fn set(self, status: Status) {
        if !self.0.is_null() {
            // SAFETY: the promise of this value's maker.
            unsafe {
                let error = (*self.0).error;
                self.0.write(status.with_error(error));
            }
        }
    }

    /// Changes it.
    pub fn change(self, change: impl FnOnce(Status) -> Status) {
        if !self.0.is_null() {
            // SAFETY: as above.
            unsafe { self.0.write(change(self.0.read())) };
        }
    }

    /// Returns what it is; the empty status where there is none.
    #[must_use]
    pub fn get(self) -> Status {
        match self.0.is_null() {
            true => Status::EMPTY,
            // SAFETY: as above.
            false => unsafe { self.0.read() },
        }
    }
}

/// An array of statuses, or `MPI_STATUSES_IGNORE`.
#[derive(Debug, Clone, Copy)]
pub struct Statuses(*mut Status);

impl Statuses {
    /// Returns the array at an address.
    ///
    /// # Safety
    /// It is null, or has an element for each index that the call uses, which nobody else uses meanwhile.
    #[must_use]
    pub const unsafe fn new(array: *mut Status) -> Self {
        Self(array)
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn are_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Returns one of them.
    #[must_use]
    pub const fn at(self, index: usize) -> StatusRef {
        match self.0.is_null() {
            true => StatusRef(ptr::null_mut()),
            false => StatusRef(self.0.wrapping_add(index)),
        }
    }

    /// Sets the error of one.
    pub fn set_error(self, index: usize, code: i32) {
        self.at(index).change(|status| status.with_error(code));
    }
}
