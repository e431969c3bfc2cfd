//! Tagwire's local launcher: starts the ranks of a job on this machine, watches over them, and
//! hosts the store through which they find each other.
//!
//! - [`job`]: starts ranks, watches over them and ends them.
//! - [`store`]: the bootstrap store and a rank's connection to it.
//! - [`detect`]: how a rank finds out which launcher started it.

pub mod asked;
mod binding;
pub mod detect;
pub mod door;
mod environment;
mod error;
mod files;
mod gather;
mod host;
pub mod job;
mod key_values;
mod launchers;
mod passing;
mod patience;
mod pmi;
mod pmix;
pub mod proof;
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
pub use store::{Membership, Store, StoreBootstrap, connect_tcp, watch_tcp};
