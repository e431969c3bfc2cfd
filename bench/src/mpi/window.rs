//! Windows of the MPI standard, locked for all the time. A flush makes writes visible at the target; the target looks at
//! its memory between calls that make progress.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

use tagwire_base::Rank;

use super::abi::{MpiPort, StatusPointer, functions, number};
use super::handles::Handle;
use super::remote::Region;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;
use crate::port::window::{Exchange, Window, Windows};
use crate::port::{Endpoint, tags};

functions! {
    Functions:
    probe = "MPI_Iprobe": fn(c_int, c_int, Handle, *mut c_int, StatusPointer);
    sync = "MPI_Win_sync": fn(Handle);
}

struct MpiWindow<'p> {
    port: &'p MpiPort,
    room: Incoming,
    region: Region<'p>,
    functions: Functions,
}

impl Windows for MpiPort {
    #[inline]
    fn open(&self, room: Incoming, _: Exchange<'_>) -> Result<Box<dyn Window + '_>> {
        Ok(Box::new(MpiWindow {
            port: self,
            room,
            region: Region::open(self, room)?,
            functions: self.functions(Functions::load)?,
        }))
    }
}

impl Window for MpiWindow<'_> {
    #[inline]
    fn put(&self, data: Outgoing, to: Rank, offset: usize) -> Result<()> {
        self.region.put(self.port, data, number(to), offset)
    }

    #[inline]
    fn flush(&self, to: &[Rank]) -> Result<()> {
        to.iter()
            .try_for_each(|rank| self.region.flush(self.port, number(*rank)))
    }

    #[inline]
    fn has_reached(&self, offset: usize, value: u64) -> Result<bool> {
        if self.room.shared_word(offset) >= value {
            return Ok(true);
        }
        let (mut flag, world) = (0, self.port.handles().world);
        let (source, tag) = (number(self.port.rank()), tags::AHEAD.as_i32());
        // SAFETY: a look at messages that this rank does not send; the flag has its place, and a null pointer asks for no status.
        let code =
            unsafe { (self.functions.probe)(source, tag, world, &raw mut flag, ptr::null_mut()) };
        self.port.check("MPI_Iprobe", code)?;
        // SAFETY: the window is locked.
        let code = unsafe { (self.functions.sync)(self.region.window()) };
        self.port.check("MPI_Win_sync", code)?;
        Ok(self.room.shared_word(offset) >= value)
    }
}
