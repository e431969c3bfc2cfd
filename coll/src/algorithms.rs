//! The operations that have several algorithms, and the names and properties of these. Their functions are in the files of the
//! operations ([`functions`](crate::functions)).

use std::fmt;
use std::ops::RangeInclusive;

use self::Collective::{
    Allgather, Allreduce, Alltoall, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};

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
    /// Members read each other's memory. Where they may not, it goes as the one before it among those by a board.
    pub reads_memory: bool,
    /// The place of its function among those of its operation that go by messages, or by a board.
    pub(crate) place: usize,
}

/// Returns an algorithm that keeps the order of operands, or combines none.
const fn any(collective: Collective, name: &'static str) -> Algorithm {
    Algorithm {
        collective,
        name,
        needs_commutative: false,
        follows_tree: false,
        needs: Needs::Nothing,
        reads_memory: false,
        place: 0,
    }
}

/// Returns one that combines operands in the one tree.
const fn tree(collective: Collective, name: &'static str) -> Algorithm {
    Algorithm {
        follows_tree: true,
        ..any(collective, name)
    }
}

/// Returns one that combines operands in any order.
const fn commutative(collective: Collective, name: &'static str) -> Algorithm {
    Algorithm {
        needs_commutative: true,
        ..any(collective, name)
    }
}

/// Returns the one that goes by a board.
const fn on_board(collective: Collective) -> Algorithm {
    by_board(collective, "board")
}

/// Returns one of several that go by a board.
const fn by_board(collective: Collective, name: &'static str) -> Algorithm {
    Algorithm {
        needs: Needs::Board,
        ..any(collective, name)
    }
}

/// Returns the one by a board whose members read each other's memory.
const fn single_copy(collective: Collective) -> Algorithm {
    Algorithm {
        reads_memory: true,
        ..by_board(collective, "single-copy")
    }
}

/// Returns the same for a group with levels.
const fn with_levels(algorithm: Algorithm) -> Algorithm {
    Algorithm {
        needs: Needs::Levels,
        ..algorithm
    }
}

/// All algorithms, by operation. The first of each can be taken by any group: it keeps the order of operands, and the tree.
pub const ALGORITHMS: &[Algorithm] = &numbered([
    any(Allgather, "bruck"),
    on_board(Allgather),
    single_copy(Allgather),
    any(Allgather, "ring"),
    with_levels(any(Allgather, "two-level")),
    tree(Allreduce, "recursive-doubling"),
    // Each member combines everything, or a part that the others copy.
    on_board(Allreduce),
    by_board(Allreduce, "board-parts"),
    single_copy(Allreduce),
    tree(Allreduce, "rabenseifner"),
    commutative(Allreduce, "ring"),
    with_levels(commutative(Allreduce, "multi-lane")),
    with_levels(commutative(Allreduce, "two-level")),
    any(Alltoall, "bruck"),
    on_board(Alltoall),
    single_copy(Alltoall),
    any(Alltoall, "pairwise"),
    any(Broadcast, "binomial"),
    on_board(Broadcast),
    any(Broadcast, "scatter-ring"),
    with_levels(any(Broadcast, "two-level")),
    any(Gather, "binomial"),
    on_board(Gather),
    any(Gather, "linear"),
    tree(Reduce, "binomial"),
    on_board(Reduce),
    commutative(Reduce, "scatter-gather"),
    with_levels(commutative(Reduce, "two-level")),
    on_board(ReduceScatter),
    tree(ReduceScatter, "reduce-scatterv"),
    commutative(ReduceScatter, "pairwise"),
    any(Scatter, "binomial"),
    on_board(Scatter),
    any(Scatter, "linear"),
]);

/// Numbers the algorithms by messages of each operation, and those by a board.
const fn numbered<const N: usize>(mut all: [Algorithm; N]) -> [Algorithm; N] {
    let (mut at, mut next) = (0, [0; 2]);
    while at < N {
        if at > 0 && all[at].collective as usize != all[at - 1].collective as usize {
            next = [0; 2];
        }
        let by_board = matches!(all[at].needs, Needs::Board) as usize;
        all[at].place = next[by_board];
        next[by_board] += 1;
        at += 1;
    }
    all
}

/// Returns the algorithm of an operation that any group can take.
pub(crate) fn first_of(what: Collective) -> &'static Algorithm {
    let first = |it: &&Algorithm| it.collective == what && it.needs == Needs::Nothing;
    let found = ALGORITHMS.iter().find(first);
    found.expect("a test finds one for each operation")
}

/// As the setting `coll-algorithm` names it.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.collective, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_operation_can_be_taken_by_any_group() {
        for what in Collective::ALL {
            let first = first_of(*what);
            let keeps = first.follows_tree == what.reduces();
            assert!(keeps && !first.needs_commutative, "{first}");
        }
    }

    #[test]
    fn names_are_of_one_algorithm_and_operations_are_together() {
        for (place, one) in ALGORITHMS.iter().enumerate() {
            let before = &ALGORITHMS[..place];
            let twin = |it: &&Algorithm| it.to_string() == one.to_string();
            assert!(!before.iter().any(|it| twin(&it)), "{one}");
            let last = before
                .last()
                .is_some_and(|last| last.collective != one.collective);
            assert!(
                !last || before.iter().all(|it| it.collective != one.collective),
                "{one}"
            );
        }
    }
}
