//! Pending operations: what is to be done towards peers after messages have matched.

use std::collections::VecDeque;

use crate::cooperative::{CooperativeTransfers, Ticket};
use crate::message::{EndpointId, Outcome};
use crate::post::Post;
use crate::shm::Shm;
use crate::shm::matching::completions::Completions;
use crate::shm::matching::controls::Controls;
use crate::shm::matching::packed::{EntryName, TransferToken};
use crate::shm::matching::receives::{ReceivePhase, Receives};
use crate::shm::matching::wire::{self, Kind};
use crate::shm::transfer::Buffer;

/// Something to be done once the lock may be free again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// Claims the offer with this ticket for a receive.
    Claim(EntryName, [u64; 2]),
    /// Goes on with a transfer that its sender has claimed for a receive.
    Adopt(EntryName, [u64; 2]),
    /// Asks for the bytes of a receive.
    Ask(EntryName),
    /// Tells a synchronous sender that its message has matched.
    Reply(EndpointId, u64),
    /// Takes an offer back, whose bytes were asked for.
    Withdraw(EndpointId, Ticket),
}

/// The pending operations, in order.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Operation>,
}

impl Pending {
    pub(super) fn push(&mut self, operation: Operation) {
        self.queue.push_back(operation);
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Runs all operations; what ends by that goes to `completions`. Returns how many there were.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        shm: &mut Shm,
        receives: &mut Receives,
        controls: &mut Controls,
        completions: &mut Completions,
    ) -> usize {
        if self.queue.is_empty() {
            return 0;
        }
        let mut run = Run {
            shm,
            receives,
            controls,
            completions,
        };
        run.all(&mut self.queue)
    }
}

/// Operations being run.
struct Run<'a> {
    shm: &'a mut Shm,
    receives: &'a mut Receives,
    controls: &'a mut Controls,
    completions: &'a mut Completions,
}

impl Run<'_> {
    #[inline(never)]
    fn all(&mut self, queue: &mut VecDeque<Operation>) -> usize {
        let mut events = 0;
        while let Some(operation) = queue.pop_front() {
            self.one(operation);
            events += 1;
        }
        events
    }

    fn one(&mut self, operation: Operation) {
        match operation {
            Operation::Claim(name, ticket) => self.transfer(name, Ticket(ticket), false),
            Operation::Adopt(name, ticket) => self.transfer(name, Ticket(ticket), true),
            Operation::Ask(name) => {
                // Its sender may have failed since, or have sent what nobody had asked for.
                if let Some(index) = self.receives.named(name) {
                    self.ask(index);
                }
            }
            Operation::Reply(to, number) => {
                let header = wire::header(Kind::Matched, 0, number);
                self.controls.send(self.shm, to, header, None);
            }
            Operation::Withdraw(to, ticket) => self.shm.withdraw(to, ticket),
        }
    }

    /// Begins the transfer of a receive's bytes; it may be claimed already.
    fn transfer(&mut self, name: EntryName, ticket: Ticket, is_claimed: bool) {
        let Some(index) = self.receives.named(name) else {
            return;
        };
        let own = self.receives.entries[index as usize];
        let token = TransferToken::Receive(index).pack();
        let post = if is_claimed {
            self.shm.adopt_claim(own.from, ticket, own.region, token)
        } else {
            self.shm
                .join(own.from, ticket, Buffer::Target(own.region), token)
        };
        match post {
            Post::Posted => {}
            Post::Gone => self.end(index, Outcome::PeerFailed),
            Post::Busy | Post::Unsupported => {
                self.receives.entries[index as usize].phase = ReceivePhase::Streaming;
                self.ask(index);
            }
        }
    }

    /// Asks the sender of a matched message for its bytes.
    fn ask(&mut self, index: u32) {
        let own = self.receives.entries[index as usize];
        let room = own.region.len() as u64;
        let header = wire::header(Kind::Go, 0, own.number);
        let place = self.receives.name(index).pack();
        let words = Some([place, room, 0]);
        if !self.controls.send(self.shm, own.from, header, words) {
            return self.end(index, Outcome::PeerFailed);
        }
        if own.envelope.length.min(room) == 0 {
            // Nothing will come.
            self.end(index, Outcome::Done(0));
        }
    }

    fn end(&mut self, index: u32, outcome: Outcome) {
        self.completions.push(self.receives.end(index, outcome));
    }
}
