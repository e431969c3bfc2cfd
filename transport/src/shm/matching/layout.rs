//! What a rank that matches shares with its senders: the target, behind the pair areas.
//!
//! ```text
//!   0            head          lock | journal | blocks | headers | counts
//!   4096         control       the matching engine's own words
//!   8192         posted        the engine's nodes for receives
//!   ...          unexpected    the engine's nodes for messages
//!   ...          bins          the engine's two tables
//!   ...          receives      what is posted: 128 bytes each
//!   ...          headers       what is unexpected: 64 bytes each
//!   ...          overflow      payload of short unexpected messages, in blocks
//! ```
//!
//! The engine's words are stored so that untouched memory reads as an engine with no tables (see
//! [`Nil32`](super::memory::Nil32)); pages exist once they are touched. Everything behind the
//! head is only written under the lock, but for the words of a receive, which its owner fills
//! before it is posted.

use std::sync::atomic::{AtomicU32, AtomicU64};

use tagwire_matching::bins::LINKS;
use tagwire_matching::storage::{Control, Node};

use crate::shm::matching::memory::Arena;

/// Receives that may be posted at once.
pub(in crate::shm) const RECEIVES: usize = 128 * 1024;
/// Words of the engine's first table; the second has four times as many.
pub(super) const BINS: usize = 64 * 1024;
/// Bytes of an overflow block's unit.
pub(super) const UNIT: usize = 64;
/// Sizes of blocks: 64 bytes, doubled so often less one.
pub(super) const CLASSES: usize = 8;
/// Messages that a sender may send before it was allowed any. Their room is its own for good: a
/// sender that has fewer kept or allowed gets them whatever others have filled.
pub(in crate::shm) const INITIAL: u32 = 8;
/// Messages that a sender may have sent and that were not taken, at most.
pub(in crate::shm) const WINDOW: u32 = 256;

/// In [`Head::open`]: the owner matches.
pub(super) const OPEN: u32 = 0x7467_7431;

/// The first page of a target.
#[repr(C, align(64))]
pub(in crate::shm) struct Head {
    /// Who may touch the rest: a [`LockWord`](super::packed::LockWord).
    pub lock: AtomicU64,
    /// Counts the times that a peer did.
    pub visits: AtomicU32,
    /// [`OPEN`].
    pub open: AtomicU32,
    /// Receives that peers matched, as a list: the first and the last, plus one.
    pub first_event: AtomicU32,
    pub last_event: AtomicU32,
    reserved: [AtomicU32; 8],
    pub journal: Journal,
    pub blocks: BlocksLine,
    pub headers: HeadersLine,
    pub counts: CountsLine,
}

/// What the holder of the lock is doing to one message, so that who finds the holder dead knows
/// whether the message was taken.
#[repr(C, align(64))]
pub(in crate::shm) struct Journal {
    /// What the message goes to: a [`JournalEntry`](super::packed::JournalEntry).
    pub what: AtomicU64,
    /// Whose ring it comes from: a rank, plus one.
    pub rank: AtomicU64,
    /// What the ring's state will be.
    pub head: AtomicU64,
    pub offset: AtomicU64,
}

/// The overflow blocks.
#[repr(C, align(64))]
pub(in crate::shm) struct BlocksLine {
    /// Units from here on were never used.
    pub fresh: AtomicU32,
    /// Blocks in use.
    pub live: AtomicU32,
    /// Units in use.
    pub used: AtomicU32,
    /// The first free block of each size, plus one.
    pub free: [AtomicU32; CLASSES],
}

/// The headers of unexpected messages.
#[repr(C, align(64))]
pub(in crate::shm) struct HeadersLine {
    /// Headers from here on were never used.
    pub fresh: AtomicU32,
    /// The first free one, plus one.
    pub free: AtomicU32,
    /// How many are in use.
    pub live: AtomicU32,
    /// Counts arrivals.
    pub arrivals: AtomicU64,
}

/// What senders may send.
#[repr(C, align(64))]
pub(in crate::shm) struct CountsLine {
    /// Messages of the common room that senders may send or will be allowed, all together.
    pub outstanding: AtomicU64,
    /// Receives posted so far. Written by the owner with every receive that waits.
    pub posts: AtomicU64,
    /// Senders that keep messages back. Counted by themselves.
    pub holders: AtomicU64,
    /// Somebody was allowed less than a window.
    pub starved: AtomicU32,
    /// How many headers and units of blocks there may be in use.
    pub max_headers: AtomicU32,
    pub max_units: AtomicU32,
}

