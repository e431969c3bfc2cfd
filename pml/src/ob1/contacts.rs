//! First contact, as ob1 does its part of it.

use tagwire_base::{Bootstrap, Rank};
use tagwire_transport::Transport;

use super::config::LAYER;
use super::core::Core;
use super::driver::Driver;
use super::peer::{Health, Peer, PeerIndex, Peers};
use super::protocols;
use crate::contacts::{self, Contacts, Reach};
use crate::error::Result;
use crate::peers::LANE;
use crate::types::Failure;

impl Driver {
    /// Takes note of the ends of members; see [`contacts::hear_of_ends`].
    pub(super) fn hear_of_ends(&mut self, core: &mut Core) {
        contacts::hear_of_ends(&mut Ob1Contacts { driver: self, core });
    }

    /// Returns the peer that `rank` is, connected; see [`contacts::contact`].
    pub(super) fn contact(&mut self, core: &mut Core, rank: Rank) -> Result<PeerIndex> {
        contacts::contact(&mut Ob1Contacts { driver: self, core }, rank)
    }

    /// Connects to a peer; see [`contacts::ensure_connected`].
    pub(super) fn ensure_connected(&mut self, core: &mut Core, index: PeerIndex) -> Result<()> {
        contacts::ensure_connected(&mut Ob1Contacts { driver: self, core }, index)
    }

    /// Returns whether a peer can be sent to now; see [`contacts::reach`].
    pub(super) fn reach(&mut self, core: &mut Core, index: PeerIndex) -> Reach {
        contacts::reach(&mut Ob1Contacts { driver: self, core }, index)
    }

    /// A peer can be sent to: how, its transport knows.
    fn note_connected(&mut self, core: &mut Core, index: PeerIndex) {
        let Some(peer) = core.peers.get_mut(index) else {
            return;
        };
        let preference = self.rail.preference(peer.endpoint);
        let (capabilities, limits) = self.rail.towards(peer.endpoint);
        let terms = self.options.terms(preference, capabilities, &limits);
        peer.path = protocols::path(terms, &self.options.rendezvous);
        peer.connected = true;
        peer.refresh_clear();
        let coalesces = peer.path.terms.coalesce > 0;
        core.coalescing.enabled |= coalesces;
        core.has_extras |= coalesces;
    }
}

/// ob1, as far as contact goes.
struct Ob1Contacts<'a> {
    driver: &'a mut Driver,
    core: &'a mut Core,
}

impl Contacts for Ob1Contacts<'_> {
    const LAYER: &'static str = LAYER;
    type Peer = Peer;

    fn bootstrap(&mut self) -> &mut dyn Bootstrap {
        &mut *self.driver.bootstrap
    }

    fn transport(&mut self) -> &mut dyn Transport {
        &mut *self.driver.rail
    }

    fn peers(&mut self) -> &mut Peers {
        &mut self.core.peers
    }

    fn out_of_reach(&mut self) -> &mut Vec<PeerIndex> {
        &mut self.driver.out_of_reach
    }

    fn loss_of(&self, rank: Rank) -> Option<Failure> {
        self.core.losses.of(rank)
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
}
