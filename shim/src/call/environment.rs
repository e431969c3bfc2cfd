//! Initialization, finalization and inquiry (MPI-5.0, chapter 11).

use std::sync::atomic::Ordering::Relaxed;

use crate::abi::{
    Comm, Datatype, MAX_ERROR_STRING, MAX_LIBRARY_VERSION_STRING, MAX_PROCESSOR_NAME, UNDEFINED,
    thread,
};
use crate::error::{Class, Error, Result};
use crate::library::Library;
use crate::process::Process;
use crate::raw::{CountOut, Pointer, Ref, StatusRef, TextOut};

/// `MPI_Init`. The arguments of the program are left alone.
pub fn init(library: &Library, _argc: Ref<i32>, _argv: Pointer) -> Result {
    library.initialize(thread::SINGLE)
}

/// `MPI_Init_thread`. What is asked for is provided.
pub fn init_thread(
    library: &Library,
    _argc: Ref<i32>,
    _argv: Pointer,
    required: i32,
    provided: Ref<i32>,
) -> Result {
    let levels = [
        thread::SINGLE,
        thread::FUNNELED,
        thread::SERIALIZED,
        thread::MULTIPLE,
    ];
    let level = levels.into_iter().find(|level| *level >= required);
    let level = level.unwrap_or(thread::MULTIPLE);
    library.initialize(level)?;
    provided.set(level);
    Ok(())
}

/// `MPI_Finalize`.
pub fn finalize(process: &Process) -> Result {
    process.finalize()
}

/// `MPI_Initialized`.
pub fn initialized(library: &Library, flag: Ref<i32>) -> Result {
    flag.set(i32::from(library.progress().0));
    Ok(())
}

/// `MPI_Finalized`.
pub fn finalized(library: &Library, flag: Ref<i32>) -> Result {
    flag.set(i32::from(library.progress().1));
    Ok(())
}

/// `MPI_Query_thread`.
pub fn query_thread(process: &Process, provided: Ref<i32>) -> Result {
    provided.set(process.thread_level.load(Relaxed));
    Ok(())
}

/// `MPI_Is_thread_main`.
pub fn is_thread_main(process: &Process, flag: Ref<i32>) -> Result {
    let is_main = std::thread::current().id() == process.main_thread;
    flag.set(i32::from(is_main));
    Ok(())
}

/// `MPI_Abort`.
pub fn abort(process: &Process, _comm: Comm, code: i32) -> Result {
    process.abort(code)
}

/// `MPI_Get_processor_name`.
pub fn get_processor_name(_: &Process, name: TextOut, length: Ref<i32>) -> Result {
    let system = rustix::system::uname();
    let node = system.nodename().to_string_lossy();
    length.set(name.set(&node, MAX_PROCESSOR_NAME));
    Ok(())
}

/// `MPI_Get_version`.
pub fn get_version(_: &Library, version: Ref<i32>, subversion: Ref<i32>) -> Result {
    version.set(5);
    subversion.set(0);
    Ok(())
}

/// `MPI_Abi_get_version`.
pub fn abi_get_version(_: &Library, version: Ref<i32>, subversion: Ref<i32>) -> Result {
    version.set(1);
    subversion.set(0);
    Ok(())
}

/// `MPI_Get_library_version`.
pub fn get_library_version(_: &Library, version: TextOut, length: Ref<i32>) -> Result {
    let text = concat!(
        "Tagwire ",
        env!("CARGO_PKG_VERSION"),
        " (MPI 5.0 standard ABI 1.0)"
    );
    length.set(version.set(text, MAX_LIBRARY_VERSION_STRING));
    Ok(())
}

/// `MPI_Error_string`.
pub fn error_string(library: &Library, code: i32, text: TextOut, length: Ref<i32>) -> Result {
    let known = match library.process() {
        Some(process) => process.text_of(code),
        None => match Class::of(code) {
            Some(class) => Some(class.text().to_owned()),
            None => library.objects().codes.text(code),
        },
    };
    let known = known.ok_or_else(|| no_code(code))?;
    length.set(text.set(&known, MAX_ERROR_STRING));
    Ok(())
}

