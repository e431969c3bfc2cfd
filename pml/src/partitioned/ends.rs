//! The two ends of a channel, as those see them who match and drive them for their rank.

use std::fmt::Debug;

use super::matched::Matched;
use crate::error::Result;
use crate::layer::Layer;

/// A receiving end, as it is matched.
pub(super) trait ReceivingEnd: Send + Sync {
    /// Its channel is about to be opened: the buffer is lent from here on.
    fn opens(&self);

    /// Takes what matching came to.
    fn matched(&self, layer: &mut Layer, matched: Result<Matched>);
}

/// A sending end, as it is driven.
pub(super) trait SendingEnd: Debug + Send + Sync {
    /// Whether the rank's alarm has to look after it.
    fn has_timer(&self) -> bool;

    /// Posts what is due, as the rank's alarm asks. Returns when it is to ask again.
    fn ring(&self) -> u64;

    /// Joins the channel and posts what could not be posted before.
    fn drive(&self, layer: &mut Layer);
}
