//! First contact, in both directions.
//!
//! ```text
//!     sender                                        receiver
//!     opens the receiver's memfd
//!     writes its hello into its own area there
//!     sets its bit, counts contacts up   ------->   sees the counter move
//!                                                   maps the area, checks the hello
//!                                        <-------   replies: accepted or refused
//! ```
//!
//! The sender does not wait for the reply: its messages lie in the ring until they are looked
//! at. The receiver opens the sender's segment in turn, through what the hello says, so that it
//! can reply, wake, and tell that it closes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use tagwire_base::Rank;

use super::NAME;
use super::cma::Attach;
use super::config::{CrossAttach, DescriptorWay};
use super::identity::Identity;
use super::layout::{
    ANSWER_ACCEPTED, ANSWER_NONE, ANSWER_REFUSED, AREA_FREE, AREA_HELLO, AREA_TAKEN,
};
use super::liveness::Liveness;
use super::partner::Partner;
use super::peer::{Inbound, Outbound, Peer, PeerState};
use super::rank::Shm;
use super::ring::{Consumer, Producer};
use super::segment::{AreaMap, Obstacle, Segment};
use crate::error::{Error, Result};
use crate::message::{EndpointId, PeerEvent, Upcalls};

/// Returns a peer whose segment is mapped, or is mapped now; `None` where that cannot be.
pub(super) fn met(shm: &mut Shm, at: EndpointId) -> Option<&Peer> {
    let peer = shm.peers.get(at.index())?;
    if peer.state != PeerState::Alive || (peer.header.is_none() && shm.answer_contact(at).is_err())
    {
        return None;
    }
    shm.peers.get(at.index())
}

impl Shm {
    pub(super) fn connect_by(
        &mut self,
        peer: Rank,
        address: &[u8],
        source: &mut dyn FnMut(Rank) -> Option<tagwire_base::Result<OwnedFd>>,
    ) -> Result<EndpointId> {
        let known = self.by_rank.get(&peer).copied();
        if let Some(endpoint) = known.filter(|at| self.outbound[at.index()].is_some()) {
            return Ok(endpoint);
        }
        let identity = self.check_address(peer, address)?;
        let is_over = |at: EndpointId| self.peers[at.index()].state != PeerState::Alive;
        if self.lost.contains(&peer) || known.is_some_and(is_over) {
            return Err(gone(peer));
        }
        let (segment, liveness) = self.open_segment(peer, &identity, source)?;
        let endpoint = known.unwrap_or_else(|| self.add_peer(peer));
        if !identity.barriers {
            self.waiter.bound_sleeps();
        }
        let entry = &mut self.peers[endpoint.index()];
        entry.identity = Some(identity);
        // The first watch is the surest: the number may name somebody else by now.
        if matches!(entry.liveness, Liveness::Unknown) {
            entry.liveness = liveness;
        }
        self.reach_out(endpoint, &segment)?;
        Ok(endpoint)
    }

    fn check_address(&self, peer: Rank, address: &[u8]) -> Result<Identity> {
        let bad = |reason| Error::BadAddress {
            transport: NAME,
            peer,
            reason,
        };
        let identity = Identity::from_bytes(address).map_err(bad)?;
        if identity.rank != peer.as_u32() || identity.size != self.identity.size {
            return Err(bad(format!(
                "it is that of rank {} of {}",
                identity.rank, identity.size
            )));
        }
        if peer.as_u32() >= self.identity.size {
            return Err(bad(format!("the job has {} ranks", self.identity.size)));
        }
        Ok(identity)
    }

    /// Opens the segment of `peer`, and makes sure that it is the one that `identity` names.
    fn open_segment(
        &self,
        peer: Rank,
        identity: &Identity,
        source: &mut dyn FnMut(Rank) -> Option<tagwire_base::Result<OwnedFd>>,
    ) -> Result<(Segment, Liveness)> {
        let visible = identity.shares_namespace(&self.identity);
        // The watch begins first: what is checked afterwards is checked of the watched process.
        let liveness = if visible {
            Liveness::watch(identity.pid)
        } else {
            Liveness::Unknown
        };
        match self.open_watched(peer, identity, visible, source) {
            Ok(segment) => Ok((segment, liveness)),
            Err(error) if error.is_shortage() => Err(error),
            Err(_) if liveness.is_over() => Err(gone(peer)),
            Err(error) => Err(error),
        }
    }

