//! What lies where in shared memory.
//!
//! One memfd per rank. It is sparse: pages exist once they are touched.
//!
//! ```text
//!   0          header   identity | sleeping | contacts | closed | bitmap of contacts | registrations, see `remote`
//!   H          area 0   what rank 0 sends to the owner       (H: header, rounded up to pages)
//!   H + 64 K   room 0   for long messages of rank 0; as long as the identity says, see `room`
//!   ...        area 1   what rank 1 sends to the owner
//!   ...
//!   then       target   of a rank that matches: what it shares with its senders, see `target`
//!   then       arena    user memory, as long as the identity says, see `arena`
//!
//!   an area, 64 KiB:
//!        0   hello      identity of the sender            written by the sender
//!       64   admission  secret, state, closed             written by the sender
//!      128   answer     accepted or refused               written by the owner
//!      192   credit     slots | payload consumed; of room written by the owner
//!      256   taken      where the ring has been read to   written under the match lock
//!      320   allowed    messages the sender may have sent written under the match lock
//!      384   holding    messages the sender keeps back    written by the sender
//!      448   accessing  at which registration it is       written by the sender
//!      512   grant      how large the room is, see `room` written by the owner
//!      576   left       which room it left, see `room`    written by the sender
//!      640   payload    who has its memory, see `payload` both change it
//!     1024   offers     64 descriptors of one line        see `offers`
//!     5120   slots      256 slots of one line             see `ring`
//!    21504   payload    43 KiB of payload, in lines
//! ```
//!
//! A line is 64 bytes: what one side writes shares no line with what the other writes, except in
//! the offers, whose words both sides change while a transfer runs. Everything is an atomic or
//! raw bytes: a peer may write anything at any time.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::room::{Size, Table};

/// First word of every identity: "tagwshm" and the version of the layout.
pub(super) const MAGIC: u64 = 0x0074_6167_7773_686d;
/// Version of the layout; peers of another one are refused.
pub(super) const VERSION: u64 = 10;

/// Bytes of a pair area.
pub(super) const AREA: usize = 64 * 1024;
/// Slots of a ring.
pub(super) const SLOTS: usize = 256;
/// Slots that only control messages may use.
pub(super) const CONTROL_SLOTS: usize = 16;
/// Payload bytes that fit into a slot.
pub(super) const INLINE: usize = 40;
/// Bytes of the payload ring.
pub(super) const PAYLOAD: usize = AREA - 1024 - OFFERS * 64 - SLOTS * 64;
/// Largest payload of a message: two of them fit into the payload ring.
pub(super) const MAX_SEND: usize = 16 << 10;
/// Longest message that ranks that match send whole.
pub(super) const MAX_SHORT: usize = 8 << 10;
/// Bytes of the room behind an area, by its size. Multiples of the pages of every machine.
pub(super) const ROOMS: Table = [0, 256 << 10, 1 << 20, 4 << 20];
/// The largest of them.
pub(super) const LARGEST_ROOM: Size = Size(ROOMS.len() as u8 - 1);
/// The shortest payload that goes into a room: while the payload ring is full. Shorter ones stay where both sides have their lines in the
/// nearest cache.
pub(super) const LONG: usize = 4096;
/// The shortest payload that may go back and forth in rooms.
pub(super) const REUSED: usize = 256;
/// The shortest payload that goes into a room whenever there is space.
pub(super) const ROOMY: usize = 6144;
/// Offers that may be open in one direction between two ranks.
pub(super) const OFFERS: usize = 64;
/// Registrations that a rank may have at once.
pub(super) const REGISTRATIONS: usize = 1024;

/// Who somebody is.
#[repr(C, align(64))]
pub(super) struct IdentityLine {
    /// [`MAGIC`] and [`VERSION`], the version in the top byte.
    pub magic: AtomicU64,
    /// Rank, and the size of the job in the upper half.
    pub rank: AtomicU64,
    /// Process id, in the namespace below.
    pub pid: AtomicU64,
    /// Inode of the namespace of process ids.
    pub namespace: AtomicU64,
    /// Number of the segment's descriptor in that process.
    pub descriptor: AtomicU64,
    /// A random number, which also lies in private memory of that process ...
    pub nonce: AtomicU64,
    /// ... at this address: who can read it there can attach.
    pub nonce_address: AtomicU64,
    /// Bit 0: takes part in memory barriers. Bit 1: the segment has a match list. Bits 2 and 3: the largest size of
    /// rooms. From bit 16 on: the length of the arena, whose lower bits are 0.
    pub flags: AtomicU64,
}

