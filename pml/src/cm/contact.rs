//! First contact, as cm does its part of it.

use tagwire_base::{Bootstrap, Rank};
use tagwire_transport::Transport;

use super::peer::{Peer, PeerIndex, Peers};
use super::{Cm, LAYER};
use crate::contacts::Contacts;
use crate::peers::LANE;
use crate::types::Failure;

impl Contacts for Cm {
    const LAYER: &'static str = LAYER;
    type Peer = Peer;

    fn bootstrap(&mut self) -> &mut dyn Bootstrap {
        &mut *self.bootstrap
    }

    fn transport(&mut self) -> &mut dyn Transport {
        &mut *self.rail
    }

    fn peers(&mut self) -> &mut Peers {
        &mut self.core.peers
    }

    fn out_of_reach(&mut self) -> &mut Vec<PeerIndex> {
        &mut self.out_of_reach
    }

    fn loss_of(&self, rank: Rank) -> Option<Failure> {
        self.core.losses.of(rank)
    }

    fn look_after_peers(&mut self) {
        self.rail.look_after_peers(&mut self.core);
    }

    fn receive(&mut self) {
        let _ = self.rail.progress(LANE, &mut self.core);
    }

    fn peer_failed(&mut self, rank: Rank) {
        self.rail.peer_failed(rank, &mut self.core);
    }

    fn note_connected(&mut self, index: PeerIndex) {
        if let Some(peer) = self.core.peers.get_mut(index) {
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
        self.leavers.push((rank, 0));
    }

    fn is_leaving(&self, rank: Rank) -> bool {
        self.leavers.iter().any(|(leaver, _)| *leaver == rank)
    }
}
