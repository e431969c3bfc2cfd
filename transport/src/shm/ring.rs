//! The ring of one direction between two ranks: one producer, one consumer, no fence.
//!
//! ```text
//!   slot, one line of 64 bytes:
//!     word 0   stamp u32 | kind u8 | room u8 | payload length u16   stored last, with Release
//!     word 1-2 header of the message
//!     3-7      payload of up to 40 bytes
//!
//!   slots      [ 257 | 258 | 259 |   4 |   5 | ... ]     the stamp of the message at position p
//!                            tail^     ^head             is p + 1: a slot that still holds its
//!                                                        stamp of the last lap is empty
//! ```
//!
//! A message of up to 40 bytes moves exactly one line. A longer payload goes into whole lines of
//! the payload ring, in one piece: where it does not fit before the ring's end, both sides skip to
//! the start by the same rule, so that no offset travels and only the length needs a check.
//!
//! The memory of the payload ring goes back to the system in silence (`payload`).
//!
//! A payload of a long message may lie in the room instead, a second payload ring that comes and goes (`room`): the slot says
//! how large it is then, and 0 where the payload is not there. It may also lie in the room of the other direction, in memory that its producer
//! has read and holds (`reuse`). Of a payload in a room the slot's 40 bytes say at which position its producer stood, or where it lies.
//!
//! **Credits.** The consumer writes `slots consumed | payload position << 32` when a quarter of
//! either ring has been consumed since the last time. The producer keeps a copy and reads the
//! word again only when the rings seem full. This cannot get stuck: with everything consumed,
//! less than a quarter is missing from the credit, so at least three quarters seem free, which is
//! more than the control reserve leaves out, and more than the largest message together with the
//! largest gap (checked where the sizes are defined).
//!
//! **Trust.** The consumer checks stamp, kind, room and length. The producer takes any credit that
//! promises more than there is for "full", so that it never overwrites what it should not;
//! neither side can be led out of bounds.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tagwire_base::Time;

use super::payload::{self, PayloadOut};
use super::reuse::{Held, Reuse};
use super::room::{Cursor, RoomIn, RoomOut, SIZES, Size, Spot, Table, Words};
use crate::message::{AmHeader, Payload};
use crate::post::Class;
use crate::word::Word;

/// Where the payload of a message lies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// In the slot with this index.
    Inline(usize),
    /// At this offset of the payload ring.
    Bulk(usize),
    /// At this offset of the room.
    Room(usize),
}

/// The memory of a ring: shared memory, or a model of it.
pub(super) trait RingMemory {
    /// Its atomic words.
    type Word: Word<u64>;
    /// Slots: a power of two.
    const SLOTS: u32;
    /// Slots that data leaves to control messages.
    const CONTROL_SLOTS: u32;
    /// Bytes of the payload ring, a multiple of 64.
    const PAYLOAD: u32;
    /// Largest payload.
    const MAX_SEND: u32;
    /// Bytes of the room by its size, multiples of 64.
    const ROOMS: Table = [0; SIZES];
    /// The shortest payload that may go into the room, where there is one: while the payload ring is full.
    const LONG: usize = usize::MAX;
    /// The shortest payload that always does.
    const ROOMY: usize = usize::MAX;
    /// The shortest payload that may go back and forth in the memory of rooms.
    const REUSED: usize = Self::LONG;

