//! The library in a program: the state that MPI has no object for, and how calls get at it.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Once, OnceLock};

use crate::abi::{SUCCESS, Session};
pub use crate::error::On;
use crate::error::{Class, Error, Result};
use crate::functions::at_exit;
use crate::lock::Lock;
use crate::object::errhandler::Handler;
use crate::process::Process;
use crate::process::early::Early;
use crate::streams::write_each_line;

/// The library in a program. The shared library has one, its only static.
pub struct Library {
    /// The process, once it was initialized.
    process: OnceLock<Arc<Process>>,
    /// What may be used before that.
    early: OnceLock<Arc<Early>>,
    /// Keeps two threads from initializing at once.
    changing: Lock<()>,
    registered: Once,
    exit: extern "C" fn(),
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Library").field(&self.process.get()).finish()
    }
}

impl Library {
    /// Returns one that has no process yet. `exit` calls [`leave`](Self::leave): a function of C has no other way to it.
    #[must_use]
    pub const fn new(exit: extern "C" fn()) -> Self {
        Self {
            process: OnceLock::new(),
            early: OnceLock::new(),
            changing: Lock::new(()),
            registered: Once::new(),
            exit,
        }
    }

    /// Returns one with a process, for tests.
    #[must_use]
    pub fn of(process: &Arc<Process>) -> Self {
        extern "C" fn stay() {}
        let library = Self::new(stay);
        let _ = library.process.set(Arc::clone(process));
        library
    }

    /// Calls a handler. Before initialization and after finalization it ends the process, with a line that names the call.
    #[inline(always)]
    pub fn call(&self, name: &str, handler: impl FnOnce(&Arc<Process>) -> Result) -> i32 {
        let Some(process) = self.process.get().filter(|process| process.is_running()) else {
            self.misplaced(name);
        };
        match handler(process) {
            Ok(()) => SUCCESS,
            Err(error) => raised(process, error, name),
        }
    }

    /// The same of a call with a short form, which is tried first. That finds nothing once the process has left its job, and does
    /// nothing where it returns `None`: then the handler does all of it.
    #[inline(always)]
    pub fn short(
        &self,
        name: &str,
        first: impl FnOnce(&Arc<Process>) -> Option<()>,
        handler: impl FnOnce(&Arc<Process>) -> Result,
    ) -> i32 {
        match self.process.get().and_then(first) {
            Some(()) => SUCCESS,
            None => self.call_at_length(name, handler),
        }
    }

    #[cold]
    #[inline(never)]
    fn call_at_length(&self, name: &str, handler: impl FnOnce(&Arc<Process>) -> Result) -> i32 {
        self.call(name, handler)
    }

    /// The same for what may be called at any time.
    pub fn early(&self, name: &str, handler: impl FnOnce(&Self) -> Result) -> i32 {
        match handler(self) {
            Ok(()) => SUCCESS,
            // The call may have made it.
            Err(error) => match self.process() {
                Some(process) => process.raise(&error, name),
                None => self.fail(&error, name),
            },
        }
    }

    /// The same for the tools' interface, whose errors have no handlers.
    pub fn tool(&self, _: &str, handler: impl FnOnce(&Self) -> Result) -> i32 {
        handler(self).map_or_else(|error| error.code(), |()| SUCCESS)
    }

    /// What calls return that are given no room for a result.
    #[cold]
    pub fn no_result(&self, name: &str, on: On) -> i32 {
        self.call(name, |_| Err(null_result().on(on)))
    }

    /// The same for what may be called at any time.
    #[cold]
    pub fn no_result_early(&self, name: &str, on: On) -> i32 {
        self.early(name, |_| Err(null_result().on(on)))
    }

    /// What calls return that do nothing here.
    #[cold]
    pub fn unsupported(&self, name: &str, on: On) -> i32 {
        self.call(name, |_| {
            let text = "it is not supported by this library";
            Err(Error::new(Class::UnsupportedOperation, text).on(on))
        })
    }

    /// The same for what may be called at any time.
    #[cold]
    pub fn unsupported_early(&self, name: &str, on: On) -> i32 {
        match self.process() {
            Some(_) => self.unsupported(name, on),
            None => Class::UnsupportedOperation as i32,
        }
    }

    /// Has the process leave the job, where it used sessions alone, as it does when the program exits.
    pub fn leave(&self) {
        if let Some(process) = self.process()
            && process.models.exit()
        {
            let _ = process.leave();
        }
    }

    /// Returns the process, where it was initialized.
    pub(crate) fn process(&self) -> Option<&Arc<Process>> {
        self.process.get()
    }

    /// Returns the objects that there are without a process too.
    pub(crate) fn objects(&self) -> &Arc<Early> {
        match self.process() {
            Some(process) => &process.early,
            None => self.early.get_or_init(|| Arc::new(Early::new())),
        }
    }

    /// Returns the process, which joins the job where it has not before.
    pub(crate) fn joined(&self) -> Result<&Arc<Process>> {
        let _changing = self.changing.lock();
        if let Some(process) = self.process() {
            return Ok(process);
        }
        let process = Process::join(Arc::clone(self.objects()));
        let process = process.map_err(|text| Error::new(Class::Other, text))?;
        write_each_line();
        Ok(self.process.get_or_init(|| {
            let process = Arc::new(process);
            process.name_contexts();
            process
        }))
    }

    /// Initializes the world model.
    pub(crate) fn initialize(&self, level: i32) -> Result {
        let process = self.joined()?;
        process.models.begin_world()?;
        process.set_thread_level(level);
        Ok(())
    }

    /// Has the process leave the job when the program exits, where it used sessions alone: more of them may come up to then.
    pub(crate) fn leave_at_exit(&self) {
        self.registered.call_once(|| at_exit(self.exit));
    }

    /// Whether the world model has been initialized, and whether it has been finalized.
    pub(crate) fn progress(&self) -> (bool, bool) {
        self.process()
            .map_or((false, false), |process| process.models.of_world())
    }

    #[cold]
    fn misplaced(&self, name: &str) -> ! {
        let when = match self.progress() {
            (false, _) => "before MPI_Init",
            _ => "after MPI_Finalize",
        };
        end(&format!("tagwire: {name} was called {when}\n"))
    }

    /// An error that no process is there for: by the error handler that the call was given, else by the initial one.
    #[cold]
    fn fail(&self, error: &Error, name: &str) -> i32 {
        let handler = match error.raised_on() {
            On::Handler(handler) => self.objects().handlers.get(handler).ok(),
            _ => None,
        };
        match handler {
            Some(Handler::Return) => {}
            Some(Handler::Made(made)) => {
                made.function()
                    .call(On::Session(Session::NULL), error.code());
            }
            _ => end(&format!("tagwire: {name}: {}\n", error.text())),
        }
        error.code()
    }
}

/// Raises an error of a call, and drops it: nothing is left to the caller, which so needs no frame where it has no error.
#[cold]
#[inline(never)]
fn raised(process: &Process, error: Error, name: &str) -> i32 {
    process.raise(&error, name)
}

fn null_result() -> Error {
    Error::new(
        Class::Arg,
        "the address of a result, or of an array, is null",
    )
}

fn end(line: &str) -> ! {
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(1)
}
