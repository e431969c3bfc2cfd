//! Opening a library file, without letting it take over signals or the terminal.

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::path::Path;

use libloading::Library;

use crate::bindings::Ucp;

/// Why a file is not to be used.
#[derive(Debug)]
pub enum OpenError {
    /// The dynamic loader did not take it.
    Load(String),
    /// It was loaded, but it lacks a function, so it is not UCP 1.13 or later.
    Symbol(String),
}

/// `ucs_global_opts_set_value`.
type SetOption = unsafe extern "C" fn(*const c_char, *const c_char) -> i8;

/// The signals that UCX catches to print a backtrace.
const ERROR_SIGNALS: [c_int; 4] = [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE];

/// Opens `file`, by path or by the loader's search. The library stays loaded for as long as the
/// process lives: it has hooks in the memory functions, which nothing can take back.
///
/// UCX's loader installs handlers for signals of crashes and writes its messages to the terminal.
/// Both are put back as they were unless the user asked for them in UCX's own variables
/// (`UCX_HANDLE_ERRORS`, `UCX_ERROR_SIGNALS`, `UCX_LOG_LEVEL`).
///
/// # Safety
/// What the loader finds under that name is a UCP, or nothing that has all of its functions, and its initialisers
/// may run in this process.
///
/// # Errors
/// When the file cannot be loaded, or lacks one of the functions.
pub unsafe fn open(file: &Path) -> Result<&'static Ucp, OpenError> {
    let asked = |name: &str| std::env::var_os(name).is_some();
    let keep_handlers = asked("UCX_HANDLE_ERRORS") || asked("UCX_ERROR_SIGNALS");
    let handlers = (!keep_handlers).then(Handlers::save);
    // SAFETY: loading runs the library's initialisers, of which the caller says that they may run. UCX's read
    // the environment and install signal handlers, which are put back below.
    let loaded = unsafe { Library::new(file) };
    if let Some(handlers) = handlers {
        handlers.restore();
    }
    let library = loaded.map_err(|error| OpenError::Load(words(&error)))?;
    if !asked("UCX_LOG_LEVEL") {
        set_option(&library, c"LOG_LEVEL", c"fatal");
    }
    // SAFETY: the caller says that a file with all these names is a UCP, whose signatures the bindings have.
    let functions = unsafe { Ucp::from_library(library) };
    let functions = functions.map_err(|error| OpenError::Symbol(words(&error)))?;
    Ok(Box::leak(Box::new(functions)))
}

/// What the dynamic loader says, which is behind what `libloading` does.
fn words(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

/// Sets one of UCX's process-wide options, where the library lets.
fn set_option(library: &Library, name: &CStr, value: &CStr) {
    // SAFETY: the symbol has had this signature since UCX 1.0, and the strings outlive the call.
    unsafe {
        if let Ok(set) = library.get::<SetOption>(c"ucs_global_opts_set_value".to_bytes_with_nul())
        {
            let name = CString::from(name);
            set(name.as_ptr(), value.as_ptr());
        }
    }
}

/// What the process does on signals of crashes.
struct Handlers([Option<libc::sigaction>; ERROR_SIGNALS.len()]);

impl Handlers {
    fn save() -> Self {
        Self(ERROR_SIGNALS.map(|signal| {
            let mut action = MaybeUninit::uninit();
            // SAFETY: asks only, and writes an action where it returns 0.
            let status = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
            // SAFETY: written, as the status says.
            (status == 0).then(|| unsafe { action.assume_init() })
        }))
    }

    fn restore(&self) {
        for (signal, action) in ERROR_SIGNALS.iter().zip(&self.0) {
            if let Some(action) = action {
                // SAFETY: puts back an action that the process had before.
                unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
            }
        }
    }
}
