//! The matching laboratory: `tagwire match`.
//!
//! - [`gate`] holds an engine to the rules of MPI, in three grades, on random programs; `tagwire match check` also says how
//!   what an operation costs grows with the queues.
//! - `tagwire match depth` measures one match by entries ahead, in nanoseconds, entries, cache lines and instructions.
//!
//! - `tagwire match cat`, `stats` and `replay` are about [traces](trace): what a job's engines were given, printed, counted, and
//!   given to other engines, or made by the ranks of a job.
//! - `tagwire match app` and `import` make traces of the patterns of [applications](apps) and of traces of other tools, under
//!   [models of arrivals](traffic).
//! - `tagwire match order` and `threads` drain queues in other orders than they were filled in.
//! - `tagwire match offload` counts which searches end in hardware of bounded length.
//!
//! How the command is used is in `docs/engines.md`.

#![forbid(unsafe_code)]

mod app;
pub mod apps;
mod arrange;
mod cat;
mod check;
mod checked;
mod command;
mod depth;
mod error;
mod follow;
pub mod gate;
mod growth;
mod import;
mod offload;
mod order;
mod output;
pub mod program;
mod queued;
mod random;
mod real;
mod refused;
mod replay;
mod rounds;
mod shrink;
mod stats;
mod threads;
pub mod trace;
pub mod traffic;
mod valgrind;
mod walk;

pub use app::AppArgs;
pub use arrange::ArrangeArgs;
pub use cat::CatArgs;
pub use check::CheckArgs;
pub use checked::Checked;
pub use command::{MatchArgs, run};
pub use depth::{DepthArgs, check};
pub use error::{Error, Result};
pub use gate::{Failed, Gate, Passed};
pub use import::ImportArgs;
pub use offload::OffloadArgs;
pub use order::OrderArgs;
pub use output::Circumstances;
pub use replay::ReplayArgs;
pub use rounds::Rounds;
pub use stats::StatsArgs;
pub use threads::ThreadsArgs;
pub use trace::Trace;
