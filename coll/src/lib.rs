//! Collective operations: what the ranks of a group do together (MPI-5.0, chapter 6), also each with its neighbours (chapter 8).
//!
//! ```text
//!     Team              a group's ranks, the ids of its context, how many operations it has begun
//!      |  call, start, init
//!     operations        each a value: its arguments, their check, a member's steps
//!      |  steps
//!     Call              one operation under way: its tag, and the transfers of an algorithm
//!      |  send, recv, exchange
//!     Messenger         requests of the layer below
//! ```
//!
//! Where a group is on one host its members share a board (`board`), by which most blocking operations go without messages.
//!
//! An algorithm is an `async fn` over a [`Call`], in a file of its collective. It awaits transfers and nothing else, so
//! that the same body is run to its end by a blocking call and polled by a rank's progress for a nonblocking one.
//!
//! Every member calls the same operations in the same order. Each operation has an internal tag of its own, so that
//! messages of two operations, and those of users, never meet.
//!
//! **Order.** What a reduction returns depends on the number of ranks, the count, the operation and the algorithm, never on
//! arrival. Operations that do not commute get their operands in the order of ranks. With the setting `coll-reduction=fixed`, it
//! does not depend on the algorithm: each element is combined in one binary tree over the members. Of n members, the first
//! 2 (n - 2^k) are pairs of neighbours, where 2^k is the largest power of two up to n; the 2^k places that this leaves are
//! combined by twos, by fours and so on.
//!
//! **Failure.** When a member dies, every other member's operation ends with the failure. The team is of no use any more:
//! later operations end with the same.

mod active;
mod algorithms;
mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod board;
mod bridge;
mod broadcast;
mod call;
mod check;
mod deaths;
mod division;
mod duplicate;
mod error;
mod failure_notice;
mod failures;
mod functions;
mod gather;
mod grid;
mod groups;
mod levels;
mod making;
mod meeting;
mod meetings;
mod members;
mod named;
mod neighbours;
mod nonblocking;
mod opening;
pub mod operations;
mod persistent;
mod places;
mod rank;
mod reduce;
mod reduce_scatter;
mod reduction;
mod scan;
mod scatter;
mod scattered;
mod scratch;
mod selection;
mod settings;
mod sides;
mod table;
mod tags;
mod team;
mod topic;
mod transfer;
mod ways;

pub use algorithms::{ALGORITHMS, Algorithm, Collective, Group, Needs};
pub use board::{LineCall, TRIED_FROM};
pub use bridge::{Bridge, Leader};
pub use call::Call;
pub use division::Division;
pub use duplicate::Duplicate;
pub use error::{Error, Result};
pub use grid::Grid;
pub use groups::Subset;
pub use members::Members;
pub use neighbours::Neighbours;
pub use nonblocking::Request;
pub use persistent::Persistent;
pub use rank::open;
pub use reduction::{Operator, Reduction};
pub use selection::{SETTINGS, Selection};
pub use settings::all as settings;
pub use sides::Sides;
pub use table::{Place, Row, Table};
pub use team::Team;
pub use ways::ways;
