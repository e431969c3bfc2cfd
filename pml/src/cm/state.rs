//! The state of cm, and what the transport reports to it.
//!
//! Upcalls must not call the transport: what they want done there is noted as a [`Pending`], and
//! done right after.

use std::collections::VecDeque;

use tagwire_base::Rank;
use tagwire_transport::{
    Arrival, ClaimId, EndpointId, Found, MatchEnvelope, MatchUpcalls, Outcome, PeerEvent,
    ReceiveEnd, Token,
};

use super::bounce::Bounces;
use super::layout::Layout;
use super::peer::{Peer, PeerIndex};
use super::request::{Phase, Request};
use crate::lane::Lane;
use crate::packet::{ControlHeader, Kind};
use crate::slab::{Handle, Slab};
use crate::table::Table;
use crate::types::{Counters, Failure, Status};

/// Marks the tokens of probes: no handle has so high a bit.
const PROBE: u64 = 1 << 63;

/// Something to be done with the transport, outside its progress.
#[derive(Debug)]
pub(super) enum Pending {
    /// Sends that wait for this peer may go on.
    Flush(PeerIndex),
    /// Receives that wait for room may be posted.
    Post,
    /// End what waits for this rank alone, and, when it `died`, what waits for any.
    Lost {
        peer: PeerIndex,
        rank: Rank,
        failure: Failure,
        died: bool,
    },
}

/// A message that a probe has taken out of matching.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimed {
    pub id: ClaimId,
    pub status: Status,
}

/// Everything of cm but the transport.
pub(super) struct State {
    pub lane: Lane<Peer>,
    pub layout: Layout,
    pub requests: Table<Request>,
    pub claimed: Slab<Claimed>,
    /// Receives that wait for room, in the order of posting.
    pub waiting: VecDeque<Handle>,
    pub pending: VecDeque<Pending>,
    /// Memory for data that the transport does not take in its shape.
    pub bounces: Bounces,
    /// Bytes of buffered sends that wait.
    pub buffered: usize,
    /// The number of the next receive.
    pub posted: u64,
    /// The probe that waits for its result, and the result.
    pub probing: u64,
    pub probed: Option<Option<Found>>,
    /// But for the long unexpected messages, of which the transport knows.
    pub counters: Counters,
}

impl State {
    pub(super) fn new(lane: Lane<Peer>, layout: Layout) -> Self {
        Self {
            lane,
            layout,
            requests: Table::new(),
            claimed: Slab::default(),
            waiting: VecDeque::new(),
            pending: VecDeque::new(),
            bounces: Bounces::default(),
            buffered: 0,
            posted: 0,
            counters: Counters::default(),
            probing: 0,
            probed: None,
        }
    }

    /// `endpoint` has sent what no correct peer sends.
    #[cold]
    fn broken(&mut self, endpoint: EndpointId, what: &str) {
        tracing::error!("protocol error: {what}");
        self.lose_endpoint(endpoint, Failure::Protocol);
    }

    /// The token of a new probe.
    pub(super) const fn probe_token(&mut self) -> Token {
        self.probing += 1;
        self.probed = None;
        Token(PROBE | self.probing)
    }

    /// Ends an operation.
    pub(super) fn finish(&mut self, handle: Handle, failure: Option<Failure>) {
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        self.lane.ended += 1;
        request.phase = Phase::Complete;
        if failure.is_some() {
            request.status.failure = failure;
        }
        if let Some(bounce) = request.bounce.take() {
            if request.is_send && request.detached {
                self.buffered -= bounce.len();
            }
            self.bounces.give(bounce);
        }
        if request.detached {
            self.requests.remove(handle);
        }
    }

    /// The status of a message, without a failure of its own; `None` for what no correct peer
    /// sends.
    #[inline]
    pub(super) fn describe(&self, envelope: &MatchEnvelope) -> Option<Status> {
        let (tag, _) = self.layout.read(envelope)?;
        Some(Status {
            source: envelope.source,
            tag,
            length: usize::try_from(envelope.length).ok()?,
            cancelled: false,
            failure: None,
        })
    }

    /// A receive took a message.
    #[inline]
    pub(super) fn matched(&mut self, handle: Handle, envelope: &MatchEnvelope, outcome: Outcome) {
        let status = self.describe(envelope);
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        if request.is_send || request.phase != Phase::Open {
            return;
        }
        let (Some(status), Outcome::Done(_)) = (status, outcome) else {
            return self.matched_in_vain(handle, envelope, outcome);
        };
        self.lane.ended += 1;
        request.status = status;
        request.phase = Phase::Complete;
        if status.length > request.capacity {
            request.status.failure = Some(Failure::truncated(request.capacity));
        }
        if let Some(room) = request.bounce.take() {
            request.unpack(status.length, &room);
            self.bounces.give(room);
        }
    }

    #[cold]
    fn matched_in_vain(&mut self, handle: Handle, envelope: &MatchEnvelope, outcome: Outcome) {
        let source = envelope.source;
        let failure = match (self.describe(envelope), outcome) {
            (None, _) | (_, Outcome::Done(_)) => Failure::Protocol(source),
            _ => self
                .lane
                .losses
                .of(source)
                .unwrap_or(Failure::PeerFailed(source)),
        };
        if let Some(request) = self.requests.get_mut(handle) {
            request.status.source = source;
            if let Ok(length) = usize::try_from(envelope.length) {
                request.status.length = length;
            }
        }
        self.finish(handle, Some(failure));
    }

