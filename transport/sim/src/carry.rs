//! How packets travel: through the NIC of the sender's node, over the link, and through that of the receiver's.

use tagwire_transport::message::{EndpointId, Outcome};

use crate::flight::{Cargo, Flight, Message, Spot};
use crate::machine::Link;
use crate::member::{Item, Status};
use crate::picture::{Noted, told};
use crate::place::Place;
use crate::queue::Event;
use crate::state::State;
use crate::threads::ThreadNumber;
use crate::time::{Moment, Span};

/// What one event of the queue comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stepped {
    /// It is done.
    Done,
    /// A thread of a rank is to go on.
    Run(Place, ThreadNumber),
    /// A rank has died.
    Killed(Place),
}

/// Returns how far apart the last bytes of a message, and of what comes before it, are at least: where both go to one rank, and of all that
/// a rank sends, which sends to so many other ranks.
fn apart(link: &Link, cargo: &Cargo, others: impl FnOnce() -> usize) -> [Span; 2] {
    let len = cargo.len();
    match cargo {
        Cargo::Message(_) | Cargo::Load(_) if len > link.crowding_up_to as usize => {
            let beside = match link.process_beside.as_femtos() {
                0 => Span::ZERO,
                _ => link.process_beside.of(len * others()),
            };
            [link.stream.of(len), link.process.of(len) + beside]
        }
        Cargo::Message(_) | Cargo::Load(_) => [link.stream.of(len), Span::ZERO],
        _ => [Span::ZERO; 2],
    }
}

impl State {
    /// Sends a packet at a moment. Without a machine it arrives at once.
    pub(crate) fn carry(&mut self, at: Moment, flight: Flight) {
        let (from, to) = (flight.from, flight.to);
        let trace = self.options.trace.as_ref();
        let noted = trace.map(|trace| {
            let rank = |of: Place| self.members[of.index()].rank;
            trace.sent((rank(from), rank(to)), told(&flight.cargo), at)
        });
        let Some(machine) = self.machine() else {
            Noted::land(noted, self.now);
            return self.land(flight);
        };
        let number = self.flights.insert((flight, noted));
        self.is_moved = true;
        if machine.ranks_per_node > 1 {
            // Others of the node may have packets for the same NIC, of an earlier moment.
            let tie = self.tie(from, to, at);
            self.queue.push(at, tie, Event::Enter(number));
        } else {
            self.enter(at, number);
        }
    }

    /// Returns the link that a packet takes, and the numbers of the nodes at its ends where it goes between nodes.
    fn link_of(&self, flight: &Flight) -> Option<(Link, Option<(u32, u32)>)> {
        let machine = self.machine()?;
        let rank = |of: Place| self.members[of.index()].rank.as_u32();
        let (from, to) = (rank(flight.from), rank(flight.to));
        let (link, is_far) = machine.link(from, to);
        Some((
            *link,
            is_far.then(|| (machine.node(from), machine.node(to))),
        ))
    }

