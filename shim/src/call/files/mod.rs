//! Files (MPI-5.0, chapter 14).
//!
//! An access that is started is over when the call returns, with a request that has ended: those of one process have nobody to wait
//! for, and the collective ones are made by each process alone then.

pub mod accesses;
pub mod handlers;
pub mod management;
pub mod pointers;
pub mod split;
pub mod views;

use std::sync::Arc;

use crate::abi;
use crate::error::{Error, On, Result};
use crate::object::file::File;
use crate::process::Process;

/// Runs the body of a call on a file, where its errors are raised; on `MPI_FILE_NULL` where there is none.
fn on_file<R>(
    process: &Process,
    handle: abi::File,
    body: impl FnOnce(Arc<File>) -> Result<R>,
) -> Result<R> {
    let file = process.files.find(handle);
    let done = file.and_then(body);
    done.map_err(|error: Error| error.on(On::File(handle)))
}
