//! What stands in place of partitioned operations in a build without them: a rank has none.

use tagwire_base::{Clock, ContextId};

use crate::layer::Layer;

/// The partitioned operations of a rank: none.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) clock: Clock,
}

impl Registry {
    #[inline(always)]
    pub(crate) const fn is_idle(&self) -> bool {
        true
    }

    pub(crate) const fn drive(&self, _: &mut Layer) {}

    pub(crate) const fn forget_context(&self, _: &mut Layer, _: ContextId) {}
}
