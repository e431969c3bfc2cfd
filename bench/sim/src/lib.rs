//! Programs whose ranks run on a simulated machine: the unchanged code of ob1 and of the collectives, in virtual time.
//!
//! ```text
//!     job        opens the ranks of a network, and runs them as futures in one thread
//!      |
//!     programs   what each rank does: an asynchronous function
//!      |
//!     SimRank    isend, irecv, wait, barrier, sum, compute: over Messenger and Team
//! ```

mod args;
mod error;
mod job;
mod lent;
mod programs;
mod rank;
mod report;
mod rounds;

pub use args::SimArgs;
pub use error::{Error, Result};
pub use job::{BUSY_PEER, Outcome, RANK, run};
pub use programs::{Arguments, PROGRAMS, Program, program};
pub use rank::SimRank;
pub use report::{Refusal, Report, simulate};
pub use rounds::Round;
