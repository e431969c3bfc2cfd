//! What the interface for C does not have: conversions of statuses, sizes of variables, the predefined functions of callers, and the
//! trial of a compiler.

use std::ffi::c_void;

use crate::abi::{ERR_ARG, Status};
use crate::address;
use crate::descriptor::{Descriptor, Dimension};
use crate::raise::{On, fail, finish};

/// Copies a status. One that is ignored has no value.
unsafe fn copy(from: *mut Status, to: *mut Status, ierror: *mut i32) {
    let is_ignored =
        |status| address::status(status).is_null() || address::statuses(status).is_null();
    // SAFETY: as for the routines.
    unsafe {
        if is_ignored(from) || is_ignored(to) {
            return fail(On::None, ERR_ARG, ierror);
        }
        *to = *from;
        finish(ierror, 0);
    }
}

entries! {
    (mpi_status_f2f08_ pmpi_status_f2f08_ mpi_status_f2f08_f08_ pmpi_status_f2f08_f08_)
    work_status_f2f08(from: *mut Status, to: *mut Status, ierror: *mut i32) -> () {
        copy(from, to, ierror);
    }
}

entries! {
    (mpi_status_f082f_ pmpi_status_f082f_ mpi_status_f082f_f08_ pmpi_status_f082f_f08_)
    work_status_f082f(from: *mut Status, to: *mut Status, ierror: *mut i32) -> () {
        copy(from, to, ierror);
    }
}

// Not by the name that `mpif.h` would call, which has an address where a descriptor is wanted: such a program is not linked.
entries! {
    (mpi_sizeof_fts_ pmpi_sizeof_fts_ mpi_sizeof_f08ts_ pmpi_sizeof_f08ts_)
    work_sizeof(x: *const Descriptor, size: *mut i32, ierror: *mut i32) -> () {
        *size = i32::try_from(Descriptor::read(x).element).unwrap_or(i32::MAX);
        finish(ierror, 0);
    }
}

// The compiler may not keep what it knows of a variable that is passed to a routine: nothing else is asked for.
entries! {
    (mpi_f_sync_reg_ pmpi_f_sync_reg_ mpi_f_sync_reg_f08ts_ pmpi_f_sync_reg_f08ts_)
    work_f_sync_reg(_buffer: *const c_void) -> () {}
}

macro_rules! predefined {
    (copies $($copy:ident)*; doubles $($double:ident)*; deletes $($delete:ident)*) => {
        $(
            /// Copies no attribute.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $copy(
                _: *mut i32, _: *mut i32, _: *mut i64, _: *mut i64, _: *mut i64,
                flag: *mut i32, ierror: *mut i32,
            ) {
                // SAFETY: the results may be written.
                unsafe { (*flag, *ierror) = (0, 0) };
            }
        )*
        $(
            /// Copies an attribute.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $double(
                _: *mut i32, _: *mut i32, _: *mut i64, from: *mut i64, to: *mut i64,
                flag: *mut i32, ierror: *mut i32,
            ) {
                // SAFETY: the value may be read, and the results may be written.
                unsafe { (*to, *flag, *ierror) = (*from, 1, 0) };
            }
        )*
        $(
            /// Deletes an attribute.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $delete(
                _: *mut i32, _: *mut i32, _: *mut i64, _: *mut i64, ierror: *mut i32,
            ) {
                // SAFETY: the result may be written.
                unsafe { *ierror = 0 };
            }
        )*
    };
}

predefined! {
    copies mpi_comm_null_copy_fn_ mpi_type_null_copy_fn_ mpi_win_null_copy_fn_ mpi_null_copy_fn_;
    doubles mpi_comm_dup_fn_ mpi_type_dup_fn_ mpi_win_dup_fn_;
    deletes mpi_comm_null_delete_fn_ mpi_type_null_delete_fn_ mpi_win_null_delete_fn_ mpi_null_delete_fn_
}

/// Copies an attribute of `MPI_Keyval_create`, which is a default integer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_dup_fn_(
    _: *mut i32,
    _: *mut i32,
    _: *mut i32,
    from: *mut i32,
    to: *mut i32,
    flag: *mut i32,
    ierror: *mut i32,
) {
    // SAFETY: the value may be read, and the results may be written.
    unsafe { (*to, *flag, *ierror) = (*from, 1, 0) };
}

macro_rules! unconverted {
    ($($name:ident)*) => {$(
        /// Stands for no conversion, and is called by nobody.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            _: *mut c_void, _: *mut i32, _: *mut c_void, _: *mut c_void, _: *mut i64, _: *mut i64,
            ierror: *mut i32,
        ) {
            // SAFETY: the result may be written.
            unsafe { *ierror = 0 };
        }
    )*};
}

unconverted! { mpi_conversion_fn_null_ mpi_conversion_fn_null_c_ }

/// What the trial passes: columns 1 and 3 of rows 1, 3 and 5 of an array of 8-byte elements with 5 rows.
const TRIED: [Dimension; 2] = [
    Dimension {
        extent: 3,
        stride: 16,
    },
    Dimension {
        extent: 2,
        stride: 80,
    },
];

// The trial of a compiler, which the build of the modules runs: 0 where all is passed as this library reads it, or the number of what
// is not.
entries! {
    (tagwire_mpi_probe_)
    work_probe(
        section: *const Descriptor,
        part: *const Descriptor,
        inner: *const Descriptor,
        yes: *mut i32,
        no: *mut i32,
        text: *mut u8,
        answer: *mut i32,
        absent: *mut i32,
        length: usize
    ) -> () {
        let array = Descriptor::read(section);
        let component = Descriptor::read(part);
        // gfortran passes a copy of it, others the components where they are.
        let extents = component.dimensions().map(|dimension| dimension.extent);
        let is_component = component.element == 4 && extents.eq([4]);
        // Of a derived type it is a copy: else its steps could not be told from elements of a polymorphic array.
        let is_copy = Descriptor::read(inner).element == 12;
        *answer = match () {
            () if array.element != 8 || !array.dimensions().eq(TRIED) => 1,
            () if !is_component || !is_copy => 2,
            () if (*yes, *no) != (1, 0) => 3,
            () if length != 5 || *text != b'p' => 4,
            () if !absent.is_null() => 5,
            () => 0,
        };
    }
}
