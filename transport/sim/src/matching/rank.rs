//! One rank of a matching network: its peers, and the verbs.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use tagwire_base::Rank;

use super::carried::Matched;
use super::lists::{Content, Message, Receive};
use super::progress::Event;
use super::state::{End, MatchState};
use super::{NAME, Shared};
use crate::member::Status;
use tagwire_transport::Transport;
use tagwire_transport::capability::{Capabilities, WaitObject};
use tagwire_transport::data::{RecvBuffer, SendBuffer};
use tagwire_transport::error::{Error, Result};
use tagwire_transport::matching::{
    Cancel, ClaimId, Directed, Found, MatchCounts, MatchEnvelope, MatchLevels, MatchLimits,
    MatchPattern, MatchTransport, MatchUpcalls, Posted, Probed, ReceiveEnd, Refusal, Sent,
};
use tagwire_transport::message::{EndpointId, Lane, Token};
use tagwire_transport::wait::Waiter;

/// A peer, as this rank knows it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) rank: Rank,
    /// Where our messages go: the place in the peer's list of channels.
    outbound: Option<usize>,
    /// Its first contact was reported.
    pub(super) up: bool,
    /// Its end was reported: sends return `Gone`.
    pub(super) closed: bool,
}

/// One rank's access to a [`MatchNetwork`](super::MatchNetwork).
pub struct MatchMemory {
    pub(super) shared: Arc<Shared>,
    pub(super) rank: Rank,
    pub(super) links: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
    /// How many of our inbound channels have a link.
    pub(super) seen_channels: usize,
    /// Collected under the lock, told without it.
    pub(super) events: Vec<Event>,
    /// Verbs so far, for those that find no room.
    verbs: u32,
    /// Peers that have failed and of whose messages some are under way.
    pub(super) failing: Vec<Rank>,
    /// Dropping is a goodbye.
    leaving: bool,
    waiter: Arc<dyn Waiter>,
}

impl fmt::Debug for MatchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MatchMemory({:?})", self.rank)
    }
}

impl MatchMemory {
    pub(super) fn new(shared: Arc<Shared>, rank: Rank, waiter: Arc<dyn Waiter>) -> Self {
        Self {
            shared,
            rank,
            links: Vec::new(),
            by_rank: HashMap::new(),
            seen_channels: 0,
            events: Vec::new(),
            verbs: 0,
            failing: Vec::new(),
            leaving: false,
            waiter,
        }
    }

    /// The link to `rank`, made on first contact.
    pub(super) fn link(&mut self, rank: Rank) -> EndpointId {
        *self.by_rank.entry(rank).or_insert_with(|| {
            self.links.push(Link {
                rank,
                outbound: None,
                up: false,
                closed: false,
            });
            EndpointId(self.links.len() as u32 - 1)
        })
    }

    pub(super) fn find_link(&self, rank: Rank) -> Option<EndpointId> {
        self.by_rank.get(&rank).copied()
    }

    /// Whether this verb is one of those that find no room.
    fn is_busy(&mut self) -> bool {
        self.verbs = self.verbs.wrapping_add(1);
        let every = self.shared.options.busy_every;
        every > 0 && self.verbs.is_multiple_of(every)
    }

    /// Where messages to `endpoint` go, getting in contact first where only the peer did. `None`
    /// when it or we are gone.
    fn outbound(&mut self, state: &mut MatchState, endpoint: EndpointId) -> Option<(Rank, usize)> {
        let link = self.links.get_mut(endpoint.index())?;
        let gone =
            state.status(self.rank) != Status::Open || state.status(link.rank) == Status::Left;
        if link.closed || gone {
            return None;
        }
        if link.outbound.is_none() {
            link.outbound = state.open_channel(self.rank, link.rank);
        }
        link.outbound.map(|place| (link.rank, place))
    }

    fn check(&self, pattern: &MatchPattern) -> Option<Refusal> {
        let limits = self.match_limits();
        if (pattern.bits | pattern.ignore) & !limits.bits != 0 {
            return Some(Refusal::ReservedBits);
        }
        if pattern.ignore & !limits.ignorable != 0
            || !(limits.ignorable_in_part
                || pattern.ignore == 0
                || pattern.ignore == limits.ignorable)
        {
            return Some(Refusal::Ignore);
        }
        let refused = match limits.directed {
            Directed::BySource => false,
            Directed::AfterConnect => pattern
                .source
                .is_some_and(|source| self.find_link(source).is_none()),
            // In the bits, then.
            _ => pattern.source.is_some(),
        };
        refused.then_some(Refusal::Unknown)
    }

    /// A message, with a copy of the bytes where its receiver has room for one.
    fn message(
        &self,
        state: &MatchState,
        to: Rank,
        bits: u64,
        data: &SendBuffer,
        notice: (bool, Token),
    ) -> Result<Message, Refusal> {
        let options = &self.shared.options;
        let length = data.len();
        let envelope = MatchEnvelope {
            source: self.rank,
            bits,
            length: length as u64,
        };
        let (synchronous, token) = notice;
        let has_room = |len| {
            state
                .members
                .get(&to)
                .is_some_and(|member| member.lists.has_room(options, len))
        };
        if !synchronous && length <= options.max_short && has_room(length) {
            let mut bytes = vec![0; length].into_boxed_slice();
            data.copy_out(0, &mut bytes);
            return Ok(Message {
                envelope,
                content: Content::Kept(bytes),
                notice: None,
                held: false,
                noted: None,
            });
        }
        Ok(Message {
            envelope,
            content: Content::Lent(data.region().ok_or(Refusal::Shape)?),
            notice: Some(token),
            held: !has_room(0),
            noted: None,
        })
    }

