//! The object that a rank owns, and its verbs.
#![allow(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use tagwire_base::{Bootstrap, Rank};
use tagwire_matching::{CancelOutcome, Cookie, Engine, Handle, PostOutcome};

use super::super::arena::Span;
use super::super::config::{CrossAttach, ShmOptions};
use super::super::layout::{AREA, MAX_SEND};
use super::super::{NAME, Shm};
use super::chores::Chore;
use super::layout::{CLAIMED, FREE, OPEN, POSTED, QUEUED, RECEIVES, UNIT};
use super::lock::{self, Held};
use super::owner::{Deliver, Kept};
use super::send::{Out, SendSlot};
use super::table::{self, BITS, IGNORABLE, Table, get};
use super::wire::Kind;
use crate::allocation::Allocation;
use crate::byte::ByteTransport;
use crate::capability::{Capabilities, ThreadMode, WaitObject};
use crate::channel::{Buffering, OpenChannel, SendChannel};
use crate::data::{RecvBuffer, SendBuffer, WriteRegion};
use crate::error::Result;
use crate::message::{AmHeader, EndpointId, Lane, Outcome, Payload, PeerEvent, Token};
use crate::network::{
    Cancel, ClaimId, Directed, Found, MatchEnvelope, MatchLevels, MatchLimits, MatchPattern,
    MatchTransport, MatchUpcalls, Posted, Probed, ReceiveEnd, Refusal, Sent,
};
use crate::wait::Waiter;

/// Shared memory as a transport that matches.
pub struct ShmMatch {
    pub(super) shm: Shm,
    pub(super) core: Core,
}

/// Everything but the byte transport underneath.
pub(super) struct Core {
    pub(super) rank: Rank,
    pub(super) table: Table,
    /// Where the own arena is mapped.
    span: Span,
    /// The private half of the receives, by index.
    pub(super) receives: Vec<Own>,
    pub(super) free: Vec<u32>,
    /// Where the receive with a token may be found: by the token's lower half.
    hints: Vec<u32>,
    /// Receives posted so far.
    pub(super) posts: u64,
    /// Who is behind an endpoint.
    pub(super) ranks: Vec<Rank>,
    pub(super) sends: Vec<SendSlot>,
    pub(super) free_sends: Vec<u32>,
    pub(super) outs: Vec<Out>,
    /// Peers with messages of ours that may lie untaken, or that we keep back.
    pub(super) dirty: Vec<EndpointId>,
    /// Ended, and not yet told.
    pub(super) ended: VecDeque<Ended>,
    pub(super) chores: VecDeque<Chore>,
    /// Control messages that found no room.
    pub(super) controls: VecDeque<(EndpointId, AmHeader, Option<[u64; 3]>)>,
    /// Sends whose bytes go through the ring, oldest first.
    pub(super) streams: Vec<u32>,
    /// Payload for which there was no block, by header.
    pub(super) spilled: HashMap<u32, Vec<u8>>,
    pub(super) seen_visits: u32,
    /// Receives that peers matched of whom there is no contact yet.
    pub(super) late: Vec<u32>,
    /// Receives to be cancelled when the lock is to be had.
    pub(super) cancels: Vec<ReceiveName>,
    /// Ranks that the bootstrap calls failed, to be looked at when the lock is to be had.
    pub(super) failures: Vec<Rank>,
    /// Peers that sent what no correct peer sends.
    pub(super) broken: Vec<(EndpointId, &'static str)>,
    /// A posting call has looked into the rings since the last call of progress.
    has_looked: bool,
    /// Unexpected messages whose bytes came after the match.
    fetched: u64,
    /// Calls of progress in which nothing happened, in a row.
    pub(super) idle: u32,
    /// After how many of them it looks after its untaken messages.
    pub(super) patience: u32,
    /// Looks in a row that led to nothing.
    looks: u32,
    /// Attempts to get the lock that failed, in a row.
    pub(super) shut_out: u32,
}

/// Names a receive for as long as it is open. Indices and tokens are used again: what waits to be done
/// for a receive goes by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReceiveName {
    index: u32,
    generation: u32,
}

