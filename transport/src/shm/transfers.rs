//! The cooperative transfers that this rank takes part in.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;

use tagwire_base::Rank;

use super::arena::IN_ARENA;
use super::cma;
use super::config::{CrossAttach, ShmOptions};
use super::layout::{DescriptorLine, OFFERS};
use super::offers::{
    self, CLAIMED, Chunk, OPEN, RELEASED, Side, Standing, TAKEN, Taken, WITHDRAWN,
};
use super::peer::{Access, Peer, PeerState};
use super::rank::Shm;
use super::segment::AreaMap;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{ReadRegion, RecvBuffer, SendBuffer, WriteRegion};
use crate::message::{EndpointId, Lane, Outcome, Token, Upcalls};
use crate::post::Post;

/// How long closing waits for peers that are just copying from or to this rank.
const CLOSING: Duration = Duration::from_millis(200);

/// What is said of a peer that names a buffer outside of its arena.
const OUTSIDE: &str = "a buffer outside of its arena";

/// Why a peer is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// Something impossible was found in what it wrote.
    Insane(&'static str),
    /// Its process has ended.
    Dead,
}

/// A descriptor, by its area and number.
#[derive(Clone)]
struct Line {
    area: AreaMap,
    number: usize,
    generation: u32,
}

impl Line {
    fn of(area: AreaMap, ticket: Ticket) -> Self {
        Self {
            area,
            number: ticket.0[0] as u32 as usize,
            generation: (ticket.0[0] >> 32) as u32,
        }
    }

    fn get(&self) -> &DescriptorLine {
        &self.area.offers[self.number % OFFERS]
    }

    fn standing(&self, side: Side, units: u32) -> Standing {
        let line = self.get();
        offers::standing(&line.claims, &line.finished, side, units)
    }

    /// The claimer's mark, if it is of this generation.
    fn claimer_mark(&self) -> u64 {
        let word = self.get().claimed.load(Acquire);
        if word >> 32 == u64::from(self.generation) {
            word & (CLAIMED | RELEASED)
        } else {
            0
        }
    }
}

/// The own buffer of a transfer.
#[derive(Clone, Copy)]
pub(super) enum Buffer {
    Source(ReadRegion),
    Target(WriteRegion),
}

/// What is known once the receiver has claimed.
#[derive(Clone, Copy)]
struct Run {
    /// How this side reaches the other's buffer, if it can ...
    access: Access,
    /// ... which that side calls so.
    name: u64,
    /// Bytes to be moved.
    total: u64,
    units: u32,
    /// Something may be left to claim.
    has_work: bool,
}

/// A transfer, seen from one of its sides.
struct Transfer {
    endpoint: EndpointId,
    token: Token,
    line: Line,
    side: Side,
    buffer: Buffer,
    /// `None`: offered and not claimed.
    run: Option<Run>,
    /// It was stopped when somebody had taken it who had not claimed it yet, and will.
    taken: bool,
    /// It is being ended, with this outcome.
    end: Option<Outcome>,
}

impl Buffer {
    const fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }

    /// Its name and its length, where it lies in one's own memory.
    fn extent(&self) -> (u64, usize) {
        match self {
            Self::Source(region) => (region.address(), region.len()),
            Self::Target(region) => (region.address(), region.len()),
        }
    }
}

impl Run {
    fn new(access: Access, name: u64, total: u64, units: u32) -> Self {
        Self {
            access,
            name,
            total,
            units,
            has_work: access != Access::None && units > 0,
        }
    }
}

impl Transfer {
    const fn new(
        endpoint: EndpointId,
        token: Token,
        line: Line,
        side: Side,
        buffer: Buffer,
        run: Option<Run>,
    ) -> Self {
        Self {
            endpoint,
            token,
            line,
            side,
            buffer,
            run,
            taken: false,
            end: None,
        }
    }

    /// Stops it; it is over once the other side copies no more. One that is complete, with nobody
    /// having looked yet, stays complete.
    fn stop(&mut self, outcome: Outcome) {
        if self.end.is_some() || self.is_complete() {
            return;
        }
        self.end = Some(outcome);
        if self.side == Side::Maker {
            let (word, generation) = (&self.line.get().offered, self.line.generation);
            let was_open = offers::settle(word, generation, WITHDRAWN);
            offers::publish(word, generation, WITHDRAWN);
            // The claimer marks and then looks here; we mark and then look there: one of both
            // sees the other.
            fence(SeqCst);
            if self.run.is_none() && self.line.claimer_mark() & CLAIMED == 0 {
                self.taken = !was_open;
                return;
            }
        }
        offers::stop(&self.line.get().claims);
    }

