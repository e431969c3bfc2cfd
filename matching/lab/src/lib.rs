//! The matching laboratory: `tagwire match`.
//!
//! - [`gate`] holds an engine to the rules of MPI, in three grades, on random programs (`tagwire match check`).
//! - `tagwire match depth` measures one match by entries ahead, in nanoseconds, entries, cache lines and instructions.
//!
//! How the command is used is in `docs/engines.md`.

#![forbid(unsafe_code)]

mod command;
mod depth;
mod error;
mod follow;
pub mod gate;
mod output;
pub mod program;
mod queued;
mod random;
mod shrink;

pub use command::{MatchArgs, run};
pub use depth::DepthArgs;
pub use error::{Error, Result};
pub use gate::{Failed, Gate, Passed};
