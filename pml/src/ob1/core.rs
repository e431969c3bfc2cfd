//! The operations of a rank, and the tables that they stand in: everything of ob1 but the transport and the bootstrap.

use super::coalesce::Coalescing;
use super::credit::Budget;
use super::held::Held;
use super::matcher::Matcher;
use super::peer::{Health, Peer, PeerIndex};
use super::pending::Pending;
use super::protocol::{Fallback, Step, Turn};
use super::protocols::State;
use super::request::Requests;
use crate::lane::Lane;
use crate::slab::Handle;
use crate::types::{Counters, Failure};

/// The state of ob1.
pub(super) struct Core {
    pub lane: Lane<Peer>,
    pub matcher: Matcher,
    pub requests: Requests,
    pub budget: Budget,
    pub pending: Pending,
    /// A rank is gone or a budget is spent: posted receives are looked at twice.
    pub in_trouble: bool,
    /// Bytes of buffered sends that wait.
    pub buffered: usize,
    pub counters: Counters,
    pub coalescing: Coalescing,
    /// Messages may wait for others, or services are in use: progress has more to do.
    pub has_extras: bool,
    /// The least bytes of a receive that may be exposed.
    pub expose_from: usize,
    /// How often progress found nothing while the rank waited.
    pub idle: u64,
    /// Where the next look for messages that nobody will receive begins.
    pub strays_from: u32,
}

impl Core {
    pub(super) fn new(lane: Lane<Peer>, matcher: Matcher, budget: Budget) -> Self {
        Self {
            lane,
            matcher,
            requests: Requests::new(),
            budget,
            pending: Pending::new(),
            in_trouble: false,
            buffered: 0,
            counters: Counters::default(),
            coalescing: Coalescing::default(),
            has_extras: false,
            expose_from: usize::MAX,
            idle: 0,
            strays_from: 0,
        }
    }

    /// Returns the envelopes that are held back, on both sides.
    pub(super) const fn held(&mut self) -> Held<'_> {
        Held {
            peers: &mut self.lane.peers,
            requests: &mut self.requests,
            pending: &mut self.pending,
        }
    }

    /// Ends an operation.
    pub(super) fn finish(&mut self, handle: Handle, failure: Option<Failure>) {
        let Some(request) = self.requests.get_mut(handle) else {
            debug_assert!(false, "an operation ends once");
            return;
        };
        self.lane.ended += 1;
        request.state = State::Complete;
        let common = &mut request.common;
        if failure.is_some() {
            common.status.failure = failure;
        }
        if let Some(copy) = common.owned.take() {
            self.buffered -= copy.len();
        }
        if common.detached {
            self.requests.remove(handle);
        }
    }

    /// Does what a protocol wants for its operation.
    pub(super) fn apply(&mut self, handle: Handle, step: Step) {
        match step {
            Step::Wait => {}
            Step::Advance => self.pending.advance(handle),
            Step::Done(failure) => self.finish(handle, failure),
            Step::Fallback(fallback) => self.fall_back(handle, fallback),
            Step::Broken(what) => {
                if let Some(request) = self.requests.get(handle) {
                    self.broken(request.common.peer, what);
                }
            }
        }
    }

    /// The bytes of an operation are to be sent in fragments.
    fn fall_back(&mut self, handle: Handle, fallback: Fallback) {
        let Some(request) = self.requests.get_mut(handle) else {
            debug_assert!(false, "a protocol's request is there");
            return;
        };
        request.state = fallback.into();
        match fallback {
            Fallback::Announced => {}
            Fallback::Push { .. } => self.pending.advance(handle),
            Fallback::Ask { .. } => self.begin(handle),
        }
    }

    /// Begins to move the bytes of a message whose envelope a receive has taken.
    pub(super) fn fetch(&mut self, receive: Handle, state: State) {
        if let Some(request) = self.requests.get_mut(receive) {
            request.state = state;
            self.begin(receive);
        }
    }

    fn begin(&mut self, receive: Handle) {
        let Some(request) = self.requests.get_mut(receive) else {
            return;
        };
        let mut turn = Turn {
            handle: receive,
            pending: &mut self.pending,
        };
        let step = request.state.matched(&mut request.common, &mut turn);
        self.apply(receive, step);
    }

    /// Notes that sends to this peer may go on.
    pub(super) fn flush_later(&mut self, index: PeerIndex) {
        if let Some(peer) = self.lane.peers.get_mut(index) {
            peer.flush_later(index, &mut self.pending);
        }
    }

    /// `from` has sent what no correct peer sends: it is not listened to any more. What one that fails has sent before may be about operations that have
    /// ended since, and is left.
    #[cold]
    pub(super) fn broken(&mut self, from: PeerIndex, what: &str) {
        if let Some(peer) = self.lane.peers.get(from)
            && peer.health == Health::Alive
        {
            if peer.fails {
                tracing::debug!(rank = peer.rank.as_u32(), "before its failure: {what}");
                return;
            }
            tracing::error!(rank = peer.rank.as_u32(), "protocol error: {what}");
            self.lose(from, Health::Broken);
        }
    }
}
