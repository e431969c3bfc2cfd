//! The operations that have several algorithms, and their names.

use std::fmt;

/// An operation with several algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collective {
    /// [`Team::allgather`](crate::Team::allgather). Its length is that of what is gathered.
    Allgather,
    /// [`Team::allreduce`](crate::Team::allreduce).
    Allreduce,
    /// [`Team::alltoall`](crate::Team::alltoall). Its length is that of a block.
    Alltoall,
    /// [`Team::broadcast`](crate::Team::broadcast).
    Broadcast,
    /// [`Team::gather`](crate::Team::gather). Its length is that of a block.
    Gather,
    /// [`Team::reduce`](crate::Team::reduce).
    Reduce,
    /// [`Team::reduce_scatter`](crate::Team::reduce_scatter). Its length is that of the input.
    ReduceScatter,
    /// [`Team::scatter`](crate::Team::scatter). Its length is that of a block.
    Scatter,
}

impl Collective {
    /// Returns whether it combines operands.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::Allreduce | Self::Reduce | Self::ReduceScatter)
    }

    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Allgather,
        Self::Allreduce,
        Self::Alltoall,
        Self::Broadcast,
        Self::Gather,
        Self::Reduce,
        Self::ReduceScatter,
        Self::Scatter,
    ];

    /// Returns the name in settings, tables and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allgather => "allgather",
            Self::Allreduce => "allreduce",
            Self::Alltoall => "alltoall",
            Self::Broadcast => "broadcast",
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::Scatter => "scatter",
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A way to do an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// What it does.
    pub collective: Collective,
    /// Its name in settings and reports.
    pub name: &'static str,
    /// It combines operands in another order than that of the members.
    pub needs_commutative: bool,
    /// It combines each element in the one tree over members that `coll-reduction=fixed` asks for.
    pub follows_tree: bool,
}

impl Algorithm {
    pub(crate) const fn any(collective: Collective, name: &'static str) -> Self {
        Self {
            collective,
            name,
            needs_commutative: false,
            follows_tree: false,
        }
    }

    pub(crate) const fn tree(collective: Collective, name: &'static str) -> Self {
        Self {
            follows_tree: true,
            ..Self::any(collective, name)
        }
    }

    pub(crate) const fn commutative(collective: Collective, name: &'static str) -> Self {
        Self {
            needs_commutative: true,
            ..Self::any(collective, name)
        }
    }
}

pub(crate) const BINOMIAL: &str = "binomial";
pub(crate) const BOARD: &str = "board";
pub(crate) const BRUCK: &str = "bruck";
pub(crate) const LINEAR: &str = "linear";
pub(crate) const PAIRWISE: &str = "pairwise";
pub(crate) const RECURSIVE_DOUBLING: &str = "recursive-doubling";
pub(crate) const REDUCE_SCATTERV: &str = "reduce-scatterv";
pub(crate) const RING: &str = "ring";
pub(crate) const SCATTER_GATHER: &str = "scatter-gather";
pub(crate) const SCATTER_RING: &str = "scatter-ring";

const ALLGATHER_BOARD: Algorithm = Algorithm::any(Collective::Allgather, BOARD);
const ALLGATHER_BRUCK: Algorithm = Algorithm::any(Collective::Allgather, BRUCK);
const ALLGATHER_RING: Algorithm = Algorithm::any(Collective::Allgather, RING);
const ALLREDUCE_BOARD: Algorithm = Algorithm::any(Collective::Allreduce, BOARD);
const ALLREDUCE_DOUBLING: Algorithm = Algorithm::tree(Collective::Allreduce, RECURSIVE_DOUBLING);
const ALLREDUCE_RING: Algorithm = Algorithm::commutative(Collective::Allreduce, RING);
const ALLTOALL_BOARD: Algorithm = Algorithm::any(Collective::Alltoall, BOARD);
const ALLTOALL_BRUCK: Algorithm = Algorithm::any(Collective::Alltoall, BRUCK);
const ALLTOALL_PAIRWISE: Algorithm = Algorithm::any(Collective::Alltoall, PAIRWISE);
const BROADCAST_BOARD: Algorithm = Algorithm::any(Collective::Broadcast, BOARD);
const BROADCAST_BINOMIAL: Algorithm = Algorithm::any(Collective::Broadcast, BINOMIAL);
const BROADCAST_SCATTER: Algorithm = Algorithm::any(Collective::Broadcast, SCATTER_RING);
const GATHER_BOARD: Algorithm = Algorithm::any(Collective::Gather, BOARD);
const GATHER_BINOMIAL: Algorithm = Algorithm::any(Collective::Gather, BINOMIAL);
const GATHER_LINEAR: Algorithm = Algorithm::any(Collective::Gather, LINEAR);
const REDUCE_BOARD: Algorithm = Algorithm::any(Collective::Reduce, BOARD);
const REDUCE_BINOMIAL: Algorithm = Algorithm::tree(Collective::Reduce, BINOMIAL);
const REDUCE_SCATTER_GATHER: Algorithm = Algorithm::commutative(Collective::Reduce, SCATTER_GATHER);
const REDUCE_SCATTER_SERIAL: Algorithm =
    Algorithm::tree(Collective::ReduceScatter, REDUCE_SCATTERV);
const REDUCE_SCATTER_PAIRWISE: Algorithm =
    Algorithm::commutative(Collective::ReduceScatter, PAIRWISE);
const SCATTER_BOARD: Algorithm = Algorithm::any(Collective::Scatter, BOARD);
const SCATTER_BINOMIAL: Algorithm = Algorithm::any(Collective::Scatter, BINOMIAL);
const SCATTER_LINEAR: Algorithm = Algorithm::any(Collective::Scatter, LINEAR);

/// All algorithms.
pub const ALGORITHMS: &[Algorithm] = &[
    ALLGATHER_BRUCK,
    ALLGATHER_BOARD,
    ALLGATHER_RING,
    ALLREDUCE_DOUBLING,
    ALLREDUCE_BOARD,
    ALLREDUCE_RING,
    ALLTOALL_BRUCK,
    ALLTOALL_BOARD,
    ALLTOALL_PAIRWISE,
    BROADCAST_BINOMIAL,
    BROADCAST_BOARD,
    BROADCAST_SCATTER,
    GATHER_BINOMIAL,
    GATHER_BOARD,
    GATHER_LINEAR,
    REDUCE_BINOMIAL,
    REDUCE_BOARD,
    REDUCE_SCATTER_GATHER,
    REDUCE_SCATTER_SERIAL,
    REDUCE_SCATTER_PAIRWISE,
    SCATTER_BINOMIAL,
    SCATTER_BOARD,
    SCATTER_LINEAR,
];

/// As the setting `coll-algorithm` names it.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.collective, self.name)
    }
}
