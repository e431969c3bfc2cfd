//! Receives that their senders fill: a long receive that names its source is shown to it, with its memory, before there is a
//! message. Who receives need not be there when the message comes.
//!
//! ```text
//!   receiver                                          sender
//!   posts a long receive
//!   EXPOSE: pattern, room, ticket  -------------->    keeps the target, behind those before it
//!   computes                                          the first message that fits takes the target: its bytes are
//!                                  <--------------    copied there, and its envelope goes in its turn
//!   matches the envelope, as any other
//! ```
//!
//! Both sides find the same receive for a message, which is the one that MPI's order names (MPI-5.0, section 3.5):
//!
//! - A receive is exposed only where each receive that was posted before it, and may take one of the same messages, is exposed
//!   to the same peer.
//! - A receive of any source is exposed to nobody: two peers might fill it at once. Nor is one of any tag, since EXPOSE names one.
//! - EXPOSE has the number of the peer's next packet. The peer remembers what it sent since: the first message of these
//!   that fits takes the receive, by its envelope. So does a message that fits and is short, or too long for the memory.
//! - A peer that cannot tell drops the target. It then takes no other before it hears that the dropped one has been matched: each
//!   EXPOSE names the oldest receive that still waits.
//!
//! Whether the memory is filled is decided once, by the transport: a receive that takes its message by the envelope revokes it
//! first, and one whose memory is being filled cannot be cancelled any more.

use std::collections::VecDeque;

use tagwire_base::{ContextId, Tag};
use tagwire_transport::{Outcome, Ticket};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::header::Kind;
use crate::slab::Handle;

impl Kind {
    /// To a sender: memory that its next message of this pattern may fill. Handle: the receive; argument: its room in bytes; body:
    /// [`Exposure`].
    pub(super) const EXPOSE: Self = Self::control(33);
}

/// Packets to a peer that are remembered.
const REMEMBERED: usize = 16;

/// Receives that are exposed to one peer at once.
pub(super) const EXPOSED: usize = 32;

/// So many exposed receives in a row that this rank waited for, and not all others are exposed any more: who waits loses by it.
const PATIENCE: u32 = 4;

/// The receives of which one is exposed in the end, as a power of two. One of 16 costs a twentieth of the bandwidth of long messages
/// (docs/performance.md); a rank that begins to compute is noticed by those that are not exposed.
const SELDOM: u32 = 8;

/// So many receives in a row that were not exposed have to find their messages there: one may by chance.
const FOUND: u8 = 3;

/// No slot of a receive.
const NONE: u32 = u32::MAX;

/// The body of EXPOSE.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Exposure {
    pub ticket: [u64; 2],
    pub tag: i32,
    /// How many packets of its receiver were taken: the number of the next.
    pub taken: u32,
    /// The receive's number, among those that were exposed to its receiver.
    pub number: u32,
    /// That of the oldest of this pattern that waits.
    pub oldest: u32,
    pub context: u16,
    pub reserved: [u16; 3],
}

impl Exposure {
    const fn context(&self) -> ContextId {
        ContextId::new(self.context)
    }
}

/// Whether `number` was given after `other`.
pub(super) const fn follows(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

/// Whether `number` was given long after `other`, which nothing refers to any more.
pub(super) const fn is_long_ago(number: u32, other: u32) -> bool {
    follows(number, other) && number.wrapping_sub(other) > 1 << 30
}

/// Adds to what is remembered; the oldest is forgotten where it is too much.
fn push_bounded<T>(remembered: &mut VecDeque<T>, one: T) {
    if remembered.len() == REMEMBERED {
        remembered.pop_front();
    }
    remembered.push_back(one);
}

/// A receive of this rank that is exposed.
#[derive(Debug)]
pub(super) struct Exposed {
    pub receive: Handle,
    pub ticket: Ticket,
    pub number: u32,
    pub tag: Tag,
    pub context: ContextId,
    /// How often the rank had waited in vain when it was exposed.
    pub idle: u64,
    /// How the filling of its memory ended, where that was before its envelope came.
    pub end: Option<Outcome>,
    /// It was filled, and the rank had not waited since it was exposed: it had something else to do.
    pub helped: bool,
}

/// A receive of a peer that messages of this rank may fill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub ticket: Ticket,
    pub number: u32,
    pub room: usize,
    tag: Tag,
    context: ContextId,
}

