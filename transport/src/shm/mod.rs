//! The shared-memory transport: ranks of one machine, nothing installed, one cache line moved
//! for a small message.
//!
//! **Memory.** Each rank owns one memfd, sparse, with an area of 64 KiB for each rank that may
//! send to it (`layout`). Peers open it on first contact: through `/proc/PID/fd` where they
//! see the owner's process, else by a descriptor that the bootstrap passes (`contact`). What
//! nobody touched does not exist; once the last process has ended nothing is left.
//!
//! **Small messages** go through a ring of slots of one line each in the receiver's memory
//! (`ring`): no system call, no lock, no fence. Payloads of more than 40 bytes take memory while they come (`payload`), long ones more of it (`room`, `rooms`).
//!
//! **Large messages** are copied once, from user memory to user memory, by cross-memory attach,
//! in chunks that either side takes (`offers`): when both wait both copy. Where that is slower they go in pieces through the ring:
//! which way is taken between two ranks is found by trial (`ways`). Memory that was allocated from a rank's
//! arena (`arena`) is mapped by its peers, who copy from and to it without a call of the system.
//!
//! **One-sided operations** are copied by their initiator in the same two ways (`remote`).
//!
//! **Waiting** ends in a futex sleep; the sleeper pays for the barrier (`waiter`).
//!
//! **Trust.** A peer proves the job's secret before anything it sent is looked at. Even so it may
//! write anything at any time: what it wrote is checked where it is used.
//!
//! **Death.** Who is dropped without having said that it leaves, as when the stack unwinds from a
//! panic, marks that it has failed. The end of a peer's process is seen by a descriptor of the process
//! (`liveness`); buffers that it could still touch are kept until then.

// Boards and channels share how their memory is opened, who is woken and how a peer's memory is read.
#![cfg_attr(not(all(feature = "coll", feature = "partitioned")), allow(dead_code))]

mod arena;
#[cfg(feature = "coll")]
mod boards;
#[cfg(feature = "partitioned")]
mod channel;
mod cma;
mod config;
mod contact;
mod fixed;
mod identity;
mod kind;
mod layout;
mod liveness;
mod matching;
mod memfd;
mod offers;
mod partner;
mod payload;
mod peer;
mod probe;
mod progress;
mod rank;
mod remote;
mod report;
mod reuse;
mod ring;
mod room;
mod rooms;
mod segment;
mod sighting;
mod slept_on;
mod transfer;
mod transfers;
mod waiter;
mod ways;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

pub use config::{CrossAttach, DescriptorWay, SETTINGS, ShmOptions};
pub use fixed::{attaches, ways_here};
pub use kind::ShmKind;
pub use matching::{ShmMatch, visits};
pub use probe::{Probe, probe};
pub use rank::Shm;
pub use ways::CopyWay;

/// The name in settings and reports.
const NAME: &str = "shm";
