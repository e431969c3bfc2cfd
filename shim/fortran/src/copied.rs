//! Copies of sections, for calls that are over when they return: what a compiler makes where it knows of no descriptors.

use std::ffi::c_void;

use crate::abi::ERR_BUFFER;
use crate::descriptor::Array;
use crate::{address, peers};

/// A buffer as C has it: the array itself where it is contiguous, else a copy.
#[derive(Debug)]
pub(crate) struct Copied<'a> {
    array: Array<'a>,
    /// The elements one behind the other, where the array has not got them so.
    elements: Option<Vec<u8>>,
}

impl<'a> Copied<'a> {
    /// Copies the elements of a section.
    ///
    /// # Errors
    ///
    /// `MPI_ERR_BUFFER` where the section is not contiguous, and its elements may be longer than they are told to be.
    ///
    /// # Safety
    ///
    /// The elements may be read.
    pub(crate) unsafe fn new(array: Array<'a>) -> Result<Self, i32> {
        let is_contiguous = array.is_contiguous();
        if array.may_be_longer && !is_contiguous {
            return Err(ERR_BUFFER);
        }
        let elements = (!is_contiguous).then(|| {
            let mut elements = Vec::new();
            array.each(|element, length| {
                // SAFETY: as for this function.
                elements.extend_from_slice(unsafe { std::slice::from_raw_parts(element, length) });
            });
            elements
        });
        Ok(Self { array, elements })
    }

    /// Copies the elements of a section that has a meaning at the root alone.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), where this process is the root.
    ///
    /// # Safety
    ///
    /// The elements may be read, where this process is the root.
    pub(crate) unsafe fn at_root(array: Array<'a>, root: i32, comm: i32) -> Result<Self, i32> {
        if peers::is_root(root, comm) {
            // SAFETY: as for this function.
            return unsafe { Self::new(array) };
        }
        let elements = None;
        Ok(Self { array, elements })
    }

    /// Returns the address of the first element for C.
    pub(crate) fn address(&mut self) -> *mut c_void {
        match &mut self.elements {
            Some(elements) => elements.as_mut_ptr().cast(),
            None => address::buffer(self.array.base),
        }
    }

    /// Copies the elements back into the section.
    ///
    /// # Safety
    ///
    /// The elements of the section may be written.
    pub(crate) unsafe fn put_back(&self) {
        let Some(elements) = &self.elements else {
            return;
        };
        let mut rest = elements.as_slice();
        self.array.each(|element, length| {
            let (first, after) = rest.split_at(length);
            // SAFETY: as for this function; the copy is memory of its own.
            unsafe { element.copy_from_nonoverlapping(first.as_ptr(), length) };
            rest = after;
        });
    }
}