/// What only the owner knows of a receive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    pub(super) state: OwnState,
    pub(super) generation: u32,
    pub(super) token: Token,
    pub(super) region: WriteRegion,
    pub(super) handle: Handle,
    /// In the order of posting.
    pub(super) sequence: u64,
    pub(super) pattern: MatchPattern,
    pub(super) envelope: MatchEnvelope,
    /// Of the message's sender, once it has matched.
    pub(super) from: EndpointId,
    /// The sender's number for the message.
    pub(super) number: u64,
    /// Bytes that came by themselves.
    pub(super) streamed: usize,
}

impl Own {
    /// Takes `payload`, which lies at `offset` in the message, into the buffer of a receive that is under way.
    #[inline]
    pub(super) fn land(&self, offset: usize, payload: Payload<'_>) {
        debug_assert!(self.state != OwnState::Free, "the buffer is lent");
        // SAFETY: the memory is lent until the receive's token completes, and the entry is freed then, or,
        // where the message was matched at once, before the call that posted it has returned.
        unsafe { RecvBuffer::of(self.region) }.write(offset, payload);
    }
}

/// What is going on with a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnState {
    Free,
    Posted,
    /// A transfer moves its bytes.
    Claiming,
    /// Its bytes come through the ring.
    Streaming,
}

/// What became of a receive under the lock.
enum Placing {
    Queued,
    /// The message under this header is for it.
    Kept(u32),
    Full,
}

/// What is to be told.
#[derive(Debug)]
pub(super) enum Ended {
    Sent(Token, Outcome),
    Received(Token, ReceiveEnd),
    Peer(PeerEvent),
}

/// Tokens of the transfers underneath: receives have this bit, sends have not.
pub(super) const RECEIVING: u64 = 1 << 63;

/// How often progress finds nothing before a rank looks after its untaken messages. A message
/// that the receiver is looking for is gone after one or two.
const PATIENCE: u32 = 64;

/// How many of these a call counts for that has looked after transfers: it takes that much longer.
const TRANSFERS_WEIGH: u32 = 6;

/// The same, while looks show that the receiver is busy inside its own calls: each look takes
/// the line with the lock away from it for a moment.
const LONG_PATIENCE: u32 = 512;

/// How long a call waits for the lock before it goes without.
const LOCK_LIMIT: Duration = Duration::from_millis(50);

impl ShmMatch {
    /// Opens the transport of the rank that `bootstrap` is for, as [`Shm::open`] does. All ranks
    /// of a job open the same.
    ///
    /// # Errors
    /// As [`Shm::open`].
    pub fn open(options: ShmOptions, bootstrap: &mut dyn Bootstrap) -> Result<Self> {
        let rank = bootstrap.rank();
        let options = ShmOptions {
            matches: true,
            ..options
        };
        let shm = Shm::open(options, bootstrap)?;
        let map = shm.segment.map_target().map_err(|error| {
            tagwire_base::Error::system(format!("{NAME}: map the match list"), error)
        })?;
        let table = Table::attach(map);
        {
            use tagwire_matching::storage::Storage as _;
            super::memory::ArenaStorage(table.map.clone())
                .control()
                .reset();
            let head = table.map.head();
            let counts = &head.counts;
            counts
                .max_headers
                .store(shm.options.headers as u32, Relaxed);
            counts
                .max_units
                .store((shm.options.overflow / UNIT) as u32, Relaxed);
            head.open.store(OPEN, Release);
        }
        Ok(Self {
            core: Core::new(rank, table),
            shm,
        })
    }

    /// As [`Shm::set_descriptor_source`].
    pub fn set_descriptor_source(
        &mut self,
        source: impl FnMut(Rank) -> tagwire_base::Result<std::os::fd::OwnedFd> + Send + 'static,
    ) {
        self.shm.set_descriptor_source(source);
    }