/// `MPI_Error_class`.
pub fn error_class(library: &Library, code: i32, class: Ref<i32>) -> Result {
    let known = library.objects().codes.class(code);
    class.set(known.ok_or_else(|| no_code(code))?);
    Ok(())
}

fn no_code(code: i32) -> Error {
    Error::new(Class::Arg, format!("{code} is no error code"))
}

/// `MPI_Get_count`.
pub fn get_count(
    process: &Process,
    status: StatusRef,
    datatype: Datatype,
    count: CountOut,
) -> Result {
    let bytes = status.get().bytes();
    let one = process.types.get(datatype)?;
    let size = one.program()?.size();
    count.set(match (bytes, size) {
        (0, _) => 0,
        (_, 0) => i64::from(UNDEFINED),
        (bytes, size) if bytes % size == 0 => (bytes / size) as i64,
        _ => i64::from(UNDEFINED),
    })
}

/// `MPI_Get_elements`.
pub fn get_elements(
    process: &Process,
    status: StatusRef,
    datatype: Datatype,
    count: CountOut,
) -> Result {
    let bytes = status.get().bytes();
    let one = process.types.get(datatype)?;
    let elements = one.program()?.signature().elements_in(bytes);
    count.set(match elements.rest {
        0 => elements.whole as i64,
        _ => i64::from(UNDEFINED),
    })
}

/// `MPI_Status_set_elements`: basic elements, as `MPI_Get_elements` counts them.
pub fn status_set_elements(
    process: &Process,
    status: StatusRef,
    datatype: Datatype,
    count: i64,
) -> Result {
    let one = process.types.get(datatype)?;
    let signature = one.program()?.signature();
    let elements = u64::try_from(count).ok();
    let bytes = elements.and_then(|elements| signature.bytes_of(elements));
    let bytes = bytes.ok_or_else(|| {
        let text = format!("the datatype cannot have {count} elements");
        Error::new(Class::Count, text)
    })?;
    status.change(|status| status.with_bytes(bytes));
    Ok(())
}

/// `MPI_Get_elements_x`.
pub fn get_elements_x(
    process: &Process,
    status: StatusRef,
    datatype: Datatype,
    count: Ref<i64>,
) -> Result {
    get_elements(process, status, datatype, CountOut::wide(count))
}

/// `MPI_Status_get_source`.
pub fn status_get_source(_: &Process, status: StatusRef, source: Ref<i32>) -> Result {
    source.set(status.get().source);
    Ok(())
}

/// `MPI_Status_get_tag`.
pub fn status_get_tag(_: &Process, status: StatusRef, tag: Ref<i32>) -> Result {
    tag.set(status.get().tag);
    Ok(())
}

/// `MPI_Status_get_error`.
pub fn status_get_error(_: &Process, status: StatusRef, code: Ref<i32>) -> Result {
    code.set(status.get().error);
    Ok(())
}

/// `MPI_Status_set_source`.
pub fn status_set_source(_: &Process, status: StatusRef, source: i32) -> Result {
    status.change(|status| status.with_source(source));
    Ok(())
}

/// `MPI_Status_set_tag`.
pub fn status_set_tag(_: &Process, status: StatusRef, tag: i32) -> Result {
    status.change(|status| status.with_tag(tag));
    Ok(())
}

/// `MPI_Status_set_error`.
pub fn status_set_error(_: &Process, status: StatusRef, code: i32) -> Result {
    status.change(|status| status.with_error(code));
    Ok(())
}

/// `MPI_Status_set_cancelled`.
pub fn status_set_cancelled(_: &Process, status: StatusRef, flag: i32) -> Result {
    status.change(|status| status.with_cancelled(flag != 0));
    Ok(())
}
