//! The types of callers' functions. `shim/api/constants.txt` lists them; the exports do not compile where one differs from it.

use std::ffi::c_void;

use crate::abi;

/// `MPI_User_function`.
pub type UserFunction =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i32, *mut abi::Datatype)>;

/// `MPI_User_function_c`.
pub type UserFunctionC =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i64, *mut abi::Datatype)>;

/// `MPI_Grequest_query_function`.
pub type GrequestQueryFunction =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *mut abi::Status) -> i32>;

/// `MPI_Grequest_free_function`.
pub type GrequestFreeFunction = Option<unsafe extern "C-unwind" fn(*mut c_void) -> i32>;

/// `MPI_Grequest_cancel_function`.
pub type GrequestCancelFunction = Option<unsafe extern "C-unwind" fn(*mut c_void, i32) -> i32>;

/// `MPI_Copy_function`.
pub type CopyFunction = Option<
    unsafe extern "C-unwind" fn(
        abi::Comm,
        i32,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut i32,
    ) -> i32,
>;

/// `MPI_Delete_function`.
pub type DeleteFunction =
    Option<unsafe extern "C-unwind" fn(abi::Comm, i32, *mut c_void, *mut c_void) -> i32>;

/// `MPI_Comm_copy_attr_function`.
pub type CommCopyAttrFunction = Option<
    unsafe extern "C-unwind" fn(
        abi::Comm,
        i32,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut i32,
    ) -> i32,
>;

/// `MPI_Comm_delete_attr_function`.
pub type CommDeleteAttrFunction =
    Option<unsafe extern "C-unwind" fn(abi::Comm, i32, *mut c_void, *mut c_void) -> i32>;

/// `MPI_Type_copy_attr_function`.
pub type TypeCopyAttrFunction = Option<
    unsafe extern "C-unwind" fn(
        abi::Datatype,
        i32,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut i32,
    ) -> i32,
>;

/// `MPI_Type_delete_attr_function`.
pub type TypeDeleteAttrFunction =
    Option<unsafe extern "C-unwind" fn(abi::Datatype, i32, *mut c_void, *mut c_void) -> i32>;

/// `MPI_Win_copy_attr_function`.
pub type WinCopyAttrFunction = Option<
    unsafe extern "C-unwind" fn(
        abi::Win,
        i32,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut i32,
    ) -> i32,
>;

/// `MPI_Win_delete_attr_function`.
pub type WinDeleteAttrFunction =
    Option<unsafe extern "C-unwind" fn(abi::Win, i32, *mut c_void, *mut c_void) -> i32>;

/// `MPI_Datarep_extent_function`.
pub type DatarepExtentFunction =
    Option<unsafe extern "C-unwind" fn(abi::Datatype, *mut i64, *mut c_void) -> i32>;

/// `MPI_Datarep_conversion_function`.
pub type DatarepConversionFunction = Option<
    unsafe extern "C-unwind" fn(
        *mut c_void,
        abi::Datatype,
        i32,
        *mut c_void,
        i64,
        *mut c_void,
    ) -> i32,
>;

/// `MPI_Datarep_conversion_function_c`.
pub type DatarepConversionFunctionC = Option<
    unsafe extern "C-unwind" fn(
        *mut c_void,
        abi::Datatype,
        i64,
        *mut c_void,
        i64,
        *mut c_void,
    ) -> i32,
>;

/// `MPI_Comm_errhandler_function`.
pub type CommErrhandlerFunction =
    Option<unsafe extern "C-unwind" fn(*mut abi::Comm, *mut i32, ...)>;

/// `MPI_File_errhandler_function`.
pub type FileErrhandlerFunction =
    Option<unsafe extern "C-unwind" fn(*mut abi::File, *mut i32, ...)>;

/// `MPI_Win_errhandler_function`.
pub type WinErrhandlerFunction = Option<unsafe extern "C-unwind" fn(*mut abi::Win, *mut i32, ...)>;

/// `MPI_Session_errhandler_function`.
pub type SessionErrhandlerFunction =
    Option<unsafe extern "C-unwind" fn(*mut abi::Session, *mut i32, ...)>;

/// `MPI_T_event_cb_function`.
pub type TEventCbFunction =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, i32, *mut c_void)>;

/// `MPI_T_event_free_cb_function`.
pub type TEventFreeCbFunction = Option<unsafe extern "C-unwind" fn(*mut c_void, i32, *mut c_void)>;

/// `MPI_T_event_dropped_cb_function`.
pub type TEventDroppedCbFunction =
    Option<unsafe extern "C-unwind" fn(i64, *mut c_void, i32, i32, *mut c_void)>;

/// A user's operation, with the type of its count.
#[derive(Debug, Clone, Copy)]
pub enum Reduction {
    /// Of `MPI_Op_create`.
    Int(UserFunction),
    /// Of `MPI_Op_create_c`.
    Big(UserFunctionC),
}

/// A user's conversion of a data representation, with the type of its count.
#[derive(Debug, Clone, Copy)]
pub enum Conversion {
    /// Of `MPI_Register_datarep`.
    Int(DatarepConversionFunction),
    /// Of `MPI_Register_datarep_c`.
    Big(DatarepConversionFunctionC),
}
