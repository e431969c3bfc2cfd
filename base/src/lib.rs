//! The ground that every Tagwire crate stands on: identifiers, errors, the configuration
//! registry, clock, CPU topology, bootstrap, and the atomics shim that loom replaces.
//!
//! Nothing here knows of messages or transports. A rank is an object: no item of this crate
//! keeps process-wide state, but for the numbers of threads.

pub mod bootstrap;
pub mod clock;
pub mod config;
pub mod error;
pub mod hex;
pub mod host;
pub mod ids;
pub mod log;
pub mod named;
pub mod nearest;
pub mod owner;
pub mod prefetch;
pub mod slab;
pub mod sync;
pub mod thread;
pub mod ticks;
pub mod topology;
pub mod unwind;

pub use bootstrap::{Bootstrap, JobSecret, Locality, MemberEvent};
pub use clock::{Clock, ManualClock, Time};
pub use config::{Config, Registry, SETTINGS, Setting};
pub use error::{Error, Result};
pub use ids::{ContextId, Rank, Sequence, SourceSelector, Tag, TagSelector};
pub use owner::Owner;