    /// A packet is ready at its sender's side.
    fn enter(&mut self, at: Moment, number: u32) {
        let Some((flight, _)) = self.flights.get(number) else {
            return;
        };
        let Some((link, nodes)) = self.link_of(flight) else {
            return;
        };
        let (from, to, endpoint, is_fenced) =
            (flight.from, flight.to, flight.link, flight.is_fenced);
        let bytes = link.per_byte.of(flight.cargo.len());
        let others = || self.members[from.index()].others(to);
        let [streamed, moved] = apart(&link, &flight.cargo, others);
        let own = self.members[from.index()].rank.as_u32();
        let shared = self.machine().filter(|machine| machine.shares_local);
        let free = match (nodes, shared) {
            (Some((node, _)), _) => &mut self.nic(node).out,
            (None, Some(machine)) => &mut self.nic(machine.node(own)).local,
            (None, None) => &mut self.members[from.index()].copying,
        };
        let start = at.max(*free);
        *free = start + link.gap.max(bytes);
        let head = start + link.latency + self.lateness();
        // Between ranks of a node nothing else lies between the packets of a pair.
        let mut next = if nodes.is_some() { head } else { head + bytes };
        let is_in_order = is_fenced || self.options.keeps_order();
        let sender = &mut self.members[from.index()];
        let peer = &mut sender.links[endpoint.index()];
        for (busy, span) in [(&mut peer.streamed, streamed), (&mut sender.moving, moved)] {
            if span > bytes {
                // The last byte comes with the stream, which other packets of the NIC go between.
                let begun = start.max(*busy);
                *busy = begun + span;
                let beside = match nodes {
                    Some(_) => span.less(bytes),
                    None => span,
                };
                next = next.max(begun + link.latency + beside);
            }
        }
        let last = &mut peer.last;
        if is_in_order {
            next = next.max(*last);
        }
        *last = next.max(*last);
        let tie = self.tie(from, to, next);
        let event = match nodes {
            Some(_) => Event::Head(number),
            None => Event::Land(number),
        };
        self.queue.push(next, tie, event);
    }

    fn nic(&mut self, node: u32) -> &mut crate::state::Nic {
        let count = node as usize + 1;
        if self.nics.len() < count {
            self.nics.resize_with(count, Default::default);
        }
        &mut self.nics[node as usize]
    }

    /// The first byte of a packet is at its receiver's NIC.
    fn head(&mut self, at: Moment, number: u32) {
        let Some((flight, _)) = self.flights.get(number) else {
            return;
        };
        let Some((link, Some((_, node)))) = self.link_of(flight) else {
            return;
        };
        let (from, to) = (flight.from, flight.to);
        let bytes = link.per_byte.of(flight.cargo.len());
        let free = &mut self.nic(node).inward;
        let start = at.max(*free);
        *free = start + link.gap.max(bytes);
        let tie = self.tie(from, to, start + bytes);
        self.queue.push(start + bytes, tie, Event::Land(number));
    }

    /// Handles the next event; `None` where there is none.
    pub(crate) fn step(&mut self) -> Option<Stepped> {
        let (at, event) = self.queue.pop()?;
        self.now = self.now.max(at);
        self.counts.events += 1;
        match event {
            Event::Enter(number) => self.enter(at, number),
            Event::Head(number) => self.head(at, number),
            Event::Land(number) => {
                if let Some((flight, noted)) = self.flights.remove(number) {
                    Noted::land(noted, self.now);
                    self.land(flight);
                }
            }
            Event::Run { rank, thread } => {
                let (place, number) = (Place(rank), ThreadNumber(thread));
                let thread = self.member(place).threads.at(number);
                thread.is_scheduled = false;
                // It has begun to compute since: it looks at what has come when it has done that.
                if !thread.is_computing {
                    return Some(self.turn_to(place, number, at));
                }
            }
            Event::Computed { rank, thread } => {
                let (place, number) = (Place(rank), ThreadNumber(thread));
                self.member(place).threads.at(number).is_computing = false;
                return Some(self.turn_to(place, number, at));
            }
            Event::Slice { rank, thread } => self.end_slice(Place(rank), ThreadNumber(thread)),
            Event::Kill(rank) => {
                let place = Place(rank);
                if self.member(place).status == Status::Open {
                    self.member(place).is_killed = true;
                    self.end(place, Status::Failed);
                    return Some(Stepped::Killed(place));
                }
            }
            Event::Found(rank) => self.found(Place(rank)),
            Event::Alarm(rank) => self.signal(Place(rank)),
        }
        Some(Stepped::Done)
    }

    /// It is the turn of a thread, from `at` on.
    fn turn_to(&mut self, place: Place, number: ThreadNumber, at: Moment) -> Stepped {
        let member = self.member(place);
        member.threads.turn_to(number);
        member.occupy(at, Span::ZERO);
        Stepped::Run(place, number)
    }

