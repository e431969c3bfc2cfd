//! Memory of a program's caller: an address, and the bytes around it that may be touched.
//!
//! ```text
//!            low            address           high
//!             |                |                |
//!   ..........[================x================]........
//! ```
//!
//! The data of a datatype may lie before the address of a buffer as well as behind it.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

/// Memory that data is packed out of.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    address: *const u8,
    span: Span,
    memory: PhantomData<&'a [u8]>,
}

/// Memory that data is unpacked into.
#[derive(Debug)]
pub struct Target<'a> {
    address: *mut u8,
    span: Span,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a source stands for a shared slice, which threads may share: its makers promise no less.
unsafe impl Send for Source<'_> {}
// SAFETY: as above.
unsafe impl Sync for Source<'_> {}
// SAFETY: a target stands for an exclusive slice, which may go to another thread: its makers promise no less.
unsafe impl Send for Target<'_> {}
// SAFETY: nothing is read or written by a shared reference to a target.
unsafe impl Sync for Target<'_> {}

impl<'a> Source<'a> {
    /// Returns a slice as memory. The address is that of its first byte.
    #[must_use]
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self {
            address: bytes.as_ptr(),
            span: Span::behind(bytes.len()),
            memory: PhantomData,
        }
    }

    /// Returns a slice as memory. The address is that of the byte at `origin`, which may be the end.
    ///
    /// # Panics
    ///
    /// If `origin` is greater than the length.
    #[must_use]
    pub const fn around(bytes: &'a [u8], origin: usize) -> Self {
        let (before, _) = bytes.split_at(origin);
        Self {
            address: bytes.as_ptr().wrapping_add(before.len()),
            span: Span::around(before.len(), bytes.len()),
            memory: PhantomData,
        }
    }

    /// Returns the memory at an address: for data at displacements in `span`, which [`Program::span`] tells. The null
    /// address is `MPI_BOTTOM`: displacements are addresses, of memory of which the pointers were exposed.
    ///
    /// # Safety
    ///
    /// Every byte in `span` that a program names to which the source is given is initialised, may be read, and is written by
    /// nobody while `'a` lasts. What a program packs into is none of them.
    ///
    /// [`Program::span`]: crate::Program::span
    #[must_use]
    pub const unsafe fn at(address: *const u8, span: Range<i64>) -> Self {
        Self {
            address,
            span: Span(span.start, span.end),
            memory: PhantomData,
        }
    }

    /// Returns whether all of some bytes may be touched.
    #[inline]
    pub(crate) const fn holds(&self, (low, high): (i64, i64)) -> bool {
        self.span.holds(low, high)
    }

    /// Returns a pointer to the byte at a displacement.
    #[inline]
    pub(crate) fn pointer(&self, offset: i64) -> *const u8 {
        if self.address.is_null() {
            ptr::with_exposed_provenance(offset as usize)
        } else {
            self.address.wrapping_offset(offset as isize)
        }
    }
}

impl<'a> Target<'a> {
    /// Returns a slice as memory. The address is that of its first byte.
    #[must_use]
    pub const fn of(bytes: &'a mut [u8]) -> Self {
        Self {
            span: Span::behind(bytes.len()),
            address: bytes.as_mut_ptr(),
            memory: PhantomData,
        }
    }

    /// Returns a slice as memory. The address is that of the byte at `origin`, which may be the end.
    ///
    /// # Panics
    ///
    /// If `origin` is greater than the length.
    #[must_use]
    pub const fn around(bytes: &'a mut [u8], origin: usize) -> Self {
        let length = bytes.len();
        let (before, _) = bytes.split_at(origin);
        let span = Span::around(before.len(), length);
        Self {
            span,
            address: bytes.as_mut_ptr().wrapping_add(origin),
            memory: PhantomData,
        }
    }

    /// Returns the memory at an address, as [`Source::at`].
    ///
    /// # Safety
    ///
    /// Every byte in `span` that a program names to which the target is given may be written, and nobody else reads or
    /// writes it while `'a` lasts. What a program unpacks is none of them.
    #[must_use]
    pub const unsafe fn at(address: *mut u8, span: Range<i64>) -> Self {
        Self {
            address,
            span: Span(span.start, span.end),
            memory: PhantomData,
        }
    }

    /// Returns whether all of some bytes may be touched.
    #[inline]
    pub(crate) const fn holds(&self, (low, high): (i64, i64)) -> bool {
        self.span.holds(low, high)
    }

    /// Returns a pointer to the byte at a displacement.
    #[inline]
    pub(crate) fn pointer(&mut self, offset: i64) -> *mut u8 {
        if self.address.is_null() {
            ptr::with_exposed_provenance_mut(offset as usize)
        } else {
            self.address.wrapping_offset(offset as isize)
        }
    }
}

/// Displacements from the address: of the first byte, and of what is behind the last one.
#[derive(Debug, Clone, Copy)]
struct Span(i64, i64);

impl Span {
    /// A slice's length is no more than `isize::MAX`.
    const fn behind(length: usize) -> Self {
        Self(0, length as i64)
    }

    const fn around(origin: usize, length: usize) -> Self {
        Self(-(origin as i64), (length - origin) as i64)
    }

    #[inline]
    const fn holds(self, low: i64, high: i64) -> bool {
        self.0 <= low && low <= high && high <= self.1
    }
}
