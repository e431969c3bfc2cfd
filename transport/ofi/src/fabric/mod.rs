//! libfabric's objects behind calls that are safe: whatever a provider may still touch stays
//! where it is until the provider has let go of it.

mod context;
#[cfg(test)]
pub(crate) mod faulty;
mod info;
mod memory;
mod net;
pub(crate) mod order;
mod post;
mod tagged;

pub(crate) use context::OpId;
pub(crate) use info::{Info, Infos, Provider, Wanted, file_of, mode_names, names};
pub(crate) use memory::{BlockId, Place, Registered};
pub(crate) use net::{BATCH, Completion, Fault, Net, Peer, Reading};
pub(crate) use post::{Refusals, Remote, Took};
pub(crate) use tagged::Pattern;
