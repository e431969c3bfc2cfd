//! Collective operations of a port.

use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// An operation that all ranks call. Rank 0 is the root of those that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    ReduceScatter,
    Allgather,
    Alltoall,
    Gather,
    Scatter,
}

impl Operation {
    /// Returns how many bytes a rank of `ranks` gives and gets, where the size of the test is `size`.
    #[inline]
    pub(crate) const fn lengths(self, size: usize, ranks: usize) -> (usize, usize) {
        match self {
            Self::Barrier => (0, 0),
            Self::Bcast => (0, size),
            Self::Reduce | Self::Allreduce => (size, size),
            Self::Allgather | Self::Gather => (size, size.saturating_mul(ranks)),
            Self::Alltoall => (size.saturating_mul(ranks), size.saturating_mul(ranks)),
            Self::ReduceScatter | Self::Scatter => (size.saturating_mul(ranks), size),
        }
    }

    /// Whether numbers are summed.
    #[inline]
    pub(crate) const fn reduces(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::ReduceScatter)
    }
}

/// How operations are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Blocking,
    /// Each is started, and waited for at once.
    Nonblocking,
}

/// What is summed in messages of `size` bytes: doubles, or bytes where they are no whole number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summand {
    Double,
    Byte,
}

impl Summand {
    #[inline]
    pub(crate) const fn of(size: usize) -> Self {
        match size.is_multiple_of(8) {
            true => Self::Double,
            false => Self::Byte,
        }
    }
}

/// The collective operations of a rank.
pub(crate) trait Collectives {
    /// Does `operation` with what [`Operation::lengths`] says; the lengths of both are those.
    fn call(&self, operation: Operation, out: Outgoing, into: Incoming) -> Result<()>;
}
