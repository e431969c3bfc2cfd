//! The rings of a board: who may write and read what, and when.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::shape::Shape;
use crate::word::Word;

/// Most bytes in a line, beside round and head.
pub const LINE: usize = 48;
/// Most bytes in a slot.
pub const SLOT: usize = 64 << 10;
/// Where results begin in a slot, which is as much as there is room for on either side.
pub const RESULTS_AT: usize = SLOT / 2;
/// Two members hand slots on for what is longer.
pub(super) const OWN: usize = 1 << 10;
/// A member takes over the line of the round that comes so many later, once it has written one.
const TAKEN_OVER: u64 = 8;
/// `done` of a member that takes part no more: it reads nothing.
const GONE: u64 = u64::MAX;

/// Where bytes lie in the memory of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Line(usize),
    Slot(usize),
    Result(usize),
    /// A slot that is handed on.
    Handed(usize),
}

impl Place {
    /// Where the bytes of `round` are shown that are not handed on.
    #[inline]
    fn of<S: Shape>(round: u64, len: usize) -> Self {
        match len <= LINE {
            true => Self::Line(line_of::<S>(round)),
            false => Self::Slot(slot_of::<S>(round)),
        }
    }

    fn of_result<S: Shape>(round: u64) -> Self {
        Self::Result(slot_of::<S>(round))
    }
}

/// Returns the line of `round`.
#[inline]
const fn line_of<S: Shape>(round: u64) -> usize {
    (round % S::LINES) as usize
}

/// Returns the slot of `round`, where there are any.
#[inline]
const fn slot_of<S: Shape>(round: u64) -> usize {
    match round.checked_rem(S::SLOTS) {
        Some(slot) => slot as usize,
        None => 0,
    }
}

/// A slot that two members hand on to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HandedSlot {
    /// In whose memory it lies.
    member: usize,
    number: usize,
}

/// Where something lies that is longer than a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// In the lower half of the slot of its round: a result may be in the upper one.
    Half,
    /// In all of the slot of its round.
    Whole,
    Handed(HandedSlot),
}

impl Shown {
    /// What the line of a round of two members says of it.
    const fn pack(self) -> u8 {
        match self {
            Self::Half => 0,
            Self::Whole => 1,
            Self::Handed(slot) => 2 + (slot.member << 2 | slot.number) as u8,
        }
    }

    /// Of a byte that the other member wrote: what there is not is half a slot.
    fn unpack(byte: u8, slots: usize) -> Self {
        let word = usize::from(byte).wrapping_sub(2);
        let (member, number) = (word >> 2, word & 3);
        match byte {
            1 => Self::Whole,
            _ if member < 2 && number < slots => Self::Handed(HandedSlot { member, number }),
            _ => Self::Half,
        }
    }
}

/// The memory of a board.
pub(super) trait Cells {
    type Shape: Shape;
    type Word: Word<u64>;

    /// The round that a line is of.
    fn round(&self, member: usize, line: usize) -> &Self::Word;
    /// What lies beside it.
    fn head(&self, member: usize, line: usize) -> &Self::Word;
    fn done(&self, member: usize) -> &Self::Word;
    fn results(&self, member: usize) -> &Self::Word;
    /// The number, from 1, of the first member that others have failed at.
    fn broken(&self) -> &Self::Word;
    /// How often members have left.
    fn leavers(&self) -> &Self::Word;

    /// Writes `data` from byte `at` of a place, within the bounds of the place.
    fn write(&self, member: usize, place: Place, at: usize, data: &[u8]);

    /// The same, of a place that this member has read last.
    fn write_read(&self, member: usize, place: Place, at: usize, data: &[u8]) {
        self.write(member, place, at, data);
    }

    /// Asks for a line that is written soon. A hint.
    fn will_write(&self, _member: usize, _line: usize) {}

    /// Gives the memory of a member's slots back: they are zero then. Returns whether it did.
    fn give_back(&self, member: usize) -> bool;

