//! What has happened to a rank: collected under the network's lock, told after it is free, so
//! that an upcall may take its time and other ranks go on.

use std::sync::Arc;

use tagwire_base::Rank;

use super::rank::MemoryTransport;
use super::state::{Message, State, Status};
use tagwire_transport::message::{
    Arrival, EndpointId, Outcome, Payload, PeerEvent, Token, Upcalls,
};

/// Something to be told.
#[derive(Debug)]
pub(super) enum Event {
    Up(EndpointId, Rank),
    Message(EndpointId, Message),
    Complete(Token, Outcome),
    Notice(u64),
    Left(EndpointId),
    Failed(EndpointId),
}

impl MemoryTransport {
    /// Takes what a call of progress may tell; returns how many chunks were copied.
    pub(super) fn collect(&mut self) -> usize {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if state.status(self.rank) != Status::Open {
            return 0;
        }
        self.greet(&mut state);
        for index in 0..self.links.len() {
            self.take_messages(&mut state, index, shared.options.burst);
        }
        let copied = self.copy_chunks(&mut state, shared.options.chunk);
        self.see_off(&mut state);
        self.take_completions(&mut state, shared.options.completions);
        copied
    }

    /// Reports peers that got in contact, each once.
    fn greet(&mut self, state: &mut State) {
        let Some(member) = state.members.get(&self.rank) else {
            return;
        };
        while let Some(channel) = member.inbound.get(self.seen_channels) {
            self.seen_channels += 1;
            let endpoint = self.link(channel.from);
            let link = &mut self.links[endpoint.index()];
            // Contact by a peer that was declared dead before comes too late.
            if !link.closed {
                link.up = true;
                self.events.push(Event::Up(endpoint, channel.from));
            }
        }
    }

    fn take_messages(&mut self, state: &mut State, index: usize, most: usize) {
        let link = &self.links[index];
        let Some(member) = state.members.get_mut(&self.rank) else {
            return;
        };
        let Some(place) = member
            .find_channel(link.rank)
            .filter(|_| link.up && !link.closed)
        else {
            return;
        };
        let channel = &mut member.inbound[place];
        let count = channel.queue.len().min(most);
        let endpoint = EndpointId(index as u32);
        self.events.extend(
            channel
                .queue
                .drain(..count)
                .map(|message| Event::Message(endpoint, message)),
        );
        if count > 0 && std::mem::take(&mut channel.starved) {
            state.wake(link.rank);
        }
    }

    /// Copies a chunk of each transfer that this rank takes part in.
    fn copy_chunks(&mut self, state: &mut State, chunk: usize) -> usize {
        let own = self.rank;
        let (mut copied, mut finished) = (0, Vec::new());
        for (id, transfer) in &mut state.transfers {
            if transfer.involves(own) {
                copied += usize::from(transfer.advance(chunk) > 0);
                finished.extend(transfer.finished().map(|total| (*id, total)));
            }
        }
        for (id, total) in finished {
            if let Some(mut transfer) = state.transfers.remove(&id) {
                for rank in [transfer.offerer, transfer.claimer] {
                    for token in transfer.take_tokens(rank) {
                        state.complete(rank, token, Outcome::Done(total as u64));
                    }
                }
            }
        }
        copied
    }

    /// Reports peers that left, once all that they sent has been taken.
    fn see_off(&mut self, state: &mut State) {
        for index in 0..self.links.len() {
            let peer = self.links[index].rank;
            if self.links[index].closed || peer == self.rank || state.status(peer) != Status::Left {
                continue;
            }
            let member = state.members.get(&self.rank);
            let untaken = member.is_some_and(|member| {
                member
                    .find_channel(peer)
                    .is_some_and(|place| !member.inbound[place].queue.is_empty())
            });
            if !untaken {
                state.sever(self.rank, peer);
                self.take_completions(state, usize::MAX);
                self.links[index].closed = true;
                self.events.push(Event::Left(EndpointId(index as u32)));
            }
        }
    }

    /// Takes the ends of so many operations at most, and all notices.
    fn take_completions(&mut self, state: &mut State, most: usize) {
        if let Some(member) = state.members.get_mut(&self.rank) {
            let notices = member.notices.drain(..);
            self.events.extend(notices.map(Event::Notice));
            let count = member.completions.len().min(most);
            self.events.extend(
                member
                    .completions
                    .drain(..count)
                    .map(|(token, outcome)| Event::Complete(token, outcome)),
            );
        }
    }

    /// Peers that have failed and whose failure was not reported.
    pub(super) fn failed_peers(&self) -> Vec<Rank> {
        let state = self.shared.state();
        self.links
            .iter()
            .filter(|link| !link.closed && state.status(link.rank) == Status::Failed)
            .map(|link| link.rank)
            .collect()
    }

    /// Takes what `rank` still sent, ends every operation with it and closes its link.
    pub(super) fn collect_failure(&mut self, rank: Rank) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if rank == self.rank || state.status(self.rank) != Status::Open {
            return;
        }
        self.greet(&mut state);
        let Some(endpoint) = self.find_link(rank) else {
            // Nothing to end, but later contact finds it dead.
            let endpoint = self.link(rank);
            self.links[endpoint.index()].closed = true;
            return;
        };
        if self.links[endpoint.index()].closed {
            return;
        }
        self.take_messages(&mut state, endpoint.index(), usize::MAX);
        if let Some(member) = state.members.get_mut(&self.rank)
            && let Some(place) = member.find_channel(rank)
        {
            member.inbound[place].closed = true;
        }
        state.sever(self.rank, rank);
        self.take_completions(&mut state, usize::MAX);
        self.links[endpoint.index()].closed = true;
        self.events.push(Event::Failed(endpoint));
    }

    /// Tells what was collected; returns how many things it was.
    pub(super) fn tell(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut events = std::mem::take(&mut self.events);
        let count = events.len();
        for event in events.drain(..) {
            match event {
                Event::Up(endpoint, rank) => upcalls.peer(PeerEvent::Up { endpoint, rank }),
                Event::Message(from, message) => self.deliver(from, message, upcalls),
                Event::Complete(token, outcome) => upcalls.complete(token, outcome),
                Event::Notice(immediate) => upcalls.notice(immediate),
                Event::Left(endpoint) => upcalls.peer(PeerEvent::Left(endpoint)),
                Event::Failed(endpoint) => upcalls.peer(PeerEvent::Failed(endpoint)),
            }
        }
        self.events = events;
        count
    }

    fn deliver(&mut self, from: EndpointId, message: Message, upcalls: &mut dyn Upcalls) {
        upcalls.deliver(Arrival {
            from,
            header: message.header,
            payload: Payload::from_slice(&message.bytes),
        });
    }
}
