//! A transfer, as one of its sides sees it, and all those of a rank.
#![allow(unsafe_code)]

mod choice;
mod early;
mod pieces;
mod points;

use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::sync::atomic::fence;

use tagwire_base::{Clock, Time};

pub(super) use self::choice::Marks;
use self::choice::{Choices, Duty, Stopwatch};
pub(super) use self::points::{Point, reach};
use super::cma;
use super::config::ShmOptions;
use super::layout::{DescriptorLine, OFFERS};
use super::offers::{self, CLAIMED, Chunk, RELEASED, Side, Standing, Taken, WITHDRAWN, WRITES};
use super::peer::{Access, Outbound, Peer, PeerState};
use super::segment::AreaMap;
use super::ways::CopyWay;
use crate::cooperative::Ticket;
use crate::data::{ReadRegion, WriteRegion};
use crate::message::{EndpointId, Outcome, Token, Upcalls};

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
pub(super) struct Line {
    area: AreaMap,
    pub number: usize,
    pub generation: u32,
}

impl Line {
    pub(super) fn of(area: AreaMap, ticket: Ticket) -> Self {
        Self {
            area,
            number: ticket.0[0] as u32 as usize,
            generation: (ticket.0[0] >> 32) as u32,
        }
    }

    pub(super) fn get(&self) -> &DescriptorLine {
        &self.area.offers[self.number % OFFERS]
    }

    fn standing(&self, side: Side, units: u32) -> Standing {
        let line = self.get();
        offers::standing(&line.claims, &line.finished, side, units)
    }

    /// The claimer's mark, if it is of this generation.
    pub(super) fn claimer_mark(&self) -> u64 {
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
pub(super) struct Run {
    /// How this side reaches the other's buffer, if it can ...
    access: Access,
    /// ... which that side calls so.
    name: u64,
    /// Bytes to be moved.
    total: u64,
    units: u32,
    /// The ways that it goes.
    marks: Marks,
    /// Something may be left to claim.
    has_work: bool,
}

/// A transfer, seen from one of its sides.
pub(super) struct Transfer {
    pub endpoint: EndpointId,
    pub token: Token,
    pub line: Line,
    pub side: Side,
    pub buffer: Buffer,
    /// `None`: offered and not claimed.
    pub run: Option<Run>,
    /// It was stopped when somebody had taken it who had not claimed it yet, and will.
    taken: bool,
    /// It is being ended, with this outcome.
    end: Option<Outcome>,
    /// Of whoever claimed it, where it is timed.
    pub watch: Option<Box<Stopwatch>>,
    /// Since when this side waits for the other to move it.
    waits: Option<Time>,
    /// It has done so in vain.
    has_waited_in_vain: bool,
    /// Units that this side may still stage before anybody claims it, and whether it has staged any.
    early: u32,
    has_staged: bool,
    /// Units that this side has copied out of pieces: in all, at the last look, and those that are not counted as finished yet.
    came: u32,
    seen: u32,
    uncounted: u32,
    /// Looks at the descriptor that were left out while pieces come.
    spared: u32,
}

impl Buffer {
    pub(super) const fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }

    /// Its name and its length, where it lies in one's own memory.
    pub(super) fn extent(&self) -> (u64, usize) {
        match self {
            Self::Source(region) => (region.address(), region.len()),
            Self::Target(region) => (region.address(), region.len()),
        }
    }
}

impl Run {
    pub(super) const fn new(
        access: Access,
        name: u64,
        total: u64,
        units: u32,
        marks: Marks,
    ) -> Self {
        Self {
            access,
            name,
            total,
            units,
            marks,
            has_work: units > 0,
        }
    }

    /// The bytes of a chunk.
    fn range(&self, chunk: Chunk) -> Range<usize> {
        chunk.range(self.total)
    }
}

impl Transfer {
    pub(super) const fn new(
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
            watch: None,
            waits: None,
            has_waited_in_vain: false,
            early: 0,
            has_staged: false,
            came: 0,
            seen: 0,
            uncounted: 0,
            spared: 0,
        }
    }

