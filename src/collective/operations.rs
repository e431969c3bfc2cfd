//! The operations that move data.

use std::borrow::Cow;

use tagwire_coll::operations as below;
use tagwire_coll::operations::Parts;
use tagwire_coll::{Neighbours, Team};

use super::blocks::Blocks;
use super::buffers::{LentBuffers, Readable, Writable};
use super::value::{Below, Collective};
use crate::plain::{Plain, bytes, bytes_mut};

/// Says what an operation of two buffers, the second of which is written, is in the layer below.
macro_rules! operations {
    ($($operation:ty: |$this:pat, $members:pat, $input:pat, $out:pat_param| $group:ty, $below:ident $fields:tt)*) => {$(
        impl<'a, T: Plain> Below<'a, $group, LentBuffers<'a, T>> for $operation {
            type Operation = below::$below<'a>;

            #[inline]
            fn below(self, $members: &$group, lent: LentBuffers<'a, T>) -> Self::Operation {
                let ($this, $input, $out) = (self, bytes(lent.input), bytes_mut(lent.out));
                below::$below $fields
            }
        }
    )*};
}

pub(super) use operations;

operations! {
    Broadcast: |Self { root }, _, _, data| Team, Broadcast { data, root }
    Gather: |Self { root }, _, own, all| Team, Gather { own, out: Some(all), root }
    Allgather: |Self, _, own, out| Team, Allgather { own, out }
    Scatter: |Self { root }, _, all, own| Team, Scatter { input: Some(all), own, root }
    Alltoall: |Self, _, input, out| Team, Alltoall { input, out }

    Varying<Gather>: |Varying(Gather { root }, counts), _, own, all| Team,
        Gatherv { own, lengths: lengths::<T>(counts), out: Some(all), root }
    Varying<Allgather>: |Varying(_, counts), _, own, out| Team,
        Allgatherv { own, lengths: lengths::<T>(counts), out }
    Varying<Scatter>: |Varying(Scatter { root }, counts), _, all, own| Team,
        Scatterv { input: Some(all), lengths: lengths::<T>(counts), own, root }
    Varying<Varying<Alltoall>>: |Varying(Varying(_, to), from), _, input, out| Team,
        Alltoallv { input, to: lengths::<T>(to), out, from: lengths::<T>(from) }

    Within<Gather>: |Within(Gather { root }), _, _, data| Team,
        GatherInPlace { data, parts: Parts::Equal, root }
    Within<Allgather>: |Within(_), _, _, data| Team,
        AllgatherInPlace { data, parts: Parts::Equal }
    Within<Scatter>: |Within(Scatter { root }), _, _, data| Team,
        ScatterInPlace { data, parts: Parts::Equal, root }
    Within<Alltoall>: |Within(_), _, _, data| Team,
        AlltoallInPlace { data, parts: Parts::Equal }

    Varying<Within<Gather>>: |Varying(Within(Gather { root }), counts), _, _, data| Team,
        GatherInPlace { data, parts: Parts::Of(lengths::<T>(counts)), root }
    Varying<Within<Allgather>>: |Varying(_, counts), _, _, data| Team,
        AllgatherInPlace { data, parts: Parts::Of(lengths::<T>(counts)) }
    Varying<Within<Scatter>>: |Varying(Within(Scatter { root }), counts), _, _, data| Team,
        ScatterInPlace { data, parts: Parts::Of(lengths::<T>(counts)), root }
    Varying<Within<Alltoall>>: |Varying(_, counts), _, _, data| Team,
        AlltoallInPlace { data, parts: Parts::Of(lengths::<T>(counts)) }

    Allgather: |Self, neighbours, own, out| Neighbours,
        NeighbourAllgather { neighbours: neighbours.clone(), own, out }
    Varying<Allgather>: |Varying(_, counts), neighbours, own, out| Neighbours,
        NeighbourAllgatherv { neighbours: neighbours.clone(), own, lengths: lengths::<T>(counts), out }
    Alltoall: |Self, neighbours, input, out| Neighbours,
        NeighbourAlltoall { neighbours: neighbours.clone(), input, out }
    Varying<Varying<Alltoall>>: |Varying(Varying(_, to), from), neighbours, input, out| Neighbours,
        NeighbourAlltoallv {
            neighbours: neighbours.clone(), input, to: lengths::<T>(to), out, from: lengths::<T>(from)
        }
}

