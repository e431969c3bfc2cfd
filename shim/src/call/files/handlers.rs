//! Error handlers of files (MPI-5.0, sections 9.3 and 14.7).

use super::on_file;
use crate::abi::{self, Errhandler};
use crate::error::{Class, Error, On, Result};
use crate::functions::{ErrorFunction, FileErrorFunction};
use crate::library::Library;
use crate::object::errhandler::Raiser;
use crate::process::Process;
use crate::raw::Ref;

/// `MPI_File_create_errhandler`.
pub fn file_create_errhandler(
    library: &Library,
    function: Option<FileErrorFunction>,
    handler: Ref<Errhandler>,
) -> Result {
    let function = function.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    let function = ErrorFunction::File(function);
    handler.set(library.objects().handlers.enter(function)?);
    Ok(())
}

/// `MPI_File_set_errhandler`. That of `MPI_FILE_NULL` is what files get that are opened.
pub fn file_set_errhandler(process: &Process, file: abi::File, handler: Errhandler) -> Result {
    let found = process.early.handlers.get_for(handler, Raiser::File);
    let found = found.map_err(|error| error.on(On::File(file)))?;
    match file {
        abi::File::NULL => process.files.set_initial(found),
        _ => on_file(process, file, |file| {
            file.set_errhandler(found);
            Ok(())
        })?,
    }
    Ok(())
}

/// `MPI_File_get_errhandler`. The program frees what it gets.
pub fn file_get_errhandler(process: &Process, file: abi::File, handler: Ref<Errhandler>) -> Result {
    let held = match file {
        abi::File::NULL => process.files.initial(),
        _ => on_file(process, file, |file| Ok(file.errhandler()))?,
    };
    handler.set(process.early.handlers.show(&held)?);
    Ok(())
}

/// `MPI_File_call_errhandler`.
pub fn file_call_errhandler(process: &Process, file: abi::File, code: i32) -> Result {
    if file != abi::File::NULL {
        on_file(process, file, |_| Ok(()))?;
    }
    let text = process.text_of(code);
    let text = text.unwrap_or_else(|| format!("the error code {code}"));
    let error = Error::of_code(code, text).on(On::File(file));
    process.raise(&error, "MPI_File_call_errhandler");
    Ok(())
}
