//! The room of a pair: a second payload ring, for long messages, which its consumer grants, lets grow, and takes back.
//!
//! ```text
//!   consumer                                     producer
//!   grant: epoch 0, 256 KiB          ------->    writes long payloads there; each slot says: 256 KiB
//!   grant: epoch 0, 1 MiB            ------->    at its end it goes on behind it; each slot says: 1 MiB
//!   grant: epoch 1, none             ------->    writes no more there
//!   empties the ring, frees the room <-------    left: epoch 1
//!   grant: epoch 1, 256 KiB          ------->    begins at the room's start
//! ```
//!
//! The room grows where the producer would go back to its start: the next payload lies behind the old end, once the *smaller*
//! ring has space for it. What is unread lies before the old end then, in its order, so that nothing of it is overwritten, and both sides
//! compute the same offsets from the size that each slot says.
//!
//! Memory of the room that its consumer has read may hold an answer before it goes back to its producer (`reuse`).
//!
//! Of what the other side writes, a grant beyond the memory that is mapped is not followed, a credit that promises more than there
//! is means "full", and a slot of a size that was not granted, or of a position that its producer cannot have, is corrupt.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use std::time::Duration;

use tagwire_base::Time;

use super::reuse::{Reuse, lines};
use crate::word::Word;

/// A room goes back once nothing long has come for so long, and a payload ring once nothing has. Who waits looks every 100 ms, so that two
/// idle ranks have given them back soon after.
pub(super) const IDLE: Duration = Duration::from_secs(4);

/// Of a room one part of so many is held for answers.
const HELD: u32 = 4;

/// So many bytes of short payloads are worth as much room as one of long ones.
const SHORT: u64 = 16;

/// Sizes of a room, with none.
pub(super) const SIZES: usize = 4;

/// Bytes of the rooms of each size, in ascending order; 0 for no room.
pub(super) type Table = [u32; SIZES];

/// How large a room is: 0 for none, else larger by and by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Size(pub u8);

impl Size {
    pub(super) const NONE: Self = Self(0);

    /// Bytes of it; 0 for one that there is not.
    #[inline]
    pub(super) fn len(self, table: &Table) -> u32 {
        table.get(usize::from(self.0)).copied().unwrap_or(0)
    }

    /// The next larger one.
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// In a slot, that the payload lies in the room of the other direction, in memory that is reused.
    pub(super) const REUSED: Self = Self(0x80);

    /// What a slot says of it beside its kind.
    #[inline]
    pub(super) const fn mark(self) -> u16 {
        (self.0 as u16) << 8
    }

    #[inline]
    pub(super) const fn of_mark(kind: u16) -> Self {
        Self((kind >> 8) as u8)
    }
}

/// What the consumer lets the producer use. Within an epoch it grows only; with the next epoch it is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Grant {
    pub epoch: u64,
    pub size: Size,
}

impl Grant {
    const NONE: Self = Self {
        epoch: 0,
        size: Size::NONE,
    };

    /// The word that it is in shared memory: `size u8 | epoch`.
    const fn pack(self) -> u64 {
        self.size.0 as u64 | self.epoch << 8
    }

    const fn unpack(word: u64) -> Self {
        Self {
            epoch: word >> 8,
            size: Size(word as u8),
        }
    }

    /// None, after this one.
    const fn taken_back(self) -> Self {
        Self {
            epoch: self.epoch.wrapping_add(1) & (u64::MAX >> 8),
            size: Size::NONE,
        }
    }
}

/// The words by which both sides agree on the room.
pub(super) struct Words<'a, W> {
    /// What is granted, by the consumer.
    pub grant: &'a W,
    /// The position up to which the room is consumed, by the consumer.
    pub credit: &'a W,
    /// The epoch of the last grant for which the producer has left the room, by the producer.
    pub left: &'a W,
    /// The largest size that there is memory for.
    pub most: Size,
}

/// A position in a payload ring.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    /// Bytes since the beginning, gaps included; wraps around.
    pub position: u32,
    /// Offset in the ring.
    pub offset: u32,
}

impl Cursor {
    /// The beginning.
    pub(super) const START: Self = Self {
        position: 0,
        offset: 0,
    };

