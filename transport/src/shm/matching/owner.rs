//! The owner's side: what arrives, what peers have matched, and the lock of the dead.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::{Relaxed, Release};

use tagwire_base::Rank;
use tagwire_matching::storage::{Storage, Table as EngineTable, Word};
use tagwire_matching::{ArriveOutcome, Cookie, Engine, Handle, PostOutcome};

use super::super::progress::{self, BURST};
use super::chores::Chore;
use super::endpoint::{Core, Ended, OwnState, RECEIVING, ShmMatch};
use super::layout::{
    BEYOND, BLOCK, FREE, Header, INLINE, JOURNAL_HEADER, JOURNAL_IDLE, JOURNAL_RECEIVE, LANDED,
    LONG, POSTED, QUEUED, STREAM, UNIT,
};
use super::lock::{self, Held};
use super::memory::{ArenaStorage, unpack};
use super::send::SendState;
use super::table::{self, Placed, get, load_state, number_of, store_state};
use super::wire::{self, Kind, Message};
use crate::byte::ByteTransport;
use crate::data::{RecvBuffer, WriteRegion};
use crate::message::{
    AmHeader, Arrival, Disposition, EndpointId, Outcome, Payload, PeerEvent, Token, Upcalls,
};
use crate::network::{MatchEnvelope, MatchUpcalls, ReceiveEnd};

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

/// Takes what the byte transport underneath delivers.
pub(super) struct Deliver<'a> {
    core: &'a mut Core,
    /// Who is told at once; without, what ends is told later.
    upcalls: Option<&'a mut dyn MatchUpcalls>,
    /// Messages that count against the sender's allowance.
    messages: u32,
    /// Those of them that took no room.
    matched: u32,
    /// Those beyond it.
    envelopes: u32,
}

impl<'a> Deliver<'a> {
    pub(super) fn new(core: &'a mut Core, upcalls: Option<&'a mut dyn MatchUpcalls>) -> Self {
        Self {
            core,
            upcalls,
            messages: 0,
            matched: 0,
            envelopes: 0,
        }
    }

    #[inline]
    fn tell(&mut self, ended: Ended) {
        match &mut self.upcalls {
            Some(upcalls) => ended.tell(*upcalls),
            None => self.core.ended.push_back(ended),
        }
    }

    #[inline]
    fn arrived(&mut self, from: EndpointId, header: AmHeader, payload: Payload<'_>) {
        let Some(kind) = wire::kind_of(header) else {
            return self.broken(from, "a message of an unknown kind");
        };
        if !kind.is_message() {
            return self.control(from, kind, header.0[1], payload);
        }
        let Some(&source) = self.core.ranks.get(from.index()) else {
            return self.broken(from, "a message before its contact");
        };
        let Some(message) = wire::parse(source, kind, header, payload) else {
            return self.broken(from, "a message with impossible match bits or length");
        };
        if message.asked_for {
            self.envelopes += 1;
        } else {
            self.messages += 1;
        }
        match self.core.table.place(&message, None) {
            Placed::Matched(index) => {
                self.matched += u32::from(!message.asked_for);
                self.matched(index, from, &message);
            }
            Placed::Kept(_) => {}
            Placed::NoBlock => self.core.spill(&message),
            Placed::Full => self.broken(from, "more messages than it was allowed"),
        }
    }

    /// A message for a posted receive.
    #[inline]
    fn matched(&mut self, index: u32, from: EndpointId, message: &Message<'_>) {
        let core = &mut *self.core;
        let Some(own) = core.receives.get_mut(index as usize) else {
            return self.broken(from, "a damaged match list");
        };
        if own.state != OwnState::Posted {
            return self.broken(from, "a damaged match list");
        }
        let envelope = MatchEnvelope {
            source: message.source,
            bits: message.bits,
            length: message.length,
        };
        if message.kind == Kind::Short {
            let token = own.token;
            let len = message.payload.len().min(own.region.len());
            own.land(0, message.payload);
            core.free_receive(index);
            if message.number != 0 {
                core.chores.push_back(Chore::Reply(from, message.number));
            }
            let end = ReceiveEnd::Matched(envelope, Outcome::Done(len as u64));
            return self.tell(Ended::Received(token, end));
        }
        own.envelope = envelope;
        own.from = from;
        own.number = message.number;
        own.streamed = 0;
        if let Some(shared) = core.table.map.receive(index) {
            shared.state.store(FREE, Relaxed);
        }
        own.state = match message.kind {
            Kind::Long => OwnState::Claiming,
            _ => OwnState::Streaming,
        };
        let name = core.receive_name(index);
        core.chores.push_back(match message.kind {
            Kind::Long => Chore::Claim(name, message.ticket),
            _ => Chore::Go(name),
        });
    }

