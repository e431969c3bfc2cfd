//! Exposes the receives of this rank, and fills those of its peers: see [`exposures`](super::exposures).

use tagwire_base::{SourceSelector, Tag, TagSelector};
use tagwire_matching::Envelope;
use tagwire_transport::{Capabilities, Offer, Outcome, Payload, Post, Token};
use zerocopy::{FromZeros, IntoBytes};

use super::core::Core;
use super::driver::Driver;
use super::exposures::{EXPOSED, Exposed, Exposure, Target, follows, is_long_ago};
use super::header::{ControlHeader, Kind};
use super::peer::{Health, PeerIndex};
use super::pending::Operation;
use super::points::{Point, reach};
use super::protocols::State;
use super::request::Request;
use crate::contacts;
use crate::packet::Packet;
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::Failure;

/// The receives among which one is looked for that was posted before, and may take the same messages.
const LOOKED_AT: usize = 128;

/// What the transport has to do for receives to be exposed: receivers speak of what came before.
const NEEDED: Capabilities = Capabilities::COOPERATIVE.union(Capabilities::ORDERED);

/// Set in the tokens of exposed receives, and in no other's.
const MARK: u64 = 1 << 62;

impl Core {
    /// Returns the peer whose messages a receive waits for alone, where it is exposed to it.
    fn exposed_to(&mut self, receive: Handle) -> Option<PeerIndex> {
        let rank = self.requests.get(receive)?.common.from.rank()?;
        let index = self.lane.peers.find(rank)?;
        let peer = self.lane.peers.get(index)?;
        peer.exposures.holds(receive).then_some(index)
    }

    /// A receive has a message of `from`, or waits for none any more: before anything else is done with its memory, nobody may
    /// fill that.
    #[inline]
    pub(super) fn settle_later(&mut self, from: PeerIndex, receive: Handle) {
        let Some(peer) = self.lane.peers.get_mut(from) else {
            return;
        };
        if peer.exposures.holds(receive) {
            self.pending.push(Operation::Settle(from, receive));
        } else {
            peer.exposures.look_back(receive, self.idle);
        }
    }

    /// A receive that waited, and does not any more, ends with `failure`. Returns whether that is to come: its memory may be filled
    /// just now.
    pub(super) fn leave_exposed(&mut self, receive: Handle, failure: Failure) -> bool {
        let Some(index) = self.exposed_to(receive) else {
            return false;
        };
        if let Some(request) = self.requests.get_mut(receive) {
            request.common.peer = index;
            request.state = State::leaving(failure);
        }
        self.pending.push(Operation::Settle(index, receive));
        true
    }

    /// A peer exposes a receive.
    pub(super) fn exposed(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
    ) -> Result<(), &'static str> {
        let mut exposure = Exposure::new_zeroed();
        if !payload.read_into(exposure.as_mut_bytes()) {
            return Err("a receive that is cut short");
        }
        let Some(peer) = self.lane.peers.get_mut(from) else {
            return Ok(());
        };
        let is_open = peer.health == Health::Alive
            && peer.path.terms.coalesce == 0
            && peer.pulled.is_none()
            && peer.wishes.is_empty();
        let next_out = peer.next_out.as_u32();
        let exposures = &mut peer.exposures;
        let taken = exposures.take_exposure(next_out, is_open, header.argument, &exposure)?;
        peer.refresh_clear();
        if let Some((send, target)) = taken {
            self.pending.push(Operation::Fill(send, target));
        }
        Ok(())
    }

    /// Returns the receive whose memory the transport has done with, where the token is of such a one.
    pub(super) const fn exposed_of(token: Token) -> Option<Handle> {
        match token.0 & MARK {
            0 => None,
            _ => Some(Handle::from_wire(token.0 & !MARK)),
        }
    }

    /// The memory of an exposed receive has been filled, or will not be. Returns the outcome for its protocol, where its envelope
    /// has come.
    pub(super) fn note_filled(&mut self, receive: Handle, outcome: Outcome) -> Option<Outcome> {
        let Some(index) = self.exposed_to(receive) else {
            return self.requests.get(receive).map(|_| outcome);
        };
        let exposures = &mut self.lane.peers.get_mut(index)?.exposures;
        let mut exposed = exposures.exposed.iter_mut();
        let one = exposed.find(|one| one.receive == receive)?;
        one.helped = matches!(outcome, Outcome::Done(_)) && one.idle == self.idle;
        one.end = Some(outcome);
        None
    }
}