impl<'a> Below<'a, Team, ()> for Barrier {
    type Operation = below::Barrier;

    fn below(self, _: &Team, (): ()) -> below::Barrier {
        below::Barrier
    }
}

impl<'a> Below<'a, Team, Blocks<'a>> for Alltoall {
    type Operation = below::Alltoallw<'a>;

    fn below(self, _: &Team, blocks: Blocks<'a>) -> Self::Operation {
        let (input, out) = (Cow::Owned(blocks.leaving), blocks.coming);
        below::Alltoallw { input, out }
    }
}

impl<'a> Below<'a, Neighbours, Blocks<'a>> for Alltoall {
    type Operation = below::NeighbourAlltoallw<'a>;

    fn below(self, neighbours: &Neighbours, blocks: Blocks<'a>) -> Self::Operation {
        below::NeighbourAlltoallw {
            neighbours: neighbours.clone(),
            input: Cow::Owned(blocks.leaving),
            out: blocks.coming,
        }
    }
}

/// An operation whose parts have different lengths, counts of elements, from [`Collective::varying`].
#[derive(Debug, Clone)]
pub struct Varying<O>(O, Vec<usize>);

/// An operation whose data lie where its result goes (`MPI_IN_PLACE`). A buffer has a block for each rank, in the order of ranks;
/// with a root, the buffers of the other ranks are their own blocks alone.
#[derive(Debug, Clone, Copy)]
pub struct Within<O>(pub(super) O);

impl<O, B> Collective<O, B> {
    /// Returns the same with parts of different lengths, `counts` of elements, one for each rank: of a [`Gather`] or a [`Scatter`],
    /// whose root alone has to know them, or an [`Allgather`]; of one buffer also of an [`Alltoall`], where two ranks give each
    /// other as much. Among neighbours, of each source of an [`Allgather`].
    pub fn varying(self, counts: &[usize]) -> Collective<Varying<O>, B> {
        Collective {
            operation: Varying(self.operation, counts.to_vec()),
            buffers: self.buffers,
        }
    }
}

/// Returns counts of elements in bytes. A length that is beyond memory fits no buffer, and is refused by that.
fn lengths<T>(mut counts: Vec<usize>) -> Cow<'static, [usize]> {
    for count in &mut counts {
        *count = count.saturating_mul(size_of::<T>());
    }
    Cow::Owned(counts)
}

/// A barrier, which is complete once every rank has come to it (MPI-5.0, section 6.3).
#[derive(Debug, Clone, Copy)]
pub struct Barrier;

impl Barrier {
    /// Returns [`Context::barrier`](crate::Context::barrier) as a value.
    pub const fn new() -> Collective<Self, ()> {
        Collective {
            operation: Self,
            buffers: (),
        }
    }
}

/// Gives the data of a root to all (MPI-5.0, section 6.4).
#[derive(Debug, Clone, Copy)]
pub struct Broadcast {
    root: usize,
}

impl Broadcast {
    /// Returns [`Context::broadcast`](crate::Context::broadcast) as a value.
    pub fn new<D: Writable>(data: D, root: u32) -> Collective<Self, D::Buffers> {
        let root = root as usize;
        Collective::within(Self { root }, data)
    }
}

/// Gives the data of each rank to a root, in the order of ranks (MPI-5.0, section 6.5).
#[derive(Debug, Clone, Copy)]
pub struct Gather {
    root: usize,
}

impl Gather {
    /// Returns [`Context::gather`](crate::Context::gather) as a value.
    pub fn new<D: Writable>(
        own: impl Readable<Lent = D::Input>,
        all: D,
        root: u32,
    ) -> Collective<Self, D::Buffers> {
        let root = root as usize;
        Collective::on(Self { root }, own, all)
    }