    fn control(&mut self, from: EndpointId, kind: Kind, number: u64, payload: Payload<'_>) {
        match kind {
            Kind::Matched => {
                let Some(slot) = self.core.send_slot(number, from) else {
                    return;
                };
                let send = &self.core.sends[slot as usize];
                if send.state == SendState::AwaitMatched {
                    let (token, len) = (send.token, send.region.len() as u64);
                    self.core.free_send(slot);
                    self.tell(Ended::Sent(token, Outcome::Done(len)));
                }
            }
            Kind::Go => {
                let Some(words) = wire::three_words(payload) else {
                    return self.broken(from, "a request for bytes without a place for them");
                };
                let Some(slot) = self.core.send_slot(number, from) else {
                    return;
                };
                let send = &mut self.core.sends[slot as usize];
                send.target = words[0];
                send.room = (send.region.len() as u64).min(words[1]) as usize;
                send.asked = true;
                match send.state {
                    SendState::AwaitGo => {
                        send.state = SendState::Streaming;
                        self.core.streams.push(slot);
                    }
                    SendState::Offered(ticket) => {
                        self.core.chores.push_back(Chore::Withdraw(from, ticket));
                    }
                    _ => {}
                }
            }
            Kind::Data => self.data(from, number, payload),
            _ => {}
        }
    }

    /// Bytes of a receive that was matched before.
    fn data(&mut self, from: EndpointId, number: u64, payload: Payload<'_>) {
        let index = number as u32;
        let Some(own) = self.core.receives.get_mut(index as usize) else {
            return self.broken(from, "bytes for no receive");
        };
        if own.state != OwnState::Streaming
            || own.from != from
            || own.generation != (number >> 32) as u32
        {
            return;
        }
        own.land(own.streamed, payload);
        own.streamed += payload.len();
        let wanted = own.envelope.length.min(own.region.len() as u64);
        if own.streamed as u64 >= wanted {
            let end = ReceiveEnd::Matched(own.envelope, Outcome::Done(wanted));
            let token = own.token;
            self.core.free_receive(index);
            self.tell(Ended::Received(token, end));
        }
    }

    /// A transfer underneath has ended.
    fn transfer_ended(&mut self, token: Token, outcome: Outcome) {
        if token.0 & RECEIVING != 0 {
            let index = token.0 as u32;
            let Some(own) = self.core.receives.get_mut(index as usize) else {
                return;
            };
            if own.state != OwnState::Claiming {
                return;
            }
            if outcome == Outcome::Impossible {
                own.state = OwnState::Streaming;
                let name = self.core.receive_name(index);
                return self.core.chores.push_back(Chore::Go(name));
            }
            let (token, end) = (own.token, ReceiveEnd::Matched(own.envelope, outcome));
            self.core.free_receive(index);
            return self.tell(Ended::Received(token, end));
        }
        let slot = token.0 as u32;
        let Some(send) = self.core.sends.get_mut(slot as usize) else {
            return;
        };
        match outcome {
            Outcome::Impossible | Outcome::Withdrawn if send.asked => {
                send.state = SendState::Streaming;
                self.core.streams.push(slot);
            }
            Outcome::Impossible | Outcome::Withdrawn => send.state = SendState::AwaitGo,
            outcome => {
                let token = send.token;
                self.core.free_send(slot);
                self.tell(Ended::Sent(token, outcome));
            }
        }
    }

    fn broken(&mut self, from: EndpointId, reason: &'static str) {
        self.core.broken.push((from, reason));
    }
}

impl Upcalls for Deliver<'_> {
    #[inline]
    fn deliver(&mut self, arrival: Arrival<'_>) -> Disposition {
        self.arrived(arrival.from, arrival.header, arrival.payload);
        Disposition::Released
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.transfer_ended(token, outcome);
    }

    fn peer(&mut self, event: PeerEvent) {
        let gone = match &event {
            PeerEvent::Up { endpoint, rank } => {
                self.core.know(*endpoint, *rank);
                None
            }
            PeerEvent::Left(endpoint) | PeerEvent::Failed(endpoint) => Some(*endpoint),
            PeerEvent::Protocol(endpoint, _) => *endpoint,
        };
        if let Some(endpoint) = gone {
            self.core.forget_messages(endpoint);
            // Its allowance is there for others.
            let counts = &self.core.table.map.head().counts;
            counts.starved.store(1, Relaxed);
        }
        self.tell(Ended::Peer(event));
        if let Some(endpoint) = gone {
            self.core.end_operations(endpoint);
        }
    }
}

