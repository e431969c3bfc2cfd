//! One-sided operations: of the bare transport, and of any library of the MPI standard.

use super::Port;
use super::null::NullPort;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// What is done to the other rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Bytes are written to it.
    Put,
    /// Bytes are read from it.
    Get,
    /// A word of it is added to, and its old value comes back.
    Add,
}

/// A port of two ranks that has them. The other rank makes progress meanwhile, inside a receive.
pub(crate) trait RemotePort: Port {
    /// Memory of the other rank that this one may reach.
    type Region<'p>
    where
        Self: 'p;

    /// Lets the other rank reach `room`, and returns what it lets this one reach. Both call it, in the same order.
    ///
    /// # Errors
    /// Where there is no such access.
    fn share(&self, room: Incoming, access: Access) -> Result<Self::Region<'_>>;

    /// Starts to write `data` from `offset` on.
    fn put(&self, data: Outgoing, region: &Self::Region<'_>, offset: usize) -> Result<()>;

    /// Starts to read into `room` from `offset` on.
    fn get(&self, room: Incoming, region: &Self::Region<'_>, offset: usize) -> Result<()>;

    /// Adds 1 to the word at the start, and returns what it was.
    fn add_one(&self, region: &Self::Region<'_>) -> Result<u64>;

    /// Returns once all bytes that were put are visible there, and all that were read are here.
    fn flush(&self, region: &Self::Region<'_>) -> Result<()>;
}

impl RemotePort for NullPort {
    type Region<'p> = ();

    #[inline]
    fn share(&self, _: Incoming, _: Access) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn put(&self, _: Outgoing, (): &(), _: usize) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn get(&self, _: Incoming, (): &(), _: usize) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn add_one(&self, (): &()) -> Result<u64> {
        Ok(0)
    }

    #[inline(never)]
    fn flush(&self, (): &()) -> Result<()> {
        Ok(())
    }
}