    /// Network and rank; peers of another network are not understood.
    fn address_of(&self, rank: Rank) -> Vec<u8> {
        let network = Arc::as_ptr(&self.shared).addr() as u64;
        let mut blob = NAME.as_bytes().to_vec();
        blob.extend(network.to_le_bytes());
        blob.extend(rank.as_u32().to_le_bytes());
        blob
    }
}

impl Transport for MatchMemory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::WAKE
            | Capabilities::ORDERED
            | Capabilities::RELIABLE
            | Capabilities::LOCAL
            | Capabilities::LOOPBACK;
        all.set(
            Capabilities::FAILURE_DETECTION,
            self.shared.options.detect_failures,
        );
        all.set(Capabilities::COOPERATIVE, self.shared.options.helping);
        all
    }

    fn address(&self) -> Vec<u8> {
        self.address_of(self.rank)
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        if address != self.address_of(peer) {
            return Err(Error::BadAddress {
                transport: NAME,
                peer,
                reason: format!("{} bytes that name another network or rank", address.len()),
            });
        }
        if let Some(known) = self.find_link(peer) {
            return Ok(known);
        }
        let shared = Arc::clone(&self.shared);
        let place = shared.state().open_channel(self.rank, peer);
        let place = place.ok_or_else(|| Error::Unreachable {
            transport: NAME,
            peer,
            reason: "it is not there".to_owned(),
        })?;
        let endpoint = self.link(peer);
        self.links[endpoint.index()].outbound = Some(place);
        Ok(endpoint)
    }

    fn leave(&mut self) {
        self.leaving = true;
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter)
    }

    fn describe(&self, out: &mut dyn Write) {
        let state = self.shared.state();
        for link in &self.links {
            let depth = |of: Rank, from: Rank| {
                state
                    .members
                    .get(&of)
                    .and_then(|member| Some(member.inbound[member.find_channel(from)?].queue.len()))
                    .unwrap_or(0)
            };
            let open = state
                .moving
                .values()
                .filter(|moving| {
                    moving.transfer.involves(self.rank) && moving.transfer.involves(link.rank)
                })
                .count();
            // The sink's own failure has nowhere else to be reported.
            let _ = writeln!(
                out,
                "{NAME}: rank {}: {} untaken there, {} untaken here, {open} transfers{}",
                link.rank,
                depth(link.rank, self.rank),
                depth(self.rank, link.rank),
                if link.closed { ", closed" } else { "" },
            );
        }
    }
}

