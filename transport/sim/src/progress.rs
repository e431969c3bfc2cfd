//! What has happened to a rank: collected under the network's lock, told after it is free, so
//! that an upcall may take its time and other ranks go on.

use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::message::{
    Arrival, EndpointId, Outcome, Payload, PeerEvent, Token, Upcalls,
};

use crate::flight::Message;
use crate::member::{Item, Status};
use crate::place::Place;
use crate::rank::SimTransport;
use crate::state::{Behind, State, Work};
use crate::time::Span;
use crate::turns::find_nothing;

/// Something to be told.
#[derive(Debug)]
pub(crate) enum Told {
    Up(EndpointId, Rank),
    Message((EndpointId, Place), Message, Behind),
    Complete(Token, Outcome),
    Notice(u64),
    Left(EndpointId),
    Failed(EndpointId),
}

/// What a call of progress takes a rank that has died: so that what it waits for up to a moment ends soon.
const OF_THE_DEAD: Span = Span::nanos(1_000_000);

impl State {
    /// A call of progress has found nothing: the network's next event happens, where ranks are driven by calls.
    pub(crate) fn pass_time(&mut self, place: Place) {
        if !self.has_tasks && self.machine().is_some() && self.step().is_none() {
            let (now, poll) = (self.now, Span::from(self.options.poll));
            self.member(place).occupy(now, poll);
        }
    }
}

impl SimTransport {
    /// Delivers what has come, and moves transfers on. Returns how many things happened.
    ///
    /// A rank that is driven by calls and finds nothing has the network's next event happen.
    pub(crate) fn make_progress(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let shared = Arc::clone(&self.shared);
        let happened = shared.with(|state| {
            if state.member(self.place).status != Status::Open {
                if shared.turns().is_some() {
                    self.lose_all(state);
                }
                return 0;
            }
            let options = Arc::clone(&state.options);
            self.collect(state, options.burst);
            let copied = self.copy_chunks(state, options.chunk);
            self.collect_failures(state);
            self.take_completions(state, options.completions);
            let happened = copied + self.told.len();
            match (happened, shared.turns()) {
                (0, None) => state.pass_time(self.place),
                (0, Some(_)) => find_nothing(state, self.place),
                _ => state.member(self.place).idle = None,
            }
            happened
        });
        self.tell(upcalls);
        if happened == 0 {
            shared.pass(self.rank);
        }
        happened
    }

    /// A rank that has died, and whose thread goes on, waits for nobody.
    fn lose_all(&mut self, state: &mut State) {
        let now = state.now;
        state.member(self.place).occupy(now, OF_THE_DEAD);
        for endpoint in (0..state.member(self.place).links.len() as u32).map(EndpointId) {
            if state.member(self.place).open_link(endpoint).is_some() {
                state.sever(self.place, endpoint);
                self.told.push(Told::Failed(endpoint));
            }
        }
    }

    /// Finds peers that have failed.
    pub(crate) fn find_failures(&mut self, upcalls: &mut dyn Upcalls) {
        let shared = Arc::clone(&self.shared);
        shared.with(|state| {
            let links = state.members[self.place.index()].links.len();
            for endpoint in (0..links).map(|index| EndpointId(index as u32)) {
                let peer = state.members[self.place.index()].links[endpoint.index()].peer;
                if state.member(peer).status == Status::Failed {
                    state.begin_failing(self.place, endpoint);
                }
            }
            self.end_failing(state);
        });
        self.tell(upcalls);
    }

    /// Somebody says that `rank` has failed.
    pub(crate) fn hear_of_failure(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        let shared = Arc::clone(&self.shared);
        shared.with(|state| {
            let Some(peer) = state.find(rank).filter(|peer| *peer != self.place) else {
                return;
            };
            let is_known = state.member(self.place).by_peer.contains_key(&peer);
            let endpoint = state.link(self.place, peer);
            if is_known {
                state.begin_failing(self.place, endpoint);
                self.end_failing(state);
            } else {
                // Nothing to end, but later contact finds it dead.
                state.sever(self.place, endpoint);
            }
        });
        self.tell(upcalls);
    }

    /// Ends the failing peers from which all is here.
    fn end_failing(&mut self, state: &mut State) {
        let member = state.member(self.place);
        if member.status == Status::Open && !member.failing.is_empty() {
            self.collect(state, usize::MAX);
            self.collect_failures(state);
        }
    }

