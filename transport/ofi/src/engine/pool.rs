//! Buffers for messages, and how long these may be.

use crate::fabric::{Net, Place};
use crate::wire::HEADER;

/// Longest message with its header. Providers send messages up to this length at once, without
/// asking the receiver first.
pub(crate) const MAX_WIRE: usize = 16 * 1024;

/// Longest payload that is copied.
pub(crate) const MAX_SEND: usize = MAX_WIRE - HEADER;

/// Messages longer than this, with their header, are not injected even where they could be.
pub(super) const MAX_INJECT: usize = 256;

/// Longest payload that is injected.
pub(crate) const MAX_INLINE: usize = MAX_INJECT - HEADER;

/// Buffers that come with each growth.
const GROWTH: usize = 16;

/// Buffers for messages whose bytes the provider may read for a while.
#[derive(Debug, Default)]
pub(super) struct SendPool {
    free: Vec<Place>,
}

impl SendPool {
    #[inline]
    pub(super) fn take(&mut self, net: &mut Net) -> Result<Place, i32> {
        match self.free.pop() {
            Some(place) => Ok(place),
            None => self.grow(net),
        }
    }

    #[inline]
    pub(super) fn put_back(&mut self, place: Place) {
        self.free.push(place);
    }

    /// As many buffers are there as were ever in use at once, which the windows of the peers bound.
    #[cold]
    fn grow(&mut self, net: &mut Net) -> Result<Place, i32> {
        let block = net.allocate(GROWTH * MAX_WIRE)?;
        let place = |number| Place {
            block,
            offset: number * MAX_WIRE,
        };
        self.free.extend((1..GROWTH).rev().map(place));
        Ok(place(0))
    }
}
