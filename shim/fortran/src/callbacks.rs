//! Functions of callers that are written in Fortran: what the library calls in their place.
//!
//! An attribute's functions and those of a generalized request have a state, which names the functions of Fortran. The function of a
//! reduction and an error handler have none. They are handed on as they are: they take handles by their addresses, and the first four
//! of the eight bytes of a handle of our library are the integer that Fortran has. Another library is refused them.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use crate::abi::{Datatype, ERR_UNSUPPORTED_OPERATION, Handle, Status};
use crate::attributes;
use crate::c::PMPI_Get_library_version;
use crate::text::Out;

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the integer of a handle is the first half of it"
);

/// Returns an error where the library's handles are not the integers of Fortran.
pub(crate) fn handed_on() -> Result<(), i32> {
    static OURS: OnceLock<bool> = OnceLock::new();
    let is_ours = OURS.get_or_init(|| {
        let (mut text, mut length) = (Out::new(), 0);
        // SAFETY: there is room for the longest text, which ends with a null.
        unsafe {
            PMPI_Get_library_version(text.pointer(), &raw mut length);
            let text = CStr::from_ptr(text.pointer().cast::<c_char>());
            text.to_bytes().starts_with(b"Tagwire")
        }
    });
    match is_ours {
        true => Ok(()),
        false => Err(ERR_UNSUPPORTED_OPERATION),
    }
}

/// The functions of a key, with their state. They live as long as the program: nobody says when the last attribute is gone.
#[derive(Debug)]
pub(crate) struct Keyval {
    pub(crate) copy: *mut c_void,
    pub(crate) delete: *mut c_void,
    pub(crate) state: i64,
    /// The state and the attributes are default integers: `MPI_Keyval_create`.
    pub(crate) is_short: bool,
}

type CopyFunction<V> =
    unsafe extern "C-unwind" fn(*mut i32, *mut i32, *mut V, *mut V, *mut V, *mut i32, *mut i32);
type DeleteFunction<V> = unsafe extern "C-unwind" fn(*mut i32, *mut i32, *mut V, *mut V, *mut i32);

/// What the library calls to copy an attribute.
///
/// # Safety
///
/// `state` is a [`Keyval`], `value` an attribute under its key, and the results may be written.
pub(crate) unsafe extern "C-unwind" fn copy<T: Handle>(
    from: T,
    mut key: i32,
    state: *mut c_void,
    value: *mut c_void,
    to: *mut *mut c_void,
    copied: *mut i32,
) -> i32 {
    // SAFETY: as for this function; the functions are Fortran's, of the form that the standard wants.
    unsafe {
        let keyval = &*state.cast::<Keyval>();
        let (mut handle, mut flag, mut code) = (from.to_fortran(), 0, 0);
        let integer = attributes::integer(value);
        let out = if keyval.is_short {
            let function: CopyFunction<i32> = std::mem::transmute(keyval.copy);
            let (mut state, mut value, mut out) = (keyval.state as i32, integer as i32, 0);
            function(
                &raw mut handle,
                &raw mut key,
                &raw mut state,
                &raw mut value,
                &raw mut out,
                &raw mut flag,
                &raw mut code,
            );
            i64::from(out)
        } else {
            let function: CopyFunction<i64> = std::mem::transmute(keyval.copy);
            let (mut state, mut value, mut out) = (keyval.state, integer, 0);
            function(
                &raw mut handle,
                &raw mut key,
                &raw mut state,
                &raw mut value,
                &raw mut out,
                &raw mut flag,
                &raw mut code,
            );
            out
        };
        *copied = i32::from(flag != 0);
        if flag != 0 && code == 0 {
            *to = attributes::of_copy(value, out);
        }
        code
    }
}

/// What the library calls to delete an attribute.
///
/// # Safety
///
/// As for [`copy`].
pub(crate) unsafe extern "C-unwind" fn delete<T: Handle>(
    from: T,
    mut key: i32,
    value: *mut c_void,
    state: *mut c_void,
) -> i32 {
    // SAFETY: as for this function.
    unsafe {
        let keyval = &*state.cast::<Keyval>();
        let (mut handle, mut code) = (from.to_fortran(), 0);
        let integer = attributes::integer(value);
        if keyval.is_short {
            let function: DeleteFunction<i32> = std::mem::transmute(keyval.delete);
            let (mut state, mut integer) = (keyval.state as i32, integer as i32);
            function(
                &raw mut handle,
                &raw mut key,
                &raw mut integer,
                &raw mut state,
                &raw mut code,
            );
        } else {
            let function: DeleteFunction<i64> = std::mem::transmute(keyval.delete);
            let (mut state, mut integer) = (keyval.state, integer);
            function(
                &raw mut handle,
                &raw mut key,
                &raw mut integer,
                &raw mut state,
                &raw mut code,
            );
        }
        if code == 0 {
            attributes::forget(value);
        }
        code
    }
}

