//! The table of a layer's peers: how one is found by rank, and by endpoint.

use std::collections::HashMap;

use tagwire_base::{Rank, Sequence};
use tagwire_transport::{EndpointId, Lane};

use crate::error::{Error, Result};
use crate::types::Failure;

/// All traffic of a rank is on one lane.
pub(crate) const LANE: Lane = Lane(0);

/// A peer's place in the table of peers, in the order of first contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerIndex(pub u32);

impl PeerIndex {
    pub(crate) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A peer of either layer, as far as contact goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contact {
    pub rank: Rank,
    pub endpoint: EndpointId,
    /// It can be sent to, and was not only heard.
    pub connected: bool,
    /// How it is gone, if it is.
    pub lost: Option<Failure>,
}

/// The peer of a layer.
pub(crate) trait Known {
    /// Returns a peer that nothing was sent to and nothing came from: the first message each way has the number `first`.
    fn new(rank: Rank, endpoint: EndpointId, first: Sequence) -> Self;

    fn contact(&self) -> Contact;
}

/// Which peers can be heard of.
pub trait Living {
    /// Whether the peer is in contact, and has neither left nor failed.
    fn is_alive(&self, index: PeerIndex) -> bool;
}

impl<P: Known> Living for Peers<P> {
    fn is_alive(&self, index: PeerIndex) -> bool {
        let peer = self.get(index);
        peer.is_some_and(|peer| peer.contact().lost.is_none())
    }
}

/// How many results of the map are kept apart.
const RECENT: usize = 16;

/// The peers in contact. Costs nothing for ranks that nobody talked to.
#[derive(Debug)]
pub(crate) struct Peers<P> {
    /// What messages with a peer are counted from.
    first: Sequence,
    list: Vec<P>,
    by_rank: HashMap<Rank, PeerIndex>,
    by_endpoint: Vec<PeerIndex>,
    /// The last results for some ranks, so that the map is out of the hot path.
    recent: [(u32, PeerIndex); RECENT],
}

impl<P: Known> Peers<P> {
    pub(crate) fn new(first: Sequence) -> Self {
        Self {
            first,
            list: Vec::new(),
            by_rank: HashMap::new(),
            by_endpoint: Vec::new(),
            recent: [(u32::MAX, PeerIndex::NONE); RECENT],
        }
    }

    /// The peer that `rank` is, if in contact.
    #[inline]
    pub(crate) fn find(&mut self, rank: Rank) -> Option<PeerIndex> {
        let place = rank.index() % RECENT;
        let (known, peer) = self.recent[place];
        if known == rank.as_u32() {
            return Some(peer);
        }
        let peer = *self.by_rank.get(&rank)?;
        self.recent[place] = (rank.as_u32(), peer);
        Some(peer)
    }

    /// The peer that `rank` is, if it was asked for lately.
    #[inline(always)]
    pub(crate) fn known(&mut self, rank: Rank) -> Option<&mut P> {
        let (known, peer) = self.recent[rank.index() % RECENT];
        if known != rank.as_u32() {
            return None;
        }
        self.list.get_mut(peer.index())
    }

    /// The peer that `rank` is, entered as `new` if it is new.
    pub(crate) fn enter(&mut self, rank: Rank, endpoint: EndpointId) -> PeerIndex {
        let peer = self.find(rank).unwrap_or_else(|| {
            let peer = PeerIndex(self.list.len() as u32);
            self.list.push(P::new(rank, endpoint, self.first));
            self.by_rank.insert(rank, peer);
            self.recent[rank.index() % RECENT] = (rank.as_u32(), peer);
            peer
        });
        if self.by_endpoint.len() <= endpoint.index() {
            self.by_endpoint
                .resize(endpoint.index() + 1, PeerIndex::NONE);
        }
        self.by_endpoint[endpoint.index()] = peer;
        peer
    }

    #[inline]
    pub(crate) fn of_endpoint(&self, endpoint: EndpointId) -> Option<PeerIndex> {
        self.by_endpoint
            .get(endpoint.index())
            .copied()
            .filter(|peer| *peer != PeerIndex::NONE)
    }

    /// The peer at `endpoint`, and its place.
    #[inline(always)]
    pub(crate) fn at_endpoint(&mut self, endpoint: EndpointId) -> Option<(PeerIndex, &mut P)> {
        let place = *self.by_endpoint.get(endpoint.index())?;
        // No peer has the place that stands for none.
        Some((place, self.list.get_mut(place.index())?))
    }

    /// Returns where a peer in contact is reached.
    ///
    /// # Errors
    /// [`Error::StaleRequest`] when it is in no contact.
    pub(crate) fn endpoint(&self, peer: PeerIndex) -> Result<EndpointId> {
        let peer = self.get(peer).ok_or(Error::StaleRequest)?;
        Ok(peer.contact().endpoint)
    }

    #[inline]
    pub(crate) fn get(&self, peer: PeerIndex) -> Option<&P> {
        self.list.get(peer.index())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, peer: PeerIndex) -> Option<&mut P> {
        self.list.get_mut(peer.index())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PeerIndex, &P)> {
        self.list
            .iter()
            .enumerate()
            .map(|(i, peer)| (PeerIndex(i as u32), peer))
    }

    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }
}
