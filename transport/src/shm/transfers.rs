//! The cooperative transfers that this rank takes part in, as its contract has them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;

use tagwire_base::Rank;

use super::arena::IN_ARENA;
use super::config::CrossAttach;
use super::layout::OFFERS;
use super::offers::{self, CLAIMED, OPEN, RELEASED, Side, TAKEN, WITHDRAWN, WRITES};
use super::peer::{Access, Peer, PeerState};
use super::rank::Shm;
use super::segment::AreaMap;
use super::transfer::{Buffer, Line, Marks, Point, Reach, Run, Transfer, reach};
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer, WriteRegion};
use crate::message::{EndpointId, Lane, Outcome, Token, Upcalls};
use crate::post::Post;

/// How long closing waits for peers that are just copying from or to this rank.
const CLOSING: Duration = Duration::from_millis(200);

impl CooperativeTransfers for Shm {
    fn offer(&mut self, _lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        let source = data.region().map(Buffer::Source);
        source.map_or(Offer::Unsupported, |source| {
            self.open_transfer(to, source, token)
        })
    }

    fn maps(&self, _to: EndpointId, data: &SendBuffer) -> bool {
        let span = self.arena.span;
        let region = data.region();
        region.is_some_and(|region| span.holds(region.address(), region.len()))
    }

    fn goes_ahead(&mut self, to: EndpointId, data: &SendBuffer) -> bool {
        let Some(Some(out)) = self.outbound.get_mut(to.index()) else {
            return false;
        };
        let len = data.len();
        let does = data.region().is_some() && self.transfers.goes_ahead(to, len as u64);
        if does {
            out.producer.begin_long(len);
        }
        does
    }

    fn claim(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        let target = data.region().map(Buffer::Target);
        target.map_or(Post::Unsupported, |target| {
            self.join(from, ticket, target, token)
        })
    }

    fn offer_recv(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        token: Token,
    ) -> Offer {
        let target = data.region().map(Buffer::Target);
        target.map_or(Offer::Unsupported, |target| {
            self.open_transfer(from, target, token)
        })
    }

    fn fill(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        ticket: Ticket,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        let source = data.region().map(Buffer::Source);
        source.map_or(Post::Unsupported, |source| {
            self.join(to, ticket, source, token)
        })
    }

    fn revoke(&mut self, from: EndpointId, ticket: Ticket) -> bool {
        let Some(at) = self.transfers.offer_of(from, ticket) else {
            return false;
        };
        let line = &self.transfers.offers[at].line;
        if !offers::settle(&line.get().offered, line.generation, WITHDRAWN) {
            return false;
        }
        let transfer = self.transfers.offers.remove(at);
        self.transfers.give_back(&transfer);
        true
    }

    fn forget(&mut self, to: EndpointId, ticket: Ticket) {
        if let Some(at) = self.transfers.offer_of(to, ticket) {
            let transfer = self.transfers.offers.remove(at);
            let line = &transfer.line;
            offers::publish(&line.get().offered, line.generation, WITHDRAWN);
            self.transfers.give_back(&transfer);
        }
    }

    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        if let Some(at) = self.transfers.offer_of(to, ticket) {
            self.transfers.offers[at].stop(Outcome::Withdrawn);
            self.attention = true;
        }
    }
}

