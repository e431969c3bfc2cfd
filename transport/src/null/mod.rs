//! A transport without a wire, and the template for new ones.
//!
//! **What it is for.** Messages to the own rank are queued and delivered by progress; messages to
//! any other rank are accepted and vanish. So the layers above can be measured alone: their cost
//! per send, per match, per completion, without a network that hides it. It is also all that a
//! job of one rank needs.
//!
//! **How to make a transport from it.** Copy the folder; the files mean the same in each one:
//!
//! ```text
//!     mod.rs        what it is, what may be touched from outside
//!     config.rs     its sizes, and what the user may set
//!     rank.rs       the object that a rank owns: peers, and the verbs towards them
//!     kind.rs       how the settings name it
//!     progress.rs   what has arrived: deliveries, completions, peer events
//!     tests.rs      what is special to this transport
//! ```
//!
//! What all transports have in common is tested by the kit in the crate `tagwire-conformance`:
//! hand it a factory, and claim a capability only when its tier passes.

mod config;
mod kind;
mod memory;
mod progress;
mod rank;
#[cfg(test)]
mod tests;

pub use config::NullOptions;
pub use kind::NullKind;
pub use rank::NullTransport;

/// The name in settings and reports.
const NAME: &str = "null";
