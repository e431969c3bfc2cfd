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

/// Generates collective operations of a library's rank: the functions of these names, each with a request behind its other
/// arguments where there is one, which is waited for.
macro_rules! collectives {
    (
        $(#[$about:meta])* $name:ident, $functions:ident, [$($request:ident: $handle:ty)?],
        $barrier:literal, $bcast:literal, $reduce:literal, $allreduce:literal, $reduce_scatter:literal,
        $allgather:literal, $alltoall:literal, $gather:literal, $scatter:literal,
    ) => {
        /// The functions: buffer, count and type of what is sent, then of what is received, and the rest.
        #[derive(Clone, Copy)]
        struct $functions {
            barrier: unsafe extern "C" fn(Handle $(, $handle)?) -> c_int,
            bcast: unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle $(, $handle)?) -> c_int,
            reduce: unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle $(, $handle)?) -> c_int,
            allreduce: unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle $(, $handle)?) -> c_int,
            reduce_scatter: unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle $(, $handle)?) -> c_int,
            allgather: unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle $(, $handle)?) -> c_int,
            alltoall: unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle $(, $handle)?) -> c_int,
            gather: unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle $(, $handle)?) -> c_int,
            scatter: unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle $(, $handle)?) -> c_int,
            $(wait: unsafe extern "C" fn($handle, *mut c_void) -> c_int,)?
        }

        $(#[$about])*
        pub(crate) struct $name<'a> {
            port: &'a MpiPort,
            functions: $functions,
        }

        impl<'a> $name<'a> {
            #[inline]
            pub(crate) fn of(port: &'a MpiPort) -> Result<Self> {
                // SAFETY: the standard gives the functions of these names these types.
                let functions = unsafe {
                    $functions {
                        barrier: port.symbol($barrier)?,
                        bcast: port.symbol($bcast)?,
                        reduce: port.symbol($reduce)?,
                        allreduce: port.symbol($allreduce)?,
                        reduce_scatter: port.symbol($reduce_scatter)?,
                        allgather: port.symbol($allgather)?,
                        alltoall: port.symbol($alltoall)?,
                        gather: port.symbol($gather)?,
                        scatter: port.symbol($scatter)?,
                        $(wait: port.symbol::<unsafe extern "C" fn($handle, *mut c_void) -> c_int>(b"MPI_Wait")?,)?
                    }
                };
                Ok(Self { port, functions })
            }
        }

        impl Collectives for $name<'_> {
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
                $(let mut started = ptr::null_mut();
                let $request: $handle = &raw mut started;)?
                // SAFETY: the pieces are as long as the counts say, readable and writable, and never freed; they do not overlap,
                // and nobody touches them until a request is complete; the handles are predefined; the library is initialised
                // while the port lives.
                let code = unsafe {
                    match operation {
                        Operation::Barrier => (functions.barrier)(world $(, $request)?),
                        Operation::Bcast => (functions.bcast)(to, all_into, byte, root, world $(, $request)?),
                        Operation::Reduce => (functions.reduce)(from, to, numbers, summand, sum, root, world $(, $request)?),
                        Operation::Allreduce => (functions.allreduce)(from, to, numbers, summand, sum, world $(, $request)?),
                        Operation::ReduceScatter => {
                            (functions.reduce_scatter)(from, to, numbers_into, summand, sum, world $(, $request)?)
                        }
                        Operation::Allgather => {
                            (functions.allgather)(from, all_out, byte, to, all_out, byte, world $(, $request)?)
                        }
                        Operation::Alltoall => {
                            (functions.alltoall)(from, each_out, byte, to, each_into, byte, world $(, $request)?)
                        }
                        Operation::Gather => {
                            (functions.gather)(from, all_out, byte, to, all_out, byte, root, world $(, $request)?)
                        }
                        Operation::Scatter => {
                            (functions.scatter)(from, all_into, byte, to, all_into, byte, root, world $(, $request)?)
                        }
                    }
                };
                self.port.check("a collective", code)?;
                $(
                    // SAFETY: the request was started just now; a null pointer asks for no status.
                    let code = unsafe { (functions.wait)($request, ptr::null_mut()) };
                    self.port.check("MPI_Wait", code)?;
                )?
                Ok(())
            }
        }
    };
}

collectives! {
    /// The collective operations of a library's rank.
    MpiCollectives, Functions, [],
    b"MPI_Barrier", b"MPI_Bcast", b"MPI_Reduce", b"MPI_Allreduce", b"MPI_Reduce_scatter_block",
    b"MPI_Allgather", b"MPI_Alltoall", b"MPI_Gather", b"MPI_Scatter",
}

collectives! {
    /// The nonblocking operations of a library's rank, each of which is waited for.
    MpiNonblocking, Starts, [request: *mut Handle],
    b"MPI_Ibarrier", b"MPI_Ibcast", b"MPI_Ireduce", b"MPI_Iallreduce", b"MPI_Ireduce_scatter_block",
    b"MPI_Iallgather", b"MPI_Ialltoall", b"MPI_Igather", b"MPI_Iscatter",
}
