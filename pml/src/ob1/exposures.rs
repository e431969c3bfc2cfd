//! Receives that their senders fill: a long receive that names its source is shown to it, with its memory, before there is a
//! message. Who receives need not be there when the message comes.
//!
//! ```text
//!   receiver                                          sender
//!   posts a long receive
//!   EXPOSE: pattern, room, ticket  -------------->    keeps the target, behind those before it
//!   computes                                          the first message that fits takes the target: its bytes are
//!                                  <--------------    copied there, and its envelope goes in its turn
//!   matches the envelope, as any other
//! ```
//!
//! Both sides find the same receive for a message, which is the one that MPI's order names (MPI-5.0, section 3.5):
//!
//! - A receive is exposed only where each receive that was posted before it, and may take one of the same messages, is exposed
//!   to the same peer.
//! - EXPOSE says how many packets of the peer had been taken. The peer remembers what it sent since: the first message of these
//!   that fits takes the receive, by its envelope. So does a message that fits and is short, or too long for the memory.
//! - A peer that cannot tell drops the target. It then takes no other before it hears that the dropped one has been matched: each
//!   EXPOSE names the oldest receive that still waits.
//!
//! Whether the memory is filled is decided once, by the transport: a receive that takes its message by the envelope revokes it
//! first, and one whose memory is being filled cannot be cancelled any more.

use std::collections::VecDeque;

use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};
use tagwire_matching::Envelope;
use tagwire_transport::{Capabilities, Offer, Outcome, Payload, Post, Ticket, Token};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::Ob1;
use super::common::Common;
use super::core::Core;
use super::driver::Driver;
use super::header::{ControlHeader, Kind};
use super::peer::{Health, Peer, PeerIndex};
use super::pending::Operation;
use super::protocols::State;
use crate::contacts;
use crate::packet::Packet;
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::Failure;

impl Kind {
    /// To a sender: memory that its next message of this pattern may fill. Handle: the receive; argument: its room in bytes; body:
    /// [`Exposure`].
    pub(super) const EXPOSE: Self = Self::control(33);
}

/// Packets to a peer that are remembered.
const REMEMBERED: usize = 16;

/// Receives that are exposed to one peer at once.
const EXPOSED: usize = 32;

/// The receives among which one is looked for that was posted before, and may take the same messages.
const LOOKED_AT: usize = 128;

/// So many exposed receives in a row that this rank was there for, and not all others are exposed any more: who waits loses by it.
const PATIENCE: u32 = 4;

/// The receives of which one is exposed then, as a power of two: what it costs is a hundredth of a message's time, and a rank
/// that begins to compute is noticed soon.
const SELDOM: u32 = 4;

/// What the transport has to do for receives to be exposed: receivers speak of what came before.
const NEEDED: Capabilities = Capabilities::COOPERATIVE.union(Capabilities::ORDERED);

/// Set in the tokens of exposed receives, and in no other's.
const MARK: u64 = 1 << 62;

/// The body of EXPOSE.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Exposure {
    ticket: [u64; 2],
    tag: i32,
    /// How many packets of its receiver were taken: the number of the next.
    taken: u32,
    /// The receive's number, among those that were exposed to its receiver.
    number: u32,
    /// That of the oldest of this pattern that waits.
    oldest: u32,
    context: u16,
    reserved: [u16; 3],
}

impl Exposure {
    const fn context(&self) -> ContextId {
        ContextId::new(self.context)
    }
}

/// Whether `number` was given after `other`.
const fn follows(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

/// Whether `number` was given long after `other`, which nothing refers to any more.
const fn is_long_ago(number: u32, other: u32) -> bool {
    follows(number, other) && number.wrapping_sub(other) > 1 << 30
}

/// A receive of this rank that is exposed.
#[derive(Debug)]
struct Exposed {
    receive: Handle,
    ticket: Ticket,
    number: u32,
    tag: Tag,
    context: ContextId,
    /// How the filling of its memory ended, where that was before its envelope came.
    end: Option<Outcome>,
}

/// A receive of a peer that messages of this rank may fill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub ticket: Ticket,
    pub number: u32,
    room: usize,
    tag: Tag,
    context: ContextId,
}

