//! Collective operations of MPI libraries.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;

use super::abi::{MpiPort, count};
use super::handles::Handle;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::port::Endpoint;
use crate::port::collective::{Collectives, Operation, Summand};

/// Buffer, count and type of what is sent, then of what is received.
type OfTwo =
    unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle) -> c_int;
type OfTwoAndRoot = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    Handle,
    c_int,
    Handle,
) -> c_int;

/// The functions.
#[derive(Clone, Copy)]
struct Functions {
    barrier: unsafe extern "C" fn(Handle) -> c_int,
    bcast: unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle) -> c_int,
    reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        c_int,
        Handle,
        Handle,
        c_int,
        Handle,
    ) -> c_int,
    allreduce:
        unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int,
    reduce_scatter:
        unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int,
    allgather: OfTwo,
    alltoall: OfTwo,
    gather: OfTwoAndRoot,
    scatter: OfTwoAndRoot,
}

/// The collective operations of a library's rank.
pub(crate) struct MpiCollectives<'a> {
    port: &'a MpiPort,
    functions: Functions,
}

impl<'a> MpiCollectives<'a> {
    #[inline]
    pub(crate) fn of(port: &'a MpiPort) -> Result<Self> {
        // SAFETY: the standard gives the functions of these names these types.
        let functions = unsafe {
            Functions {
                barrier: port.symbol(b"MPI_Barrier")?,
                bcast: port.symbol(b"MPI_Bcast")?,
                reduce: port.symbol(b"MPI_Reduce")?,
                allreduce: port.symbol(b"MPI_Allreduce")?,
                reduce_scatter: port.symbol(b"MPI_Reduce_scatter_block")?,
                allgather: port.symbol(b"MPI_Allgather")?,
                alltoall: port.symbol(b"MPI_Alltoall")?,
                gather: port.symbol(b"MPI_Gather")?,
                scatter: port.symbol(b"MPI_Scatter")?,
            }
        };
        Ok(Self { port, functions })
    }
}

impl Collectives for MpiCollectives<'_> {
    #[inline]
    fn call(&self, operation: Operation, out: Outgoing, into: Incoming) -> Result<()> {
        let (handles, functions) = (self.port.handles(), &self.functions);
        let (world, byte) = (handles.world, handles.byte);
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (summand, unit) = match Summand::of(into.len()) {
            Summand::Double => (handles.double, 8),
            Summand::Byte => (handles.uint8, 1),
        };
        let ranks = self.port.size() as usize;
        let all_out = count(out.len())?;
        let (each_out, each_into) = (count(out.len() / ranks)?, count(into.len() / ranks)?);
        let (numbers, all_into) = (count(out.len() / unit)?, count(into.len())?);
        let numbers_into = count(into.len() / unit)?;
        let (sum, root) = (handles.sum, 0);
        // SAFETY: the pieces are as long as the counts say, readable and writable, and never freed; they do not overlap;
        // the handles are predefined; the library is initialised while the port lives.
        let code = unsafe {
            match operation {
                Operation::Barrier => (functions.barrier)(world),
                Operation::Bcast => (functions.bcast)(to, all_into, byte, root, world),
                Operation::Reduce => {
                    (functions.reduce)(from, to, numbers, summand, sum, root, world)
                }
                Operation::Allreduce => {
                    (functions.allreduce)(from, to, numbers, summand, sum, world)
                }
                Operation::ReduceScatter => {
                    (functions.reduce_scatter)(from, to, numbers_into, summand, sum, world)
                }
                Operation::Allgather => {
                    (functions.allgather)(from, all_out, byte, to, all_out, byte, world)
                }
                Operation::Alltoall => {
                    (functions.alltoall)(from, each_out, byte, to, each_into, byte, world)
                }
                Operation::Gather => {
                    (functions.gather)(from, all_out, byte, to, all_out, byte, root, world)
                }
                Operation::Scatter => {
                    (functions.scatter)(from, all_into, byte, to, all_into, byte, root, world)
                }
            }
        };
        self.port.check("a collective", code)
    }
}

/// As above, with a request.
type StartOfTwo = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    Handle,
    Handle,
    *mut Handle,
) -> c_int;
type StartOfTwoAndRoot = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    c_int,
    Handle,
    c_int,
    Handle,
    *mut Handle,
) -> c_int;

