//! The operations that have several algorithms, and what an algorithm is: a value with a name, properties and a function. Each
//! operation's file lists its own.

use std::fmt;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;

use crate::call::Call;
use crate::error::{Error, Result};
use crate::reduction::Reduction;
use crate::{allgather, allreduce, alltoall, broadcast, gather, reduce, reduce_scatter, scatter};

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

/// The steps of a member, under way.
pub(crate) type Steps<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// What an algorithm does: the steps of a member, with the arguments of its operation. What belongs to the root is `None` elsewhere.
#[derive(Clone, Copy)]
#[allow(
    clippy::type_complexity,
    reason = "the arguments are those of the operation, which have names there"
)]
pub(crate) enum Function {
    /// Of what this member gives, and what becomes of it.
    Allgather(for<'a> fn(Call<'a>, &'a [u8], &'a mut [u8]) -> Steps<'a>),
    /// Of what this member gives, which becomes the result.
    Allreduce(for<'a> fn(Call<'a>, Reduction<'a>, &'a mut [u8]) -> Steps<'a>),
    /// Of a block for each member, and one of each.
    Alltoall(for<'a> fn(Call<'a>, &'a [u8], &'a mut [u8]) -> Steps<'a>),
    /// Of the data, and the root.
    Broadcast(for<'a> fn(Call<'a>, &'a mut [u8], usize) -> Steps<'a>),
    /// Of what this member gives, the root's buffer, and the root.
    Gather(for<'a> fn(Call<'a>, &'a [u8], Option<&'a mut [u8]>, usize) -> Steps<'a>),
    /// Of what this member gives, the root's buffer, and the root.
    Reduce(for<'a> fn(Call<'a>, Reduction<'a>, &'a [u8], Option<&'a mut [u8]>, usize) -> Steps<'a>),
    /// Of what this member gives, the lengths of all parts, and its own part.
    ReduceScatter(
        for<'a> fn(Call<'a>, Reduction<'a>, &'a [u8], &'a [usize], &'a mut [u8]) -> Steps<'a>,
    ),
    /// Of the root's blocks, what this member gets, and the root.
    Scatter(for<'a> fn(Call<'a>, Option<&'a [u8]>, &'a mut [u8], usize) -> Steps<'a>),
    /// Members do it on their board, and not by messages.
    Board(Collective),
}

impl Function {
    const fn collective(&self) -> Collective {
        match self {
            Self::Allgather(_) => Collective::Allgather,
            Self::Allreduce(_) => Collective::Allreduce,
            Self::Alltoall(_) => Collective::Alltoall,
            Self::Broadcast(_) => Collective::Broadcast,
            Self::Gather(_) => Collective::Gather,
            Self::Reduce(_) => Collective::Reduce,
            Self::ReduceScatter(_) => Collective::ReduceScatter,
            Self::Scatter(_) => Collective::Scatter,
            Self::Board(collective) => *collective,
        }
    }
}

/// Makes a [`Function`] of an operation: `steps!(Allreduce: ring[call, reduction, data])`.
macro_rules! steps {
    ($operation:ident: $steps:path[$($argument:ident),*]) => {
        $crate::algorithms::Function::$operation(|$($argument),*| Box::pin($steps($($argument),*)))
    };
}
pub(crate) use steps;

/// Does an operation by the algorithm that is chosen for so many bytes: `chosen!(call, Allreduce of bytes, may_reorder; data)`.
macro_rules! chosen {
    ($call:expr, $operation:ident of $bytes:expr, $may_reorder:expr; $($argument:expr),*) => {{
        let (call, what) = ($call, $crate::algorithms::Collective::$operation);
        let algorithm = call.choose(what, $bytes, $may_reorder);
        match algorithm.function {
            $crate::algorithms::Function::$operation(steps) => steps(call, $($argument),*).await,
            _ => Err(algorithm.misplaced()),
        }
    }};
}
pub(crate) use chosen;

/// A way to do an operation.
#[derive(Clone, Copy)]
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
    pub(crate) function: Function,
}

impl Algorithm {
    pub(crate) const fn any(name: &'static str, function: Function) -> Self {
        Self {
            collective: function.collective(),
            name,
            needs_commutative: false,
            follows_tree: false,
            needs: Needs::Nothing,
            function,
        }
    }

    /// Returns the one that goes by a board.
    pub(crate) const fn on_board(collective: Collective) -> Self {
        Self {
            needs: Needs::Board,
            ..Self::any(BOARD, Function::Board(collective))
        }
    }

    /// Returns the same for a group with levels.
    pub(crate) const fn with_levels(self) -> Self {
        Self {
            needs: Needs::Levels,
            ..self
        }
    }

    pub(crate) const fn tree(name: &'static str, function: Function) -> Self {
        Self {
            follows_tree: true,
            ..Self::any(name, function)
        }
    }

    pub(crate) const fn commutative(name: &'static str, function: Function) -> Self {
        Self {
            needs_commutative: true,
            ..Self::any(name, function)
        }
    }

    #[cold]
    pub(crate) fn misplaced(&self) -> Error {
        Error::Argument(format!("the algorithm {self} is none by messages"))
    }
}

/// By operation and name, which are of one algorithm.
impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        (self.collective, self.name) == (other.collective, other.name)
    }
}

impl Eq for Algorithm {}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Algorithm")
            .field("collective", &self.collective)
            .field("name", &self.name)
            .field("needs_commutative", &self.needs_commutative)
            .field("follows_tree", &self.follows_tree)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

/// The name of all algorithms that go by a board.
pub(crate) const BOARD: &str = "board";

/// The algorithms by operation, as [`Collective::ALL`] has them. The first of each can be taken by any group: it needs nothing, and
/// keeps the order of operands and the tree.
const LISTS: [&[Algorithm]; Collective::ALL.len()] = [
    allgather::ALGORITHMS,
    allreduce::ALGORITHMS,
    alltoall::ALGORITHMS,
    broadcast::ALGORITHMS,
    gather::ALGORITHMS,
    reduce::ALGORITHMS,
    reduce_scatter::ALGORITHMS,
    scatter::ALGORITHMS,
];

const COUNT: usize = {
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        count += LISTS[list].len();
        list += 1;
    }
    count
};

static ALL: [Algorithm; COUNT] = {
    let mut all = [LISTS[0][0]; COUNT];
    let (mut count, mut list) = (0, 0);
    while list < LISTS.len() {
        let mut place = 0;
        while place < LISTS[list].len() {
            all[count] = LISTS[list][place];
            count += 1;
            place += 1;
        }
        list += 1;
    }
    all
};

/// All algorithms.
pub const ALGORITHMS: &[Algorithm] = &ALL;

/// Returns the algorithm of an operation that any group can take.
pub(crate) fn first_of(what: Collective) -> &'static Algorithm {
    &LISTS[what as usize][0]
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
    fn lists_are_of_their_operations_and_begin_with_what_any_group_takes() {
        for (what, list) in Collective::ALL.iter().zip(LISTS) {
            assert!(list.iter().all(|it| it.collective == *what), "{what}");
            let first = first_of(*what);
            let keeps = first.follows_tree || !what.reduces();
            assert!(keeps && !first.needs_commutative, "{first}");
            assert_eq!(first.needs, Needs::Nothing, "{first}");
        }
    }

    #[test]
    fn names_are_of_one_algorithm() {
        for (place, one) in ALGORITHMS.iter().enumerate() {
            assert!(!ALGORITHMS[..place].contains(one), "{one}");
        }
    }
}