impl Shm {
    fn open_transfer(&mut self, to: EndpointId, buffer: Buffer, token: Token) -> Offer {
        let (address, len) = buffer.extent();
        let Some(units) = offers::units(len as u64) else {
            return Offer::Unsupported;
        };
        let alive = |peer: &Peer| peer.state == PeerState::Alive;
        if !self.peers.get(to.index()).is_some_and(alive)
            || (self.outbound[to.index()].is_none() && self.answer_contact(to).is_err())
        {
            return Offer::Unsupported;
        }
        if self.options.cross_attach == CrossAttach::Off && !self.may_map(to, address, len) {
            return Offer::Unsupported;
        }
        let Some(area) = self.peers[to.index()].outbound.clone() else {
            return Offer::Unsupported;
        };
        let Some(line) = self.transfers.reserve(to, &area) else {
            return Offer::Busy;
        };
        let words = line.get();
        offers::open(&words.claims, units);
        words
            .made
            .store(self.arena.span.name(address, len), Relaxed);
        words.made_len.store(len as u64, Relaxed);
        offers::publish(&words.offered, line.generation, OPEN);
        let ticket = seal(&line, self.identity.nonce, len as u64, !buffer.is_source());
        let mut made = Transfer::new(to, token, line, Side::Maker, buffer, None);
        // What may be mapped is one copy.
        if !self.arena.span.holds(address, len) {
            self.transfers.begin_early(&mut made);
        }
        self.transfers.offers.push(made);
        self.attention = true;
        Offer::Open(ticket)
    }

    /// Whether one of both sides may get at the other's buffer by a mapping: the own one lies in the arena, or the
    /// peer's may.
    pub(super) fn may_map(&self, to: EndpointId, address: u64, len: usize) -> bool {
        self.arena.span.holds(address, len) || self.peers[to.index()].arena.is_some()
    }

    /// Joins the transfer that a peer offers: with the target, of data; with the source, into memory.
    pub(super) fn join(
        &mut self,
        with: EndpointId,
        ticket: Ticket,
        buffer: Buffer,
        token: Token,
    ) -> Post {
        let Some(peer) = self.peers.get(with.index()) else {
            return Post::Gone;
        };
        if peer.state != PeerState::Alive {
            return Post::Gone;
        }
        let Some(area) = peer.inbound.clone() else {
            return Post::Unsupported;
        };
        let nonce = peer.identity.map_or(0, |identity| identity.nonce);
        let pid = self.attach(with);
        let line = Line::of(area, ticket);
        let words = line.get();
        let open = offers::mark(line.generation, OPEN);
        if line.number >= OFFERS || words.offered.load(Acquire) != open {
            return Post::Unsupported;
        }
        let (made, len) = (words.made.load(Relaxed), words.made_len.load(Relaxed));
        // What is offered is the other half of what is joined.
        let fills = buffer.is_source();
        if seal(&line, nonce, len, fills) != ticket {
            return Post::Unsupported;
        }
        let (address, room) = buffer.extent();
        let total = len.min(room as u64);
        let Some(units) = offers::units(total) else {
            return Post::Unsupported;
        };
        let Some(access) = self.peers[with.index()].access(made, total, pid) else {
            self.transfers.note_insane(with);
            self.attention = true;
            return Post::Unsupported;
        };
        let joined = self.arena.span.name(address, room);
        if access == Access::None && joined & IN_ARENA == 0 {
            // Nobody could move a byte.
            return Post::Unsupported;
        }
        reach(Point::Seen);
        if fills && !offers::settle(&words.offered, line.generation, TAKEN) {
            // Revoked just now.
            return Post::Unsupported;
        }
        reach(Point::Taken);
        // What is mapped is one copy in any case, and ranks that match have no other way.
        let (mut marks, watch) = match access {
            Access::Attach(_) if !self.options.matches => {
                let clock = &self.clock;
                let now = || clock.now();
                // Who exposes a receive may compute, and takes no pieces out meanwhile.
                self.transfers.choose(with, total, fills, !fills, now)
            }
            _ => (Marks::HALVES, None),
        };
        words.joined.store(joined, Relaxed);
        words.joined_len.store(total, Relaxed);
        // Of data that is cut off its sender has staged what is not wanted.
        let may_keep = !fills && marks.is_ring() && total == len;
        marks.keeps = self.transfers.prepare_claims(with, &line, units, may_keep);
        offers::publish(&words.claimed, line.generation, CLAIMED | marks.bits());
        fence(SeqCst);
        reach(Point::Claimed);
        let state = if fills { TAKEN } else { OPEN };
        let offered = words.offered.load(Relaxed) & !WRITES;
        let is_open = offered == offers::mark(line.generation, state);
        if !is_open {
            // Withdrawn just now; nothing has been copied.
            offers::stop(&words.claims);
            offers::publish(&words.claimed, line.generation, CLAIMED | RELEASED);
        }
        let run = Some(Run::new(access, made, total, units, marks));
        let mut joined = Transfer::new(with, token, line, Side::Claimer, buffer, run);
        joined.watch = watch.map(Box::new);
        if !is_open {
            self.transfers
                .note_end(&mut joined, None, || self.clock.now());
            return Post::Unsupported;
        }
        self.transfers.claims.push(joined);
        self.attention = true;
        self.peers[with.index()].nudge();
        Post::Posted
    }

