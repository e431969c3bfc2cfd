//! The byte transport: active messages.

mod endpoint;
mod progress;
mod remote;
mod write;

pub(crate) use endpoint::DATA_MESSAGES;
pub use endpoint::Ucx;