    /// The words of slot `index`.
    fn slot(&self, index: usize) -> &[Self::Word; 3];
    /// Hints that slot `index` will be written soon.
    #[inline]
    fn will_write(&self, index: usize) {
        let _ = index;
    }
    /// Hints that slot `index` will be read soon.
    #[inline]
    fn will_read(&self, index: usize) {
        let _ = index;
    }
    /// Hints that `len` bytes of a payload will be written soon, from `place` on.
    #[inline]
    fn will_write_payload(&self, place: Place, len: usize) {
        let _ = (place, len);
    }
    /// The words about the room; `None` where there never is one.
    fn room(&self) -> Option<Words<'_, Self::Word>> {
        None
    }
    /// Has the pages of the room mapped that it has with the size `to` and not with `from`.
    fn map_room(&self, from: Size, to: Size) {
        let _ = (from, to);
    }
    /// The word of credits.
    fn credit(&self) -> &Self::Word;
    /// The word that says who has the memory of the payload ring.
    fn payload_state(&self) -> &Self::Word;
    /// Stores a payload.
    fn write(&self, place: Place, data: &[u8]);
    /// Stores a piece of a transfer. Pieces go through the ring where both processors share a cache, as trials of the ways find.
    fn write_plain(&self, place: Place, data: &[u8]) {
        self.write(place, data);
    }
    /// Whether a payload of `len` bytes is to go into memory that is held, where there is some.
    fn tries_reuse(&self, len: usize) -> bool {
        let _ = len;
        true
    }
    /// Counts a payload of `len` bytes that did.
    fn count_reuse(&self, len: usize) {
        let _ = len;
    }
    /// What was written last was answered, and the answer read.
    fn note_answer(&self) {}
    /// Shows a payload of `len` bytes.
    fn read<R>(&self, place: Place, len: usize, look: impl FnOnce(Payload<'_>) -> R) -> R;
}

/// Where a payload goes.
#[derive(Clone, Copy)]
enum Reserved {
    /// In the payload ring, and the position behind it.
    Ring(usize, Cursor),
    /// In the room.
    Room(Spot),
    /// In the room of the other direction.
    Reused(Held),
}

impl Reserved {
    /// The place of the bytes from `offset` on.
    #[inline]
    const fn place(&self, offset: usize) -> Place {
        match self {
            Self::Ring(start, _) => Place::Bulk(*start + offset),
            Self::Room(spot) => Place::Room(spot.offset + offset),
            Self::Reused(held) => Place::Room(held.offset as usize + offset),
        }
    }

    /// The size of the room that it is in.
    #[inline]
    const fn size(&self) -> Size {
        match self {
            Self::Ring(..) => Size::NONE,
            Self::Room(spot) => spot.size,
            Self::Reused(_) => Size::REUSED,
        }
    }
}

/// The sending end.
pub(super) struct Producer<M> {
    memory: M,
    /// Messages sent.
    tail: u32,
    /// Messages consumed, as far as known.
    consumed: u32,
    payload: PayloadOut,
    room: RoomOut,
    /// What the consumer of the other direction holds, and the memory where it does.
    reuse: Option<(Arc<Reuse>, M)>,
    /// Whether it is reused, where a setting says so.
    reuses: Option<bool>,
    /// Bytes that are still to come of a message in several packets: they are stored as pieces are.
    long_left: usize,
}

impl<M: RingMemory> Producer<M> {
    pub(super) fn new(memory: M) -> Self {
        Self {
            memory,
            tail: 0,
            consumed: 0,
            payload: PayloadOut::default(),
            room: RoomOut::NEW,
            reuse: None,
            reuses: None,
            long_left: 0,
        }
    }

    /// A message of `bytes` in several packets is to be sent, whose way was found by trial.
    pub(super) const fn begin_long(&mut self, bytes: usize) {
        self.long_left = bytes;
    }

    /// Lets it write where `reuse` says, in `memory` of the other direction: always or never where `fixed` says so, or as is found by trial.
    pub(super) fn reuse(&mut self, reuse: Arc<Reuse>, memory: M, fixed: Option<bool>) {
        self.reuse = Some((reuse, memory));
        self.reuses = fixed;
    }

    /// Whether a payload goes into memory that goes back and forth, where there is some. Pieces do: what goes through the ring is found by trial as a
    /// whole. Of other payloads those may that answer something.
    #[inline]
    fn tries_reuse(&self, reuse: &Reuse, len: usize, is_piece: bool) -> bool {
        let is_tried = || is_piece || (reuse.answers() && self.memory.tries_reuse(len));
        self.reuses.unwrap_or_else(is_tried)
    }

    /// Begins to count at `first`, where nothing was sent yet and no consumer has looked at the ring. Returns where a consumer has to
    /// begin.
    pub(super) fn begin_at(&mut self, first: u32) -> RingState {
        let state = RingState {
            head: first,
            position: first & !63,
            offset: 0,
        };
        self.tail = state.head;
        self.consumed = state.head;
        self.payload.begin_at(state.position);
        // Each slot has the stamp of the lap before, as where so many messages had been taken.
        for before in 1..=M::SLOTS {
            let position = first.wrapping_sub(before);
            let slot = self.memory.slot((position & (M::SLOTS - 1)) as usize);
            slot[0].store(u64::from(position.wrapping_add(1)), Relaxed);
        }
        let credit = u64::from(state.head) | u64::from(state.position) << 32;
        self.memory.credit().store(credit, Relaxed);
        state
    }

    /// Sends a message of at most [`RingMemory::MAX_SEND`] bytes, or reports that there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, class: Class, header: AmHeader, data: &[u8]) -> bool {
        self.push_kind(KIND_MESSAGE, class, header, data)
    }

    /// The same, of a piece of a transfer.
    pub(super) fn push_piece(&mut self, header: AmHeader, data: &[u8]) -> bool {
        self.push_kind(KIND_PIECE, Class::Data, header, data)
    }

    /// Whether `count` pieces of `len` bytes in all would find space, each but the last of whole lines.
    pub(super) fn has_space(&mut self, count: u32, len: usize) -> bool {
        let limit = M::SLOTS - M::CONTROL_SLOTS;
        let has_slots = |this: &Self| this.tail.wrapping_sub(this.consumed) + count <= limit;
        if !has_slots(self) {
            self.refresh();
        }
        has_slots(self) && (len <= super::layout::INLINE || self.reserve(len, true).is_some())
    }

    #[inline(always)]
    fn push_kind(&mut self, mut kind: u16, class: Class, header: AmHeader, data: &[u8]) -> bool {
        let Some(index) = self.next_slot(class) else {
            return false;
        };
        if data.len() <= super::layout::INLINE {
            self.memory.write(Place::Inline(index), data);
        } else {
            let Some(size) = self.push_bulk(index, data, kind == KIND_PIECE) else {
                return false;
            };
            kind |= size.mark();
        }
        self.publish(index, header, kind, data.len());
        true
    }

    /// As [`push`](Self::push), of `len` bytes of data that `fill` is asked for in pieces: from an offset on, as much as the
    /// room that it is given.
    pub(super) fn push_in_pieces(
        &mut self,
        header: AmHeader,
        len: usize,
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> bool {
        let Some(index) = self.next_slot(Class::Data) else {
            return false;
        };
        let mut kind = KIND_MESSAGE;
        if len <= super::layout::INLINE {
            let mut piece = [0; super::layout::INLINE];
            fill(0, &mut piece[..len]);
            self.memory.write(Place::Inline(index), &piece[..len]);
        } else {
            let Some(reserved) = self.reserve(len, false) else {
                return false;
            };
            // The peer may write to the ring at any time, so that nobody is lent a slice of it.
            let mut piece = [0; PIECE];
            for offset in (0..len).step_by(PIECE) {
                let piece = &mut piece[..PIECE.min(len - offset)];
                fill(offset, piece);
                self.memory_of(&reserved)
                    .write(reserved.place(offset), piece);
            }
            self.take(index, reserved);
            kind |= reserved.size().mark();
        }
        self.publish(index, header, kind, len);
        true
    }

    /// Returns the index of the next slot, where there is one for this class.
    #[inline(always)]
    fn next_slot(&mut self, class: Class) -> Option<usize> {
        let limit = match class {
            Class::Data => M::SLOTS - M::CONTROL_SLOTS,
            Class::Control => M::SLOTS,
        };
        if self.tail.wrapping_sub(self.consumed) >= limit && !self.has_slot(limit) {
            return None;
        }
        Some((self.tail & (M::SLOTS - 1)) as usize)
    }

    /// Lets the consumer see the message in a slot, whose payload is written.
    #[inline(always)]
    fn publish(&mut self, index: usize, header: AmHeader, kind: u16, len: usize) {
        let stamp = self.tail.wrapping_add(1);
        let slot = self.memory.slot(index);
        slot[1].store(header.0[0], Relaxed);
        slot[2].store(header.0[1], Relaxed);
        slot[0].store(
            u64::from(stamp) | u64::from(kind) << 32 | (len as u64) << 48,
            Release,
        );
        self.tail = stamp;
        // The consumer read the slot one lap ago, so that its line is shared: taken over now, it
        // does not hold up the store that will come.
        self.memory
            .will_write((stamp.wrapping_add(AHEAD) & (M::SLOTS - 1)) as usize);
        if len > super::layout::INLINE {
            self.take_over(len);
        }
    }

    /// Takes over the lines of another payload like the last. The consumer read them one lap ago: to write
    /// them takes as long as to copy them, and is off the way now.
    #[inline(never)]
    fn take_over(&mut self, len: usize) {
        match self.reserve(len, false) {
            // This side has read it last.
            Some(Reserved::Reused(_)) | None => {}
            Some(Reserved::Room(spot)) if spot.is_owned => {}
            Some(reserved) => self.memory.will_write_payload(reserved.place(0), len),
        }
    }

    /// Stores a long payload, and returns the size of the room that it is in, or reports that there is no space. Out of line,
    /// to keep the way of short messages short.
    #[inline(never)]
    fn push_bulk(&mut self, index: usize, data: &[u8], is_piece: bool) -> Option<Size> {
        let is_piece = is_piece || self.long_left != 0;
        let reserved = self.reserve(data.len(), is_piece)?;
        self.long_left = self.long_left.saturating_sub(data.len());
        let (memory, place) = (self.memory_of(&reserved), reserved.place(0));
        let is_owned = match reserved {
            Reserved::Ring(..) => false,
            Reserved::Room(spot) => spot.is_owned,
            Reserved::Reused(_) => true,
        };
        if is_owned && !is_piece && self.reuses.is_none() {
            self.memory.count_reuse(data.len());
        }
        match is_piece || is_owned {
            true => memory.write_plain(place, data),
            false => memory.write(place, data),
        }
        self.take(index, reserved);
        Some(reserved.size())
    }

    /// The memory that a payload goes into.
    #[inline]
    fn memory_of(&self, reserved: &Reserved) -> &M {
        match (reserved, &self.reuse) {
            (Reserved::Reused(_), Some((_, memory))) => memory,
            _ => &self.memory,
        }
    }

    /// Returns where a payload of `len` bytes goes, where there is space for it.
    #[inline]
    fn reserve(&mut self, len: usize, is_piece: bool) -> Option<Reserved> {
        let mut reuses = false;
        if len >= M::REUSED
            && let Some((reuse, _)) = &self.reuse
        {
            reuses = self.tries_reuse(reuse, len, is_piece);
            // What a short one answers lay in the payload ring unless the peer tries it, or has found it to be faster.
            let answers = || len < M::ROOMY && self.reuses.is_none() && reuse.answers();
            if let Some(held) = reuse.find(len)
                && (reuses || answers())
            {
                return Some(Reserved::Reused(held));
            }
        }
        let (start, next) = self.payload.advance(len, M::PAYLOAD);
        let has_space = |this: &Self| this.payload.has_space(next);
        // A ring that both sides have in the nearest cache is faster than a room, as long as it has space, where nothing goes back and forth.
        if len < M::ROOMY && !reuses {
            if len >= M::LONG && !has_space(self) {
                self.refresh_payload();
            }
            if has_space(self) {
                return Some(Reserved::Ring(start, next));
            }
        }
        if (len >= M::LONG || reuses) && self.room.is_open() {
            self.go_back();
            let mut spot = self.room.spot(len, &M::ROOMS);
            if spot.is_none() {
                self.refresh();
                spot = self.room.spot(len, &M::ROOMS);
            }
            // One that was taken back just now has left its messages to the payload ring.
            if spot.is_some() || (self.room.is_open() && !self.is_owed()) {
                return spot.map(Reserved::Room);
            }
        }
        if !has_space(self) {
            self.refresh_payload();
        }
        has_space(self).then_some(Reserved::Ring(start, next))
    }

    /// Goes back in the room behind what came with answers.
    #[inline]
    fn go_back(&mut self) {
        let returned = self
            .reuse
            .as_ref()
            .and_then(|(reuse, _)| reuse.take_returned());
        if let Some((end, bytes)) = returned {
            self.room.go_back(end, bytes);
        }
    }

    /// Whether the consumer is to be shown by a message that this side has read its answers.
    fn is_owed(&self) -> bool {
        self.reuse
            .as_ref()
            .is_some_and(|(reuse, _)| reuse.is_owed())
    }

    /// What was reserved is written, for the message in slot `index`.
    #[inline]
    fn take(&mut self, index: usize, reserved: Reserved) {
        let reuse = self.reuse.as_ref().map(|(reuse, _)| reuse);
        if let Some(reuse) = reuse {
            reuse.count_sent();
        }
        let word = match reserved {
            Reserved::Ring(_, next) => {
                self.payload.go_on(next);
                if let Some(reuse) = reuse {
                    reuse.tells();
                }
                return;
            }
            Reserved::Room(spot) => {
                self.room.take(spot);
                u64::from(spot.position)
            }
            Reserved::Reused(held) => {
                if let Some(reuse) = reuse {
                    reuse.take(held, self.tail.wrapping_add(1));
                }
                held.pack()
            }
        };
        self.memory.write(Place::Inline(index), &word.to_le_bytes());
    }

    #[cold]
    fn has_slot(&mut self, limit: u32) -> bool {
        self.refresh();
        self.tail.wrapping_sub(self.consumed) < limit
    }

    /// Reads the credits.
    fn refresh(&mut self) {
        let credit = self.memory.credit().load(Acquire);
        self.consumed = credit as u32;
        self.payload.note_consumed((credit >> 32) as u32);
        self.look_at_room();
    }

    /// Reads the credits for a payload that finds no space, which is so where the ring is not taken, too.
    fn refresh_payload(&mut self) {
        self.payload.take(self.memory.payload_state(), M::PAYLOAD);
        self.refresh();
    }

    /// Looks what the consumer grants, and leaves the payload ring where nothing has gone there for some time.
    pub(super) fn look_after(&mut self, now: Time) {
        self.look_at_room();
        let position = (self.memory.credit().load(Acquire) >> 32) as u32;
        self.payload
            .look(self.memory.payload_state(), position, now);
    }

    /// Looks what the consumer grants of the room.
    pub(super) fn look_at_room(&mut self) {
        if let Some(words) = self.memory.room() {
            let before = self.room.granted();
            self.room.look(&words);
            let now = self.room.granted();
            if now > before {
                self.memory.map_room(before, now);
            }
        }
    }

    /// The memory of the ring.
    pub(super) const fn memory(&self) -> &M {
        &self.memory
    }

    /// Where it stands in the room.
    #[cfg(all(test, not(loom)))]
    pub(super) const fn room_position(&self) -> u32 {
        self.room.position()
    }

    /// Messages sent.
    pub(super) const fn sent(&self) -> u32 {
        self.tail
    }

    /// Messages sent that the consumer has not credited.
    pub(super) fn uncredited(&self) -> u32 {
        self.tail
            .wrapping_sub(self.memory.credit().load(Relaxed) as u32)
    }

    /// Whether the credits are such that a correct consumer could have written them.
    pub(super) fn credit_is_sane(&self) -> bool {
        let credit = self.memory.credit().load(Relaxed);
        let (state, position) = (self.memory.payload_state(), (credit >> 32) as u32);
        self.tail.wrapping_sub(credit as u32) <= M::SLOTS
            && self.payload.is_sane(state, position, M::PAYLOAD)
            && (self.memory.room()).is_none_or(|words| self.room.is_sane(&words, &M::ROOMS))
    }
}

/// Where a consumer stands, for another one to go on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RingState {
    /// Messages taken.
    pub head: u32,
    /// Position in the payload ring.
    pub position: u32,
    /// Offset in the payload ring.
    pub offset: u32,
}

