//! How ranks end, and what that ends.

use tagwire_base::bootstrap::MemberEvent;
use tagwire_transport::message::{EndpointId, Outcome};

use crate::flight::{Cargo, Flight};
use crate::member::Status;
use crate::place::Place;
use crate::queue::Event;
use crate::state::State;

impl State {
    /// A rank ends, in good order or not. Nobody touches its buffers after this.
    pub(crate) fn end(&mut self, place: Place, status: Status) {
        let member = self.member(place);
        if member.status != Status::Open {
            return;
        }
        member.status = status;
        let rank = member.rank;
        member.inbox.clear();
        member.operations.clear();
        member.exposed.clear();
        member.writable.clear();
        for transfer in self.transfers.values_mut() {
            if transfer.involves(place) {
                transfer.halt();
                // Nobody will ask for these any more.
                transfer.take_tokens(place).for_each(drop);
            }
        }
        self.is_moved = true;
        self.end_carried(rank, status == Status::Left);
        match status {
            Status::Left => {
                self.ended.push(MemberEvent::Left(rank));
                self.say_goodbye(place);
            }
            _ => {
                self.ended.push(MemberEvent::Failed(rank));
                if let Some(trace) = &self.options.trace {
                    trace.died(rank, self.now);
                }
                let detection = self.machine().map(|machine| machine.detection);
                let at = self.now + detection.unwrap_or_default();
                self.queue.push(at, 0, Event::Found(place.0));
            }
        }
    }

    fn say_goodbye(&mut self, place: Place) {
        let now = self.now;
        let at = self.member(place).threads.current().local.max(now);
        for index in 0..self.members[place.index()].links.len() {
            let link = &self.members[place.index()].links[index];
            let (to, is_closed) = (link.peer, link.is_closed);
            if !is_closed && to != place {
                self.carry(
                    at,
                    Flight {
                        from: place,
                        to,
                        link: EndpointId(index as u32),
                        is_fenced: true,
                        cargo: Cargo::Goodbye,
                    },
                );
            }
        }
    }

    /// The death of a rank is found by its peers.
    pub(crate) fn found(&mut self, dead: Place) {
        if let Some(carried) = &self.carried {
            carried.found(self.members[dead.index()].rank);
        }
        for index in 0..self.members[dead.index()].links.len() {
            let link = &self.members[dead.index()].links[index];
            let (peer, back) = (link.peer, link.back);
            if self.options.detect_failures {
                self.begin_failing(peer, back);
            }
            // Whoever sleeps looks again.
            self.signal(peer);
        }
    }

    /// The peer at `endpoint` has failed, which is told once what it sent has come.
    pub(crate) fn begin_failing(&mut self, place: Place, endpoint: EndpointId) {
        let member = self.member(place);
        if member.open_link(endpoint).is_some() && !member.failing.contains(&endpoint) {
            member.failing.push(endpoint);
        }
    }

    /// Returns the failing peers of which nothing is under way any more: each once.
    pub(crate) fn failed_for_good(&mut self, place: Place) -> Vec<EndpointId> {
        let mut failing = std::mem::take(&mut self.member(place).failing);
        let is_over = |endpoint: &mut EndpointId| {
            let link = &self.members[place.index()].links[endpoint.index()];
            let back = &self.members[link.peer.index()].links[link.back.index()];
            back.untaken == 0
        };
        let over = failing.extract_if(.., is_over).collect();
        self.member(place).failing = failing;
        over
    }

    /// Ends what is under way between a rank and its peer at `endpoint`: the operations of the rank complete with
    /// [`Outcome::PeerFailed`]; those of the peer do once it finds out in turn.
    pub(crate) fn sever(&mut self, own: Place, endpoint: EndpointId) {
        let member = self.member(own);
        let Some(link) = member.open_link(endpoint) else {
            return;
        };
        link.is_closed = true;
        let peer = link.peer;
        let is_with = |of: &mut crate::member::Operation| of.link == endpoint;
        let ended = member.operations.extract_if(.., is_with);
        let mut ended: Vec<_> = ended.map(|of| of.token).collect();
        self.transfers.retain(|_, transfer| {
            if !(transfer.involves(own) && transfer.involves(peer)) {
                return true;
            }
            transfer.halt();
            ended.extend(transfer.take_tokens(own));
            transfer.has_tokens()
        });
        for token in ended {
            self.complete(own, token, Outcome::PeerFailed);
        }
    }
}