    /// Goes on, as the receiver, with an offer that its sender has claimed for us with
    /// [`claim_for_receiver`].
    pub(super) fn adopt_claim(
        &mut self,
        from: EndpointId,
        ticket: Ticket,
        region: WriteRegion,
        token: Token,
    ) -> Post {
        let pid = self.attach(from);
        let Some(area) = self
            .peers
            .get(from.index())
            .and_then(|peer| peer.inbound.clone())
        else {
            return Post::Gone;
        };
        let line = Line::of(area, ticket);
        let words = line.get();
        let total = words.joined_len.load(Relaxed);
        let Some(units) = offers::units(total).filter(|_| total <= region.len() as u64) else {
            return Post::Unsupported;
        };
        if line.claimer_mark() != CLAIMED {
            return Post::Unsupported;
        }
        let source = words.made.load(Relaxed);
        let access = self.peers[from.index()].access(source, total, pid);
        if access.is_none() {
            self.transfers.note_insane(from);
            self.attention = true;
        }
        let access = access.unwrap_or(Access::None);
        let run = Some(Run::new(access, source, total, units, Marks::HALVES));
        let buffer = Buffer::Target(region);
        let mut transfer = Transfer::new(from, token, line, Side::Claimer, buffer, run);
        if access == Access::None && source & IN_ARENA != 0 {
            // The sender may count on this side.
            transfer.stop(Outcome::Impossible);
        }
        if self.peers[from.index()].state != PeerState::Alive {
            // It has ended since: what it moved counts, what it did not does not come any more.
            transfer.stop(Outcome::PeerFailed);
        }
        self.transfers.claims.push(transfer);
        self.attention = true;
        Post::Posted
    }

    /// Begins to end all transfers with a peer.
    pub(super) fn stop_transfers(&mut self, endpoint: EndpointId, outcome: Outcome) {
        // The peer may have moved everything and left since the last look.
        self.note_claims();
        let transfers = &mut self.transfers;
        for transfer in transfers.claims.iter_mut().chain(&mut transfers.offers) {
            if transfer.endpoint == endpoint {
                transfer.stop(outcome);
            }
        }
    }

    /// Copies a chunk on either side, and reports what has ended. Oldest transfers come first on
    /// both sides, so that they complete in order; the place to change it is
    /// [`move_all`](Transfers::move_all).
    pub(super) fn move_transfers(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        if !self.transfers.are_pending() {
            return 0;
        }
        let events = self.transfers.report_ended(upcalls);
        self.note_claims();
        let reach = Reach {
            peers: &self.peers,
            outbound: &mut self.outbound,
            clock: &self.clock,
        };
        let events = events + self.transfers.move_all(reach, upcalls);
        self.waiter.watch_transfers(self.transfers.is_waiting);
        events
    }

