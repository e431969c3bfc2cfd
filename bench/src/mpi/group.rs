//! Communicators of MPI libraries beside the world's.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;

use super::abi::{MpiPort, count, number};
use super::handles::Handle;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::port::Port;
use crate::port::group::{Divide, Group};

type Allreduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int;

/// A communicator, which lives until the library is finalised.
pub(super) struct MpiGroup<'a> {
    port: &'a MpiPort,
    communicator: Handle,
    allreduce: Allreduce,
}

// SAFETY: a communicator may be used by any thread, by one at a time here, where the library was initialised for that.
unsafe impl Send for MpiGroup<'_> {}

impl<'a> MpiGroup<'a> {
    pub(super) fn of(port: &'a MpiPort, divide: Divide) -> Result<Self> {
        let world = port.handles().world;
        let mut communicator = ptr::null_mut();
        let made = &raw mut communicator;
        match divide {
            Divide::All => {
                type Dup = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
                // SAFETY: the standard gives the function of this name this type.
                let dup = unsafe { port.symbol::<Dup>(b"MPI_Comm_dup")? };
                // SAFETY: the library is initialised, and the result has its place.
                port.check("MPI_Comm_dup", unsafe { dup(world, made) })?;
            }
            Divide::Color(color) => {
                type Split = unsafe extern "C" fn(Handle, c_int, c_int, *mut Handle) -> c_int;
                // SAFETY: the standard gives the function of this name this type.
                let split = unsafe { port.symbol::<Split>(b"MPI_Comm_split")? };
                let (color, key) = (color.cast_signed(), number(port.rank()));
                // SAFETY: as above.
                let code = unsafe { split(world, color, key, made) };
                port.check("MPI_Comm_split", code)?;
            }
        }
        Ok(Self {
            port,
            communicator,
            // SAFETY: the standard gives the function of this name this type.
            allreduce: unsafe { port.symbol(b"MPI_Allreduce")? },
        })
    }
}

impl Group for MpiGroup<'_> {
    fn maximum(&self, out: Outgoing, into: Incoming) -> Result<()> {
        let handles = self.port.handles();
        let numbers = count(out.len() / 4)?;
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (int32, max, communicator) = (handles.int32, handles.max, self.communicator);
        // SAFETY: both pieces have so many integers, are never freed, and do not overlap; the handles are the library's, which
        // is initialised while the port lives.
        let code = unsafe { (self.allreduce)(from, to, numbers, int32, max, communicator) };
        self.port.check("MPI_Allreduce", code)
    }
}