    /// As [`Shm::connect_through`].
    ///
    /// # Errors
    /// As there.
    pub fn connect_through(
        &mut self,
        peer: Rank,
        address: &[u8],
        bootstrap: &mut dyn Bootstrap,
    ) -> Result<EndpointId> {
        let endpoint = self.shm.connect_through(peer, address, bootstrap)?;
        self.core.know(endpoint, peer);
        Ok(endpoint)
    }

    /// As [`Shm::memory_in_use`].
    ///
    /// # Errors
    /// As there.
    pub fn memory_in_use(&self) -> Result<u64> {
        self.shm.memory_in_use()
    }

    // ---- the lock

    /// Takes the own lock, if it is to be had soon.
    #[inline]
    pub(super) fn lock(&mut self) -> Option<Held> {
        let word = &self.core.table.map.head().lock;
        let rank = self.core.rank.as_u32();
        if let Some(held) = lock::try_lock(word, rank) {
            return Some(held);
        }
        for _ in 0..200 {
            std::hint::spin_loop();
            if let Some(held) = lock::try_lock(word, rank) {
                return Some(held);
            }
        }
        self.lock_late()
    }

    /// A holder that takes long has been put aside by the system, or has died.
    #[cold]
    fn lock_late(&mut self) -> Option<Held> {
        self.core.shut_out = self.core.shut_out.wrapping_add(1);
        if !self.core.shut_out.is_multiple_of(64) {
            std::thread::yield_now();
        } else if let Some(held) = self.take_over() {
            return Some(held);
        }
        let word = &self.core.table.map.head().lock;
        lock::try_lock(word, self.core.rank.as_u32())
    }

    /// The same, for calls that have to do their work now.
    fn lock_patiently(&mut self) -> Option<Held> {
        if let Some(held) = self.lock() {
            return Some(held);
        }
        let begin = Instant::now();
        while begin.elapsed() < LOCK_LIMIT {
            if let Some(held) = self.lock() {
                return Some(held);
            }
        }
        self.take_over()
    }

    pub(super) fn unlock(&mut self, held: Held) {
        self.core.shut_out = 0;
        lock::unlock(&self.core.table.map.head().lock, held);
    }

    /// What every holder does first: goes on where a peer has left the rings, and takes note of what
    /// peers have matched.
    #[inline]
    pub(super) fn catch_up(&mut self, upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let visits = self.core.table.map.head().visits.load(Relaxed);
        if visits == self.core.seen_visits && self.core.late.is_empty() {
            return 0;
        }
        self.core.seen_visits = visits;
        self.resume_rings();
        self.take_events(upcalls)
    }

    /// Whether the rings or peers have something for a holder of the lock.
    #[inline]
    fn has_work(&self) -> bool {
        self.core.table.map.head().visits.load(Relaxed) != self.core.seen_visits
            || self.shm.inbound.iter().any(|way| way.consumer.is_ready())
    }

    /// Looks into the own rings from within a posting call, the first since progress; what ends is
    /// told later. A sender that sleeps has looked after its messages before, but may have been
    /// sent off by a receiver inside its calls, which then goes and computes.
    ///
    /// Not from every posting call: each look takes the line away that the sender writes next.
    /// With it a window of receives cost four times as much (1.6 against 6 M messages/s).
    fn look_now(&mut self) {
        if std::mem::replace(&mut self.core.has_looked, true) {
            return;
        }
        if self.shm.inbound.iter().any(|way| way.consumer.is_ready()) {
            self.drain_rings(None);
        }
    }

    /// Whether receives were posted that may take messages which are kept back.
    fn held_may_match(&self) -> bool {
        self.core.dirty.iter().any(|to| {
            let out = &self.core.outs[to.index()];
            !out.held.is_empty()
                && self.shm.peers[to.index()]
                    .target
                    .as_ref()
                    .is_some_and(|map| {
                        map.head().counts.posts.load(Relaxed) != out.seen_posts
                            || out.compared < out.held.len()
                    })
        })
    }

    // ---- parts of the verbs

