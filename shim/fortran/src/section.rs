//! Buffers of `mpi_f08`: arrays, sections of arrays, scalars (MPI-5.0, section 19.1.12).
//!
//! The elements of a section that is not contiguous are one element of a datatype that has its form. Each dimension is a vector by the
//! stride in bytes of what the dimensions before it make. Where a message has fewer elements than the section, whole rows, whole
//! planes and so on are the pieces of a structure.

use std::ffi::c_void;

use crate::abi::{Datatype, ERR_BUFFER};
use crate::address;
use crate::c::{
    PMPI_Type_commit, PMPI_Type_contiguous_c, PMPI_Type_create_hvector_c,
    PMPI_Type_create_struct_c, PMPI_Type_free, PMPI_Type_get_extent, PMPI_Type_size_c,
};
use crate::descriptor::{Array, Dimension};
use crate::peers;

/// Elements of a buffer as C has them.
#[derive(Debug)]
pub(crate) struct Section {
    address: *mut c_void,
    datatype: Datatype,
    /// The datatype of the whole section, where there is one.
    whole: Option<Owned>,
}

impl Section {
    /// Takes `count` elements of a datatype out of a buffer.
    ///
    /// # Errors
    ///
    /// `MPI_ERR_BUFFER` where the section is not contiguous, and its elements are fewer, are no whole number of the datatype's or may
    /// be longer than they are told to be; a code of the library that makes no datatype.
    pub(crate) fn elements<C: Into<i64>>(
        array: &Array<'_>,
        count: C,
        datatype: i32,
    ) -> Result<Self, i32> {
        let mut section = Self {
            address: address::buffer(array.base),
            datatype: Datatype::of_fortran(datatype),
            whole: None,
        };
        if !array.is_contiguous() {
            section.make(array, count.into())?;
        }
        Ok(section)
    }

    /// Returns the address of the first element.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        self.address
    }

    /// Returns the number of elements for C.
    #[inline]
    pub(crate) fn count<C: From<u8>>(&self, count: C) -> C {
        match self.whole {
            None => count,
            Some(_) => C::from(1),
        }
    }

    /// Returns the datatype for C.
    #[inline]
    pub(crate) fn datatype(&self) -> Datatype {
        match &self.whole {
            None => self.datatype,
            Some(owned) => owned.0,
        }
    }

    fn make(&mut self, array: &Array<'_>, count: i64) -> Result<(), i32> {
        let (mut lower, mut extent, mut size) = (0, 0, 0);
        // SAFETY: the results may be written.
        unsafe {
            good(PMPI_Type_get_extent(
                self.datatype,
                &raw mut lower,
                &raw mut extent,
            ))?;
            good(PMPI_Type_size_c(self.datatype, &raw mut size))?;
        }
        if count <= 0 || size == 0 {
            return Ok(());
        }
        let is_whole =
            lower == 0 && extent == size && array.element % size == 0 && !array.may_be_longer;
        let each = if is_whole { array.element / size } else { 0 };
        if each == 0 || count % each != 0 {
            return Err(ERR_BUFFER);
        }
        let element = match each {
            1 => Shape::Given(self.datatype),
            _ => Shape::Made(Owned::make(|new| {
                // SAFETY: the result may be written.
                unsafe { PMPI_Type_contiguous_c(each, self.datatype, new) }
            })?),
        };
        let owned = of_elements(array, count / each, element)?;
        let mut datatype = owned.0;
        // SAFETY: it is ours.
        good(unsafe { PMPI_Type_commit(&raw mut datatype) })?;
        self.whole = Some(owned);
        Ok(())
    }
}

