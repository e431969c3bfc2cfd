//! What the exported functions go through: the state of the process, and errors.

use std::io::Write;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use crate::abi::SUCCESS;
use crate::early::Early;
pub use crate::error::On;
use crate::error::{Class, Error, Result};
use crate::functions::at_exit;
use crate::process::Process;

/// The process, once it was initialized: MPI has no object for it.
static PROCESS: OnceLock<Arc<Process>> = OnceLock::new();

/// Keeps two threads from initializing at once.
static CHANGING: Mutex<()> = Mutex::new(());

/// Calls a handler. Before initialization and after finalization it ends the process, with a line that names the call.
#[inline]
pub fn call(name: &str, handler: impl FnOnce(&Arc<Process>) -> Result) -> i32 {
    let Some(process) = PROCESS.get().filter(|process| process.is_running()) else {
        misplaced(name);
    };
    match handler(process) {
        Ok(()) => SUCCESS,
        Err(error) => process.raise(&error, name),
    }
}

/// The same for what may be called at any time.
pub fn early(name: &str, handler: impl FnOnce(Option<&Arc<Process>>) -> Result) -> i32 {
    match handler(PROCESS.get()) {
        Ok(()) => SUCCESS,
        // The call may have made it.
        Err(error) => match PROCESS.get() {
            Some(process) => process.raise(&error, name),
            None => fail(&error, name),
        },
    }
}

/// The same for the tools' interface, whose errors have no handlers.
pub fn tool(_: &str, handler: impl FnOnce(Option<&Arc<Process>>) -> Result) -> i32 {
    handler(PROCESS.get()).map_or_else(|error| error.code(), |()| SUCCESS)
}

/// What calls return that are given no room for a result.
#[cold]
pub fn no_result(name: &str, on: On) -> i32 {
    call(name, |_| Err(null_result().on(on)))
}

/// The same for what may be called at any time.
#[cold]
pub fn no_result_early(name: &str, on: On) -> i32 {
    early(name, |_| Err(null_result().on(on)))
}

fn null_result() -> Error {
    Error::new(
        Class::Arg,
        "the address of a result, or of an array, is null",
    )
}

/// What calls return that do nothing here.
#[cold]
pub fn unsupported(name: &str, on: On) -> i32 {
    call(name, |_| {
        let text = "it is not supported by this library";
        Err(Error::new(Class::UnsupportedOperation, text).on(on))
    })
}

/// The same for what may be called at any time.
#[cold]
pub fn unsupported_early(name: &str, on: On) -> i32 {
    match PROCESS.get() {
        Some(_) => unsupported(name, on),
        None => Class::UnsupportedOperation as i32,
    }
}

/// Returns the objects that there are without a process too: those of the process, or the program's where there is none yet.
pub(crate) fn early_objects(process: Option<&Arc<Process>>) -> Arc<Early> {
    process.map_or_else(Early::shared, |process| Arc::clone(&process.early))
}

/// Returns the process, which joins the job where it has not before.
pub(crate) fn joined() -> Result<Arc<Process>> {
    let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(process) = PROCESS.get() {
        return Ok(Arc::clone(process));
    }
    let process = Process::join().map_err(|text| Error::new(Class::Other, text))?;
    let process = Arc::new(process);
    let _ = PROCESS.set(Arc::clone(&process));
    Ok(process)
}

/// Initializes the world model.
pub(crate) fn initialize(level: i32) -> Result {
    let process = joined()?;
    process.models.begin_world()?;
    process.set_thread_level(level);
    Ok(())
}

/// Has the process leave the job when the program exits, where it used sessions alone: more of them may come up to then.
pub(crate) fn leave_at_exit() {
    extern "C" fn leave() {
        if let Some(process) = PROCESS.get()
            && process.models.exit()
        {
            let _ = process.leave();
        }
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| at_exit(leave));
}

/// Whether the world model has been initialized, and whether it has been finalized.
pub(crate) fn progress() -> (bool, bool) {
    let process = PROCESS.get();
    process.map_or((false, false), |process| process.models.of_world())
}

#[cold]
fn misplaced(name: &str) -> ! {
    let when = match progress() {
        (false, _) => "before MPI_Init",
        _ => "after MPI_Finalize",
    };
    end(&format!("tagwire: {name} was called {when}\n"))
}

/// An error that no process is there for: the initial error handler.
#[cold]
fn fail(error: &Error, name: &str) -> i32 {
    end(&format!("tagwire: {name}: {}\n", error.text()))
}

fn end(line: &str) -> ! {
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(1)
}