    /// Where a payload of `len` bytes goes in a ring of `ring` bytes, and the position behind it.
    #[inline]
    pub(super) const fn advance(self, len: usize, ring: u32) -> (usize, Self) {
        let bytes = lines(len);
        let (start, gap) = if self.offset + bytes > ring {
            (0, ring.saturating_sub(self.offset))
        } else {
            (self.offset, 0)
        };
        let next = Self {
            position: self.position.wrapping_add(gap + bytes),
            offset: start + bytes,
        };
        (start as usize, next)
    }
}

/// The room, as its producer sees it.
#[derive(Debug)]
pub(super) struct RoomOut {
    grant: Grant,
    /// The size that is used so far.
    size: Size,
    cursor: Cursor,
    /// Position up to which it is consumed, as far as known.
    consumed: u32,
    /// Position up to which this side has read the memory itself: the lines are in its caches.
    owned: u32,
}

/// A place in the room.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub offset: usize,
    /// Where the producer stands before.
    pub position: u32,
    next: Cursor,
    /// The size that the room has then.
    pub size: Size,
    /// This side has read all of it last.
    pub is_owned: bool,
}

impl RoomOut {
    pub(super) const NEW: Self = Self {
        grant: Grant::NONE,
        size: Size::NONE,
        cursor: Cursor::START,
        consumed: 0,
        owned: 0,
    };

    /// Whether there is one.
    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        self.size.0 != 0
    }

    /// The size that it may have.
    pub(super) const fn granted(&self) -> Size {
        self.grant.size
    }

    /// Where its producer stands.
    #[cfg(all(test, not(loom)))]
    pub(super) const fn position(&self) -> u32 {
        self.cursor.position
    }

    /// Returns where a payload of `len` bytes goes, where there is space for it as far as is known.
    pub(super) fn spot(&self, len: usize, table: &Table) -> Option<Spot> {
        let ring = self.size.len(table);
        let mut size = self.size;
        let (mut offset, mut next) = self.cursor.advance(len, ring);
        if next.offset < self.cursor.offset && self.grant.size > size {
            size = self.grant.size;
            (offset, next) = self.cursor.advance(len, size.len(table));
        }
        let space = next.position.wrapping_sub(self.consumed) <= ring;
        (space && self.is_open()).then_some(Spot {
            offset,
            position: self.cursor.position,
            next,
            size,
            is_owned: self.owned.wrapping_sub(next.position) <= ring,
        })
    }

    /// The `bytes` before position `end` came back with an answer. Where nothing was written behind them they are written next.
    #[inline(never)]
    pub(super) fn go_back(&mut self, end: u32, bytes: u32) {
        let Cursor { position, offset } = self.cursor;
        let unread = position.wrapping_sub(self.consumed);
        if !self.is_open() || end != position || bytes > offset || bytes > unread {
            return;
        }
        if self.owned.wrapping_sub(position) > unread {
            self.owned = position;
        }
        self.cursor = Cursor {
            position: position.wrapping_sub(bytes),
            offset: offset - bytes,
        };
    }

    /// A payload was written there.
    #[inline]
    pub(super) const fn take(&mut self, spot: Spot) {
        self.cursor = spot.next;
        self.size = spot.size;
    }

    /// Looks what is granted and consumed. A room that was taken back is left: nothing is written there before another grant.
    pub(super) fn look(&mut self, words: &Words<'_, impl Word<u64>>) {
        let grant = Grant::unpack(words.grant.load(Acquire));
        if grant.size > words.most {
            return;
        }
        if grant.epoch != self.grant.epoch {
            *self = Self::NEW;
            words.left.store(grant.epoch, Release);
        }
        self.grant = grant;
        if self.is_open() {
            self.consumed = words.credit.load(Acquire) as u32;
        } else {
            self.size = grant.size;
        }
    }

    /// Whether grant and credit are such that a correct consumer could have written them.
    pub(super) fn is_sane(&self, words: &Words<'_, impl Word<u64>>, table: &Table) -> bool {
        let grant = Grant::unpack(words.grant.load(Relaxed));
        let credit = words.credit.load(Relaxed) as u32;
        let unread = self.cursor.position.wrapping_sub(credit);
        // One that was left counts from its beginning.
        let counts = self.is_open() && grant.epoch == self.grant.epoch;
        grant.size <= words.most && (!counts || unread <= self.size.len(table))
    }
}

