//! How packets travel: what each event comes to, and what a packet does where it lands.

use tagwire_transport::message::{EndpointId, Outcome};

use crate::flight::{Cargo, Flight, Message, Spot, UnderWay};
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
        let number = self.flights.insert(UnderWay::new(flight, noted));
        self.is_moved = true;
        if machine.ranks_per_node > 1 || machine.turn > 0 {
            // Others of the node, or other messages, may have packets for the same NIC, of an earlier moment.
            let tie = self.tie(from, to, at);
            self.queue.push(at, tie, Event::Enter(number));
        } else {
            self.enter(at, number);
        }
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
                if let Some(there) = self.flights.remove(number) {
                    Noted::land(there.noted, self.now);
                    self.land(there.flight);
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
