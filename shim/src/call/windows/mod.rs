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

/// Runs the body of a call on a window, where its errors are raised.
#[inline]
pub(crate) fn on_win<R>(
    process: &Process,
    handle: Win,
    body: impl FnOnce(&Arc<Window>) -> Result<R>,
) -> Result<R> {
    let window = process.windows.find(handle.0)?;
    body(&window).map_err(|error: Error| window.cause(error).on(On::Win(handle)))
}
