//! A port that carries nothing: what a body takes over it is the time of the harness.

use tagwire_base::{Rank, Tag};

use super::group::{Divide, Group, Started};
use super::partitioned::{Operation, PartitionedPort, Partner, RecvEnd, Rounds, SendEnd};
use super::{Endpoint, Port};
use crate::args::partitioned::PartitionedPlan;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// Sends and receives are complete at once, and nothing is moved.
pub(crate) struct NullPort {
    rank: Rank,
    size: u32,
}

impl NullPort {
    /// Of a rank of so many.
    pub(crate) const fn new(rank: u32, size: u32) -> Self {
        Self {
            rank: Rank::new(rank),
            size,
        }
    }

    /// In the place of another port.
    pub(crate) fn of(port: &dyn Endpoint) -> Self {
        Self {
            rank: port.rank(),
            size: port.size(),
        }
    }
}

impl Endpoint for NullPort {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
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

impl Port for NullPort {
    type Request = ();

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
}

/// An end of a partitioned operation, which is complete at once.
pub(crate) struct NullEnd;

impl PartitionedPort for NullPort {
    type Send<'p> = NullEnd;
    type Recv<'p> = NullEnd;

    fn operations(&self, plan: &PartitionedPlan) -> Vec<Operation> {
        let operation = |policy: &String| Operation {
            policy: policy.clone(),
            buffers: 1,
        };
        plan.policies.iter().map(operation).collect()
    }

    fn psend(&self, _: Outgoing, _: Partner, _: &str) -> Result<NullEnd> {
        Ok(NullEnd)
    }

    fn precv(&self, _: Incoming, _: Partner, _: u32) -> Result<NullEnd> {
        Ok(NullEnd)
    }

    #[inline(never)]
    fn wait_ends(&self, _: &[&NullEnd], _: &[&NullEnd]) -> Result<()> {
        Ok(())
    }
}

impl Rounds for NullEnd {
    #[inline(never)]
    fn start(&self) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

impl SendEnd for NullEnd {
    #[inline(never)]
    fn ready(&self, _: u32) -> Result<()> {
        Ok(())
    }
}

impl RecvEnd for NullEnd {
    #[inline(never)]
    fn arrived(&self, _: u32) -> Result<bool> {
        Ok(true)
    }
}

/// A group whose operations do nothing.
pub(crate) struct NullGroup;

impl Group for NullGroup {
    #[inline(never)]
    fn maximum(&self, _: Outgoing, _: Incoming) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn allreduce(&self, _: Outgoing, _: Incoming) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn reduce_scatter(&self, _: Outgoing, _: &[usize], _: Incoming) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn allgather(&self, _: Outgoing, _: &[usize], _: Incoming) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn start_reduce(&self, _: Outgoing, _: Incoming, _: usize) -> Result<Box<dyn Started + '_>> {
        Ok(Box::new(NullStarted))
    }

    #[inline(never)]
    fn start_allreduce(&self, _: Outgoing, _: Incoming) -> Result<Box<dyn Started + '_>> {
        Ok(Box::new(NullStarted))
    }
}

/// An operation that has ended.
struct NullStarted;

impl Started for NullStarted {
    #[inline(never)]
    fn test(&mut self) -> Result<bool> {
        Ok(true)
    }

    #[inline(never)]
    fn wait(&mut self) -> Result<()> {
        Ok(())
    }
}
