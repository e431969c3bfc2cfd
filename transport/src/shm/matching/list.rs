//! The own match list: the engine in the target, and what is kept of unexpected messages.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use tagwire_base::Rank;
use tagwire_matching::{ArriveOutcome, Cookie, Engine};

use crate::data::{RecvBuffer, WriteRegion};
use crate::matching::{ClaimId, Found, MatchEnvelope, MatchLevels};
use crate::message::Payload;
use crate::shm::matching::layout::{Header, OPEN, UNIT};
use crate::shm::matching::memory::{ArenaStorage, TargetMap};
use crate::shm::matching::packed::{
    EntryName, HeaderPhase, HeaderSource, HeaderState, QueuedHandle,
};
use crate::shm::matching::table::{self, Table, get};
use crate::shm::matching::wire::{Kind, Message};

/// What lies under a header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub envelope: MatchEnvelope,
    pub kind: Kind,
    pub number: u64,
    pub data: [u64; 2],
    /// It counted against its sender's allowance.
    pub counted: bool,
}

impl Kept {
    /// Returns whether its sender waits for a reply, so that its contact is needed.
    pub(super) const fn is_answered(&self) -> bool {
        !matches!(self.kind, Kind::Short) || self.number != 0
    }
}

/// The match list of its owner.
pub(super) struct MatchList {
    pub(super) table: Table,
    /// Payload for which there was no block, by header.
    spilled: HashMap<u32, Vec<u8>>,
}

impl MatchList {
    /// Opens the list in a fresh target, for as many headers and bytes of overflow blocks as the settings say.
    pub(super) fn open(map: TargetMap, headers: usize, overflow: usize) -> Self {
        use tagwire_matching::storage::Storage as _;
        let table = Table::attach(map);
        ArenaStorage(table.map.clone()).control().reset();
        let head = table.map.head();
        let counts = &head.counts;
        counts.max_headers.store(headers as u32, Relaxed);
        counts.max_units.store((overflow / UNIT) as u32, Relaxed);
        head.open.store(OPEN, std::sync::atomic::Ordering::Release);
        Self {
            table,
            spilled: HashMap::new(),
        }
    }

    /// Returns what is kept under a header, if anything is.
    pub(super) fn kept(&self, index: u32) -> Option<Kept> {
        let header = self.table.map.header(index)?;
        let state = HeaderState::unpack(get(&header.state))?;
        let source = HeaderSource::unpack(get(&header.source))?;
        let number = EntryName {
            index: state.number,
            generation: source.number,
        };
        Some(Kept {
            envelope: MatchEnvelope {
                source: source.rank,
                bits: get(&header.bits),
                length: get(&header.length),
            },
            kind: state.kind,
            number: number.pack(),
            counted: !state.beyond,
            data: [get(&header.data[0]), get(&header.data[1])],
        })
    }

    /// Copies what is kept of a short message.
    ///
    /// # Safety
    /// `region` is lent for writing.
    pub(super) unsafe fn copy_kept(
        &self,
        index: u32,
        kept: &Kept,
        region: WriteRegion,
        len: usize,
    ) {
        // SAFETY: the caller says so; the buffer ends with this call.
        let mut room = unsafe { RecvBuffer::of(region) };
        if kept.data[0] == SPILLED {
            if let Some(bytes) = self.spilled.get(&index) {
                let len = len.min(bytes.len());
                room.write(0, Payload::from_slice(&bytes[..len]));
            }
            return;
        }
        self.table.map.look(kept.data[0] as usize, len, |payload| {
            room.write(0, payload);
        });
    }

    /// Gives header and block of a short message back.
    pub(super) fn release_kept(&mut self, index: u32, kept: &Kept) {
        if kept.kind == Kind::Short {
            if kept.data[0] == SPILLED {
                self.spilled.remove(&index);
            } else {
                let len = kept.envelope.length as usize;
                self.table.free_block(kept.data[0] as u32, len);
            }
        }
        self.table.free_header(index);
    }