impl Ended {
    #[inline]
    pub(super) fn tell(self, upcalls: &mut dyn MatchUpcalls) {
        match self {
            Self::Sent(token, outcome) => upcalls.sent(token, outcome),
            Self::Received(token, end) => upcalls.received(token, end),
            Self::Peer(event) => upcalls.peer(event),
        }
    }
}

impl ShmMatch {
    /// The work of a holder of the own lock.
    #[inline]
    pub(super) fn hold(&mut self, peers: bool, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = self.catch_up(Some(&mut *upcalls));
        events += self.drain_rings(Some(&mut *upcalls));
        if peers {
            events += self.attend_peers(&mut *upcalls);
        }
        if !self.core.cancels.is_empty() {
            for name in std::mem::take(&mut self.core.cancels) {
                if let Some(index) = self.core.receive_named(name)
                    && self.core.cancel_locked(index)
                {
                    let token = self.core.receives[index as usize].token;
                    upcalls.received(token, ReceiveEnd::Cancelled);
                }
            }
        }
        if self.core.table.map.head().counts.starved.load(Relaxed) != 0 {
            self.allow_more();
        }
        events
    }

    #[cold]
    fn attend_peers(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut deliver = Deliver::new(&mut self.core, Some(&mut *upcalls));
        let mut events = self.shm.attend_peers(&mut deliver);
        for (endpoint, reason) in std::mem::take(&mut self.core.broken) {
            if self.shm.is_alive(endpoint) {
                let mut deliver = Deliver::new(&mut self.core, Some(&mut *upcalls));
                events += self
                    .shm
                    .break_off(endpoint, reason.to_owned(), &mut deliver);
            }
        }
        if !self.core.late.is_empty() {
            events += self.take_events(Some(&mut *upcalls));
        }
        self.take_failures(upcalls);
        events
    }

    /// Ends the peers that the bootstrap calls failed. Under the lock.
    pub(super) fn take_failures(&mut self, upcalls: &mut dyn MatchUpcalls) {
        for rank in std::mem::take(&mut self.core.failures) {
            let mut deliver = Deliver::new(&mut self.core, Some(&mut *upcalls));
            ByteTransport::peer_failed(&mut self.shm, rank, &mut deliver);
        }
    }

    /// Takes messages out of the rings, and matches them.
    #[inline]
    pub(super) fn drain_rings(&mut self, mut upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let mut events = 0;
        for way in &mut self.shm.inbound {
            if !way.consumer.is_ready() {
                continue;
            }
            let again = upcalls
                .as_mut()
                .map(|upcalls| &mut **upcalls as &mut dyn MatchUpcalls);
            let mut deliver = Deliver::new(&mut self.core, again);
            let taken = progress::drain(way, BURST, &mut deliver);
            let Deliver {
                messages,
                matched,
                envelopes,
                ..
            } = deliver;
            events += taken.count;
            if taken.broken {
                self.shm.attention = true;
            }
            let area = way.consumer.memory();
            store_state(&area.taken, way.consumer.state());
            if envelopes != 0 {
                table::count_envelopes(area, envelopes);
            }
            let allowed = messages != 0 && self.core.table.count_arrivals(area, messages, matched);
            if way.consumer.has_given_credits() | allowed {
                progress::wake_for_credits(way);
            }
        }
        events
    }

    /// Goes on in the rings where a peer has left them.
    #[cold]
    pub(super) fn resume_rings(&mut self) {
        for way in &mut self.shm.inbound {
            let state = load_state(&way.consumer.memory().taken);
            if state != way.consumer.state() {
                way.consumer.resume(state);
            }
        }
    }

