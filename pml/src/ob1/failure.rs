//! Peers that are gone: what involves them ends, everyone else goes on.

use tagwire_base::Rank;

use super::core::Core;
use super::peeks::Peeks;
use super::peer::{Health, PeerIndex, Stream};
use super::protocols::State;
use crate::slab::Handle;
use crate::types::Failure;

impl Core {
    /// Peer `index` is not there any more, for the reason that `health` says.
    #[cold]
    pub(super) fn lose(&mut self, index: PeerIndex, health: Health) {
        let Some(peer) = self.lane.peers.get_mut(index) else {
            return;
        };
        // A failure may follow a goodbye (its end was seen late); the first word stands.
        if peer.health != Health::Alive {
            return;
        }
        peer.health = health;
        peer.queue.clear();
        peer.batch.clear();
        self.coalescing.forget(index);
        peer.wishes.clear();
        peer.peeks = Peeks::default();
        peer.pulled = None;
        peer.early.clear();
        peer.stream = Stream::None;
        peer.exposures.clear();
        peer.refresh_clear();
        let rank = peer.rank;
        let Some(failure) = peer.failure() else {
            return;
        };
        self.budget.close(&mut self.lane.peers, index);
        self.look_for_trouble();
        let budget = &mut self.budget;
        self.matcher
            .forget(index, |charged| budget.release(charged));
        self.lane.end_services(index, failure);
        self.fail_operations(index, rank, failure);
        self.note_gone(rank, failure);
        self.feed_the_starved();
    }

    /// A member of the job is gone that may never have been in contact.
    pub(super) fn member_gone(&mut self, rank: Rank, failure: Failure) {
        let health = Health::of(failure);
        match self.lane.peers.find(rank) {
            // What it sent before it left may still lie in the transport, which will report its
            // end once that is drained.
            Some(_) if health == Health::Left => {}
            Some(peer) => self.lose(peer, health),
            None if self.lane.losses.of(rank).is_some() => {}
            None => {
                self.fail_operations(PeerIndex::NONE, rank, failure);
                self.note_gone(rank, failure);
            }
        }
    }

    fn note_gone(&mut self, rank: Rank, failure: Failure) {
        if self.lane.losses.note(rank, failure) {
            self.in_trouble = true;
        }
    }

    /// Ends the operations that involve `rank`.
    fn fail_operations(&mut self, index: PeerIndex, rank: Rank, failure: Failure) {
        // Any-source receives fail with the news, once: it may be acknowledged by now.
        let died = !matches!(failure, Failure::PeerLeft(_)) && self.lane.losses.of(rank).is_none();
        let concerned: Vec<Handle> = self
            .requests
            .iter()
            .filter(|(_, request)| match request.state {
                State::Inactive | State::Complete => false,
                State::Posted(_) if request.common.from.is_any() => died,
                State::Posted(_) => request.common.from.accepts(rank),
                _ => index != PeerIndex::NONE && request.common.peer == index,
            })
            .map(|(handle, _)| handle)
            .collect();
        for handle in concerned {
            let Some(request) = self.requests.get_mut(handle) else {
                continue;
            };
            match request.place() {
                Some(place) => {
                    request.common.status.source = rank;
                    self.matcher.withdraw(place);
                    if !self.leave_exposed(handle, failure) {
                        self.finish(handle, Some(failure));
                    }
                }
                None => {
                    let step = request.state.abort(failure);
                    self.apply(handle, step);
                }
            }
        }
    }
}
