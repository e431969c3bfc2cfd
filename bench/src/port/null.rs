//! A port that carries nothing: what a body takes over it is the time of the harness.

use tagwire_base::{Rank, Tag};

use super::Port;
use super::group::{Divide, Group};
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// Sends and receives are complete at once, and nothing is moved.
pub(crate) struct NullPort {
    rank: Rank,
    size: u32,
}

impl NullPort {
    /// In the place of another port.
    pub(crate) fn of<P: Port>(port: &P) -> Self {
        Self {
            rank: port.rank(),
            size: port.size(),
        }
    }
}

impl Port for NullPort {
    type Request = ();

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    #[inline(never)]
    fn isend(&self, _: Outgoing, _: Rank, _: Tag) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn irecv(&self, _: Incoming, _: Rank, _: Tag) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn wait_all(&self, requests: &mut Vec<()>) -> Result<()> {
        requests.clear();
        Ok(())
    }

    #[inline(never)]
    fn send(&self, _: Outgoing, _: Rank, _: Tag) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn ssend(&self, _: Outgoing, _: Rank, _: Tag) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn recv(&self, _: Incoming, _: Rank, _: Tag) -> Result<()> {
        Ok(())
    }

    fn group(&self, _: Divide) -> Result<Box<dyn Group + '_>> {
        Ok(Box::new(NullGroup))
    }
}

/// A group whose operations do nothing.
pub(crate) struct NullGroup;

impl Group for NullGroup {
    #[inline(never)]
    fn maximum(&self, _: Outgoing, _: Incoming) -> Result<()> {
        Ok(())
    }
}
