//! The sends that are not over.
#![allow(unsafe_code)]

use crate::cooperative::Ticket;
use crate::data::{ReadRegion, SendBuffer};
use crate::message::{EndpointId, Outcome, Token};
use crate::shm::matching::completions::{Completions, Ended};
use crate::shm::matching::packed::EntryName;

/// A send that is not over.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendSlot {
    pub(super) state: SendState,
    generation: u32,
    pub(super) to: EndpointId,
    pub(super) token: Token,
    pub(super) bits: u64,
    pub(super) region: ReadRegion,
    pub(super) synchronous: bool,
    /// The receiver has asked for the bytes ...
    pub(super) asked: bool,
    /// ... into this receive of its ...
    pub(super) target: u64,
    /// ... so many of them ...
    pub(super) room: usize,
    /// ... of which so many have gone.
    pub(super) gone: usize,
}

impl SendSlot {
    /// Returns the bytes of a send that is under way.
    pub(super) fn buffer(&self) -> SendBuffer {
        // SAFETY: the memory is lent until the send's token completes, or the call that began it has returned
        // that it is done. The slot is freed then, and looks at slots are made in the calls that use them.
        unsafe { SendBuffer::of(self.region) }
    }
}

/// What a send waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendState {
    Free,
    /// Its turn.
    Held,
    /// The notice that its short message has matched.
    AwaitMatched,
    /// The transfer of its bytes.
    Offered(Ticket),
    /// That the receiver asks for its bytes.
    AwaitGo,
    /// Room in the ring.
    Streaming,
}

/// What a request for bytes leads to.
#[must_use]
pub(super) enum Asked {
    Noted,
    /// The offer of the bytes is to be taken back first.
    Withdraw(Ticket),
}

/// The sends that are not over, by slot.
#[derive(Debug, Default)]
pub(super) struct Sends {
    pub(super) slots: Vec<SendSlot>,
    free: Vec<u32>,
    /// Those whose bytes go through the ring, oldest first.
    pub(super) streams: Vec<u32>,
}

impl Sends {
    /// Takes a slot for a send that waits for its turn.
    pub(super) fn take(
        &mut self,
        to: EndpointId,
        bits: u64,
        region: ReadRegion,
        synchronous: bool,
        token: Token,
    ) -> u32 {
        let mut slot = SendSlot {
            state: SendState::Held,
            generation: 1,
            to,
            token,
            bits,
            region,
            synchronous,
            asked: false,
            target: 0,
            room: 0,
            gone: 0,
        };
        let Some(index) = self.free.pop() else {
            self.slots.push(slot);
            return self.slots.len() as u32 - 1;
        };
        let before = &mut self.slots[index as usize];
        slot.generation = before.generation.wrapping_add(1).max(1);
        *before = slot;
        index
    }

    pub(super) fn free(&mut self, slot: u32) {
        self.slots[slot as usize].state = SendState::Free;
        self.free.push(slot);
    }

    /// Ends a send; returns what is to be reported.
    pub(super) fn end(&mut self, slot: u32, outcome: Outcome) -> Ended {
        let token = self.slots[slot as usize].token;
        self.free(slot);
        Ended::Sent(token, outcome)
    }

    /// Returns the number that a message names the send by. It is not 0.
    pub(super) fn number(&self, slot: u32) -> u64 {
        let generation = self.slots[slot as usize].generation;
        EntryName {
            index: slot,
            generation,
        }
        .pack()
    }

    /// Returns the slot of the send to `peer` that a number names.
    pub(super) fn named(&self, number: u64, peer: EndpointId) -> Option<u32> {
        let name = EntryName::unpack(number);
        let send = self.slots.get(name.index as usize)?;
        let is_open =
            send.state != SendState::Free && send.generation == name.generation && send.to == peer;
        is_open.then_some(name.index)
    }

    /// Ends the synchronous short send to `peer` that a number names: its message has matched.
    pub(super) fn matched(&mut self, number: u64, peer: EndpointId) -> Option<Ended> {
        let slot = self.named(number, peer)?;
        let send = &self.slots[slot as usize];
        if send.state != SendState::AwaitMatched {
            return None;
        }
        let len = send.region.len() as u64;
        Some(self.end(slot, Outcome::Done(len)))
    }

    /// Notes that `peer` asks for so many bytes of the send that a number names, into its receive `target`.
    pub(super) fn asked(&mut self, number: u64, peer: EndpointId, target: u64, room: u64) -> Asked {
        let Some(slot) = self.named(number, peer) else {
            return Asked::Noted;
        };
        let send = &mut self.slots[slot as usize];
        send.target = target;
        send.room = (send.region.len() as u64).min(room) as usize;
        send.asked = true;
        match send.state {
            SendState::AwaitGo => self.stream(slot),
            SendState::Offered(ticket) => return Asked::Withdraw(ticket),
            _ => {}
        }
        Asked::Noted
    }

    /// Takes the end of a send's transfer; returns the end of the send, if that is all.
    pub(super) fn transfer_ended(&mut self, slot: u32, outcome: Outcome) -> Option<Ended> {
        let send = self.slots.get_mut(slot as usize)?;
        match outcome {
            Outcome::Impossible | Outcome::Withdrawn if send.asked => self.stream(slot),
            Outcome::Impossible | Outcome::Withdrawn => send.state = SendState::AwaitGo,
            outcome => return Some(self.end(slot, outcome)),
        }
        None
    }

    fn stream(&mut self, slot: u32) {
        self.slots[slot as usize].state = SendState::Streaming;
        self.streams.push(slot);
    }

    /// Ends the sends to a peer that is gone, but for transfers, which end by themselves.
    pub(super) fn end_peer(&mut self, peer: EndpointId, completions: &mut Completions) {
        for slot in 0..self.slots.len() as u32 {
            let send = &self.slots[slot as usize];
            if send.to == peer && !matches!(send.state, SendState::Free | SendState::Offered(_)) {
                completions.push(self.end(slot, Outcome::PeerFailed));
            }
        }
        let slots = &self.slots;
        self.streams
            .retain(|slot| slots[*slot as usize].state == SendState::Streaming);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }
}