/// The room, as its consumer sees it.
#[derive(Debug)]
pub(super) struct RoomIn {
    grant: Grant,
    /// The size that the producer has used.
    size: Size,
    /// Where the producer stands if it has gone back behind every answer.
    cursor: Cursor,
    /// Where it stands if it has gone back behind none.
    top: Cursor,
    /// Bytes before the cursor that are held for answers.
    held: u32,
    /// The lowest position of answers that the producer may not have read, where there are any.
    unread: Option<u32>,
    credited: u32,
    /// It is taken back: nothing is held any more.
    is_withdrawn: bool,
    /// As it was before the last payload.
    before: Standing,
    /// Bytes of payloads that were long enough for a room, wherever they lay, and a part of those of shorter answers.
    pub long: u64,
}

/// What a payload changes.
#[derive(Debug, Clone, Copy)]
struct Standing {
    size: Size,
    cursor: Cursor,
    top: Cursor,
    held: u32,
}

impl Standing {
    const NEW: Self = Self {
        size: Size::NONE,
        cursor: Cursor::START,
        top: Cursor::START,
        held: 0,
    };
}

impl RoomIn {
    pub(super) const NEW: Self = Self {
        grant: Grant::NONE,
        size: Size::NONE,
        cursor: Cursor::START,
        top: Cursor::START,
        held: 0,
        unread: None,
        credited: 0,
        is_withdrawn: false,
        before: Standing::NEW,
        long: 0,
    };

    /// The size that it may have.
    pub(super) const fn granted(&self) -> Size {
        self.grant.size
    }

    /// Counts a long payload, wherever it lay.
    pub(super) const fn count_long(&mut self, len: usize) {
        self.long += len as u64;
    }

    /// Counts a short one that answers another. Many of them are worth a small room, and keep it.
    pub(super) fn count_short(&mut self, len: usize) {
        self.long += match self.grant.size {
            Size::NONE => len as u64 / SHORT,
            _ => 1,
        };
    }

    /// Whether the producer may say that a payload lies in a room of `size`.
    pub(super) fn allows(&self, size: Size) -> bool {
        size != Size::NONE && size >= self.size && size <= self.grant.size
    }

    /// Returns the offset of the next payload, of `len` bytes, in a room of `size`, whose producer stood at the position `at`, and goes on
    /// behind it. `None`: it cannot stand there.
    pub(super) fn take(&mut self, len: usize, size: Size, at: u32, table: &Table) -> Option<usize> {
        let back = self.top.position.wrapping_sub(at);
        let most = self.top.position.wrapping_sub(self.cursor.position);
        let from = Cursor {
            position: at,
            offset: self.top.offset.checked_sub(back)?,
        };
        if back > most {
            return None;
        }
        self.before = Standing {
            size: self.size,
            cursor: self.cursor,
            top: self.top,
            held: self.held,
        };
        let ring = size.len(table);
        let (start, next) = from.advance(len, ring);
        let goes_on = back == most && start == from.offset as usize;
        if back == most && most != 0 {
            // It went back behind all answers: it has read them.
            self.unread = None;
        }
        let held = if goes_on { self.held } else { 0 };
        self.held = match self.is_withdrawn {
            true => 0,
            false => (held + lines(len)).min(ring / HELD),
        };
        self.cursor = next;
        self.top = next;
        self.size = size;
        Some(start)
    }

    /// The last payload is read once more.
    pub(super) const fn read_again(&mut self) {
        Standing {
            size: self.size,
            cursor: self.cursor,
            top: self.top,
            held: self.held,
        } = self.before;
    }

    /// Shows the producer of the same rank what is held.
    pub(super) fn show_held(&self, reuse: &Reuse) {
        reuse.hold(self.cursor, self.held);
    }

    /// Takes note of what the producer of the same rank has reused.
    #[inline]
    pub(super) fn note_reused(&mut self, reuse: &Reuse) {
        let bytes = reuse.take_reused();
        if bytes != 0 {
            self.held = self.held.saturating_sub(bytes);
            self.cursor = Cursor {
                position: self.cursor.position.wrapping_sub(bytes),
                offset: self.cursor.offset.saturating_sub(bytes),
            };
            let lowest = self.cursor.position;
            let is_lower = |unread: &u32| lowest.wrapping_sub(*unread) as i32 >= 0;
            self.unread = self.unread.filter(is_lower).or(Some(lowest));
        }
    }