impl Driver {
    /// Sees to it that nobody fills the memory of a receive that has its message, or knows that somebody does. Returns how many
    /// things happened.
    pub(super) fn settle(&mut self, core: &mut Core, index: PeerIndex, receive: Handle) -> usize {
        let Some(peer) = core.lane.peers.get_mut(index) else {
            return 0;
        };
        let Some(exposed) = peer.exposures.take(receive) else {
            return 0;
        };
        let Exposed { ticket, end, .. } = exposed;
        peer.refresh_clear();
        let revoked = end.is_none() && self.rail.revoke(peer.endpoint, ticket);
        peer.exposures.learn(exposed.helped);
        core.counters.filled += u64::from(matches!(end, Some(Outcome::Done(_))));
        let Some(request) = core.requests.get_mut(receive) else {
            return 1;
        };
        if let Some(failure) = request.state.leaves() {
            if revoked || end.is_some() {
                core.finish(receive, Some(failure));
            }
        } else if !revoked {
            request.state.is_filled();
            if let Some(outcome) = end {
                core.done(receive, outcome);
            }
        }
        1
    }

    /// Fills the memory of a receive that a message takes whose envelope is out. Returns how many things happened.
    pub(super) fn fill(&mut self, core: &mut Core, send: Handle, target: &Target) -> usize {
        let Some(request) = core.requests.get_mut(send) else {
            return 0;
        };
        let Some(peer) = core.lane.peers.get(request.common.peer) else {
            return 0;
        };
        let Some(offer) = request.state.open_offer() else {
            return 0;
        };
        if target.room < request.common.wanted {
            return 0;
        }
        let (data, token) = (request.common.send_buffer(), Token(send.to_wire()));
        let filled = self
            .rail
            .fill(LANE, peer.endpoint, target.ticket, data, token);
        if filled != Post::Posted {
            return 0;
        }
        reach(Point::Claimed);
        // Its receiver knows that too, and claims nothing.
        self.rail
            .forget(peer.endpoint, std::mem::replace(offer, target.ticket));
        1
    }

    /// Exposes a receive that was just posted, where that is worth it.
    #[inline]
    pub(super) fn expose(&mut self, core: &mut Core, receive: Handle) {
        let capacity = |request: &Request| request.common.capacity();
        let long = core.requests.get(receive).map(capacity);
        if long.is_some_and(|capacity| capacity >= core.expose_from) {
            self.expose_long(core, receive);
        }
    }

    #[inline(never)]
    fn expose_long(&mut self, core: &mut Core, receive: Handle) {
        let Some((index, tag)) = Self::may_be_exposed(core, receive) else {
            return;
        };
        // What is here already comes first, and a message of the peer may be.
        let events = self.rail.take_messages(core);
        core.lane.ended += events;
        self.run_pending(core);
        if !Self::is_first(core, receive, index, tag) {
            return;
        }
        let Core {
            requests,
            lane,
            idle,
            ..
        } = core;
        let idle = *idle;
        let (Some(request), Some(peer)) = (requests.get(receive), lane.peers.get_mut(index)) else {
            return;
        };
        let Some(data) = request.common.recv_buffer() else {
            return;
        };
        let token = Token(MARK | receive.to_wire());
        let Offer::Open(ticket) = self.rail.offer_recv(LANE, peer.endpoint, data, token) else {
            return;
        };
        reach(Point::Opened);
        let (exposures, context) = (&mut peer.exposures, request.common.context);
        let number = exposures.count;
        exposures.count = number.wrapping_add(1);
        exposures.hole = exposures.hole.filter(|hole| !is_long_ago(number, *hole));
        let oldest = exposures.oldest(tag, context);
        let exposure = Exposure {
            ticket: ticket.0,
            tag: tag.as_i32(),
            taken: peer.next_in.as_u32(),
            number,
            oldest: oldest.unwrap_or(number),
            context: context.as_u16(),
            reserved: [0; 3],
        };
        exposures.exposed.push(Exposed {
            receive,
            ticket,
            number,
            tag,
            context,
            idle,
            end: None,
            helped: false,
        });
        peer.refresh_clear();
        let endpoint = peer.endpoint;
        let header = ControlHeader {
            kind: Kind::EXPOSE,
            handle: receive,
            argument: data.capacity() as u64,
        };
        let packet = Packet::new(index, header, exposure.as_bytes());
        let is_out = contacts::send(&mut self.contacts(core), &packet);
        reach(Point::Exposed);
        if !is_out {
            // The peer has not heard of it: the next one has its number.
            self.rail.revoke(endpoint, ticket);
            if let Some(peer) = core.lane.peers.get_mut(index) {
                peer.exposures.take(receive);
                peer.exposures.count = number;
                peer.refresh_clear();
            }
        }
    }