    /// Keeps a short message for which there is no block.
    #[cold]
    pub(super) fn spill(&mut self, message: &Message<'_>) {
        let Some(index) = self.table.next_header() else {
            return;
        };
        let Some(envelope) = table::envelope(message.source, message.bits) else {
            return;
        };
        if let ArriveOutcome::Queued(handle) = self.table.engine.arrive(envelope, Cookie(index)) {
            self.table.fill_header(message, index, handle, [SPILLED, 0]);
            self.spilled.insert(index, message.payload.to_vec());
        }
    }

    /// Finds the message for a probe; with `claim`, takes it out of matching.
    #[inline]
    pub(super) fn probe(
        &mut self,
        wanted: tagwire_matching::Pattern,
        claim: bool,
    ) -> Option<Found> {
        let engine = &mut self.table.engine;
        let (_, Cookie(index)) = if claim {
            engine.claim(wanted)
        } else {
            engine.probe(wanted)
        }?;
        let found = self.found(index, claim);
        if claim {
            self.mark_claimed(index);
        }
        found
    }

    /// Returns what is known of a message.
    fn found(&self, index: u32, claim: bool) -> Option<Found> {
        let header = self.table.map.header(index)?;
        let kept = self.kept(index)?;
        let name = EntryName {
            index,
            generation: get(&header.sequence) as u32,
        };
        Some(Found {
            envelope: kept.envelope,
            claim: claim.then(|| ClaimId(name.pack())),
        })
    }

    /// Returns the header of a message that is claimed.
    pub(super) fn claimed(&self, claim: ClaimId) -> Option<u32> {
        let EntryName { index, generation } = EntryName::unpack(claim.0);
        let header = self.table.map.header(index)?;
        let is_it = HeaderState::is_in(get(&header.state), HeaderPhase::Claimed)
            && get(&header.sequence) as u32 == generation;
        is_it.then_some(index)
    }

    /// Notes that a message is out of matching, and not received.
    pub(super) fn mark_claimed(&self, index: u32) {
        if let Some(header) = self.table.map.header(index) {
            let state = HeaderState::with_phase(get(&header.state), HeaderPhase::Claimed);
            header.state.store(state, Relaxed);
        }
    }

    /// Takes the messages of a peer out of matching whose bytes are not to be had any more.
    pub(super) fn forget_messages(&mut self, rank: Rank) {
        for index in 0..self.headers_in_use() {
            let Some((kept, header)) = self.queued(index) else {
                continue;
            };
            if kept.kind == Kind::Short || kept.envelope.source != rank {
                continue;
            }
            let QueuedHandle(handle) = QueuedHandle::unpack(get(&header.link));
            let _ = self.table.engine.discard(handle);
            self.table.free_header(index);
        }
    }

    /// Shows the unexpected messages.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&MatchEnvelope)) {
        for index in 0..self.headers_in_use() {
            if let Some((kept, _)) = self.queued(index) {
                visit(&kept.envelope);
            }
        }
    }

    /// Returns how long the list is; what senders keep back it does not know.
    pub(super) fn levels(&self) -> MatchLevels {
        let units = self.table.map.head().blocks.used.load(Relaxed) as usize;
        let spilled: usize = self.spilled.values().map(Vec::len).sum();
        MatchLevels {
            posted: self.table.engine.posted_len(),
            unexpected: self.table.engine.unexpected_len(),
            unexpected_bytes: units * UNIT + spilled,
            held: 0,
        }
    }

    fn headers_in_use(&self) -> u32 {
        let fresh = self.table.map.head().headers.fresh.load(Relaxed);
        fresh.min(self.table.map.headers().len() as u32)
    }

    fn queued(&self, index: u32) -> Option<(Kept, &Header)> {
        let header = self.table.map.header(index)?;
        HeaderState::is_in(get(&header.state), HeaderPhase::Queued).then_some(())?;
        Some((self.kept(index)?, header))
    }
}

/// In place of a block: the bytes are in private memory.
pub(super) const SPILLED: u64 = u64::MAX;
