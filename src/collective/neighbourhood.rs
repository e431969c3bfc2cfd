//! Collectives of a rank with its neighbours.

use std::sync::Arc;

use tagwire_coll::{Neighbours, Team};

use super::blocks::Blocks;
use super::buffers::Lasting;
use super::operations::{Allgather, Alltoall};
use super::persistent::PersistentCollective;
use super::value::{Collective, CollectiveOperation, Members};
use crate::context::Context;
use crate::error::Result;
use crate::plain::Plain;

/// The ranks of a context that this one exchanges data with: sources, which it gets data from, and destinations, which it gives data
/// to (MPI-5.0, chapter 8). Made by [`Context::neighbours`] and [`Context::cartesian`].
///
/// Its operations are collectives of the context: every rank calls them in the same order as its other collectives, also one without
/// neighbours. Each rank has buffers for its own neighbours, in their order. A rank may be named several times: the n-th time that it
/// is a destination here is the n-th time that this rank is a source there.
///
/// ```
/// let session = tagwire::Session::open()?;
/// let (rank, size) = (session.rank(), session.size());
/// // A ring in one direction.
/// let (last, next) = ((rank + size - 1) % size, (rank + 1) % size);
/// let ring = session.world().neighbours(&[last], &[next])?;
/// let mut from_last = [0; 2];
/// ring.allgather(&[rank; 2], &mut from_last)?;
/// assert_eq!(from_last, [last; 2]);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Neighbourhood<'s> {
    context: Context<'s>,
    neighbours: Arc<Neighbours>,
}

impl<'s> Neighbourhood<'s> {
    pub(crate) fn new(context: Context<'s>, neighbours: Neighbours) -> Self {
        let neighbours = Arc::new(neighbours);
        Self {
            context,
            neighbours,
        }
    }

    /// Returns the ranks that data come from; `None` beyond the end of a grid.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = Option<u32>> + '_ {
        let ranks = self.neighbours.sources().iter();
        ranks.map(|member| member.map(|rank| rank as u32))
    }

    /// Returns the ranks that data go to; `None` beyond the end of a grid.
    pub fn destinations(&self) -> impl ExactSizeIterator<Item = Option<u32>> + '_ {
        let ranks = self.neighbours.destinations().iter();
        ranks.map(|member| member.map(|rank| rank as u32))
    }

    /// Does a [`Collective`] of neighbours, and returns once it is complete.
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn run<'a, O, B>(&self, collective: Collective<O, B>) -> Result<()>
    where
        O: CollectiveOperation<'a, Self, B>,
    {
        let Collective { operation, buffers } = collective;
        let operation = operation.below(&self.neighbours, buffers);
        let (shared, group) = (self.context.shared(), self.context.group());
        shared.with(group, |team| Ok(team.call(operation)?))
    }

    /// Makes a [`Collective`] of neighbours on vectors, which can be started again and again (MPI-5.0, section 8.8).
    ///
    /// # Errors
    /// As [`Context::init`].
    pub fn init<O, M: Lasting>(
        &self,
        collective: Collective<O, M>,
    ) -> Result<PersistentCollective<'s, M>>
    where
        O: CollectiveOperation<'static, Self, M::Lent>,
    {
        PersistentCollective::make(&self.context, Arc::clone(&self.neighbours), collective)
    }

    /// Gives the `own` data to all destinations, and gets those of each source (MPI-5.0, section 8.6.1).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn allgather<T: Plain>(&self, own: &[T], from_all: &mut [T]) -> Result<()> {
        self.run(Allgather::new(own, from_all))
    }

    /// The same with data of different lengths, `counts` of elements of the sources.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn allgather_varying<T: Plain>(
        &self,
        own: &[T],
        from_all: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        self.run(Allgather::new(own, from_all).varying(counts))
    }

    /// Gives each destination one of as many equal blocks of `data`, and gets one from each source (MPI-5.0, section 8.6.2).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn alltoall<T: Plain>(&self, data: &[T], from_all: &mut [T]) -> Result<()> {
        self.run(Alltoall::new(data, from_all))
    }

    /// The same with blocks of different lengths: `to` are the elements that go to each destination, `from` those that come from
    /// each source.
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

    /// The same with a buffer for each destination and from each source.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall); when there are not as many buffers as neighbours.
    pub fn alltoall_blocks(&self, blocks: Blocks<'_>) -> Result<()> {
        self.run(Alltoall::blocks(blocks))
    }
}

impl Members for Neighbourhood<'_> {
    type Members = Neighbours;

    fn context(&self) -> &Context<'_> {
        &self.context
    }

    fn members<'m>(&'m self, _: &'m Arc<Team>) -> &'m Arc<Neighbours> {
        &self.neighbours
    }
}

impl<'s> Context<'s> {
    /// Returns the neighbourhood of this rank, which gets data from `sources` and gives data to `destinations`
    /// (MPI-5.0, section 8.5.4, `MPI_Dist_graph_create_adjacent`). Nothing is sent: the others name their sides.
    ///
    /// # Errors
    /// When there is no such rank.
    pub fn neighbours(&self, sources: &[u32], destinations: &[u32]) -> Result<Neighbourhood<'s>> {
        for rank in sources.iter().chain(destinations) {
            self.shared().peer(self.group(), *rank)?;
        }
        let members = |ranks: &[u32]| ranks.iter().map(|rank| Some(*rank as usize)).collect();
        let neighbours = Neighbours::adjacent(members(sources), members(destinations));
        Ok(Neighbourhood::new(*self, neighbours))
    }
}
