//! Communicators of MPI libraries beside the world's.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;

use super::abi::{MpiPort, StatusPointer, count, functions, number};
use super::handles::Handle;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::port::Endpoint;
use crate::port::group::{Divide, Group, Started};

functions! {
    Functions:
    dup = "MPI_Comm_dup": fn(Handle, *mut Handle);
    split = "MPI_Comm_split": fn(Handle, c_int, c_int, *mut Handle);
    allreduce = "MPI_Allreduce": fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
    reduce_scatter = "MPI_Reduce_scatter": fn(*const c_void, *mut c_void, *const c_int, Handle, Handle, Handle);
    allgatherv = "MPI_Allgatherv":
        fn(*const c_void, c_int, Handle, *mut c_void, *const c_int, *const c_int, Handle, Handle);
    ireduce = "MPI_Ireduce": fn(*const c_void, *mut c_void, c_int, Handle, Handle, c_int, Handle, *mut Handle);
    iallreduce = "MPI_Iallreduce": fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle, *mut Handle);
    test = "MPI_Test": fn(*mut Handle, *mut c_int, StatusPointer);
    wait = "MPI_Wait": fn(*mut Handle, StatusPointer);
}

/// Bytes of a double.
const DOUBLE: usize = size_of::<f64>();

/// A communicator, which lives until the library is finalised.
pub(super) struct MpiGroup<'a> {
    port: &'a MpiPort,
    communicator: Handle,
    functions: Functions,
}

// SAFETY: a communicator may be used by any thread, by one at a time here, where the library was initialised for that.
unsafe impl Send for MpiGroup<'_> {}
// SAFETY: as above: nothing here looks behind the handle, and threads that call at once have a library that allows it.
unsafe impl Sync for MpiGroup<'_> {}

impl<'a> MpiGroup<'a> {
    #[inline]
    pub(super) fn of(port: &'a MpiPort, divide: Divide) -> Result<Self> {
        let world = port.handles().world;
        let mut communicator = ptr::null_mut();
        let made = &raw mut communicator;
        let functions = port.functions(Functions::load)?;
        match divide {
            // SAFETY: the library is initialised, and the result has its place.
            Divide::All => port.check("MPI_Comm_dup", unsafe { (functions.dup)(world, made) })?,
            Divide::Color(color) => {
                let (color, key) = (color.cast_signed(), number(port.rank()));
                // SAFETY: as above.
                let code = unsafe { (functions.split)(world, color, key, made) };
                port.check("MPI_Comm_split", code)?;
            }
        }
        Ok(Self {
            port,
            communicator,
            functions,
        })
    }

    #[inline]
    fn started(&self, request: Handle) -> Box<dyn Started + '_> {
        Box::new(MpiStarted {
            port: self.port,
            functions: self.functions,
            request,
        })
    }
}

/// The counts of so many bytes each, in units of so many.
#[inline]
fn counts(lengths: &[usize], unit: usize) -> Result<Vec<c_int>> {
    lengths.iter().map(|length| count(length / unit)).collect()
}