    /// Allows senders more that were allowed less than they can use.
    #[cold]
    fn allow_more(&mut self) {
        let counts = &self.core.table.map.head().counts;
        counts.starved.store(0, Relaxed);
        // What peers were allowed that have gone is to be had again.
        let areas = self.shm.inbound.iter().map(|way| way.consumer.memory());
        let outstanding = areas.map(|area| table::common_share(area));
        let outstanding = outstanding.fold(0, u64::saturating_add);
        counts.outstanding.store(outstanding, Relaxed);
        for way in &self.shm.inbound {
            let area = way.consumer.memory();
            if table::open_allowance(area) < super::layout::WINDOW / 2
                && self.core.table.allow(area)
            {
                progress::wake_for_credits(way);
            }
        }
    }

    /// Takes note of the receives that peers have matched.
    #[cold]
    pub(super) fn take_events(&mut self, mut upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let mut events = 0;
        let late = std::mem::take(&mut self.core.late);
        for index in late {
            let again = upcalls
                .as_mut()
                .map(|upcalls| &mut **upcalls as &mut dyn MatchUpcalls);
            events += self.take_matched(index, again);
        }
        // More than there are receives only a damaged list holds.
        for _ in 0..self.core.receives.len() {
            let Some(index) = self.core.table.take_event() else {
                break;
            };
            let again = upcalls
                .as_mut()
                .map(|upcalls| &mut **upcalls as &mut dyn MatchUpcalls);
            events += self.take_matched(index, again);
        }
        events
    }

    /// Takes note of one receive that a peer has matched.
    fn take_matched(&mut self, index: u32, upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let core = &mut self.core;
        let Some(own) = core.receives.get_mut(index as usize) else {
            return 0;
        };
        let Some(shared) = core.table.map.receive(index) else {
            return 0;
        };
        if own.state != OwnState::Posted {
            return 0;
        }
        let state = shared.state.load(std::sync::atomic::Ordering::Acquire);
        let data = [get(&shared.data[0]), get(&shared.data[1])];
        let number = get(&shared.from) as u32;
        let source = (number < self.shm.size()).then(|| Rank::new(number));
        let Some(source) = source else {
            return 0;
        };
        let envelope = MatchEnvelope {
            source,
            bits: get(&shared.found),
            length: get(&shared.length),
        };
        let len = envelope.length.min(own.region.len() as u64);
        let outcome = match state {
            LANDED => Outcome::Done(len),
            INLINE => {
                let bytes = unpack(data);
                let len = (len as usize).min(bytes.len());
                own.land(0, Payload::from_slice(&bytes[..len]));
                Outcome::Done(len as u64)
            }
            BLOCK => {
                let (block, own) = (data[0] as u32, *own);
                let room = len as usize;
                let shown = core.table.map.look(block as usize, room, |payload| {
                    own.land(0, payload);
                });
                core.table.free_block(block, envelope.length as usize);
                shown.map_or(Outcome::Impossible, |()| Outcome::Done(len))
            }
            LONG | STREAM => {
                // Its area may be there and not looked at: this rank may have spoken to it first.
                let from = self.shm.by_rank.get(&source).copied();
                let heard = |from: &EndpointId| self.shm.peers[from.index()].inbound.is_some();
                let Some(from) = from.filter(heard) else {
                    core.late.push(index);
                    return 0;
                };
                own.envelope = envelope;
                own.from = from;
                own.number = get(&shared.number);
                own.streamed = 0;
                shared.state.store(FREE, Relaxed);
                own.state = match state {
                    LONG => OwnState::Claiming,
                    _ => OwnState::Streaming,
                };
                let name = core.receive_name(index);
                core.chores.push_back(match state {
                    LONG => Chore::Adopt(name, data),
                    _ => Chore::Go(name),
                });
                return 1;
            }
            _ => return 0,
        };
        let token = own.token;
        core.free_receive(index);
        let end = Ended::Received(token, ReceiveEnd::Matched(envelope, outcome));
        match upcalls {
            Some(upcalls) => end.tell(upcalls),
            None => core.ended.push_back(end),
        }
        1
    }

    // ---- the lock of the dead

    /// Takes the lock over if its holder has died.
    #[cold]
    pub(super) fn take_over(&mut self) -> Option<Held> {
        let (holder, _) = lock::holder(&self.core.table.map.head().lock)?;
        let rank = Rank::new(holder.min(Rank::MAX));
        let dead = if holder >= self.shm.size() || holder == self.core.rank.as_u32() {
            // No correct peer writes this.
            true
        } else {
            let failed = self.core.failures.contains(&rank);
            match self.shm.by_rank.get(&rank) {
                Some(endpoint) => self.shm.is_over(*endpoint, failed),
                None => failed || self.shm.lost.contains(&rank) || self.shm.unknown_is_over(rank),
            }
        };
        dead.then(|| self.take_over_from(rank)).flatten()
    }