    /// Stops it; it is over once the other side copies no more. One that is complete, with nobody
    /// having looked yet, stays complete.
    pub(super) fn stop(&mut self, outcome: Outcome) {
        self.count_taken();
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
        let range = run.range(chunk);
        let name = run.name.wrapping_add(range.start as u64);
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

    /// Whether this side is going to copy what the other does not move in time.
    fn is_waiting(&self) -> bool {
        self.waits.is_some() && self.end.is_none() && self.has_work()
    }

    /// Whether the other side moves all of it in pieces, of which some are still to come.
    fn takes_pieces(&self, run: &Run) -> bool {
        run.marks.is_ring() && !self.buffer.is_source() && self.came != run.units
    }

    /// Whether something may be left to claim.
    fn has_work(&self) -> bool {
        self.run.is_some_and(|run| run.has_work)
    }

    /// Does what this side is to do now: claims and copies a chunk, or a piece of it into the ring.
    fn step(
        &mut self,
        size: impl Fn(u32, u32) -> u32,
        peer: &Peer,
        out: Option<&mut Outbound>,
        now: impl Fn() -> Time,
    ) -> Step {
        let Some(mut run) = self.run else {
            return Step::Nothing;
        };
        let mut duty = Duty::Copy(u32::MAX);
        if run.marks != Marks::HALVES {
            duty = self.duty(&mut run, &now);
            self.run = Some(run);
        }
        let limit = match (duty, out) {
            (Duty::Stage(limit), Some(out)) => match self.stage_some(run, limit, peer, out) {
                Some(step) => {
                    self.waits = None;
                    return step;
                }
                // A receiver that computes takes no piece out.
                None if run.access != Access::None && self.has_waited(&run, now) => limit,
                None => return Step::Nothing,
            },
            (Duty::Copy(limit), _) if run.access != Access::None => limit,
            _ => return Step::Nothing,
        };
        self.copy_some(run, |free| size(free, run.units).min(limit), peer)
    }

    /// Claims and copies a chunk by the kernel, or the other side's mapping.
    fn copy_some(&mut self, run: Run, size: impl Fn(u32) -> u32, peer: &Peer) -> Step {
        self.mark_writes(&run);
        let line = self.line.get();
        match offers::take(&line.claims, self.side, run.units, size) {
            Taken::Chunk(chunk) => self.copied(run, chunk, peer),
            other => self.found(run, &other),
        }
    }

    /// Tells the claimer, before this side claims units for it, that it writes the target by the kernel's copy.
    fn mark_writes(&self, run: &Run) {
        let may_stage = self.side == Side::Maker && self.buffer.is_source();
        let offered = &self.line.get().offered;
        if may_stage && run.marks.has_pieces() && offered.load(Relaxed) & WRITES == 0 {
            offered.fetch_or(WRITES, AcqRel);
        }
    }

    /// Whether nobody but this side writes the target of a transfer that is stopped.
    fn is_written_here(&self, run: &Run) -> bool {
        // Whoever writes marks it, and then looks whether the transfer is stopped; this side has stopped it, and looks for the mark.
        fence(SeqCst);
        run.marks.has_pieces()
            && self.side == Side::Claimer
            && !self.buffer.is_source()
            && self.line.get().offered.load(Acquire) & WRITES == 0
    }

    /// Copies a chunk that was claimed, and counts it as finished.
    fn copied(&mut self, run: Run, chunk: Chunk, peer: &Peer) -> Step {
        reach(Point::Begun);
        let worked = self.copy(&run, chunk, peer);
        reach(Point::Copied);
        let line = self.line.get();
        if !worked {
            offers::stop(&line.claims);
        }
        offers::finish(&line.finished, self.side, chunk.count);
        reach(Point::Finished);
        if !worked {
            self.end = Some(Outcome::Impossible);
        }
        Step::Copied
    }

    /// There is no chunk to be claimed.
    fn found(&mut self, run: Run, taken: &Taken) -> Step {
        if *taken == Taken::Insane {
            self.stop(Outcome::Impossible);
            return Step::Insane;
        }
        let has_work = false;
        self.run = Some(Run { has_work, ..run });
        Step::Nothing
    }

    /// Publishes that this side has claimed it, and how it goes.
    pub(super) fn mark_claimed(&self, marks: Marks) {
        let (word, generation) = (&self.line.get().claimed, self.line.generation);
        offers::publish(word, generation, CLAIMED | marks.bits());
    }

    /// Whether every byte has been moved.
    fn is_complete(&self) -> bool {
        self.run
            .is_some_and(|run| self.line.standing(self.side, run.units) == Standing::Complete)
    }

    /// How it has ended, if it has.
    pub(super) fn outcome(&self) -> Option<Outcome> {
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
            // What the other side has staged comes no more, and it touches nothing.
            (Standing::Stopping, Some(end)) if self.is_written_here(run) => Some(end),
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

/// Returns what a list by endpoints has of one, which is made where there is none.
fn entry<T>(
    list: &mut Vec<Option<Box<T>>>,
    endpoint: EndpointId,
    make: impl FnOnce() -> T,
) -> &mut T {
    if list.len() <= endpoint.index() {
        list.resize_with(endpoint.index() + 1, || None);
    }
    list[endpoint.index()].get_or_insert_with(|| Box::new(make()))
}

/// What transfers are moved with: the peers, what is sent to them, and the rank's clock.
pub(super) struct Reach<'a> {
    pub peers: &'a [Peer],
    pub outbound: &'a mut [Option<Outbound>],
    pub clock: &'a Clock,
}

/// All transfers of a rank.
pub(super) struct Transfers {
    /// Claimed by this rank, oldest first.
    pub claims: Vec<Transfer>,
    /// Offered by this rank, oldest first.
    pub offers: Vec<Transfer>,
    /// The descriptors, by endpoint.
    books: Vec<Option<Box<Descriptors>>>,
    /// Ended outside of progress: to be told.
    ended: Vec<(Token, Outcome)>,
    /// Peers that are to be ended, and why.
    lost: Vec<(EndpointId, Lost)>,
    /// The ways of transfers, by endpoint; the one that a setting fixes.
    choices: Vec<Option<Box<Choices>>>,
    /// Offers of which pieces came before they were claimed, and were thrown away.
    thrown: early::Thrown,
    /// Transfers under way that are timed, and whether another one has begun beside them.
    timed: u32,
    pub is_disturbed: bool,
    /// At the last look, some transfer waited for its other side.
    pub is_waiting: bool,
    fixed: Option<CopyWay>,
    /// Whether peers take pieces out of the ring.
    has_pieces: bool,
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
            choices: Vec::new(),
            thrown: early::Thrown::default(),
            timed: 0,
            is_disturbed: false,
            is_waiting: false,
            fixed: options.way,
            has_pieces: !options.matches,
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
    pub(super) fn reserve(&mut self, endpoint: EndpointId, area: &AreaMap) -> Option<Line> {
        let book = entry(&mut self.books, endpoint, || Descriptors {
            generations: [0; OFFERS],
            open: 0,
            taken: 0,
            next: 0,
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
                area.will_offer(number + 1);
                return Some(Line {
                    generation: book.generations[number],
                    ..line
                });
            }
        }
        None
    }

    /// A peer names a buffer where it has no memory: it is ended by the next call of progress.
    pub(super) fn note_insane(&mut self, endpoint: EndpointId) {
        self.lost.push((endpoint, Lost::Insane(OUTSIDE)));
    }

    /// Returns how a peer's buffer is reached; one where the peer has no memory is not, and noted.
    pub(super) fn check(&mut self, endpoint: EndpointId, access: Option<Access>) -> Access {
        if access.is_none() {
            self.note_insane(endpoint);
        }
        access.unwrap_or(Access::None)
    }

    /// The place of the own offer that is called so.
    pub(super) fn offer_of(&self, to: EndpointId, ticket: Ticket) -> Option<usize> {
        let (number, generation) = (ticket.0[0] as u32 as usize, (ticket.0[0] >> 32) as u32);
        self.offers.iter().rposition(|transfer| {
            let line = &transfer.line;
            transfer.endpoint == to && line.number == number && line.generation == generation
        })
    }

    /// This side has concluded the transfer. Its descriptor is free once the receiver has released
    /// it, at once where the receiver never saw it.
    pub(super) fn give_back(&mut self, transfer: &Transfer) {
        if let Some(Some(book)) = self.books.get_mut(transfer.endpoint.index()) {
            let bit = 1 << transfer.line.number;
            book.open &= !bit;
            if transfer.line.claimer_mark() & CLAIMED == 0 {
                book.taken &= !bit;
            }
        }
    }

    /// Tells what was done outside of progress. Returns how much it was.
    pub(super) fn report_ended(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut ended = std::mem::take(&mut self.ended);
        let count = ended.len();
        for (token, outcome) in ended.drain(..) {
            upcalls.complete(token, outcome);
        }
        // Its memory is used again: the next one is no allocation.
        self.ended = ended;
        count
    }

    /// Copies a chunk on either side, and reports what has ended. Returns how many things happened.
    pub(super) fn move_all(&mut self, mut reach: Reach<'_>, upcalls: &mut dyn Upcalls) -> usize {
        self.is_waiting = false;
        let mut claims = std::mem::take(&mut self.claims);
        let mut events = self.work_on(&mut claims, &mut reach, upcalls);
        let mut offers = std::mem::take(&mut self.offers);
        events += self.work_on(&mut offers, &mut reach, upcalls);
        self.claims = claims;
        self.offers = offers;
        events
    }

    /// Copies a chunk of the first transfer in the list that has one left, and takes those out
    /// that have ended.
    fn work_on(
        &mut self,
        list: &mut Vec<Transfer>,
        reach: &mut Reach<'_>,
        upcalls: &mut dyn Upcalls,
    ) -> usize {
        let (min, max) = (self.chunk_min, self.chunk_max);
        let size = |free, total| offers::chunk(free, total, min, max);
        let (mut events, mut copied) = (0, false);
        // Peers, by a bit for each, whose pieces for an older transfer are waited for: those of the others come after them.
        let (mut awaited, mut is_idle) = (0_u64, false);
        list.retain_mut(|transfer| {
            let peer_bit = 1 << (transfer.endpoint.index() % 64);
            if transfer.end.is_none() {
                let (run, has_gone_on) = (transfer.run, transfer.has_gone_on());
                match run {
                    None => {
                        let out = reach.outbound[transfer.endpoint.index()].as_mut();
                        events += out.map_or(0, |out| transfer.stage_early(out));
                        return true;
                    }
                    // Not its turn; nobody has finished it, so there is nothing to see.
                    Some(run) if run.has_work && copied => return true,
                    Some(run) if awaited & peer_bit != 0 && transfer.takes_pieces(&run) => {
                        return true;
                    }
                    Some(run) if has_gone_on && transfer.came != run.units => {
                        if transfer.takes_pieces(&run) {
                            awaited |= peer_bit;
                        }
                        self.is_waiting |= transfer.is_waiting();
                        return true;
                    }
                    Some(run) if transfer.spares_look(&run, || reach.clock.now()) => {
                        awaited |= peer_bit;
                        is_idle |= run.has_work;
                        self.is_waiting |= transfer.is_waiting();
                        return true;
                    }
                    Some(_) if transfer.has_work() => {
                        let now = || reach.clock.now();
                        if transfer.watch.is_some() {
                            self.note_part(transfer, now);
                        }
                        let at = transfer.endpoint.index();
                        let out = reach.outbound[at].as_mut();
                        let stepped = transfer.step(size, &reach.peers[at], out, now);
                        copied = self.note_step(transfer.endpoint, stepped);
                        events += usize::from(copied);
                        if transfer.is_waiting() {
                            awaited |= peer_bit;
                            is_idle = true;
                        }
                    }
                    Some(_) => {}
                }
            }
            transfer.count_taken();
            let mut outcome = transfer.outcome();
            if outcome.is_none()
                && transfer.end.is_some()
                && reach.peers[transfer.endpoint.index()].is_harmless()
            {
                outcome = transfer.end;
            }
            let Some(outcome) = outcome else {
                self.is_waiting |= transfer.is_waiting();
                return true;
            };
            let outcome = self.conclude(transfer, outcome, reach);
            upcalls.complete(transfer.token, outcome);
            events += 1;
            false
        });
        if is_idle && !copied {
            events += usize::from(self.copy_behind(list, size, reach));
        }
        events
    }

    /// Copies a chunk by the kernel, while no pieces come for an older transfer, of the one whose pieces would come last. Returns whether
    /// it did.
    fn copy_behind(
        &mut self,
        list: &mut [Transfer],
        size: impl Fn(u32, u32) -> u32,
        reach: &Reach<'_>,
    ) -> bool {
        let last = list.iter_mut().rev().find_map(|transfer| {
            let is_behind = transfer.end.is_none() && transfer.waits.is_none();
            let run = transfer.run.filter(|run| is_behind && run.has_work)?;
            let can = run.access != Access::None && transfer.takes_pieces(&run);
            can.then_some((transfer, run))
        });
        let Some((transfer, run)) = last else {
            return false;
        };
        let peer = &reach.peers[transfer.endpoint.index()];
        let stepped = transfer.copy_some(run, |free| size(free, run.units), peer);
        self.note_step(transfer.endpoint, stepped)
    }

    /// Returns whether a step was a copy. A peer that wrote what no correct peer writes is noted.
    fn note_step(&mut self, endpoint: EndpointId, step: Step) -> bool {
        if step == Step::Insane {
            self.lost
                .push((endpoint, Lost::Insane("impossible claims")));
        }
        step == Step::Copied
    }

    /// Gives the buffer of an ended transfer back. Returns the outcome as it is to be told.
    fn conclude(
        &mut self,
        transfer: &mut Transfer,
        outcome: Outcome,
        reach: &Reach<'_>,
    ) -> Outcome {
        let line = &transfer.line;
        match transfer.side {
            Side::Claimer => {
                // A maker that looks only now learns from it, too, how its next offers go best.
                let marks = transfer.run.map_or(0, |run| run.marks.bits());
                let state = CLAIMED | RELEASED | marks;
                offers::publish(&line.get().claimed, line.generation, state);
            }
            Side::Maker => self.give_back(transfer),
        }
        let peer = &reach.peers[transfer.endpoint.index()];
        peer.nudge();
        self.note_ring(transfer);
        if self.timed != 0 {
            let done = match outcome {
                Outcome::Done(bytes) => Some(bytes),
                _ => None,
            };
            self.note_end(transfer, done, || reach.clock.now());
        }
        match outcome {
            Outcome::Impossible if peer.state != PeerState::Alive => Outcome::PeerFailed,
            Outcome::Impossible if peer.liveness.is_over() => {
                // Who is told of its end by this operation sends it nothing more. One that left is told of as that.
                if !peer.has_closed() {
                    self.lost.push((transfer.endpoint, Lost::Dead));
                }
                Outcome::PeerFailed
            }
            outcome => outcome,
        }
    }
}

/// What one step of a transfer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Copied,
    Nothing,
    /// The peer wrote what no correct peer writes.
    Insane,
}