    /// Posts a receive, or takes its message, under the lock.
    fn post_locked(
        &mut self,
        pattern: MatchPattern,
        wanted: tagwire_matching::Pattern,
        region: WriteRegion,
        token: Token,
    ) -> Placing {
        let core = &mut self.core;
        let Some(&index) = core.free.last() else {
            return Placing::Full;
        };
        match core.table.engine.post(wanted, Cookie(index)) {
            PostOutcome::Queued(handle) => {
                core.free.pop();
                core.posts += 1;
                let own = &mut core.receives[index as usize];
                own.state = OwnState::Posted;
                own.generation = own.generation.wrapping_add(1);
                own.token = token;
                own.region = region;
                own.handle = handle;
                own.sequence = core.posts;
                own.pattern = pattern;
                core.hint(token, index);
                core.publish(index);
                Placing::Queued
            }
            PostOutcome::Matched(cookie) => Placing::Kept(cookie.0),
            PostOutcome::Full => Placing::Full,
        }
    }

    /// Receives the message that is kept under a header, which has left matching.
    fn receive_kept(&mut self, header_index: u32, region: WriteRegion, token: Token) -> Posted {
        let core = &mut self.core;
        let Some(kept) = core.kept(header_index) else {
            // Only a broken peer leaves this behind.
            return Posted::Done(ReceiveEnd::Matched(
                MatchEnvelope {
                    source: core.rank,
                    bits: 0,
                    length: 0,
                },
                Outcome::Impossible,
            ));
        };
        let envelope = kept.envelope;
        let is_answered = kept.kind != Kind::Short || kept.number != 0;
        let peer = self.shm.by_rank.get(&envelope.source);
        let heard = peer.is_some_and(|at| self.shm.peers[at.index()].inbound.is_some());
        if is_answered && !heard {
            // It has matched for us before we took note of its contact. Should it be gone as well, the
            // message is not taken for one that waits.
            if let Some(header) = core.table.map.header(header_index) {
                let state = header.state.load(Relaxed);
                header.state.store(state & !0xff | CLAIMED, Relaxed);
            }
            let mut deliver = Deliver::new(&mut self.core, None);
            self.shm.look_at_contacts(&mut deliver);
        }
        let core = &mut self.core;
        let from = if is_answered {
            self.shm.by_rank.get(&envelope.source).copied()
        } else {
            None
        };
        if kept.kind == Kind::Short {
            let len = envelope.length.min(region.len() as u64) as usize;
            // SAFETY: the receive is being posted with this buffer, which is lent.
            unsafe { core.copy_kept(header_index, &kept, region, len) };
            core.release_kept(header_index, &kept);
            self.give_back(&kept);
            let core = &mut self.core;
            if let Some(from) = from.filter(|_| kept.number != 0) {
                core.chores.push_back(Chore::Reply(from, kept.number));
                self.run_chores(None);
            }
            return Posted::Done(ReceiveEnd::Matched(envelope, Outcome::Done(len as u64)));
        }
        core.table.free_header(header_index);
        self.give_back(&kept);
        let core = &mut self.core;
        core.fetched += 1;
        let (Some(from), Some(index)) = (from, core.free.pop()) else {
            return Posted::Done(ReceiveEnd::Matched(envelope, Outcome::PeerFailed));
        };
        let own = &mut core.receives[index as usize];
        own.generation = own.generation.wrapping_add(1);
        own.token = token;
        own.region = region;
        own.envelope = envelope;
        own.from = from;
        own.number = kept.number;
        own.streamed = 0;
        core.hint(token, index);
        let name = core.receive_name(index);
        if kept.kind == Kind::Long {
            core.receives[index as usize].state = OwnState::Claiming;
            core.chores.push_back(Chore::Claim(name, kept.data));
        } else {
            core.receives[index as usize].state = OwnState::Streaming;
            core.chores.push_back(Chore::Go(name));
        }
        Posted::Open
    }

