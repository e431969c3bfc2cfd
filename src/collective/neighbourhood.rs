//! Collectives of a rank with its neighbours.

use std::borrow::Cow;

use tagwire_coll::Neighbours;
use tagwire_coll::operations::{
    NeighbourAllgather, NeighbourAllgatherv, NeighbourAlltoall, NeighbourAlltoallv,
};

use super::blocks::Blocks;
use super::operations::lengths;
use super::persistent_collective::PersistentCollective;
use crate::context::Context;
use crate::error::Result;
use crate::plain::{Plain, bytes, bytes_mut};
use crate::scope::{Request, Scope};

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
/// // The same while something else is computed.
/// let (own, mut again) = ([rank; 2], [0; 2]);
/// session.try_scope(|scope| {
///     let request = ring.iallgather(scope, &own, &mut again)?;
///     // ...
///     request.wait()?;
///     Ok(())
/// })?;
/// assert_eq!(again, from_last);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Neighbourhood<'s> {
    context: Context<'s>,
    neighbours: Neighbours,
}

impl<'s> Neighbourhood<'s> {
    pub(crate) const fn new(context: Context<'s>, neighbours: Neighbours) -> Self {
        Self {
            context,
            neighbours,
        }
    }

    fn between(context: Context<'s>, sources: &[u32], destinations: &[u32]) -> Result<Self> {
        for rank in sources.iter().chain(destinations) {
            context.shared().peer(context.group(), *rank)?;
        }
        let members = |ranks: &[u32]| ranks.iter().map(|rank| Some(*rank as usize)).collect();
        let neighbours = Neighbours::adjacent(members(sources), members(destinations));
        Ok(Self::new(context, neighbours))
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

    /// Gives the `own` data to all destinations, and gets those of each source (MPI-5.0, section 8.6.1).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn allgather<T: Plain>(&self, own: &[T], from_all: &mut [T]) -> Result<()> {
        let operation = gathered(&self.neighbours, bytes(own), bytes_mut(from_all));
        self.context.call(|team| team.call(operation))
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
        let lengths = lengths::<T>(counts);
        let (own, out) = (bytes(own), bytes_mut(from_all));
        let operation = gathered_varying(&self.neighbours, own, out, lengths);
        self.context.call(|team| team.call(operation))
    }

    /// Gives each destination one of as many equal blocks of `data`, and gets one from each source (MPI-5.0, section 8.6.2).
    ///
    /// # Errors
    /// When a rank fails, or lengths differ.
    pub fn alltoall<T: Plain>(&self, data: &[T], from_all: &mut [T]) -> Result<()> {
        let operation = exchanged(&self.neighbours, bytes(data), bytes_mut(from_all));
        self.context.call(|team| team.call(operation))
    }

