//! What has happened to a rank: collected under the network's lock, told after it is free.

use std::sync::Arc;

use tagwire_base::Rank;

use super::rank::MatchMemory;
use super::state::{End, MatchState};
use crate::member::Status;
use tagwire_transport::matching::MatchUpcalls;
use tagwire_transport::message::{EndpointId, PeerEvent};

/// Something to be told.
#[derive(Debug)]
pub(super) enum Event {
    Up(EndpointId, Rank),
    End(End),
    Left(EndpointId),
    Failed(EndpointId),
}

impl MatchMemory {
    /// Takes what a call of progress may tell; returns how many other things happened.
    pub(super) fn collect(&mut self) -> usize {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if state.status(self.rank) != Status::Open {
            return 0;
        }
        self.greet(&mut state);
        let mut count = 0;
        for index in 0..self.links.len() {
            let most = state.share(shared.options.burst);
            count += self.take_messages(&mut state, index, most);
        }
        let chunk = state.share(shared.options.chunk);
        count += state.move_chunks(self.rank, chunk);
        self.see_off(&mut state);
        if shared.options.detect_failures && !state.found.is_empty() {
            let found = self.links.iter().filter(|link| !link.closed);
            let found = found.filter(|link| state.found.contains(&link.rank));
            let found: Vec<Rank> = found.map(|link| link.rank).collect();
            self.failing.extend(found);
            self.failing.sort_unstable();
            self.failing.dedup();
        }
        for rank in std::mem::take(&mut self.failing) {
            self.lose(&mut state, rank);
        }
        self.take_ends(&mut state);
        count
    }

    /// Reports peers that got in contact, each once.
    fn greet(&mut self, state: &mut MatchState) {
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

    /// Brings what a peer has sent into matching. Returns how many messages.
    fn take_messages(&mut self, state: &mut MatchState, index: usize, most: usize) -> usize {
        let link = &self.links[index];
        if !link.up || link.closed {
            return 0;
        }
        let Some(member) = state.members.get_mut(&self.rank) else {
            return 0;
        };
        let Some(place) = member.find_channel(link.rank) else {
            return 0;
        };
        let channel = &mut member.inbound[place];
        let count = channel.queue.len().min(most);
        let messages: Vec<_> = channel.queue.drain(..count).collect();
        if count > 0 && std::mem::take(&mut channel.starved) {
            state.wake(link.rank);
        }
        if state.has_more(self.rank, place) {
            state.wake(self.rank);
        }
        for mut message in messages {
            state.note_taken(&mut message);
            state.receive(self.rank, &message);
            state.arrive(self.rank, message, false);
        }
        count
    }

    /// Reports peers that left, once all that they sent has been taken.
    fn see_off(&mut self, state: &mut MatchState) {
        for index in 0..self.links.len() {
            let peer = self.links[index].rank;
            if self.links[index].closed || peer == self.rank || state.status(peer) != Status::Left {
                continue;
            }
            if state.is_quiet(self.rank, peer) {
                self.part(state, peer, Event::Left(EndpointId(index as u32)));
            }
        }
    }

    /// The end of `peer`: what happened before, the word, and what follows from it.
    fn part(&mut self, state: &mut MatchState, peer: Rank, word: Event) {
        self.take_ends(state);
        self.events.push(word);
        let endpoint = self.link(peer);
        self.links[endpoint.index()].closed = true;
        let is_carried = state.is_carried;
        if let Some(member) = state.members.get_mut(&self.rank) {
            let place = match is_carried {
                // What is under way to the peer finds out by it.
                true => Some(member.channel(peer)),
                false => member.find_channel(peer),
            };
            if let Some(place) = place {
                member.inbound[place].closed = true;
            }
        }
        state.sever(self.rank, peer);
        self.take_ends(state);
    }

    fn take_ends(&mut self, state: &mut MatchState) {
        let ends = state
            .members
            .get_mut(&self.rank)
            .map(|member| std::mem::take(&mut member.ends));
        for end in ends.into_iter().flatten() {
            state.hear(self.rank, &end);
            self.events.push(Event::End(end));
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

    pub(super) fn collect_failure(&mut self, rank: Rank) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if rank != self.rank && state.status(self.rank) == Status::Open {
            self.lose(&mut state, rank);
        }
    }

    /// A peer has failed: that is told once all that it sent is here.
    fn lose(&mut self, state: &mut MatchState, rank: Rank) {
        self.greet(state);
        let Some(endpoint) = self.find_link(rank) else {
            // Nothing to end, but later contact finds it dead.
            let endpoint = self.link(rank);
            self.links[endpoint.index()].closed = true;
            return;
        };
        if self.links[endpoint.index()].closed {
            return;
        }
        self.take_messages(state, endpoint.index(), usize::MAX);
        match state.is_quiet(self.rank, rank) {
            true => self.part(state, rank, Event::Failed(endpoint)),
            // What is under way comes first, and looks again.
            false => self.failing.push(rank),
        }
    }

    /// Tells what was collected; returns how many things it was.
    pub(super) fn tell(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = std::mem::take(&mut self.events);
        let count = events.len();
        for event in events.drain(..) {
            match event {
                Event::Up(endpoint, rank) => upcalls.peer(PeerEvent::Up { endpoint, rank }),
                Event::End(End::Sent(token, outcome)) => upcalls.sent(token, outcome),
                Event::End(End::Received(token, end)) => upcalls.received(token, end),
                Event::End(End::Probed(token, found)) => upcalls.probed(token, found),
                Event::Left(endpoint) => upcalls.peer(PeerEvent::Left(endpoint)),
                Event::Failed(endpoint) => upcalls.peer(PeerEvent::Failed(endpoint)),
            }
        }
        self.events = events;
        count
    }
}
