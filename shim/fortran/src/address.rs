//! The constants that stand for addresses (MPI-5.0, section 2.5.4): variables of Fortran, which are told by where they lie.
//!
//! In Fortran they are variables in a common block that this library defines. A program has it at the address here, or has a copy that
//! takes the place of this one for all of its libraries: so the linker and the loader join common blocks.
//!
//! ```text
//!   0  STATUS_IGNORE   8 integers      72  BUFFER_AUTOMATIC
//!  32  STATUSES_IGNORE 8 integers      76  ERRCODES_IGNORE
//!  64  BOTTOM                          80  UNWEIGHTED
//!  68  IN_PLACE                        84  WEIGHTS_EMPTY
//!  88  ARGV_NULL   89  ARGVS_NULL      90  (6 characters)
//! ```

use std::ffi::c_void;

use crate::abi::{Status, UNDEFINED};

/// The block, with the alignment that compilers want of one of its length.
#[repr(C, align(32))]
pub(crate) struct Block([u8; 96]);

/// The common block. `shim/api` declares its variables.
#[unsafe(no_mangle)]
pub(crate) static tagwire_mpi_addresses_: Block = Block([0; 96]);

const STATUS_IGNORE: usize = 0;
const STATUSES_IGNORE: usize = 32;
const BOTTOM: usize = 64;
const IN_PLACE: usize = 68;
const BUFFER_AUTOMATIC: usize = 72;
const ERRCODES_IGNORE: usize = 76;
const UNWEIGHTED: usize = 80;
const WEIGHTS_EMPTY: usize = 84;
const ARGV_NULL: usize = 88;
const ARGVS_NULL: usize = 89;

/// Returns the place in the block of an address; most lie far from it.
#[inline]
fn place<T>(address: *const T) -> usize {
    address
        .addr()
        .wrapping_sub((&raw const tagwire_mpi_addresses_).addr())
}

/// Returns the address of a buffer as C has it.
#[inline]
pub(crate) fn buffer(address: *mut c_void) -> *mut c_void {
    let place = place(address);
    // Most lie far from the block.
    if place >= size_of::<Block>() {
        return address;
    }
    match place {
        BOTTOM => std::ptr::null_mut(),
        IN_PLACE => std::ptr::without_provenance_mut(1),
        BUFFER_AUTOMATIC => std::ptr::without_provenance_mut(2),
        _ => address,
    }
}

/// Returns the address of a buffer as Fortran has it.
pub(crate) fn buffer_of_c(address: *mut c_void) -> *mut c_void {
    if address.addr() == 2 {
        return (&raw const tagwire_mpi_addresses_)
            .cast_mut()
            .wrapping_byte_add(BUFFER_AUTOMATIC)
            .cast();
    }
    address
}

/// Returns whether an address is `MPI_IN_PLACE`.
#[inline]
pub(crate) fn is_in_place(address: *const c_void) -> bool {
    place(address) == IN_PLACE
}

/// Returns the address of a status: null where it is ignored.
#[inline]
pub(crate) fn status(address: *mut Status) -> *mut Status {
    if place(address) == STATUS_IGNORE {
        return std::ptr::null_mut();
    }
    address
}

/// Returns the address of statuses: null where they are ignored.
#[inline]
pub(crate) fn statuses(address: *mut Status) -> *mut Status {
    if place(address) == STATUSES_IGNORE {
        return std::ptr::null_mut();
    }
    address
}

/// Returns the address of weights: `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY` as C has them.
pub(crate) fn weights(address: *mut i32) -> *mut i32 {
    match place(address) {
        UNWEIGHTED => std::ptr::without_provenance_mut(10),
        WEIGHTS_EMPTY => std::ptr::without_provenance_mut(11),
        _ => address,
    }
}

/// Returns the address of error codes: null where they are ignored.
pub(crate) fn codes(address: *mut i32) -> *mut i32 {
    if place(address) == ERRCODES_IGNORE {
        return std::ptr::null_mut();
    }
    address
}

/// Returns whether an address is `MPI_ARGV_NULL` or `MPI_ARGVS_NULL`.
pub(crate) fn has_no_arguments(address: *const u8) -> bool {
    matches!(place(address), ARGV_NULL | ARGVS_NULL)
}

/// Counts `count` places from one. No place stays none.
///
/// # Safety
///
/// So many places may be read and written.
pub(crate) unsafe fn from_one(places: *mut i32, count: i32) {
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: as for this function.
        let place = unsafe { &mut *places.add(at) };
        if *place != UNDEFINED {
            *place += 1;
        }
    }
}