/// A posted receive. The first line is the owner's, the second that of whoever matches it.
#[repr(C, align(64))]
pub(in crate::shm) struct Receive {
    /// A [`ReceiveState`](super::packed::ReceiveState).
    pub state: AtomicU64,
    /// The user's buffer, by its name (see `arena`).
    pub address: AtomicU64,
    /// Its length in bytes.
    pub capacity: AtomicU64,
    reserved: [AtomicU64; 5],
    /// Who sent the message.
    pub from: AtomicU64,
    /// With which bits.
    pub found: AtomicU64,
    /// How long it is.
    pub length: AtomicU64,
    /// A ticket; or a block; or the bytes of a message of up to 16.
    pub data: [AtomicU64; 2],
    /// The sender's number for it.
    pub number: AtomicU64,
    /// The next in the list of events, plus one.
    pub next: AtomicU64,
    /// Keeps the line full.
    filler: AtomicU64,
}

/// The header of an unexpected message.
#[repr(C, align(64))]
pub(in crate::shm) struct Header {
    /// A [`HeaderState`](super::packed::HeaderState), or its `FREE`.
    pub state: AtomicU64,
    /// Who sent it: a [`HeaderSource`](super::packed::HeaderSource).
    pub source: AtomicU64,
    /// With which bits.
    pub bits: AtomicU64,
    /// How long it is.
    pub length: AtomicU64,
    /// The order of arrival.
    pub sequence: AtomicU64,
    /// A ticket, or a block.
    pub data: [AtomicU64; 2],
    /// A [`QueuedHandle`](super::packed::QueuedHandle), or, in a free one, the next free one, plus one.
    pub link: AtomicU64,
}

/// Where things lie in the target of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shm) struct Shape {
    pub headers: usize,
    pub units: usize,
    pub unexpected_at: usize,
    pub first_table_at: usize,
    pub second_table_at: usize,
    pub receives_at: usize,
    pub headers_at: usize,
    pub blocks_at: usize,
    pub len: usize,
}

pub(super) const CONTROL_AT: usize = 4096;
pub(super) const POSTED_AT: usize = 8192;

/// Most headers that settings may allow.
pub(in crate::shm) const MAX_HEADERS: usize = 128 * 1024;
/// Most bytes of blocks that settings may allow.
pub(in crate::shm) const MAX_OVERFLOW: usize = 64 * 1024 * 1024;

impl Shape {
    /// The layout in a job of `size`: every sender may send a few messages before anything is
    /// known of it, which have their place beyond the bounds.
    pub(in crate::shm) const fn of(size: u32) -> Self {
        let extra = size as usize * INITIAL as usize;
        let headers = MAX_HEADERS + extra;
        let units = MAX_OVERFLOW / UNIT + extra * (UNIT << (CLASSES - 1)) / UNIT;
        let unexpected_at = POSTED_AT + page(RECEIVES * size_of::<Node<Arena, 1>>());
        let first_table_at = unexpected_at + page(headers * size_of::<Node<Arena, LINKS>>());
        let second_table_at = first_table_at + BINS * 4;
        let receives_at = second_table_at + 4 * BINS * 4;
        let headers_at = receives_at + page(RECEIVES * size_of::<Receive>());
        let blocks_at = headers_at + page(headers * size_of::<Header>());
        Self {
            headers,
            units,
            unexpected_at,
            first_table_at,
            second_table_at,
            receives_at,
            headers_at,
            blocks_at,
            len: blocks_at + page(units * UNIT),
        }
    }
}

/// Rounds up to pages of the smallest size there is.
const fn page(len: usize) -> usize {
    len.next_multiple_of(4096)
}

const _: () = {
    assert!(size_of::<Head>() <= CONTROL_AT);
    assert!(size_of::<Control<Arena>>() <= POSTED_AT - CONTROL_AT);
    assert!(size_of::<Receive>() == 128);
    assert!(size_of::<Header>() == 64);
    assert!(std::mem::offset_of!(Receive, from) == 64);
    assert!(std::mem::offset_of!(Head, journal) == 64);
};
