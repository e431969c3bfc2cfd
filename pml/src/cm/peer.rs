//! What cm knows of a peer, and how it finds a peer by rank.

use std::collections::VecDeque;

use tagwire_base::{Rank, Sequence};
use tagwire_transport::EndpointId;

pub(super) use crate::peers::PeerIndex;
use crate::peers::{Contact, Known};
use crate::slab::Handle;
use crate::types::Failure;

/// A peer in contact.
#[derive(Debug)]
pub(crate) struct Peer {
    pub rank: Rank,
    pub endpoint: EndpointId,
    /// The endpoint can be sent to: it was connected, not only heard from.
    pub connected: bool,
    /// How it is gone, if it is.
    pub lost: Option<Failure>,
    /// Fast path: connected, not lost, and nothing waits in front.
    pub clear: bool,
    /// Sends that wait for room, in order.
    pub queue: VecDeque<Handle>,
}

impl Known for Peer {
    fn new(rank: Rank, endpoint: EndpointId, _: Sequence) -> Self {
        Self {
            rank,
            endpoint,
            connected: false,
            lost: None,
            clear: false,
            queue: VecDeque::new(),
        }
    }

    fn contact(&self) -> Contact {
        Contact {
            rank: self.rank,
            endpoint: self.endpoint,
            connected: self.connected,
            lost: self.lost,
        }
    }
}

impl Peer {
    /// Sets the fast path's flag from what it stands for.
    pub(super) fn refresh_clear(&mut self) {
        self.clear = self.connected && self.lost.is_none() && self.queue.is_empty();
    }
}
