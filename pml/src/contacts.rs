//! First contact, and the end of contact, for both layers: a peer's address is asked for once, a shortage is no death,
//! and whoever is gone is lost once.

use std::time::Duration;

use tagwire_base::{MemberEvent, Rank};
use tagwire_transport::{AmHeader, EndpointId, Post, Transport};

use crate::error::{Error, Result};
use crate::lane::Lane;
use crate::packet::Packet;
use crate::peers::{Contact, Known, PeerIndex};
use crate::types::Failure;

/// What keeps a peer from being contacted.
#[derive(Debug)]
pub(crate) enum Setback {
    /// This rank lacks something now, and the same contact may succeed later.
    Shortage(Error),
    /// The peer has ended.
    Ended,
    /// Nothing that passes by itself; the peer may live.
    Lasting(Error),
}

/// Whether a peer can be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Now,
    /// Not before this rank has looked after its peers once more: it lacks something.
    Later,
    /// It is lost.
    Never,
}

impl Setback {
    /// What `error` of a contact means.
    pub(crate) fn of(error: Error) -> Self {
        match error {
            error if error.is_shortage() => Self::Shortage(error),
            Error::Transport(tagwire_transport::Error::Gone { .. }) => Self::Ended,
            error => Self::Lasting(error),
        }
    }
}

/// What is logged when the connection to the store is lost.
const STORE_LOST: &str = "the connection to the launcher's store is lost: ranks that are not in contact cannot be reached any more, and their ends are not heard of";

/// How long the transport may take to report the end of a peer that has failed by the bootstrap's word.
const LAST_WORD: Duration = Duration::from_secs(1);

/// A layer, as far as contact goes.
pub(crate) trait Contacts {
    type Peer: Known;

    fn lane(&mut self) -> &mut Lane<Self::Peer>;

    fn transport(&mut self) -> &mut dyn Transport;

    /// Sends a packet by the transport.
    fn send_packet(&mut self, to: EndpointId, header: AmHeader, payload: &[u8]) -> Post;

    /// Lets the transport look after its peers.
    fn look_after_peers(&mut self);

    /// Takes what the transport has received.
    fn receive(&mut self);

    /// Tells the transport that a rank has failed.
    fn peer_failed(&mut self, rank: Rank);

    /// Peer `index` can be sent to.
    fn note_connected(&mut self, index: PeerIndex);

    /// Peer `index` is gone.
    fn lose(&mut self, index: PeerIndex, failure: Failure);

    /// A rank is gone that may never have been in contact.
    fn member_gone(&mut self, rank: Rank, failure: Failure);

    /// A rank has left, by the bootstrap's word.
    fn member_left(&mut self, rank: Rank) {
        self.member_gone(rank, Failure::PeerLeft(rank));
    }

    /// Whether a rank has left by the bootstrap's word, and may still be heard.
    fn is_leaving(&self, rank: Rank) -> bool {
        let _ = rank;
        false
    }
}

fn contact_of<L: Contacts>(layer: &mut L, index: PeerIndex) -> Option<Contact> {
    layer.lane().peers.get(index).map(Known::contact)
}

fn connect<L: Contacts>(layer: &mut L, rank: Rank) -> Result<EndpointId> {
    let address = layer.lane().address(rank)?;
    Ok(layer.transport().connect(rank, &address)?)
}

