//! Memory that goes back and forth between two ranks: a rank answers in what it has read.
//!
//! ```text
//!   the room of A's messages to B
//!     A writes a payload at p               ------->   B reads it, holds the memory, and gives no credit for it
//!     A reads the answer at p, goes back    <-------   B writes its answer at p; the slot in B's ring says so
//!     A writes the next payload at p        ------->   ...
//! ```
//!
//! Who reads a line that another processor wrote has it in its own caches from then on, and writes it as fast as memory of its own. With a
//! room for each direction the writer would have to take each line over from the reader first. On an EPYC 64 KiB between two cores of one
//! cache take 2.0 us through memory that goes back and forth, and 2.9 through two rooms (docs/performance.md).
//!
//! **Positions travel.** B reuses what it read last, from its end on, so that A can go back: where A has written nothing behind it, its next
//! payload goes where the answer was. Else it goes on as before. Each payload in a room says at which position its producer stood.
//!
//! **Answers.** Where trials decide, only the first payloads after one of the peer's go there. Short ones lie in the payload ring otherwise, which both
//! sides have in their nearest caches; once a trial finds it faster, who begins writes them into the room, and whoever answers follows.
//!
//! **Credits.** What B holds is at most a quarter of the room, so that A never waits for an answer. No credit goes beyond an answer that A
//! may not have read yet. B sees that it has by the position of A's next payload, or by the credits for B's messages, which A gives at once.
//! Where A finds no space in its room after such an answer, its next payload goes through the payload ring: B sees both then.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::room::Cursor;

/// What the two ends of one rank towards a peer, the consumer of the peer's messages and the producer of those to it, tell each other.
/// Both are used by one thread at a time.
#[derive(Debug, Default)]
pub(super) struct Reuse {
    /// Where the memory ends that the consumer holds: the position, and the offset in the upper half.
    end: AtomicU64,
    /// Bytes that it holds there.
    held: AtomicU32,
    /// Bytes from the end on that the producer has reused since the consumer asked.
    reused: AtomicU32,
    /// The stamp of the last message in such memory.
    stamp: AtomicU32,
    /// Memory of the producer's room that came back with answers: the position of its end, and its bytes in the upper half.
    returned: AtomicU64,
    /// The peer may hold credits back since it does not know that an answer was read.
    is_owed: AtomicBool,
    /// Payloads that were sent since one was received.
    row: AtomicU32,
}

/// So many payloads are an answer at most. What is sent in longer rows does not go back and forth: its writer would be faster, and who reads it
/// slower, so that trials of the writer's time are misled.
const ROW: u32 = 4;

/// A place in memory that the consumer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub position: u32,
    pub offset: u32,
    bytes: u32,
}

impl Held {
    /// The word that a slot says of it.
    pub(super) const fn pack(self) -> u64 {
        self.position as u64 | (self.offset as u64) << 32
    }

    /// What a slot says of a payload of `len` bytes in a room of `room` bytes; `None` where it lies outside.
    pub(super) fn unpack(word: u64, len: usize, room: u32) -> Option<Self> {
        let (position, offset) = (word as u32, (word >> 32) as u32);
        let bytes = lines(len);
        let end = offset.checked_add(bytes).filter(|end| *end <= room);
        (end.is_some() && offset.is_multiple_of(64)).then_some(Self {
            position,
            offset,
            bytes,
        })
    }
}

/// Returns the bytes of the whole lines that a payload takes.
pub(super) const fn lines(len: usize) -> u32 {
    (len as u32).next_multiple_of(64)
}

impl Reuse {
    /// The consumer holds `held` bytes before `end`.
    pub(super) fn hold(&self, end: Cursor, held: u32) {
        let end = u64::from(end.position) | u64::from(end.offset) << 32;
        self.end.store(end, Relaxed);
        self.held.store(held, Relaxed);
    }

    /// A payload was sent.
    #[inline]
    pub(super) fn count_sent(&self) {
        let row = self.row.load(Relaxed);
        self.row.store(row.saturating_add(1), Relaxed);
    }

    /// A payload was received. Returns whether it may answer what was sent before it.
    #[inline]
    pub(super) fn count_received(&self) -> bool {
        let row = self.row.load(Relaxed);
        self.row.store(0, Relaxed);
        (1..=ROW).contains(&row)
    }

    /// Whether one was sent since the last one was received.
    pub(super) fn has_sent(&self) -> bool {
        self.row.load(Relaxed) != 0
    }

    /// Whether the next payload is part of an answer.
    #[inline]
    pub(super) fn answers(&self) -> bool {
        self.row.load(Relaxed) < ROW
    }

    /// Returns where the producer may write a payload of `len` bytes, where so much is held.
    #[inline]
    pub(super) fn find(&self, len: usize) -> Option<Held> {
        let bytes = lines(len);
        let end = self.end.load(Relaxed);
        (self.held.load(Relaxed) >= bytes).then(|| Held {
            position: (end as u32).wrapping_sub(bytes),
            offset: ((end >> 32) as u32).wrapping_sub(bytes),
            bytes,
        })
    }

    /// The producer has written there, and publishes it with the message `stamp`.
    pub(super) fn take(&self, held: Held, stamp: u32) {
        let left = self.held.load(Relaxed).saturating_sub(held.bytes);
        self.held.store(left, Relaxed);
        self.end.store(held.pack(), Relaxed);
        let reused = self.reused.load(Relaxed);
        self.reused.store(reused + held.bytes, Relaxed);
        self.stamp.store(stamp, Relaxed);
    }

    /// Returns how many bytes the producer has reused since the last call.
    #[inline]
    pub(super) fn take_reused(&self) -> u32 {
        let reused = self.reused.load(Relaxed);
        if reused != 0 {
            self.reused.store(0, Relaxed);
        }
        reused
    }

    /// Whether a peer that has taken so many messages has read all that lay in reused memory.
    pub(super) fn is_read(&self, taken: u32) -> bool {
        taken.wrapping_sub(self.stamp.load(Relaxed)) as i32 >= 0
    }

    /// The consumer has read an answer there, in the room of the producer's.
    pub(super) fn give_back(&self, answer: Held) {
        let returned = self.returned.load(Relaxed);
        let (end, bytes) = (returned as u32, (returned >> 32) as u32);
        let answer_end = answer.position.wrapping_add(answer.bytes);
        // Answers come from the end on.
        let (end, bytes) = match bytes != 0 && end.wrapping_sub(bytes) == answer_end {
            true => (end, bytes.saturating_add(answer.bytes)),
            false => (answer_end, answer.bytes),
        };
        self.returned
            .store(u64::from(end) | u64::from(bytes) << 32, Relaxed);
        self.is_owed.store(true, Relaxed);
    }

    /// Returns what has come back since the last call: the position of its end, and its bytes.
    #[inline]
    pub(super) fn take_returned(&self) -> Option<(u32, u32)> {
        let returned = self.returned.load(Relaxed);
        (returned != 0).then(|| {
            self.returned.store(0, Relaxed);
            (returned as u32, (returned >> 32) as u32)
        })
    }

    /// Whether the peer may hold credits back for an answer that was read.
    pub(super) fn is_owed(&self) -> bool {
        self.is_owed.load(Relaxed)
    }

    /// The peer sees with the next message that it was.
    pub(super) fn tells(&self) {
        self.is_owed.store(false, Relaxed);
    }
}
