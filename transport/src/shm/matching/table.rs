//! What whoever holds the lock does to a target: match, keep, allow.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::{ArriveOutcome, Cookie, Engine, Envelope, Handle, HashBins, Pattern};

use crate::matching::MatchPattern;
use crate::shm::layout::{PairArea, TakenLine};
use crate::shm::matching::layout::{CLASSES, Header, INITIAL, UNIT, WINDOW};
use crate::shm::matching::memory::{ArenaStorage, TargetMap};
use crate::shm::matching::packed::{
    EntryName, HeaderPhase, HeaderSource, HeaderState, JournalEntry, QueuedHandle,
};
use crate::shm::matching::wire::{IGNORABLE, Kind, Message};
use crate::shm::ring::RingState;

/// The engine over a target.
pub(super) type TargetEngine = HashBins<ArenaStorage>;

/// Its name. No other can be chosen: matching senders of several processes have to agree on it.
pub(super) const ENGINE: &str = "bins";

/// A target, in the hands of somebody who may hold its lock.
pub(in crate::shm) struct Table {
    pub(super) map: TargetMap,
    pub(super) engine: TargetEngine,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// It goes to this receive, which is out of matching.
    Matched(u32),
    /// It is kept under this header.
    Kept(u32),
    /// It would be kept, and there is no block for its bytes. It is not in matching.
    NoBlock,
    /// There is no header: the sender sent more than it was allowed.
    Full,
}

/// What the journal says while a message of a ring is dealt with: the ring's state afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub rank: u32,
    pub after: RingState,
}

impl Table {
    pub(in crate::shm) fn attach(map: TargetMap) -> Self {
        let engine = HashBins::attach(ArenaStorage(map.clone()));
        Self { map, engine }
    }

    /// Deals with a message that has arrived: the earliest receive that accepts it, or a header.
    /// With an `entry`, says in the journal what it goes to before anything else shows it.
    #[inline]
    pub(super) fn place(&mut self, message: &Message<'_>, entry: Option<Entry>) -> Placed {
        let Some(envelope) = envelope(message.source, message.bits) else {
            return Placed::Full;
        };
        let header = self.next_header();
        match self
            .engine
            .arrive(envelope, Cookie(header.unwrap_or(u32::MAX)))
        {
            ArriveOutcome::Matched(cookie) => {
                if let Some(entry) = entry {
                    self.note(entry, JournalEntry::Receive(cookie.0));
                }
                Placed::Matched(cookie.0)
            }
            ArriveOutcome::Queued(handle) => match header {
                Some(index) => self.keep(message, index, handle, entry),
                None => {
                    let _ = self.engine.discard(handle);
                    Placed::Full
                }
            },
            ArriveOutcome::Full => Placed::Full,
        }
    }

    /// Whether a receive is posted that takes the message; it is out of matching then.
    pub(super) fn take_posted(&mut self, source: Rank, bits: u64) -> Option<u32> {
        let envelope = envelope(source, bits)?;
        self.engine.arrive_expected(envelope).map(|cookie| cookie.0)
    }

    #[inline(never)]
    fn keep(
        &mut self,
        message: &Message<'_>,
        index: u32,
        handle: Handle,
        entry: Option<Entry>,
    ) -> Placed {
        let mut data = message.ticket;
        if message.kind == Kind::Short {
            let Some(block) = self.take_block(message.payload.len()) else {
                let _ = self.engine.discard(handle);
                return Placed::NoBlock;
            };
            self.map.fill(block as usize, message.payload);
            data = [u64::from(block), 0];
        }
        if let Some(entry) = entry {
            self.note(entry, JournalEntry::Header(index));
        }
        self.fill_header(message, index, handle, data);
        Placed::Kept(index)
    }

