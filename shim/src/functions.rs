//! Functions of the program that keep attributes, handle errors and are asked of its operations, and the calls of them.
//!
//! Whoever calls one holds no lock: it may call MPI again. An exception of C++ leaves error handlers and functions of attributes
//! for the program, through this library; one that leaves another function ends the process (`confined`).
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io::Write;
use std::ptr;

use crate::abi::{Comm, Datatype, File, SUCCESS, Session, Status, Win};
use crate::callbacks::{GrequestCancelFunction, GrequestFreeFunction, GrequestQueryFunction};
use crate::error::{Error, On, Result};
use crate::object::operation::Callback;
use crate::raw::{In, Out, Pointer};

/// `MPI_Comm_copy_attr_function`.
pub type CommCopy =
    unsafe extern "C-unwind" fn(Comm, i32, *mut c_void, *mut c_void, *mut c_void, *mut i32) -> i32;

/// `MPI_Comm_delete_attr_function`.
pub type CommDelete = unsafe extern "C-unwind" fn(Comm, i32, *mut c_void, *mut c_void) -> i32;

/// `MPI_Type_copy_attr_function`.
pub type TypeCopy = unsafe extern "C-unwind" fn(
    Datatype,
    i32,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut i32,
) -> i32;

/// `MPI_Type_delete_attr_function`.
pub type TypeDelete = unsafe extern "C-unwind" fn(Datatype, i32, *mut c_void, *mut c_void) -> i32;

/// `MPI_Win_copy_attr_function`.
pub type WinCopy =
    unsafe extern "C-unwind" fn(Win, i32, *mut c_void, *mut c_void, *mut c_void, *mut i32) -> i32;

/// `MPI_Win_delete_attr_function`.
pub type WinDelete = unsafe extern "C-unwind" fn(Win, i32, *mut c_void, *mut c_void) -> i32;

/// `MPI_Comm_errhandler_function`.
pub type CommErrorFunction = unsafe extern "C-unwind" fn(*mut Comm, *mut i32, ...);

/// `MPI_Session_errhandler_function`.
pub type SessionErrorFunction = unsafe extern "C-unwind" fn(*mut Session, *mut i32, ...);

/// `MPI_Win_errhandler_function`.
pub type WinErrorFunction = unsafe extern "C-unwind" fn(*mut Win, *mut i32, ...);

/// `MPI_File_errhandler_function`.
pub type FileErrorFunction = unsafe extern "C-unwind" fn(*mut File, *mut i32, ...);

/// Returns what `call` returns, which calls a function of the program on behalf of several ranks, or in the midst of progress.
/// Where an exception leaves it the process ends: what it had to do can be made good by nobody.
#[inline]
pub(crate) fn confined<R>(function: &'static str, call: impl FnOnce() -> R) -> R {
    let confined = Confined(function);
    let returned = call();
    std::mem::forget(confined);
    returned
}

/// Ends the process when an exception drops it.
struct Confined(&'static str);

impl Drop for Confined {
    fn drop(&mut self) {
        let line = format!(
            "tagwire: an exception left the function of {}, through which it cannot reach the program: ending the process\n",
            self.0
        );
        let _ = std::io::stderr().write_all(line.as_bytes());
        std::process::abort();
    }
}

/// `MPI_COMM_DUP_FN` and its like. The functions that do nothing are null.
const DUPLICATE: usize = 1;

const GENERALIZED: &str = "a generalized request";

/// The functions of a key of attributes. What they are of tells which objects the key is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Functions {
    Comm(Option<CommCopy>, Option<CommDelete>),
    Type(Option<TypeCopy>, Option<TypeDelete>),
    Win(
        #[expect(dead_code, reason = "no call duplicates a window")] Option<WinCopy>,
        Option<WinDelete>,
    ),
}

/// An attribute as its functions are given it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attached {
    /// The handle of its object.
    pub(crate) object: usize,
    pub(crate) key: i32,
    /// What the program gave with the key.
    pub(crate) extra: Pointer,
    pub(crate) value: Pointer,
}

