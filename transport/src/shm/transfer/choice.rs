//! Which way a transfer goes: what both sides know of it, and how long it took.

use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use tagwire_base::{Rank, Time};

use super::{Buffer, Run, Transfer, Transfers, entry};
use crate::message::EndpointId;
use crate::shm::offers::{self, Side};
use crate::shm::ways::beside::BesideChooser;
use crate::shm::ways::{Chooser, CopyWay, Part, Plan};

/// Classes of lengths, by the bytes up to which they go; the last goes on.
const CLASSES: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, u64::MAX];

/// Messages beside each other that are timed in one, by class of length.
const BLOCKS: [u32; 4] = [128, 128, 128, 32];

/// How long the side that has the target waits for pieces of the other, before it copies by the kernel: so long, and a nanosecond more for each byte.
const PATIENCE: Duration = Duration::from_micros(20);

/// The ways of a transfer, as its descriptor tells them: a part of it first, by one way, then the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shm) struct Marks {
    first: u16,
    way: CopyWay,
    rest: CopyWay,
    is_over: bool,
    /// What the maker has staged before the claim counts.
    pub(in crate::shm) keeps: bool,
}

impl Marks {
    /// By the kernel, from both sides.
    pub(in crate::shm) const HALVES: Self = Self {
        first: 0,
        way: CopyWay::Halves,
        rest: CopyWay::Halves,
        is_over: false,
        keeps: false,
    };

    fn of(plan: &Plan, units: u32) -> Self {
        let (way, rest, first) = match plan.first {
            None => (plan.rest, plan.rest, 0),
            // A whole message has no rest.
            Some((way, Part::All)) => (way, way, 0),
            Some((way, part)) => (way, plan.rest, part.of(units)),
        };
        Self {
            first: u16::try_from(first).unwrap_or(u16::MAX),
            way,
            rest,
            is_over: false,
            keeps: false,
        }
    }

    /// Whether all of it goes through the ring.
    pub(in crate::shm) fn is_ring(self) -> bool {
        self.first == 0 && self.rest == CopyWay::Ring
    }

    /// Whether some part goes through the ring.
    pub(super) fn has_pieces(self) -> bool {
        self.rest == CopyWay::Ring || self.way == CopyWay::Ring
    }

    /// The bits of the descriptor's word: `rest u2 | way u2 | over u1 | keeps u1` from bit 3 on, and the units of the first part from bit 16 on.
    pub(in crate::shm) const fn bits(self) -> u64 {
        let (over, keeps) = (self.is_over as u64, self.keeps as u64);
        let ways = (self.rest as u64) << 3 | (self.way as u64) << 5;
        ways | over << 7 | keeps << 8 | (self.first as u64) << 16
    }

    /// Of a word that a peer wrote: ways that there are not are those of the set-up.
    pub(in crate::shm) fn of_bits(word: u64) -> Self {
        let way = |shift: u32| {
            let ways = CopyWay::ALL.get((word >> shift & 3) as usize);
            ways.copied().unwrap_or(CopyWay::Halves)
        };
        Self {
            first: (word >> 16) as u16,
            way: way(5),
            rest: way(3),
            is_over: word >> 7 & 1 != 0,
            keeps: word >> 8 & 1 != 0,
        }
    }
}

/// What one side is to do for a transfer now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Nothing: the other side moves bytes.
    Wait,
    /// Copy by the kernel, so many units at most.
    Copy(u32),
    /// Copy pieces into the ring, so many units at most.
    Stage(u32),
}

/// What whoever claimed a transfer notes of its time.
#[derive(Debug, Clone, Copy)]
pub(in crate::shm) struct Stopwatch {
    plan: Plan,
    /// The block of messages beside each other that it is of: it is not timed by itself.
    block: Option<u32>,
    /// Whether it fills memory that its receiver has shown.
    fills: bool,
    since: Time,
}

/// Takes one of those that are left; returns whether there was one.
const fn take_one(left: &mut u16) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}

/// Leaves out for a while what was in vain, for twice as long each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pause {
    /// So many messages go without it.
    left: u16,
    /// How long the next pause is.
    length: u16,
}

impl Pause {
    /// Messages of the first pause, and of any at most.
    const LENGTHS: (u16, u16) = (16, 1024);

    const fn new() -> Self {
        Self {
            left: 0,
            length: Self::LENGTHS.0,
        }
    }

    /// Counts a message; returns whether it goes without.
    fn covers(&mut self) -> bool {
        take_one(&mut self.left)
    }

    /// It was of use, or in vain.
    fn note(&mut self, was_of_use: bool) {
        if was_of_use {
            self.length = (self.length - self.length / 8).max(Self::LENGTHS.0);
        } else {
            self.left = self.length;
            self.length = (self.length * 2).min(Self::LENGTHS.1);
        }
    }
}

