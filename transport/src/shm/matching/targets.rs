//! What is known of peers as targets: allowances, and messages that are kept back.

use std::collections::VecDeque;

use crate::message::EndpointId;
use crate::shm::matching::table::Table;

/// What is known of one peer as a target.
#[derive(Default)]
pub(super) struct Target {
    /// Messages sent that count against the allowance.
    pub(super) sent: u64,
    /// How many there may be, as far as known.
    pub(super) allowed: u64,
    /// Messages sent as envelopes only, because there was no allowance for more.
    pub(super) envelopes: u64,
    /// Sends that are kept back, in order.
    pub(super) held: VecDeque<u32>,
    /// Among [`Targets::dirty`].
    pub(super) dirty: bool,
    /// Its match list, once it was visited.
    pub(super) table: Option<Table>,
    /// Its lock's word when it was last looked at: it changes while the peer is inside calls.
    pub(super) seen_lock: u64,
    /// How many receives it had posted when the kept messages were last compared with them ...
    pub(super) seen_posts: u64,
    /// ... and how many of the kept ones were.
    pub(super) compared: usize,
}

/// The peers as targets, by endpoint.
#[derive(Default)]
pub(super) struct Targets {
    entries: Vec<Target>,
    /// Peers with messages of ours that may lie untaken, or that we keep back.
    pub(super) dirty: Vec<EndpointId>,
}

impl Targets {
    /// Makes room for so many.
    pub(super) fn grow(&mut self, len: usize) {
        self.entries.resize_with(len, Target::default);
    }

    #[inline]
    pub(super) fn get_mut(&mut self, to: EndpointId) -> Option<&mut Target> {
        self.entries.get_mut(to.index())
    }

    /// Returns the target of an endpoint that is known.
    #[inline]
    pub(super) fn of(&self, to: EndpointId) -> &Target {
        &self.entries[to.index()]
    }

    /// Returns the target of an endpoint that is known.
    #[inline]
    pub(super) fn of_mut(&mut self, to: EndpointId) -> &mut Target {
        &mut self.entries[to.index()]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Target> {
        self.entries.iter()
    }

    /// Notes that messages for a peer may lie untaken, or are kept back.
    pub(super) fn mark_dirty(&mut self, to: EndpointId) {
        let target = &mut self.entries[to.index()];
        if !target.dirty {
            target.dirty = true;
            self.dirty.push(to);
        }
    }

    /// Returns whether anything is kept back.
    pub(super) fn holds(&self) -> bool {
        let holds = |to: &EndpointId| !self.of(*to).held.is_empty();
        self.dirty.iter().any(holds)
    }

    /// Forgets what is kept back for a peer that is gone.
    pub(super) fn end_peer(&mut self, peer: EndpointId) {
        if let Some(target) = self.get_mut(peer) {
            target.held.clear();
            target.compared = 0;
            target.table = None;
        }
    }
}