impl Functions {
    /// Whether both are of objects of one kind.
    pub(crate) const fn are_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Comm(..), Self::Comm(..))
                | (Self::Type(..), Self::Type(..))
                | (Self::Win(..), Self::Win(..))
        )
    }

    /// Returns the value that a duplicate of the object gets; `None` where it gets none.
    ///
    /// # Errors
    /// The code that the function returns.
    pub(crate) fn copy(&self, from: Attached) -> Result<Option<Pointer>> {
        let Attached { key, .. } = from;
        let (extra, value) = (from.extra.0, from.value.0);
        let (mut copied, mut flag) = (ptr::null_mut::<c_void>(), 0);
        let (out, is_copied) = ((&raw mut copied).cast::<c_void>(), &raw mut flag);
        let code = match *self {
            Self::Comm(None, _) | Self::Type(None, _) | Self::Win(..) => return Ok(None),
            Self::Comm(Some(copy), _) if copy as usize == DUPLICATE => return Ok(Some(from.value)),
            Self::Type(Some(copy), _) if copy as usize == DUPLICATE => return Ok(Some(from.value)),
            Self::Comm(Some(copy), _) => {
                // SAFETY: the program made the key with this function, and has promised that it is one that copies attributes of
                // communicators; it is called with what that is given, and room for its two results that lives through the call.
                unsafe { copy(Comm(from.object), key, extra, value, out, is_copied) }
            }
            Self::Type(Some(copy), _) => {
                // SAFETY: as above, for datatypes.
                unsafe { copy(Datatype(from.object), key, extra, value, out, is_copied) }
            }
        };
        returned(code, "copies an attribute")?;
        Ok((flag != 0).then_some(Pointer(copied)))
    }

    /// Tells the program that an attribute is deleted.
    ///
    /// # Errors
    /// The code that the function returns.
    pub(crate) fn delete(&self, of: Attached) -> Result {
        let Attached { key, .. } = of;
        let (extra, value) = (of.extra.0, of.value.0);
        let code = match *self {
            Self::Comm(_, None) | Self::Type(_, None) | Self::Win(_, None) => return Ok(()),
            Self::Comm(_, Some(delete)) => {
                // SAFETY: the program made the key with this function, and has promised that it is one that deletes attributes of
                // communicators; it is called with what that is given.
                unsafe { delete(Comm(of.object), key, value, extra) }
            }
            Self::Type(_, Some(delete)) => {
                // SAFETY: as above, for datatypes.
                unsafe { delete(Datatype(of.object), key, value, extra) }
            }
            Self::Win(_, Some(delete)) => {
                // SAFETY: as above, for windows.
                unsafe { delete(Win(of.object), key, value, extra) }
            }
        };
        returned(code, "deletes an attribute")
    }
}

/// The function of an error handler, by what it handles errors of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorFunction {
    Comm(CommErrorFunction),
    Session(SessionErrorFunction),
    Win(WinErrorFunction),
    File(FileErrorFunction),
}

impl ErrorFunction {
    /// Calls it for an error on an object; on the null one of its kind where that is none yet. Returns the code that the call returns.
    pub(crate) fn call(self, on: On, given: i32) -> i32 {
        let mut code = given;
        match self {
            Self::Comm(function) => {
                let mut comm = match on {
                    On::Comm(comm) => comm,
                    _ => Comm::NULL,
                };
                // SAFETY: the program made the error handler with this function, and has promised that it is one of an error
                // handler of communicators; both variables live through the call. The standard leaves to the library which
                // arguments follow: none do.
                unsafe { function(&raw mut comm, &raw mut code) };
            }
            Self::Session(function) => {
                let mut session = match on {
                    On::Session(session) => session,
                    _ => Session::NULL,
                };
                // SAFETY: as above, for sessions.
                unsafe { function(&raw mut session, &raw mut code) };
            }
            Self::Win(function) => {
                let mut window = match on {
                    On::Win(window) => window,
                    _ => Win::NULL,
                };
                // SAFETY: as above, for windows.
                unsafe { function(&raw mut window, &raw mut code) };
            }
            Self::File(function) => {
                let mut file = match on {
                    On::File(file) => file,
                    _ => File::NULL,
                };
                // SAFETY: as above, for files.
                unsafe { function(&raw mut file, &raw mut code) };
                // Tests of files have the function change what the call returns; of other objects the code stays.
                return code;
            }
        }
        given
    }
}