    fn open_watched(
        &self,
        peer: Rank,
        identity: &Identity,
        visible: bool,
        source: &mut dyn FnMut(Rank) -> Option<tagwire_base::Result<OwnedFd>>,
    ) -> Result<Segment> {
        let extent = identity.extent();
        let checked = |segment: Segment| verify(&segment, identity).map(|()| segment);
        let mut reason = "its process is in another namespace".to_owned();
        if self.options.descriptor != DescriptorWay::Passed && visible {
            match Segment::open_in(identity.pid, identity.descriptor, extent).and_then(checked) {
                Ok(segment) => return Ok(segment),
                Err(Obstacle::Other(obstacle)) => reason = obstacle,
                // The bootstrap could not pass a descriptor now either.
                Err(shortage) => return Err(blocked(peer, shortage)),
            }
        }
        if self.options.descriptor == DescriptorWay::Proc {
            return Err(unreachable(peer, reason));
        }
        let Some(passed) = source(peer) else {
            return Err(unreachable(
                peer,
                format!("{reason}, and nobody passes its descriptor"),
            ));
        };
        Segment::adopt(File::from(passed?), extent)
            .map_err(Obstacle::Other)
            .and_then(checked)
            .map_err(|obstacle| blocked(peer, obstacle))
    }

    /// Opens the way out to a peer whose segment is there.
    fn reach_out(&mut self, to: EndpointId, segment: &Segment) -> Result<()> {
        let peer = &mut self.peers[to.index()];
        let rank = peer.rank;
        let system = |what: &str, error| {
            tagwire_base::Error::system(format!("{NAME}: map {what} of rank {rank}"), error)
        };
        let header = segment
            .map_header()
            .map_err(|error| system("the header", error))?;
        let mut area = segment
            .map_area(self.identity.rank)
            .map_err(|error| system("the area", error))?;
        area.write_by(self.options.write_ways());
        let target = if self.options.matches {
            let map = segment.map_target();
            Some(map.map_err(|error| system("the match list", error))?)
        } else {
            None
        };
        // Nothing below can fail for want of memory: whoever tries again writes the only hello.
        let producer = self
            .greet(&area)
            .map_err(|reason| unreachable(rank, reason))?;
        let own = self.identity.rank as usize;
        header.bitmap()[own / 64].fetch_or(1 << (own % 64), Release);
        let peer = &mut self.peers[to.index()];
        peer.target = target;
        peer.map_arena(segment);
        peer.outbound = Some(area.clone());
        peer.header = Some(header.clone());
        if let Some(way) = self.inbound.iter_mut().find(|way| way.endpoint == to) {
            way.header = Some(header.clone());
        }
        peer.attract();
        self.outbound[to.index()] = Some(Outbound { producer, header });
        self.connect_rooms(to);
        self.awaiting.push(to);
        self.attention = true;
        Ok(())
    }

