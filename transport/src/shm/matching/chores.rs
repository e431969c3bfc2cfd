//! What is left to do after messages have matched: claims, answers, requests for bytes.

use super::super::layout::MAX_SEND;
use super::endpoint::{Ended, OwnState, RECEIVING, ReceiveName, ShmMatch};
use super::wire::{self, Kind};
use crate::byte::{ByteTransport, Class, Post, Ticket};
use crate::message::{AmHeader, EndpointId, Lane, Outcome, Token};
use crate::network::{MatchUpcalls, ReceiveEnd};

/// Something to be done once the lock may be free again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chore {
    /// Claims the offer with this ticket for a receive.
    Claim(ReceiveName, [u64; 2]),
    /// Goes on with a transfer that its sender has claimed for a receive.
    Adopt(ReceiveName, [u64; 2]),
    /// Asks for the bytes of a receive.
    Go(ReceiveName),
    /// Tells a synchronous sender that its message has matched.
    Reply(EndpointId, u64),
    /// Takes an offer back, whose bytes were asked for.
    Withdraw(EndpointId, Ticket),
}

impl ShmMatch {
    /// Does what is to be done. What ends by it is told at once, or later without `upcalls`.
    #[inline(always)]
    pub(super) fn run_chores(&mut self, upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        if self.core.chores.is_empty() {
            return 0;
        }
        self.run_all_chores(upcalls)
    }

    #[inline(never)]
    fn run_all_chores(&mut self, upcalls: Option<&mut dyn MatchUpcalls>) -> usize {
        let mut events = 0;
        while let Some(chore) = self.core.chores.pop_front() {
            self.run_chore(chore);
            events += 1;
        }
        if let Some(upcalls) = upcalls {
            events += self.tell_ended(upcalls);
        }
        events
    }

    fn run_chore(&mut self, chore: Chore) {
        match chore {
            Chore::Claim(name, ticket) | Chore::Adopt(name, ticket) => {
                let Some(index) = self.core.receive_named(name) else {
                    return;
                };
                let own = self.core.receives[index as usize];
                let token = Token(RECEIVING | u64::from(index));
                let ticket = Ticket(ticket);
                let post = match chore {
                    Chore::Claim(..) => self
                        .shm
                        .take_offer_into(own.from, ticket, own.region, token),
                    _ => self.shm.adopt_claim(own.from, ticket, own.region, token),
                };
                match post {
                    Post::Posted => {}
                    Post::Gone => self.end_receive(index, Outcome::PeerFailed),
                    Post::Busy | Post::Unsupported => {
                        self.core.receives[index as usize].state = OwnState::Streaming;
                        self.ask(index);
                    }
                }
            }
            Chore::Go(name) => {
                // Its sender may have failed since, or have sent what nobody had asked for.
                if let Some(index) = self.core.receive_named(name) {
                    self.ask(index);
                }
            }
            Chore::Reply(to, number) => {
                let header = wire::header(Kind::Matched, 0, number);
                self.control(to, header, None);
            }
            Chore::Withdraw(to, ticket) => self.shm.withdraw(to, ticket),
        }
    }

    /// Asks the sender of a matched message for its bytes.
    fn ask(&mut self, index: u32) {
        let own = self.core.receives[index as usize];
        let room = own.region.len() as u64;
        let header = wire::header(Kind::Go, 0, own.number);
        let place = u64::from(index) | u64::from(own.generation) << 32;
        if !self.control(own.from, header, Some([place, room, 0])) {
            return self.end_receive(index, Outcome::PeerFailed);
        }
        if own.envelope.length.min(room) == 0 {
            // Nothing will come.
            self.end_receive(index, Outcome::Done(0));
        }
    }

    fn end_receive(&mut self, index: u32, outcome: Outcome) {
        let own = self.core.receives[index as usize];
        let end = ReceiveEnd::Matched(own.envelope, outcome);
        self.core.free_receive(index);
        self.core.ended.push_back(Ended::Received(own.token, end));
    }

    /// Sends a control message, now or later; answers whether the peer is there.
    pub(super) fn control(
        &mut self,
        to: EndpointId,
        header: AmHeader,
        words: Option<[u64; 3]>,
    ) -> bool {
        if self.core.controls.is_empty() {
            match self.push_control(to, header, words) {
                Post::Posted => return true,
                Post::Busy => {}
                Post::Gone | Post::Unsupported => return false,
            }
        }
        self.core.controls.push_back((to, header, words));
        true
    }

    fn push_control(&mut self, to: EndpointId, header: AmHeader, words: Option<[u64; 3]>) -> Post {
        let bytes = words.map(wire::three_bytes);
        let payload: &[u8] = bytes.as_ref().map_or(&[], |bytes| bytes.as_slice());
        debug_assert!(payload.len() <= MAX_SEND);
        self.shm.send(Lane(0), to, Class::Control, header, payload)
    }

    /// Sends the control messages that found no room.
    pub(super) fn push_controls(&mut self) -> usize {
        let mut events = 0;
        for _ in 0..self.core.controls.len() {
            let Some((to, header, words)) = self.core.controls.pop_front() else {
                break;
            };
            match self.push_control(to, header, words) {
                Post::Busy => self.core.controls.push_back((to, header, words)),
                _ => events += 1,
            }
        }
        events
    }

    /// Tells what has ended.
    #[inline(always)]
    pub(super) fn tell_ended(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        if self.core.ended.is_empty() {
            return 0;
        }
        self.tell_all_ended(upcalls)
    }

    #[inline(never)]
    fn tell_all_ended(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = 0;
        while let Some(ended) = self.core.ended.pop_front() {
            ended.tell(upcalls);
            events += 1;
        }
        events
    }
}