    /// A receive was taken back.
    pub(super) fn taken_back(&mut self, handle: Handle) {
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        match request.doomed {
            Some(failure) => self.finish_in_vain(handle, failure),
            None => {
                request.status.cancelled = true;
                self.finish(handle, None);
            }
        }
    }

    /// Ends a receive that nothing matches any more.
    pub(super) fn finish_in_vain(&mut self, handle: Handle, failure: Failure) {
        if let Some(request) = self.requests.get_mut(handle)
            && let Failure::PeerFailed(rank)
            | Failure::PeerLeft(rank)
            | Failure::Protocol(rank)
            | Failure::Unreachable(rank) = failure
        {
            request.status.source = rank;
        }
        self.finish(handle, Some(failure));
    }

    /// Peer `index` is not there any more.
    #[cold]
    pub(super) fn lose(&mut self, index: PeerIndex, failure: Failure) {
        let Some(peer) = self.lane.peers.get_mut(index) else {
            return;
        };
        // A failure may follow a goodbye (its end was seen late); the first word stands.
        if peer.lost.is_some() {
            return;
        }
        peer.lost = Some(failure);
        peer.refresh_clear();
        let rank = peer.rank;
        self.lane.end_services(index, failure);
        self.lost(index, rank, failure);
    }

    fn lost(&mut self, peer: PeerIndex, rank: Rank, failure: Failure) {
        // Any-source receives fail with the news, once: it may be acknowledged by now.
        let news = self.lane.losses.note(rank, failure);
        let died = news && !matches!(failure, Failure::PeerLeft(_));
        self.pending.push_back(Pending::Lost {
            peer,
            rank,
            failure,
            died,
        });
    }

    /// A member of the job is gone that may never have been in contact.
    pub(super) fn member_gone(&mut self, rank: Rank, failure: Failure) {
        match self.lane.peers.find(rank) {
            // What it sent before it left may still lie in the transport, which will report its
            // end once that is in matching.
            Some(_) if matches!(failure, Failure::PeerLeft(_)) => {}
            Some(peer) => self.lose(peer, failure),
            None if self.lane.losses.of(rank).is_some() => {}
            None => self.lost(PeerIndex::NONE, rank, failure),
        }
    }

    fn lose_endpoint(&mut self, endpoint: EndpointId, failure: impl Fn(Rank) -> Failure) {
        if let Some(index) = self.lane.peers.of_endpoint(endpoint)
            && let Some(peer) = self.lane.peers.get(index)
        {
            let failure = failure(peer.rank);
            self.lose(index, failure);
        }
    }
}

impl MatchUpcalls for State {
    fn sent(&mut self, token: Token, outcome: Outcome) {
        let handle = Handle::from_wire(token.0);
        let Some(request) = self.requests.get(handle) else {
            return;
        };
        let rank = request.status.source;
        let failure = match outcome {
            Outcome::Done(_) => None,
            _ => Some(
                self.lane
                    .losses
                    .of(rank)
                    .unwrap_or(Failure::PeerFailed(rank)),
            ),
        };
        self.finish(handle, failure);
    }

    #[inline]
    fn received(&mut self, token: Token, end: ReceiveEnd) {
        let handle = Handle::from_wire(token.0);
        match end {
            ReceiveEnd::Matched(envelope, outcome) => self.matched(handle, &envelope, outcome),
            ReceiveEnd::Cancelled => self.taken_back(handle),
        }
    }

    fn probed(&mut self, token: Token, found: Option<Found>) {
        if token.0 == PROBE | self.probing {
            self.probed = Some(found);
        }
    }

    fn packet(&mut self, arrival: Arrival<'_>) {
        let Some(from) = self.lane.peers.of_endpoint(arrival.from) else {
            return;
        };
        let header = ControlHeader::decode(Kind::of(arrival.header), arrival.header);
        if let Err(what) = self.lane.packet(from, header, arrival.payload) {
            self.broken(arrival.from, what);
        }
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.lane.complete(token, outcome);
    }

    fn notice(&mut self, immediate: u64) {
        if let Err((peer, what)) = self.lane.notice(immediate)
            && let Some(endpoint) = self.lane.peers.get(peer).map(|peer| peer.endpoint)
        {
            self.broken(endpoint, what);
        }
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => {
                self.lane.peers.enter(rank, endpoint);
            }
            PeerEvent::Left(endpoint) => self.lose_endpoint(endpoint, Failure::PeerLeft),
            PeerEvent::Failed(endpoint) => self.lose_endpoint(endpoint, Failure::PeerFailed),
            PeerEvent::Protocol(endpoint, error) => {
                self.lane.offences.log(endpoint, &error);
                if let Some(endpoint) = endpoint {
                    self.lose_endpoint(endpoint, Failure::Protocol);
                }
            }
            _ => {}
        }
    }
}
