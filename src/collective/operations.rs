//! The operations that move data.

use tagwire_coll::operations as below;
use tagwire_coll::operations::Blocks::{Apart, Together};
use tagwire_coll::operations::Parts;
use tagwire_coll::{Neighbours, Team};

use super::blocks::Blocks;
use super::buffers::{LentBuffers, Readable, Writable};
use super::value::{Below, Collective};
use crate::plain::{Plain, bytes, bytes_mut};

/// Says what an operation of two buffers, the second of which is written, is in the layer below.
macro_rules! operations {
    ($($operation:ty: |$this:pat, $members:pat, $input:pat, $out:pat_param|
        $(let $parts:ident = $value:expr;)? $group:ty, $below:ident: $value_below:expr;)*) => {$(
        impl<'a, T: Plain> Below<'a, $group, LentBuffers<'a, T>> for $operation {
            type Operation = below::$below<'a>;

            #[inline]
            fn below(self, $members: &$group, lent: LentBuffers<'a, T>) -> Self::Operation {
                let ($this, $input, $out) = (self, bytes(lent.input), bytes_mut(lent.out));
                $(let $parts = $value;)?
                $value_below
            }
        }
    )*};
}

pub(super) use operations;

/// Says the same of an operation on equal parts, and of it on [`Varying`] ones.
macro_rules! in_parts {
    ($($operation:ty: |$this:pat, $parts:ident, $members:pat, $input:pat, $out:pat_param| $group:ty,
        $below:ident: $value_below:expr;)*) => {
        operations! {$(
            $operation: |$this, $members, $input, $out| let $parts = Parts::Equal; $group,
                $below: $value_below;
            Varying<$operation>: |Varying($this, counts), $members, $input, $out|
                let $parts = parts_of::<T>(counts); $group, $below: $value_below;
        )*}
    };
}

in_parts! {
    Gather: |Gather { root }, parts, _, own, all| Team,
        Gather: below::Gather { own: Some(own), parts, out: Some(all), root: root.into() };
    Within<Gather>: |Within(Gather { root }), parts, team, _, data| Team,
        Gather: below::Gather::in_place(team, data, parts, root);
    Scatter: |Scatter { root }, parts, _, all, own| Team,
        Scatter: below::Scatter { input: Some(all), parts, own: Some(own), root: root.into() };
    Within<Scatter>: |Within(Scatter { root }), parts, team, _, data| Team,
        Scatter: below::Scatter::in_place(team, data, parts, root);
    Allgather: |_, parts, _, own, out| Team,
        Allgather: below::Allgather { own: Some(own), parts, out };
    Within<Allgather>: |_, parts, _, _, out| Team,
        Allgather: below::Allgather { own: None, parts, out };
    Within<Alltoall>: |_, parts, _, _, data| Team,
        Alltoall: below::Alltoall { input: None, out: Together(data, parts) };
    Allgather: |_, parts, neighbours, own, out| Neighbours,
        NeighbourAllgather: below::NeighbourAllgather { neighbours: neighbours.clone(), own, parts, out };
}

operations! {
    Broadcast: |Self { root }, _, _, data| Team,
        Broadcast: below::Broadcast { data, root: root.into() };
    Alltoall: |Self, _, input, out| Team,
        Alltoall: below::Alltoall {
            input: Some(Together(input, Parts::Equal)), out: Together(out, Parts::Equal)
        };
    Varying<Varying<Alltoall>>: |Varying(Varying(_, to), from), _, input, out| Team,
        Alltoall: below::Alltoall {
            input: Some(Together(input, parts_of::<T>(to))), out: Together(out, parts_of::<T>(from))
        };
    Alltoall: |Self, neighbours, input, out| Neighbours,
        NeighbourAlltoall: below::NeighbourAlltoall {
            neighbours: neighbours.clone(),
            input: Together(input, Parts::Equal), out: Together(out, Parts::Equal)
        };
    Varying<Varying<Alltoall>>: |Varying(Varying(_, to), from), neighbours, input, out| Neighbours,
        NeighbourAlltoall: below::NeighbourAlltoall {
            neighbours: neighbours.clone(),
            input: Together(input, parts_of::<T>(to)), out: Together(out, parts_of::<T>(from))
        };
}

impl<'a> Below<'a, Team, ()> for Barrier {
    type Operation = below::Barrier;

    fn below(self, _: &Team, (): ()) -> below::Barrier {
        below::Barrier
    }
}

impl<'a> Below<'a, Team, Blocks<'a>> for Alltoall {
    type Operation = below::Alltoall<'a>;

    fn below(self, _: &Team, blocks: Blocks<'a>) -> Self::Operation {
        below::Alltoall {
            input: Some(Apart(blocks.leaving)),
            out: Apart(blocks.coming),
        }
    }
}

impl<'a> Below<'a, Neighbours, Blocks<'a>> for Alltoall {
    type Operation = below::NeighbourAlltoall<'a>;

    fn below(self, neighbours: &Neighbours, blocks: Blocks<'a>) -> Self::Operation {
        below::NeighbourAlltoall {
            neighbours: neighbours.clone(),
            input: Apart(blocks.leaving),
            out: Apart(blocks.coming),
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

/// Returns parts of so many elements. A length that is beyond memory fits no buffer, and is refused by that.
fn parts_of<T>(mut counts: Vec<usize>) -> Parts<'static> {
    for count in &mut counts {
        *count = count.saturating_mul(size_of::<T>());
    }
    Parts::Of(counts.into())
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