/// Whether messages go ahead of their match: where offers go through the ring anyway, agreeing on a transfer is lost time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ahead {
    /// Offers in a row that went through the ring, and were begun in time.
    proven: u8,
    /// Messages that go ahead before the next offer.
    left: u16,
}

impl Ahead {
    /// Offers in a row that prove it.
    const PROVEN: u8 = 8;
    /// Messages ahead between two offers.
    const BETWEEN: u16 = 31;
    /// The longest message that goes ahead, in bytes.
    const LONGEST: u64 = 1 << 20;

    const fn is_proven(self) -> bool {
        self.proven == Self::PROVEN
    }

    /// Counts a message; returns whether it goes ahead.
    fn covers(&mut self) -> bool {
        take_one(&mut self.left)
    }

    /// An offer went through the ring where `is_ring`, and its receiver was there `in_time`, where that is known.
    fn note(&mut self, is_ring: bool, in_time: Option<bool>) {
        match (is_ring, in_time) {
            (true, None) => {}
            (true, Some(true)) => {
                self.proven = (self.proven + 1).min(Self::PROVEN);
                if self.is_proven() {
                    self.left = Self::BETWEEN;
                }
            }
            _ => *self = Self::default(),
        }
    }
}

/// The choice towards one peer for one class of lengths.
struct Choice {
    /// For messages that move alone, and beside others.
    chooser: Chooser,
    beside: BesideChooser,
    /// Of the ring: the other side moved nothing through it.
    ring: Pause,
    /// Whether offers are begun before they are claimed, since the last ones went through the ring.
    begins_early: bool,
    /// Of what is begun before the claim: it did not count.
    early: Pause,
    ahead: Ahead,
}

impl Choice {
    /// Returns how the next message is moved, and the number of its block where it is timed together with others.
    #[inline]
    fn plan(
        &mut self,
        is_alone: bool,
        can: impl Fn(CopyWay) -> bool,
        now: impl Fn() -> Time,
    ) -> (Plan, Option<u32>) {
        if is_alone {
            let plan = self.chooser.plan(&can);
            if !self.beside.is_trying() {
                return (plan, None);
            }
            self.beside.begins_alone(now());
            if plan.is_timed() {
                return (plan, None);
            }
        }
        let (way, block) = self.beside.plan(self.chooser.known().0, can);
        (Plan::all(way), block)
    }
}

/// The choices towards one peer: for data that is taken, and for memory that is filled; by class of length.
pub(in crate::shm) struct Choices([[Choice; CLASSES.len()]; 2]);

impl Choices {
    fn new(fixed: Option<CopyWay>) -> Self {
        let choice = |class: usize| Choice {
            chooser: fixed.map_or_else(|| Chooser::new(CopyWay::Halves), Chooser::fixed),
            beside: fixed.map_or_else(|| BesideChooser::new(BLOCKS[class]), BesideChooser::fixed),
            ring: Pause::new(),
            begins_early: fixed == Some(CopyWay::Ring),
            early: Pause::new(),
            ahead: Ahead::default(),
        };
        Self(std::array::from_fn(|_| std::array::from_fn(choice)))
    }

    fn of(&mut self, bytes: u64, fills: bool) -> &mut Choice {
        let class = CLASSES.iter().position(|most| bytes <= *most);
        &mut self.0[usize::from(fills)][class.unwrap_or(0)]
    }
}

impl Transfers {
    /// Begins to stage an offer before it is claimed, where the last ones went through the ring, and what was staged was in time. Ranks that match take no
    /// pieces.
    pub(in crate::shm) fn begin_early(&mut self, offer: &mut Transfer) {
        let len = match offer.buffer {
            Buffer::Source(region) if self.has_pieces && self.offers.is_empty() => region.len(),
            _ => return,
        };
        let choice = self.choices(offer.endpoint).of(len as u64, false);
        if !choice.early.covers() && choice.begins_early {
            offer.stage_unclaimed();
        }
    }

    /// Whether a message of `bytes` goes ahead of its match.
    pub(in crate::shm) fn goes_ahead(&mut self, endpoint: EndpointId, bytes: u64) -> bool {
        self.has_pieces
            && bytes <= Ahead::LONGEST
            && self.choices(endpoint).of(bytes, false).ahead.covers()
    }

    /// Notes how an offer, of which there are `bytes`, goes that was claimed.
    pub(in crate::shm) fn note_claim(&mut self, at: usize, bytes: u64, marks: Marks) {
        let offer = &self.offers[at];
        if !offer.buffer.is_source() {
            return;
        }
        let (endpoint, in_time) = (offer.endpoint, offer.was_in_time(marks));
        let choice = self.choices(endpoint).of(bytes, false);
        choice.begins_early = marks.is_ring();
        choice.early.note(in_time != Some(false));
        choice.ahead.note(marks.is_ring(), in_time);
    }

