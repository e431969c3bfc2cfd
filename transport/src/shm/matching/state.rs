//! All that a rank that matches has besides the byte transport underneath.

use std::sync::atomic::Ordering::Relaxed;

use tagwire_base::Rank;

use crate::message::EndpointId;
use crate::shm::matching::completions::Completions;
use crate::shm::matching::controls::Controls;
use crate::shm::matching::list::MatchList;
use crate::shm::matching::receiver::{Breach, Receiver};
use crate::shm::matching::sender::Sender;

/// The two halves of a rank, and what they share.
pub(super) struct State {
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    pub(super) controls: Controls,
    pub(super) completions: Completions,
    /// Who is behind an endpoint.
    pub(super) ranks: Vec<Rank>,
    /// Ranks that the bootstrap calls failed, to be looked at when the lock is to be had.
    pub(super) failures: Vec<Rank>,
    /// Peers that sent what no correct peer sends.
    pub(super) broken: Vec<(EndpointId, Breach)>,
}

impl State {
    pub(super) fn new(rank: Rank, list: MatchList) -> Self {
        Self {
            receiver: Receiver::new(rank, list),
            sender: Sender::default(),
            controls: Controls::default(),
            completions: Completions::default(),
            ranks: Vec::new(),
            failures: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// Takes note of who is behind an endpoint.
    pub(super) fn know(&mut self, endpoint: EndpointId, rank: Rank) {
        let index = endpoint.index();
        if self.ranks.len() <= index {
            self.ranks.resize(index + 1, Rank::new(0));
            self.sender.grow(index + 1);
        }
        self.ranks[index] = rank;
    }

    /// Takes the messages of a peer that is gone out of matching, and has its allowance given to others.
    pub(super) fn forget_messages(&mut self, endpoint: EndpointId) {
        if let Some(&rank) = self.ranks.get(endpoint.index()) {
            self.receiver.list.forget_messages(rank);
        }
        let counts = &self.receiver.list.table.map.head().counts;
        counts.starved.store(1, Relaxed);
    }

    /// Ends what waits for a peer that is gone, but for transfers, which end by themselves.
    pub(super) fn end_operations(&mut self, endpoint: EndpointId) {
        self.sender.end_peer(endpoint, &mut self.completions);
        self.receiver.end_peer(endpoint, &mut self.completions);
    }
}
