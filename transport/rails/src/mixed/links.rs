//! Peers of a mixture: one endpoint each, whatever rails they are in contact by.

use std::collections::HashMap;

use tagwire_base::Rank;
use tagwire_transport::{Arrival, EndpointId, Outcome, PeerEvent, Token, Upcalls};

/// A peer.
#[derive(Debug)]
struct Link {
    rank: Rank,
    /// The rail that goes there, and its name for the peer.
    way: Option<(usize, EndpointId)>,
    /// The rails by which the peer has come into contact, and not left.
    up: u32,
    /// The layer above has been told of it.
    known: bool,
    /// It has left or failed, and the layer above has been told.
    gone: bool,
}

/// All peers.
#[derive(Debug)]
pub(super) struct Links {
    links: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
    /// For each endpoint of the first rail, ours: at hand, since every message on one host looks here.
    of_first: Vec<Option<EndpointId>>,
    /// The same for the rails after it.
    of_others: Vec<Vec<Option<EndpointId>>>,
    /// Peers that one rail has found failed, for the others.
    lost: Vec<(usize, Rank)>,
}

impl Links {
    pub(super) fn new(rails: usize) -> Self {
        Self {
            links: Vec::new(),
            by_rank: HashMap::new(),
            of_first: Vec::new(),
            of_others: vec![Vec::new(); rails - 1],
            lost: Vec::new(),
        }
    }

    /// The rail to `endpoint`, and what it calls the peer.
    #[inline(always)]
    pub(super) fn way(&self, endpoint: EndpointId) -> Option<(usize, EndpointId)> {
        self.links.get(endpoint.index())?.way
    }

    /// The endpoint of a peer to which there is a way.
    pub(super) fn connected(&self, peer: Rank) -> Option<EndpointId> {
        let endpoint = *self.by_rank.get(&peer)?;
        self.way(endpoint).map(|_| endpoint)
    }

    /// `peer` is reached by `rail`, which calls it `theirs`.
    pub(super) fn connect(&mut self, peer: Rank, rail: usize, theirs: EndpointId) -> EndpointId {
        let ours = self.endpoint(peer, rail, theirs);
        self.links[ours.index()].way = Some((rail, theirs));
        ours
    }

    #[inline]
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(super) fn next_lost(&mut self) -> Option<(usize, Rank)> {
        self.lost.pop()
    }

    /// Our endpoint for `rank`, which `rail` calls `theirs`.
    fn endpoint(&mut self, rank: Rank, rail: usize, theirs: EndpointId) -> EndpointId {
        let next = EndpointId(self.links.len() as u32);
        let ours = *self.by_rank.entry(rank).or_insert(next);
        if ours == next {
            self.links.push(Link {
                rank,
                way: None,
                up: 0,
                known: false,
                gone: false,
            });
        }
        let names = match rail.checked_sub(1) {
            None => &mut self.of_first,
            Some(index) => &mut self.of_others[index],
        };
        if names.len() <= theirs.index() {
            names.resize(theirs.index() + 1, None);
        }
        names[theirs.index()] = Some(ours);
        ours
    }

    #[inline(always)]
    fn ours(&self, rail: usize, theirs: EndpointId) -> Option<EndpointId> {
        let names = match rail.checked_sub(1) {
            None => &self.of_first,
            Some(index) => self.of_others.get(index)?,
        };
        names.get(theirs.index()).copied().flatten()
    }

    fn link(&mut self, rail: usize, theirs: EndpointId) -> Option<(EndpointId, &mut Link)> {
        let ours = self.ours(rail, theirs)?;
        Some((ours, self.links.get_mut(ours.index())?))
    }
}

/// Stands between a rail and the layer above.
pub(super) struct RailUpcalls<'a, U: ?Sized> {
    rail: usize,
    links: &'a mut Links,
    above: &'a mut U,
}

impl<'a, U: Upcalls + ?Sized> RailUpcalls<'a, U> {
    #[inline]
    pub(super) fn new(rail: usize, links: &'a mut Links, above: &'a mut U) -> Self {
        Self { rail, links, above }
    }

    fn up(&mut self, theirs: EndpointId, rank: Rank) {
        let ours = self.links.endpoint(rank, self.rail, theirs);
        let link = &mut self.links.links[ours.index()];
        link.up |= 1 << self.rail;
        // It replies on the way that the peer has found, unless it has its own.
        if link.way.is_none() {
            link.way = Some((self.rail, theirs));
        }
        if !std::mem::replace(&mut link.known, true) {
            let endpoint = ours;
            self.above.peer(PeerEvent::Up { endpoint, rank });
        }
    }

    fn left(&mut self, theirs: EndpointId) {
        let bit = 1 << self.rail;
        if let Some((ours, link)) = self.links.link(self.rail, theirs) {
            link.up &= !bit;
            // By another rail more may come.
            if link.up == 0 && !std::mem::replace(&mut link.gone, true) {
                self.above.peer(PeerEvent::Left(ours));
            }
        }
    }

    fn failed(&mut self, theirs: EndpointId) {
        if let Some((ours, link)) = self.links.link(self.rail, theirs)
            && !std::mem::replace(&mut link.gone, true)
        {
            let rank = link.rank;
            self.links.lost.push((self.rail, rank));
            self.above.peer(PeerEvent::Failed(ours));
        }
    }
}

impl<U: Upcalls + ?Sized> Upcalls for RailUpcalls<'_, U> {
    #[inline(always)]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let Some(from) = self.links.ours(self.rail, arrival.from) else {
            return;
        };
        self.above.deliver(Arrival { from, ..arrival });
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.above.complete(token, outcome);
    }

    fn notice(&mut self, immediate: u64) {
        self.above.notice(immediate);
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => self.up(endpoint, rank),
            PeerEvent::Left(endpoint) => self.left(endpoint),
            PeerEvent::Failed(endpoint) => self.failed(endpoint),
            PeerEvent::Protocol(endpoint, error) => {
                let ours = endpoint.and_then(|theirs| self.links.ours(self.rail, theirs));
                self.above.peer(PeerEvent::Protocol(ours, error));
            }
            _ => {}
        }
    }
}
