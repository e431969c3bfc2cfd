//! The transport that matches: UCX's tag interface.
//!
//! UCX keeps the list of posted receives and of unexpected messages; see [`layout`](crate::layout)
//! for what it compares. What it does not do is done here:
//!
//! - It keeps unexpected messages without bound. Sends count against an allowance of their peer
//!   (`flow.rs`); past it they are sent as synchronous ones, which end with the match.
//! - It does not show its unexpected messages, and keeps those of dead peers for ever. Where that
//!   matters they are taken out of it into a list of ours (`unexpected.rs`), in which receives and
//!   probes look first.
//! - Of a message that is longer than its receive it gives no bytes.

mod flow;
mod progress;
mod rank;
mod unexpected;

pub use rank::UcxMatch;
