//! The NICs of nodes: when each is free, whose turn it is, and when what they send is at the other side.

use std::collections::{HashMap, VecDeque};

use tagwire_transport::message::EndpointId;

use crate::flight::{Cargo, Flight, Part};
use crate::machine::{Link, Machine};
use crate::member::Member;
use crate::place::Place;
use crate::queue::Event;
use crate::state::State;
use crate::time::{Moment, Span};

/// Both sides of a node's NIC, and the link between its ranks: when each is free.
#[derive(Debug, Default, Clone, Copy)]
struct Nic {
    out: Moment,
    inward: Moment,
    local: Moment,
}

/// The NICs of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Nics {
    nodes: Vec<Nic>,
    /// What a rank sends over an endpoint, where NICs take turns between messages: it goes one after the other.
    sending: HashMap<(Place, EndpointId), VecDeque<u32>>,
}

impl Nics {
    fn of(&mut self, node: u32) -> &mut Nic {
        let count = node as usize + 1;
        if self.nodes.len() < count {
            self.nodes.resize_with(count, Default::default);
        }
        &mut self.nodes[node as usize]
    }

    /// Returns whether a message goes now, and not behind others of its endpoint.
    fn begin(&mut self, of: (Place, EndpointId), number: u32) -> bool {
        let queue = self.sending.entry(of).or_default();
        if queue.front() == Some(&number) {
            return true;
        }
        queue.push_back(number);
        queue.len() == 1
    }

    /// Says that the first message of an endpoint has left, and returns the next.
    fn end(&mut self, of: (Place, EndpointId)) -> Option<u32> {
        let queue = self.sending.get_mut(&of)?;
        queue.pop_front();
        let next = queue.front().copied();
        if next.is_none() {
            self.sending.remove(&of);
        }
        next
    }
}

/// Takes what is free from a moment on for a time, and returns when that begins.
fn take(free: &mut Moment, at: Moment, time: Span) -> Moment {
    let start = at.max(*free);
    *free = start + time;
    start
}

/// Returns how long a NIC has to do with a part of a packet.
fn held(machine: &Machine, link: &Link, cargo: &Cargo, part: &Part) -> Span {
    let bytes = link.per_byte.of(part.len);
    if part.is_first {
        machine.gap(link, cargo.is_matched_by_ranks()).max(bytes)
    } else {
        bytes
    }
}

/// What a part of a packet takes.
struct Takes {
    /// How long its NIC has to do with it.
    held: Span,
    /// How long its bytes are on the way into the link.
    bytes: Span,
    /// How far apart the last of them and of what comes before are at least: where both go to one rank, and of all that this rank sends.
    apart: [Span; 2],
    /// How many of them the library of the sender's process moves.
    moved: usize,
}

impl Member {
    /// Returns what a part of a packet takes that is ready at a moment.
    fn takes(
        &self,
        (machine, link): (&Machine, &Link),
        flight: &Flight,
        (part, at): (&Part, Moment),
    ) -> Takes {
        let cargo = &flight.cargo;
        let streamed = match cargo {
            Cargo::Message(_) | Cargo::Load(_) => part.len,
            _ => 0,
        };
        // The sender's core writes short messages into the NIC.
        let is_moved = link.process.as_femtos() > 0 && cargo.len() > link.crowding_up_to as usize;
        let moved = if is_moved { streamed } else { 0 };
        let has_many = moved > 0 && self.leaving.bytes(at) >= link.process_from as usize;
        let process = link.process.of(if has_many { moved } else { 0 });
        let beside = self.apart_beside(link, cargo, part, (flight.to, at));
        Takes {
            held: held(machine, link, cargo, part),
            bytes: link.per_byte.of(part.len),
            apart: [link.stream.of(streamed), beside.max(process)],
            moved,
        }
    }

    /// Returns how far apart the last bytes of a part, which is ready for a rank at a moment, and of what comes before it are at least where
    /// bytes to others have yet to leave.
    fn apart_beside(
        &self,
        link: &Link,
        cargo: &Cargo,
        part: &Part,
        (to, at): (Place, Moment),
    ) -> Span {
        let beside = match cargo {
            Cargo::Put { .. } => link.beside_put,
            _ => link.beside,
        };
        if beside.as_femtos() == 0 || !self.leaving.is_beside(to, at) {
            return Span::ZERO;
        }
        link.per_byte.of(part.len) + beside.of(part.len)
    }

