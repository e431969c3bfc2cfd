//! Error handlers, and error codes of programs (MPI-5.0, sections 9.3 to 9.5).
//!
//! All but `MPI_Comm_call_errhandler` may be called at any time.

use crate::abi::{Comm, Errhandler};
use crate::error::{Class, Error, On, Result};
use crate::functions::{CommErrorFunction, ErrorFunction, SessionErrorFunction, WinErrorFunction};
use crate::library::Library;
use crate::process::Process;
use crate::raw::{Ref, Text};

/// `MPI_Comm_create_errhandler`.
pub fn comm_create_errhandler(
    library: &Library,
    function: Option<CommErrorFunction>,
    handler: Ref<Errhandler>,
) -> Result {
    let function = function.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    let function = ErrorFunction::Comm(function);
    handler.set(library.objects().handlers.enter(function)?);
    Ok(())
}

/// `MPI_Session_create_errhandler`.
pub fn session_create_errhandler(
    library: &Library,
    function: Option<SessionErrorFunction>,
    handler: Ref<Errhandler>,
) -> Result {
    let function = function.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    let function = ErrorFunction::Session(function);
    handler.set(library.objects().handlers.enter(function)?);
    Ok(())
}

/// `MPI_Win_create_errhandler`.
pub fn win_create_errhandler(
    library: &Library,
    function: Option<WinErrorFunction>,
    handler: Ref<Errhandler>,
) -> Result {
    let function = function.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    let function = ErrorFunction::Win(function);
    handler.set(library.objects().handlers.enter(function)?);
    Ok(())
}

/// `MPI_Errhandler_free`. Objects that have it keep it. Predefined ones stay.
pub fn errhandler_free(library: &Library, handler: Ref<Errhandler>) -> Result {
    library.objects().handlers.free(handler.get()?)?;
    handler.set(Errhandler::NULL);
    Ok(())
}

/// `MPI_Comm_call_errhandler`.
pub fn comm_call_errhandler(process: &Process, comm: Comm, code: i32) -> Result {
    process.comm(comm)?;
    let text = process.text_of(code);
    let text = text.unwrap_or_else(|| format!("the error code {code}"));
    let error = Error::of_code(code, text).on(On::Comm(comm));
    process.raise(&error, "MPI_Comm_call_errhandler");
    Ok(())
}

/// `MPI_Add_error_class`.
pub fn add_error_class(library: &Library, class: Ref<i32>) -> Result {
    class.set(library.objects().codes.add(None)?);
    Ok(())
}

/// `MPI_Add_error_code`.
pub fn add_error_code(library: &Library, class: i32, code: Ref<i32>) -> Result {
    code.set(library.objects().codes.add(Some(class))?);
    Ok(())
}

/// `MPI_Add_error_string`.
pub fn add_error_string(library: &Library, code: i32, text: Text) -> Result {
    let text = text.get()?;
    library.objects().codes.set_text(code, Some(text))
}

/// `MPI_Remove_error_class`.
pub fn remove_error_class(library: &Library, class: i32) -> Result {
    library.objects().codes.remove(class, true)
}

/// `MPI_Remove_error_code`.
pub fn remove_error_code(library: &Library, code: i32) -> Result {
    library.objects().codes.remove(code, false)
}

/// `MPI_Remove_error_string`.
pub fn remove_error_string(library: &Library, code: i32) -> Result {
    library.objects().codes.set_text(code, None)
}