    /// Returns the peer that a receive may be exposed to, and its tag.
    fn may_be_exposed(core: &mut Core, receive: Handle) -> Option<(PeerIndex, Tag)> {
        let request = core.requests.get(receive)?;
        request.place()?;
        let common = &request.common;
        let (rank, tag) = (common.from.rank()?, common.tag.tag()?);
        if rank == core.lane.rank || core.in_trouble || core.lane.closing {
            return None;
        }
        let index = core.lane.peers.find(rank)?;
        let peer = core.lane.peers.get_mut(index)?;
        let terms = &peer.path.terms;
        let is_worth_it = peer.connected
            && peer.health == Health::Alive
            && terms.capabilities.contains(NEEDED)
            && terms.coalesce == 0
            && common.capacity() > terms.eager
            && peer.exposures.exposed.len() < EXPOSED
            && peer.exposures.is_worth_it(receive, core.idle);
        is_worth_it.then_some((index, tag))
    }

    /// Whether a receive waits, and each one that was posted before it, and may take the same message of the peer, is exposed to
    /// the peer.
    fn is_first(core: &mut Core, receive: Handle, index: PeerIndex, tag: Tag) -> bool {
        let (Some(request), Some(peer)) = (core.requests.get(receive), core.lane.peers.get(index))
        else {
            return false;
        };
        if request.place().is_none() || peer.health != Health::Alive || core.in_trouble {
            return false;
        }
        let (source, context) = (peer.rank, request.common.context);
        let envelope = Envelope {
            source,
            tag,
            context,
        };
        // The peer counts one among those that wait that does not, as long as it counts others before this one.
        let oldest = peer.exposures.oldest(tag, context);
        let hole = peer.exposures.hole;
        if oldest.is_some_and(|oldest| hole.is_some_and(|hole| !follows(oldest, hole))) {
            return false;
        }
        if core.matcher.expects(envelope) == Some(receive.slot()) {
            return true;
        }
        if core.matcher.posted_len() > LOOKED_AT {
            return false;
        }
        let accepts =
            |from: SourceSelector, tags: TagSelector| from.accepts(source) && tags.accepts(tag);
        let before = core
            .matcher
            .waiting(|pattern| pattern.context == context && accepts(pattern.source, pattern.tag));
        let mut before = before.iter().take_while(|slot| **slot != receive.slot());
        before.all(|slot| {
            let mut exposed = peer.exposures.exposed.iter();
            exposed.any(|one| one.receive.slot() == *slot && one.end.is_none())
        })
    }

    /// Takes back the memory of a receive that is to be cancelled. Returns whether it has no message.
    ///
    /// The peer counts it among those that wait until it hears of one that was exposed after it: until then its messages take
    /// those behind it too early. These are not filled either.
    pub(super) fn revoke(&mut self, core: &mut Core, receive: Handle) -> bool {
        let Some(index) = core.exposed_to(receive) else {
            return true;
        };
        let Some(peer) = core.lane.peers.get_mut(index) else {
            return true;
        };
        let (own, rail) = (&mut peer.exposures, &mut self.rail);
        let Some(first) = own.exposed.iter().position(|one| one.receive == receive) else {
            return true;
        };
        let (tag, context) = (own.exposed[first].tag, own.exposed[first].context);
        let mut is_free = true;
        for place in (first..own.exposed.len()).rev() {
            let one = &own.exposed[place];
            if one.tag != tag || one.context != context {
                continue;
            }
            // One that is filled had messages before it, of which the first takes this receive.
            if one.end.is_some() || !rail.revoke(peer.endpoint, one.ticket) {
                is_free = false;
                break;
            }
            let gone = own.exposed.remove(place).number;
            own.hole = Some(own.hole.filter(|hole| follows(*hole, gone)).unwrap_or(gone));
        }
        peer.refresh_clear();
        is_free
    }
}
