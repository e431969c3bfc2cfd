//! What MPI-3.0 has removed (MPI-5.0, section 17.1), for programs with `mpif.h` that have it still. Addresses and extents are default
//! integers: one that does not fit is `MPI_ERR_ARG`, as in MPICH.

use std::ffi::c_void;

use crate::abi::{Comm, Datatype, ERR_ARG, Errhandler};
use crate::c::*;
use crate::handles::Handles;
use crate::raise::{On, fail, finish};
use crate::{address, special};

/// Returns a number of the library to a caller who has room for a default integer.
unsafe fn short(code: i32, value: i64, place: *mut i32, ierror: *mut i32) {
    // SAFETY: as for the routines.
    unsafe {
        match i32::try_from(value) {
            _ if code != 0 => finish(ierror, code),
            Ok(value) => {
                *place = value;
                finish(ierror, 0);
            }
            Err(_) => fail(On::None, ERR_ARG, ierror),
        }
    }
}

/// Returns the lower bound and the extent of a datatype, with the code of the call.
unsafe fn bounds(datatype: *mut i32) -> (i32, i64, i64) {
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: as for the routines.
    let code = unsafe {
        PMPI_Type_get_extent(
            Datatype::of_fortran(*datatype),
            &raw mut lower,
            &raw mut extent,
        )
    };
    (code, lower, extent)
}

/// Widens displacements in bytes. A negative count, which the library refuses, has none.
unsafe fn widened(displacements: *const i32, count: i32) -> Vec<i64> {
    let count = usize::try_from(count).unwrap_or(0);
    let widen = |at| {
        // SAFETY: the caller has as many.
        i64::from(unsafe { *displacements.add(at) })
    };
    (0..count).map(widen).collect()
}

entries! {
    (mpi_address_ pmpi_address_)
    work_address(location: *mut c_void, place: *mut i32, ierror: *mut i32) -> () {
        let mut found = 0;
        let code = PMPI_Get_address(address::buffer(location), &raw mut found);
        short(code, found, place, ierror);
    }
}

entries! {
    (mpi_errhandler_create_ pmpi_errhandler_create_)
    work_errhandler_create(function: *mut c_void, errhandler: *mut i32, ierror: *mut i32) -> () {
        special::comm_create_errhandler(function, errhandler, ierror);
    }
}

entries! {
    (mpi_errhandler_get_ pmpi_errhandler_get_)
    work_errhandler_get(comm: *mut i32, errhandler: *mut i32, ierror: *mut i32) -> () {
        let mut found = Errhandler::UNSET;
        let code = PMPI_Comm_get_errhandler(Comm::of_fortran(*comm), &raw mut found);
        found.write(errhandler);
        finish(ierror, code);
    }
}

entries! {
    (mpi_errhandler_set_ pmpi_errhandler_set_)
    work_errhandler_set(comm: *mut i32, errhandler: *mut i32, ierror: *mut i32) -> () {
        let code = PMPI_Comm_set_errhandler(Comm::of_fortran(*comm), Errhandler::of_fortran(*errhandler));
        finish(ierror, code);
    }
}

entries! {
    (mpi_type_extent_ pmpi_type_extent_)
    work_type_extent(datatype: *mut i32, extent: *mut i32, ierror: *mut i32) -> () {
        let (code, _, found) = bounds(datatype);
        short(code, found, extent, ierror);
    }
}

entries! {
    (mpi_type_lb_ pmpi_type_lb_)
    work_type_lb(datatype: *mut i32, displacement: *mut i32, ierror: *mut i32) -> () {
        let (code, lower, _) = bounds(datatype);
        short(code, lower, displacement, ierror);
    }
}

entries! {
    (mpi_type_ub_ pmpi_type_ub_)
    work_type_ub(datatype: *mut i32, displacement: *mut i32, ierror: *mut i32) -> () {
        let (code, lower, extent) = bounds(datatype);
        short(code, lower.saturating_add(extent), displacement, ierror);
    }
}

entries! {
    (mpi_type_hvector_ pmpi_type_hvector_)
    work_type_hvector(
        count: *mut i32,
        blocklength: *mut i32,
        stride: *mut i32,
        oldtype: *mut i32,
        newtype: *mut i32,
        ierror: *mut i32
    ) -> () {
        let mut new = Datatype::UNSET;
        let code = PMPI_Type_create_hvector(
            *count,
            *blocklength,
            i64::from(*stride),
            Datatype::of_fortran(*oldtype),
            &raw mut new,
        );
        new.write(newtype);
        finish(ierror, code);
    }
}

entries! {
    (mpi_type_hindexed_ pmpi_type_hindexed_)
    work_type_hindexed(
        count: *mut i32,
        blocklengths: *mut i32,
        displacements: *mut i32,
        oldtype: *mut i32,
        newtype: *mut i32,
        ierror: *mut i32
    ) -> () {
        let wide = widened(displacements, *count);
        let mut new = Datatype::UNSET;
        let code = PMPI_Type_create_hindexed(
            *count,
            blocklengths,
            wide.as_ptr(),
            Datatype::of_fortran(*oldtype),
            &raw mut new,
        );
        new.write(newtype);
        finish(ierror, code);
    }
}

entries! {
    (mpi_type_struct_ pmpi_type_struct_)
    work_type_struct(
        count: *mut i32,
        blocklengths: *mut i32,
        displacements: *mut i32,
        types: *mut i32,
        newtype: *mut i32,
        ierror: *mut i32
    ) -> () {
        let wide = widened(displacements, *count);
        let mut types = Handles::<Datatype>::read(types, *count);
        let mut new = Datatype::UNSET;
        let code = PMPI_Type_create_struct(
            *count,
            blocklengths,
            wide.as_ptr(),
            types.pointer(),
            &raw mut new,
        );
        new.write(newtype);
        finish(ierror, code);
    }
}
