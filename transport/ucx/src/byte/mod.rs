//! The byte transport: active messages.

mod endpoint;
mod progress;
mod remote;
mod write;

pub use endpoint::Ucx;