impl Target {
    /// Whether the next message of this pattern takes it.
    fn fits(&self, tag: Tag, context: ContextId) -> bool {
        self.tag == tag && self.context == context
    }

    /// Returns the ticket by which a message of `length` fills it, where it is longer than an eager one and has room.
    pub(super) fn for_message(&self, length: usize, eager: usize) -> Option<Ticket> {
        (length > eager && length <= self.room).then_some(self.ticket)
    }
}

/// What one peer and this rank expose to each other.
#[derive(Debug)]
pub(super) struct Exposures {
    /// The first words of the packets to the peer, each at its sequence number; 0 for what takes no receive.
    sent: [u64; REMEMBERED],
    /// The sequence numbers of those that took a receive which the peer exposed, and the number of that.
    took: VecDeque<(u32, u32)>,
    pub exposed: Vec<Exposed>,
    /// How many were exposed.
    pub count: u32,
    /// How many of the last ones were not filled while this rank had something else to do.
    unused: u16,
    /// How many of the last ones that were not exposed had their messages before this rank waited for them.
    found: u8,
    /// So many are not exposed before the next one that is.
    skip: u32,
    /// The slot of one of these that waits, or [`NONE`], and how often the rank had waited in vain when it was posted, in 32 bits.
    watched: u32,
    watched_since: u32,
    targets: VecDeque<Target>,
    /// The last receive of this rank that was cancelled, or is not exposed any more for that: the peer may count it among those
    /// that wait.
    pub hole: Option<u32>,
    /// The peer's last receive that was dropped: of none after it is anything known while one before it waits.
    dropped: Option<u32>,
    /// The number of the peer's last receive.
    last: u32,
    /// Whether the peer has ever exposed one.
    pub are_used: bool,
    /// Sends whose envelopes are out with an offer, by the number of the packet.
    offered: VecDeque<(u32, Handle)>,
}

impl Default for Exposures {
    fn default() -> Self {
        Self {
            sent: [0; REMEMBERED],
            took: VecDeque::new(),
            exposed: Vec::new(),
            count: 0,
            unused: 0,
            found: 0,
            skip: 0,
            watched: NONE,
            watched_since: 0,
            targets: VecDeque::new(),
            hole: None,
            dropped: None,
            last: 0,
            are_used: false,
            offered: VecDeque::new(),
        }
    }
}

impl Exposures {
    /// Remembers the packet with this sequence number, by the first word of its header.
    #[inline(always)]
    pub(super) const fn remember(&mut self, sequence: u32, word: u64) {
        self.sent[sequence as usize % REMEMBERED] = word;
    }

    /// Remembers that packet `sequence` took the receive with this number.
    pub(super) fn took(&mut self, sequence: u32, number: u32) {
        push_bounded(&mut self.took, (sequence, number));
    }

    /// Remembers that the envelope of a send went in packet `sequence`, with an offer.
    pub(super) fn remember_offer(&mut self, sequence: u32, send: Handle) {
        push_bounded(&mut self.offered, (sequence, send));
    }

    /// Whether receives of this rank wait for messages of the peer, in memory that it may fill.
    pub(super) const fn is_exposed(&self) -> bool {
        !self.exposed.is_empty()
    }

    /// Whether messages to the peer may have targets.
    pub(super) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Returns the target that a message takes.
    pub(super) fn target(&self, tag: Tag, context: ContextId) -> Option<&Target> {
        let mut targets = self.targets.iter();
        targets.find(|target| target.fits(tag, context))
    }

    /// A message has taken its target, the one with this number, however it goes.
    pub(super) fn take_target(&mut self, number: u32) {
        self.targets.retain(|target| target.number != number);
    }

    /// Nobody fills the peer's receives: some are not there any more, or take their messages out of their order.
    pub(super) fn drop_targets(&mut self) {
        if self.are_used {
            self.targets.clear();
            self.dropped = Some(self.last);
        }
    }

    /// What waits between the two is over: the peer is gone.
    pub(super) fn clear(&mut self) {
        self.targets.clear();
        self.offered.clear();
    }

    /// Whether this receive of this rank is exposed.
    pub(super) fn holds(&self, receive: Handle) -> bool {
        self.exposed.iter().any(|one| one.receive == receive)
    }