    /// Writes the header at `index`, the next free one.
    pub(super) fn fill_header(
        &self,
        message: &Message<'_>,
        index: u32,
        handle: Handle,
        data: [u64; 2],
    ) {
        let Some(header) = self.map.header(index) else {
            return;
        };
        let line = &self.map.head().headers;
        self.pop_header(header, index);
        let arrival = line.arrivals.load(Relaxed).wrapping_add(1);
        line.arrivals.store(arrival, Relaxed);
        let number = EntryName::unpack(message.number);
        let source = HeaderSource {
            rank: message.source,
            number: number.generation,
        };
        header.source.store(source.pack(), Relaxed);
        header.bits.store(message.bits, Relaxed);
        header.length.store(message.length, Relaxed);
        header.sequence.store(arrival, Relaxed);
        header.data[0].store(data[0], Relaxed);
        header.data[1].store(data[1], Relaxed);
        header.link.store(QueuedHandle(handle).pack(), Relaxed);
        let state = HeaderState {
            phase: HeaderPhase::Queued,
            kind: message.kind,
            beyond: message.asked_for,
            number: number.index,
        };
        header.state.store(state.pack(), Release);
    }

    // ---- headers

    /// The header that the next unexpected message gets.
    #[inline]
    pub(super) fn next_header(&self) -> Option<u32> {
        let line = &self.map.head().headers;
        let free = line.free.load(Relaxed);
        let index = if free != 0 {
            free - 1
        } else {
            line.fresh.load(Relaxed)
        };
        ((index as usize) < self.map.headers().len()).then_some(index)
    }

    fn pop_header(&self, header: &Header, index: u32) {
        let line = &self.map.head().headers;
        if line.free.load(Relaxed) == index + 1 {
            line.free.store(header.link.load(Relaxed) as u32, Relaxed);
        } else {
            line.fresh.store(index + 1, Relaxed);
        }
        add(&line.live, 1);
    }

    /// Gives a header back.
    pub(super) fn free_header(&self, index: u32) {
        let Some(header) = self.map.header(index) else {
            return;
        };
        let line = &self.map.head().headers;
        header.state.store(HeaderState::FREE, Relaxed);
        header
            .link
            .store(u64::from(line.free.load(Relaxed)), Relaxed);
        line.free.store(index + 1, Relaxed);
        add(&line.live, u32::MAX);
    }

    // ---- blocks

    /// Takes a block for `len` bytes.
    pub(super) fn take_block(&self, len: usize) -> Option<u32> {
        let class = class(len)?;
        let line = &self.map.head().blocks;
        let units = 1_u32 << class;
        let head = &line.free[class];
        let first = head.load(Relaxed);
        let block = if first != 0 {
            let next = self.map.block_word(first as usize - 1)?;
            head.store(next.load(Relaxed), Relaxed);
            first - 1
        } else {
            let fresh = line.fresh.load(Relaxed);
            let end = fresh.checked_add(units)?;
            if end as usize > self.map.units() {
                return None;
            }
            line.fresh.store(end, Relaxed);
            fresh
        };
        add(&line.live, 1);
        add(&line.used, units);
        Some(block)
    }

    /// Gives the block of `len` bytes back.
    pub(super) fn free_block(&self, block: u32, len: usize) {
        let (Some(class), Some(word)) = (class(len), self.map.block_word(block as usize)) else {
            return;
        };
        let line = &self.map.head().blocks;
        add(&line.live, u32::MAX);
        add(&line.used, (1_u32 << class).wrapping_neg());
        if line.live.load(Relaxed) == 0 {
            // Everything is free: no pieces are left over.
            line.fresh.store(0, Relaxed);
            line.free.iter().for_each(|head| head.store(0, Relaxed));
            return;
        }
        word.store(line.free[class].load(Relaxed), Relaxed);
        line.free[class].store(block + 1, Relaxed);
    }

    // ---- the list of receives that peers matched

