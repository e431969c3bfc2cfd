//! The lock of the dead: taken over, and the match list made anew.

use std::sync::atomic::Ordering::{Relaxed, Release};

use tagwire_base::Rank;
use tagwire_matching::storage::{NIL, Storage, Table as EngineTable, Word};
use tagwire_matching::{ArriveOutcome, Cookie, Engine, PostOutcome};

use crate::matching::MatchEnvelope;
use crate::shm::Shm;
use crate::shm::matching::layout::UNIT;
use crate::shm::matching::list::{MatchList, SPILLED};
use crate::shm::matching::lock::{self, Held};
use crate::shm::matching::memory::ArenaStorage;
use crate::shm::matching::packed::{
    HeaderPhase, HeaderState, JournalEntry, QueuedHandle, ReceiveState,
};
use crate::shm::matching::receiver::Receiver;
use crate::shm::matching::receives::{ReceivePhase, Receives};
use crate::shm::matching::table::{self, get};
use crate::shm::matching::wire::Kind;

/// Takes the lock over if its holder has died. `failures` are the ranks that the bootstrap calls failed.
#[cold]
pub(super) fn take_over(shm: &mut Shm, receiver: &mut Receiver, failures: &[Rank]) -> Option<Held> {
    let own = receiver.rank.as_u32();
    let word = &receiver.list.table.map.head().lock;
    let (holder, found) = lock::holder(word)?;
    let rank = Rank::new(holder.min(Rank::MAX));
    // No correct peer writes a rank that is not there.
    let is_dead = holder >= shm.size() || holder == own || {
        let failed = failures.contains(&rank);
        match shm.by_rank.get(&rank) {
            Some(endpoint) => shm.is_over(*endpoint, failed),
            None => failed || shm.lost.contains(&rank) || shm.unknown_is_over(rank),
        }
    };
    if !is_dead || holder != rank.as_u32() {
        return None;
    }
    let held = lock::take_over(word, found, own)?;
    tracing::warn!(rank = %rank, "the match list is made anew: its matching sender has died");
    finish_journal(shm, &receiver.list);
    let late = Rebuild {
        list: &mut receiver.list,
        receives: &mut receiver.receives,
    }
    .run();
    receiver.is_remade(shm, late);
    Some(held)
}

/// Settles whether the message that the dead holder was dealing with counts as taken.
fn finish_journal(shm: &Shm, list: &MatchList) {
    let map = &list.table.map;
    let journal = &map.head().journal;
    let what = JournalEntry::unpack(get(&journal.what));
    journal.what.store(JournalEntry::Idle.pack(), Relaxed);
    let is_taken = match what {
        JournalEntry::Receive(index) => map.receive(index).is_some_and(|shared| {
            let state = ReceiveState::unpack(get(&shared.state));
            !matches!(state, Some(ReceiveState::Free | ReceiveState::Posted))
        }),
        JournalEntry::Header(index) => map
            .header(index)
            .is_some_and(|header| HeaderState::is_in(get(&header.state), HeaderPhase::Queued)),
        JournalEntry::Idle => false,
    };
    let Some(rank) = (get(&journal.rank) as u32).checked_sub(1) else {
        return;
    };
    if !is_taken || rank >= shm.size() {
        return;
    }
    if let Ok(area) = shm.segment.map_area(rank) {
        area.taken.offset.store(get(&journal.offset), Relaxed);
        area.taken.head.store(get(&journal.head), Release);
    }
}

/// Makes engine, lists and counts anew from what receives and headers say.
struct Rebuild<'a> {
    list: &'a mut MatchList,
    receives: &'a mut Receives,
}

