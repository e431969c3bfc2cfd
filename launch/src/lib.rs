//! Tagwire's local launcher: starts the ranks of a job on this machine, watches over them, and
//! hosts the store through which they find each other.
//!
//! - [`job`]: starts ranks, watches over them and ends them.
//! - [`store`]: the bootstrap store and a rank's connection to it.
//! - [`detect`]: how a rank finds out which launcher started it.

// Places in the jobs of other launchers are found, and read by what joins these.
#![cfg_attr(not(feature = "launchers"), allow(dead_code, unused_imports))]

#[cfg(not(feature = "launchers"))]
mod absent;
pub mod asked;
mod binding;
pub mod detect;
pub mod door;
mod environment;
mod error;
mod files;
#[cfg(feature = "launchers")]
mod gather;
mod host;
pub mod job;
#[cfg(feature = "launchers")]
mod key_values;
mod launchers;
#[cfg(feature = "launchers")]
mod passing;
mod patience;
#[cfg(feature = "launchers")]
mod pmi;
#[cfg(feature = "launchers")]
mod pmix;
pub mod proof;
#[cfg(feature = "launchers")]
mod rendezvous;
pub mod store;

pub use binding::Binding;
pub use detect::{Detected, Detection, Launcher};
pub use error::{Error, Result};
pub use host::reachable;
pub use job::{
    Ender, Hosts, Job, JobReport, JobSpec, KeptSignals, OnFailure, Outcome, Part, StdinPolicy, run,
};
pub use patience::Deadline;
pub use store::{Membership, Store, StoreBootstrap, connect_tcp, is_own_user, watch_tcp};
