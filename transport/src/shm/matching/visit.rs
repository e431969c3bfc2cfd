//! A sender in its receiver's match list.

use std::sync::atomic::Ordering::{Relaxed, Release};

use tagwire_matching::Engine;

use super::super::layout::ANSWER_REFUSED;
use super::super::peer::{Peer, PeerState};
use super::super::ring::{Consumer, Pop};
use super::super::segment::AreaMap;
use super::super::transfers::claim_for_receiver;
use super::super::waiter;
use super::endpoint::ShmMatch;
use super::layout::{BLOCK, INLINE, LANDED, LONG, OPEN, Receive, STREAM};
use super::lock;
use super::memory::pack;
use super::send::{SendSlot, SendState};
use super::table::{Entry, Placed, Table, count_envelopes, get, load_state, store_state};
use super::wire::{self, Kind, Message};
use crate::byte::{Offer, Ticket};
use crate::message::{EndpointId, Outcome, Payload, Token};
use crate::network::MatchUpcalls;

/// Messages of the ring that one visit deals with: a bound on how long the lock is held.
const MESSAGES: u32 = 32;

/// Messages that are kept back that one visit compares with what is posted.
const COMPARED: usize = 256;

/// Longest message that a receive's entry holds.
const ENTRY: usize = 16;

impl ShmMatch {
    /// Looks after what lies untaken at peers, or is kept back.
    #[cold]
    pub(super) fn visit_peers(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = 0;
        let mut at = 0;
        while let Some(&to) = self.core.dirty.get(at) {
            events += self.visit(to);
            let out = &mut self.core.outs[to.index()];
            let peer = &self.shm.peers[to.index()];
            let untaken = peer.state == PeerState::Alive
                && self.shm.outbound[to.index()].as_ref().is_some_and(|way| {
                    let taken = &way.producer.memory().taken;
                    way.producer.sent() != get(&taken.head) as u32
                });
            if untaken || !out.held.is_empty() {
                at += 1;
            } else {
                out.dirty = false;
                self.core.dirty.swap_remove(at);
            }
        }
        events + self.tell_ended(upcalls)
    }

    /// Wakes peers that sleep on messages of ours.
    pub(super) fn wake_untaken(&self) {
        for &to in &self.core.dirty {
            if let Some(way) = &self.shm.outbound[to.index()] {
                waiter::wake_if_armed(&way.header);
            }
        }
    }

    /// Matches, for a peer, what this rank has sent it; answers how many messages were dealt with.
    fn visit(&mut self, to: EndpointId) -> usize {
        let pid = self.shm.attach(to);
        let peer = &self.shm.peers[to.index()];
        let Some(way) = &self.shm.outbound[to.index()] else {
            return 0;
        };
        let (Some(area), Some(target)) = (&peer.outbound, &peer.target) else {
            return 0;
        };
        let (area, head) = (area.clone(), target.head());
        if head.open.load(Relaxed) != OPEN {
            return 0;
        }
        let sent = way.producer.sent();
        let untaken = get(&area.taken.head) as u32 != sent;
        let out = &mut self.core.outs[to.index()];
        let posts = head.counts.posts.load(std::sync::atomic::Ordering::Acquire);
        if out.seen_posts != posts {
            // What was compared before may be for the receives posted since.
            out.compared = 0;
        }
        if !untaken && out.compared >= out.held.len() {
            return 0;
        }
        let word = head.lock.load(Relaxed);
        let for_held = !untaken && out.compared < out.held.len();
        if word as u32 != 0 || (word != out.seen_lock && !for_held) {
            // Somebody has had the lock since the last look: the peer is inside its own calls, and
            // takes what is in its ring itself.
            out.seen_lock = word;
            return 0;
        }
        let mut table = out
            .table
            .take()
            .unwrap_or_else(|| Table::attach(target.clone()));
        let Some(held) = lock::try_lock(&head.lock, self.core.rank.as_u32()) else {
            self.core.outs[to.index()].table = Some(table);
            return 0;
        };
        if area.answer.word.load(Relaxed) == ANSWER_REFUSED {
            // The owner has given this rank up.
            lock::unlock_visit(&head.lock, held);
            self.core.outs[to.index()].table = Some(table);
            return 0;
        }
        reach(Point::Locked);
        let mut visit = Visit {
            table: &mut table,
            area: &area,
            pid,
            peer,
            matched: 0,
            answered: Vec::new(),
        };
        let taken = visit.empty_ring(self.core.rank.as_u32());
        let answered = visit.answered;
        let mut matched = 0;
        if get(&area.taken.head) as u32 == sent {
            matched = self.match_held(to, &mut table, &area, pid, posts);
        }
        let changed = taken + matched != 0;
        let head = table.map.head();
        if changed {
            head.visits
                .store(head.visits.load(Relaxed).wrapping_add(1), Release);
        }
        lock::unlock_visit(&head.lock, held);
        let unlocked = head.lock.load(Relaxed);
        // Also where nothing has changed: the owner may have found the lock taken, and sleep.
        self.shm.peers[to.index()].nudge();
        for number in answered {
            if let Some(slot) = self.core.send_slot(number, to)
                && self.core.sends[slot as usize].state == SendState::AwaitMatched
            {
                let len = self.core.sends[slot as usize].region.len() as u64;
                self.core.sent(slot, Outcome::Done(len));
            }
        }
        let out = &mut self.core.outs[to.index()];
        out.seen_lock = unlocked;
        out.table = Some(table);
        (taken + matched) as usize
    }

