//! The transport over UCX: active messages as a byte transport, the tag interface as one that
//! matches. The library is loaded at run time.
//!
//! ```text
//!     Ucx (ByteTransport)        UcxMatch (MatchTransport)
//!              \                   /
//!               Core: peers, hello and goodbye, operations under way, sleeping
//!                       |
//!               Worker, Context: safe calls of C    <->    Shared: what callbacks write to
//!                       |
//!               tagwire-ucx-sys: libucp.so.0, by dlopen
//! ```
//!
//! One rank is one context and one worker (a lane), driven by one thread at a time. UCX calls
//! back from within its progress, and, for messages to the own rank, from within sends: callbacks
//! take messages up or note what ended, and everything else is done after UCX has returned.

mod absence;
mod config;
mod contact;
mod core;
mod kind;
mod layout;
mod library;
mod link;
mod operations;
mod piece;
mod registrations;
mod settings;
mod shared;
mod survey;
mod upcalls;
mod waiter;
mod wire;
mod worker;

mod byte;
mod matching;

pub use byte::Ucx;
pub use config::{SETTINGS, UcxOptions};
pub use kind::UcxKind;
pub use matching::UcxMatch;
pub use survey::{Offer, Survey, survey};

/// The name in settings and reports.
const NAME: &str = "ucx";
