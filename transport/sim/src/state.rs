//! What the ranks of a network share, under one lock: the ranks, and the events to come.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tagwire_base::bootstrap::MemberEvent;
use tagwire_base::{ManualClock, Rank};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::message::{EndpointId, Outcome, Token};

use crate::cores::Cores;
use crate::due::Carried;
use crate::flight::{OperationId, UnderWay};
use crate::machine::{Link as NetworkLink, Machine};
use crate::member::{Item, Link, Member, Status};
use crate::nics::Nics;
use crate::options::SimOptions;
use crate::place::Place;
use crate::queue::{Event, Queue};
use crate::slots::Slots;
use crate::threads::ThreadNumber;
use crate::time::{Moment, Span};
use crate::transfer::Transfer;

/// What ranks have written into each other's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Puts {
    /// How many puts there were that reached memory.
    pub count: usize,
    /// Their bytes.
    pub bytes: usize,
    /// How often ranks have asked when all is there.
    pub flushes: usize,
}

/// What has happened in a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Entries of the queue that were handled.
    pub events: u64,
    /// Messages that were sent.
    pub messages: u64,
    /// Their payload, in bytes.
    pub bytes: u64,
}

/// What a rank is busy with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Sends a message, of which it copies so many bytes.
    Send { copied: usize },
    /// Receives one, and matches it where no network has done that.
    Recv {
        copied: usize,
        is_matched: bool,
        behind: Behind,
    },
}

/// What is behind a message that its receiver takes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Behind {
    /// Messages of its sender that are under way, or wait.
    pub(crate) of_sender: usize,
    /// Messages of anybody that wait.
    pub(crate) of_all: usize,
}

impl Behind {
    /// Returns how much longer a core is busy with a message of so many bytes.
    fn takes(self, link: &NetworkLink, len: usize) -> Span {
        if len > link.crowding_up_to as usize {
            return Span::ZERO;
        }
        let of_sender = link.crowding.of(len * self.of_sender);
        of_sender + link.crowding_beside.of(len * self.of_all)
    }
}

/// Returns how long a receiver copies a message of so many bytes.
fn copy_in(link: &NetworkLink, len: usize) -> Span {
    let copies = link.copy_in_up_to == 0 || len <= link.copy_in_up_to as usize;
    link.copy_in.of(if copies { len } else { 0 })
}

impl Work {
    /// Returns how long it keeps the core of a rank busy.
    fn takes(self, machine: &Machine, link: &NetworkLink) -> Span {
        match self {
            Self::Send { copied } => link.send + link.copy_out.of(copied),
            Self::Recv {
                copied,
                is_matched,
                behind,
            } => {
                let matching = match is_matched {
                    true => Span::ZERO,
                    false => machine.matching,
                };
                link.recv + matching + copy_in(link, copied) + behind.takes(link, copied)
            }
        }
    }
}

/// The whole network.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Arc<SimOptions>,
    pub(crate) members: Vec<Member>,
    places: HashMap<Rank, Place>,
    /// When the last event was.
    pub(crate) now: Moment,
    pub(crate) queue: Queue,
    pub(crate) flights: Slots<UnderWay>,
    pub(crate) nics: Nics,
    pub(crate) cores: Cores,
    random: SplitMix64,
    /// Cooperative transfers by number; the order makes progress deterministic.
    pub(crate) transfers: BTreeMap<u64, Transfer<Place>>,
    pub(crate) next_transfer: u64,
    next_operation: u64,
    pub(crate) next_exposed: u64,
    pub(crate) puts: Puts,
    pub(crate) counts: Counts,
    /// How ranks have ended, in that order.
    pub(crate) ended: Vec<MemberEvent>,
    /// The network whose messages this one carries.
    pub(crate) carried: Option<Arc<dyn Carried>>,
    /// Ranks are tasks that a simulation runs, and not driven by calls.
    pub(crate) has_tasks: bool,
    /// Something has come for somebody who may sleep.
    pub(crate) is_moved: bool,
}

impl State {
    pub(crate) fn new(options: Arc<SimOptions>) -> Self {
        Self {
            members: Vec::new(),
            places: HashMap::new(),
            now: Moment::default(),
            queue: Queue::default(),
            flights: Slots::default(),
            nics: Nics::default(),
            cores: Cores::default(),
            random: SplitMix64::stream(options.schedule.seed, 0),
            transfers: BTreeMap::new(),
            next_transfer: 0,
            next_operation: 0,
            next_exposed: 0,
            puts: Puts::default(),
            counts: Counts::default(),
            ended: Vec::new(),
            carried: None,
            has_tasks: false,
            is_moved: false,
            options,
        }
    }

    /// Returns the machine, where there is one.
    pub(crate) fn machine(&self) -> Option<Machine> {
        self.options.machine
    }

    /// Opens a rank; `None` where it was opened before.
    pub(crate) fn open(&mut self, rank: Rank, clock: ManualClock) -> Option<Place> {
        let place = Place(self.members.len() as u32);
        if self.places.contains_key(&rank) {
            return None;
        }
        self.places.insert(rank, place);
        self.members.push(Member::new(rank, clock));
        for kill in &self.options.schedule.kills {
            if kill.rank == rank.as_u32() {
                let at = Moment::default() + Span::from(kill.at);
                self.queue.push(at, 0, Event::Kill(place.0));
            }
        }
        Some(place)
    }

    pub(crate) fn find(&self, rank: Rank) -> Option<Place> {
        self.places.get(&rank).copied()
    }

    pub(crate) fn member(&mut self, place: Place) -> &mut Member {
        &mut self.members[place.index()]
    }

