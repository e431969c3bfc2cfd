//! Partitioned operations, of ours and of any library of the MPI standard ABI.

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_pml::partitioned::{End, PartitionedRecv, PartitionedSend, Policy, wait_all};

use super::Port;
use super::pml::PmlPort;
use crate::args::partitioned::PartitionedPlan;
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};

/// One of the operations that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    /// How partitions go together.
    pub policy: String,
    /// How many rounds the receiver has room for.
    pub buffers: u32,
}

/// The other side of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partner {
    pub rank: Rank,
    pub tag: Tag,
    pub partitions: u32,
}

/// A port that has them.
pub(crate) trait PartitionedPort: Port + Sync {
    type Send<'p>: SendEnd
    where
        Self: 'p;
    type Recv<'p>: RecvEnd
    where
        Self: 'p;

    /// What of the plan means something here; the result names what a row is called.
    fn operations(&self, plan: &PartitionedPlan) -> Vec<Operation>;

    fn psend(&self, data: Outgoing, to: Partner, policy: &str) -> Result<Self::Send<'_>>;

    /// With room for `buffers` rounds in `data`.
    fn precv(&self, data: Incoming, from: Partner, buffers: u32) -> Result<Self::Recv<'_>>;

    /// Waits until the rounds of all ends are over.
    fn wait_ends<'p>(
        &'p self,
        sends: &[&Self::Send<'p>],
        receives: &[&Self::Recv<'p>],
    ) -> Result<()>;
}

/// An end of an operation, which has rounds.
pub(crate) trait Rounds: Sync {
    fn start(&self) -> Result<()>;
    fn wait(&self) -> Result<()>;
}

/// The end that sends. Partitions become ready by any thread.
pub(crate) trait SendEnd: Rounds {
    fn ready(&self, partition: u32) -> Result<()>;
    /// Which way partitions take, in words, once that is known.
    #[inline]
    fn describe(&self) -> Option<String> {
        None
    }
}

/// The end that receives. Any thread looks for partitions.
pub(crate) trait RecvEnd: Rounds {
    fn arrived(&self, partition: u32) -> Result<bool>;
    /// Returns once a partition has arrived. Threads that find nothing let others run.
    #[inline]
    fn arrive(&self, partition: u32) -> Result<()> {
        let mut looks = 0_u32;
        while !self.arrived(partition)? {
            looks = looks.wrapping_add(1);
            match looks % 16 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        Ok(())
    }
    /// Which of its rooms the round uses.
    #[inline]
    fn room(&self) -> usize {
        0
    }
}

impl PartitionedPort for PmlPort {
    type Send<'p> = PartitionedSend;
    type Recv<'p> = PartitionedRecv;

    #[inline]
    fn operations(&self, plan: &PartitionedPlan) -> Vec<Operation> {
        let with = |policy: &String| {
            let policy = policy.clone();
            plan.buffers.iter().map(move |&buffers| Operation {
                policy: policy.clone(),
                buffers,
            })
        };
        plan.policies.iter().flat_map(with).collect()
    }

    #[inline]
    fn psend(&self, data: Outgoing, to: Partner, policy: &str) -> Result<PartitionedSend> {
        let policy: Policy = policy.parse().map_err(Error::Usage)?;
        let (messenger, data) = (self.messenger(), data.buffer());
        let world = ContextId::WORLD;
        Ok(PartitionedSend::init(
            messenger,
            &data,
            to.partitions,
            to.rank,
            to.tag,
            world,
            policy,
        )?)
    }

    #[inline]
    fn precv(&self, data: Incoming, from: Partner, buffers: u32) -> Result<PartitionedRecv> {
        let (messenger, data) = (self.messenger(), data.buffer());
        let init = match buffers {
            1 => PartitionedRecv::init,
            _ => PartitionedRecv::init_double,
        };
        let Partner {
            rank,
            tag,
            partitions,
        } = from;
        let world = ContextId::WORLD;
        Ok(init(messenger, &data, partitions, rank, tag, world)?)
    }

    #[inline]
    fn wait_ends(&self, sends: &[&PartitionedSend], receives: &[&PartitionedRecv]) -> Result<()> {
        let sends = sends.iter().map(|end| End::Send(end));
        let receives = receives.iter().map(|end| End::Recv(end));
        let ends: Vec<End<'_>> = receives.chain(sends).collect();
        Ok(wait_all(&ends, None)?)
    }
}

macro_rules! rounds {
    ($($end:ty),*) => {$(
        impl Rounds for $end {
            #[inline]
            fn start(&self) -> Result<()> {
                Ok(Self::start(self)?)
            }

            #[inline]
            fn wait(&self) -> Result<()> {
                Ok(Self::wait(self, None)?)
            }
        }
    )*};
}

rounds!(PartitionedSend, PartitionedRecv);

impl SendEnd for PartitionedSend {
    #[inline]
    fn ready(&self, partition: u32) -> Result<()> {
        Ok(Self::ready(self, partition)?)
    }

    #[inline]
    fn describe(&self) -> Option<String> {
        Self::describe(self)
    }
}

impl RecvEnd for PartitionedRecv {
    #[inline]
    fn arrived(&self, partition: u32) -> Result<bool> {
        Ok(Self::arrived(self, partition)?)
    }

    #[inline]
    fn room(&self) -> usize {
        Self::room(self)
    }
}