    /// Compares what is kept back for a peer with what it has posted. What its ring holds is
    /// earlier: there must be nothing in it.
    fn match_held(
        &mut self,
        to: EndpointId,
        table: &mut Table,
        area: &AreaMap,
        pid: Option<u32>,
        posts: u64,
    ) -> u32 {
        let mut matched = 0;
        let out = &mut self.core.outs[to.index()];
        out.seen_posts = posts;
        let mut at = out.compared.min(out.held.len());
        for _ in 0..COMPARED {
            if table.engine.posted_len() == 0 {
                at = self.core.outs[to.index()].held.len();
                break;
            }
            let Some(&slot) = self.core.outs[to.index()].held.get(at) else {
                break;
            };
            let send = self.core.sends[slot as usize];
            let Some(index) = table.take_posted(self.core.rank, send.bits) else {
                at += 1;
                continue;
            };
            self.core.outs[to.index()].held.remove(at);
            matched += 1;
            self.deliver_held(to, table, area, pid, slot, &send, index);
        }
        self.core.outs[to.index()].compared = at;
        if matched != 0 && self.core.outs[to.index()].held.is_empty() {
            self.say_holding(to, false);
        }
        matched
    }

    /// Delivers a message that was kept back to the receive that takes it.
    #[allow(clippy::too_many_arguments)]
    fn deliver_held(
        &mut self,
        to: EndpointId,
        table: &Table,
        area: &AreaMap,
        pid: Option<u32>,
        slot: u32,
        send: &SendSlot,
        index: u32,
    ) {
        let Some(receive) = table.map.receive(index) else {
            return;
        };
        let number = u64::from(slot) | u64::from(send.generation) << 32;
        let len = send.region.len();
        let (address, room) = (get(&receive.address), get(&receive.capacity));
        note(
            receive,
            self.core.rank.as_u32(),
            send.bits,
            len as u64,
            number,
        );
        let buffer = send.buffer();
        let bytes = buffer.bytes(0..len).unwrap_or_default();
        let short = len.min(room as usize);
        let state = if short <= ENTRY {
            land_in_entry(receive, Payload::from_slice(&bytes[..short]));
            INLINE
        } else if len <= super::super::layout::MAX_SEND
            && self.shm.peers[to.index()].bring(pid, address, Payload::from_slice(bytes), short)
        {
            LANDED
        } else {
            self.offer_held(to, area, pid, slot, send, receive)
        };
        receive.state.store(state, Release);
        table.add_event(index);
        if state == INLINE || state == LANDED {
            self.core.sent(slot, Outcome::Done(len as u64));
        }
    }

    fn offer_held(
        &mut self,
        to: EndpointId,
        area: &AreaMap,
        pid: Option<u32>,
        slot: u32,
        send: &SendSlot,
        receive: &Receive,
    ) -> u64 {
        let (address, room) = (get(&receive.address), get(&receive.capacity));
        if (pid.is_some() || self.shm.may_map(to, send.region))
            && let Offer::Open(ticket) =
                self.shm
                    .open_offer(to, &send.buffer(), Token(u64::from(slot)))
        {
            self.core.sends[slot as usize].state = SendState::Offered(ticket);
            let peer = &self.shm.peers[to.index()];
            if claim_for_receiver(area, ticket, (address, room), peer, pid) {
                receive.data[0].store(ticket.0[0], Relaxed);
                receive.data[1].store(ticket.0[1], Relaxed);
                return LONG;
            }
            self.shm.drop_offer(to, ticket);
        }
        self.core.sends[slot as usize].state = SendState::AwaitGo;
        STREAM
    }
}

/// Places in a visit at which tests let the visitor die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(super) enum Point {
    /// It has the lock.
    Locked,
    /// A receive has left the engine.
    Matched,
    /// The offer of a long message is claimed for its receiver.
    Claimed,
    /// The receive says that it has matched.
    Landed,
    /// The message is matched or kept.
    Dealt,
    /// The ring says so, too.
    Taken,
}

#[cfg(not(test))]
#[inline(always)]
const fn reach(_: Point) {}

#[cfg(test)]
fn reach(point: Point) {
    super::tests::reach(point);
}

/// One visit, under the lock.
struct Visit<'a> {
    table: &'a mut Table,
    area: &'a AreaMap,
    /// The receiver's process, if it can be attached to.
    pid: Option<u32>,
    peer: &'a Peer,
    /// Messages that count against the allowance and took no room.
    matched: u32,
    /// The own numbers of synchronous short messages that have matched.
    answered: Vec<u64>,
}

