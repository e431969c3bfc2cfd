//! Descriptors of arrays, as gfortran 8 and later pass them for `TYPE(*), DIMENSION(..)`.
//!
//! ```text
//!   0  address of the first element
//!   8  (offset of the element whose subscripts are all zero)
//!  16  bytes of an element          24  version, 28  rank, 29  type, 30  attribute
//!  32  bytes of a step: an element is so long, or the variable that it is a component of
//!  40  for each dimension: stride in steps, lower bound, upper bound
//! ```
//!
//! A polymorphic array has the bytes of its declared type at 16 (no such where that is `CLASS(*)`), and those of what it holds at 32.
//! Of characters in an array of `CLASS(*)` gfortran passes no length: a step has the bytes of one character.

use std::ffi::c_void;

/// A descriptor that the compiler has made: the head, with as many rows behind it as there are dimensions.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Descriptor {
    base: *mut c_void,
    offset: isize,
    element: i64,
    version: i32,
    rank: i8,
    of: i8,
    attribute: i16,
    step: i64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Row {
    stride: i64,
    lower: i64,
    upper: i64,
}

/// What a descriptor says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array<'a> {
    pub(crate) base: *mut c_void,
    /// The bytes of an element.
    pub(crate) element: i64,
    /// Whether elements may have more bytes than the descriptor says: they may be characters in an array of `CLASS(*)`.
    pub(crate) may_be_longer: bool,
    step: i64,
    rows: &'a [Row],
}

/// A dimension of an array: so many elements, so many bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) extent: i64,
    pub(crate) stride: i64,
}

/// The most dimensions that Fortran has.
const MOST: i8 = 15;
/// Types of elements, as gfortran numbers them: a derived one, declared by `TYPE` or `CLASS`.
const DERIVED: i8 = 5;
/// What gfortran 12 and gfortran 11 give as the type of `CLASS(*)`.
const VOID: i8 = 10;
const ASSUMED: i8 = 11;

impl Descriptor {
    /// Returns whether the elements lie one behind the other in memory, as [`Array::is_contiguous`] does.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub(crate) unsafe fn is_contiguous(from: *const Self) -> bool {
        // SAFETY: as for this function; one dimension has a row.
        unsafe {
            // Most buffers: one dimension whose elements follow each other, whatever its bounds are.
            if (*from).rank == 1
                && (*from.add(1).cast::<Row>()).stride == 1
                && (*from).step == (*from).element
            {
                return true;
            }
            Self::is_contiguous_array(from)
        }
    }

    /// Reads a descriptor for [`is_contiguous`](Self::is_contiguous).
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(never)]
    unsafe fn is_contiguous_array(from: *const Self) -> bool {
        // SAFETY: as for this function.
        unsafe { Self::read(from) }.is_contiguous()
    }

    /// Reads a descriptor.
    ///
    /// # Safety
    ///
    /// The compiler has made it for the call that is under way.
    #[inline]
    pub(crate) unsafe fn read<'a>(from: *const Self) -> Array<'a> {
        // SAFETY: as for this function: the head, and a row for each dimension behind it.
        unsafe {
            let rank = (*from).rank.clamp(0, MOST).unsigned_abs();
            let rows = from.add(1).cast::<Row>();
            let of = (*from).of;
            // A step that is not set is an element.
            let step = if (*from).step == 0 {
                (*from).element
            } else {
                (*from).step
            };
            // A step is an element too where the array is not polymorphic: components of a derived type are passed as copies, which
            // the trial of the compiler checks.
            let element = match of {
                DERIVED | VOID | ASSUMED if rank > 0 => step,
                _ => (*from).element,
            };
            Array {
                base: (*from).base,
                element,
                may_be_longer: matches!(of, VOID | ASSUMED) && step == 1,
                step,
                rows: std::slice::from_raw_parts(rows, usize::from(rank)),
            }
        }
    }
}