impl RingState {
    /// Returns the two words that it is in shared memory: head and position, then offset.
    #[inline]
    pub(super) const fn pack(self) -> [u64; 2] {
        let head = self.head as u64 | (self.position as u64) << 32;
        [head, self.offset as u64]
    }

    #[inline]
    pub(super) const fn unpack([head, offset]: [u64; 2]) -> Self {
        Self {
            head: head as u32,
            position: (head >> 32) as u32,
            offset: offset as u32,
        }
    }
}

/// What [`Consumer::pop`] found.
#[derive(Debug)]
pub(super) enum Pop<R> {
    /// Nothing.
    Empty,
    /// A message that was looked at and left where it is.
    Left,
    /// A message, and what became of it.
    Message(R),
    /// What is there is of the other kind: a piece of a transfer where a message was asked for, and the other way round.
    Other,
    /// What no correct producer writes: the upper half of the slot's first word.
    Corrupt(u32),
}

/// Where a payload lies for its consumer.
enum Bulk {
    /// In the slot.
    None,
    /// In the payload ring.
    Ring(usize),
    /// In the room.
    Room(usize),
    /// In the room of the other direction.
    Reused(Held),
    /// Where no correct producer puts it.
    Corrupt,
}

/// The receiving end.
pub(super) struct Consumer<M> {
    memory: M,
    /// Messages taken.
    head: u32,
    payload: Cursor,
    /// Messages credited.
    credited: u32,
    /// Payload credited.
    payload_credited: u32,
    /// Credits were given since somebody last asked.
    gave_credits: bool,
    room: RoomIn,
    /// What is held for the producer of the other direction, and the memory of that one.
    reuse: Option<(Arc<Reuse>, M)>,
}

