//! One visit: a sender in its receiver's match list, under the lock, with what lies in its ring.

use std::sync::atomic::Ordering::{Relaxed, Release};

use tagwire_base::Rank;

use crate::cooperative::Ticket;
use crate::message::Payload;
use crate::shm::matching::layout::Receive;
use crate::shm::matching::memory::pack;
use crate::shm::matching::packed::ReceiveState;
use crate::shm::matching::table::{
    Entry, Placed, Table, count_envelopes, get, load_state, store_state,
};
use crate::shm::matching::wire::{self, Kind, Message};
use crate::shm::peer::Peer;
use crate::shm::ring::{Consumer, Pop};
use crate::shm::segment::AreaMap;
use crate::shm::transfers::claim_for_receiver;

/// Messages of the ring that one visit deals with: a bound on how long the lock is held.
const MESSAGES: u32 = 32;

/// Longest message that a receive's entry holds.
pub(super) const ENTRY: usize = 16;

/// Places in a visit at which tests let the sender die.
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
pub(super) const fn reach(_: Point) {}

#[cfg(test)]
pub(super) use crate::shm::matching::tests::reach;

/// One visit, under the lock.
pub(super) struct Visit<'a> {
    table: &'a mut Table,
    area: &'a AreaMap,
    /// The receiver's process, if it can be attached to.
    pid: Option<u32>,
    peer: &'a Peer,
    /// Messages that count against the allowance and took no room.
    matched: u32,
    /// The own numbers of synchronous short messages that have matched.
    pub(super) answered: Vec<u64>,
}

impl<'a> Visit<'a> {
    pub(super) const fn new(
        table: &'a mut Table,
        area: &'a AreaMap,
        pid: Option<u32>,
        peer: &'a Peer,
    ) -> Self {
        Self {
            table,
            area,
            pid,
            peer,
            matched: 0,
            answered: Vec::new(),
        }
    }

    /// Takes the own messages out of the ring, in order, up to one that only the owner can take. Returns how many
    /// it took.
    pub(super) fn empty_ring(&mut self, source: Rank) -> u32 {
        let area = self.area.clone();
        let mut consumer = Consumer::new(area.clone());
        consumer.resume(load_state(&area.taken));
        let (mut taken, mut envelopes) = (0, 0);
        while taken < MESSAGES && consumer.is_ready() {
            let entry = Entry {
                rank: source.as_u32(),
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

    /// Matches or keeps one message. Returns whether it is taken.
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
                if claim_for_receiver(self.area, ticket, address, room, self.peer, self.pid) {
                    reach(Point::Claimed);
                    ReceiveState::Long
                } else {
                    ReceiveState::Stream
                }
            }
            _ => ReceiveState::Stream,
        };
        receive.state.store(state.pack(), Release);
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
    ) -> ReceiveState {
        if len <= ENTRY {
            if let Some(block) = block {
                self.table.free_block(block, message.payload.len());
            }
            land_in_entry(receive, message.payload.slice(0..len));
            return ReceiveState::Inline;
        }
        if self.peer.bring(self.pid, address, message.payload, len) {
            if let Some(block) = block {
                self.table.free_block(block, message.payload.len());
            }
            return ReceiveState::Landed;
        }
        match block.or_else(|| self.table.take_block(message.payload.len())) {
            Some(block) if self.table.map.fill(block as usize, message.payload) => {
                receive.data[0].store(u64::from(block), Relaxed);
            }
            // A block that does not exist: the owner sees that the bytes are lost.
            _ => receive.data[0].store(u64::from(u32::MAX), Relaxed),
        }
        ReceiveState::Block
    }
}

/// Writes what a receive has matched with.
pub(super) fn note(receive: &Receive, rank: u32, bits: u64, length: u64, number: u64) {
    receive.from.store(u64::from(rank), Relaxed);
    receive.found.store(bits, Relaxed);
    receive.length.store(length, Relaxed);
    receive.number.store(number, Relaxed);
}

/// Writes a message of up to [`ENTRY`] bytes into the receive's entry.
pub(super) fn land_in_entry(receive: &Receive, bytes: Payload<'_>) {
    let words = pack(bytes);
    receive.data[0].store(words[0], Relaxed);
    receive.data[1].store(words[1], Relaxed);
}
