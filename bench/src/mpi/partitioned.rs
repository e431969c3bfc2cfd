//! Partitioned operations by the MPI standard ABI.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::abi::{MpiPort, StatusPointer, count, functions, number};
use super::handles::Handle;
use crate::args::partitioned::PartitionedPlan;
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};
use crate::port::partitioned::{Operation, PartitionedPort, Partner, RecvEnd, Rounds, SendEnd};

/// `MPI_Psend_init` and `MPI_Precv_init`: buffer, partitions, count in each, datatype, peer, tag, communicator,
/// info, request.
type Init<B> =
    unsafe extern "C" fn(B, c_int, i64, Handle, c_int, c_int, Handle, Handle, *mut Handle) -> c_int;

// Older libraries lack them.
functions! {
    Functions:
    psend_init = "MPI_Psend_init": fn(*const c_void, c_int, i64, Handle, c_int, c_int, Handle, Handle, *mut Handle);
    precv_init = "MPI_Precv_init": fn(*mut c_void, c_int, i64, Handle, c_int, c_int, Handle, Handle, *mut Handle);
    start = "MPI_Start": fn(*mut Handle);
    pready = "MPI_Pready": fn(c_int, Handle);
    parrived = "MPI_Parrived": fn(Handle, c_int, *mut c_int);
    wait = "MPI_Wait": fn(*mut Handle, StatusPointer);
    waitall = "MPI_Waitall": fn(c_int, *mut Handle, StatusPointer);
    request_free = "MPI_Request_free": fn(*mut Handle);
}

/// One end of an operation.
pub(crate) struct MpiPartitioned<'a> {
    port: &'a MpiPort,
    functions: Functions,
    /// The library may change the handle in calls that take its address, which one thread makes while no other
    /// uses it.
    request: AtomicPtr<c_void>,
}

impl<'a> MpiPartitioned<'a> {
    /// Makes an end of so many bytes from `start` on.
    ///
    /// # Safety
    /// The bytes may be read, or written to by what receives, as long as there is the library.
    #[inline]
    unsafe fn init<B>(
        port: &'a MpiPort,
        call: &'static str,
        init: fn(&Functions) -> Init<B>,
        start: B,
        len: usize,
        partner: Partner,
    ) -> Result<Self> {
        let functions = port.functions(Functions::load)?;
        let (count, each) = (int(partner.partitions)?, each(len, partner.partitions));
        let handles = port.handles();
        let (byte, world, info) = (handles.byte, handles.world, handles.info_null);
        let (rank, tag) = (number(partner.rank), partner.tag.as_i32());
        let mut request = ptr::null_mut();
        let place = &raw mut request;
        // SAFETY: the caller's; the handles are predefined.
        let code =
            unsafe { init(&functions)(start, count, each, byte, rank, tag, world, info, place) };
        port.check(call, code)?;
        Ok(Self {
            port,
            functions,
            request: AtomicPtr::new(request),
        })
    }
}

impl Rounds for MpiPartitioned<'_> {
    #[inline]
    fn start(&self) -> Result<()> {
        let mut request = self.request.load(Relaxed);
        // SAFETY: the request is a persistent one of this library, and inactive.
        let code = unsafe { (self.functions.start)(&raw mut request) };
        self.request.store(request, Relaxed);
        self.port.check("MPI_Start", code)
    }

    #[inline]
    fn wait(&self) -> Result<()> {
        let mut request = self.request.load(Relaxed);
        // SAFETY: as above; a null pointer asks for no status.
        let code = unsafe { (self.functions.wait)(&raw mut request, ptr::null_mut()) };
        self.request.store(request, Relaxed);
        self.port.check("MPI_Wait", code)
    }
}

impl Drop for MpiPartitioned<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut request = self.request.load(Relaxed);
        // SAFETY: the request is this end's own; the library frees it at once, or when its round ends. What
        // it returns changes nothing any more.
        let _ = unsafe { (self.functions.request_free)(&raw mut request) };
    }
}

/// A number of partitions, or of one, as the library counts them.
#[inline]
fn int(value: u32) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| Error::Usage(format!("{value} partitions are too many")))
}

/// Bytes of each partition.
#[inline]
fn each(len: usize, partitions: u32) -> i64 {
    (len / partitions.max(1) as usize) as i64
}

impl PartitionedPort for MpiPort {
    type Send<'p> = MpiPartitioned<'p>;
    type Recv<'p> = MpiPartitioned<'p>;

    #[inline]
    fn operations(&self, _: &PartitionedPlan) -> Vec<Operation> {
        vec![Operation {
            policy: "library".to_owned(),
            buffers: 1,
        }]
    }

    #[inline]
    fn psend(&self, data: Outgoing, to: Partner, _: &str) -> Result<MpiPartitioned<'_>> {
        let start = data.as_ptr().cast();
        // SAFETY: the piece is readable for its length and never freed.
        unsafe {
            MpiPartitioned::init(
                self,
                "MPI_Psend_init",
                |all| all.psend_init,
                start,
                data.len(),
                to,
            )
        }
    }

    #[inline]
    fn precv(&self, data: Incoming, from: Partner, _: u32) -> Result<MpiPartitioned<'_>> {
        let start = data.as_ptr().cast();
        // SAFETY: as above; the piece is writable.
        unsafe {
            MpiPartitioned::init(
                self,
                "MPI_Precv_init",
                |all| all.precv_init,
                start,
                data.len(),
                from,
            )
        }
    }

    #[inline]
    fn wait_ends<'p>(
        &'p self,
        sends: &[&MpiPartitioned<'p>],
        receives: &[&MpiPartitioned<'p>],
    ) -> Result<()> {
        let ends = || receives.iter().chain(sends);
        let Some(first) = ends().next() else {
            return Ok(());
        };
        let mut requests: Vec<Handle> = ends().map(|end| end.request.load(Relaxed)).collect();
        let (list, count) = (requests.as_mut_ptr(), count(requests.len())?);
        // SAFETY: the list has so many requests of this library, which nobody else uses meanwhile; a null pointer asks for
        // no statuses.
        let code = unsafe { (first.functions.waitall)(count, list, ptr::null_mut()) };
        for (end, request) in ends().zip(requests) {
            end.request.store(request, Relaxed);
        }
        self.check("MPI_Waitall", code)
    }
}

impl SendEnd for MpiPartitioned<'_> {
    #[inline]
    fn ready(&self, partition: u32) -> Result<()> {
        // SAFETY: the request is active; any thread may call, at the level that was asked for.
        let code = unsafe { (self.functions.pready)(int(partition)?, self.request.load(Relaxed)) };
        self.port.check("MPI_Pready", code)
    }
}

impl RecvEnd for MpiPartitioned<'_> {
    #[inline]
    fn arrived(&self, partition: u32) -> Result<bool> {
        let (mut flag, request) = (0, self.request.load(Relaxed));
        // SAFETY: the request is active, and the result has its place.
        let code = unsafe { (self.functions.parrived)(request, int(partition)?, &raw mut flag) };
        self.port.check("MPI_Parrived", code)?;
        Ok(flag != 0)
    }
}
