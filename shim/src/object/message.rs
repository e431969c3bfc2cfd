//! Messages that were taken out of matching, by handle.

use std::sync::Arc;

use tagwire_coll::Members;
use tagwire_pml::MessageId;

use crate::abi::Comm;

/// A message that was taken out of matching.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) id: MessageId,
    pub(crate) members: Option<Arc<Members>>,
    pub(crate) comm: Comm,
}
