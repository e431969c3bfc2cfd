//! A random mix: threads of each rank call collectives of all forms in groups of their own, and send each other messages meanwhile.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::common::cases::{Case, Draws, cases};
use crate::common::threaded;
use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Rank, SourceSelector, Tag, TagSelector};
use tagwire_coll::{Request, Selection, Team};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, RequestId, SendMode, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{Shm, ShmOptions};
use tagwire_transport::{RecvBuffer, SendBuffer};

const THREADS: usize = 3;
const STEPS: u64 = 120;

/// Operations that a thread has under way at most.
const OPEN: usize = 8;

/// What a thread of a rank does in its group. All members draw the same steps, but for the order of their waits.
struct Mix<'t> {
    team: &'t Arc<Team>,
    /// Drawn alike by all.
    common: Draws,
    /// By this member for itself.
    own: Draws,
    open: VecDeque<(Box<Case>, Request)>,
    messages: Vec<RequestId>,
}

impl Mix<'_> {
    fn step(&mut self, round: u64) {
        match self.common.below(10) {
            0..3 => self.blocking(self.team, round),
            3..6 => self.nonblocking(round),
            6..8 => self.message(round),
            8 => self.wait_for_some(),
            _ => self.subgroup(round),
        }
    }

    fn pick(&mut self, team: &Arc<Team>, round: u64) -> Case {
        let mut all = cases(team, round);
        all.swap_remove(self.common.below(all.len()))
    }

    fn blocking(&mut self, team: &Arc<Team>, round: u64) {
        let mut case = self.pick(team, round);
        case.block(team);
        case.check();
    }

    fn nonblocking(&mut self, round: u64) {
        let mut case = Box::new(self.pick(self.team, round));
        let request = case.start(self.team);
        self.open.push_back((case, request));
        if self.open.len() == OPEN {
            self.wait_for_some();
        }
    }

    /// Each sends to the next, with what the round is for a tag.
    fn message(&mut self, round: u64) {
        let (messenger, size) = (self.team.messenger(), self.team.size());
        let (to, context) = self.team.peer((self.team.me() + 1) % size).unwrap();
        let tag = Tag::user(round as i32).unwrap();
        let mode = [SendMode::Standard, SendMode::Synchronous][self.own.below(2)];
        let sent = messenger.isend(SendBuffer::EMPTY, to, tag, context, mode);
        let (any, tag) = (SourceSelector::ANY, TagSelector::exact(tag));
        let received = messenger.irecv(RecvBuffer::EMPTY, any, tag, self.team.context());
        self.messages.extend([sent.unwrap(), received.unwrap()]);
    }

    /// Waits for operations and messages in an order of its own.
    fn wait_for_some(&mut self) {
        for _ in 0..self.own.below(OPEN) {
            let Some(place) = self.open.len().checked_sub(1) else {
                break;
            };
            let place = self.own.below(place + 1);
            let (case, request) = self.open.swap_remove_back(place).unwrap();
            request.wait(None).unwrap();
            case.check();
        }
        let messenger = self.team.messenger();
        let messages = std::mem::take(&mut self.messages);
        let complete = |request: &RequestId| messenger.test(*request).unwrap().is_some();
        self.messages = messages.into_iter().filter(|it| !complete(it)).collect();
    }

    fn subgroup(&mut self, round: u64) {
        let (me, colors) = (self.team.me(), 1 + self.common.below(3));
        let color = Some((me % colors) as u32);
        let part = Arc::new(self.team.split(color, 0).unwrap().unwrap());
        // Enough for a board.
        for more in 0..6 {
            self.blocking(&part, (round << 3) | more);
        }
    }

    fn end(mut self) {
        while let Some((case, request)) = self.open.pop_front() {
            request.wait(None).unwrap();
            case.check();
        }
        for request in self.messages {
            let ended = self.team.messenger().wait(request, None).unwrap();
            assert_eq!(ended.failure, None);
        }
        self.team.barrier().unwrap();
    }
}

fn mixed(world: &Arc<Team>, seed: u64) {
    let teams: Vec<_> = (0..THREADS)
        .map(|_| Arc::new(world.duplicate().unwrap()))
        .collect();
    std::thread::scope(|scope| {
        for (number, team) in teams.iter().enumerate() {
            scope.spawn(move || {
                let seed = (seed << 16) | ((number as u64) << 8);
                let mut mix = Mix {
                    team,
                    common: Draws::of(seed),
                    own: Draws::of(seed | (team.me() as u64 + 1)),
                    open: VecDeque::new(),
                    messages: Vec::new(),
                };
                (0..STEPS).for_each(|step| mix.step(step));
                mix.end();
            });
        }
    });
    world.barrier().unwrap();
}

/// Messages overtake each other.
#[test]
fn over_messages() {
    for (seed, size) in [1, 2, 3, 5].into_iter().enumerate() {
        threaded(size, |world| mixed(world, seed as u64));
    }
}

/// Groups have boards.
#[test]
fn over_shared_memory() {
    for (seed, size) in [2, 3, 4].into_iter().enumerate() {
        let job = LocalJob::new(size).unwrap();
        std::thread::scope(|scope| {
            for rank in (0..size).map(Rank::new) {
                let mut member = job.member(rank);
                scope.spawn(move || {
                    let rail = Box::new(Shm::open(ShmOptions::default(), &mut member).unwrap());
                    let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(member)).unwrap();
                    let policy = WaitPolicy::adaptive(true);
                    let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Multiple, policy));
                    let selection = Arc::new(Selection::default().on_one_host(true));
                    let world = Arc::new(Team::world(&messenger, selection));
                    mixed(&world, 100 + seed as u64);
                    let _ = messenger.close(Duration::from_secs(20));
                });
            }
        });
    }
}