/// The nonblocking functions.
#[derive(Clone, Copy)]
struct Starts {
    barrier: unsafe extern "C" fn(Handle, *mut Handle) -> c_int,
    bcast: unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle, *mut Handle) -> c_int,
    reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        c_int,
        Handle,
        Handle,
        c_int,
        Handle,
        *mut Handle,
    ) -> c_int,
    allreduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        c_int,
        Handle,
        Handle,
        Handle,
        *mut Handle,
    ) -> c_int,
    reduce_scatter: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        c_int,
        Handle,
        Handle,
        Handle,
        *mut Handle,
    ) -> c_int,
    allgather: StartOfTwo,
    alltoall: StartOfTwo,
    gather: StartOfTwoAndRoot,
    scatter: StartOfTwoAndRoot,
    wait: unsafe extern "C" fn(*mut Handle, *mut c_void) -> c_int,
}

/// The nonblocking operations of a library's rank, each of which is waited for.
pub(crate) struct MpiNonblocking<'a> {
    port: &'a MpiPort,
    functions: Starts,
}

impl<'a> MpiNonblocking<'a> {
    #[inline]
    pub(crate) fn of(port: &'a MpiPort) -> Result<Self> {
        // SAFETY: the standard gives the functions of these names these types.
        let functions = unsafe {
            Starts {
                barrier: port.symbol(b"MPI_Ibarrier")?,
                bcast: port.symbol(b"MPI_Ibcast")?,
                reduce: port.symbol(b"MPI_Ireduce")?,
                allreduce: port.symbol(b"MPI_Iallreduce")?,
                reduce_scatter: port.symbol(b"MPI_Ireduce_scatter_block")?,
                allgather: port.symbol(b"MPI_Iallgather")?,
                alltoall: port.symbol(b"MPI_Ialltoall")?,
                gather: port.symbol(b"MPI_Igather")?,
                scatter: port.symbol(b"MPI_Iscatter")?,
                wait: port.symbol(b"MPI_Wait")?,
            }
        };
        Ok(Self { port, functions })
    }
}

impl Collectives for MpiNonblocking<'_> {
    #[inline]
    fn call(&self, operation: Operation, out: Outgoing, into: Incoming) -> Result<()> {
        let (handles, functions) = (self.port.handles(), &self.functions);
        let (world, byte) = (handles.world, handles.byte);
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (summand, unit) = match Summand::of(into.len()) {
            Summand::Double => (handles.double, 8),
            Summand::Byte => (handles.uint8, 1),
        };
        let ranks = self.port.size() as usize;
        let all_out = count(out.len())?;
        let (each_out, each_into) = (count(out.len() / ranks)?, count(into.len() / ranks)?);
        let (numbers, all_into) = (count(out.len() / unit)?, count(into.len())?);
        let numbers_into = count(into.len() / unit)?;
        let (sum, root, mut started) = (handles.sum, 0, ptr::null_mut());
        let request = &raw mut started;
        // SAFETY: as for the blocking ones; the pieces are touched by nobody until the request is complete.
        let code = unsafe {
            match operation {
                Operation::Barrier => (functions.barrier)(world, request),
                Operation::Bcast => (functions.bcast)(to, all_into, byte, root, world, request),
                Operation::Reduce => {
                    (functions.reduce)(from, to, numbers, summand, sum, root, world, request)
                }
                Operation::Allreduce => {
                    (functions.allreduce)(from, to, numbers, summand, sum, world, request)
                }
                Operation::ReduceScatter => {
                    (functions.reduce_scatter)(from, to, numbers_into, summand, sum, world, request)
                }
                Operation::Allgather => {
                    (functions.allgather)(from, all_out, byte, to, all_out, byte, world, request)
                }
                Operation::Alltoall => {
                    (functions.alltoall)(from, each_out, byte, to, each_into, byte, world, request)
                }
                Operation::Gather => {
                    (functions.gather)(from, all_out, byte, to, all_out, byte, root, world, request)
                }
                Operation::Scatter => (functions.scatter)(
                    from, all_into, byte, to, all_into, byte, root, world, request,
                ),
            }
        };
        self.port.check("a collective", code)?;
        // SAFETY: the request was started just now; a null pointer asks for no status.
        let code = unsafe { (functions.wait)(request, ptr::null_mut()) };
        self.port.check("MPI_Wait", code)
    }
}