    /// Appends a receive.
    pub(super) fn add_event(&self, index: u32) {
        let head = self.map.head();
        let Some(receive) = self.map.receive(index) else {
            return;
        };
        receive.next.store(0, Relaxed);
        let last = head.last_event.load(Relaxed);
        match last.checked_sub(1).and_then(|last| self.map.receive(last)) {
            Some(last) => last.next.store(u64::from(index) + 1, Relaxed),
            None => head.first_event.store(index + 1, Relaxed),
        }
        head.last_event.store(index + 1, Relaxed);
    }

    /// Takes the first receive out of the list.
    pub(super) fn take_event(&self) -> Option<u32> {
        let head = self.map.head();
        let index = head.first_event.load(Relaxed).checked_sub(1)?;
        let next = self.map.receive(index).map_or(0, |e| e.next.load(Relaxed)) as u32;
        head.first_event.store(next, Relaxed);
        if next == 0 {
            head.last_event.store(0, Relaxed);
        }
        Some(index)
    }

    // ---- allowances

    /// Counts `taken` messages of a sender, of which `matched` took no room, and allows it more when
    /// half of a window is used; returns whether it got some.
    pub(super) fn count_arrivals(&self, area: &PairArea, taken: u32, matched: u32) -> bool {
        let line = &area.taken;
        if matched >= taken {
            // As much is given back as was used.
            add_long(&line.arrived, u64::from(taken));
            add_long(&line.returned, u64::from(taken));
        } else {
            let before = common_share(area);
            add_long(&line.arrived, u64::from(taken));
            add_long(&line.returned, u64::from(matched));
            let outstanding = &self.map.head().counts.outstanding;
            let gone = before.saturating_sub(common_share(area));
            outstanding.store(get(outstanding).saturating_sub(gone), Relaxed);
        }
        open_allowance(area) < WINDOW / 2 && self.allow(area)
    }

    /// A message of a sender that counted against its allowance is kept no more. Returns whether the
    /// sender was allowed another one at once: for one of the common room it waits its turn.
    pub(super) fn give_back(&self, area: &PairArea) -> bool {
        let granted = get(&area.taken.granted);
        if granted != 0 {
            area.taken.granted.store(granted - 1, Relaxed);
            return false;
        }
        add_long(&area.taken.returned, 1);
        open_allowance(area) < WINDOW / 2 && self.allow(area)
    }

    /// Allows a sender as much as there is room for, up to a window: what it has given back, then of
    /// the common room. Returns whether it got some.
    pub(super) fn allow(&self, area: &PairArea) -> bool {
        let head = self.map.head();
        let counts = &head.counts;
        let headers = counts
            .max_headers
            .load(Relaxed)
            .saturating_sub(head.headers.live.load(Relaxed));
        let units = counts
            .max_units
            .load(Relaxed)
            .saturating_sub(head.blocks.used.load(Relaxed));
        let outstanding = counts.outstanding.load(Relaxed);
        let room = u64::from(headers.min(units >> (CLASSES - 1))).saturating_sub(outstanding);
        let wanted = u64::from(WINDOW - open_allowance(area).min(WINDOW));
        let line = &area.taken;
        let returned = get(&line.returned).min(wanted);
        let before = get(&line.granted);
        let share = (room.saturating_mul(SHARE).saturating_sub(before)) / (SHARE + 1);
        let granted = (wanted - returned).min(share);
        if granted < wanted - returned {
            counts.starved.store(1, Relaxed);
        }
        if granted + returned == 0 {
            return false;
        }
        let common = common_share(area);
        line.granted.store(before.wrapping_add(granted), Relaxed);
        line.returned.store(get(&line.returned) - returned, Relaxed);
        let allowed = area.allowed.messages.load(Relaxed);
        area.allowed
            .messages
            .store(allowed.wrapping_add(granted + returned), Release);
        let more = common_share(area).saturating_sub(common);
        counts
            .outstanding
            .store(outstanding.saturating_add(more), Relaxed);
        true
    }

