//! Error handlers, and error codes of programs (MPI-5.0, sections 9.3 to 9.5).
//!
//! All but `MPI_Comm_call_errhandler` may be called at any time.

use std::sync::Arc;

use crate::abi::{Comm, Errhandler};
use crate::error::{Class, Error, On, Result};
use crate::exports::early_objects;
use crate::functions::{CommErrorFunction, ErrorFunction, SessionErrorFunction};
use crate::process::Process;
use crate::raw::{Ref, Text};

/// `MPI_Comm_create_errhandler`.
pub fn comm_create_errhandler(
    process: Option<&Arc<Process>>,
    function: Option<CommErrorFunction>,
    handler: Ref<Errhandler>,
) -> Result {
    let function = function.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    let function = ErrorFunction::Comm(function);
    handler.set(early_objects(process).handlers.enter(function)?);
    Ok(())
}

/// `MPI_Session_create_errhandler`.
pub fn session_create_errhandler(
    process: Option<&Arc<Process>>,
    function: Option<SessionErrorFunction>,
    handler: Ref<Errhandler>,
) -> Result {
    let function = function.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    let function = ErrorFunction::Session(function);
    handler.set(early_objects(process).handlers.enter(function)?);
    Ok(())
}

/// `MPI_Errhandler_free`. Objects that have it keep it. Predefined ones stay.
pub fn errhandler_free(process: Option<&Arc<Process>>, handler: Ref<Errhandler>) -> Result {
    early_objects(process).handlers.free(handler.get()?)?;
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
pub fn add_error_class(process: Option<&Arc<Process>>, class: Ref<i32>) -> Result {
    class.set(early_objects(process).codes.add(None)?);
    Ok(())
}

/// `MPI_Add_error_code`.
pub fn add_error_code(process: Option<&Arc<Process>>, class: i32, code: Ref<i32>) -> Result {
    code.set(early_objects(process).codes.add(Some(class))?);
    Ok(())
}

/// `MPI_Add_error_string`.
pub fn add_error_string(process: Option<&Arc<Process>>, code: i32, text: Text) -> Result {
    let text = text.get()?;
    early_objects(process).codes.set_text(code, Some(text))
}

/// `MPI_Remove_error_class`.
pub fn remove_error_class(process: Option<&Arc<Process>>, class: i32) -> Result {
    early_objects(process).codes.remove(class, true)
}

/// `MPI_Remove_error_code`.
pub fn remove_error_code(process: Option<&Arc<Process>>, code: i32) -> Result {
    early_objects(process).codes.remove(code, false)
}

/// `MPI_Remove_error_string`.
pub fn remove_error_string(process: Option<&Arc<Process>>, code: i32) -> Result {
    early_objects(process).codes.set_text(code, None)
}