    /// Writes the hello. Returns the sending end of the area's ring.
    fn greet(&self, area: &AreaMap) -> Result<Producer<AreaMap>, String> {
        let admission = &area.admission;
        admission
            .state
            .compare_exchange(AREA_FREE, AREA_TAKEN, Acquire, Relaxed)
            .map_err(|_| "its memory for messages of this rank has been used before".to_owned())?;
        self.identity.write(&area.hello);
        for (word, bytes) in admission
            .secret
            .iter()
            .zip(self.secret.as_bytes().chunks_exact(8))
        {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(array), Relaxed);
        }
        let mut producer = Producer::new(area.clone());
        if self.options.first_slot != 0 {
            let state = producer.begin_at(self.options.first_slot);
            super::matching::store_state(&area.taken, state);
        }
        admission.state.store(AREA_HELLO, Release);
        Ok(producer)
    }

    /// Opens the way out to a peer that made contact first, or says why it cannot; a shortage passes.
    pub(super) fn answer_contact(&mut self, to: EndpointId) -> Result<()> {
        let peer = &self.peers[to.index()];
        let rank = peer.rank;
        let identity = peer
            .identity
            .ok_or_else(|| unreachable(rank, "no address".to_owned()))?;
        let mut hook = self.descriptors.take();
        let opened = self.open_segment(rank, &identity, &mut |rank| {
            hook.as_mut().map(|source| source(rank))
        });
        self.descriptors = hook;
        opened.and_then(|(segment, _)| self.reach_out(to, &segment))
    }

    /// Accepts those who have made contact since the last time, and looks who has closed.
    pub(super) fn look_at_contacts(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        self.seen_contacts = self.header.contacts.word.load(SeqCst);
        let mut events = 0;
        for index in 0..self.contacted.len() {
            let now = self.header.bitmap()[index].load(Acquire);
            let mut fresh = now & !self.contacted[index];
            self.contacted[index] |= now;
            while fresh != 0 {
                let rank = index as u32 * 64 + fresh.trailing_zeros();
                fresh &= fresh - 1;
                events += self.look_at_contact(rank, upcalls);
            }
        }
        for index in 0..self.peers.len() {
            let peer = &self.peers[index];
            if peer.state == PeerState::Alive
                && let Some(goodbye) = peer.goodbye()
            {
                let endpoint = EndpointId(index as u32);
                events += self.end_peer(endpoint, goodbye.event(endpoint), upcalls);
            }
        }
        events
    }

    /// Looks at the contact of a peer that is about to be taken for gone, if it made one that was
    /// not seen. What the peer did before its end is visible once the end is.
    pub(super) fn look_at_late_contact(
        &mut self,
        endpoint: EndpointId,
        upcalls: &mut dyn Upcalls,
    ) -> usize {
        let rank = self.peers[endpoint.index()].rank.as_u32();
        let (index, bit) = (rank as usize / 64, 1 << (rank % 64));
        let Some(word) = self.header.bitmap().get(index) else {
            return 0;
        };
        if word.load(Acquire) & bit == 0 || self.contacted[index] & bit != 0 {
            return 0;
        }
        self.contacted[index] |= bit;
        self.look_at_contact(rank, upcalls)
    }

    fn look_at_contact(&mut self, rank: u32, upcalls: &mut dyn Upcalls) -> usize {
        if rank >= self.identity.size {
            return 0;
        }
        let Ok(area) = self.segment.map_area(rank) else {
            // No memory to map it now: look again later.
            self.contacted[rank as usize / 64] &= !(1 << (rank % 64));
            self.seen_contacts = self.seen_contacts.wrapping_sub(1);
            return 0;
        };
        let rank = Rank::new(rank);
        match self.check_hello(rank, &area) {
            Ok(identity) => self.accept(rank, identity, area, upcalls),
            Err(reason) => {
                area.answer.word.store(ANSWER_REFUSED, Release);
                let error = Error::Refused {
                    transport: NAME,
                    peer: rank,
                    reason,
                };
                upcalls.peer(PeerEvent::Protocol(None, error));
                1
            }
        }
    }

    /// Checks who makes contact in the area of `rank`.
    fn check_hello(&self, rank: Rank, area: &AreaMap) -> Result<Identity, String> {
        if area.admission.state.load(Acquire) != AREA_HELLO {
            return Err("it wrote no hello".to_owned());
        }
        let identity = Identity::read(&area.hello)?;
        let mut secret = [0; 32];
        for (bytes, word) in secret.chunks_exact_mut(8).zip(&area.admission.secret) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        if !self.secret.matches(&secret) {
            return Err("it does not know the job's secret".to_owned());
        }
        if identity.rank != rank.as_u32() || identity.size != self.identity.size {
            return Err(format!(
                "it calls itself rank {} of {}",
                identity.rank, identity.size
            ));
        }
        if self.lost.contains(&rank) {
            return Err("it has failed before".to_owned());
        }
        let known = self.by_rank.get(&rank).map(|at| &self.peers[at.index()]);
        match known {
            Some(peer) if peer.state != PeerState::Alive => Err("it has gone before".to_owned()),
            Some(peer) if peer.identity.is_some_and(|known| known != identity) => {
                Err("it is not who published the address".to_owned())
            }
            _ => Ok(identity),
        }
    }

    fn accept(
        &mut self,
        rank: Rank,
        identity: Identity,
        area: AreaMap,
        upcalls: &mut dyn Upcalls,
    ) -> usize {
        let known = self.by_rank.get(&rank).copied();
        let endpoint = known.unwrap_or_else(|| self.add_peer(rank));
        if !identity.barriers {
            self.waiter.bound_sleeps();
        }
        if self.peers[endpoint.index()].header.is_none() {
            // Only its header, to be able to wake it and to tell it that we close.
            let opened = self.open_segment(rank, &identity, &mut |_| None);
            let visible = identity.shares_namespace(&self.identity);
            let peer = &mut self.peers[endpoint.index()];
            match opened {
                Ok((segment, liveness)) => {
                    peer.header = segment.map_header().ok();
                    peer.map_arena(&segment);
                    peer.liveness = liveness;
                }
                Err(_) if visible => {
                    peer.liveness = Liveness::watch_unseen(identity.pid, identity.descriptor);
                }
                Err(_) => {}
            }
        }
        area.answer.word.store(ANSWER_ACCEPTED, Release);
        let peer = &mut self.peers[endpoint.index()];
        peer.identity = Some(identity);
        peer.inbound = Some(area.clone());
        let mut consumer = Consumer::new(area.clone());
        // Where this rank matches, the sender may have looked at its messages itself.
        consumer.resume(super::matching::load_state(&area.taken));
        let way = Inbound::new(consumer, endpoint, peer.header.clone());
        self.inbound.push(way);
        self.connect_rooms(endpoint);
        upcalls.peer(PeerEvent::Up { endpoint, rank });
        1
    }

    /// Lets both ends of a pair know of each other, once there are both.
    fn connect_rooms(&mut self, with: EndpointId) {
        let way = self.inbound.iter_mut().find(|way| way.endpoint == with);
        if let (Some(Some(out)), Some(way)) = (self.outbound.get_mut(with.index()), way) {
            out.connect_rooms(way, &self.options);
        }
    }

    /// Looks at the replies that are still out, one of them.
    pub(super) fn look_at_answers(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        self.next_answer = (self.next_answer + 1) % self.awaiting.len().max(1);
        let Some(&endpoint) = self.awaiting.get(self.next_answer) else {
            return 0;
        };
        let peer = &self.peers[endpoint.index()];
        match peer.answer() {
            ANSWER_NONE if peer.state == PeerState::Alive => 0,
            ANSWER_REFUSED if peer.state == PeerState::Alive => {
                self.awaiting.swap_remove(self.next_answer);
                let error = Error::Refused {
                    transport: NAME,
                    peer: Rank::new(self.identity.rank),
                    reason: format!("rank {} does not accept it", peer.rank),
                };
                self.end_peer(
                    endpoint,
                    PeerEvent::Protocol(Some(endpoint), error),
                    upcalls,
                )
            }
            _ => {
                self.awaiting.swap_remove(self.next_answer);
                0
            }
        }
    }

    /// The number of the process by which `endpoint` can be attached to.
    pub(super) fn attach(&mut self, endpoint: EndpointId) -> Option<u32> {
        let peer = &mut self.peers[endpoint.index()];
        if peer.attach == Attach::Untested {
            peer.attach = match peer.identity {
                _ if self.options.cross_attach == CrossAttach::Off => {
                    Attach::Forbidden("switched off by shm-cma".to_owned())
                }
                Some(identity) if identity.shares_namespace(&self.identity) => {
                    Attach::test(identity.pid, identity.nonce_address, identity.nonce)
                }
                Some(_) => Attach::Forbidden("another namespace of processes".to_owned()),
                None => return None,
            };
            if let Attach::Forbidden(reason) = &peer.attach {
                tracing::debug!(rank = %peer.rank, reason, "no cross-memory attach");
            }
        }
        match peer.attach {
            Attach::Usable(pid) => Some(pid),
            _ => None,
        }
    }

    /// What channels and boards have to know of a peer. `None` where the two cannot name each other's processes.
    pub(super) fn partner(&mut self, endpoint: EndpointId) -> Option<Arc<Partner>> {
        let peer = self.peers.get(endpoint.index())?;
        let is_alive = peer.state == PeerState::Alive;
        if let Some(known) = peer.partner.as_ref().filter(|_| is_alive) {
            return Some(Arc::clone(known));
        }
        met(self, endpoint)?;
        let pid = self.attach(endpoint);
        let peer = &mut self.peers[endpoint.index()];
        let identity = peer
            .identity
            .filter(|identity| identity.shares_namespace(&self.identity))?;
        let made = Partner::new(identity, peer.header.clone()?, pid, self.clock.clone())?;
        Some(Arc::clone(peer.partner.insert(Arc::new(made))))
    }

    fn add_peer(&mut self, rank: Rank) -> EndpointId {
        let endpoint = EndpointId(self.peers.len() as u32);
        self.peers.push(Peer::new(rank, self.clock.clone()));
        self.outbound.push(None);
        self.by_rank.insert(rank, endpoint);
        endpoint
    }
}

/// Makes sure that a segment is the one that `identity` names.
fn verify(segment: &Segment, identity: &Identity) -> Result<(), Obstacle> {
    let header = segment
        .map_header()
        .map_err(|error| Obstacle::of("its segment cannot be mapped", error))?;
    let found = Identity::read(&header.identity)?;
    if found == *identity {
        Ok(())
    } else {
        Err("its segment belongs to somebody else".to_owned().into())
    }
}

fn blocked(peer: Rank, obstacle: Obstacle) -> Error {
    match obstacle {
        Obstacle::Other(reason) => unreachable(peer, reason),
        Obstacle::Shortage(error) => {
            let what =
                format!("{NAME}: open the memory of rank {peer} (limits: ulimit -n, ulimit -v)");
            tagwire_base::Error::system(what, error).into()
        }
    }
}

const fn gone(peer: Rank) -> Error {
    Error::Gone {
        transport: NAME,
        peer,
    }
}

fn unreachable(peer: Rank, reason: String) -> Error {
    Error::Unreachable {
        transport: NAME,
        peer,
        reason,
    }
}