    fn choices(&mut self, endpoint: EndpointId) -> &mut Choices {
        let fixed = self.fixed;
        entry(&mut self.choices, endpoint, || Choices::new(fixed))
    }

    /// Chooses how a transfer of `bytes` from or to a peer goes, which this side claims: into memory that was shown where it `fills`.
    /// Through the ring only where `rings`.
    pub(in crate::shm) fn choose(
        &mut self,
        endpoint: EndpointId,
        bytes: u64,
        fills: bool,
        rings: bool,
        now: impl Fn() -> Time,
    ) -> (Marks, Option<Stopwatch>) {
        // What goes beside others is not timed: how long it takes is said by them.
        let is_alone = self.claims.is_empty() && self.offers.iter().all(|one| one.run.is_none());
        self.is_disturbed = self.timed != 0;
        let is_fixed = self.fixed.is_some();
        let choice = self.choices(endpoint).of(bytes, fills);
        // A trial has bounds of its own: its first messages may come while the other side has no time for them yet.
        let way = CopyWay::Ring;
        let is_tried = choice.chooser.tries(way) || choice.beside.tries(way);
        let rings = rings && (is_fixed || is_tried || !choice.ring.covers());
        let can = |way| way != CopyWay::Ring || rings;
        let (plan, block) = choice.plan(is_alone, can, &now);
        let marks = Marks::of(&plan, offers::units(bytes).unwrap_or(0));
        if !plan.is_timed() && block.is_none() {
            return (marks, None);
        }
        self.timed += 1;
        let watch = Stopwatch {
            plan,
            block,
            fills,
            since: now(),
        };
        (marks, Some(watch))
    }

    /// Notes the end of a transfer that may be timed: of `bytes`, where all of them were moved.
    pub(in crate::shm) fn note_end(
        &mut self,
        transfer: &mut Transfer,
        bytes: Option<u64>,
        now: impl FnOnce() -> Time,
    ) {
        let Some(watch) = transfer.watch.take() else {
            return;
        };
        self.timed -= 1;
        let is_disturbed = self.is_disturbed;
        let total = transfer.run.map_or(0, |run| run.total);
        let choices = self.choices(transfer.endpoint);
        let Choice {
            chooser, beside, ..
        } = choices.of(total, watch.fills);
        let now = now();
        beside.ended(watch.block, bytes, now);
        if watch.block.is_some() {
            return;
        }
        let is_whole = !matches!(watch.plan.first, Some((_, Part::Eighth | Part::Half)));
        match bytes.filter(|_| is_whole && !is_disturbed) {
            Some(bytes) => chooser.took(&watch.plan, bytes, now.since(watch.since)),
            None => chooser.lost(&watch.plan),
        }
    }

    /// Notes whether a transfer that this side claimed, and of which all goes through the ring, was moved so.
    pub(super) fn note_ring(&mut self, transfer: &Transfer) {
        let is_claim = transfer.side == Side::Claimer;
        let Some(run) = transfer.run.filter(|run| is_claim && run.marks.is_ring()) else {
            return;
        };
        // Nothing is claimed for memory that was shown, and moved through the ring.
        let choice = self.choices(transfer.endpoint).of(run.total, false);
        choice.ring.note(!transfer.has_waited_in_vain);
    }

    /// Looks whether the part of a transfer is moved that is tried, or has taken so long that the rest is moved by the known way.
    pub(super) fn note_part(&mut self, transfer: &mut Transfer, now: impl FnOnce() -> Time) {
        let (Some(watch), Some(run)) = (&transfer.watch, transfer.run) else {
            return;
        };
        if run.marks.first == 0 {
            return;
        }
        let watch = **watch;
        let moved = transfer.finished_of_part(&run);
        let took = now().since(watch.since);
        let is_done = moved >= u32::from(run.marks.first);
        if !is_done && took <= watch.plan.limit(run.total) {
            return;
        }
        if !is_done {
            transfer.end_part(&run);
        }
        self.timed -= 1;
        transfer.watch = None;
        let is_disturbed = self.is_disturbed;
        let bytes = u64::from(moved.max(1)) * offers::UNIT;
        let choices = self.choices(transfer.endpoint);
        let chooser = &mut choices.of(run.total, watch.fills).chooser;
        match is_disturbed {
            true => chooser.lost(&watch.plan),
            false => chooser.took(&watch.plan, bytes.min(run.total), took),
        }
    }