    /// A part of a packet for a rank leaves, and its NIC takes it from `start` to `left`. Returns until when it holds up those behind it,
    /// and when its head leaves if its tail follows after its bytes.
    fn leave(
        &mut self,
        (endpoint, to): (EndpointId, Place),
        takes: &Takes,
        [at, start, left]: [Moment; 3],
    ) -> (Moment, Moment) {
        let (mut gone, mut head) = (left, start);
        let peer = &mut self.links[endpoint.index()];
        for (busy, span) in [&mut peer.streamed, &mut self.moving]
            .into_iter()
            .zip(takes.apart)
        {
            if span > takes.bytes {
                // The last byte comes with the stream, which other packets of the NIC go between.
                let begun = take(busy, start, span);
                gone = gone.max(*busy);
                head = head.max(begun + span.less(takes.bytes));
            }
        }
        self.leaving.add(to, gone);
        if takes.moved > 0 {
            self.leaving.add_bytes(at, gone, takes.moved);
        }
        (gone, head)
    }
}

impl State {
    /// Returns the link that a packet takes, and the numbers of the nodes at its ends where it goes between nodes.
    fn link_of(&self, from: Place, to: Place) -> Option<(Link, Option<(u32, u32)>)> {
        let [from, to] = [from, to].map(|of| self.members[of.index()].rank);
        Some(self.machine()?.way(from.as_u32(), to.as_u32()))
    }

    /// A packet is ready at its sender's side, or what is left of one has its turn there.
    pub(crate) fn enter(&mut self, at: Moment, number: u32) {
        let Some(under_way) = self.flights.get(number) else {
            return;
        };
        let flight = &under_way.flight;
        let (Some(machine), Some((link, nodes))) =
            (self.machine(), self.link_of(flight.from, flight.to))
        else {
            return;
        };
        let (from, to, endpoint, is_fenced) =
            (flight.from, flight.to, flight.link, flight.is_fenced);
        let turn = nodes.and_then(|_| machine.turn());
        let part = under_way.unsent(turn);
        let takes = self.members[from.index()].takes((&machine, &link), flight, (&part, at));
        if turn.is_some() && part.is_first && !self.nics.begin((from, endpoint), number) {
            return;
        }
        let own = self.members[from.index()].rank.as_u32();
        let free = match (nodes, machine.shares_local) {
            (Some((node, _)), _) => &mut self.nics.of(node).out,
            (None, true) => &mut self.nics.of(machine.node(own)).local,
            (None, false) => &mut self.members[from.index()].copying,
        };
        let start = take(free, at, takes.held);
        let moments = [at, start, *free];
        let delay = Span::from(self.options.schedule.delay);
        let late = self.drawn(if part.is_last { delay } else { Span::ZERO });
        let sender = &mut self.members[from.index()];
        let (gone, slowed) = sender.leave((endpoint, to), &takes, moments);
        // Between ranks of a node nothing else lies between the packets of a pair.
        let tail = if nodes.is_some() {
            Span::ZERO
        } else {
            takes.bytes
        };
        let mut next = (start + late).max(slowed) + link.latency + tail;
        let last = &mut sender.links[endpoint.index()].last;
        if is_fenced || self.options.keeps_order() {
            next = next.max(*last);
        }
        *last = next.max(*last);
        let tie = self.tie(from, to, next);
        let event = match nodes {
            Some(_) => Event::Head(number),
            None => Event::Land(number),
        };
        self.queue.push(next, tie, event);
        // The rest of it goes on when this has left, or the next one to the same rank.
        let rest = self
            .flights
            .get_mut(number)
            .and_then(|of| of.send(number, &part));
        let behind = || turn.and_then(|_| self.nics.end((from, endpoint)));
        if let Some(more) = rest.or_else(behind) {
            let tie = self.tie(from, to, gone);
            self.queue.push(gone, tie, Event::Enter(more));
        }
    }

    /// The first byte of a packet, or of a part of one, is at its receiver's NIC.
    pub(crate) fn head(&mut self, at: Moment, number: u32) {
        let Some(under_way) = self.flights.get_mut(number) else {
            return;
        };
        let machine = self.options.machine.unwrap_or_default();
        let (from, to) = (under_way.flight.from, under_way.flight.to);
        let part = under_way.come(machine.turn());
        let [own, other] = [from, to].map(|of| self.members[of.index()].rank.as_u32());
        let (link, Some((_, node))) = machine.way(own, other) else {
            return;
        };
        let held = held(&machine, &link, &under_way.flight.cargo, &part);
        let start = take(&mut self.nics.of(node).inward, at, held);
        if part.is_last {
            let there = start + link.per_byte.of(part.len);
            let tie = self.tie(from, to, there);
            self.queue.push(there, tie, Event::Land(number));
        }
    }
}