    /// Returns a gather of one buffer: at `root` its own block of `data` is there, the other ranks give their `data`.
    pub fn in_place<D: Writable>(data: D, root: u32) -> Collective<Within<Self>, D::Buffers> {
        let root = root as usize;
        Collective::within(Within(Self { root }), data)
    }
}

/// Gives the data of each rank to all, in the order of ranks (MPI-5.0, section 6.7). Among neighbours, to all destinations
/// (section 8.6.1).
///
/// ```
/// use tagwire::{Allgather, Session};
///
/// let session = Session::open()?;
/// let (rank, size) = (session.rank() as usize, session.size() as usize);
/// let mut squares = vec![0; size];
/// squares[rank] = rank * rank;
/// session.world().run(Allgather::in_place(&mut squares))?;
/// assert!(squares.iter().enumerate().all(|(rank, square)| *square == rank * rank));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Allgather;

impl Allgather {
    /// Returns [`Context::allgather`](crate::Context::allgather) or
    /// [`Neighbourhood::allgather`](crate::Neighbourhood::allgather) as a value.
    pub fn new<D: Writable>(
        own: impl Readable<Lent = D::Input>,
        all: D,
    ) -> Collective<Self, D::Buffers> {
        Collective::on(Self, own, all)
    }

    /// Returns an allgather of one buffer: each rank gives its own block of `all`.
    pub fn in_place<D: Writable>(all: D) -> Collective<Within<Self>, D::Buffers> {
        Collective::within(Within(Self), all)
    }
}

/// Gives each rank its part of the data of a root, in the order of ranks (MPI-5.0, section 6.6).
#[derive(Debug, Clone, Copy)]
pub struct Scatter {
    root: usize,
}

impl Scatter {
    /// Returns [`Context::scatter`](crate::Context::scatter) as a value.
    pub fn new<D: Writable>(
        all: impl Readable<Lent = D::Input>,
        own: D,
        root: u32,
    ) -> Collective<Self, D::Buffers> {
        let root = root as usize;
        Collective::on(Self { root }, all, own)
    }

    /// Returns a scatter of one buffer: `root` keeps its own block of `data`, the other ranks get theirs in `data`.
    pub fn in_place<D: Writable>(data: D, root: u32) -> Collective<Within<Self>, D::Buffers> {
        let root = root as usize;
        Collective::within(Within(Self { root }), data)
    }
}

/// Gives each rank a block, and gets one from each (MPI-5.0, section 6.8). Among neighbours, to the destinations and from the
/// sources (section 8.6.2).
#[derive(Debug, Clone, Copy)]
pub struct Alltoall;

impl Alltoall {
    /// Returns [`Context::alltoall`](crate::Context::alltoall) or
    /// [`Neighbourhood::alltoall`](crate::Neighbourhood::alltoall) as a value.
    pub fn new<D: Writable>(
        data: impl Readable<Lent = D::Input>,
        from_all: D,
    ) -> Collective<Self, D::Buffers> {
        Collective::on(Self, data, from_all)
    }

    /// Returns [`Context::alltoall_varying`](crate::Context::alltoall_varying) or
    /// [`Neighbourhood::alltoall_varying`](crate::Neighbourhood::alltoall_varying) as a value.
    pub fn varying<D: Writable>(
        data: impl Readable<Lent = D::Input>,
        to: &[usize],
        from_all: D,
        from: &[usize],
    ) -> Collective<Varying<Varying<Self>>, D::Buffers> {
        Self::new(data, from_all).varying(to).varying(from)
    }

    /// Returns [`Context::alltoall_blocks`](crate::Context::alltoall_blocks) or
    /// [`Neighbourhood::alltoall_blocks`](crate::Neighbourhood::alltoall_blocks) as a value: of [`Blocks`], or of
    /// [`OwnedBlocks`](crate::OwnedBlocks) for a persistent one.
    pub const fn blocks<B>(blocks: B) -> Collective<Self, B> {
        Collective {
            operation: Self,
            buffers: blocks,
        }
    }

    /// Returns an all-to-all of one buffer: each block is given to its rank, whose block comes in its place.
    pub fn in_place<D: Writable>(data: D) -> Collective<Within<Self>, D::Buffers> {
        Collective::within(Within(Self), data)
    }
}