/// Makes the datatype of the first `count` elements of a section.
fn of_elements(array: &Array<'_>, count: i64, element: Shape) -> Result<Owned, i32> {
    let dimensions: Vec<_> = array.dimensions().collect();
    let all = dimensions
        .iter()
        .try_fold(1_i64, |all, dimension| all.checked_mul(dimension.extent));
    if all.is_none_or(|all| count > all) {
        return Err(ERR_BUFFER);
    }
    // What the dimensions before each one make: an element, a row, a plane.
    let mut slabs = vec![element];
    let mut sizes = vec![1];
    for dimension in &dimensions {
        let (slab, size) = (slabs[slabs.len() - 1].datatype(), sizes[sizes.len() - 1]);
        slabs.push(Shape::Made(row(*dimension, dimension.extent, slab)?));
        sizes.push(size * dimension.extent);
    }
    let (mut rest, mut offset) = (count, 0);
    let (mut pieces, mut offsets) = (Vec::new(), Vec::new());
    for (at, dimension) in dimensions.iter().enumerate().rev() {
        let slabs_here = rest / sizes[at];
        if slabs_here > 0 {
            pieces.push(row(*dimension, slabs_here, slabs[at].datatype())?);
            offsets.push(offset);
            offset += slabs_here * dimension.stride;
            rest -= slabs_here * sizes[at];
        }
    }
    if pieces.len() == 1 {
        return pieces.pop().ok_or(ERR_BUFFER);
    }
    let types: Vec<_> = pieces.iter().map(|piece| piece.0).collect();
    let lengths = vec![1_i64; pieces.len()];
    let number = i64::try_from(pieces.len()).map_err(|_| ERR_BUFFER)?;
    Owned::make(|new| {
        // SAFETY: so many elements may be read, and the result may be written.
        unsafe {
            PMPI_Type_create_struct_c(
                number,
                lengths.as_ptr(),
                offsets.as_ptr(),
                types.as_ptr(),
                new,
            )
        }
    })
}

/// Makes a vector of what a dimension repeats.
fn row(dimension: Dimension, count: i64, of: Datatype) -> Result<Owned, i32> {
    Owned::make(|new| {
        // SAFETY: the result may be written.
        unsafe { PMPI_Type_create_hvector_c(count, 1, dimension.stride, of, new) }
    })
}

/// Returns the address of a buffer that has to be contiguous.
///
/// # Errors
///
/// `MPI_ERR_BUFFER` where it is not.
pub(crate) fn contiguous(array: &Array<'_>) -> Result<*mut c_void, i32> {
    match array.is_contiguous() {
        true => Ok(address::buffer(array.base)),
        false => Err(ERR_BUFFER),
    }
}

/// Returns the address of a buffer that has a meaning at the root alone, where it has to be contiguous.
///
/// # Errors
///
/// `MPI_ERR_BUFFER` where this process is the root and the buffer is not contiguous.
pub(crate) fn contiguous_at_root(
    array: &Array<'_>,
    root: i32,
    comm: i32,
) -> Result<*mut c_void, i32> {
    match array.is_contiguous() || !peers::is_root(root, comm) {
        true => Ok(address::buffer(array.base)),
        false => Err(ERR_BUFFER),
    }
}

/// A datatype of the caller, or one that was made here.
#[derive(Debug)]
enum Shape {
    Given(Datatype),
    Made(Owned),
}

impl Shape {
    fn datatype(&self) -> Datatype {
        match self {
            Self::Given(datatype) => *datatype,
            Self::Made(owned) => owned.0,
        }
    }
}

/// A datatype that is freed when it is dropped. Operations that use it keep it.
#[derive(Debug)]
struct Owned(Datatype);

impl Owned {
    fn make(make: impl FnOnce(*mut Datatype) -> i32) -> Result<Self, i32> {
        let mut new = Datatype::UNSET;
        good(make(&raw mut new))?;
        Ok(Self(new))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it is ours.
        unsafe { PMPI_Type_free(&raw mut self.0) };
    }
}

fn good(code: i32) -> Result<(), i32> {
    match code {
        0 => Ok(()),
        _ => Err(code),
    }
}
