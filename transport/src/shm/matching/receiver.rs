//! The receiving half: the own match list, the receives, and what each message needs after it has matched.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tagwire_base::Rank;
use tagwire_matching::{CancelOutcome, Cookie, Engine, Pattern, PostOutcome};

use crate::data::WriteRegion;
use crate::matching::{MatchEnvelope, MatchPattern, MatchUpcalls, Posted, ReceiveEnd};
use crate::message::{EndpointId, Outcome, Payload, Token};
use crate::shm::matching::completions::{Completions, Ended, lend};
use crate::shm::matching::layout::WINDOW;
use crate::shm::matching::list::{Kept, MatchList};
use crate::shm::matching::memory::unpack;
use crate::shm::matching::packed::{EntryName, ReceiveState};
use crate::shm::matching::pending::{Operation, Pending};
use crate::shm::matching::receives::{ReceivePhase, Receives};
use crate::shm::matching::table::{self, get, load_state};
use crate::shm::matching::wire::{Kind, Message};
use crate::shm::{Shm, waiter};

/// The receiving half of a rank.
pub(super) struct Receiver {
    pub(super) rank: Rank,
    pub(super) list: MatchList,
    pub(super) receives: Receives,
    pub(super) pending: Pending,
    /// Receives that peers matched of whom there is no contact yet.
    pub(super) late: Vec<u32>,
    /// Receives to be cancelled when the lock is to be had.
    pub(super) cancels: Vec<EntryName>,
    /// The count of visits that is taken note of.
    seen_visits: u32,
    /// Unexpected messages whose bytes came after the match.
    pub(super) fetched: u64,
}

/// What became of a receive under the lock.
pub(super) enum Placing {
    Queued,
    /// The message under this header is for it.
    Kept(u32),
    Full,
}

/// How the bytes of a matched message come.
#[derive(Clone, Copy)]
enum Fetch {
    /// By the offer with this ticket.
    Claim([u64; 2]),
    /// By the same, which the sender has claimed.
    Adopt([u64; 2]),
    /// Through the ring.
    Ask,
}

impl Fetch {
    const fn of(kind: Kind, ticket: [u64; 2]) -> Self {
        match kind {
            Kind::Long => Self::Claim(ticket),
            _ => Self::Ask,
        }
    }
}

/// What a peer did that no correct peer does.
pub(super) type Breach = &'static str;

impl Receiver {
    pub(super) fn new(rank: Rank, list: MatchList) -> Self {
        Self {
            rank,
            receives: Receives::new(list.table.map.clone()),
            list,
            pending: Pending::default(),
            late: Vec::new(),
            cancels: Vec::new(),
            seen_visits: 0,
            fetched: 0,
        }
    }

    // ---- what peers have done under the lock

    /// Returns whether peers have taken the lock since this rank has last taken note of it.
    #[inline]
    pub(super) fn was_visited(&self) -> bool {
        self.list.table.map.head().visits.load(Relaxed) != self.seen_visits
    }

    /// Does what every holder does first: goes on where a peer has left the rings, and takes note of what
    /// peers have matched.
    #[inline]
    pub(super) fn catch_up(
        &mut self,
        shm: &mut Shm,
        completions: &mut Completions,
        upcalls: Option<&mut dyn MatchUpcalls>,
    ) -> usize {
        if !self.was_visited() && self.late.is_empty() {
            return 0;
        }
        self.resume_rings(shm);
        self.take_events(shm, completions, upcalls)
    }

    /// Takes note that engine and lists were made anew, and of the receives that had been matched then.
    pub(super) fn is_remade(&mut self, shm: &mut Shm, late: Vec<u32>) {
        self.late.extend(late);
        self.resume_rings(shm);
    }

    /// Goes on in the rings where a peer has left them.
    #[cold]
    fn resume_rings(&mut self, shm: &mut Shm) {
        self.seen_visits = self.list.table.map.head().visits.load(Relaxed);
        for way in &mut shm.inbound {
            let state = load_state(&way.consumer.memory().taken);
            if state != way.consumer.state() {
                way.consumer.resume(state);
            }
        }
    }

