//! Tagwire over libfabric: any provider with reliable datagrams, or with datagrams.
//!
//! The library is opened at run time, by the name of the system's or by a file that the user
//! names; one binary works with every version from 1.17 on.
//!
//! ```text
//!      Ofi (ByteTransport)      OfiMatch (MatchTransport)     OfiDatagram (ByteTransport)
//!            put, get               tagged messages             may lose messages
//!              \                       /                              |
//!               +------- engine ------+                               |
//!                          |              peers, credit,              |
//!                          |              active messages             |
//!                          +-----------------------------------------+
//!                          |
//!                        fabric               objects, memory, posting: all `unsafe` is here
//!                          |
//!                    libfabric-sys            bindings, dlopen
//! ```

mod byte;
mod config;
mod datagram;
mod devices;
mod engine;
mod error;
mod fabric;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod fixture;
mod interface;
mod kind;
mod link;
mod matching;
mod open;
mod plugins;
mod quirks;
mod registrations;
mod survey;
mod waiter;
mod wire;

pub use byte::Ofi;
pub use config::{Notices, OfiOptions, SETTINGS};
pub use datagram::OfiDatagram;
pub use kind::OfiKind;
pub use matching::OfiMatch;
pub use survey::{ProviderReport, Survey, survey};

/// The name in settings and reports.
const NAME: &str = "ofi";