impl Group for MpiGroup<'_> {
    #[inline]
    fn maximum(&self, out: Outgoing, into: Incoming) -> Result<()> {
        let handles = self.port.handles();
        let numbers = count(out.len() / 4)?;
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (int32, max, communicator) = (handles.int32, handles.max, self.communicator);
        // SAFETY: both pieces have so many integers, are never freed, and do not overlap; the handles are the library's, which
        // is initialised while the port lives.
        let code =
            unsafe { (self.functions.allreduce)(from, to, numbers, int32, max, communicator) };
        self.port.check("MPI_Allreduce", code)
    }

    #[inline]
    fn allreduce(&self, out: Outgoing, into: Incoming) -> Result<()> {
        let (numbers, handles) = (count(out.len() / DOUBLE)?, self.port.handles());
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (double, sum, communicator) = (handles.double, handles.sum, self.communicator);
        // SAFETY: as for `maximum`, with doubles.
        let code =
            unsafe { (self.functions.allreduce)(from, to, numbers, double, sum, communicator) };
        self.port.check("MPI_Allreduce", code)
    }

    #[inline]
    fn reduce_scatter(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()> {
        let handles = self.port.handles();
        let counts = counts(lengths, DOUBLE)?;
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (double, sum, communicator) = (handles.double, handles.sum, self.communicator);
        // SAFETY: as above. There is a count for each member; together they are what is sent, and this member's is the room.
        let code = unsafe {
            (self.functions.reduce_scatter)(from, to, counts.as_ptr(), double, sum, communicator)
        };
        self.port.check("MPI_Reduce_scatter", code)
    }

    #[inline]
    fn allgather(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()> {
        let (own, double) = (count(out.len() / DOUBLE)?, self.port.handles().double);
        let counts = counts(lengths, DOUBLE)?;
        let places: Vec<c_int> = counts
            .iter()
            .scan(0, |place, count| {
                Some(std::mem::replace(place, *place + count))
            })
            .collect();
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (counts, places) = (counts.as_ptr(), places.as_ptr());
        let communicator = self.communicator;
        // SAFETY: as above. There is a count and a place for each member, the blocks follow each other, and all are the room.
        let code = unsafe {
            (self.functions.allgatherv)(from, own, double, to, counts, places, double, communicator)
        };
        self.port.check("MPI_Allgatherv", code)
    }

    #[inline]
    fn start_reduce(
        &self,
        out: Outgoing,
        into: Incoming,
        root: usize,
    ) -> Result<Box<dyn Started + '_>> {
        let (numbers, handles) = (count(out.len() / DOUBLE)?, self.port.handles());
        let (from, to, root) = (out.as_ptr().cast(), into.as_ptr().cast(), count(root)?);
        let (double, sum, communicator) = (handles.double, handles.sum, self.communicator);
        let mut started = ptr::null_mut();
        let request = &raw mut started;
        // SAFETY: as above; the pieces are touched by nobody until the request is complete.
        let code = unsafe {
            (self.functions.ireduce)(from, to, numbers, double, sum, root, communicator, request)
        };
        self.port.check("MPI_Ireduce", code)?;
        Ok(self.started(started))
    }

    #[inline]
    fn start_allreduce(&self, out: Outgoing, into: Incoming) -> Result<Box<dyn Started + '_>> {
        let (numbers, handles) = (count(out.len() / DOUBLE)?, self.port.handles());
        let (from, to) = (out.as_ptr().cast(), into.as_ptr().cast());
        let (double, sum, communicator) = (handles.double, handles.sum, self.communicator);
        let mut started = ptr::null_mut();
        let request = &raw mut started;
        // SAFETY: as above.
        let code = unsafe {
            (self.functions.iallreduce)(from, to, numbers, double, sum, communicator, request)
        };
        self.port.check("MPI_Iallreduce", code)?;
        Ok(self.started(started))
    }
}

/// An operation of a communicator.
struct MpiStarted<'a> {
    port: &'a MpiPort,
    functions: Functions,
    request: Handle,
}

// SAFETY: nothing here looks behind the handle; any thread may test a request, where the library was initialised for threads.
unsafe impl Send for MpiStarted<'_> {}

impl Started for MpiStarted<'_> {
    #[inline]
    fn test(&mut self) -> Result<bool> {
        let mut has_ended = 0;
        // SAFETY: the request is one of this library that was started, or the null one that the library has left of it; the
        // answer has its place, and a null pointer asks for no status.
        let code = unsafe {
            (self.functions.test)(&raw mut self.request, &raw mut has_ended, ptr::null_mut())
        };
        self.port.check("MPI_Test", code)?;
        Ok(has_ended != 0)
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        // SAFETY: as above.
        let code = unsafe { (self.functions.wait)(&raw mut self.request, ptr::null_mut()) };
        self.port.check("MPI_Wait", code)
    }
}