    // ---- the journal

    fn note(&self, entry: Entry, what: JournalEntry) {
        let journal = &self.map.head().journal;
        let after = entry.after;
        let [head, offset] = after.pack();
        journal.head.store(head, Relaxed);
        journal.offset.store(offset, Relaxed);
        journal.rank.store(u64::from(entry.rank) + 1, Relaxed);
        journal.what.store(what.pack(), Release);
    }

    pub(super) fn clear_journal(&self) {
        let journal = &self.map.head().journal;
        journal.what.store(JournalEntry::Idle.pack(), Release);
    }
}

/// Counts messages that came because envelopes were asked for.
pub(super) fn count_envelopes(area: &PairArea, taken: u32) {
    let counted = get(&area.taken.envelopes).wrapping_add(u64::from(taken));
    area.taken.envelopes.store(counted, Relaxed);
}

/// How many messages a sender may still send.
pub(super) fn open_allowance(area: &PairArea) -> u32 {
    let allowed = area.allowed.messages.load(Relaxed);
    allowed
        .saturating_add(u64::from(INITIAL))
        .saturating_sub(area.taken.arrived.load(Relaxed))
        .min(u64::from(u32::MAX)) as u32
}

/// How many messages a sender may still send or will be allowed for those that it has given back,
/// beyond what has a place of its own.
pub(super) fn common_share(area: &PairArea) -> u64 {
    u64::from(open_allowance(area))
        .saturating_add(get(&area.taken.returned))
        .saturating_sub(u64::from(INITIAL))
}

/// The state of a ring, as it was left.
pub(in crate::shm) fn load_state(line: &TakenLine) -> RingState {
    let head = line.head.load(Acquire);
    RingState::unpack([head, line.offset.load(Relaxed)])
}

/// Leaves the state of a ring to whoever reads it next. The offset first: who looks whether all
/// is taken, without the lock, looks at the head.
pub(in crate::shm) fn store_state(line: &TakenLine, state: RingState) {
    let [head, offset] = state.pack();
    line.offset.store(offset, Relaxed);
    line.head.store(head, Release);
}

/// The engine's words for match bits.
#[inline]
pub(super) fn envelope(source: Rank, bits: u64) -> Option<Envelope> {
    Some(Envelope {
        source,
        tag: Tag::user((bits & IGNORABLE) as i32)?,
        context: ContextId::new((bits >> 31) as u16),
    })
}

/// The engine's words for a pattern; `None` for what it cannot match.
#[inline]
pub(super) fn pattern(wanted: &MatchPattern) -> Option<Pattern> {
    let tag = match wanted.ignore {
        0 => TagSelector::exact(Tag::user((wanted.bits & IGNORABLE) as i32)?),
        IGNORABLE => TagSelector::ANY,
        _ => return None,
    };
    Some(Pattern {
        source: wanted
            .source
            .map_or(SourceSelector::ANY, SourceSelector::exact),
        tag,
        context: ContextId::new((wanted.bits >> 31) as u16),
    })
}

/// Which size of block holds so many bytes.
#[inline]
fn class(len: usize) -> Option<usize> {
    let units = len.div_ceil(UNIT).max(1).next_power_of_two();
    let class = units.trailing_zeros() as usize;
    (class < CLASSES).then_some(class)
}

/// How many times as much of the common room as is left over one sender may have, at most: what others
/// find when it has filled its share is a ninth of all.
const SHARE: u64 = 8;

/// As [`add`], for longer words.
#[inline]
fn add_long(word: &AtomicU64, by: u64) {
    word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Adds to a word that is only written under the lock. It wraps: in shared memory it may hold
/// anything.
#[inline]
fn add(word: &AtomicU32, by: u32) {
    word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Reads a word that the holder of the lock before this one wrote.
#[inline]
pub(super) fn get(word: &AtomicU64) -> u64 {
    word.load(Relaxed)
}
