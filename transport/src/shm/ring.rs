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
//! A payload of a long message may lie in the room instead, a second payload ring that comes and goes (`room`): the slot says
//! how large it is then, and 0 where the payload is not there.
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

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

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
    /// Stores a payload.
    fn write(&self, place: Place, data: &[u8]);
    /// Stores a piece of a transfer. Pieces go through the ring where both processors share a cache, as trials of the ways find.
    fn write_plain(&self, place: Place, data: &[u8]) {
        self.write(place, data);
    }
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
}

impl Reserved {
    /// The place of the bytes from `offset` on.
    #[inline]
    const fn place(&self, offset: usize) -> Place {
        match self {
            Self::Ring(start, _) => Place::Bulk(*start + offset),
            Self::Room(spot) => Place::Room(spot.offset + offset),
        }
    }

    /// The size of the room that it is in.
    #[inline]
    const fn size(&self) -> Size {
        match self {
            Self::Ring(..) => Size::NONE,
            Self::Room(spot) => spot.size,
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
    payload: Cursor,
    /// Position up to which payload is consumed, as far as known.
    payload_consumed: u32,
    room: RoomOut,
}

impl<M: RingMemory> Producer<M> {
    pub(super) const fn new(memory: M) -> Self {
        Self {
            memory,
            tail: 0,
            consumed: 0,
            payload: Cursor::START,
            payload_consumed: 0,
            room: RoomOut::NEW,
        }
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
        self.payload.position = state.position;
        self.payload_consumed = state.position;
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

    /// Whether a piece of `len` bytes would find space.
    pub(super) fn has_space(&mut self, len: usize) -> bool {
        self.next_slot(Class::Data).is_some()
            && (len <= super::layout::INLINE || self.reserve(len).is_some())
    }

    #[inline(always)]
    fn push_kind(&mut self, mut kind: u16, class: Class, header: AmHeader, data: &[u8]) -> bool {
        let Some(index) = self.next_slot(class) else {
            return false;
        };
        if data.len() <= super::layout::INLINE {
            self.memory.write(Place::Inline(index), data);
        } else {
            let size = match kind {
                KIND_PIECE => self.push_bulk(data, M::write_plain),
                _ => self.push_bulk(data, M::write),
            };
            let Some(size) = size else {
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
            let Some(reserved) = self.reserve(len) else {
                return false;
            };
            // The peer may write to the ring at any time, so that nobody is lent a slice of it.
            let mut piece = [0; PIECE];
            for offset in (0..len).step_by(PIECE) {
                let piece = &mut piece[..PIECE.min(len - offset)];
                fill(offset, piece);
                self.memory.write(reserved.place(offset), piece);
            }
            self.take(reserved);
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
        if let Some(reserved) = self.reserve(len) {
            self.memory.will_write_payload(reserved.place(0), len);
        }
    }

    /// Stores a long payload, and returns the size of the room that it is in, or reports that there is no space. Out of line,
    /// to keep the way of short messages short.
    #[inline(never)]
    fn push_bulk(&mut self, data: &[u8], write: impl FnOnce(&M, Place, &[u8])) -> Option<Size> {
        let reserved = self.reserve(data.len())?;
        write(&self.memory, reserved.place(0), data);
        self.take(reserved);
        Some(reserved.size())
    }

    /// Returns where a payload of `len` bytes goes, where there is space for it.
    #[inline]
    fn reserve(&mut self, len: usize) -> Option<Reserved> {
        let (start, next) = self.payload.advance(len, M::PAYLOAD);
        let has_space =
            |this: &Self| next.position.wrapping_sub(this.payload_consumed) <= M::PAYLOAD;
        // A ring that both sides have in the nearest cache is faster than a room, as long as it has space.
        if len < M::ROOMY {
            if len >= M::LONG && !has_space(self) {
                self.refresh();
            }
            if has_space(self) {
                return Some(Reserved::Ring(start, next));
            }
        }
        if len >= M::LONG && self.room.is_open() {
            let mut spot = self.room.spot(len, &M::ROOMS);
            if spot.is_none() {
                self.refresh();
                spot = self.room.spot(len, &M::ROOMS);
            }
            // One that was taken back just now has left its messages to the payload ring.
            if spot.is_some() || self.room.is_open() {
                return spot.map(Reserved::Room);
            }
        }
        if !has_space(self) {
            self.refresh();
        }
        has_space(self).then_some(Reserved::Ring(start, next))
    }

    /// What was reserved is written.
    #[inline]
    const fn take(&mut self, reserved: Reserved) {
        match reserved {
            Reserved::Ring(_, next) => self.payload = next,
            Reserved::Room(spot) => self.room.take(spot),
        }
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
        self.payload_consumed = (credit >> 32) as u32;
        self.look_at_room();
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
        self.tail.wrapping_sub(credit as u32) <= M::SLOTS
            && self.payload.position.wrapping_sub((credit >> 32) as u32) <= M::PAYLOAD
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
        }
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
        let before = (self.payload, self.room.place());
        let place = if len <= super::layout::INLINE {
            Place::Inline(index)
        } else {
            self.take_bulk(len, Size::of_mark(kind))
        };
        let answer = self
            .memory
            .read(place, len, |payload| look(header, payload));
        let Some(answer) = answer else {
            self.payload = before.0;
            self.room.read_again(before.1);
            return Pop::Left;
        };
        self.head = next;
        if next.wrapping_sub(self.credited) >= M::SLOTS / 4
            || (len > super::layout::INLINE && self.owes_payload())
        {
            self.publish();
        }
        Pop::Message(answer)
    }

    /// Whether so much payload was consumed that the producer is to know.
    #[inline]
    fn owes_payload(&self) -> bool {
        self.payload.position.wrapping_sub(self.payload_credited) >= M::PAYLOAD / 4
            || self.room.owes(&M::ROOMS)
    }

    /// Whether a slot of kind `KIND` has a payload of `len` bytes in the room, which is granted.
    #[inline(never)]
    fn is_in_room<const KIND: u16>(&self, kind: u16, len: usize) -> bool {
        let is_kind = kind & 0xff == KIND;
        is_kind && len > super::layout::INLINE && self.room.allows(Size::of_mark(kind))
    }

    /// The place of a long payload. Out of line, as above.
    #[inline(never)]
    fn take_bulk(&mut self, len: usize, size: Size) -> Place {
        if len >= M::LONG {
            self.room.long += len as u64;
        }
        if size != Size::NONE {
            return Place::Room(self.room.take(len, size, &M::ROOMS));
        }
        let (start, next) = self.payload.advance(len, M::PAYLOAD);
        self.payload = next;
        Place::Bulk(start)
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
    pub(super) fn withdraw_room(&self) {
        if let Some(words) = self.memory.room() {
            self.room.withdraw(&words);
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
        if let Some(words) = self.memory.room() {
            self.room.clear(&words);
        }
        true
    }

    /// Gives the credits back that are still held, for a producer that looks whether everything
    /// has been taken.
    pub(super) fn settle(&mut self) {
        if self.head != self.credited {
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
