//! Collective operations of MPI libraries.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;

use super::abi::{MpiPort, count, functions};
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
        functions! {
            $functions:
            barrier = $barrier: fn(Handle $(, $handle)?);
            bcast = $bcast: fn(*mut c_void, c_int, Handle, c_int, Handle $(, $handle)?);
            reduce = $reduce: fn(*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle $(, $handle)?);
            allreduce = $allreduce: fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle $(, $handle)?);
            reduce_scatter = $reduce_scatter: fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle $(, $handle)?);
            allgather = $allgather: fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle $(, $handle)?);
            alltoall = $alltoall: fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle $(, $handle)?);
            gather = $gather: fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle $(, $handle)?);
            scatter = $scatter: fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle $(, $handle)?);
            $(wait = "MPI_Wait": fn($handle, *mut c_void);)?
        }

        $(#[$about])*
        pub(crate) struct $name<'a> {
            port: &'a MpiPort,
            functions: $functions,
        }

        impl<'a> $name<'a> {
            #[inline]
            pub(crate) fn of(port: &'a MpiPort) -> Result<Self> {
                let functions = port.functions($functions::load)?;
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
    "MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Reduce_scatter_block",
    "MPI_Allgather", "MPI_Alltoall", "MPI_Gather", "MPI_Scatter",
}

collectives! {
    /// The nonblocking operations of a library's rank, each of which is waited for.
    MpiNonblocking, Starts, [request: *mut Handle],
    "MPI_Ibarrier", "MPI_Ibcast", "MPI_Ireduce", "MPI_Iallreduce", "MPI_Ireduce_scatter_block",
    "MPI_Iallgather", "MPI_Ialltoall", "MPI_Igather", "MPI_Iscatter",
}