impl Visit<'_> {
    /// Takes the own messages out of the ring, in order, up to one that only the owner can take.
    fn empty_ring(&mut self, rank: u32) -> u32 {
        let area = self.area.clone();
        let mut consumer = Consumer::new(area.clone());
        consumer.resume(load_state(&area.taken));
        let source = tagwire_base::Rank::new(rank);
        let (mut taken, mut envelopes) = (0, 0);
        while taken < MESSAGES && consumer.is_ready() {
            let entry = Entry {
                rank,
                after: consumer.state_after(),
            };
            let mut envelope = false;
            let popped = consumer.pop_if(|header, payload| {
                let kind = wire::kind_of(header).filter(|kind| kind.is_message())?;
                let message = wire::parse(source, kind, header, payload)?;
                envelope = message.asked_for;
                self.deal_with(&message, entry).then_some(())
            });
            if !matches!(popped, Pop::Message(())) {
                self.table.clear_journal();
                break;
            }
            reach(Point::Dealt);
            store_state(&area.taken, consumer.state());
            reach(Point::Taken);
            self.table.clear_journal();
            taken += 1;
            envelopes += u32::from(envelope);
        }
        if envelopes != 0 {
            count_envelopes(&area, envelopes);
        }
        if taken != envelopes {
            self.table
                .count_arrivals(&area, taken - envelopes, self.matched);
        }
        taken
    }

    /// Matches or keeps one message; answers whether it is taken.
    fn deal_with(&mut self, message: &Message<'_>, entry: Entry) -> bool {
        let needs_block =
            message.kind == Kind::Short && message.payload.len() > ENTRY && self.pid.is_none();
        let mut block = None;
        if needs_block {
            // Before it matches: without a place for its bytes it stays in the ring.
            block = self.table.take_block(message.payload.len());
            if block.is_none() {
                return false;
            }
        }
        match self.table.place(message, Some(entry)) {
            Placed::Matched(index) => {
                reach(Point::Matched);
                self.matched += u32::from(!message.asked_for);
                self.land(index, message, block);
                true
            }
            placed => {
                if let Some(block) = block {
                    self.table.free_block(block, message.payload.len());
                }
                matches!(placed, Placed::Kept(_))
            }
        }
    }

    /// Brings a message to the receive that takes it.
    fn land(&mut self, index: u32, message: &Message<'_>, block: Option<u32>) {
        let Some(receive) = self.table.map.receive(index) else {
            return;
        };
        let (address, room) = (get(&receive.address), get(&receive.capacity));
        let rank = message.source.as_u32();
        note(receive, rank, message.bits, message.length, message.number);
        let state = match message.kind {
            Kind::Short => {
                if message.number != 0 {
                    self.answered.push(message.number);
                }
                let len = message.payload.len().min(room as usize);
                self.land_short(receive, address, message, len, block)
            }
            Kind::Long => {
                receive.data[0].store(message.ticket[0], Relaxed);
                receive.data[1].store(message.ticket[1], Relaxed);
                let ticket = Ticket(message.ticket);
                let place = (address, room);
                if claim_for_receiver(self.area, ticket, place, self.peer, self.pid) {
                    reach(Point::Claimed);
                    LONG
                } else {
                    STREAM
                }
            }
            _ => STREAM,
        };
        receive.state.store(state, Release);
        reach(Point::Landed);
        self.table.add_event(index);
    }

    fn land_short(
        &self,
        receive: &Receive,
        address: u64,
        message: &Message<'_>,
        len: usize,
        block: Option<u32>,
    ) -> u64 {
        if len <= ENTRY {
            if let Some(block) = block {
                self.table.free_block(block, message.payload.len());
            }
            land_in_entry(receive, message.payload.slice(0..len));
            return INLINE;
        }
        if self.peer.bring(self.pid, address, message.payload, len) {
            if let Some(block) = block {
                self.table.free_block(block, message.payload.len());
            }
            return LANDED;
        }
        match block.or_else(|| self.table.take_block(message.payload.len())) {
            Some(block) if self.table.map.fill(block as usize, message.payload) => {
                receive.data[0].store(u64::from(block), Relaxed);
            }
            // A block that does not exist: the owner sees that the bytes are lost.
            _ => receive.data[0].store(u64::from(u32::MAX), Relaxed),
        }
        BLOCK
    }
}

/// Writes what a receive has matched with.
fn note(receive: &Receive, rank: u32, bits: u64, length: u64, number: u64) {
    receive.from.store(u64::from(rank), Relaxed);
    receive.found.store(bits, Relaxed);
    receive.length.store(length, Relaxed);
    receive.number.store(number, Relaxed);
}

fn land_in_entry(receive: &Receive, bytes: Payload<'_>) {
    let words = pack(bytes);
    receive.data[0].store(words[0], Relaxed);
    receive.data[1].store(words[1], Relaxed);
}
