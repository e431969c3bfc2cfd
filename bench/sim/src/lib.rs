//! Programs whose ranks run on a simulated machine: the unchanged code of ob1 and of the collectives, in virtual time.
//!
//! ```text
//!     job        opens the ranks of a network, and runs them as futures in one thread
//!      |
//!     programs   what each rank does: an asynchronous function
//!     partitioned, messaging, motif  what threads of a rank do in papers
//!     apps       skeletons of applications, whose calls a profile times
//!      |
//!     SimRank    isend, irecv, wait, barrier, sum, compute: over Messenger and Team
//! ```

pub mod apps;
mod args;
pub mod callers;
mod cost;
mod error;
mod fit;
mod job;
mod lent;
pub mod messaging;
pub mod motif;
pub mod neighbours;
pub mod pairs;
pub mod partitioned;
mod profile;
mod programs;
mod rank;
pub mod reduction;
mod report;
mod rounds;
mod threads;

pub use args::SimArgs;
pub use error::{Error, Result};
pub use fit::{Measured, fit, predict};
pub use job::{BUSY_PEER, Outcome, Pml, RANK, run, run_on};
pub use profile::{Profile, RankProfile};
pub use programs::stream::WINDOW as STREAM_WINDOW;
pub use programs::{Arguments, PROGRAMS, Program, grid, program};
pub use rank::SimRank;
pub use report::{Refusal, Report, simulate};
pub use rounds::Round;