    /// Calls `look` with a range of a place, which is within its bounds.
    fn read<R>(
        &self,
        member: usize,
        place: Place,
        range: Range<usize>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> R;
}

/// One member's view of a board.
pub(super) struct Ring<C: Cells> {
    cells: C,
    me: usize,
    members: usize,
    /// The last round that has begun.
    begun: u64,
    /// The last round in which this member has shown something.
    shown: u64,
    /// What was shown last in each slot's rounds.
    lengths: <C::Shape as Shape>::Lengths,
    /// A bit for each slot that was written since its memory was given back.
    written: u64,
    /// The last round with something in a slot of this member.
    slotted: u64,
    /// The last round with a result of this member.
    results: u64,
    finished: u64,
    /// What `done` says of `finished`.
    told: u64,
    /// All other members have done with this round.
    floor: u64,
    /// Slots that were read last of those that are handed on, oldest first, and the rounds in which they were shown: this member may write there.
    read: VecDeque<(HandedSlot, u64)>,
    /// The round in which this member has shown something in each of its own of these, last.
    handed: [u64; 4],
    /// The last round in which the other of two members has shown something that may be handed on: what goes one way stays in the slots of the rounds.
    answered: u64,
}

/// Returns what a member writes for a round: whether it `is_told` where its bytes lie, by the line of two members or, of more, by this.
#[inline]
fn word(round: u64, is_told: bool) -> u64 {
    round << 1 | u64::from(is_told)
}

impl<C: Cells> Ring<C> {
    pub(super) fn new(cells: C, me: usize, members: usize) -> Self {
        Self {
            cells,
            me,
            members,
            begun: 0,
            shown: 0,
            lengths: Default::default(),
            written: 0,
            slotted: 0,
            results: 0,
            finished: 0,
            told: 0,
            floor: 0,
            // One more than there are, before the oldest goes.
            read: VecDeque::with_capacity(C::Shape::HANDED + 1),
            handed: [0; 4],
            answered: 0,
        }
    }

    pub(super) const fn cells_mut(&mut self) -> &mut C {
        &mut self.cells
    }

    #[inline]
    pub(super) const fn begin(&mut self, rounds: u64) -> u64 {
        let first = self.begun + 1;
        self.begun += rounds;
        first
    }

    #[inline]
    pub(super) fn has_room(&mut self, round: u64, len: usize) -> bool {
        let room = match len <= LINE {
            true => C::Shape::LINES,
            false => C::Shape::ROOM,
        };
        self.floor >= round.saturating_sub(room) || self.has_room_now(round.saturating_sub(room))
    }

    #[cold]
    fn has_room_now(&mut self, before: u64) -> bool {
        let others = (0..self.members).filter(|member| *member != self.me);
        // What they have read is read before anything is written in its place.
        let done = others.map(|member| self.cells.done(member).load(Acquire));
        self.floor = done.min().unwrap_or(GONE);
        self.floor >= before
    }

    #[inline]
    pub(super) fn show(&mut self, round: u64, head: u64, parts: &[&[u8]]) -> bool {
        let len = parts.iter().map(|part| part.len()).sum();
        let is_next = round > self.shown && round <= self.begun;
        let is_near = round.saturating_sub(self.finished) <= C::Shape::AHEAD;
        if len > C::Shape::MOST || !is_next || !is_near || !self.has_room(round, len) {
            return false;
        }
        let line = line_of::<C::Shape>(round);
        let is_told = len > self.untold();
        let (member, place, was_read) = match is_told && self.members == 2 {
            true => self.hand_on(round, line, len),
            false => (self.me, Place::of::<C::Shape>(round, len), false),
        };
        let mut at = 0;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            match was_read {
                true => self.cells.write_read(member, place, at, part),
                false => self.cells.write(member, place, at, part),
            }
            at += part.len();
        }
        self.cells.head(self.me, line).store(head, Relaxed);
        self.cells
            .round(self.me, line)
            .store(word(round, is_told), Release);
        self.shown = round;
        self.take_over(round + TAKEN_OVER);
        let is_own = matches!(place, Place::Slot(_));
        if is_own {
            self.slotted = round;
        }
        self.written |= u64::from(is_own) << slot_of::<C::Shape>(round);
        if let Some(length) = self.lengths.as_mut().get_mut(slot_of::<C::Shape>(round)) {
            *length = len;
        }
        true
    }

    /// Takes over the line of a round that comes later, where all others have done with what it shows now: they have read it, so that it
    /// would hold up the store that is to come.
    #[inline]
    fn take_over(&mut self, round: u64) {
        let before = round.saturating_sub(C::Shape::LINES);
        if self.floor >= before || self.has_room_now(before) {
            self.cells.will_write(self.me, line_of::<C::Shape>(round));
        }
    }

    /// Returns the length up to which what is shown lies in a line, or in the lower half of the slot of its round.
    #[inline]
    const fn untold(&self) -> usize {
        match self.members == 2 && C::Shape::HANDED > 0 {
            true => OWN,
            false => RESULTS_AT,
        }
    }