    /// Copies a chunk; returns whether it worked, and with the process that was meant.
    fn copy(&self, run: &Run, chunk: Chunk, peer: &Peer) -> bool {
        let start = u64::from(chunk.first) * offers::UNIT;
        let end = (start + u64::from(chunk.count) * offers::UNIT).min(run.total);
        let name = run.name.wrapping_add(start);
        let range = start as usize..end as usize;
        // SAFETY: the buffer is lent until the token completes. What is over copies no more, and its token
        // completes after that.
        unsafe {
            match (run.access, self.buffer) {
                (Access::None, _) => false,
                (Access::Mapped, buffer) => peer.arena.as_ref().is_some_and(|arena| match buffer {
                    Buffer::Source(region) => arena.write_part(name, region, range),
                    Buffer::Target(region) => arena.read(name, region, range),
                }),
                (Access::Attach(pid), Buffer::Source(region)) => {
                    cma::write(pid, name, region, range, || peer.is_still(pid)).is_ok()
                }
                // What was read of another process is not counted, and the transfer fails.
                (Access::Attach(pid), Buffer::Target(region)) => {
                    cma::read(pid, name, region, range).is_ok() && peer.is_still(pid)
                }
            }
        }
    }

    /// Whether every byte has been moved.
    fn is_complete(&self) -> bool {
        self.run
            .is_some_and(|run| self.line.standing(self.side, run.units) == Standing::Complete)
    }

    /// How it has ended, if it has.
    fn outcome(&self) -> Option<Outcome> {
        let Some(run) = &self.run else {
            // Nobody claimed it, or somebody did while it was stopped.
            return self.end.filter(|_| {
                let mark = self.line.claimer_mark();
                mark & CLAIMED == 0 && !self.taken || mark & RELEASED != 0
            });
        };
        match (self.line.standing(self.side, run.units), self.end) {
            (Standing::Complete, None) => Some(Outcome::Done(run.total)),
            (Standing::Stopped, None) => Some(Outcome::Impossible),
            (Standing::Stopped | Standing::Complete, Some(end)) => Some(end),
            (Standing::Running | Standing::Stopping, _) => None,
        }
    }
}

/// What the sender knows of its descriptors towards one peer.
struct Descriptors {
    generations: [u32; OFFERS],
    /// A bit for each descriptor whose transfer this side has not concluded. The receiver may have
    /// released it long before.
    open: u64,
    /// A bit for each descriptor that is in use, or was and that the receiver has claimed: free
    /// again once it is not open and the receiver has released it.
    taken: u64,
    next: usize,
}

/// All transfers of a rank.
pub(super) struct Transfers {
    /// Claimed by this rank, oldest first.
    claims: Vec<Transfer>,
    /// Offered by this rank, oldest first.
    offers: Vec<Transfer>,
    /// The descriptors, by endpoint.
    books: Vec<Option<Box<Descriptors>>>,
    /// Ended outside of progress: to be told.
    ended: Vec<(Token, Outcome)>,
    /// Peers that are to be ended, and why.
    lost: Vec<(EndpointId, Lost)>,
    chunk_min: u32,
    chunk_max: u32,
}

impl Transfers {
    pub(super) fn new(options: &ShmOptions) -> Self {
        let units = |bytes: usize| (bytes as u64).div_ceil(offers::UNIT).clamp(1, 1 << 20) as u32;
        Self {
            claims: Vec::new(),
            offers: Vec::new(),
            books: Vec::new(),
            ended: Vec::new(),
            lost: Vec::new(),
            chunk_min: units(options.chunk_min),
            chunk_max: units(options.chunk_max),
        }
    }

    /// Whether progress has anything to do here.
    pub(super) const fn are_pending(&self) -> bool {
        !(self.claims.is_empty() && self.offers.is_empty() && self.ended.is_empty())
    }

    /// A peer that is to be ended, and why, if there is one that nobody was told of.
    pub(super) fn take_lost(&mut self) -> Option<(EndpointId, Lost)> {
        self.lost.pop()
    }

    /// Notes the end of what is done outside of progress.
    pub(super) fn end(&mut self, token: Token, outcome: Outcome) {
        self.ended.push((token, outcome));
    }

    /// The open transfers with a peer, in words.
    pub(super) fn describe(&self, endpoint: EndpointId) -> String {
        let count = |list: &[Transfer]| list.iter().filter(|t| t.endpoint == endpoint).count();
        format!(
            "{} transfers offered, {} claimed",
            count(&self.offers),
            count(&self.claims)
        )
    }