/// Calls a user's function of an operation: `into[i] = left[i] op into[i]`, for elements that lie `extent` bytes apart.
pub(crate) fn call_operation(
    callback: Callback,
    left: In,
    into: Out,
    count: usize,
    extent: i64,
    datatype: Datatype,
) {
    // The standard lets the function write to its second argument alone; the first is not const for it.
    let (mut left, mut into) = (left.address().cast_mut(), into.read().address().cast_mut());
    let mut rest = count;
    while rest > 0 {
        // In parts where an int does not hold the number.
        let now = match callback {
            Callback::Int(_) => rest.min(i32::MAX as usize),
            Callback::Wide(_) => rest,
        };
        let mut datatype = datatype;
        // SAFETY: the program has promised that the function is one of an operation; the callers have as many elements at both
        // addresses, to themselves.
        confined("a reduction", || unsafe {
            match callback {
                Callback::Int(function) => {
                    let mut length = now as i32;
                    function(left, into, &raw mut length, &raw mut datatype);
                }
                Callback::Wide(function) => {
                    let mut length = now as i64;
                    function(left, into, &raw mut length, &raw mut datatype);
                }
            }
        });
        rest -= now;
        let bytes = (now as isize).wrapping_mul(extent as isize);
        left = left.wrapping_byte_offset(bytes);
        into = into.wrapping_byte_offset(bytes);
    }
}

/// Has a function of this library called at the exit of the program. Where there is no room for it, it is not.
pub(crate) fn at_exit(function: extern "C" fn()) {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
    }
    // SAFETY: the function of C's library, with one that stays there: a program that has called this library does not unload it,
    // since it has threads and memory that others use.
    let _ = unsafe { atexit(function) };
}

/// Asks the function of a generalized request how its operation ended. Returns the status, and its code.
pub(crate) fn query_operation(query: GrequestQueryFunction, extra: Pointer) -> (Status, i32) {
    let mut status = Status::EMPTY;
    let code = query.map_or(SUCCESS, |query| {
        // SAFETY: the program made the request with this function, and has promised that it is one that queries; the status
        // lives through the call.
        confined(GENERALIZED, || unsafe { query(extra.0, &raw mut status) })
    });
    (status, code)
}

/// Has the function of a generalized request free what the program keeps of it.
///
/// # Errors
/// The code that the function returns.
pub(crate) fn free_operation(free: GrequestFreeFunction, extra: Pointer) -> Result {
    let code = free.map_or(SUCCESS, |free| {
        // SAFETY: the program made the request with this function, and has promised that it is one that frees.
        confined(GENERALIZED, || unsafe { free(extra.0) })
    });
    returned(code, "frees a generalized request")
}

/// Tells the function of a generalized request that it is cancelled, and whether its operation has ended.
///
/// # Errors
/// The code that the function returns.
pub(crate) fn cancel_operation(
    cancel: GrequestCancelFunction,
    extra: Pointer,
    is_complete: bool,
) -> Result {
    let code = cancel.map_or(SUCCESS, |cancel| {
        // SAFETY: the program made the request with this function, and has promised that it is one that cancels.
        confined(GENERALIZED, || unsafe {
            cancel(extra.0, i32::from(is_complete))
        })
    });
    returned(code, "cancels a generalized request")
}

fn returned(code: i32, does: &str) -> Result {
    match code {
        SUCCESS => Ok(()),
        _ => {
            let text = format!("the function that {does} returned {code}");
            Err(Error::of_code(code, text))
        }
    }
}