/// The functions of a generalized request, and where the caller has their state: as in MPICH and Open MPI they may change it, and MPICH's
/// test `greqf` looks for the change. So the caller's variable has to outlive the request (docs/mpi.md).
#[derive(Debug)]
pub(crate) struct Generalized {
    pub(crate) query: *mut c_void,
    pub(crate) free: *mut c_void,
    pub(crate) cancel: *mut c_void,
    pub(crate) state: *mut i64,
}

/// What the library calls to ask for the status of a generalized request.
///
/// # Safety
///
/// `state` is a [`Generalized`], and the status may be written.
pub(crate) unsafe extern "C-unwind" fn query(state: *mut c_void, status: *mut Status) -> i32 {
    type Function = unsafe extern "C-unwind" fn(*mut i64, *mut Status, *mut i32);
    // SAFETY: as for this function.
    unsafe {
        let request = &*state.cast::<Generalized>();
        let function: Function = std::mem::transmute(request.query);
        let mut code = 0;
        function(request.state, status, &raw mut code);
        code
    }
}

/// What the library calls when a generalized request ends: the last call.
///
/// # Safety
///
/// `state` is a [`Generalized`], which is used no more.
pub(crate) unsafe extern "C-unwind" fn free(state: *mut c_void) -> i32 {
    type Function = unsafe extern "C-unwind" fn(*mut i64, *mut i32);
    // SAFETY: as for this function: `special::grequest_start` has made it.
    unsafe {
        let request = Box::from_raw(state.cast::<Generalized>());
        let function: Function = std::mem::transmute(request.free);
        let mut code = 0;
        function(request.state, &raw mut code);
        code
    }
}

/// What the library calls to cancel a generalized request.
///
/// # Safety
///
/// `state` is a [`Generalized`].
pub(crate) unsafe extern "C-unwind" fn cancel(state: *mut c_void, complete: i32) -> i32 {
    type Function = unsafe extern "C-unwind" fn(*mut i64, *mut i32, *mut i32);
    // SAFETY: as for this function.
    unsafe {
        let request = &*state.cast::<Generalized>();
        let function: Function = std::mem::transmute(request.cancel);
        let (mut complete, mut code) = (i32::from(complete != 0), 0);
        function(request.state, &raw mut complete, &raw mut code);
        code
    }
}

/// The functions of a representation of data, with their state. They live as long as the program.
#[derive(Debug)]
pub(crate) struct Datarep {
    pub(crate) read: *mut c_void,
    pub(crate) write: *mut c_void,
    pub(crate) extent: *mut c_void,
    pub(crate) state: i64,
}

/// What the library calls for the extent of a datatype in files.
///
/// # Safety
///
/// `state` is a [`Datarep`], and the extent may be written.
pub(crate) unsafe extern "C-unwind" fn extent(
    datatype: Datatype,
    extent: *mut i64,
    state: *mut c_void,
) -> i32 {
    type Function = unsafe extern "C-unwind" fn(*mut i32, *mut i64, *mut i64, *mut i32);
    // SAFETY: as for this function.
    unsafe {
        let datarep = &*state.cast::<Datarep>();
        let function: Function = std::mem::transmute(datarep.extent);
        let (mut datatype, mut state, mut code) = (datatype.to_fortran(), datarep.state, 0);
        function(&raw mut datatype, extent, &raw mut state, &raw mut code);
        code
    }
}

macro_rules! conversions {
    ($($(#[$doc:meta])* $name:ident: $field:ident $Count:ty,)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// `state` is a [`Datarep`], and the buffers are as the standard wants them.
        pub(crate) unsafe extern "C-unwind" fn $name(
            user: *mut c_void,
            datatype: Datatype,
            mut count: $Count,
            file: *mut c_void,
            mut position: i64,
            state: *mut c_void,
        ) -> i32 {
            type Function = unsafe extern "C-unwind" fn(
                *mut c_void, *mut i32, *mut $Count, *mut c_void, *mut i64, *mut i64, *mut i32,
            );
            // SAFETY: as for this function.
            unsafe {
                let datarep = &*state.cast::<Datarep>();
                let function: Function = std::mem::transmute(datarep.$field);
                let (mut datatype, mut state, mut code) = (datatype.to_fortran(), datarep.state, 0);
                function(
                    user, &raw mut datatype, &raw mut count, file, &raw mut position, &raw mut state,
                    &raw mut code,
                );
                code
            }
        }
    )*};
}

conversions! {
    /// What the library calls to convert what was read.
    read: read i32,
    /// The same for large counts.
    read_c: read i64,
    /// What the library calls to convert what will be written.
    write: write i32,
    /// The same for large counts.
    write_c: write i64,
}