    /// A free descriptor of `area`, with its next generation. Free is one that both sides are done
    /// with: while this side still lists a transfer, what the line says is about that one.
    fn reserve(&mut self, endpoint: EndpointId, area: &AreaMap) -> Option<Line> {
        if self.books.len() <= endpoint.index() {
            self.books.resize_with(endpoint.index() + 1, || None);
        }
        let book = self.books[endpoint.index()].get_or_insert_with(|| {
            Box::new(Descriptors {
                generations: [0; OFFERS],
                open: 0,
                taken: 0,
                next: 0,
            })
        });
        for step in 0..OFFERS {
            let number = (book.next + step) % OFFERS;
            let generation = book.generations[number];
            let line = Line {
                area: area.clone(),
                number,
                generation,
            };
            let bit = 1 << number;
            if book.open & bit != 0 {
                continue;
            }
            if book.taken & bit == 0 || line.claimer_mark() & RELEASED != 0 {
                book.open |= bit;
                book.taken |= bit;
                book.next = number + 1;
                // Generation 0 is that of untouched memory.
                book.generations[number] = generation.wrapping_add(1).max(1);
                return Some(Line {
                    generation: book.generations[number],
                    ..line
                });
            }
        }
        None
    }

    /// A peer names a buffer where it has no memory: it is ended by the next call of progress.
    fn note_insane(&mut self, endpoint: EndpointId) {
        self.lost.push((endpoint, Lost::Insane(OUTSIDE)));
    }

    /// Returns how a peer's buffer is reached; one where the peer has no memory is not, and noted.
    fn check(&mut self, endpoint: EndpointId, access: Option<Access>) -> Access {
        if access.is_none() {
            self.note_insane(endpoint);
        }
        access.unwrap_or(Access::None)
    }

    /// The place of the own offer that is called so.
    fn offer_of(&self, to: EndpointId, ticket: Ticket) -> Option<usize> {
        let (number, generation) = (ticket.0[0] as u32 as usize, (ticket.0[0] >> 32) as u32);
        self.offers.iter().rposition(|transfer| {
            let line = &transfer.line;
            transfer.endpoint == to && line.number == number && line.generation == generation
        })
    }

