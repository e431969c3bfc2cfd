//! Arrays of arguments.
#![allow(unsafe_code)]

use std::ptr;

use crate::error::{Class, Error, Result};

/// `MPI_UNWEIGHTED`.
const UNWEIGHTED: usize = 10;

/// `MPI_WEIGHTS_EMPTY`.
const WEIGHTS_EMPTY: usize = 11;

/// An array of counts or displacements, of `int` or of wider integers.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// `const int[]`.
    Int(*const i32),
    /// `const MPI_Count[]` or `const MPI_Aint[]`.
    Big(*const i64),
}

impl Counts {
    /// Returns an element. Where there is no array, zero.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> i64 {
        match self {
            Self::Int(array) if !array.is_null() => {
                // SAFETY: the caller of MPI promises that the array has an element for each index that a call uses.
                i64::from(unsafe { *array.add(index) })
            }
            Self::Big(array) if !array.is_null() => {
                // SAFETY: as above.
                unsafe { *array.add(index) }
            }
            _ => 0,
        }
    }
}

/// An array that is read.
#[derive(Debug, Clone, Copy)]
pub struct List<T>(*const T);

impl<T: Copy> List<T> {
    /// Returns the array at an address.
    ///
    /// # Safety
    /// It has an element for each index that the call uses.
    #[must_use]
    pub const unsafe fn new(array: *const T) -> Self {
        Self(array)
    }

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns an element.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is no array.
    pub fn get(self, index: usize) -> Result<T> {
        if self.0.is_null() {
            return Err(Error::new(Class::Arg, "an array is null"));
        }
        // SAFETY: the promise of this value's maker.
        Ok(unsafe { self.0.add(index).read() })
    }

    /// Returns the first `count` elements.
    #[must_use]
    pub fn slice(&self, count: usize) -> &[T] {
        if count == 0 || self.0.is_null() {
            return &[];
        }
        // SAFETY: the promise of this value's maker, who keeps the array for the call; this value is one of its arguments.
        unsafe { std::slice::from_raw_parts(self.0, count) }
    }
}

impl List<i32> {
    /// Returns the weights of `count` edges; `None` where they are `MPI_UNWEIGHTED`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where edges have none: for `MPI_WEIGHTS_EMPTY`, or a null pointer.
    pub fn weights(&self, count: usize) -> Result<Option<&[i32]>> {
        match self.0.addr() {
            UNWEIGHTED => Ok(None),
            _ if count == 0 => Ok(Some(&[])),
            0 | WEIGHTS_EMPTY => {
                let text = format!("there are no weights for {count} edges");
                Err(Error::new(Class::Arg, text))
            }
            _ => Ok(Some(self.slice(count))),
        }
    }
}

/// An array that the call reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct Array<T>(*mut T);

impl<T: Copy> Array<T> {
    /// Returns the array at an address.
    ///
    /// # Safety
    /// It has an element for each index that the call uses, which nobody else uses meanwhile.
    #[must_use]
    pub const unsafe fn new(array: *mut T) -> Self {
        Self(array)
    }

    /// Returns an element.
    ///
    /// # Panics
    /// Where there is no array.
    #[must_use]
    pub fn get(self, index: usize) -> T {
        assert!(!self.0.is_null(), "an array was promised");
        // SAFETY: the promise of this value's maker.
        unsafe { self.0.add(index).read() }
    }

    /// Returns no array.
    #[must_use]
    pub const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Sets an element, where there is an array.
    pub fn set(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: as above.
            unsafe { self.0.add(index).write(value) };
        }
    }

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl Array<i32> {
    /// Returns the same for weights of edges that are written: none where it is `MPI_UNWEIGHTED` or `MPI_WEIGHTS_EMPTY`.
    #[must_use]
    pub fn for_weights(self) -> Self {
        match self.0.addr() {
            UNWEIGHTED | WEIGHTS_EMPTY => Self(ptr::null_mut()),
            _ => self,
        }
    }
}
