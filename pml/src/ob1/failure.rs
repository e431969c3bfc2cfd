//! Peers that are gone: what involves them ends, everyone else goes on.

use tagwire_base::Rank;
use tagwire_matching::Engine;

use super::core::Core;
use super::peeks::Peeks;
use super::peer::{Health, PeerIndex, Stream};
use super::request::Phase;
use super::unexpected::Content;
use crate::slab::Handle;
use crate::types::Failure;

impl Core {
    /// Peer `index` is not there any more, for the reason that `health` says.
    #[cold]
    pub(super) fn lose(&mut self, index: PeerIndex, health: Health) {
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        // A failure may follow a goodbye (its end was seen late); the first word stands.
        if peer.health != Health::Alive {
            return;
        }
        peer.health = health;
        peer.queue.clear();
        peer.batch.clear();
        self.batched.retain(|batched| *batched != index);
        peer.wishes.clear();
        peer.peeks = Peeks::default();
        peer.pulled = None;
        peer.early.clear();
        peer.stream = Stream::None;
        peer.refresh_clear();
        let rank = peer.rank;
        let Some(failure) = peer.failure() else {
            return;
        };
        self.budget.close(&mut self.peers, index);
        self.look_for_trouble();
        self.forget_messages_of(index);
        // It may have set flags before, of which nobody told.
        self.look_at_flags();
        if let Some(writes) = &self.writes {
            writes.lose(index);
        }
        self.fail_operations(index, rank, failure);
        self.note_gone(rank, failure);
        self.feed_the_starved();
    }

    /// A member of the job is gone that may never have been in contact.
    pub(super) fn member_gone(&mut self, rank: Rank, failure: Failure) {
        let health = Health::of(failure);
        match self.peers.find(rank) {
            // What it sent before it left may still lie in the transport, which will report its
            // end once that is drained.
            Some(_) if health == Health::Left => {}
            Some(peer) => self.lose(peer, health),
            None if self.losses.of(rank).is_some() => {}
            None => {
                self.fail_operations(PeerIndex::NONE, rank, failure);
                self.note_gone(rank, failure);
            }
        }
    }

    fn note_gone(&mut self, rank: Rank, failure: Failure) {
        if self.losses.note(rank, failure) {
            self.in_trouble = true;
        }
    }

    /// Drops the messages of a lost peer whose bytes can no longer come.
    fn forget_messages_of(&mut self, index: PeerIndex) {
        let lost: Vec<Handle> = self
            .unexpected
            .iter()
            .filter(|(_, message)| {
                message.peer == index
                    && match &message.content {
                        Content::Inline { .. } => false,
                        Content::Heap { bytes, arrived } => *arrived < bytes.len(),
                        Content::Rendezvous { .. } => true,
                    }
            })
            .map(|(handle, _)| handle)
            .collect();
        for handle in lost {
            // A claimed message stays: its receive will report the failure.
            let Some(queued) = self
                .unexpected
                .get(handle)
                .and_then(|message| message.queued)
            else {
                continue;
            };
            let _ = self.engine.discard(queued);
            if let Some(message) = self.unexpected.remove(handle) {
                self.budget.release(message.charged);
            }
        }
    }

    /// Ends the operations that involve `rank`.
    fn fail_operations(&mut self, index: PeerIndex, rank: Rank, failure: Failure) {
        // Any-source receives fail with the news, once: it may be acknowledged by now.
        let died = !matches!(failure, Failure::PeerLeft(_)) && self.losses.of(rank).is_none();
        let concerned: Vec<(Handle, Phase)> = self
            .requests
            .iter()
            .filter(|(_, request)| match request.phase {
                Phase::Inactive | Phase::Concluding | Phase::Complete => false,
                // An open transfer ends by the transport's word, once nobody touches the buffer.
                _ if request.lent => false,
                Phase::Posted if request.from.is_any() => died,
                Phase::Posted => request.from.accepts(rank),
                _ => index != PeerIndex::NONE && request.peer == index,
            })
            .map(|(handle, request)| (handle, request.phase))
            .collect();
        for (handle, phase) in concerned {
            if phase == Phase::Posted
                && let Some(request) = self.requests.get_mut(handle)
            {
                request.status.source = rank;
                let _ = self.engine.cancel(request.queued);
            }
            self.finish(handle, Some(failure));
        }
    }
}