    /// The same with blocks of different lengths: `to` are the elements that go to each destination, `from` those that come from each
    /// source.
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
        let (to, from) = (lengths::<T>(to), lengths::<T>(from));
        let (data, out) = ((bytes(data), to), (bytes_mut(from_all), from));
        let operation = exchanged_varying(&self.neighbours, data, out);
        self.context.call(|team| team.call(operation))
    }

    /// The same with a buffer for each destination and from each source.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall); when there are not as many buffers as neighbours.
    pub fn alltoall_blocks(&self, blocks: Blocks<'_>) -> Result<()> {
        let operation = blocks.with_neighbours(&self.neighbours);
        self.context.call(|team| team.call(operation))
    }

    /// Starts an [`allgather`](Self::allgather) (MPI-5.0, section 8.7).
    ///
    /// # Errors
    /// As [`Context::iallgather`].
    pub fn iallgather<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        own: &'env [T],
        from_all: &'env mut [T],
    ) -> Result<Request<'scope, 'env>> {
        let operation = gathered(&self.neighbours, bytes(own), bytes_mut(from_all));
        self.context.begin(scope, operation)
    }

    /// Starts an [`allgather_varying`](Self::allgather_varying).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn iallgather_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        own: &'env [T],
        from_all: &'env mut [T],
        counts: &[usize],
    ) -> Result<Request<'scope, 'env>> {
        let lengths = lengths::<T>(counts);
        let (own, out) = (bytes(own), bytes_mut(from_all));
        let operation = gathered_varying(&self.neighbours, own, out, lengths);
        self.context.begin(scope, operation)
    }

    /// Starts an [`alltoall`](Self::alltoall).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn ialltoall<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        from_all: &'env mut [T],
    ) -> Result<Request<'scope, 'env>> {
        let operation = exchanged(&self.neighbours, bytes(data), bytes_mut(from_all));
        self.context.begin(scope, operation)
    }

    /// Starts an [`alltoall_varying`](Self::alltoall_varying).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn ialltoall_varying<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        to: &[usize],
        from_all: &'env mut [T],
        from: &[usize],
    ) -> Result<Request<'scope, 'env>> {
        let (to, from) = (lengths::<T>(to), lengths::<T>(from));
        let (data, out) = ((bytes(data), to), (bytes_mut(from_all), from));
        let operation = exchanged_varying(&self.neighbours, data, out);
        self.context.begin(scope, operation)
    }

    /// Starts an [`alltoall_blocks`](Self::alltoall_blocks).
    ///
    /// # Errors
    /// As [`iallgather`](Self::iallgather).
    pub fn ialltoall_blocks<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        blocks: Blocks<'env>,
    ) -> Result<Request<'scope, 'env>> {
        let operation = blocks.with_neighbours(&self.neighbours);
        self.context.begin(scope, operation)
    }

    /// Makes a persistent [`allgather`](Self::allgather) (MPI-5.0, section 8.8). See [`PersistentCollective`].
    ///
    /// # Errors
    /// As [`Context::allgather_init`].
    pub fn allgather_init<T: Plain>(
        &self,
        own: Vec<T>,
        from_all: Vec<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        let neighbours = self.neighbours.clone();
        PersistentCollective::make(&self.context, (own, from_all), move |own, out| {
            gathered(&neighbours, own, out)
        })
    }

    /// Makes a persistent [`allgather_varying`](Self::allgather_varying).
    ///
    /// # Errors
    /// As [`allgather_init`](Self::allgather_init).
    pub fn allgather_varying_init<T: Plain>(
        &self,
        own: Vec<T>,
        from_all: Vec<T>,
        counts: &[usize],
    ) -> Result<PersistentCollective<'s, T>> {
        let (neighbours, lengths) = (self.neighbours.clone(), lengths::<T>(counts));
        PersistentCollective::make(&self.context, (own, from_all), move |own, out| {
            gathered_varying(&neighbours, own, out, lengths.clone())
        })
    }

    /// Makes a persistent [`alltoall`](Self::alltoall).
    ///
    /// # Errors
    /// As [`allgather_init`](Self::allgather_init).
    pub fn alltoall_init<T: Plain>(
        &self,
        data: Vec<T>,
        from_all: Vec<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        let neighbours = self.neighbours.clone();
        PersistentCollective::make(&self.context, (data, from_all), move |data, out| {
            exchanged(&neighbours, data, out)
        })
    }

    /// Makes a persistent [`alltoall_varying`](Self::alltoall_varying).
    ///
    /// # Errors
    /// As [`allgather_init`](Self::allgather_init).
    pub fn alltoall_varying_init<T: Plain>(
        &self,
        data: Vec<T>,
        to: &[usize],
        from_all: Vec<T>,
        from: &[usize],
    ) -> Result<PersistentCollective<'s, T>> {
        let (to, from) = (lengths::<T>(to), lengths::<T>(from));
        let neighbours = self.neighbours.clone();
        PersistentCollective::make(&self.context, (data, from_all), move |data, out| {
            exchanged_varying(&neighbours, (data, to.clone()), (out, from.clone()))
        })
    }
}

impl<'s> Context<'s> {
    /// Returns the neighbourhood of this rank, which gets data from `sources` and gives data to `destinations`
    /// (MPI-5.0, section 8.5.4, `MPI_Dist_graph_create_adjacent`). Nothing is sent: the others name their sides.
    ///
    /// # Errors
    /// When there is no such rank.
    pub fn neighbours(&self, sources: &[u32], destinations: &[u32]) -> Result<Neighbourhood<'s>> {
        Neighbourhood::between(*self, sources, destinations)
    }
}

fn gathered<'a>(
    neighbours: &Neighbours,
    own: &'a [u8],
    out: &'a mut [u8],
) -> NeighbourAllgather<'a> {
    NeighbourAllgather {
        neighbours: neighbours.clone(),
        own,
        out,
    }
}

fn gathered_varying<'a>(
    neighbours: &Neighbours,
    own: &'a [u8],
    out: &'a mut [u8],
    lengths: Vec<usize>,
) -> NeighbourAllgatherv<'a> {
    NeighbourAllgatherv {
        neighbours: neighbours.clone(),
        own,
        lengths: Cow::Owned(lengths),
        out,
    }
}

fn exchanged<'a>(
    neighbours: &Neighbours,
    input: &'a [u8],
    out: &'a mut [u8],
) -> NeighbourAlltoall<'a> {
    NeighbourAlltoall {
        neighbours: neighbours.clone(),
        input,
        out,
    }
}

/// The buffers come with the lengths of their blocks.
fn exchanged_varying<'a>(
    neighbours: &Neighbours,
    (input, to): (&'a [u8], Vec<usize>),
    (out, from): (&'a mut [u8], Vec<usize>),
) -> NeighbourAlltoallv<'a> {
    NeighbourAlltoallv {
        neighbours: neighbours.clone(),
        input,
        to: Cow::Owned(to),
        out,
        from: Cow::Owned(from),
    }
}