/// A word on its own line.
#[repr(C, align(64))]
pub(super) struct Line64 {
    pub word: AtomicU64,
}

/// What the owner has consumed.
#[repr(C, align(64))]
pub(super) struct CreditLine {
    /// Slots, and the position in the payload ring in the upper half.
    pub word: AtomicU64,
    /// The position in the room.
    pub room: AtomicU64,
}

/// What the owner's threads sleep on.
#[repr(C, align(64))]
pub(super) struct SleepLine {
    /// A futex.
    pub word: AtomicU32,
    /// The CPU of who woke them last, plus one.
    pub woken_on: AtomicU32,
}

/// Memory of the owner's that peers may reach.
#[repr(C, align(32))]
#[derive(Default)]
pub(super) struct RegistrationLine {
    /// What was drawn for this registration; 0 where there is none.
    pub number: AtomicU64,
    /// Where it begins, as the owner's program calls it.
    pub address: AtomicU64,
    /// Where it begins, as copies go by: see `arena`.
    pub name: AtomicU64,
    /// Its length, and in bit 0 whether it may be written.
    pub extent: AtomicU64,
}

/// The start of a segment; the bitmap of contacts follows, then the table of registrations.
#[repr(C, align(64))]
pub(super) struct SegmentHeader {
    /// The owner.
    pub identity: IdentityLine,
    /// What the owner's threads sleep on; see `waiter`.
    pub sleeping: SleepLine,
    /// Counts what a peer wants noticed: first contact, a peer that closes.
    pub contacts: Line64,
    /// Set once the owner has closed: [`CLOSED_LEFT`] or [`CLOSED_FAILED`].
    pub closed: Line64,
}

/// Proof of membership, and the state of the sender.
#[repr(C, align(64))]
pub(super) struct AdmissionLine {
    /// The job's secret.
    pub secret: [AtomicU64; 4],
    /// [`AREA_FREE`], [`AREA_TAKEN`] or [`AREA_HELLO`].
    pub state: AtomicU64,
    /// Set once the sender has closed, as in the header: nothing comes any more.
    pub closed: AtomicU64,
}

/// Closed after a goodbye.
pub(super) const CLOSED_LEFT: u64 = 1;
/// Closed without one: whoever owned the object has failed. Any other number means the same.
pub(super) const CLOSED_FAILED: u64 = 2;

/// Nobody has used the area.
pub(super) const AREA_FREE: u64 = 0;
/// The sender is writing its hello.
pub(super) const AREA_TAKEN: u64 = 1;
/// The hello is there.
pub(super) const AREA_HELLO: u64 = 2;

/// The owner has not looked yet.
pub(super) const ANSWER_NONE: u64 = 0;
/// The sender is accepted.
pub(super) const ANSWER_ACCEPTED: u64 = 1;
/// The sender is refused; what it sends is ignored.
pub(super) const ANSWER_REFUSED: u64 = 2;

/// A message: one line.
#[repr(C, align(64))]
pub(super) struct Slot {
    /// Stamp, kind and length; then the two words of the header.
    pub words: [AtomicU64; 3],
    /// Short payload.
    pub inline: UnsafeCell<[u8; INLINE]>,
}

/// One cooperative transfer: one line; see `offers`.
#[repr(C, align(64))]
pub(super) struct DescriptorLine {
    /// Generation and state, written by the maker.
    pub offered: AtomicU64,
    /// The maker's buffer, by its name (see `arena`).
    pub made: AtomicU64,
    /// Its length in bytes.
    pub made_len: AtomicU64,
    /// The claimer's buffer, by its name.
    pub joined: AtomicU64,
    /// How many bytes are moved.
    pub joined_len: AtomicU64,
    /// What is claimed: from the front by the claimer, from the back by the maker.
    pub claims: AtomicU64,
    /// What is finished, by either.
    pub finished: AtomicU64,
    /// Generation and state, written by the claimer.
    pub claimed: AtomicU64,
}