/// Takes note of the ends of members, by the transport's word and by the bootstrap's.
pub(crate) fn hear_of_ends<L: Contacts>(layer: &mut L) {
    layer.look_after_peers();
    for (rank, until) in std::mem::take(&mut layer.lane().failing) {
        if layer.lane().clock.now() >= until {
            layer.member_gone(rank, Failure::PeerFailed(rank));
        } else if layer.lane().losses.of(rank).is_none() {
            layer.lane().failing.push((rank, until));
        }
    }
    let events = layer.lane().bootstrap.poll_events();
    if !events.is_empty() {
        // Whoever left sent what it had to say before: its contact, which the transport may not have looked at
        // yet, comes before the goodbye. What follows the contact then ends with the transport's own word.
        layer.receive();
    }
    for event in events {
        match event {
            MemberEvent::Left(rank) => layer.member_left(rank),
            MemberEvent::Failed(rank) => {
                layer.peer_failed(rank);
                match layer.lane().peers.find(rank) {
                    // What it sent before comes first, and then the transport's word.
                    Some(_) => {
                        let until = layer.lane().clock.now() + LAST_WORD;
                        layer.lane().failing.push((rank, until));
                    }
                    None => layer.member_gone(rank, Failure::PeerFailed(rank)),
                }
            }
            MemberEvent::StoreLost => {
                tracing::error!("{STORE_LOST}");
                let (own, size) = (layer.lane().rank, layer.lane().size);
                for rank in (0..size).map(Rank::new).filter(|rank| *rank != own) {
                    // Those in contact are watched by the transport.
                    if layer.lane().peers.find(rank).is_none() {
                        layer.member_gone(rank, Failure::Unreachable(rank));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the peer that `rank` is, connected.
///
/// # Errors
/// When there is no such rank, or it cannot be connected to.
#[cold]
pub(crate) fn contact<L: Contacts>(layer: &mut L, rank: Rank) -> Result<PeerIndex> {
    if let Some(index) = layer.lane().peers.find(rank) {
        ensure_connected(layer, index)?;
        return Ok(index);
    }
    let size = layer.lane().size;
    if rank.as_u32() >= size {
        return Err(Error::NoSuchRank { rank, size });
    }
    let endpoint = match connect(layer, rank) {
        Ok(endpoint) => endpoint,
        Err(error) => return Err(explain(layer, rank, error)),
    };
    let index = layer.lane().peers.enter(rank, endpoint);
    layer.note_connected(index);
    if let Some(failure) = layer.lane().losses.of(rank) {
        layer.lose(index, failure);
    }
    Ok(index)
}

/// Connects to a peer that so far has only been heard. A peer that turns out to have ended is lost by that, which
/// ends its operations: no error of this call.
///
/// # Errors
/// When the peer cannot be connected to now. It is none the worse for that.
pub(crate) fn ensure_connected<L: Contacts>(layer: &mut L, index: PeerIndex) -> Result<()> {
    let Some(peer) = contact_of(layer, index) else {
        return Ok(());
    };
    if peer.connected || peer.lost.is_some() {
        return Ok(());
    }
    if let Err(error) = connect(layer, peer.rank) {
        return match explain(layer, peer.rank, error) {
            Error::Failed(_) => Ok(()),
            error => Err(error),
        };
    }
    layer.note_connected(index);
    Ok(())
}

/// Returns what a contact with `rank` that failed with `error` is to end with: the end of the peer, if it has ended.
#[cold]
fn explain<L: Contacts>(layer: &mut L, rank: Rank, error: Error) -> Error {
    let (error, evidence) = match Setback::of(error) {
        Setback::Shortage(error) => return error,
        Setback::Ended => {
            let failure = Failure::PeerFailed(rank);
            (failure.into(), Some(failure))
        }
        Setback::Lasting(error) => (error, None),
    };
    // A goodbye may have come before its end.
    hear_of_ends(layer);
    let index = layer.lane().peers.find(rank);
    let known = index.and_then(|index| contact_of(layer, index)?.lost);
    let left = layer.is_leaving(rank);
    let failed = layer.lane().failing.iter().any(|(one, _)| *one == rank);
    let known = known
        .or_else(|| layer.lane().losses.of(rank))
        .or_else(|| failed.then_some(Failure::PeerFailed(rank)))
        .or_else(|| left.then_some(Failure::PeerLeft(rank)));
    let Some(failure) = known.or(evidence) else {
        return error;
    };
    match index {
        Some(index) => layer.lose(index, failure),
        None => layer.member_gone(rank, failure),
    }
    Error::Failed(failure)
}

/// Returns whether what waits for a peer can go to it now. What cannot be sent for a shortage waits until this rank
/// next looks after its peers; where the peer cannot be reached at all, it is lost.
pub(crate) fn reach<L: Contacts>(layer: &mut L, index: PeerIndex) -> Reach {
    match contact_of(layer, index) {
        Some(peer) if peer.lost.is_some() => Reach::Never,
        Some(peer) if peer.connected => Reach::Now,
        Some(peer) => reach_out(layer, index, peer.rank),
        None => Reach::Never,
    }
}

#[cold]
fn reach_out<L: Contacts>(layer: &mut L, index: PeerIndex, rank: Rank) -> Reach {
    if layer.lane().out_of_reach.contains(&index) {
        return Reach::Later;
    }
    match ensure_connected(layer, index) {
        Ok(()) => match contact_of(layer, index) {
            Some(peer) if peer.connected => Reach::Now,
            _ => Reach::Never,
        },
        Err(error) if error.is_shortage() => {
            tracing::warn!(rank = rank.as_u32(), "cannot be sent to yet: {error}");
            layer.lane().out_of_reach.push(index);
            Reach::Later
        }
        Err(error) => {
            tracing::error!(rank = rank.as_u32(), "cannot be sent to: {error}");
            layer.lose(index, Failure::Unreachable(rank));
            Reach::Never
        }
    }
}

/// Sends a packet. Returns whether that is done with.
pub(crate) fn send<L: Contacts>(layer: &mut L, packet: &Packet) -> bool {
    match (reach(layer, packet.to), contact_of(layer, packet.to)) {
        (Reach::Now, Some(peer)) => {
            let post = layer.send_packet(peer.endpoint, packet.header, packet.body());
            // Where the peer is gone the transport will say how.
            post != Post::Busy
        }
        (reach, _) => reach != Reach::Later,
    }
}

/// So many pending things in a row may find the transport busy in a call: where a slow peer has thousands, each call is short, and
/// those for others have their turn in a later one.
pub(crate) const IN_VAIN: usize = 64;

/// Sends each packet of a service once; what finds the transport busy stays for the next time, behind the others. Returns how
/// many are done with.
#[cold]
pub(crate) fn send_packets<L: Contacts>(layer: &mut L) -> usize {
    let (mut sent, mut in_vain) = (0, 0);
    for _ in 0..layer.lane().packets.len() {
        if in_vain == IN_VAIN {
            break;
        }
        let Some(packet) = layer.lane().packets.pop_front() else {
            break;
        };
        if send(layer, &packet) {
            (sent, in_vain) = (sent + 1, 0);
        } else {
            in_vain += 1;
            layer.lane().packets.push_back(packet);
        }
    }
    sent
}
