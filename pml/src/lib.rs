//! Point-to-point layers: what turns a transport into tagged messages.
//!
//! ```text
//!     Messenger    one rank's port for threads: locks, waits, deadlines
//!        |
//!       Pml        the contracts: PointToPoint, and LocalRank beside messages
//!        |
//!      /   \
//!   ob1     cm     ob1 matches in software, over any ByteTransport;
//!      \   /       cm leaves matching to its MatchTransport
//!       Lane       of both: peers, contexts, and services: channels of partitions, remote memory access
//! ```
//!
//! A [`Pml`] is a state machine that never blocks and that one caller at a time drives; the
//! [`Messenger`] puts a thread level, waiting and timeouts around it.

#[cfg(feature = "partitioned")]
pub mod channels;
pub mod cm;
pub mod contact;
mod contacts;
mod contexts;
pub mod descriptor;
mod driver;
mod dumps;
pub mod error;
pub mod guard;
mod lane;
pub mod layer;
mod lend;
mod losses;
pub mod messenger;
pub mod ob1;
mod offences;
mod packet;
#[cfg(feature = "partitioned")]
pub mod partitioned;
#[cfg(not(feature = "partitioned"))]
#[path = "unpartitioned.rs"]
mod partitioned;
mod peers;
#[cfg(test)]
mod planted;
pub mod pml;
pub mod progress;
mod protocols;
#[cfg(feature = "engines")]
mod record;
#[cfg(not(feature = "engines"))]
#[path = "unrecorded.rs"]
mod record;
pub mod rma;
#[cfg(all(test, not(loom), feature = "partitioned"))]
mod schedules;
mod service;
mod services;
pub mod settings;
mod sleepers;
mod table;
pub mod types;
pub mod wait;
mod wakeup;

pub use descriptor::WaitDescriptor;
pub use driver::{Demand, Driven, Driver};
pub use dumps::{ContextNames, Dumps, Until, WaitsFor};
pub use error::{Error, Result};
pub use guard::{Biased, Entered, Guarded, ThreadLevel};
pub use layer::Layer;
pub use messenger::{AccessId, AtOnce, Messenger, Region, Target, Waits, Window};
#[cfg(feature = "partitioned")]
pub use partitioned::{PartitionedRecv, PartitionedSend, Policy};
pub use pml::{LocalRank, Pml, PointToPoint, Statistics};
pub use progress::ProgressThread;
pub use protocols::Protocol;
pub use record::Recording;
pub use settings::{SETTINGS, open};
pub use tagwire_base::slab;
pub use tagwire_matching::{Engines, QueueStats, Stats};
pub use tagwire_rails::Given;
pub use types::{
    CancelOutcome, ContextPair, Counters, Failure, MessageId, RequestId, SendMode, Status,
    TagLimits,
};
pub use wait::{WaitMode, WaitPolicy};
pub use wakeup::Wakeup;