    /// Takes note of the receives that peers have matched.
    #[cold]
    pub(super) fn take_events(
        &mut self,
        shm: &Shm,
        completions: &mut Completions,
        mut upcalls: Option<&mut dyn MatchUpcalls>,
    ) -> usize {
        let mut events = 0;
        for index in std::mem::take(&mut self.late) {
            events += self.take_matched(index, shm, completions, lend(&mut upcalls));
        }
        // More than there are receives only a damaged list holds.
        for _ in 0..self.receives.entries.len() {
            let Some(index) = self.list.table.take_event() else {
                break;
            };
            events += self.take_matched(index, shm, completions, lend(&mut upcalls));
        }
        events
    }

    /// Takes note of one receive that a peer has matched.
    fn take_matched(
        &mut self,
        index: u32,
        shm: &Shm,
        completions: &mut Completions,
        upcalls: Option<&mut dyn MatchUpcalls>,
    ) -> usize {
        let table = &self.list.table;
        let Some(own) = self.receives.entries.get_mut(index as usize) else {
            return 0;
        };
        let Some(shared) = table.map.receive(index) else {
            return 0;
        };
        if own.phase != ReceivePhase::Posted {
            return 0;
        }
        let Some(state) = ReceiveState::unpack(shared.state.load(Acquire)) else {
            return 0;
        };
        let data = [get(&shared.data[0]), get(&shared.data[1])];
        let number = get(&shared.from) as u32;
        if number >= shm.size() {
            return 0;
        }
        let envelope = MatchEnvelope {
            source: Rank::new(number),
            bits: get(&shared.found),
            length: get(&shared.length),
        };
        let len = envelope.length.min(own.region.len() as u64);
        let outcome = match state {
            ReceiveState::Free | ReceiveState::Posted => return 0,
            ReceiveState::Landed => Outcome::Done(len),
            ReceiveState::Inline => {
                let bytes = unpack(data);
                let len = (len as usize).min(bytes.len());
                own.write(0, Payload::from_slice(&bytes[..len]));
                Outcome::Done(len as u64)
            }
            ReceiveState::Block => {
                let block = data[0] as u32;
                let shown = table.map.look(block as usize, len as usize, |payload| {
                    own.write(0, payload);
                });
                table.free_block(block, envelope.length as usize);
                shown.map_or(Outcome::Impossible, |()| Outcome::Done(len))
            }
            ReceiveState::Long | ReceiveState::Stream => {
                // Its area may be there and not looked at: this rank may have spoken to it first.
                let from = shm.by_rank.get(&envelope.source).copied();
                let heard = |from: &EndpointId| shm.peers[from.index()].inbound.is_some();
                let Some(from) = from.filter(heard) else {
                    self.late.push(index);
                    return 0;
                };
                let how = match state {
                    ReceiveState::Long => Fetch::Adopt(data),
                    _ => Fetch::Ask,
                };
                let number = get(&shared.number);
                self.fetch(index, envelope, from, number, how);
                return 1;
            }
        };
        own.envelope = envelope;
        let end = self.receives.end(index, outcome);
        completions.pass(end, upcalls);
        1
    }

    // ---- posting and cancelling, under the lock

    /// Posts a receive, unless its message is kept.
    #[inline]
    pub(super) fn post(
        &mut self,
        pattern: MatchPattern,
        wanted: Pattern,
        region: WriteRegion,
        token: Token,
    ) -> Placing {
        let Some(index) = self.receives.next() else {
            return Placing::Full;
        };
        match self.list.table.engine.post(wanted, Cookie(index)) {
            PostOutcome::Queued(handle) => {
                self.receives.post(index, handle, pattern, region, token);
                Placing::Queued
            }
            PostOutcome::Matched(cookie) => Placing::Kept(cookie.0),
            PostOutcome::Full => Placing::Full,
        }
    }

    /// Receives the message that is kept under a header, which has left matching. The contact of a sender
    /// that waits for a reply has been looked at.
    pub(super) fn receive_kept(
        &mut self,
        shm: &Shm,
        header: u32,
        kept: &Kept,
        region: WriteRegion,
        token: Token,
    ) -> Posted {
        let envelope = kept.envelope;
        let from = if kept.is_answered() {
            shm.by_rank.get(&envelope.source).copied()
        } else {
            None
        };
        if kept.kind == Kind::Short {
            let len = envelope.length.min(region.len() as u64) as usize;
            // SAFETY: the receive is being posted with this buffer, which is lent.
            unsafe { self.list.copy_kept(header, kept, region, len) };
            self.list.release_kept(header, kept);
            self.give_back(shm, kept);
            if let Some(from) = from.filter(|_| kept.number != 0) {
                self.pending.push(Operation::Reply(from, kept.number));
            }
            return Posted::Done(ReceiveEnd::Matched(envelope, Outcome::Done(len as u64)));
        }
        self.list.table.free_header(header);
        self.give_back(shm, kept);
        self.fetched += 1;
        let opened = from.and_then(|from| Some((from, self.receives.open(region, token)?)));
        let Some((from, index)) = opened else {
            return Posted::Done(ReceiveEnd::Matched(envelope, Outcome::PeerFailed));
        };
        let how = Fetch::of(kept.kind, kept.data);
        self.fetch(index, envelope, from, kept.number, how);
        Posted::Open
    }