impl Target {
    /// Whether the next message of this pattern takes it.
    fn fits(&self, tag: Tag, context: ContextId) -> bool {
        self.tag == tag && self.context == context
    }
}

/// What one peer and this rank expose to each other.
#[derive(Debug)]
pub(super) struct Exposures {
    /// The first words of the packets to the peer, each at its sequence number; 0 for what takes no receive.
    sent: [u64; REMEMBERED],
    /// The sequence numbers of those that took a receive which the peer exposed, and the number of that.
    took: VecDeque<(u32, u32)>,
    exposed: Vec<Exposed>,
    /// How many were exposed.
    count: u32,
    /// How many of the last ones were not filled before this rank looked.
    unused: u32,
    /// So many are not exposed before the next one that is.
    skip: u32,
    targets: VecDeque<Target>,
    /// The last receive of this rank that was cancelled, or is not exposed any more for that: the peer may count it among those
    /// that wait.
    hole: Option<u32>,
    /// The peer's last receive that was dropped: of none after it is anything known while one before it waits.
    dropped: Option<u32>,
    /// The number of the peer's last receive.
    last: u32,
    /// Whether the peer has ever exposed one.
    pub are_used: bool,
    /// Sends whose envelopes are out with an offer, by the number of the packet.
    offered: VecDeque<(u32, Handle)>,
}

impl Default for Exposures {
    fn default() -> Self {
        Self {
            sent: [0; REMEMBERED],
            took: VecDeque::new(),
            exposed: Vec::new(),
            count: 0,
            unused: 0,
            skip: 0,
            targets: VecDeque::new(),
            hole: None,
            dropped: None,
            last: 0,
            are_used: false,
            offered: VecDeque::new(),
        }
    }
}

impl Exposures {
    /// Remembers the packet with this sequence number, by the first word of its header.
    #[inline(always)]
    pub(super) const fn remember(&mut self, sequence: u32, word: u64) {
        self.sent[sequence as usize % REMEMBERED] = word;
    }

    /// Remembers that packet `sequence` took the receive with this number.
    pub(super) fn took(&mut self, sequence: u32, number: u32) {
        if self.took.len() == REMEMBERED {
            self.took.pop_front();
        }
        self.took.push_back((sequence, number));
    }

    /// Remembers that the envelope of a send went in packet `sequence`, with an offer.
    pub(super) fn remember_offer(&mut self, sequence: u32, send: Handle) {
        if self.offered.len() == REMEMBERED {
            self.offered.pop_front();
        }
        self.offered.push_back((sequence, send));
    }

    /// Whether receives of this rank wait for messages of the peer, in memory that it may fill.
    pub(super) const fn is_exposed(&self) -> bool {
        !self.exposed.is_empty()
    }

    /// Whether messages to the peer may have targets.
    pub(super) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Returns the target that a message takes.
    pub(super) fn target(&self, tag: Tag, context: ContextId) -> Option<&Target> {
        let mut targets = self.targets.iter();
        targets.find(|target| target.fits(tag, context))
    }

    /// A message has taken its target, however it goes.
    pub(super) fn take_target(&mut self, tag: Tag, context: ContextId) {
        let mut targets = self.targets.iter();
        if let Some(place) = targets.position(|target| target.fits(tag, context)) {
            self.targets.remove(place);
        }
    }

    /// Nobody fills the peer's receives: some are not there any more, or take their messages out of their order.
    pub(super) fn drop_targets(&mut self) {
        if self.are_used {
            self.targets.clear();
            self.dropped = Some(self.last);
        }
    }

