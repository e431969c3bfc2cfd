//! Arrays of handles: four bytes each in Fortran, eight in C.

use crate::abi::Handle;

/// So many handles need no memory from the heap.
const NEAR: usize = 32;

/// Handles of C in the place of an array of Fortran. They live as long as the call: our library reads them then, in nonblocking and
/// persistent operations too.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    near: [T; NEAR],
    far: Vec<T>,
    length: usize,
}

impl<T: Handle> Handles<T> {
    /// Reads an array.
    ///
    /// # Safety
    ///
    /// So many integers may be read.
    pub(crate) unsafe fn read<N: TryInto<usize>>(from: *const i32, length: N) -> Self {
        let mut handles = Self::room(from, length);
        for at in 0..handles.length {
            // SAFETY: as for this function.
            let value = unsafe { *from.add(at) };
            handles.all()[at] = T::of_fortran(value);
        }
        handles
    }

    /// Makes room for what a function writes.
    pub(crate) fn room<N: TryInto<usize>>(_: *const i32, length: N) -> Self {
        // A negative number of elements is the library's to refuse.
        let length = length.try_into().unwrap_or(0);
        let far = match length > NEAR {
            true => vec![T::UNSET; length],
            false => Vec::new(),
        };
        Self {
            near: [T::UNSET; NEAR],
            far,
            length,
        }
    }

    /// Returns the array for C.
    pub(crate) fn pointer(&mut self) -> *mut T {
        self.all().as_mut_ptr()
    }

    /// Writes the handles back.
    ///
    /// # Safety
    ///
    /// As many integers may be written.
    pub(crate) unsafe fn write(&mut self, to: *mut i32) {
        for (at, handle) in self.all().iter().enumerate() {
            if handle.is_set() {
                // SAFETY: as for this function.
                unsafe { *to.add(at) = handle.to_fortran() };
            }
        }
    }

    fn all(&mut self) -> &mut [T] {
        match self.length > NEAR {
            true => &mut self.far,
            false => &mut self.near[..self.length],
        }
    }
}