    /// Begins to fetch the bytes of a message for the receive that it has matched.
    fn fetch(
        &mut self,
        index: u32,
        envelope: MatchEnvelope,
        from: EndpointId,
        number: u64,
        how: Fetch,
    ) {
        let name = self.receives.name(index);
        let (phase, operation) = match how {
            Fetch::Claim(ticket) => (ReceivePhase::Claiming, Operation::Claim(name, ticket)),
            Fetch::Adopt(ticket) => (ReceivePhase::Claiming, Operation::Adopt(name, ticket)),
            Fetch::Ask => (ReceivePhase::Streaming, Operation::Ask(name)),
        };
        let own = &mut self.receives.entries[index as usize];
        own.matched(phase, envelope, from, number);
        self.receives.hide(index);
        self.pending.push(operation);
    }

    /// Returns the end of a receive whose message is not under the header that the engine names. Only a broken
    /// peer leaves this behind.
    #[cold]
    pub(super) fn damaged(&self) -> Posted {
        let envelope = MatchEnvelope {
            source: self.rank,
            bits: 0,
            length: 0,
        };
        Posted::Done(ReceiveEnd::Matched(envelope, Outcome::Impossible))
    }

    /// Cancels a posted receive. Returns whether it was still there.
    pub(super) fn cancel(&mut self, index: u32) -> bool {
        let own = &self.receives.entries[index as usize];
        if own.phase != ReceivePhase::Posted {
            return false;
        }
        let outcome = self.list.table.engine.cancel(own.handle);
        if outcome != CancelOutcome::Cancelled(Cookie(index)) {
            return false;
        }
        self.receives.free(index);
        true
    }

    /// Cancels what could not be cancelled in its own call.
    #[inline]
    pub(super) fn run_cancels(&mut self, upcalls: &mut dyn MatchUpcalls) {
        if self.cancels.is_empty() {
            return;
        }
        for name in std::mem::take(&mut self.cancels) {
            if let Some(index) = self.receives.named(name)
                && self.cancel(index)
            {
                let token = self.receives.entries[index as usize].token;
                upcalls.received(token, ReceiveEnd::Cancelled);
            }
        }
    }

    // ---- what arrives

    /// Gives a message to the receive that it has matched; returns its end, if that is all.
    #[inline(always)]
    pub(super) fn matched(
        &mut self,
        index: u32,
        from: EndpointId,
        message: &Message<'_>,
    ) -> Result<Option<Ended>, Breach> {
        let Some(own) = self.receives.entries.get_mut(index as usize) else {
            return Err("a damaged match list");
        };
        if own.phase != ReceivePhase::Posted {
            return Err("a damaged match list");
        }
        let envelope = MatchEnvelope {
            source: message.source,
            bits: message.bits,
            length: message.length,
        };
        if message.kind == Kind::Short {
            let token = own.token;
            let len = message.payload.len().min(own.region.len());
            own.write(0, message.payload);
            self.receives.free(index);
            if message.number != 0 {
                self.pending.push(Operation::Reply(from, message.number));
            }
            let end = ReceiveEnd::Matched(envelope, Outcome::Done(len as u64));
            return Ok(Some(Ended::Received(token, end)));
        }
        let how = Fetch::of(message.kind, message.ticket);
        self.fetch(index, envelope, from, message.number, how);
        Ok(None)
    }

