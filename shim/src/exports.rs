//! What each exported function calls.

use crate::{Error, Process, State, abi};

/// The object on whose error handler an error is raised.
#[derive(Debug, Clone, Copy)]
pub enum On {
    /// A communicator.
    Comm(abi::Comm),
    /// A window.
    Win(abi::Win),
    /// A file.
    File(abi::File),
    /// A session.
    Session(abi::Session),
    /// None.
    None,
}

/// Runs a handler between initialization and finalization.
pub fn call(_name: &'static str, handler: impl FnOnce(&Process) -> Result<(), Error>) -> i32 {
    handler(&Process).map_or_else(|error| error.0, |()| 0)
}

/// Runs a handler at any time.
pub fn early(_name: &'static str, handler: impl FnOnce(&State) -> Result<(), Error>) -> i32 {
    handler(&State).map_or_else(|error| error.0, |()| 0)
}

/// Runs a handler of the tools' interface, at any time. Its errors have no handlers.
pub fn tool(_name: &'static str, handler: impl FnOnce(&State) -> Result<(), Error>) -> i32 {
    handler(&State).map_or_else(|error| error.0, |()| 0)
}

/// Raises the error of what is not there.
pub fn unsupported(_name: &'static str, _on: On) -> i32 {
    55
}