    fn collect_failures(&mut self, state: &mut State) {
        if state.member(self.place).failing.is_empty() {
            return;
        }
        for endpoint in state.failed_for_good(self.place) {
            state.sever(self.place, endpoint);
            self.take_completions(state, usize::MAX);
            self.told.push(Told::Failed(endpoint));
        }
    }

    /// Takes what has come, up to `most` messages.
    fn collect(&mut self, state: &mut State, most: usize) {
        let mut messages = 0;
        while messages < most
            && let Some(item) = state.member(self.place).inbox.pop_front()
        {
            match item {
                Item::Up(endpoint) => {
                    // Contact by a peer that was declared dead before comes too late.
                    if let Some(link) = state.member(self.place).open_link(endpoint) {
                        self.told.push(Told::Up(endpoint, link.rank));
                    }
                }
                Item::Message(endpoint, message) => {
                    messages += 1;
                    let link = &state.member(self.place).links[endpoint.index()];
                    let (peer, back, is_closed) = (link.peer, link.back, link.is_closed);
                    state.free_slot(peer, back);
                    if !is_closed {
                        let of_peer = &state.member(peer).links[back.index()];
                        let behind = Behind {
                            of_sender: of_peer.untaken as usize,
                            of_all: state.member(self.place).inbox.len(),
                        };
                        let from = (endpoint, peer);
                        self.told.push(Told::Message(from, message, behind));
                    }
                }
                Item::Left(endpoint) => {
                    if state.member(self.place).open_link(endpoint).is_some() {
                        state.sever(self.place, endpoint);
                        self.take_completions(state, usize::MAX);
                        self.told.push(Told::Left(endpoint));
                    }
                }
            }
        }
    }

    /// Copies a chunk of each transfer that this rank takes part in; returns how many were copied.
    fn copy_chunks(&mut self, state: &mut State, chunk: usize) -> usize {
        if state.transfers.is_empty() {
            return 0;
        }
        let own = self.place;
        let (mut copied, mut finished, mut pieces) = (0, Vec::new(), Vec::new());
        for (id, transfer) in &mut state.transfers {
            if transfer.involves(own) {
                let bytes = transfer.advance(chunk);
                copied += usize::from(bytes > 0);
                pieces.push((transfer.peer_of(own), bytes));
                finished.extend(transfer.finished().map(|total| (*id, total)));
            }
        }
        for (peer, bytes) in pieces {
            state.copy(own, peer, bytes);
        }
        for (id, total) in finished {
            if let Some(mut transfer) = state.transfers.remove(&id) {
                for place in [transfer.offerer, transfer.claimer] {
                    for token in transfer.take_tokens(place) {
                        state.complete(place, token, Outcome::Done(total as u64));
                    }
                }
            }
        }
        copied
    }

    /// Takes the ends of so many operations at most, and all notices.
    fn take_completions(&mut self, state: &mut State, most: usize) {
        let member = state.member(self.place);
        self.told.extend(member.notices.drain(..).map(Told::Notice));
        let count = member.completions.len().min(most);
        let ends = member.completions.drain(..count);
        self.told
            .extend(ends.map(|(token, outcome)| Told::Complete(token, outcome)));
        if member.has_something() {
            state.signal(self.place);
        }
    }

    /// The rank is busy with a message, and has it then.
    fn receive(&self, peer: Place, copied: usize, behind: Behind) {
        if self.shared.options.machine.is_some() {
            let work = Work::Recv {
                copied,
                is_matched: false,
                behind,
            };
            self.shared.with(|state| state.work(self.place, peer, work));
        }
    }

    /// Tells what was collected.
    fn tell(&mut self, upcalls: &mut dyn Upcalls) {
        let mut told = std::mem::take(&mut self.told);
        for event in told.drain(..) {
            match event {
                Told::Up(endpoint, rank) => upcalls.peer(PeerEvent::Up { endpoint, rank }),
                Told::Message((from, peer), message, behind) => {
                    self.receive(peer, message.bytes.len(), behind);
                    upcalls.deliver(Arrival {
                        from,
                        header: message.header,
                        payload: Payload::from_slice(&message.bytes),
                    });
                }
                Told::Complete(token, outcome) => upcalls.complete(token, outcome),
                Told::Notice(immediate) => upcalls.notice(immediate),
                Told::Left(endpoint) => upcalls.peer(PeerEvent::Left(endpoint)),
                Told::Failed(endpoint) => upcalls.peer(PeerEvent::Failed(endpoint)),
            }
        }
        self.told = told;
    }
}
