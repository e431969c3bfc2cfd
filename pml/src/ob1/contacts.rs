//! How a rank finds its peers, and hears that they are gone.

use tagwire_base::{MemberEvent, Rank};
use tagwire_transport::EndpointId;

use super::config::LAYER;
use super::core::Core;
use super::driver::Driver;
use super::link::LANE;
use super::peer::{Health, Peer, PeerIndex};
use super::protocols;
use crate::contact::{self, Language, Reach, Setback};
use crate::error::{Error, Result};
use crate::types::Failure;

impl Driver {
    fn connect(&mut self, rank: Rank) -> Result<EndpointId> {
        let language = Language::new(LAYER, self.rail.name());
        let address = language.address(&mut *self.bootstrap, rank)?;
        Ok(self.rail.connect(rank, &address)?)
    }

    /// Takes note of the ends of members, by the transport's word and by the bootstrap's.
    pub(super) fn hear_of_ends(&mut self, core: &mut Core) {
        self.rail.look_after_peers(core);
        let events = self.bootstrap.poll_events();
        if !events.is_empty() {
            // Whoever left sent what it had to say before: its contact, which the transport may
            // not have looked at yet, comes before the goodbye. What follows the contact then
            // ends with the transport's own word.
            let _ = self.rail.progress(LANE, core);
        }
        for event in events {
            match event {
                MemberEvent::Left(rank) => {
                    core.member_gone(rank, Failure::PeerLeft(rank));
                }
                MemberEvent::Failed(rank) => {
                    self.rail.peer_failed(rank, core);
                    core.member_gone(rank, Failure::PeerFailed(rank));
                }
                MemberEvent::StoreLost => {
                    tracing::error!("{}", contact::STORE_LOST);
                    for rank in contact::others(self.rank(), self.size()) {
                        // Those in contact are watched by the transport.
                        if core.peers.find(rank).is_none() {
                            core.member_gone(rank, Failure::Unreachable(rank));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The endpoint of `rank`, which is contacted if it was not.
    pub(super) fn endpoint(&mut self, core: &mut Core, rank: Rank) -> Result<EndpointId> {
        let index = self.contact(core, rank)?;
        let peer = core.peers.get(index);
        peer.map(|peer| peer.endpoint).ok_or(Error::StaleRequest)
    }

    /// The peer that `rank` is, connected.
    #[cold]
    pub(super) fn contact(&mut self, core: &mut Core, rank: Rank) -> Result<PeerIndex> {
        if let Some(index) = core.peers.find(rank) {
            self.ensure_connected(core, index)?;
            return Ok(index);
        }
        if rank.as_u32() >= self.size() {
            return Err(Error::NoSuchRank {
                rank,
                size: self.size(),
            });
        }
        let endpoint = match self.connect(rank) {
            Ok(endpoint) => endpoint,
            Err(error) => return Err(self.explain(core, rank, error)),
        };
        let index = core.peers.enter(rank, endpoint, Peer::new);
        self.note_connected(core, index);
        if let Some(failure) = core.losses.of(rank) {
            core.lose(index, Health::of(failure));
        }
        Ok(index)
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

    /// Connects to a peer that so far has only been heard. A peer that turns out to have ended is lost by that, which
    /// ends its operations: no error of this call.
    ///
    /// # Errors
    /// When the peer cannot be connected to now. It is none the worse for that.
    pub(super) fn ensure_connected(&mut self, core: &mut Core, index: PeerIndex) -> Result<()> {
        let Some(peer) = core.peers.get(index) else {
            return Ok(());
        };
        if peer.connected || peer.health != Health::Alive {
            return Ok(());
        }
        let rank = peer.rank;
        if let Err(error) = self.connect(rank) {
            return match self.explain(core, rank, error) {
                Error::Failed(_) => Ok(()),
                error => Err(error),
            };
        }
        self.note_connected(core, index);
        Ok(())
    }

    /// What a contact with `rank` that failed with `error` is to end with: the end of the peer, if it has ended.
    #[cold]
    fn explain(&mut self, core: &mut Core, rank: Rank, error: Error) -> Error {
        let (error, evidence) = match Setback::of(error) {
            Setback::Shortage(error) => return error,
            Setback::Ended => {
                let failure = Failure::PeerFailed(rank);
                (failure.into(), Some(failure))
            }
            Setback::Lasting(error) => (error, None),
        };
        // A goodbye may have come before its end.
        self.hear_of_ends(core);
        let index = core.peers.find(rank);
        let known = index.and_then(|index| core.peers.get(index)?.failure());
        let known = known.or_else(|| core.losses.of(rank));
        let Some(failure) = known.or(evidence) else {
            return error;
        };
        match index {
            Some(index) => core.lose(index, Health::of(failure)),
            None => core.member_gone(rank, failure),
        }
        Error::Failed(failure)
    }

    /// Whether what this rank has to send by itself can go to a peer now. What cannot be sent for a shortage waits until
    /// this rank next looks after its peers; where the peer cannot be reached at all, it is lost.
    pub(super) fn reach(&mut self, core: &mut Core, index: PeerIndex) -> Reach {
        let Some(peer) = core.peers.get(index) else {
            return Reach::Never;
        };
        if peer.health != Health::Alive {
            return Reach::Never;
        }
        if peer.connected {
            return Reach::Now;
        }
        self.reach_out(core, index, peer.rank)
    }

    #[cold]
    fn reach_out(&mut self, core: &mut Core, index: PeerIndex, rank: Rank) -> Reach {
        if self.out_of_reach.contains(&index) {
            return Reach::Later;
        }
        match self.ensure_connected(core, index) {
            Ok(()) => {
                let peer = core.peers.get(index);
                if peer.is_some_and(|peer| peer.connected) {
                    Reach::Now
                } else {
                    Reach::Never
                }
            }
            Err(error) if error.is_shortage() => {
                tracing::warn!(rank = rank.as_u32(), "cannot answer yet: {error}");
                self.out_of_reach.push(index);
                Reach::Later
            }
            Err(error) => {
                tracing::error!(rank = rank.as_u32(), "cannot answer: {error}");
                core.lose(index, Health::Unreachable);
                Reach::Never
            }
        }
    }
}
