//! What cm knows of a peer, and how it finds a peer by rank.

use std::collections::{HashMap, VecDeque};

use tagwire_base::Rank;
use tagwire_transport::EndpointId;

use crate::slab::Handle;
use crate::types::Failure;

/// A peer's place in the table of peers, in the order of first contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PeerIndex(pub u32);

impl PeerIndex {
    pub(super) const NONE: Self = Self(u32::MAX);
}

/// A peer in contact.
#[derive(Debug)]
pub(super) struct Peer {
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

impl Peer {
    /// Sets the fast path's flag from what it stands for.
    pub(super) fn refresh_clear(&mut self) {
        self.clear = self.connected && self.lost.is_none() && self.queue.is_empty();
    }
}

/// The peers in contact. Costs nothing for ranks that nobody talked to.
#[derive(Debug)]
pub(super) struct Peers {
    list: Vec<Peer>,
    by_rank: HashMap<Rank, PeerIndex>,
    by_endpoint: Vec<PeerIndex>,
    /// The last answers for some ranks, so that the map is out of the hot path.
    recent: [(u32, PeerIndex); Self::RECENT],
}

impl Peers {
    const RECENT: usize = 16;

    pub(super) fn new() -> Self {
        Self {
            list: Vec::new(),
            by_rank: HashMap::new(),
            by_endpoint: Vec::new(),
            recent: [(u32::MAX, PeerIndex::NONE); Self::RECENT],
        }
    }

    /// The peer that `rank` is, if in contact.
    #[inline]
    pub(super) fn find(&mut self, rank: Rank) -> Option<PeerIndex> {
        let place = rank.index() % Self::RECENT;
        let (known, peer) = self.recent[place];
        if known == rank.as_u32() {
            return Some(peer);
        }
        let peer = *self.by_rank.get(&rank)?;
        self.recent[place] = (rank.as_u32(), peer);
        Some(peer)
    }

    /// The peer that `rank` is, entered if new.
    pub(super) fn enter(&mut self, rank: Rank, endpoint: EndpointId) -> PeerIndex {
        let peer = self.find(rank).unwrap_or_else(|| {
            let peer = PeerIndex(self.list.len() as u32);
            self.list.push(Peer {
                rank,
                endpoint,
                connected: false,
                lost: None,
                clear: false,
                queue: VecDeque::new(),
            });
            self.by_rank.insert(rank, peer);
            peer
        });
        if self.by_endpoint.len() <= endpoint.index() {
            self.by_endpoint
                .resize(endpoint.index() + 1, PeerIndex::NONE);
        }
        self.by_endpoint[endpoint.index()] = peer;
        peer
    }

    pub(super) fn of_endpoint(&self, endpoint: EndpointId) -> Option<PeerIndex> {
        self.by_endpoint
            .get(endpoint.index())
            .copied()
            .filter(|peer| *peer != PeerIndex::NONE)
    }

    #[inline]
    pub(super) fn get(&self, peer: PeerIndex) -> Option<&Peer> {
        self.list.get(peer.0 as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, peer: PeerIndex) -> Option<&mut Peer> {
        self.list.get_mut(peer.0 as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.list.iter()
    }

    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }
}
