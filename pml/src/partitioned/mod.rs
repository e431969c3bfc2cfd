//! Partitioned point-to-point operations (MPI-5.0, chapter 4): many threads contribute to one message, and
//! each part leaves as soon as it is ready.
//!
//! ```text
//!   PartitionedSend: ready -> arrivals: last of its group? -> way.post      any thread, no lock
//!   PartitionedRecv: arrived: one load | way.has_landed                     any thread, no lock
//!                                          |
//!          way:   the transport's channel, where it has one  |  a message for each transport partition
//! ```
//!
//! The two ends are matched once (`handshake`), in order, by rank, tag and context; then agree on the
//! transport partitions (`plan`), whose number the sender's [`Policy`] gives. Rounds are counted on both
//! sides, so that nothing is reset in between (`arrivals`).
//!
//! A ready call before the ends are matched, or before the receiver's credit for the round, is noted, and
//! what it brought about is posted later, by whichever call moves the rank on (`Registry::drive`), or by the thread of the timers.

mod arrivals;
mod awaited;
mod closing;
mod ends;
mod handshake;
mod held;
mod matched;
mod measure;
#[cfg(all(test, loom))]
mod models;
mod orphan;
mod plan;
mod policy;
mod receiving;
mod recv;
mod round;
mod send;
mod sending;
mod several;
mod side;
#[cfg(all(test, not(loom)))]
mod tests;
mod timer;
mod wire;

pub(crate) use handshake::Registry;
pub use plan::Plan;
pub use policy::{Costs, Model, Policy};
pub use recv::PartitionedRecv;
pub use send::PartitionedSend;
pub use several::{End, wait_all};
pub use side::Handle;

pub use crate::types::MAX_PARTITIONS;