    pub(super) fn take(&mut self, receive: Handle) -> Option<Exposed> {
        let mut exposed = self.exposed.iter();
        let place = exposed.position(|one| one.receive == receive)?;
        Some(self.exposed.remove(place))
    }

    /// The number of the oldest receive of this pattern that is exposed.
    pub(super) fn oldest(&self, tag: Tag, context: ContextId) -> Option<u32> {
        let mut exposed = self.exposed.iter();
        let oldest = exposed.find(|one| one.tag == tag && one.context == context)?;
        Some(oldest.number)
    }

    /// Whether a receive, the next, is worth to be exposed by a rank that has waited in vain `idle` times.
    pub(super) const fn is_worth_it(&mut self, receive: Handle, idle: u64) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            // Of another one, the rank has waited in vain since: that says nothing.
            if self.watched == NONE || self.watched_since != idle as u32 {
                (self.watched, self.watched_since) = (receive.slot(), idle as u32);
            }
            return false;
        }
        true
    }

    /// A receive that was not exposed has its message. Where the rank has not waited in vain meanwhile it had something else to do, and would
    /// have been helped: after some such receives in a row the next one is exposed.
    #[inline]
    pub(super) const fn look_back(&mut self, receive: Handle, idle: u64) {
        if self.watched != receive.slot() {
            return;
        }
        self.watched = NONE;
        self.found = match self.watched_since == idle as u32 {
            true => self.found + 1,
            false => 0,
        };
        if self.found >= FOUND {
            (self.found, self.skip) = (0, 0);
        }
    }

    /// Takes note whether one that was exposed was filled while this rank had something else to do.
    pub(super) fn learn(&mut self, helped: bool) {
        self.unused = if helped {
            0
        } else {
            self.unused.saturating_add(1)
        };
        self.skip = match u32::from(self.unused).checked_sub(PATIENCE) {
            Some(more) => (1 << more.min(SELDOM)) - 1,
            None => 0,
        };
    }

    /// Takes an EXPOSE packet, where the next packet to the peer has the number `next_out`, and none goes there out of its order if
    /// the peer `is_open`. Returns the send that takes the receive already, and its target, where there is one that may fill it.
    pub(super) fn take_exposure(
        &mut self,
        next_out: u32,
        is_open: bool,
        room: u64,
        exposure: &Exposure,
    ) -> Result<Option<(Handle, Target)>, &'static str> {
        let tag = Tag::from_wire(exposure.tag).ok_or("a receive of a reserved tag")?;
        let target = Target {
            ticket: Ticket(exposure.ticket),
            number: exposure.number,
            room: usize::try_from(room).unwrap_or(usize::MAX),
            tag,
            context: exposure.context(),
        };
        let under_way = next_out.wrapping_sub(exposure.taken);
        if under_way > u32::MAX / 2 {
            return Err("a receive that waited for packets that were not sent");
        }
        let knows = is_open && under_way as usize <= REMEMBERED;
        self.are_used = true;
        self.last = exposure.number;
        let waits = |number: u32| !follows(exposure.oldest, number);
        self.targets
            .retain(|target| waits(target.number) || !target.fits(tag, exposure.context()));
        if self.dropped.is_some_and(waits) || !knows || self.targets.len() == EXPOSED {
            self.dropped = Some(exposure.number);
            return Ok(None);
        }
        // Numbers come again after so many.
        self.dropped = self
            .dropped
            .filter(|dropped| !is_long_ago(exposure.oldest, *dropped));
        for number in (0..under_way).map(|ahead| exposure.taken.wrapping_add(ahead)) {
            let word = self.sent[number as usize % REMEMBERED];
            let (sent_tag, sent_context) = ((word >> 32) as i32, (word >> 16) as u16);
            let mut took = self.took.iter();
            let has_one = took.any(|(sequence, taken)| *sequence == number && waits(*taken));
            if word == 0 || has_one || sent_tag != exposure.tag || sent_context != exposure.context
            {
                continue;
            }
            // This message takes the receive, and no other.
            self.took(number, exposure.number);
            let mut offered = self.offered.iter();
            let send = offered.find(|(sequence, _)| *sequence == number);
            return Ok(send.map(|(_, send)| (*send, target)));
        }
        self.targets.push_back(target);
        Ok(None)
    }
}
