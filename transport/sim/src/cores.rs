//! The cores of nodes, for what ranks compute: where there are fewer than ranks that compute, these take turns.

use std::collections::{HashMap, VecDeque};

use crate::place::Place;
use crate::queue::Event;
use crate::state::State;
use crate::time::{Moment, Span};

/// What a rank has left to compute.
#[derive(Debug, Clone, Copy)]
struct Job {
    place: Place,
    left: Span,
}

/// The ranks of a node that compute.
#[derive(Debug, Default)]
struct Node {
    /// Each on a core, for this slice.
    running: Vec<Job>,
    waiting: VecDeque<Job>,
}

/// The cores of all nodes on which ranks compute.
#[derive(Debug, Default)]
pub(crate) struct Cores(HashMap<u32, Node>);

impl State {
    /// A rank computes for `span` of a core's time, once it is free, and goes on then.
    pub(crate) fn compute(&mut self, place: Place, span: Span) {
        let now = self.now;
        let machine = self.machine().unwrap_or_default();
        let member = self.member(place);
        member.is_computing = true;
        let rank = member.rank.as_u32();
        if machine.cores == 0 {
            let end = member.occupy(now, span);
            self.run_at(end, place);
            return;
        }
        let (begin, number) = (member.local.max(now), machine.node(rank));
        let job = Job { place, left: span };
        let node = self.cores.0.entry(number).or_default();
        match node.running.len() < machine.cores as usize {
            true => self.begin_slice(begin, number, job),
            false => node.waiting.push_back(job),
        }
    }

    fn begin_slice(&mut self, begin: Moment, node: u32, job: Job) {
        let slice = self.machine().map_or(Span::ZERO, |machine| machine.slice);
        let span = match slice {
            Span::ZERO => job.left,
            slice => job.left.min(slice),
        };
        self.cores.0.entry(node).or_default().running.push(Job {
            left: job.left.less(span),
            ..job
        });
        let rank = job.place.0;
        self.queue
            .push(begin + span, 0, Event::Slice { node, rank });
    }

    /// The slice of a rank that computes on a node ends: it goes on, waits for its next turn, or is done.
    pub(crate) fn end_slice(&mut self, node: u32, place: Place) {
        let now = self.now;
        let Some(cores) = self.cores.0.get_mut(&node) else {
            return;
        };
        let Some(index) = cores.running.iter().position(|job| job.place == place) else {
            return;
        };
        let job = cores.running.swap_remove(index);
        if job.left > Span::ZERO {
            cores.waiting.push_back(job);
        } else {
            self.run_at(now, place);
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