    /// This side has concluded the transfer. Its descriptor is free once the receiver has released
    /// it, at once where the receiver never saw it.
    fn give_back(&mut self, transfer: &Transfer) {
        if let Some(Some(book)) = self.books.get_mut(transfer.endpoint.index()) {
            let bit = 1 << transfer.line.number;
            book.open &= !bit;
            if transfer.line.claimer_mark() & CLAIMED == 0 {
                book.taken &= !bit;
            }
        }
    }
}

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
        if offers::units(len as u64).is_none() {
            return Offer::Unsupported;
        }
        let alive = |peer: &Peer| peer.state == PeerState::Alive;
        if !self.peers.get(to.index()).is_some_and(alive)
            || (self.outbound[to.index()].is_none() && !self.answer_contact(to))
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
        words
            .made
            .store(self.arena.span.name(address, len), Relaxed);
        words.made_len.store(len as u64, Relaxed);
        offers::publish(&words.offered, line.generation, OPEN);
        let ticket = seal(&line, self.identity.nonce, len as u64, !buffer.is_source());
        let made = Transfer::new(to, token, line, Side::Maker, buffer, None);
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
        if fills && !offers::settle(&words.offered, line.generation, TAKEN) {
            // Revoked just now.
            return Post::Unsupported;
        }
        words.joined.store(joined, Relaxed);
        words.joined_len.store(total, Relaxed);
        offers::prepare(&words.claims, &words.finished, units);
        offers::publish(&words.claimed, line.generation, CLAIMED);
        fence(SeqCst);
        let state = if fills { TAKEN } else { OPEN };
        if words.offered.load(Relaxed) != offers::mark(line.generation, state) {
            // Withdrawn just now; nothing has been copied.
            offers::stop(&words.claims);
            offers::publish(&words.claimed, line.generation, CLAIMED | RELEASED);
            return Post::Unsupported;
        }
        let run = Some(Run::new(access, made, total, units));
        let joined = Transfer::new(with, token, line, Side::Claimer, buffer, run);
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
        let run = Some(Run::new(access, source, total, units));
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
    /// [`work_on`](Self::work_on).
    pub(super) fn move_transfers(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        if !self.transfers.are_pending() {
            return 0;
        }
        let mut events = 0;
        if !self.transfers.ended.is_empty() {
            let mut ended = std::mem::take(&mut self.transfers.ended);
            events += ended.len();
            for (token, outcome) in ended.drain(..) {
                upcalls.complete(token, outcome);
            }
            // Its memory is used again: the next one is no allocation.
            self.transfers.ended = ended;
        }
        self.note_claims();
        let mut claims = std::mem::take(&mut self.transfers.claims);
        events += self.work_on(&mut claims, upcalls);
        let mut offers = std::mem::take(&mut self.transfers.offers);
        events += self.work_on(&mut offers, upcalls);
        self.transfers.claims = claims;
        self.transfers.offers = offers;
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
            let (_, room) = transfer.buffer.extent();
            let total = words.joined_len.load(Relaxed).min(room as u64);
            let units = offers::units(total).unwrap_or(0);
            let joined = words.joined.load(Relaxed);
            let pid = self.attach(endpoint);
            let access = self.peers[endpoint.index()].access(joined, total, pid);
            let access = self.transfers.check(endpoint, access);
            let transfer = &mut self.transfers.offers[at];
            transfer.run = Some(Run::new(access, joined, total, units));
            if access == Access::None && joined & IN_ARENA != 0 {
                // The claimer may count on this side.
                transfer.stop(Outcome::Impossible);
            }
        }
    }

    /// Copies a chunk of the first transfer in the list that has one left, and takes those out
    /// that have ended.
    fn work_on(&mut self, list: &mut Vec<Transfer>, upcalls: &mut dyn Upcalls) -> usize {
        let (min, max) = (self.transfers.chunk_min, self.transfers.chunk_max);
        let size = |free, total| offers::chunk(free, total, min, max);
        let (mut events, mut copied) = (0, false);
        list.retain_mut(|transfer| {
            if transfer.end.is_none() {
                match transfer.run {
                    None => return true,
                    // Not its turn; nobody has finished it, so there is nothing to see.
                    Some(run) if run.has_work && copied => return true,
                    Some(run) if run.has_work => {
                        let peer = &self.peers[transfer.endpoint.index()];
                        let stepped = step(transfer, run, size, peer);
                        copied = stepped == Step::Copied;
                        events += usize::from(copied);
                        if stepped == Step::Insane {
                            let found = Lost::Insane("impossible claims");
                            self.transfers.lost.push((transfer.endpoint, found));
                        }
                    }
                    Some(_) => {}
                }
            }
            let mut outcome = transfer.outcome();
            if outcome.is_none() && transfer.end.is_some() && self.is_harmless(transfer.endpoint) {
                outcome = transfer.end;
            }
            let Some(outcome) = outcome else { return true };
            self.conclude(transfer, outcome, upcalls);
            events += 1;
            false
        });
        events
    }

    /// Gives the buffer of an ended transfer back.
    fn conclude(&mut self, transfer: &Transfer, outcome: Outcome, upcalls: &mut dyn Upcalls) {
        let line = &transfer.line;
        match transfer.side {
            Side::Claimer => {
                offers::publish(&line.get().claimed, line.generation, CLAIMED | RELEASED);
            }
            Side::Maker => self.transfers.give_back(transfer),
        }
        let peer = &self.peers[transfer.endpoint.index()];
        peer.nudge();
        let outcome = match outcome {
            Outcome::Impossible if peer.state != PeerState::Alive => Outcome::PeerFailed,
            Outcome::Impossible if peer.liveness.is_over() => {
                // Who is told of its end by this operation sends it nothing more. One that left is told of as that.
                if !peer.has_closed() {
                    self.transfers.lost.push((transfer.endpoint, Lost::Dead));
                }
                Outcome::PeerFailed
            }
            outcome => outcome,
        };
        upcalls.complete(transfer.token, outcome);
    }

    /// Whether a peer provably touches no memory of ours any more: its process has ended, or it
    /// has closed, which it does only when it is not copying.
    fn is_harmless(&self, endpoint: EndpointId) -> bool {
        let peer = &self.peers[endpoint.index()];
        peer.has_closed() || peer.liveness.is_over()
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
            let is_held = || transfer.outcome().is_none() && !self.is_harmless(transfer.endpoint);
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

/// What one step of a transfer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Copied,
    Nothing,
    /// The peer wrote what no correct peer writes.
    Insane,
}

/// Claims and copies a chunk of a transfer.
fn step(transfer: &mut Transfer, run: Run, size: impl Fn(u32, u32) -> u32, peer: &Peer) -> Step {
    let (side, line) = (transfer.side, transfer.line.get());
    match offers::take(&line.claims, side, run.units, |free| size(free, run.units)) {
        Taken::Chunk(chunk) => {
            let worked = transfer.copy(&run, chunk, peer);
            if !worked {
                offers::stop(&line.claims);
            }
            offers::finish(&line.finished, side, chunk.count);
            if !worked {
                transfer.end = Some(Outcome::Impossible);
            }
            Step::Copied
        }
        Taken::Nothing => {
            transfer.run = Some(Run {
                has_work: false,
                ..run
            });
            Step::Nothing
        }
        Taken::Insane => {
            transfer.stop(Outcome::Impossible);
            Step::Insane
        }
    }
}