impl Array<'_> {
    /// Returns the dimensions, the first one first.
    pub(crate) fn dimensions(
        &self,
    ) -> impl DoubleEndedIterator<Item = Dimension> + ExactSizeIterator {
        self.rows.iter().map(|row| Dimension {
            extent: row.extent(),
            stride: row.stride.wrapping_mul(self.step),
        })
    }

    /// Returns whether the elements lie one behind the other in memory. An array of assumed size has no last extent, and its elements
    /// do; so do no elements.
    pub(crate) fn is_contiguous(&self) -> bool {
        let mut wanted = self.element;
        for row in self.rows {
            let extent = row.extent();
            if extent <= 0 {
                return true;
            }
            if extent != 1 && row.stride.wrapping_mul(self.step) != wanted {
                return self.is_empty();
            }
            wanted = wanted.wrapping_mul(extent);
        }
        true
    }

    /// Returns whether a dimension has no elements, so that the array has none. An array of assumed size has none either: its last
    /// extent is not told.
    fn is_empty(&self) -> bool {
        self.rows.iter().any(|row| row.extent() <= 0)
    }
}

impl Array<'_> {
    /// Calls a function with the address and the length of each element, in the order of Fortran.
    pub(crate) fn each(&self, mut act: impl FnMut(*mut u8, usize)) {
        if self.is_empty() {
            return;
        }
        let dimensions: Vec<_> = self.dimensions().collect();
        let length = usize::try_from(self.element).unwrap_or(0);
        let mut subscripts = vec![0_i64; dimensions.len()];
        loop {
            let places = dimensions.iter().zip(&subscripts);
            let offset: i64 = places.map(|(dimension, at)| dimension.stride * at).sum();
            act(
                self.base.cast::<u8>().wrapping_offset(offset as isize),
                length,
            );
            let mut counted = dimensions.iter().zip(&mut subscripts);
            let is_next = counted.any(|(dimension, at)| {
                *at += 1;
                let is_inside = *at < dimension.extent;
                if !is_inside {
                    *at = 0;
                }
                is_inside
            });
            if !is_next {
                return;
            }
        }
    }
}

impl Row {
    #[inline]
    fn extent(&self) -> i64 {
        self.upper.wrapping_sub(self.lower).wrapping_add(1)
    }
}

/// What a buffer is passed as: an address, or a descriptor.
pub(crate) trait Buffer {
    /// Returns the address of the first element.
    ///
    /// # Safety
    ///
    /// A descriptor is as [`Descriptor::read`] wants it.
    unsafe fn base(self) -> *mut c_void;
}

impl Buffer for *mut c_void {
    unsafe fn base(self) -> *mut c_void {
        self
    }
}

impl Buffer for *const Descriptor {
    unsafe fn base(self) -> *mut c_void {
        // SAFETY: as for this function.
        unsafe { (*self).base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an array of integers is contiguous, and the places of its elements in bytes. The dimensions are strides and upper bounds.
    fn of_integers(dimensions: &[(i64, i64)]) -> (bool, Vec<usize>) {
        let row = |&(stride, upper): &(i64, i64)| Row {
            stride,
            lower: 1,
            upper,
        };
        let rows: Vec<_> = dimensions.iter().map(row).collect();
        let array = Array {
            base: std::ptr::null_mut(),
            element: 4,
            may_be_longer: false,
            step: 4,
            rows: &rows,
        };
        let mut places = Vec::new();
        array.each(|element, length| {
            assert_eq!(length, 4);
            places.push(element.addr());
        });
        (array.is_contiguous(), places)
    }

    #[test]
    fn an_array_without_elements_is_contiguous_whatever_its_strides_are() {
        let none = (true, Vec::new());
        assert_eq!(of_integers(&[(1, 0)]), none);
        assert_eq!(of_integers(&[(2, 1_000_000), (2_000_000, 0)]), none);
        assert_eq!(of_integers(&[(2, 3), (-10, 4), (100, -1)]), none);
        assert_eq!(of_integers(&[(2, 0), (10, 4)]), none);
    }

    #[test]
    fn elements_are_walked_in_the_order_of_fortran() {
        assert_eq!(of_integers(&[]), (true, vec![0]));
        assert_eq!(of_integers(&[(1, 2), (2, 2)]), (true, vec![0, 4, 8, 12]));
        let strided = vec![0, 8, 16, 40, 48, 56];
        assert_eq!(of_integers(&[(2, 3), (10, 2)]), (false, strided));
        assert_eq!(of_integers(&[(7, 1), (10, 2)]), (false, vec![0, 40]));
    }
}