    /// Whether answers may be unread.
    pub(super) const fn has_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// All answers were read.
    pub(super) const fn note_read(&mut self) {
        self.unread = None;
    }

    /// The position up to which the producer may write again.
    #[inline]
    fn free(&self) -> u32 {
        let free = self.cursor.position.wrapping_sub(self.held);
        match self.unread {
            Some(unread) if (free.wrapping_sub(unread) as i32) > 0 => unread,
            _ => free,
        }
    }

    /// Whether so much was consumed that the producer is to know.
    #[inline]
    pub(super) fn owes(&self, table: &Table) -> bool {
        let owed = self.free().wrapping_sub(self.credited) as i32;
        owed > 0 && owed as u32 >= self.size.len(table) / 4
    }

    /// Whether anything was consumed that was not credited.
    pub(super) fn is_behind(&self) -> bool {
        self.free().wrapping_sub(self.credited) as i32 > 0
    }

    /// Credits what was consumed.
    pub(super) fn give_credit(&mut self, words: &Words<'_, impl Word<u64>>) {
        if self.is_behind() {
            self.credited = self.free();
            words.credit.store(u64::from(self.credited), Release);
        }
    }

    /// Lets the producer use a room of `size`, which is not below what it has.
    pub(super) fn grow(&mut self, size: Size, words: &Words<'_, impl Word<u64>>) {
        self.grant.size = size;
        words.grant.store(self.grant.pack(), Release);
    }

    /// Takes the room back. What lies there, and what comes until the producer has noticed, is still taken.
    pub(super) fn withdraw(&mut self, words: &Words<'_, impl Word<u64>>) {
        self.is_withdrawn = true;
        self.held = 0;
        words.grant.store(self.grant.taken_back().pack(), Release);
    }

    /// Whether the producer has left a room that was taken back. What it wrote there is in the slots by now.
    pub(super) fn is_left(&self, words: &Words<'_, impl Word<u64>>) -> bool {
        words.left.load(Acquire) == self.grant.taken_back().epoch
    }

    /// Begins anew after the room was left and emptied.
    pub(super) fn clear(&mut self, words: &Words<'_, impl Word<u64>>) {
        words.credit.store(0, Relaxed);
        *self = Self {
            grant: self.grant.taken_back(),
            long: self.long,
            ..Self::NEW
        };
    }
}

/// A sender, as the owner of the memory decides on its room.
#[derive(Debug, Default)]
pub(super) struct Tenant {
    size: Size,
    /// The long bytes that had come when it was decided last.
    since: u64,
    /// Those that had come at the last look, and when more had come.
    seen: u64,
    active: Time,
    /// The room is taken back, and the sender has not left it yet.
    withdrawn: bool,
}

impl Tenant {
    /// The room that it has.
    pub(super) const fn size(&self) -> Size {
        self.size
    }

    /// Whether the room is taken back, and not left yet.
    pub(super) const fn is_withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// Whether it would have filled a ring of `len` bytes since the last time that this was so, when `came` long bytes have come in all.
    pub(super) const fn has_filled(&mut self, came: u64, len: u32) -> bool {
        let has = !self.withdrawn && came - self.since >= len as u64;
        if has {
            self.since = came;
        }
        has
    }

    /// It has a room of `size` from now on.
    pub(super) const fn grow(&mut self, size: Size) {
        self.size = size;
    }

    /// Whether its room is to be taken back now, when `came` long bytes have come in all.
    pub(super) fn falls_idle(&mut self, came: u64, now: Time) -> bool {
        if self.size == Size::NONE || self.withdrawn {
            return false;
        }
        if self.seen != came {
            (self.seen, self.active) = (came, now);
        }
        self.withdrawn = now.since(self.active) >= IDLE;
        if self.withdrawn {
            // What came before the silence is worth no new room.
            self.since = came;
        }
        self.withdrawn
    }

    /// It has no room any more; returns the size of the one that it had.
    pub(super) const fn leave(&mut self) -> Size {
        let size = self.size;
        self.size = Size::NONE;
        self.withdrawn = false;
        size
    }
}