/// Where a ring has been read to, for whoever reads it next.
#[repr(C, align(64))]
pub(super) struct TakenLine {
    /// Messages taken, and the position in the payload ring in the upper half.
    pub head: AtomicU64,
    /// The offset in the payload ring.
    pub offset: AtomicU64,
    /// Messages that were matched or kept, as the sender's allowance counts them.
    pub arrived: AtomicU64,
    /// Messages besides, of which the sender kept the bytes because it was asked for envelopes.
    pub envelopes: AtomicU64,
    /// Messages of the common room that the sender was allowed, and that it has not given back:
    /// not sent, kept, or in `returned`.
    pub granted: AtomicU64,
    /// Messages that are not kept any more, or never were, for which the sender is to be allowed others.
    pub returned: AtomicU64,
}

/// What a sender may send, counted from first contact.
#[repr(C, align(64))]
pub(super) struct AllowedLine {
    /// Messages.
    pub messages: AtomicU64,
    /// Messages besides, of which the sender keeps the bytes.
    pub envelopes: AtomicU64,
}

/// What one rank sends to another.
#[repr(C, align(64))]
pub(super) struct PairArea {
    pub hello: IdentityLine,
    pub admission: AdmissionLine,
    pub answer: Line64,
    pub credit: CreditLine,
    pub taken: TakenLine,
    pub allowed: AllowedLine,
    pub holding: Line64,
    /// The line of the owner's registrations that the sender is at, counted from 1; 0 where it is at none.
    pub accessing: Line64,
    pub grant: Line64,
    pub left: Line64,
    /// Who has the memory of the payload ring.
    pub payload_state: Line64,
    reserved: [Line64; 5],
    pub offers: [DescriptorLine; OFFERS],
    pub slots: [Slot; SLOTS],
    pub payload: UnsafeCell<[u8; PAYLOAD]>,
}

// SAFETY: the cells hold bytes that are only copied from and to by raw pointers, under the ring's
// protocol; no reference to them is ever made.
#[allow(unsafe_code)]
unsafe impl Sync for Slot {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for PairArea {}

/// Where the table of registrations begins, in bytes from the start of the segment, in a job of `size` ranks. On pages of its
/// own, which do not exist where nothing was registered.
pub(super) fn registrations_at(size: u32, page: usize) -> usize {
    let bitmap = (size as usize).div_ceil(64) * 8;
    (size_of::<SegmentHeader>() + bitmap).next_multiple_of(page)
}

/// Bytes of a segment's header, with the bitmap and the table of registrations, in a job of `size` ranks.
pub(super) fn header_len(size: u32, page: usize) -> usize {
    let table = REGISTRATIONS * size_of::<RegistrationLine>();
    registrations_at(size, page) + table.next_multiple_of(page)
}

const _: () = {
    assert!(size_of::<IdentityLine>() == 64);
    assert!(size_of::<SegmentHeader>() == 256);
    assert!(size_of::<RegistrationLine>() == 32);
    assert!(size_of::<Slot>() == 64);
    assert!(size_of::<DescriptorLine>() == 64);
    assert!(size_of::<PairArea>() == AREA);
    assert!(std::mem::offset_of!(PairArea, offers) == 1024);
    assert!(std::mem::offset_of!(PairArea, slots) == 5120);
    assert!(PAYLOAD == 43 * 1024);
    // What is consumed and not yet credited is under a quarter of the payload ring; the rest
    // must hold a largest message and the gap at the ring's end.
    assert!(PAYLOAD - PAYLOAD / 4 >= 2 * MAX_SEND);
    assert!(MAX_SEND <= u16::MAX as usize);
    // Whichever room there is holds more than a largest message with the gap at its end, and what is not credited.
    assert!(ROOMS[1] as usize >= 8 * MAX_SEND);
};
