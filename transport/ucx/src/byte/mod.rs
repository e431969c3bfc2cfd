//! The byte transport: active messages.

mod endpoint;
mod progress;

pub use endpoint::Ucx;
