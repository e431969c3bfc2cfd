//! Message matching: which posted receive takes which message.
//!
//! An [`Engine`] holds two queues: receives that were *posted* and have no message yet, and
//! *unexpected* messages that have no receive yet. Its inputs are calls, its outputs are decisions;
//! it has no threads, no clock and no I/O, and knows nothing of buffers: what an entry stands for
//! is the caller's, who gives a [`Cookie`] with it and gets the cookie back.
//!
//! The rules are those of MPI-5.0, sections 3.2.4 and 3.5:
//!
//! - a message goes to the *earliest posted* receive that accepts it;
//! - a receive takes the *earliest arrived* message that it accepts;
//! - contexts never mix, and any-source and any-tag obey the same order as exact receives;
//! - any-tag never takes an internal (negative) tag.
//!
//! [`Oracle`] states them in the plainest way, and every engine is tested against it. The engines
//! of jobs are [`PlainList`], [`PerSource`] and the default, [`HashBins`]; the feature `engines` adds
//! published ones. [`AnyEngine`] chooses among all by name at run time ([`registry`]), and [`Engines`] among these and those that a program
//! adds ([`kit`]). Each is generic over its [`storage`], so that the same code runs in
//! private memory and in an arena that processes share. `docs/matching.md` has the pictures.
//!
//! ```
//! use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
//! use tagwire_matching::{
//!     AnyEngine, ArriveOutcome, Capacity, Cookie, Engine, Envelope, Pattern, PostOutcome,
//! };
//!
//! let mut engine = AnyEngine::by_name(AnyEngine::DEFAULT, Capacity::default())?;
//! let any = Pattern {
//!     source: SourceSelector::ANY,
//!     tag: TagSelector::ANY,
//!     context: ContextId::WORLD,
//! };
//! assert!(matches!(engine.post(any, Cookie(7)), PostOutcome::Queued(_)));
//! let message = Envelope {
//!     source: Rank::new(3),
//!     tag: Tag::user(42).expect("not negative"),
//!     context: ContextId::WORLD,
//! };
//! assert_eq!(engine.arrive(message, Cookie(0)), ArriveOutcome::Matched(Cookie(7)));
//! # Ok::<(), tagwire_matching::Error>(())
//! ```

#![forbid(unsafe_code)]

mod any;
pub mod bins;
mod description;
mod engine;
#[cfg(feature = "engines")]
mod engines;
mod envelope;
mod error;
mod factory;
#[cfg(test)]
mod hostile_tests;
#[cfg(feature = "engines")]
pub mod judged;
pub mod kit;
mod known;
pub mod list;
pub mod oracle;
mod promises;
mod queue;
#[cfg(feature = "engines")]
mod recorded;
pub mod registry;
pub mod sources;
pub mod storage;
#[cfg(feature = "engines")]
pub mod trace;

pub use any::{AnyEngine, OfTable, Other};
pub use bins::HashBins;
pub use engine::{
    ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, QueueStats, Stats,
};
#[cfg(feature = "engines")]
pub use engines::{offload, ucx::bin_of as ucx_bin};
pub use envelope::{Cookie, Envelope, Handle, Pattern};
pub use error::{Error, Result};
pub use known::{Engines, Loader};
pub use list::PlainList;
pub use oracle::Oracle;
pub use registry::{EngineName, Grade};
pub use sources::PerSource;
pub use storage::Capacity;