    /// Looks which of our offers have been claimed.
    fn note_claims(&mut self) {
        for at in 0..self.transfers.offers.len() {
            let transfer = &self.transfers.offers[at];
            if transfer.run.is_some() || transfer.line.claimer_mark() & CLAIMED == 0 {
                continue;
            }
            let (endpoint, words) = (transfer.endpoint, transfer.line.get());
            let words_of_claim = words.claimed.load(Relaxed);
            let (_, room) = transfer.buffer.extent();
            let total = words.joined_len.load(Relaxed).min(room as u64);
            let units = offers::units(total).unwrap_or(0);
            let joined = words.joined.load(Relaxed);
            let pid = self.attach(endpoint);
            let access = self.peers[endpoint.index()].access(joined, total, pid);
            let access = self.transfers.check(endpoint, access);
            let marks = Marks::of_bits(words_of_claim);
            self.transfers.is_disturbed = true;
            self.transfers.note_claim(at, room as u64, marks);
            let transfer = &mut self.transfers.offers[at];
            transfer.run = Some(Run::new(access, joined, total, units, marks));
            if access == Access::None && joined & IN_ARENA != 0 {
                // The claimer may count on this side.
                transfer.stop(Outcome::Impossible);
            }
        }
    }

    /// Stops everything before closing, and waits a moment for peers that are just copying. No
    /// operation completes by this: a buffer whose transfer has not ended stays lent. Returns the
    /// peers that may still touch one: they are stopped, or have not run since.
    pub(super) fn abandon_transfers(&mut self) -> Vec<Rank> {
        let mut holders = Vec::new();
        for index in 0..self.peers.len() {
            self.stop_transfers(EndpointId(index as u32), Outcome::PeerFailed);
        }
        self.note_claims();
        let deadline = self.clock.now() + CLOSING;
        let transfers = std::mem::take(&mut self.transfers.offers);
        for transfer in transfers.iter().chain(&self.transfers.claims) {
            let is_held = || {
                transfer.outcome().is_none() && !self.peers[transfer.endpoint.index()].is_harmless()
            };
            while is_held() && self.clock.now() < deadline {
                std::thread::yield_now();
            }
            let rank = self.peers[transfer.endpoint.index()].rank;
            if is_held() && !holders.contains(&rank) {
                holders.push(rank);
            }
            let line = &transfer.line;
            if transfer.side == Side::Claimer {
                offers::publish(&line.get().claimed, line.generation, CLAIMED | RELEASED);
            }
        }
        holders
    }
}

/// Claims the own offer `ticket` on behalf of its receiver `peer`, who calls its buffer of `room` bytes
/// `name`: by a sender that has matched its message itself, and may attach to process `pid`. Returns
/// whether the offer is open, and one of both can move its bytes.
pub(super) fn claim_for_receiver(
    area: &AreaMap,
    ticket: Ticket,
    name: u64,
    room: u64,
    peer: &Peer,
    pid: Option<u32>,
) -> bool {
    let line = Line::of(area.clone(), ticket);
    let words = line.get();
    if line.number >= OFFERS || words.offered.load(Relaxed) != offers::mark(line.generation, OPEN) {
        return false;
    }
    let total = words.made_len.load(Relaxed).min(room);
    let Some(units) = offers::units(total) else {
        return false;
    };
    let access = peer.access(name, total, pid);
    let can_read = || words.made.load(Relaxed) & IN_ARENA != 0;
    if !access.is_some_and(|access| access != Access::None || can_read()) {
        return false;
    }
    words.joined.store(name, Relaxed);
    words.joined_len.store(total, Relaxed);
    offers::prepare(&words.claims, &words.finished, units);
    offers::publish(&words.claimed, line.generation, CLAIMED);
    true
}

/// The ticket of an offer, of memory that is `filled` or of data that is taken: the line and its generation, and a word by which tickets that were
/// mixed up or damaged on their way are told. It is no proof against a peer that knows the nonce:
/// that one could have offered the same itself.
fn seal(line: &Line, nonce: u64, len: u64, filled: bool) -> Ticket {
    let place = line.number as u64 | u64::from(line.generation) << 32;
    let mixed = (place ^ nonce).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ len;
    let mixed = mixed.rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Ticket([place, mixed ^ u64::from(filled)])
}