impl<M: RingMemory> Consumer<M> {
    pub(super) const fn new(memory: M) -> Self {
        Self {
            memory,
            head: 0,
            payload: Cursor::START,
            credited: 0,
            payload_credited: 0,
            gave_credits: false,
            room: RoomIn::NEW,
            reuse: None,
        }
    }

    /// Holds what it has read for the producer of the other direction, by `reuse`, and looks for answers in `memory`, where that one writes.
    pub(super) fn reuse(&mut self, reuse: Arc<Reuse>, memory: M) {
        self.reuse = Some((reuse, memory));
    }

    /// The memory of the ring.
    pub(super) const fn memory(&self) -> &M {
        &self.memory
    }

    /// Goes on where another consumer of the same ring stood. Offsets out of range, which only a
    /// broken peer leaves, are taken for the ring's start.
    pub(super) fn resume(&mut self, state: RingState) {
        let credit = self.memory.credit().load(Acquire);
        self.head = state.head;
        self.payload = Cursor {
            position: state.position,
            offset: if state.offset <= M::PAYLOAD && state.offset.is_multiple_of(64) {
                state.offset
            } else {
                0
            },
        };
        self.credited = credit as u32;
        self.payload_credited = (credit >> 32) as u32;
    }

    /// Where this consumer stands.
    pub(super) const fn state(&self) -> RingState {
        RingState {
            head: self.head,
            position: self.payload.position,
            offset: self.payload.offset,
        }
    }

