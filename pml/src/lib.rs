//! Point-to-point layers: what turns a transport into tagged messages.
//!
//! ```text
//!     Messenger    one rank's port for threads: locks, waits, deadlines
//!        |
//!       Pml        the contract: isend, irecv, probes, requests, close
//!        |
//!       ob1        matches in software, over any ByteTransport
//! ```
//!
//! A [`Pml`] is a state machine that never blocks and that one caller at a time drives; the
//! [`Messenger`] puts a thread level, waiting and timeouts around it.

pub mod conformance;
pub mod error;
pub mod guard;
pub mod messenger;
pub mod ob1;
pub mod pml;
pub mod settings;
pub mod slab;
pub mod types;
pub mod wait;

pub use error::{Error, Result};
pub use guard::ThreadLevel;
pub use messenger::Messenger;
pub use pml::Pml;
pub use settings::{SETTINGS, open};
pub use types::{CancelOutcome, Failure, MessageId, RequestId, SendMode, Status};
pub use wait::{WaitMode, WaitPolicy};