    /// A packet is there.
    fn land(&mut self, flight: Flight) {
        let Flight {
            from,
            to,
            link,
            cargo,
            ..
        } = flight;
        let back = self.members[from.index()].links[link.index()].back;
        let cargo = match cargo {
            Cargo::Load(load) => return self.land_load(from, to, load),
            other => other,
        };
        // The dead take nothing and answer nobody: what waits for them ends when their death is found.
        if self.member(to).status != Status::Open {
            return;
        }
        match cargo {
            Cargo::Message(message) => self.land_message(from, to, (link, back), message),
            Cargo::Goodbye => {
                self.greet(to, back);
                self.member(to).inbox.push_back(Item::Left(back));
                self.signal(to);
            }
            Cargo::Data { bytes, operation } => {
                if let Some(of) = self.member(to).take_operation(operation) {
                    let is_filled = of.target.is_some_and(|target| target.fill(&bytes));
                    let outcome = match is_filled {
                        true => Outcome::Done(bytes.len() as u64),
                        false => Outcome::Impossible,
                    };
                    self.complete(to, of.token, outcome);
                }
            }
            Cargo::Done { outcome, operation } => {
                if let Some(of) = self.member(to).take_operation(operation) {
                    self.complete(to, of.token, outcome);
                }
            }
            Cargo::Put {
                spot,
                bytes,
                immediate,
                operation,
            } => {
                let outcome = self.write(to, spot, &bytes, immediate);
                self.answer(to, from, back, Cargo::Done { outcome, operation });
            }
            Cargo::Get {
                spot,
                len,
                operation,
            } => {
                let exposed = spot
                    .key
                    .and_then(|key| self.members[to.index()].exposed.get(&key));
                let answer = match exposed.and_then(|memory| memory.read(spot.address, len)) {
                    Some(bytes) => Cargo::Data { bytes, operation },
                    None => Cargo::Done {
                        outcome: Outcome::Impossible,
                        operation,
                    },
                };
                self.answer(to, from, back, answer);
            }
            Cargo::Load(_) => {}
            Cargo::Flush(operation) => {
                let outcome = Outcome::Done(0);
                self.answer(to, from, back, Cargo::Done { outcome, operation });
            }
        }
    }

    /// The NIC answers, whatever its rank does.
    fn answer(&mut self, from: Place, to: Place, link: EndpointId, cargo: Cargo) {
        let now = self.now;
        self.carry(
            now,
            Flight {
                from,
                to,
                link,
                is_fenced: false,
                cargo,
            },
        );
    }

    fn land_message(
        &mut self,
        from: Place,
        to: Place,
        (link, back): (EndpointId, EndpointId),
        message: Message,
    ) {
        if self.member(to).open_link(back).is_none() {
            self.free_slot(from, link);
            return;
        }
        self.greet(to, back);
        self.member(to)
            .inbox
            .push_back(Item::Message(back, message));
        self.signal(to);
    }

    /// A message of `from` was taken or dropped.
    pub(crate) fn free_slot(&mut self, from: Place, link: EndpointId) {
        let link = &mut self.member(from).links[link.index()];
        link.untaken -= 1;
        if std::mem::take(&mut link.is_starved) {
            self.signal(from);
        }
    }

    /// Writes to the memory of a rank, and tells it.
    fn write(&mut self, to: Place, spot: Spot, bytes: &[u8], immediate: Option<u64>) -> Outcome {
        let member = self.member(to);
        let memory = spot.key.and_then(|key| member.writable.get(&key));
        if !memory.is_some_and(|memory| memory.write(spot.address, bytes)) {
            return Outcome::Impossible;
        }
        if let Some(immediate) = immediate {
            member.notices.push_back(immediate);
        }
        self.puts.count += 1;
        self.puts.bytes += bytes.len();
        // Who waits for what peers write looks at it.
        self.signal(to);
        Outcome::Done(bytes.len() as u64)
    }
}
