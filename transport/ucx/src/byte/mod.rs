//! The byte transport: active messages.

mod progress;
mod rank;
mod remote;
mod write;

pub use rank::Ucx;
