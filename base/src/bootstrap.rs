//! How ranks of a job find each other before they can talk.
//!
//! A bootstrap is a small key-value store that a launcher offers. Each rank *puts* its transport
//! addresses under its own name and *gets* another rank's on first contact: nothing is exchanged
//! all-to-all at start. Puts are visible to later gets; a get waits until its value is there.
//! Where process namespaces differ, the store also hands file descriptors over.
//!
//! The store is the authority on who is alive: a launcher sees its children end, and reports.

use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::Result;
use crate::ids::Rank;

mod groups;
mod local;
mod secret;
mod shared;

pub use groups::groups;
pub use local::{LocalBootstrap, LocalJob};
pub use secret::JobSecret;
pub use shared::SharedBootstrap;

/// Where a rank runs, relative to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locality {
    /// This rank's number among the ranks on its machine.
    pub local_rank: u32,
    /// How many ranks run on this machine.
    pub local_size: u32,
    /// The first rank of those on this machine.
    pub first_local: Rank,
    /// The address of this machine by which it reaches the others; `None` where they are on it, or that is not known.
    pub address: Option<IpAddr>,
}

/// A number that a launcher may know of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Attribute {
    /// How many ranks the job could have (`MPI_UNIVERSE_SIZE`).
    UniverseSize,
    /// Which of the programs of its job this process runs (`MPI_APPNUM`).
    ApplicationNumber,
}

/// What happened to a member of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberEvent {
    /// The rank said goodbye and left.
    Left(Rank),
    /// The rank ended without a goodbye.
    Failed(Rank),
    /// The connection to the store is lost: no later end of a member is heard of, and no member that is not in
    /// contact can be contacted. The last event.
    StoreLost,
}

/// A rank's view of its job. One object per rank; calls come from one thread at a time.
pub trait Bootstrap: Send {
    /// This rank.
    fn rank(&self) -> Rank;

    /// How many ranks the job has.
    fn size(&self) -> u32;

    /// Where this rank runs.
    fn locality(&self) -> Locality;

    /// The job's secret.
    fn secret(&self) -> &JobSecret;

    /// Returns the rank's clock: deadlines and ages go by it. Sleep in the kernel goes by the machine's.
    fn clock(&self) -> Clock {
        Clock::default()
    }

    /// Whether the end of any rank of the job is reported to the others, so that [`fence`](Self::fence) may wait
    /// without a limit: it returns an error once a rank has ended that it waits for.
    fn reports_ends(&self) -> bool {
        false
    }

    /// Returns a number that the launcher may know of the job; `None` where it does not.
    fn attribute(&mut self, attribute: Attribute) -> Option<u32> {
        let _ = attribute;
        None
    }

    /// Publishes `value` under this rank's `key`. A later put of the same key replaces it.
    ///
    /// # Errors
    /// When the store is gone.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()>;

    /// The value that `rank` put under `key`, waiting for it up to `timeout`.
    ///
    /// # Errors
    /// [`Error::BootstrapTimeout`](crate::Error::BootstrapTimeout) when it does not come; [`Error::Bootstrap`](crate::Error::Bootstrap) when the store is
    /// gone or says that `rank` ended without putting it.
    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>>;

    /// Returns once every rank of the job has called it as often.
    ///
    /// # Errors
    /// When the store is gone or a rank ended; [`Error::FenceTimeout`](crate::Error::FenceTimeout) when `timeout` passes.
    fn fence(&mut self, timeout: Duration) -> Result<()>;

    /// Leaves a copy of `descriptor` with the store for other ranks to take.
    ///
    /// # Errors
    /// When the store is gone or cannot carry descriptors.
    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> Result<()>;

    /// The descriptor that `rank` left, waiting for it up to `timeout`.
    ///
    /// # Errors
    /// As [`Bootstrap::get`], and when the store cannot carry descriptors. An error that
    /// [is a shortage](crate::Error::is_shortage) concerns this call alone: it may be made again.
    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> Result<OwnedFd>;

    /// What has happened to members since the last call. Never blocks; a system call at most, so
    /// it is called from slow paths only.
    fn poll_events(&mut self) -> Vec<MemberEvent>;

    /// Asks the launcher to end the whole job with `status`. Returns once it has been asked, or where it cannot be; a
    /// [`SharedBootstrap`] after 5 s at most. The caller ends its own process then, which is a failed rank to the others.
    fn abort(&mut self, status: i32) {
        let _ = status;
    }

    /// Tells the store that this rank leaves in good order; the end of this process is no
    /// failure from now on.
    fn leave(&mut self);
}