    /// Lets the sender of a message that is kept no more send another one, where that is due to it.
    fn give_back(&self, kept: &Kept) {
        let Some(at) = self.shm.by_rank.get(&kept.envelope.source) else {
            return;
        };
        let peer = &self.shm.peers[at.index()];
        if let Some(area) = peer.inbound.as_ref().filter(|_| kept.counted)
            && self.core.table.give_back(area)
        {
            peer.nudge();
        }
    }

    /// What is known of the message that a probe found.
    fn found(&self, index: u32, claim: bool) -> Option<Found> {
        let header = self.core.table.map.header(index)?;
        let kept = self.core.kept(index)?;
        Some(Found {
            envelope: kept.envelope,
            claim: claim.then(|| ClaimId(u64::from(index) | get(&header.sequence) << 32)),
        })
    }
}

impl Core {
    fn new(rank: Rank, table: Table) -> Self {
        Self {
            rank,
            table,
            span: Span::NONE,
            receives: Vec::new(),
            free: Vec::new(),
            hints: Vec::new(),
            posts: 0,
            ranks: Vec::new(),
            sends: Vec::new(),
            free_sends: Vec::new(),
            outs: Vec::new(),
            dirty: Vec::new(),
            ended: VecDeque::new(),
            chores: VecDeque::new(),
            controls: VecDeque::new(),
            streams: Vec::new(),
            spilled: HashMap::new(),
            seen_visits: 0,
            late: Vec::new(),
            cancels: Vec::new(),
            failures: Vec::new(),
            broken: Vec::new(),
            has_looked: false,
            fetched: 0,
            idle: 0,
            patience: PATIENCE,
            looks: 0,
            shut_out: 0,
        }
    }

    /// Makes room for one more receive, if there is none.
    fn grow(&mut self) {
        let len = self.receives.len();
        if !self.free.is_empty() || len >= RECEIVES {
            return;
        }
        let more = (len.max(64)).min(RECEIVES - len);
        self.receives.resize(len + more, Own::UNUSED);
        self.free.extend((len as u32..(len + more) as u32).rev());
    }

    fn hint(&mut self, token: Token, index: u32) {
        let at = token.0 as u32 as usize;
        if at >= self.hints.len() {
            if at >= 1 << 20 {
                return;
            }
            self.hints.resize((at + 1).next_power_of_two(), u32::MAX);
        }
        self.hints[at] = index;
    }

    /// The name of the open receive at an index.
    pub(super) fn receive_name(&self, index: u32) -> ReceiveName {
        let generation = self.receives[index as usize].generation;
        ReceiveName { index, generation }
    }

    /// Where the receive of that name is; `None` once it is over.
    pub(super) fn receive_named(&self, name: ReceiveName) -> Option<u32> {
        let own = self.receives.get(name.index as usize)?;
        let is_it = own.state != OwnState::Free && own.generation == name.generation;
        is_it.then_some(name.index)
    }

    /// The receive that was posted under a token.
    fn find(&self, token: Token) -> Option<u32> {
        let is_it = |index: &u32| {
            let own = self.receives.get(*index as usize);
            own.is_some_and(|own| own.state != OwnState::Free && own.token == token)
        };
        let hint = self.hints.get(token.0 as u32 as usize).copied();
        hint.filter(is_it)
            .or_else(|| (0..self.receives.len() as u32).find(is_it))
    }

    /// Shows a posted receive to senders.
    #[inline]
    pub(super) fn publish(&self, index: u32) {
        let own = &self.receives[index as usize];
        let Some(shared) = self.table.map.receive(index) else {
            return;
        };
        let name = self.span.name(own.region.address(), own.region.len());
        shared.address.store(name, Relaxed);
        shared.capacity.store(own.region.len() as u64, Relaxed);
        shared.state.store(POSTED, Relaxed);
        self.table
            .map
            .head()
            .counts
            .posts
            .store(self.posts, Release);
    }

    /// Whether anything is kept back.
    fn holds(&self) -> bool {
        let holds = |to: &EndpointId| !self.outs[to.index()].held.is_empty();
        self.dirty.iter().any(holds)
    }

