//! Collective operations: what the ranks of a group do together (MPI-5.0, chapter 6).
//!
//! ```text
//!     Team              a group's ranks, the ids of its context, how many operations it has begun
//!      |  begin
//!     Call              one operation: its tag, and the transfers of an algorithm
//!      |  send, recv, exchange
//!     Messenger         requests of the layer below
//! ```
//!
//! An algorithm is an `async fn` over a [`Call`], in a file of its collective. It awaits transfers and nothing else, so
//! that the same body is run to its end by a blocking call and polled by a rank's progress for a nonblocking one.
//!
//! Every member calls the same operations in the same order. Each operation has an internal tag of its own, so that
//! messages of two operations, and those of users, never meet.
//!
//! **Order.** What a reduction returns depends on the number of ranks, the count, the operation and the algorithm, never on
//! arrival. Operations that do not commute get their operands in the order of ranks.
//!
//! **Failure.** When a member dies, every other member's operation ends with the failure. The team is of no use any more:
//! later operations end with the same.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod call;
mod error;
mod gather;
mod members;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod select;
mod team;
mod transfer;

pub use call::Call;
pub use error::{Error, Result};
pub use members::Members;
pub use select::{ALGORITHMS, Algorithm, Collective, SETTINGS, Selection};
pub use team::Team;

/// What a reduction does: an operation on values of a layout.
#[derive(Debug, Clone, Copy)]
pub struct Reduction<'a> {
    /// What combines two values.
    pub operation: &'a tagwire_layout::Operation,
    /// How a value lies in memory.
    pub layout: &'a tagwire_layout::Layout,
}

impl Reduction<'_> {
    /// Checks that the operation is defined for the type, and that `bytes` are whole values.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        let checked = self.operation.check(self.layout);
        checked.map_err(|error| Error::Operation(error.to_string()))?;
        let extent = self.layout.extent();
        match extent > 0 && bytes.is_multiple_of(extent) {
            true => Ok(()),
            false => Err(Error::Argument(format!(
                "{bytes} bytes are no whole number of values of {extent} bytes"
            ))),
        }
    }

    /// `into` becomes `left` combined with it; `left` is of lower ranks.
    pub(crate) fn left(&self, left: &[u8], into: &mut [u8]) -> Result<()> {
        let combined = self.operation.combine(self.layout, left, into);
        combined.map_err(|error| Error::Operation(error.to_string()))
    }

    /// `into` becomes itself combined with `right`, which is of higher ranks.
    pub(crate) fn right(&self, into: &mut [u8], right: &[u8]) -> Result<()> {
        let combined = self.operation.combine_right(self.layout, into, right);
        combined.map_err(|error| Error::Operation(error.to_string()))
    }

    /// Combines `into` with what came from another rank.
    pub(crate) fn with(&self, into: &mut [u8], other: &[u8], is_lower: bool) -> Result<()> {
        match is_lower {
            true => self.left(other, into),
            false => self.right(into, other),
        }
    }
}
