//! The byte transport: active messages.

mod endpoint;
mod progress;
mod remote;

pub use endpoint::Ucx;