    /// A receive is over.
    #[inline]
    pub(super) fn free_receive(&mut self, index: u32) {
        self.receives[index as usize].state = OwnState::Free;
        if let Some(shared) = self.table.map.receive(index) {
            shared.state.store(FREE, Relaxed);
        }
        self.free.push(index);
    }

    /// The end of a receive that has just been posted, if it has one.
    #[inline]
    fn ended_already(&mut self, token: Token) -> Option<ReceiveEnd> {
        if self.ended.is_empty() {
            return None;
        }
        let is_it =
            |ended: &Ended| matches!(ended, Ended::Received(received, _) if *received == token);
        let at = self.ended.iter().rposition(is_it)?;
        match self.ended.remove(at) {
            Some(Ended::Received(_, end)) => Some(end),
            _ => None,
        }
    }

    /// Takes note of who is behind an endpoint.
    pub(super) fn know(&mut self, endpoint: EndpointId, rank: Rank) {
        let index = endpoint.index();
        if self.ranks.len() <= index {
            self.ranks.resize(index + 1, Rank::new(0));
            self.outs.resize_with(index + 1, Out::default);
        }
        self.ranks[index] = rank;
    }
}

impl Own {
    const UNUSED: Self = Self {
        state: OwnState::Free,
        generation: 0,
        token: Token(u64::MAX),
        region: WriteRegion::EMPTY,
        handle: Handle::from_parts(u32::MAX, 0),
        sequence: 0,
        pattern: MatchPattern {
            bits: 0,
            ignore: 0,
            source: None,
        },
        envelope: MatchEnvelope {
            source: Rank::new(0),
            bits: 0,
            length: 0,
        },
        from: EndpointId(u32::MAX),
        number: 0,
        streamed: 0,
    };
}

