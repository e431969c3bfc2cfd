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

/// A group with a context of its own. Members are numbered in the order of their ranks. Another thread may begin what follows the
/// operations of one, where the port was opened for several.
pub(crate) trait Group: Send + Sync {
    /// Puts the greatest of all members' 32-bit integers at each place. Both have the same length.
    fn maximum(&self, out: Outgoing, into: Incoming) -> Result<()>;

    /// Puts the sum of all members' doubles at each place. Both have the same length.
    fn allreduce(&self, out: Outgoing, into: Incoming) -> Result<()>;

    /// Puts a member's block of the sum of all members' doubles. The lengths are those of all blocks, in bytes.
    fn reduce_scatter(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()>;

    /// Puts the blocks of all members, of these lengths, one after the other.
    fn allgather(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()>;

    /// Starts to put the sum of all members' doubles at each place of the root's. Both have the same length, and the others' room
    /// is not touched.
    fn start_reduce(
        &self,
        out: Outgoing,
        into: Incoming,
        root: usize,
    ) -> Result<Box<dyn Started + '_>>;

    /// Starts what [`allreduce`](Self::allreduce) does.
    fn start_allreduce(&self, out: Outgoing, into: Incoming) -> Result<Box<dyn Started + '_>>;
}

/// An operation under way, which is tested until it has ended, or waited for.
pub(crate) trait Started: Send {
    /// Makes progress once, and returns whether it has ended; then it is no more called.
    fn test(&mut self) -> Result<bool>;

    /// Returns once it has ended.
    fn wait(&mut self) -> Result<()>;
}