    /// Returns where so many bytes are shown in `round`, whose line says so, and whether this member has read the place last.
    #[inline(never)]
    fn hand_on(&mut self, round: u64, line: usize, len: usize) -> (usize, Place, bool) {
        let within = C::Shape::AHEAD + 1;
        let is_new = round > self.finished;
        // Who showed it writes there again once this member can no more.
        let may = |(_, shown): &(HandedSlot, u64)| is_new && round - shown <= within;
        while self.read.front().is_some_and(|read| !may(read)) {
            self.read.pop_front();
        }
        let (slot, was_read) = match self.read.pop_front() {
            Some((slot, _)) => (Some(slot), true),
            None => {
                // What the other member may have shown there since is read.
                let before = self.floor.min(self.finished);
                let is_free = |shown: u64| shown == 0 || before >= shown + within;
                let is_answered = self.answered != 0 && round <= self.answered + within;
                let mut own = 0..C::Shape::HANDED.min(self.handed.len());
                let number = own.find(|number| is_answered && is_free(self.handed[*number]));
                let member = self.me;
                (number.map(|number| HandedSlot { member, number }), false)
            }
        };
        if let Some(slot) = slot.filter(|slot| slot.member == self.me) {
            self.handed[slot.number] = round;
        }
        let (shown, member, place) = match slot {
            Some(slot) => {
                let place = Place::Handed(slot.number);
                (Shown::Handed(slot), slot.member, place)
            }
            None => {
                let place = Place::of::<C::Shape>(round, len);
                let shown = match len > RESULTS_AT {
                    true => Shown::Whole,
                    false => Shown::Half,
                };
                (shown, self.me, place)
            }
        };
        let line = Place::Line(line);
        self.cells.write(self.me, line, 0, &[shown.pack()]);
        (member, place, was_read)
    }

    /// Returns where something lies that a member has shown in `round`, and that is longer than a line.
    #[inline]
    fn place_of(&self, member: usize, round: u64) -> Shown {
        let line = line_of::<C::Shape>(round);
        if self.cells.round(member, line).load(Relaxed) != word(round, true) {
            return Shown::Half;
        }
        match self.members == 2 {
            true => {
                let line = Place::Line(line);
                let says = self.cells.read(member, line, 0..1, |bytes| bytes[0]);
                Shown::unpack(says, C::Shape::HANDED)
            }
            false => Shown::Whole,
        }
    }

    #[inline]
    pub(super) fn is_shown(&self, member: usize, round: u64) -> bool {
        let line = line_of::<C::Shape>(round);
        member < self.members && self.cells.round(member, line).load(Acquire) >> 1 == round
    }

    #[inline]
    pub(super) fn all_shown(&mut self, round: u64) -> bool {
        let mut others = (0..self.members).filter(|member| *member != self.me);
        let all = others.all(|member| self.is_shown(member, round));
        if all {
            self.floor = self.floor.max(round.saturating_sub(C::Shape::AHEAD));
        }
        all
    }

    /// What was shown can be read: it is there, and stays there until this member has done with the round.
    #[inline]
    fn is_readable(&self, member: usize, round: u64) -> bool {
        round > self.finished && self.is_shown(member, round)
    }

    #[inline]
    pub(super) fn head(&self, member: usize, round: u64) -> Option<u64> {
        let line = line_of::<C::Shape>(round);
        self.is_readable(member, round)
            .then(|| self.cells.head(member, line).load(Relaxed))
    }

    #[inline]
    pub(super) fn read<R>(
        &self,
        member: usize,
        round: u64,
        len: usize,
        range: Range<usize>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let is_there = range.start <= range.end && range.end <= len && len <= C::Shape::MOST;
        if !is_there || !self.is_readable(member, round) {
            return None;
        }
        let shown = match len > self.untold() {
            true => self.place_of(member, round),
            false => Shown::Half,
        };
        let (member, place) = match shown {
            Shown::Handed(slot) => (slot.member, Place::Handed(slot.number)),
            // A result may be written there, whatever length the reader expects.
            Shown::Half if range.end > RESULTS_AT => return None,
            Shown::Half | Shown::Whole => (member, Place::of::<C::Shape>(round, len)),
        };
        Some(self.cells.read(member, place, range, look))
    }