    /// What waits between the two is over: the peer is gone.
    pub(super) fn clear(&mut self) {
        self.targets.clear();
        self.offered.clear();
    }

    /// Whether this receive of this rank is exposed.
    fn holds(&self, receive: Handle) -> bool {
        self.exposed.iter().any(|one| one.receive == receive)
    }

    fn take(&mut self, receive: Handle) -> Option<Exposed> {
        let mut exposed = self.exposed.iter();
        let place = exposed.position(|one| one.receive == receive)?;
        Some(self.exposed.remove(place))
    }

    /// The number of the oldest receive of this pattern that is exposed.
    fn oldest(&self, tag: Tag, context: ContextId) -> Option<u32> {
        let mut exposed = self.exposed.iter();
        let oldest = exposed.find(|one| one.tag == tag && one.context == context)?;
        Some(oldest.number)
    }

    /// Whether the next receive is worth to be exposed.
    const fn is_worth_it(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        true
    }

    /// Takes note whether one that was exposed was filled before this rank looked.
    fn learn(&mut self, helped: bool) {
        self.unused = if helped {
            0
        } else {
            self.unused.saturating_add(1)
        };
        self.skip = match self.unused.checked_sub(PATIENCE) {
            Some(more) => (1 << more.min(SELDOM)) - 1,
            None => 0,
        };
    }
}

impl Peer {
    /// Takes an EXPOSE packet. Returns the send that takes the receive already, and its target, where there is one that may fill
    /// it.
    fn take_exposure(
        &mut self,
        room: u64,
        exposure: &Exposure,
    ) -> Result<Option<(Handle, Target)>, &'static str> {
        let tag = Tag::from_wire(exposure.tag).ok_or("a receive of a reserved tag")?;
        let target = Target {
            ticket: Ticket(exposure.ticket),
            number: exposure.number,
            room: usize::try_from(room).unwrap_or(usize::MAX),
            tag,
            context: exposure.context(),
        };
        let under_way = self.next_out.as_u32().wrapping_sub(exposure.taken);
        if under_way > u32::MAX / 2 {
            return Err("a receive that waited for packets that were not sent");
        }
        let pulls = self.pulled.is_some() || !self.wishes.is_empty();
        let knows = under_way as usize <= REMEMBERED && self.path.terms.coalesce == 0;
        let own = &mut self.exposures;
        own.are_used = true;
        own.last = exposure.number;
        let waits = |number: u32| !follows(exposure.oldest, number);
        own.targets
            .retain(|target| waits(target.number) || !target.fits(tag, exposure.context()));
        if own.dropped.is_some_and(waits)
            || pulls
            || !knows
            || own.targets.len() == EXPOSED
            || self.health != Health::Alive
        {
            own.dropped = Some(exposure.number);
            return Ok(None);
        }
        // Numbers come again after so many.
        own.dropped = own
            .dropped
            .filter(|dropped| !is_long_ago(exposure.oldest, *dropped));
        for number in (0..under_way).map(|ahead| exposure.taken.wrapping_add(ahead)) {
            let word = own.sent[number as usize % REMEMBERED];
            let (sent_tag, sent_context) = ((word >> 32) as i32, (word >> 16) as u16);
            let mut took = own.took.iter();
            let has_one = took.any(|(sequence, taken)| *sequence == number && waits(*taken));
            if word == 0 || has_one || sent_tag != exposure.tag || sent_context != exposure.context
            {
                continue;
            }
            // This message takes the receive, and no other.
            own.took(number, exposure.number);
            let mut offered = own.offered.iter();
            let send = offered.find(|(sequence, _)| *sequence == number);
            return Ok(send.map(|(_, send)| (*send, target)));
        }
        own.targets.push_back(target);
        self.refresh_clear();
        Ok(None)
    }
}

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
        let exposures = self.lane.peers.get(from).map(|peer| &peer.exposures);
        if exposures.is_some_and(|exposures| exposures.holds(receive)) {
            self.pending.push(Operation::Settle(from, receive));
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
        if let Some((send, target)) = peer.take_exposure(header.argument, &exposure)? {
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
        let Some(Exposed { ticket, end, .. }) = peer.exposures.take(receive) else {
            return 0;
        };
        peer.refresh_clear();
        let revoked = end.is_none() && self.rail.revoke(peer.endpoint, ticket);
        peer.exposures.learn(matches!(end, Some(Outcome::Done(_))));
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
        // Its receiver knows that too, and claims nothing.
        self.rail
            .forget(peer.endpoint, std::mem::replace(offer, target.ticket));
        1
    }

    /// Returns the target that a send fills whose turn it is.
    pub(super) fn target(peer: &Peer, common: &Common) -> Option<Ticket> {
        let target = peer.exposures.target(common.status.tag, common.context)?;
        let is_long = common.wanted > peer.path.terms.eager;
        (is_long && common.wanted <= target.room).then_some(target.ticket)
    }
}

