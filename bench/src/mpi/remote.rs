//! One-sided operations by the MPI standard: a window over memory of this rank, locked for all the time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;

use super::abi::{MpiPort, count, functions};
use super::handles::Handle;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::port::Endpoint;
use crate::port::remote::{Access, RemotePort};

functions! {
    Functions:
    create = "MPI_Win_create": fn(*mut c_void, isize, c_int, Handle, Handle, *mut Handle);
    lock_all = "MPI_Win_lock_all": fn(c_int, Handle);
    put = "MPI_Put": fn(*const c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle);
    get = "MPI_Get": fn(*mut c_void, c_int, Handle, c_int, isize, c_int, Handle, Handle);
    fetch = "MPI_Fetch_and_op": fn(*const c_void, *mut c_void, Handle, c_int, isize, Handle, Handle);
    flush = "MPI_Win_flush": fn(c_int, Handle);
    unlock_all = "MPI_Win_unlock_all": fn(Handle);
    free = "MPI_Win_free": fn(*mut Handle);
}

/// Windows of all ranks.
pub(crate) struct Region<'p> {
    /// The library lives as long.
    _port: &'p MpiPort,
    window: Handle,
    /// The other rank, where there are two.
    target: c_int,
    functions: Functions,
}

// SAFETY: any thread may name the window in calls at the level that was asked for; nothing changes the handle before the drop.
unsafe impl Sync for Region<'_> {}

impl Drop for Region<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the window is this one's own, and all ranks free theirs at the same place. What the calls return changes
        // nothing any more.
        unsafe {
            let _ = (self.functions.unlock_all)(self.window);
            let _ = (self.functions.free)(&raw mut self.window);
        }
    }
}

impl<'p> Region<'p> {
    /// Opens a window over `room` on each rank. All ranks call it, in the same order.
    #[inline]
    pub(super) fn open(port: &'p MpiPort, room: Incoming) -> Result<Self> {
        let handles = port.handles();
        let len = room.len();
        let start = room.with_bytes(<[u8]>::as_mut_ptr).cast();
        let mut window = ptr::null_mut();
        let functions = port.functions(Functions::load)?;
        let (info, world, len) = (handles.info_null, handles.world, len as isize);
        // SAFETY: the memory is never freed; the handles are predefined ones.
        let code = unsafe { (functions.create)(start, len, 1, info, world, &raw mut window) };
        port.check("MPI_Win_create", code)?;
        // SAFETY: the window was made just now.
        port.check("MPI_Win_lock_all", unsafe {
            (functions.lock_all)(0, window)
        })?;
        Ok(Self {
            _port: port,
            window,
            target: c_int::from(port.rank().as_u32() == 0),
            functions,
        })
    }

    /// Starts to write `data` into a rank's room, from `offset` on.
    #[inline]
    pub(super) fn put(
        &self,
        port: &MpiPort,
        data: Outgoing,
        to: c_int,
        offset: usize,
    ) -> Result<()> {
        let (len, byte) = (count(data.len())?, port.handles().byte);
        let (start, at) = (data.as_ptr().cast(), offset as isize);
        // SAFETY: the piece is readable for its length and never freed; the window is locked.
        let code =
            unsafe { (self.functions.put)(start, len, byte, to, at, len, byte, self.window) };
        port.check("MPI_Put", code)
    }

    /// Returns once what was put to a rank is visible there.
    #[inline]
    pub(super) fn flush(&self, port: &MpiPort, to: c_int) -> Result<()> {
        // SAFETY: the window is locked.
        let code = unsafe { (self.functions.flush)(to, self.window) };
        port.check("MPI_Win_flush", code)
    }

    /// The window, for calls of other files.
    #[inline]
    pub(super) const fn window(&self) -> Handle {
        self.window
    }
}

impl RemotePort for MpiPort {
    type Region<'p> = Region<'p>;

    #[inline]
    fn share(&self, room: Incoming, _: Access) -> Result<Region<'_>> {
        Region::open(self, room)
    }

    #[inline]
    fn put(&self, data: Outgoing, region: &Region<'_>, offset: usize) -> Result<()> {
        region.put(self, data, region.target, offset)
    }

    #[inline]
    fn get(&self, room: Incoming, region: &Region<'_>, offset: usize) -> Result<()> {
        let (len, byte) = (count(room.len())?, self.handles().byte);
        let (start, at) = (room.as_ptr().cast(), offset as isize);
        let (target, window) = (region.target, region.window);
        // SAFETY: as for `put`; the piece is writable.
        let code =
            unsafe { (region.functions.get)(start, len, byte, target, at, len, byte, window) };
        self.check("MPI_Get", code)
    }

    #[inline]
    fn add_one(&self, region: &Region<'_>) -> Result<u64> {
        let (one, mut old) = (1_u64, 0_u64);
        let (word, sum) = (self.handles().uint64, self.handles().sum);
        let (operand, result) = ((&raw const one).cast(), (&raw mut old).cast());
        // SAFETY: operand and result live until the flush below, which completes the operation.
        let code = unsafe {
            (region.functions.fetch)(operand, result, word, region.target, 0, sum, region.window)
        };
        self.check("MPI_Fetch_and_op", code)?;
        self.flush(region)?;
        Ok(old)
    }

    #[inline]
    fn flush(&self, region: &Region<'_>) -> Result<()> {
        region.flush(self, region.target)
    }
}
