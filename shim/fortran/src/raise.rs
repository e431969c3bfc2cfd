//! Errors: the last parameter of a routine, which `mpi_f08` may leave out.

use crate::abi::{Comm, File, Win};
use crate::c::{PMPI_Comm_call_errhandler, PMPI_File_call_errhandler, PMPI_Win_call_errhandler};

/// The object on whose error handler an error is raised, as an integer of Fortran.
#[derive(Debug, Clone, Copy)]
pub(crate) enum On {
    Comm(i32),
    Win(i32),
    File(i32),
    None,
}

/// `MPI_COMM_SELF`, on which errors without an object are raised.
const SELF: i32 = 0x102;

/// Returns a code to the caller, where it asks for one.
///
/// # Safety
///
/// `ierror` is null, or may be written.
#[inline]
pub(crate) unsafe fn finish(ierror: *mut i32, code: i32) {
    if !ierror.is_null() {
        // SAFETY: as for this function.
        unsafe { *ierror = code };
    }
}

/// Raises an error that the binding has found, and returns its code to the caller.
///
/// # Safety
///
/// As for [`finish`].
#[cold]
pub(crate) unsafe fn fail(on: On, code: i32, ierror: *mut i32) {
    // SAFETY: the functions take every handle.
    let raised = unsafe {
        match on {
            On::Comm(comm) => PMPI_Comm_call_errhandler(Comm::of_fortran(comm), code),
            On::Win(win) => PMPI_Win_call_errhandler(Win::of_fortran(win), code),
            On::File(file) => PMPI_File_call_errhandler(File::of_fortran(file), code),
            On::None => PMPI_Comm_call_errhandler(Comm::of_fortran(SELF), code),
        }
    };
    let code = if raised == 0 { code } else { raised };
    // SAFETY: as for this function.
    unsafe { finish(ierror, code) };
}