    /// Returns the endpoint of `from` for `to`, made on first contact, on both sides.
    pub(crate) fn link(&mut self, from: Place, to: Place) -> EndpointId {
        if let Some(known) = self.members[from.index()].by_peer.get(&to) {
            return *known;
        }
        let number = |of: Place| EndpointId(self.members[of.index()].links.len() as u32);
        let (there, back) = (number(from), number(to));
        for (own, peer, endpoint, back) in [(from, to, there, back), (to, from, back, there)] {
            let rank = self.members[peer.index()].rank;
            let member = self.member(own);
            if member.by_peer.insert(peer, endpoint).is_none() {
                member.links.push(Link {
                    rank,
                    peer,
                    back,
                    untaken: 0,
                    is_starved: false,
                    is_up: false,
                    is_closed: false,
                    is_fenced: false,
                    last: Moment::default(),
                    streamed: Moment::default(),
                });
            }
        }
        there
    }

    /// Enters the first contact by the peer at `endpoint`, once.
    pub(crate) fn greet(&mut self, place: Place, endpoint: EndpointId) {
        let member = self.member(place);
        let Some(link) = member.open_link(endpoint) else {
            return;
        };
        if !std::mem::replace(&mut link.is_up, true) {
            member.inbox.push_back(Item::Up(endpoint));
            self.signal(place);
        }
    }

    /// Something has come for a rank: each of its threads that waits goes on once it is free, and its sleepers look.
    pub(crate) fn signal(&mut self, place: Place) {
        let member = &mut self.members[place.index()];
        member.epoch = member.epoch.wrapping_add(1);
        self.is_moved = true;
        if !self.has_tasks {
            return;
        }
        let count = member.threads.count();
        for number in 0..count {
            self.wake(place, ThreadNumber(number));
        }
    }

    /// The thread of a rank whose turn it is has done something for which others of the rank wait: they go on, when it is done.
    pub(crate) fn tell(&mut self, place: Place) {
        if !self.has_tasks {
            return self.signal(place);
        }
        let threads = &mut self.member(place).threads;
        let (own, count, at) = (threads.turn(), threads.count(), threads.current().local);
        for number in (0..count).map(ThreadNumber) {
            if number != own {
                self.wake_at(at, place, number);
            }
        }
    }

    /// A thread of a rank goes on once it is free, unless it computes.
    pub(crate) fn wake(&mut self, place: Place, number: ThreadNumber) {
        self.wake_at(self.now, place, number);
    }

    fn wake_at(&mut self, moment: Moment, place: Place, number: ThreadNumber) {
        let now = self.now.max(moment);
        let thread = self.member(place).threads.at(number);
        if thread.is_scheduled || thread.is_computing {
            return;
        }
        thread.is_scheduled = true;
        let (at, rank, thread) = (thread.local.max(now), place.0, number.0);
        self.go_on(at, Event::Run { rank, thread });
    }

    /// Enters an event by which a thread goes on.
    pub(crate) fn go_on(&mut self, at: Moment, event: Event) {
        let tie = if self.options.schedule.shuffle {
            self.random.next_u64()
        } else {
            0
        };
        self.queue.push(at, tie, event);
    }

    /// A rank is busy with a message on its way to or from a peer. Returns when the message has left, or is there.
    pub(crate) fn work(&mut self, place: Place, peer: Place, work: Work) -> Moment {
        let Some(machine) = self.machine() else {
            return self.now;
        };
        let rank = |of: Place| self.members[of.index()].rank.as_u32();
        let (link, _) = machine.link(rank(place), rank(peer));
        let span = work.takes(&machine, link);
        let after = match work {
            Work::Send { .. } => link.after_send,
            Work::Recv { .. } => Span::ZERO,
        };
        let now = self.now;
        let member = self.member(place);
        let handover = machine.handover_of(member.threads.count());
        let done = member.occupy_library(now, span, handover);
        member.occupy_library(done, after, Span::ZERO);
        done
    }

    /// A rank copies bytes from or to the memory of another.
    pub(crate) fn copy(&mut self, place: Place, peer: Place, bytes: usize) {
        if let Some(machine) = self.machine() {
            let rank = |of: Place| self.members[of.index()].rank.as_u32();
            let (link, _) = machine.link(rank(place), rank(peer));
            let (now, span) = (self.now, link.copy_in.of(bytes));
            self.member(place).occupy(now, span);
        }
    }

    /// Returns the order of an event among those at the same moment: equal for packets of a pair, so that they keep theirs. It does not
    /// depend on the order in which ranks were opened.
    pub(crate) fn tie(&self, from: Place, to: Place, at: Moment) -> u64 {
        let schedule = &self.options.schedule;
        if !schedule.shuffle {
            return 0;
        }
        let rank = |of: Place| u64::from(self.members[of.index()].rank.as_u32());
        let pair = (rank(from) << 32) | rank(to);
        SplitMix64::stream(schedule.seed ^ at.since_start().as_picos(), pair).next_u64()
    }

    /// Returns a time of up to so much, as the seed has it.
    pub(crate) fn drawn(&mut self, most: Span) -> Span {
        match most.as_picos() {
            0 => Span::ZERO,
            most => Span::picos(self.random.below(most + 1)),
        }
    }

    /// Returns a name for an operation.
    pub(crate) fn operation(&mut self) -> OperationId {
        self.next_operation += 1;
        OperationId(self.next_operation)
    }

    /// Enters the end of an operation of a rank.
    pub(crate) fn complete(&mut self, place: Place, token: Token, outcome: Outcome) {
        let member = self.member(place);
        if member.status == Status::Open {
            member.completions.push_back((token, outcome));
            self.signal(place);
        }
    }
}