    #[inline]
    pub(super) fn show_result(&mut self, round: u64, data: &[u8]) -> bool {
        let is_next = round > self.results && round <= self.shown;
        // The slot is still this round's, and what was shown ends before the result.
        let shown = self.lengths.as_ref().get(slot_of::<C::Shape>(round));
        let leaves_room = shown.is_some_and(|len| *len <= RESULTS_AT);
        let slots = C::Shape::SLOTS;
        let is_read = self.floor < round.saturating_sub(slots);
        let has_room = self.shown.saturating_sub(round) < slots && leaves_room && !is_read;
        if data.len() > RESULTS_AT || !is_next || !has_room {
            return false;
        }
        self.cells
            .write(self.me, Place::of_result::<C::Shape>(round), 0, data);
        self.cells.results(self.me).store(round, Release);
        self.results = round;
        self.slotted = self.slotted.max(round);
        self.written |= 1 << slot_of::<C::Shape>(round);
        true
    }

    #[inline]
    pub(super) fn has_result(&self, member: usize, round: u64) -> bool {
        member < self.members && self.cells.results(member).load(Acquire) >= round
    }

    #[inline]
    pub(super) fn read_result<R>(
        &self,
        member: usize,
        round: u64,
        len: usize,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let has_results = C::Shape::SLOTS > 0;
        let is_there = has_results && round > self.finished && self.has_result(member, round);
        (is_there && len <= RESULTS_AT).then(|| {
            let place = Place::of_result::<C::Shape>(round);
            self.cells.read(member, place, 0..len, look)
        })
    }

    #[inline]
    pub(super) fn finish(&mut self, round: u64) {
        if round > self.finished && round <= self.begun {
            if self.members == 2 && C::Shape::HANDED > 0 {
                let first = round.saturating_sub(C::Shape::AHEAD).max(self.finished + 1);
                (first..=round).for_each(|round| self.note_read(round));
            }
            self.finished = round;
            self.tell();
        }
    }

    /// The same of a round in which nothing was shown that is longer than a line. Others are told once in so many rounds as one may show
    /// ahead in slots, and have to wait for none of these: there are more lines. Returns whether they were told.
    #[inline]
    pub(super) fn finish_line(&mut self, round: u64) -> bool {
        if round > self.finished && round <= self.begun {
            self.finished = round;
        }
        let is_due = self.finished - self.told >= C::Shape::ROOM;
        if is_due {
            self.tell();
        }
        is_due
    }

    #[inline]
    fn tell(&mut self) {
        self.told = self.finished;
        self.cells.done(self.me).store(self.finished, Release);
    }

    /// Takes note of the slot that the other of two members handed on in `round`.
    #[inline]
    fn note_read(&mut self, round: u64) {
        let other = 1 - self.me;
        let line = line_of::<C::Shape>(round);
        if self.cells.round(other, line).load(Acquire) != word(round, true) {
            return;
        }
        self.answered = round;
        if let Shown::Handed(slot) = self.place_of(other, round) {
            self.read.push_back((slot, round));
            if self.read.len() > self.handed.len() {
                self.read.pop_front();
            }
        }
    }

    /// Returns a bit for each slot that was written since its memory was given back.
    #[inline]
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Returns the last round in which this member has shown something.
    pub(super) const fn shown(&self) -> u64 {
        self.shown
    }

    /// Gives the memory of this member's slots back, where all others have done with what lies there. Returns whether it did.
    pub(super) fn give_back(&mut self) -> bool {
        // What they have read is read before it becomes zero. Who has left shows nothing more, and others may still read.
        let is_idle = self.shown != GONE && self.has_room_now(self.slotted);
        let is_back = is_idle && self.cells.give_back(self.me);
        if is_back {
            self.written = 0;
        }
        is_back
    }

    /// Reads and shows nothing any more. What was shown stays.
    pub(super) fn leave(&mut self) {
        (self.finished, self.told, self.shown) = (GONE, GONE, GONE);
        self.cells.done(self.me).store(GONE, Release);
        self.cells.leavers().fetch_add(1, Release);
    }

    /// The same after a failure at `member`: nothing more is shown, and nobody is to wait for it.
    pub(super) fn give_up(&mut self, member: usize) {
        let number = member as u64 + 1;
        // The first one counts.
        let broken = self.cells.broken();
        let _ = broken.compare_exchange(0, number, Release, Relaxed);
        self.leave();
    }

    #[inline]
    pub(super) fn broken(&self) -> Option<usize> {
        match self.cells.broken().load(Acquire) {
            0 => None,
            // One that there is, whoever has written the word.
            number => Some((number as usize - 1).min(self.members - 1)),
        }
    }

    #[inline]
    pub(super) fn has_leavers(&self) -> bool {
        self.cells.leavers().load(Acquire) > 0
    }

    pub(super) fn has_left(&self, member: usize) -> bool {
        member < self.members && self.cells.done(member).load(Acquire) == GONE
    }
}
