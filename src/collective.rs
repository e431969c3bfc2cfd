//! What the ranks of a context do together.

mod blocks;
mod buffers;
mod cartesian;
mod combine;
mod groups;
mod neighbourhood;
mod operations;
mod persistent;
mod reductions;
mod value;

use crate::context::Context;
use crate::error::Result;
use crate::plain::Plain;
use buffers::Lasting;

pub use blocks::{Blocks, OwnedBlocks};
pub use buffers::{LentBuffers, OwnedBuffers, Readable, Writable};
pub use cartesian::Cartesian;
pub use combine::{Combine, Number, Reducer};
pub use neighbourhood::Neighbourhood;
pub use operations::{Allgather, Alltoall, Barrier, Broadcast, Gather, Scatter, Varying, Within};
pub use persistent::PersistentCollective;
pub use reductions::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
pub use tagwire_layout::Operation;
pub use tagwire_layout::Operation::{Max, Min, Product, Sum};
pub use value::{Collective, CollectiveOperation, Group};

/// Collectives. Every rank of the context calls them in the same order, each by one thread at a time. Lengths are the same on
/// all ranks unless said otherwise. When a rank fails, all others' calls end with an error.
impl<'s> Context<'s> {
    /// Does a [`Collective`], and returns once it is complete.
    ///
    /// # Errors
    /// When there is no such rank, an operation is not defined for the numbers, a rank fails, or lengths differ.
    pub fn run<'a, O, B>(&self, collective: Collective<O, B>) -> Result<()>
    where
        O: CollectiveOperation<'a, Self, B>,
    {
        let Collective { operation, buffers } = collective;
        let shared = self.shared();
        shared.with(self.group(), |team| {
            Ok(team.call(operation.below(team, buffers))?)
        })
    }

    /// Makes a [`Collective`] on vectors, which can be started again and again (MPI-5.0, section 6.13). Every rank of the
    /// context makes those that it has in the same order; now and then it waits for the others.
    ///
    /// # Errors
    /// What is wrong with the arguments on this rank; when a collective of the context has failed, or there are as many
    /// persistent ones as there can be.
    pub fn init<O, M: Lasting>(
        &self,
        collective: Collective<O, M>,
    ) -> Result<PersistentCollective<'s, M>>
    where
        O: CollectiveOperation<'static, Self, M::Lent>,
    {
        let team = self.shared().group(self.group())?;
        PersistentCollective::make(self, team, collective)
    }

    /// Returns once every rank has called it (MPI-5.0, section 6.3).
    ///
    /// # Errors
    /// When a rank fails.
    pub fn barrier(&self) -> Result<()> {
        self.run(Barrier::new())
    }

    /// Gives the data of `root` to all (MPI-5.0, section 6.4).
    ///
    /// # Errors
    /// When there is no such rank, a rank fails, or lengths differ.
    pub fn broadcast<T: Plain>(&self, data: &mut [T], root: u32) -> Result<()> {
        self.run(Broadcast::new(data, root))
    }

    /// Combines the numbers of all ranks, place by place; every rank gets the result (MPI-5.0, section 6.9.6).
    ///
    /// # Errors
    /// When the operation is not defined for the numbers, a rank fails, or lengths differ.
    pub fn allreduce<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>) -> Result<()> {
        self.run(Allreduce::in_place(data, by))
    }

    /// The same with the result in `out`; `input` stays as it is.
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce); when the two have different lengths.
    pub fn allreduce_into<T: Plain>(
        &self,
        input: &[T],
        out: &mut [T],
        by: impl Reducer<T>,
    ) -> Result<()> {
        self.run(Allreduce::new(input, out, by))
    }

    /// Combines the numbers of all ranks; `root` gets the result in place of its own, and the others' data stay as they are
    /// (MPI-5.0, section 6.9.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce); when there is no such rank.
    pub fn reduce<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>, root: u32) -> Result<()> {
        self.run(Reduce::in_place(data, by, root))
    }

    /// Combines the numbers of all ranks up to this one, in its place (MPI-5.0, section 6.11.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn scan<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>) -> Result<()> {
        self.run(Scan::in_place(data, by))
    }

    /// Combines the numbers of all ranks before this one, in its place; those of rank 0 stay as they are
    /// (MPI-5.0, section 6.11.2).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn exscan<T: Plain>(&self, data: &mut [T], by: impl Reducer<T>) -> Result<()> {
        self.run(Exscan::in_place(data, by))
    }

    /// Combines the numbers of all ranks and gives each rank one of as many equal parts (MPI-5.0, section 6.10).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn reduce_scatter<T: Plain>(
        &self,
        data: &[T],
        own: &mut [T],
        by: impl Reducer<T>,
    ) -> Result<()> {
        self.run(ReduceScatter::new(data, own, by))
    }

    /// Gives the `own` data of each rank to `root`, in the order of ranks: in `all`, which is for it alone
    /// (MPI-5.0, section 6.5).
    ///
    /// # Errors
    /// When there is no such rank, a rank fails, or lengths differ.
    pub fn gather<T: Plain>(&self, own: &[T], all: &mut [T], root: u32) -> Result<()> {
        self.run(Gather::new(own, all, root))
    }

    /// The same with data of different lengths, `counts` of elements, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gather_varying<T: Plain>(
        &self,
        own: &[T],
        all: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<()> {
        self.run(Gather::new(own, all, root).varying(counts))
    }

    /// Gives the `own` data of each rank to all, in the order of ranks (MPI-5.0, section 6.7).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn allgather<T: Plain>(&self, own: &[T], all: &mut [T]) -> Result<()> {
        self.run(Allgather::new(own, all))
    }

    /// The same with data of different lengths, `counts` of elements.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn allgather_varying<T: Plain>(
        &self,
        own: &[T],
        all: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        self.run(Allgather::new(own, all).varying(counts))
    }

    /// Gives each rank its part of the data `all` of `root`, equal ones in the order of ranks (MPI-5.0, section 6.6).
    ///
    /// # Errors
    /// When there is no such rank, a rank fails, or lengths differ.
    pub fn scatter<T: Plain>(&self, all: &[T], own: &mut [T], root: u32) -> Result<()> {
        self.run(Scatter::new(all, own, root))
    }

    /// The same with parts of different lengths, `counts` of elements, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`scatter`](Self::scatter).
    pub fn scatter_varying<T: Plain>(
        &self,
        all: &[T],
        counts: &[usize],
        own: &mut [T],
        root: u32,
    ) -> Result<()> {
        self.run(Scatter::new(all, own, root).varying(counts))
    }

    /// Gives each rank one of as many equal blocks of `data`, and gets one from each (MPI-5.0, section 6.8).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn alltoall<T: Plain>(&self, data: &[T], from_all: &mut [T]) -> Result<()> {
        self.run(Alltoall::new(data, from_all))
    }

    /// The same with blocks of different lengths: `to` are the elements that go to each rank, `from` those that come.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall).
    pub fn alltoall_varying<T: Plain>(
        &self,
        data: &[T],
        to: &[usize],
        from_all: &mut [T],
        from: &[usize],
    ) -> Result<()> {
        self.run(Alltoall::varying(data, to, from_all, from))
    }

    /// As [`alltoall`](Self::alltoall), with a buffer for each rank and from each.
    ///
    /// # Errors
    /// When a rank fails, lengths differ, or there are not as many buffers as ranks.
    pub fn alltoall_blocks(&self, blocks: Blocks<'_>) -> Result<()> {
        self.run(Alltoall::blocks(blocks))
    }
}