impl Rebuild<'_> {
    /// Returns the receives that peers have matched, and that were in the list of events.
    fn run(mut self) -> Vec<u32> {
        let storage = ArenaStorage(self.list.table.map.clone());
        storage.control().reset();
        for table in [EngineTable::First, EngineTable::Second] {
            let words = storage.table(table);
            words.iter().for_each(|word| word.store(NIL));
        }
        self.queue_headers();
        let head = self.list.table.map.head();
        head.first_event.store(0, Relaxed);
        head.last_event.store(0, Relaxed);
        let mut late = Vec::new();
        for index in self.receives.posted() {
            if self.state_of(index) == Some(ReceiveState::Posted) {
                self.post(index);
            } else {
                late.push(index);
            }
        }
        late
    }

    fn state_of(&self, index: u32) -> Option<ReceiveState> {
        let shared = self.list.table.map.receive(index)?;
        ReceiveState::unpack(get(&shared.state))
    }

    fn post(&mut self, index: u32) {
        let own = &mut self.receives.entries[index as usize];
        let Some(pattern) = table::pattern(&own.pattern) else {
            return;
        };
        match self.list.table.engine.post(pattern, Cookie(index)) {
            PostOutcome::Queued(handle) => own.handle = handle,
            // Only a damaged target gets here: receives and messages that fit each
            // other were never both in it.
            PostOutcome::Matched(_) | PostOutcome::Full => {}
        }
    }

    /// Makes the list of free headers anew, counts blocks, and queues unexpected messages.
    fn queue_headers(&mut self) {
        let map = self.list.table.map.clone();
        let line = &map.head().headers;
        let fresh = (line.fresh.load(Relaxed) as usize + 1).min(map.headers().len());
        let (mut queued, mut blocks) = (Vec::new(), Blocks::default());
        let mut live = 0_u32;
        line.free.store(0, Relaxed);
        for index in (0..fresh as u32).rev() {
            let Some(header) = map.header(index) else {
                continue;
            };
            match self.list.kept(index) {
                Some(kept) => {
                    live += 1;
                    if kept.kind == Kind::Short && kept.data[0] != SPILLED {
                        blocks.count(kept.data[0] as u32, kept.envelope.length);
                    }
                    if HeaderState::is_in(get(&header.state), HeaderPhase::Queued) {
                        queued.push((get(&header.sequence), index, kept.envelope));
                    }
                }
                None => {
                    header.state.store(HeaderState::FREE, Relaxed);
                    let next = u64::from(line.free.load(Relaxed));
                    header.link.store(next, Relaxed);
                    line.free.store(index + 1, Relaxed);
                }
            }
        }
        line.fresh.store(fresh as u32, Relaxed);
        line.live.store(live, Relaxed);
        for (index, own) in self.receives.entries.iter().enumerate() {
            if own.phase == ReceivePhase::Posted
                && let Some(shared) = map.receive(index as u32)
                && get(&shared.state) == ReceiveState::Block.pack()
            {
                blocks.count(get(&shared.data[0]) as u32, get(&shared.length));
            }
        }
        let line = &map.head().blocks;
        line.live.store(blocks.live, Relaxed);
        line.used.store(blocks.units, Relaxed);
        line.fresh.store(blocks.end, Relaxed);
        line.free.iter().for_each(|free| free.store(0, Relaxed));
        queued.sort_unstable_by_key(|(sequence, ..)| *sequence);
        for (_, index, envelope) in queued {
            self.queue(index, envelope);
        }
    }

    fn queue(&mut self, index: u32, envelope: MatchEnvelope) {
        let Some(envelope) = table::envelope(envelope.source, envelope.bits) else {
            return;
        };
        let table = &mut self.list.table;
        if let ArriveOutcome::Queued(handle) = table.engine.arrive(envelope, Cookie(index))
            && let Some(header) = table.map.header(index)
        {
            header.link.store(QueuedHandle(handle).pack(), Relaxed);
        }
    }
}

/// The blocks that are in use.
#[derive(Default)]
struct Blocks {
    live: u32,
    units: u32,
    /// Units from here on are not in use.
    end: u32,
}

impl Blocks {
    fn count(&mut self, block: u32, len: u64) {
        let units = (len as usize).div_ceil(UNIT).max(1).next_power_of_two() as u32;
        self.units = self.units.wrapping_add(units);
        self.live += 1;
        self.end = self.end.max(block.saturating_add(units));
    }
}
