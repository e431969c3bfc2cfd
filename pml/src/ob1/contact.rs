//! First contact, as ob1 does its part of it.

use tagwire_base::Rank;
use tagwire_transport::{AmHeader, Capabilities, Class, EndpointId, Post, Transport};

use super::core::Core;
use super::driver::Driver;
use super::peer::{Health, Peer, PeerIndex};
use super::protocols;
use crate::contacts::Contacts;
use crate::lane::Lane;
use crate::peers::LANE;
use crate::types::Failure;

impl Driver {
    /// Returns ob1, as far as contact goes.
    pub(super) const fn contacts<'a>(&'a mut self, core: &'a mut Core) -> Ob1Contacts<'a> {
        Ob1Contacts { driver: self, core }
    }

    /// A peer can be sent to: how, its transport knows.
    fn note_connected(&mut self, core: &mut Core, index: PeerIndex) {
        let Some(peer) = core.lane.peers.get_mut(index) else {
            return;
        };
        let preference = self.rail.preference(peer.endpoint);
        let (capabilities, limits) = self.rail.towards(peer.endpoint);
        let terms = self.options.terms(preference, capabilities, &limits);
        peer.path = protocols::path(terms, &self.options.rendezvous);
        peer.connected = true;
        peer.refresh_clear();
        let terms = &peer.path.terms;
        let coalesces = terms.coalesce > 0;
        if self.options.exposes
            && !coalesces
            && terms.capabilities.contains(Capabilities::COOPERATIVE)
        {
            core.expose_from = core.expose_from.min(terms.eager.saturating_add(1));
        }
        core.coalescing.enabled |= coalesces;
        core.has_extras |= coalesces;
    }
}

/// ob1, as far as contact goes.
pub(super) struct Ob1Contacts<'a> {
    driver: &'a mut Driver,
    core: &'a mut Core,
}

impl Contacts for Ob1Contacts<'_> {
    type Peer = Peer;

    fn lane(&mut self) -> &mut Lane<Peer> {
        &mut self.core.lane
    }

    fn transport(&mut self) -> &mut dyn Transport {
        &mut *self.driver.rail
    }

    fn send_packet(&mut self, to: EndpointId, header: AmHeader, payload: &[u8]) -> Post {
        let rail = &mut self.driver.rail;
        rail.send(LANE, to, Class::Control, header, payload)
    }

    fn look_after_peers(&mut self) {
        self.driver.rail.look_after_peers(self.core);
    }

    fn receive(&mut self) {
        let _ = self.driver.rail.progress(LANE, self.core);
    }

    fn peer_failed(&mut self, rank: Rank) {
        self.driver.rail.peer_failed(rank, self.core);
    }

    fn note_connected(&mut self, index: PeerIndex) {
        self.driver.note_connected(self.core, index);
    }

    fn lose(&mut self, index: PeerIndex, failure: Failure) {
        self.core.lose(index, Health::of(failure));
    }

    fn member_gone(&mut self, rank: Rank, failure: Failure) {
        self.core.member_gone(rank, failure);
    }

    fn member_left(&mut self, rank: Rank) {
        self.driver.rail.peer_left(rank, self.core);
        self.member_gone(rank, Failure::PeerLeft(rank));
    }
}