    /// Adds a line for each way that is in use towards `rank`, behind `endpoint`, with what it takes.
    pub(in crate::shm) fn tell_ways(
        &self,
        endpoint: EndpointId,
        rank: Rank,
        out: &mut Vec<String>,
    ) {
        let Some(Some(choices)) = self.choices.get(endpoint.index()) else {
            return;
        };
        for (fills, classes) in choices.0.iter().enumerate() {
            for (class, choice) in classes.iter().enumerate() {
                let role = if fills == 1 { "sent" } else { "received" };
                let length = match CLASSES[class] {
                    u64::MAX => "longer".to_owned(),
                    most => format!("up to {} KiB", most >> 10),
                };
                let mut tell = |beside: &str, way: CopyWay, time: u64| {
                    let way = way.name();
                    out.push(format!(
                        "shm: rank {rank}, long messages {role}{beside}, {length}: {way}, {time} ns per KiB"
                    ));
                };
                if let (way, Some(time)) = choice.chooser.known() {
                    tell("", way, time);
                }
                if let Some((way, time)) = choice.beside.known() {
                    tell(" beside others", way, time);
                }
                if choice.ahead.is_proven() {
                    out.push(format!(
                        "shm: rank {rank}, long messages sent, {length}: before they are matched, but for one of {}",
                        Ahead::BETWEEN + 1
                    ));
                }
            }
        }
    }
}

impl Transfer {
    /// Units that each side, the claimer first, moves of the part that is tried.
    fn shares(&self, run: &Run) -> [u32; 2] {
        let first = u32::from(run.marks.first);
        match run.marks.way {
            CopyWay::Halves => [first.div_ceil(2), first / 2],
            CopyWay::OneSide => [first, 0],
            CopyWay::Ring if (self.side == Side::Claimer) == self.buffer.is_source() => [first, 0],
            CopyWay::Ring => [0, first],
        }
    }

    /// Units of the part that is tried that are moved.
    fn finished_of_part(&self, run: &Run) -> u32 {
        let done = self.line.get().finished.load(Acquire);
        let [claimer, maker] = self.shares(run);
        (done as u32).min(claimer) + ((done >> 32) as u32).min(maker)
    }

    /// Ends the part that is tried before all of it is moved.
    fn end_part(&mut self, run: &Run) {
        let marks = Marks {
            is_over: true,
            ..run.marks
        };
        self.mark_claimed(marks);
        self.run = Some(Run { marks, ..*run });
    }

    /// What this side is to do now.
    pub(super) fn duty(&mut self, run: &mut Run, now: impl Fn() -> Time) -> Duty {
        let marks = &mut run.marks;
        if marks.first != 0 && !marks.is_over && self.side == Side::Maker {
            marks.is_over = Marks::of_bits(self.line.get().claimed.load(Acquire)).is_over;
        }
        let is_part = marks.first != 0
            && !marks.is_over
            && self.finished_of_part(run) < u32::from(run.marks.first);
        if !is_part {
            run.marks.first = 0;
            return self.duty_by(run.marks.rest, u32::MAX, run, now);
        }
        let claims = self.line.get().claims.load(Acquire);
        let [claimer, maker] = self.shares(run);
        let left = match self.side {
            Side::Claimer => claimer.saturating_sub(claims as u32 & (u32::MAX >> 1)),
            Side::Maker => maker.saturating_sub(run.units.saturating_sub(offers::back_of(claims))),
        };
        if left != 0 {
            return self.duty_by(run.marks.way, left, run, now);
        }
        match self.has_waited(run, now) {
            true => Duty::Copy(u32::MAX),
            false => Duty::Wait,
        }
    }

    fn duty_by(&mut self, way: CopyWay, limit: u32, run: &Run, now: impl Fn() -> Time) -> Duty {
        match way {
            CopyWay::Halves => Duty::Copy(limit),
            CopyWay::OneSide if self.side == Side::Claimer => Duty::Copy(limit),
            CopyWay::Ring if self.buffer.is_source() => Duty::Stage(limit),
            CopyWay::OneSide | CopyWay::Ring => match self.has_waited(run, now) {
                true => Duty::Copy(limit),
                false => Duty::Wait,
            },
        }
    }

    /// Whether this side has waited in vain for the other to move a transfer. The first look notes when the wait began. Each look reads the
    /// clock, since a rank that sleeps looks only twice before it sleeps again.
    pub(super) fn has_waited(&mut self, run: &Run, now: impl Fn() -> Time) -> bool {
        let now = now();
        let since = *self.waits.get_or_insert(now);
        let is_in_vain = now.since(since) > PATIENCE + Duration::from_nanos(run.total);
        self.has_waited_in_vain |= is_in_vain;
        is_in_vain
    }
}