impl MatchTransport for ShmMatch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.shm.capabilities()
    }

    fn match_limits(&self) -> MatchLimits {
        MatchLimits {
            bits: BITS,
            ignorable: IGNORABLE,
            ignorable_in_part: false,
            directed: Directed::BySource,
            max_message: u64::MAX >> 16,
            max_short: MAX_SEND,
            max_posted: RECEIVES,
            lanes: 1,
            memory_per_peer: AREA,
            thread_mode: ThreadMode::Transport,
            wait_object: WaitObject::Futex,
        }
    }

    fn address(&self) -> Vec<u8> {
        self.shm.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let endpoint = self.shm.connect(peer, address)?;
        self.core.know(endpoint, peer);
        Ok(endpoint)
    }

    #[inline]
    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        self.send_message(to, bits, data, synchronous, token)
    }

    fn post(
        &mut self,
        _lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let Some(region) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        if (pattern.bits | pattern.ignore) & !BITS != 0 {
            return Posted::Refused(Refusal::ReservedBits);
        }
        let Some(wanted) = table::pattern(&pattern) else {
            return Posted::Refused(Refusal::Ignore);
        };
        self.core.grow();
        let Some(held) = self.lock_patiently() else {
            return Posted::Busy;
        };
        self.catch_up(None);
        match self.post_locked(pattern, wanted, region, token) {
            Placing::Queued => {
                self.look_now();
                self.unlock(held);
            }
            Placing::Kept(index) => {
                let posted = self.receive_kept(index, region, token);
                self.unlock(held);
                self.run_chores(None);
                return posted;
            }
            Placing::Full => {
                self.unlock(held);
                return Posted::Full;
            }
        }
        self.run_chores(None);
        if self.core.table.map.head().counts.holders.load(Relaxed) != 0 {
            self.rouse_holders(false);
        }
        if let Some(end) = self.core.ended_already(token) {
            return Posted::Done(end);
        }
        Posted::Open
    }

    fn probe(&mut self, _lane: Lane, pattern: MatchPattern, claim: bool, _token: Token) -> Probed {
        if (pattern.bits | pattern.ignore) & !BITS != 0 {
            return Probed::Refused(Refusal::ReservedBits);
        }
        let Some(wanted) = table::pattern(&pattern) else {
            return Probed::Refused(Refusal::Ignore);
        };
        let Some(held) = self.lock_patiently() else {
            return Probed::Busy;
        };
        self.catch_up(None);
        if self.shm.inbound.iter().any(|way| way.consumer.is_ready()) {
            self.drain_rings(None);
        }
        let engine = &mut self.core.table.engine;
        let cookie = if claim {
            engine.claim(wanted)
        } else {
            engine.probe(wanted)
        };
        let found = cookie.and_then(|(_, cookie)| self.found(cookie.0, claim));
        if let (true, Some((_, cookie))) = (claim, cookie)
            && let Some(header) = self.core.table.map.header(cookie.0)
        {
            let state = header.state.load(Relaxed);
            header.state.store(state & !0xff | CLAIMED, Relaxed);
        }
        self.unlock(held);
        self.run_chores(None);
        match found {
            Some(found) => Probed::Found(found),
            None => {
                if self.core.table.map.head().counts.holders.load(Relaxed) != 0 {
                    self.rouse_holders(true);
                }
                Probed::Nothing
            }
        }
    }

    fn receive_claimed(
        &mut self,
        _lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let Some(region) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        let index = claim.0 as u32;
        let claimed = self.core.table.map.header(index).is_some_and(|header| {
            header.state.load(Relaxed) & 0xff == CLAIMED
                && get(&header.sequence) as u32 == (claim.0 >> 32) as u32
        });
        if !claimed {
            return Posted::Refused(Refusal::Unknown);
        }
        self.core.grow();
        if self.core.free.is_empty() {
            return Posted::Full;
        }
        let Some(held) = self.lock_patiently() else {
            return Posted::Busy;
        };
        self.catch_up(None);
        let posted = self.receive_kept(index, region, token);
        self.unlock(held);
        self.run_chores(None);
        posted
    }

    fn cancel(&mut self, _lane: Lane, token: Token) -> Cancel {
        let Some(held) = self.lock_patiently() else {
            let Some(index) = self.core.find(token) else {
                return Cancel::TooLate;
            };
            self.core.cancels.push(self.core.receive_name(index));
            return Cancel::Pending;
        };
        self.catch_up(None);
        let found = self.core.find(token);
        let cancelled = found.is_some_and(|index| self.core.cancel_locked(index));
        self.unlock(held);
        self.run_chores(None);
        if cancelled {
            Cancel::Cancelled
        } else {
            Cancel::TooLate
        }
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize {
        self.core.has_looked = false;
        // What ended before comes first.
        let mut events = self.tell_ended(upcalls);
        let contacts = self.shm.header.contacts.word.load(Relaxed) != self.shm.seen_contacts;
        let peers = contacts
            | self.shm.attention
            | !self.core.broken.is_empty()
            | !self.core.failures.is_empty();
        if (peers || self.has_work() || !self.core.cancels.is_empty())
            && let Some(held) = self.lock()
        {
            events += self.hold(peers, upcalls);
            self.unlock(held);
        }
        if self.shm.attention {
            let mut deliver = Deliver::new(&mut self.core, Some(upcalls));
            events += self.shm.move_transfers(&mut deliver);
            // Peers are ended under the lock.
            while let Some(broken) = self.shm.transfers.take_insane() {
                self.core.broken.push(broken);
            }
            self.shm.note_attention();
        }
        events += self.run_chores(Some(upcalls));
        events += self.tell_ended(upcalls);
        if self.core.has_to_send() {
            events += self.push_on(upcalls);
        }
        if events != 0 {
            self.core.idle = 0;
            self.core.patience = PATIENCE;
            self.core.looks = 0;
        } else if !self.core.dirty.is_empty() {
            self.core.idle += if self.shm.attention {
                TRANSFERS_WEIGH
            } else {
                1
            };
            if self.core.idle >= self.core.patience || self.held_may_match() {
                self.core.idle = 0;
                let taken = self.visit_peers(upcalls);
                events += taken;
                if taken != 0 || self.core.holds() {
                    self.core.patience = PATIENCE;
                    self.core.looks = 0;
                } else {
                    self.core.looks += 1;
                    if self.core.looks > 2 {
                        self.core.patience = (self.core.patience * 2).min(LONG_PATIENCE);
                    }
                }
            }
        }
        events
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls) {
        let Some(held) = self.lock_patiently() else {
            return;
        };
        self.catch_up(Some(upcalls));
        let mut deliver = Deliver::new(&mut self.core, Some(upcalls));
        self.shm.look_after(&mut deliver);
        self.unlock(held);
        self.run_chores(Some(upcalls));
        self.tell_ended(upcalls);
        self.wake_untaken();
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn MatchUpcalls) {
        self.core.failures.push(rank);
        // Its process may still have the lock.
        if let Some(held) = self.lock_patiently() {
            self.catch_up(Some(upcalls));
            self.take_failures(upcalls);
            self.unlock(held);
        }
        self.run_chores(Some(upcalls));
        self.tell_ended(upcalls);
    }

    fn leave(&mut self) {
        ByteTransport::leave(&mut self.shm);
    }

    fn unfinished(&self) -> usize {
        self.core.controls.len() + self.core.chores.len() + self.core.ended.len()
    }

    fn matcher(&self) -> &'static str {
        table::ENGINE
    }

    fn fetched(&self) -> u64 {
        self.core.fetched
    }

    fn levels(&self) -> MatchLevels {
        let head = self.core.table.map.head();
        let spilled: usize = self.core.spilled.values().map(Vec::len).sum();
        MatchLevels {
            posted: self.core.table.engine.posted_len(),
            unexpected: self.core.table.engine.unexpected_len(),
            unexpected_bytes: head.blocks.used.load(Relaxed) as usize * UNIT + spilled,
            held: self.core.outs.iter().map(|out| out.held.len()).sum(),
        }
    }

    fn visit_unexpected(&self, visit: &mut dyn FnMut(&MatchEnvelope)) {
        let map = &self.core.table.map;
        let fresh = map.head().headers.fresh.load(Relaxed);
        for index in 0..fresh.min(map.headers().len() as u32) {
            if map.headers()[index as usize].state.load(Relaxed) & 0xff == QUEUED
                && let Some(kept) = self.core.kept(index)
            {
                visit(&kept.envelope);
            }
        }
    }

    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        let memory = self.shm.take_from_arena(len);
        self.core.span = self.shm.span;
        memory
    }

    fn open_channel(
        &mut self,
        from: EndpointId,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Option<OpenChannel> {
        self.shm.open_receiver(from, data, ends, buffering)
    }

    fn join_channel(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        self.shm.join_receiver(to, data, ends, key)
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        ByteTransport::waiter(&self.shm)
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        ByteTransport::describe(&self.shm, out);
        for (index, state) in self.core.outs.iter().enumerate() {
            if !state.held.is_empty() {
                let rank = self.core.ranks[index];
                let held = state.held.len();
                let _ = writeln!(out, "shm: rank {rank}: {held} messages kept back for it");
            }
        }
        if let Some((holder, _)) = lock::holder(&self.core.table.map.head().lock) {
            let _ = writeln!(out, "shm: rank {holder} has the lock of the match list");
        }
    }
}

impl Core {
    /// Takes a posted receive back; answers whether it was still there. Under the lock.
    pub(super) fn cancel_locked(&mut self, index: u32) -> bool {
        let own = self.receives[index as usize];
        if own.state != OwnState::Posted {
            return false;
        }
        let outcome = self.table.engine.cancel(own.handle);
        if outcome != CancelOutcome::Cancelled(Cookie(index)) {
            return false;
        }
        self.free_receive(index);
        true
    }
}

impl fmt::Debug for ShmMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShmMatch")
            .field("rank", &self.core.rank)
            .field(
                "cross_attach",
                &(self.shm.options.cross_attach != CrossAttach::Off),
            )
            .finish_non_exhaustive()
    }
}
