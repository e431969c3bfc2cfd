//! The cores of nodes, for what threads of ranks compute: where there are fewer than threads that compute, these take turns.

use std::collections::{HashMap, VecDeque};

use crate::place::Place;
use crate::queue::Event;
use crate::state::State;
use crate::threads::ThreadNumber;
use crate::time::{Moment, Span};

/// What a thread has left to compute.
#[derive(Debug, Clone, Copy)]
struct Job {
    place: Place,
    thread: ThreadNumber,
    left: Left,
}

/// Until when a thread computes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Left {
    /// Until it has had a core for so long.
    Work(Span),
    /// Until so much time has passed since it first had a core: it looks at the clock.
    Clock(Span),
    /// The same, once it has had one.
    Until(Moment),
}

impl Left {
    /// Returns for how long it keeps a core that it gets now, if others leave it to it.
    fn from(self, now: Moment) -> Span {
        match self {
            Self::Work(span) | Self::Clock(span) => span,
            Self::Until(end) => end.since(now),
        }
    }

    /// Returns what is left after a slice that begins now.
    fn after(self, now: Moment, slice: Span) -> Self {
        match self {
            Self::Work(span) => Self::Work(span.less(slice)),
            Self::Clock(span) => Self::Until(now + span),
            Self::Until(_) => self,
        }
    }
}

/// The threads of a node that compute.
#[derive(Debug, Default)]
struct Node {
    /// Each on a core, for this slice.
    running: Vec<Job>,
    waiting: VecDeque<Job>,
}

/// The cores of all nodes on which threads compute.
#[derive(Debug, Default)]
pub(crate) struct Cores(HashMap<u32, Node>);

impl State {
    /// A thread computes on a core, once it is free, and goes on then.
    pub(crate) fn compute(&mut self, place: Place, number: ThreadNumber, left: Left) {
        let now = self.now;
        let machine = self.machine().unwrap_or_default();
        if machine.cores == 0 {
            return self.sleep(place, number, left.from(now));
        }
        let thread = self.member(place).threads.at(number);
        thread.is_computing = true;
        let begin = thread.local.max(now);
        let node = self.node_of(place);
        let job = Job {
            place,
            thread: number,
            left,
        };
        let cores = self.cores.0.entry(node).or_default();
        match cores.running.len() < machine.cores as usize {
            true => self.begin_slice(begin, node, job),
            false => cores.waiting.push_back(job),
        }
    }

    /// A thread does nothing for `span`, without a core.
    pub(crate) fn sleep(&mut self, place: Place, number: ThreadNumber, span: Span) {
        let now = self.now;
        let thread = self.member(place).threads.at(number);
        thread.is_computing = true;
        thread.local = thread.local.max(now) + span;
        let end = thread.local;
        self.computed(end, place, number);
    }

    fn computed(&mut self, at: Moment, place: Place, number: ThreadNumber) {
        let (rank, thread) = (place.0, number.0);
        self.go_on(at, Event::Computed { rank, thread });
    }

    fn node_of(&self, place: Place) -> u32 {
        let rank = self.members[place.index()].rank.as_u32();
        self.machine().unwrap_or_default().node(rank)
    }

    fn begin_slice(&mut self, begin: Moment, node: u32, job: Job) {
        let slice = self.machine().map_or(Span::ZERO, |machine| machine.slice);
        let whole = job.left.from(begin);
        let span = match slice {
            Span::ZERO => whole,
            slice => whole.min(slice),
        };
        self.cores.0.entry(node).or_default().running.push(Job {
            left: job.left.after(begin, span),
            ..job
        });
        let (rank, thread) = (job.place.0, job.thread.0);
        self.queue
            .push(begin + span, 0, Event::Slice { rank, thread });
    }

    /// The slice of a thread that computes ends: it goes on, waits for its next turn, or is done.
    pub(crate) fn end_slice(&mut self, place: Place, number: ThreadNumber) {
        let (now, node) = (self.now, self.node_of(place));
        let Some(cores) = self.cores.0.get_mut(&node) else {
            return;
        };
        let is_it = |job: &Job| job.place == place && job.thread == number;
        let Some(index) = cores.running.iter().position(is_it) else {
            return;
        };
        let job = cores.running.swap_remove(index);
        if job.left.from(now) > Span::ZERO {
            cores.waiting.push_back(job);
        } else {
            self.computed(now, place, number);
        }
        let next = self
            .cores
            .0
            .get_mut(&node)
            .and_then(|of| of.waiting.pop_front());
        if let Some(next) = next {
            self.begin_slice(now, node, next);
        }
    }
}
