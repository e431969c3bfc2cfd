//! The bodies of calls: one function for each name of `shim/api/functions.txt`, by chapters of the standard.

pub mod allocations;
pub mod bsend;
pub mod collectives;
pub mod communicators;
pub mod complete;
pub mod contents;
pub mod datatypes;
mod dimensions;
pub mod duplicates;
pub mod environment;
pub mod errhandlers;
pub mod files;
pub mod fortran;
pub mod generalized;
pub mod groups;
pub mod infos;
pub mod intercommunicators;
pub mod interface;
pub mod keyvals;
pub mod operations;
pub mod p2p;
pub mod packing;
pub mod partitioned;
pub mod probes;
pub mod sendrecv;
pub mod sessions;
pub mod statuses;
pub mod time;
pub mod topologies;
pub mod windows;

use crate::abi::Comm;
use crate::error::{Class, Error, On, Result};
use crate::object::comm::CommRef;
use crate::process::Process;

/// Runs the body of a call on a communicator, where its errors are raised.
#[inline(always)]
pub(crate) fn on_comm<'p, R>(
    process: &'p Process,
    handle: Comm,
    body: impl FnOnce(CommRef<'p>) -> Result<R>,
) -> Result<R> {
    let comm = process.comm(handle)?;
    body(comm).map_err(|error| error.on(On::Comm(handle)))
}

/// Returns the number of elements of the call's arrays.
///
/// # Errors
/// One of the class where it is negative.
#[inline]
fn count_of(count: i32, class: Class) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::new(class, format!("the count is {count}")))
}

/// Where a message goes, or what a receive accepts: the last arguments of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    pub(crate) rank: i32,
    pub(crate) tag: i32,
    pub(crate) comm: Comm,
}