    /// Where this consumer will stand once it has taken the next message. Right only where there
    /// is one that is in order.
    pub(super) fn state_after(&self) -> RingState {
        let len = (self.first_word() >> 48) as usize;
        let payload = if len <= super::layout::INLINE {
            self.payload
        } else {
            self.payload.advance(len, M::PAYLOAD).1
        };
        RingState {
            head: self.head.wrapping_add(1),
            position: payload.position,
            offset: payload.offset,
        }
    }

    /// Whether a message is there.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.first_word() as u32 == self.head.wrapping_add(1)
    }

    /// Takes the next message, which `look` sees.
    #[inline]
    pub(super) fn pop<R>(&mut self, look: impl FnOnce(AmHeader, Payload<'_>) -> R) -> Pop<R> {
        self.pop_if(|header, payload| Some(look(header, payload)))
    }

    /// The same; where `look` returns `None` the message stays.
    #[inline(always)]
    pub(super) fn pop_if<R>(
        &mut self,
        look: impl FnOnce(AmHeader, Payload<'_>) -> Option<R>,
    ) -> Pop<R> {
        self.pop_kind::<KIND_MESSAGE, R>(look)
    }

    /// Takes the next slot where it is a piece of a transfer, which `look` sees.
    pub(super) fn pop_piece<R>(&mut self, look: impl FnOnce(AmHeader, Payload<'_>) -> R) -> Pop<R> {
        self.pop_kind::<KIND_PIECE, R>(|header, payload| Some(look(header, payload)))
    }

    #[inline(always)]
    fn pop_kind<const KIND: u16, R>(
        &mut self,
        look: impl FnOnce(AmHeader, Payload<'_>) -> Option<R>,
    ) -> Pop<R> {
        let first = self.first_word();
        let next = self.head.wrapping_add(1);
        if first as u32 != next {
            return Pop::Empty;
        }
        let (kind, len) = ((first >> 32) as u16, (first >> 48) as usize);
        if len > M::MAX_SEND as usize || (kind != KIND && !self.is_in_room::<KIND>(kind, len)) {
            let other = if KIND == KIND_PIECE {
                KIND_MESSAGE
            } else {
                KIND_PIECE
            };
            return match kind & 0xff == other {
                true => Pop::Other,
                false => Pop::Corrupt((first >> 32) as u32),
            };
        }
        let index = self.index();
        // Where messages come in a stream, the next lines are fetched while this one is looked at.
        self.memory
            .will_read((next.wrapping_add(BEHIND) & (M::SLOTS - 1)) as usize);
        let slot = self.memory.slot(index);
        let header = AmHeader([slot[1].load(Relaxed), slot[2].load(Relaxed)]);
        let before = self.payload;
        let bulk = if len <= super::layout::INLINE {
            Bulk::None
        } else {
            self.take_bulk(len, Size::of_mark(kind), index)
        };
        let (memory, place) = match (&bulk, &self.reuse) {
            (Bulk::None, _) => (&self.memory, Place::Inline(index)),
            (Bulk::Ring(start), _) => (&self.memory, Place::Bulk(*start)),
            (Bulk::Room(start), _) => (&self.memory, Place::Room(*start)),
            (Bulk::Reused(held), Some((_, memory))) => (memory, Place::Room(held.offset as usize)),
            (Bulk::Reused(_), None) | (Bulk::Corrupt, _) => {
                return Pop::Corrupt((first >> 32) as u32);
            }
        };
        let answer = memory.read(place, len, |payload| look(header, payload));
        let Some(answer) = answer else {
            self.payload = before;
            if matches!(bulk, Bulk::Room(_)) {
                self.room.read_again();
            }
            return Pop::Left;
        };
        self.head = next;
        if (len > super::layout::INLINE && self.owes_payload(&bulk))
            || next.wrapping_sub(self.credited) >= M::SLOTS / 4
        {
            self.publish();
        }
        Pop::Message(answer)
    }

    /// Whether so much payload was consumed that the producer is to know, after one that lay there.
    #[inline(never)]
    fn owes_payload(&mut self, bulk: &Bulk) -> bool {
        if let Some((reuse, memory)) = &self.reuse
            && reuse.count_received()
        {
            memory.note_answer();
        }
        match (bulk, &self.reuse) {
            (Bulk::Room(_), Some((reuse, _))) => self.room.show_held(reuse),
            (Bulk::Reused(held), Some((reuse, _))) => {
                reuse.give_back(*held);
                // The producer waits for no slots; whoever holds its memory looks for this.
                let gave_credits = self.gave_credits;
                self.publish();
                self.gave_credits = gave_credits;
                return false;
            }
            _ => {}
        }
        self.note_read();
        self.payload.position.wrapping_sub(self.payload_credited) >= M::PAYLOAD / 4
            || self.room.owes(&M::ROOMS)
    }

    /// Takes note of answers that the peer has read, by its credits for what this rank sent.
    fn note_read(&mut self) {
        if let Some((reuse, memory)) = &self.reuse {
            self.room.note_reused(reuse);
            if self.room.has_unread() && reuse.is_read(memory.credit().load(Acquire) as u32) {
                self.room.note_read();
            }
        }
    }

    /// Whether a slot of kind `KIND` has a payload of `len` bytes in the room, which is granted.
    #[inline(never)]
    fn is_in_room<const KIND: u16>(&self, kind: u16, len: usize) -> bool {
        let is_kind = kind & 0xff == KIND;
        let size = Size::of_mark(kind);
        let is_known = match size {
            Size::REUSED => self.reuse.is_some(),
            size => self.room.allows(size),
        };
        is_kind && len > super::layout::INLINE && is_known
    }

    /// Takes a long payload: returns where it lies. Out of line, as above.
    #[inline(never)]
    fn take_bulk(&mut self, len: usize, size: Size, index: usize) -> Bulk {
        if size != Size::NONE {
            let word = self.memory.read(Place::Inline(index), 8, |bytes| {
                let mut word = [0; 8];
                bytes.copy_to_slice(&mut word);
                u64::from_le_bytes(word)
            });
            if size == Size::REUSED {
                let room = self.reuse.as_ref().and_then(|(_, memory)| memory.room());
                let room = room.map_or(0, |words| words.most.len(&M::ROOMS));
                return Held::unpack(word, len, room).map_or(Bulk::Corrupt, Bulk::Reused);
            }
            if let Some((reuse, _)) = &self.reuse {
                self.room.note_reused(reuse);
            }
            let start = self.room.take(len, size, word as u32, &M::ROOMS);
            self.count_for_room(len);
            return start.map_or(Bulk::Corrupt, Bulk::Room);
        }
        if len >= M::REUSED {
            self.count_for_room(len);
        }
        let (start, next) = self.payload.advance(len, M::PAYLOAD);
        self.payload = next;
        Bulk::Ring(start)
    }

    /// Counts a payload that lay in a room, or was long enough for one.
    fn count_for_room(&mut self, len: usize) {
        let answers = || {
            self.reuse
                .as_ref()
                .is_some_and(|(reuse, _)| reuse.has_sent())
        };
        if len >= M::LONG {
            self.room.count_long(len);
        } else if answers() {
            self.room.count_short(len);
        }
    }

    /// Bytes of payloads that were long enough for a room, in all.
    pub(super) const fn long_bytes(&self) -> u64 {
        self.room.long
    }

    /// Lets the producer use a room of `size`, which is not below what it has, nor beyond the memory that there is for one.
    pub(super) fn grow_room(&mut self, size: Size) {
        if let Some(words) = self.memory.room() {
            self.memory.map_room(self.room.granted(), size);
            self.room.grow(size, &words);
        }
    }

    /// Takes the room back; see [`leaves_room`](Self::leaves_room).
    pub(super) fn withdraw_room(&mut self) {
        if let Some((reuse, _)) = &self.reuse {
            self.room.note_reused(reuse);
        }
        if let Some(words) = self.memory.room() {
            self.room.withdraw(&words);
        }
        if let Some((reuse, _)) = &self.reuse {
            self.room.show_held(reuse);
        }
    }

    /// Whether the producer has left the room that was taken back, and nothing of it is unread: what lies there is nobody's
    /// then, and it may be granted again.
    pub(super) fn leaves_room(&mut self) -> bool {
        let is_left = (self.memory.room()).is_none_or(|words| self.room.is_left(&words));
        // In this order: what the producer sent before it left is visible by now.
        if !is_left || self.is_ready() {
            return false;
        }
        // It may have left while an answer there was on its way to it.
        self.note_read();
        if self.room.has_unread() {
            return false;
        }
        if let Some(words) = self.memory.room() {
            self.room.clear(&words);
        }
        if let Some((reuse, _)) = &self.reuse {
            self.room.show_held(reuse);
        }
        true
    }

    /// Has `free` give the memory of the payload ring back to the system where the producer has left it; returns whether it did.
    ///
    /// # Errors
    /// The state of the memory, where no correct producer leaves it.
    pub(super) fn free_payload(&self, free: impl FnOnce()) -> Result<bool, u64> {
        payload::free_where_left(self.memory.payload_state(), free)
    }

    /// Gives the credits back that are still held, for a producer that looks whether everything
    /// has been taken.
    pub(super) fn settle(&mut self) {
        self.note_read();
        if self.head != self.credited || self.room.is_behind() {
            self.publish();
        }
    }

    /// Whether credits were given since the last call: the producer may wait for them.
    #[inline]
    pub(super) const fn has_given_credits(&mut self) -> bool {
        let given = self.gave_credits;
        if given {
            self.gave_credits = false;
        }
        given
    }

    /// Whether the next slot holds what a correct producer leaves there: the next stamp, or that
    /// of the lap before.
    pub(super) fn stamp_is_sane(&self) -> bool {
        let stamp = self.first_word() as u32;
        let next = self.head.wrapping_add(1);
        let before = next.wrapping_sub(M::SLOTS);
        stamp == next || stamp == before || (stamp == 0 && self.head < M::SLOTS)
    }

    #[inline]
    fn publish(&mut self) {
        self.credited = self.head;
        self.payload_credited = self.payload.position;
        self.gave_credits = true;
        if let Some(words) = self.memory.room() {
            self.room.give_credit(&words);
        }
        self.memory.credit().store(
            u64::from(self.head) | u64::from(self.payload.position) << 32,
            Release,
        );
    }

    #[inline]
    fn index(&self) -> usize {
        (self.head & (M::SLOTS - 1)) as usize
    }

    #[inline]
    fn first_word(&self) -> u64 {
        self.memory.slot(self.index())[0].load(Acquire)
    }
}

/// Bytes of the pieces in which data is packed into the payload ring: some lines, which stay in the nearest cache. Less in tests,
/// whose messages are short.
const PIECE: usize = if cfg!(test) { 48 } else { 512 };

/// How many slots ahead of its next message a producer takes lines over.
const AHEAD: u32 = 8;

/// How many slots ahead of its next message a consumer fetches lines.
const BEHIND: u32 = 8;

/// A message of the layer above.
const KIND_MESSAGE: u16 = 1;
/// A piece of a transfer that goes through the ring.
const KIND_PIECE: u16 = 2;