impl Ob1 {
    /// Exposes a receive that was just posted, where that is worth it.
    #[inline]
    pub(super) fn expose(&mut self, receive: Handle) {
        let capacity = |request: &super::request::Request| request.common.capacity();
        let long = self.core.requests.get(receive).map(capacity);
        if long.is_some_and(|capacity| capacity >= self.core.expose_from) {
            self.expose_long(receive);
        }
    }

    #[inline(never)]
    fn expose_long(&mut self, receive: Handle) {
        let Some((index, tag)) = self.may_be_exposed(receive) else {
            return;
        };
        // What is here already comes first, and a message of the peer may be.
        let events = self.driver.rail.progress(LANE, &mut self.core);
        self.core.lane.ended += events;
        self.driver.run_pending(&mut self.core);
        if !self.is_first(receive, index, tag) {
            return;
        }
        let Core { requests, lane, .. } = &mut self.core;
        let (Some(request), Some(peer)) = (requests.get(receive), lane.peers.get_mut(index)) else {
            return;
        };
        let Some(data) = request.common.recv_buffer() else {
            return;
        };
        let token = Token(MARK | receive.to_wire());
        let Offer::Open(ticket) = self
            .driver
            .rail
            .offer_recv(LANE, peer.endpoint, data, token)
        else {
            return;
        };
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
            end: None,
        });
        peer.refresh_clear();
        let endpoint = peer.endpoint;
        let header = ControlHeader {
            kind: Kind::EXPOSE,
            handle: receive,
            argument: data.capacity() as u64,
        };
        let packet = Packet::new(index, header, exposure.as_bytes());
        if !contacts::send(&mut self.driver.contacts(&mut self.core), &packet) {
            // The peer has not heard of it: the next one has its number.
            self.driver.rail.revoke(endpoint, ticket);
            if let Some(peer) = self.core.lane.peers.get_mut(index) {
                peer.exposures.take(receive);
                peer.exposures.count = number;
                peer.refresh_clear();
            }
        }
    }

    /// Returns the peer that a receive may be exposed to, and its tag.
    fn may_be_exposed(&mut self, receive: Handle) -> Option<(PeerIndex, Tag)> {
        let core = &mut self.core;
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
            && peer.exposures.is_worth_it();
        is_worth_it.then_some((index, tag))
    }

    /// Whether a receive waits, and each one that was posted before it, and may take the same message of the peer, is exposed to
    /// the peer.
    fn is_first(&mut self, receive: Handle, index: PeerIndex, tag: Tag) -> bool {
        let core = &mut self.core;
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
    pub(super) fn revoke(&mut self, receive: Handle) -> bool {
        let Some(index) = self.core.exposed_to(receive) else {
            return true;
        };
        let Some(peer) = self.core.lane.peers.get_mut(index) else {
            return true;
        };
        let (own, rail) = (&mut peer.exposures, &mut self.driver.rail);
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