    /// Takes the lock over from a rank that has died.
    pub(super) fn take_over_from(&mut self, rank: Rank) -> Option<Held> {
        let word = &self.core.table.map.head().lock;
        let (holder, found) = lock::holder(word)?;
        if holder != rank.as_u32() {
            return None;
        }
        let held = lock::take_over(word, found, self.core.rank.as_u32())?;
        tracing::warn!(rank = %rank, "the match list is made anew: its visitor has died");
        self.recover();
        Some(held)
    }

    /// Makes the engine anew from what receives and headers say, after the death of a holder.
    fn recover(&mut self) {
        self.finish_journal();
        self.core.rebuild();
        self.resume_rings();
        self.core.seen_visits = self.core.table.map.head().visits.load(Relaxed);
    }

    /// Settles whether the message that the dead holder was dealing with counts as taken.
    fn finish_journal(&mut self) {
        let map = &self.core.table.map;
        let journal = &map.head().journal;
        let what = get(&journal.what);
        journal.what.store(JOURNAL_IDLE, Relaxed);
        let index = what as u32;
        let taken = match what & !u64::from(u32::MAX) {
            JOURNAL_RECEIVE => map
                .receive(index)
                .is_some_and(|shared| !matches!(get(&shared.state), FREE | POSTED)),
            JOURNAL_HEADER => map
                .header(index)
                .is_some_and(|header| get(&header.state) & 0xff == QUEUED),
            _ => false,
        };
        let Some(rank) = (get(&journal.rank) as u32).checked_sub(1) else {
            return;
        };
        if !taken || rank >= self.shm.size() {
            return;
        }
        if let Ok(area) = self.shm.segment.map_area(rank) {
            area.taken.offset.store(get(&journal.offset), Relaxed);
            area.taken.head.store(get(&journal.head), Release);
        }
    }
}

