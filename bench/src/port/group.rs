//! Groups of ranks in which one thread of each calls.

use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// Which ranks are in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Divide {
    /// All, as by `MPI_Comm_dup`.
    All,
    /// Those with this color, as by `MPI_Comm_split`.
    Color(u32),
}

/// A group with a context of its own.
pub(crate) trait Group: Send {
    /// Puts the greatest of all members' 32-bit integers at each place. Both have the same length.
    fn maximum(&self, out: Outgoing, into: Incoming) -> Result<()>;
}
