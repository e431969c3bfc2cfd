//! Tagwire's local launcher: starts the ranks of a job on this machine, watches over them, and
//! hosts the store through which they find each other.
//!
//! - [`store`]: the bootstrap store and a rank's connection to it.
//! - [`detect`]: how a rank finds out which launcher started it.

pub mod detect;
mod error;
pub mod store;

pub use detect::{Detected, Detection, Launcher};
pub use error::{Error, Result};
pub use store::{Membership, Store, StoreBootstrap};