impl Core {
    /// What is kept under a header, if anything is.
    pub(super) fn kept(&self, index: u32) -> Option<Kept> {
        let header = self.table.map.header(index)?;
        let state = get(&header.state);
        if state & 0xff == FREE {
            return None;
        }
        let source = get(&header.source) as u32;
        if source > Rank::MAX {
            return None;
        }
        Some(Kept {
            envelope: MatchEnvelope {
                source: Rank::new(source),
                bits: get(&header.bits),
                length: get(&header.length),
            },
            kind: Kind::from_byte((state >> 8) as u8).filter(|kind| kind.is_message())?,
            number: number_of(header),
            counted: state & BEYOND == 0,
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
    fn spill(&mut self, message: &Message<'_>) {
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

    /// Takes the messages of a peer out of matching whose bytes are not to be had any more.
    fn forget_messages(&mut self, endpoint: EndpointId) {
        let Some(&rank) = self.ranks.get(endpoint.index()) else {
            return;
        };
        let fresh = self.table.map.head().headers.fresh.load(Relaxed);
        for index in 0..fresh.min(self.table.map.headers().len() as u32) {
            let Some(kept) = self.kept(index) else {
                continue;
            };
            let queued = |header: &Header| get(&header.state) & 0xff == QUEUED;
            if kept.kind == Kind::Short
                || kept.envelope.source != rank
                || !self.table.map.header(index).is_some_and(queued)
            {
                continue;
            }
            let link = self.table.map.header(index).map_or(0, |h| get(&h.link));
            let handle = Handle::from_parts(link as u32, (link >> 32) as u32);
            let _ = self.table.engine.discard(handle);
            self.table.free_header(index);
        }
    }

    /// Ends what waits for a peer that is gone, but for transfers, which end by themselves.
    fn end_operations(&mut self, endpoint: EndpointId) {
        for slot in 0..self.sends.len() as u32 {
            let send = &self.sends[slot as usize];
            if send.to == endpoint && !matches!(send.state, SendState::Free | SendState::Offered(_))
            {
                let token = send.token;
                self.free_send(slot);
                self.ended
                    .push_back(Ended::Sent(token, Outcome::PeerFailed));
            }
        }
        self.streams
            .retain(|slot| self.sends[*slot as usize].state == SendState::Streaming);
        if let Some(out) = self.outs.get_mut(endpoint.index()) {
            out.held.clear();
            out.compared = 0;
            out.table = None;
        }
        for index in 0..self.receives.len() as u32 {
            let own = &self.receives[index as usize];
            if own.state == OwnState::Streaming && own.from == endpoint {
                let end = ReceiveEnd::Matched(own.envelope, Outcome::PeerFailed);
                let token = own.token;
                self.free_receive(index);
                self.ended.push_back(Ended::Received(token, end));
            }
        }
    }

    /// Makes engine, lists and counts anew.
    fn rebuild(&mut self) {
        let storage = ArenaStorage(self.table.map.clone());
        storage.control().reset();
        for table in [EngineTable::First, EngineTable::Second] {
            storage
                .table(table)
                .iter()
                .for_each(|word| word.store(tagwire_matching::storage::NIL));
        }
        self.rebuild_headers();
        let head = self.table.map.head();
        head.first_event.store(0, Relaxed);
        head.last_event.store(0, Relaxed);
        let mut posted: Vec<u32> = (0..self.receives.len() as u32)
            .filter(|index| self.receives[*index as usize].state == OwnState::Posted)
            .collect();
        posted.sort_by_key(|index| self.receives[*index as usize].sequence);
        for index in posted {
            let own = self.receives[index as usize];
            let state = self
                .table
                .map
                .receive(index)
                .map_or(FREE, |s| get(&s.state));
            if state != POSTED {
                self.late.push(index);
                continue;
            }
            if let Some(pattern) = table::pattern(&own.pattern) {
                match self.table.engine.post(pattern, Cookie(index)) {
                    PostOutcome::Queued(handle) => self.receives[index as usize].handle = handle,
                    // Only a damaged target gets here: receives and messages that fit each
                    // other were never both in it.
                    PostOutcome::Matched(_) | PostOutcome::Full => {}
                }
            }
        }
    }

    fn rebuild_headers(&mut self) {
        let map = self.table.map.clone();
        let head = map.head();
        let fresh = (head.headers.fresh.load(Relaxed) as usize + 1).min(map.headers().len());
        let mut queued = Vec::new();
        let mut live_units = 0_u32;
        let (mut end, mut blocks, mut live) = (0_u32, 0_u32, 0_u32);
        let mut note_block = |block: u32, len: u64| {
            let units = (len as usize).div_ceil(UNIT).max(1).next_power_of_two() as u32;
            live_units = live_units.wrapping_add(units);
            blocks += 1;
            end = end.max(block.saturating_add(units));
        };
        head.headers.free.store(0, Relaxed);
        for index in (0..fresh as u32).rev() {
            let Some(header) = map.header(index) else {
                continue;
            };
            match self.kept(index) {
                Some(kept) => {
                    live += 1;
                    if kept.kind == Kind::Short && kept.data[0] != SPILLED {
                        note_block(kept.data[0] as u32, kept.envelope.length);
                    }
                    if get(&header.state) & 0xff == QUEUED {
                        queued.push((get(&header.sequence), index, kept.envelope));
                    }
                }
                None => {
                    header.state.store(FREE, Relaxed);
                    header
                        .link
                        .store(u64::from(head.headers.free.load(Relaxed)), Relaxed);
                    head.headers.free.store(index + 1, Relaxed);
                }
            }
        }
        head.headers.fresh.store(fresh as u32, Relaxed);
        head.headers.live.store(live, Relaxed);
        for (index, own) in self.receives.iter().enumerate() {
            if own.state == OwnState::Posted
                && let Some(shared) = map.receive(index as u32)
                && get(&shared.state) == BLOCK
            {
                note_block(get(&shared.data[0]) as u32, get(&shared.length));
            }
        }
        head.blocks.live.store(blocks, Relaxed);
        head.blocks.used.store(live_units, Relaxed);
        head.blocks.fresh.store(end, Relaxed);
        head.blocks
            .free
            .iter()
            .for_each(|free| free.store(0, Relaxed));
        queued.sort_unstable_by_key(|(sequence, ..)| *sequence);
        for (_, index, envelope) in queued {
            if let Some(envelope) = table::envelope(envelope.source, envelope.bits)
                && let ArriveOutcome::Queued(handle) =
                    self.table.engine.arrive(envelope, Cookie(index))
                && let Some(header) = map.header(index)
            {
                header.link.store(
                    u64::from(handle.slot()) | u64::from(handle.generation()) << 32,
                    Relaxed,
                );
            }
        }
    }
}

/// In place of a block: the bytes are in private memory.
const SPILLED: u64 = u64::MAX;