impl MatchTransport for MatchMemory {
    fn match_limits(&self) -> MatchLimits {
        let options = &self.shared.options;
        let mut limits = MatchLimits::UNLIMITED;
        limits.bits = options.bits;
        limits.ignorable = options.ignorable.unwrap_or(options.bits);
        limits.ignorable_in_part = options.ignorable.is_none();
        limits.directed = options.directed;
        limits.max_short = options.max_short;
        limits.max_posted = options.max_posted;
        limits.memory_per_peer = options.slots * options.max_short;
        limits.wait_object = WaitObject::Futex;
        limits
    }

    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        let shared = Arc::clone(&self.shared);
        if bits & !shared.options.bits != 0 {
            return Sent::Refused(Refusal::ReservedBits);
        }
        if to.index() >= self.links.len() {
            return Sent::Refused(Refusal::Unknown);
        }
        let mut state = shared.state();
        let Some((rank, place)) = self.outbound(&mut state, to) else {
            return Sent::Gone;
        };
        if self.is_busy() {
            return Sent::Busy;
        }
        let mut message = match self.message(&state, rank, bits, data, (synchronous, token)) {
            Ok(message) => message,
            Err(refusal) => return Sent::Refused(refusal),
        };
        let is_carried = state.is_carried;
        let Some(member) = state.members.get_mut(&rank) else {
            return Sent::Gone;
        };
        let answer = if message.notice.is_some() {
            Sent::Open
        } else {
            Sent::Done
        };
        let channel = &mut member.inbound[place];
        if channel.untaken() >= shared.options.slots {
            channel.starved = true;
            return Sent::Busy;
        }
        // A reader that gave us up takes nothing any more. A short message is lost, as it is when
        // a reader has died and we do not know yet; of a longer one we hear once we know.
        if !channel.closed || answer == Sent::Open {
            member.lists.charge(&message);
            if is_carried {
                channel.flying += 1;
                state.carry(self.rank, rank, Matched::Message(place, message));
            } else {
                message.noted = state.note(self.rank, rank, data.len());
                state.bring(rank, place, message);
            }
        }
        answer
    }

    fn post(
        &mut self,
        _lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        if let Some(refusal) = self.check(&pattern) {
            return Posted::Refused(refusal);
        }
        let Some(target) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        if self.is_busy() {
            return Posted::Busy;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let Some(member) = state.members.get_mut(&self.rank) else {
            return Posted::Refused(Refusal::Unknown);
        };
        let receive = Receive {
            pattern,
            target,
            token,
        };
        if let Some(message) = member.lists.take_message(&pattern) {
            member.lists.refund(&message);
            member.fetched += u64::from(message.is_long(&shared.options));
            state.receive_late(self.rank, &message);
            return match state.bring_together(self.rank, receive, message, false) {
                Some(end) => Posted::Done(end),
                None => Posted::Open,
            };
        }
        if member.lists.posted.len() >= shared.options.max_posted {
            return Posted::Full;
        }
        member.lists.posted.push_back(receive);
        Posted::Open
    }

    fn probe(&mut self, _lane: Lane, pattern: MatchPattern, claim: bool, token: Token) -> Probed {
        if let Some(refusal) = self.check(&pattern) {
            return Probed::Refused(refusal);
        }
        if self.is_busy() {
            return Probed::Busy;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let Some(member) = state.members.get_mut(&self.rank) else {
            return Probed::Refused(Refusal::Unknown);
        };
        let found = if claim {
            member.lists.take_message(&pattern).map(|message| {
                let envelope = message.envelope;
                let claim = Some(member.lists.claim(message));
                Found { envelope, claim }
            })
        } else {
            member.lists.find(&pattern).map(|message| Found {
                envelope: message.envelope,
                claim: None,
            })
        };
        if shared.options.late_answers {
            state.end_operation(self.rank, End::Probed(token, found));
            return Probed::Pending;
        }
        found.map_or(Probed::Nothing, Probed::Found)
    }

    fn receive_claimed(
        &mut self,
        _lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let Some(target) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        if self.is_busy() {
            return Posted::Busy;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let message = state.members.get_mut(&self.rank).and_then(|member| {
            let message = member.lists.claimed.remove(&claim.0)?;
            member.lists.refund(&message);
            member.fetched += u64::from(message.is_long(&shared.options));
            Some(message)
        });
        let Some(message) = message else {
            return Posted::Refused(Refusal::Unknown);
        };
        state.receive_late(self.rank, &message);
        let receive = Receive {
            pattern: MatchPattern {
                bits: 0,
                ignore: u64::MAX,
                source: None,
            },
            target,
            token,
        };
        match state.bring_together(self.rank, receive, message, false) {
            Some(end) => Posted::Done(end),
            None => Posted::Open,
        }
    }

    fn cancel(&mut self, _lane: Lane, token: Token) -> Cancel {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let late = shared.options.late_answers;
        let Some(member) = state.members.get_mut(&self.rank) else {
            return Cancel::TooLate;
        };
        let posted = &mut member.lists.posted;
        let place = posted.iter().position(|receive| receive.token == token);
        match place.and_then(|place| posted.remove(place)) {
            Some(_) if late => {
                state.end_operation(self.rank, End::Received(token, ReceiveEnd::Cancelled));
                Cancel::Pending
            }
            Some(_) => Cancel::Cancelled,
            None if late => Cancel::Pending,
            None => Cancel::TooLate,
        }
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize {
        let happened = self.collect() + self.tell(upcalls);
        if happened == 0 {
            self.shared.pass_time(self.rank);
        }
        happened
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls) {
        if self.shared.options.detect_failures {
            for rank in self.failed_peers() {
                self.peer_failed(rank, upcalls);
            }
        }
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn MatchUpcalls) {
        self.collect_failure(rank);
        self.tell(upcalls);
    }

    fn levels(&self) -> MatchLevels {
        let state = self.shared.state();
        let mut levels = MatchLevels::default();
        for (rank, member) in &state.members {
            let queued = member.inbound.iter().flat_map(|channel| &channel.queue);
            let waiting = queued.chain(&member.lists.unexpected);
            levels.held += waiting
                .filter(|message| message.held && message.envelope.source == self.rank)
                .count();
            if *rank == self.rank {
                levels.posted = member.lists.posted.len();
                levels.unexpected = member.lists.envelopes;
                levels.unexpected_bytes = member.lists.bytes;
            }
        }
        levels
    }

    fn counts(&self) -> MatchCounts {
        let state = self.shared.state();
        let member = state.members.get(&self.rank);
        MatchCounts::of_library(member.map_or(0, |member| member.fetched))
    }

    fn visit_unexpected(&self, visit: &mut dyn FnMut(&MatchEnvelope)) {
        let state = self.shared.state();
        if let Some(member) = state.members.get(&self.rank) {
            let queued = member.inbound.iter().flat_map(|channel| &channel.queue);
            for message in member.lists.unexpected.iter().chain(queued) {
                visit(&message.envelope);
            }
        }
    }
}

impl Drop for MatchMemory {
    fn drop(&mut self) {
        let status = if self.leaving {
            Status::Left
        } else {
            Status::Failed
        };
        self.shared.end(self.rank, status);
    }
}
