//! The operations that have several algorithms, and their names.

use std::fmt;
use std::ops::RangeInclusive;

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

/// Members of groups that have boards: each looks at the lines of all.
pub(crate) const ON_BOARD: RangeInclusive<usize> = 2..=8;

/// What the choice of an algorithm looks at in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// How many members there are.
    pub size: usize,
    /// They are on several hosts, and on some host several.
    pub has_levels: bool,
}

impl Group {
    /// Returns the same with hosts that have several members.
    #[must_use]
    pub const fn with_levels(self) -> Self {
        Self {
            has_levels: true,
            ..self
        }
    }
}

/// A group of so many members on one host, or on a host each.
impl From<usize> for Group {
    fn from(size: usize) -> Self {
        Self {
            size,
            has_levels: false,
        }
    }
}

/// What an algorithm needs of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A board: few members that share memory.
    Board,
    /// Several hosts, one of which has several members.
    Levels,
}

impl Needs {
    /// Returns whether a group has it, if its members share memory.
    #[must_use]
    #[inline]
    pub fn are_met_by(self, group: Group) -> bool {
        match self {
            Self::Nothing => true,
            Self::Board => ON_BOARD.contains(&group.size),
            Self::Levels => group.has_levels,
        }
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
    /// What it needs of the group.
    pub needs: Needs,
}

impl Algorithm {
    pub(crate) const fn any(collective: Collective, name: &'static str) -> Self {
        Self {
            collective,
            name,
            needs_commutative: false,
            follows_tree: false,
            needs: Needs::Nothing,
        }
    }

    /// Returns the one that goes by a board.
    pub(crate) const fn on_board(collective: Collective) -> Self {
        Self {
            needs: Needs::Board,
            ..Self::any(collective, BOARD)
        }
    }

    /// Returns the same for a group with levels.
    pub(crate) const fn with_levels(self) -> Self {
        Self {
            needs: Needs::Levels,
            ..self
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
pub(crate) const MULTI_LANE: &str = "multi-lane";
pub(crate) const PAIRWISE: &str = "pairwise";
pub(crate) const RECURSIVE_DOUBLING: &str = "recursive-doubling";
pub(crate) const REDUCE_SCATTERV: &str = "reduce-scatterv";
pub(crate) const RING: &str = "ring";
pub(crate) const SCATTER_GATHER: &str = "scatter-gather";
pub(crate) const SCATTER_RING: &str = "scatter-ring";
pub(crate) const TWO_LEVEL: &str = "two-level";

const ALLGATHER_BOARD: Algorithm = Algorithm::on_board(Collective::Allgather);
const ALLGATHER_BRUCK: Algorithm = Algorithm::any(Collective::Allgather, BRUCK);
const ALLGATHER_RING: Algorithm = Algorithm::any(Collective::Allgather, RING);
const ALLGATHER_TWO_LEVEL: Algorithm =
    Algorithm::any(Collective::Allgather, TWO_LEVEL).with_levels();
const ALLREDUCE_BOARD: Algorithm = Algorithm::on_board(Collective::Allreduce);
const ALLREDUCE_DOUBLING: Algorithm = Algorithm::tree(Collective::Allreduce, RECURSIVE_DOUBLING);
const ALLREDUCE_LANES: Algorithm =
    Algorithm::commutative(Collective::Allreduce, MULTI_LANE).with_levels();
const ALLREDUCE_RING: Algorithm = Algorithm::commutative(Collective::Allreduce, RING);
const ALLREDUCE_TWO_LEVEL: Algorithm =
    Algorithm::commutative(Collective::Allreduce, TWO_LEVEL).with_levels();
const ALLTOALL_BOARD: Algorithm = Algorithm::on_board(Collective::Alltoall);
const ALLTOALL_BRUCK: Algorithm = Algorithm::any(Collective::Alltoall, BRUCK);
const ALLTOALL_PAIRWISE: Algorithm = Algorithm::any(Collective::Alltoall, PAIRWISE);
const BROADCAST_BOARD: Algorithm = Algorithm::on_board(Collective::Broadcast);
const BROADCAST_BINOMIAL: Algorithm = Algorithm::any(Collective::Broadcast, BINOMIAL);
const BROADCAST_SCATTER: Algorithm = Algorithm::any(Collective::Broadcast, SCATTER_RING);
const BROADCAST_TWO_LEVEL: Algorithm =
    Algorithm::any(Collective::Broadcast, TWO_LEVEL).with_levels();
const GATHER_BOARD: Algorithm = Algorithm::on_board(Collective::Gather);
const GATHER_BINOMIAL: Algorithm = Algorithm::any(Collective::Gather, BINOMIAL);
const GATHER_LINEAR: Algorithm = Algorithm::any(Collective::Gather, LINEAR);
const REDUCE_BOARD: Algorithm = Algorithm::on_board(Collective::Reduce);
const REDUCE_BINOMIAL: Algorithm = Algorithm::tree(Collective::Reduce, BINOMIAL);
const REDUCE_SCATTER_GATHER: Algorithm = Algorithm::commutative(Collective::Reduce, SCATTER_GATHER);
const REDUCE_TWO_LEVEL: Algorithm =
    Algorithm::commutative(Collective::Reduce, TWO_LEVEL).with_levels();
const REDUCE_SCATTER_BOARD: Algorithm = Algorithm::on_board(Collective::ReduceScatter);
const REDUCE_SCATTER_SERIAL: Algorithm =
    Algorithm::tree(Collective::ReduceScatter, REDUCE_SCATTERV);
const REDUCE_SCATTER_PAIRWISE: Algorithm =
    Algorithm::commutative(Collective::ReduceScatter, PAIRWISE);
const SCATTER_BOARD: Algorithm = Algorithm::on_board(Collective::Scatter);
const SCATTER_BINOMIAL: Algorithm = Algorithm::any(Collective::Scatter, BINOMIAL);
const SCATTER_LINEAR: Algorithm = Algorithm::any(Collective::Scatter, LINEAR);

/// All algorithms.
pub const ALGORITHMS: &[Algorithm] = &[
    ALLGATHER_BRUCK,
    ALLGATHER_BOARD,
    ALLGATHER_RING,
    ALLGATHER_TWO_LEVEL,
    ALLREDUCE_DOUBLING,
    ALLREDUCE_BOARD,
    ALLREDUCE_RING,
    ALLREDUCE_LANES,
    ALLREDUCE_TWO_LEVEL,
    ALLTOALL_BRUCK,
    ALLTOALL_BOARD,
    ALLTOALL_PAIRWISE,
    BROADCAST_BINOMIAL,
    BROADCAST_BOARD,
    BROADCAST_SCATTER,
    BROADCAST_TWO_LEVEL,
    GATHER_BINOMIAL,
    GATHER_BOARD,
    GATHER_LINEAR,
    REDUCE_BINOMIAL,
    REDUCE_BOARD,
    REDUCE_SCATTER_GATHER,
    REDUCE_TWO_LEVEL,
    REDUCE_SCATTER_BOARD,
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
