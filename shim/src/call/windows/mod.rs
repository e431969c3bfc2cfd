//! Windows: one-sided communication (MPI-5.0, chapter 12).
//!
//! Calls that access memory are over when they return, where the memory is mapped; elsewhere they are started, and a call of
//! synchronization completes them.

pub mod accumulates;
pub mod creation;
pub mod queries;
pub mod synchronization;
pub mod transfers;

use std::sync::Arc;

use crate::abi::Win;
use crate::error::{Error, On, Result};
use crate::object::window::Window;
use crate::process::Process;

/// Runs the body of a call on a window, where its errors are raised. The body frees no window, and calls no function of the program,
/// which may.
#[inline]
pub(crate) fn on_win<R>(
    process: &Process,
    handle: Win,
    body: impl FnOnce(&Window) -> Result<R>,
) -> Result<R> {
    let all = || process.windows.find(handle.0);
    let done = process.shortcuts.with(handle, all, |window| {
        body(window).map_err(|error| raised_on(window, error))
    });
    done?
}

/// The same of a body that may free the window, or keeps it.
pub(crate) fn on_kept_win<R>(
    process: &Process,
    handle: Win,
    body: impl FnOnce(&Arc<Window>) -> Result<R>,
) -> Result<R> {
    let window = process.windows.find(handle.0)?;
    body(&window).map_err(|error| raised_on(&window, error))
}

#[cold]
fn raised_on(window: &Window, error: Error) -> Error {
    window.cause(error).on(On::Win(window.handle()))
}
