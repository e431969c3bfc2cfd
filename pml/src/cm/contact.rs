//! First contact, as cm does its part of it.

use tagwire_base::Rank;
use tagwire_transport::{AmHeader, EndpointId, Post, Transport};

use super::Cm;
use super::driver::MatchDriver;
use super::peer::{Peer, PeerIndex};
use super::state::State;
use crate::contacts::Contacts;
use crate::lane::Lane;
use crate::peers::LANE;
use crate::types::Failure;

impl Cm {
    /// Returns cm, as far as contact goes.
    pub(super) const fn contacts(&mut self) -> CmContacts<'_> {
        self.driver.contacts(&mut self.core)
    }
}

impl MatchDriver {
    /// Returns cm, as far as contact goes.
    pub(super) const fn contacts<'a>(&'a mut self, core: &'a mut State) -> CmContacts<'a> {
        CmContacts { driver: self, core }
    }
}

/// cm, as far as contact goes.
pub(super) struct CmContacts<'a> {
    driver: &'a mut MatchDriver,
    core: &'a mut State,
}

impl Contacts for CmContacts<'_> {
    type Peer = Peer;

    fn lane(&mut self) -> &mut Lane<Peer> {
        &mut self.core.lane
    }

    fn transport(&mut self) -> &mut dyn Transport {
        &mut *self.driver.rail
    }

    fn send_packet(&mut self, to: EndpointId, header: AmHeader, payload: &[u8]) -> Post {
        let remote = self.driver.rail.remote();
        remote.map_or(Post::Unsupported, |remote| {
            remote.send_packet(to, header, payload)
        })
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
        if let Some(peer) = self.core.lane.peers.get_mut(index) {
            peer.connected = true;
            peer.refresh_clear();
        }
    }

    fn lose(&mut self, index: PeerIndex, failure: Failure) {
        self.core.lose(index, failure);
    }

    fn member_gone(&mut self, rank: Rank, failure: Failure) {
        self.core.member_gone(rank, failure);
    }

    fn member_left(&mut self, rank: Rank) {
        self.driver.leavers.push((rank, 0));
    }

    fn is_leaving(&self, rank: Rank) -> bool {
        self.driver
            .leavers
            .iter()
            .any(|(leaver, _)| *leaver == rank)
    }
}