    /// Takes bytes of a receive that was matched before; returns its end with the last ones.
    pub(super) fn data(
        &mut self,
        from: EndpointId,
        number: u64,
        payload: Payload<'_>,
    ) -> Result<Option<Ended>, Breach> {
        let EntryName { index, generation } = EntryName::unpack(number);
        let Some(own) = self.receives.entries.get_mut(index as usize) else {
            return Err("bytes for no receive");
        };
        if own.phase != ReceivePhase::Streaming || own.from != from || own.generation != generation
        {
            return Ok(None);
        }
        own.write(own.streamed, payload);
        own.streamed += payload.len();
        let wanted = own.envelope.length.min(own.region.len() as u64);
        let is_all = own.streamed as u64 >= wanted;
        Ok(is_all.then(|| self.receives.end(index, Outcome::Done(wanted))))
    }

    /// Takes the end of a receive's transfer; returns the end of the receive, if that is all.
    pub(super) fn transfer_ended(&mut self, index: u32, outcome: Outcome) -> Option<Ended> {
        let own = self.receives.entries.get_mut(index as usize)?;
        if own.phase != ReceivePhase::Claiming {
            return None;
        }
        if outcome == Outcome::Impossible {
            own.phase = ReceivePhase::Streaming;
            let name = self.receives.name(index);
            self.pending.push(Operation::Ask(name));
            return None;
        }
        Some(self.receives.end(index, outcome))
    }

    /// Ends the receives whose bytes a peer that is gone would have sent.
    pub(super) fn end_peer(&mut self, endpoint: EndpointId, completions: &mut Completions) {
        for index in 0..self.receives.entries.len() as u32 {
            let own = &self.receives.entries[index as usize];
            if own.phase == ReceivePhase::Streaming && own.from == endpoint {
                completions.push(self.receives.end(index, Outcome::PeerFailed));
            }
        }
    }

    // ---- what senders may send

    /// Lets the sender of a message that is kept no more send another one, where that is due to it.
    fn give_back(&self, shm: &Shm, kept: &Kept) {
        let Some(at) = shm.by_rank.get(&kept.envelope.source) else {
            return;
        };
        let peer = &shm.peers[at.index()];
        if let Some(area) = peer.inbound.as_ref().filter(|_| kept.counted)
            && self.list.table.give_back(area)
        {
            peer.nudge();
        }
    }

    /// Returns whether there is a sender that was allowed less than it can use.
    #[inline]
    pub(super) fn has_starved(&self) -> bool {
        self.list.table.map.head().counts.starved.load(Relaxed) != 0
    }

    /// Allows senders more that were allowed less than they can use.
    #[cold]
    pub(super) fn allow_more(&self, shm: &Shm) {
        let counts = &self.list.table.map.head().counts;
        counts.starved.store(0, Relaxed);
        // What peers were allowed that have gone is to be had again.
        let areas = shm.inbound.iter().map(|way| way.consumer.memory());
        let outstanding = areas.map(|area| table::common_share(area));
        let outstanding = outstanding.fold(0, u64::saturating_add);
        counts.outstanding.store(outstanding, Relaxed);
        for way in &shm.inbound {
            let area = way.consumer.memory();
            if table::open_allowance(area) < WINDOW / 2 && self.list.table.allow(area) {
                way.wake_for_credits();
            }
        }
    }

    /// Returns whether senders keep messages back.
    #[inline]
    pub(super) fn is_held_back(&self) -> bool {
        self.list.table.map.head().counts.holders.load(Relaxed) != 0
    }

    /// Makes senders that keep messages back look into the match list, and, for a probe, send
    /// envelopes as far as there are headers.
    #[cold]
    pub(super) fn rouse_holders(&self, shm: &Shm, envelopes: bool) {
        let map = &self.list.table.map;
        for way in &shm.inbound {
            let area = way.consumer.memory();
            if area.holding.word.load(Relaxed) == 0 {
                continue;
            }
            if envelopes {
                let live = map.head().headers.live.load(Relaxed) as usize;
                let room = map.headers().len().saturating_sub(live);
                let allowed = &area.allowed.envelopes;
                let received = area.taken.envelopes.load(Relaxed);
                let open = allowed.load(Relaxed).saturating_sub(received);
                if open < ENVELOPES && room > 2 * ENVELOPES as usize * shm.inbound.len() {
                    allowed.store(received + open + ENVELOPES, Release);
                }
            }
            if let Some(header) = &way.header {
                waiter::wake_if_armed(header);
            }
        }
    }
}

/// How many envelopes a probe that finds nothing asks each sender for that keeps some back.
const ENVELOPES: u64 = 16;
