//! Threads of ranks that take turns: one at a time runs, and a seed decides who is next where it waits. So a program that blocks, with a
//! thread for each rank, does the same for the same seed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tagwire_base::Rank;
use tagwire_transport::fault::SplitMix64;

use crate::member::Status;
use crate::place::Place;
use crate::state::State;
use crate::time::{Moment, Span};

/// Whose turn it is.
#[derive(Debug)]
pub(crate) struct Turns {
    order: Mutex<Order>,
    changed: Condvar,
}

#[derive(Debug)]
struct Order {
    /// Ranks that have not begun.
    missing: u32,
    /// Ranks that have begun and not ended, by their numbers.
    ranks: Vec<Rank>,
    whose: Option<Rank>,
    random: SplitMix64,
}

impl Order {
    /// Another turn begins.
    fn turn(&mut self) {
        if self.missing > 0 {
            return;
        }
        let count = self.ranks.len() as u64;
        self.whose = match count {
            0 => None,
            _ => Some(self.ranks[(self.random.next_u64() % count) as usize]),
        };
    }
}

impl Turns {
    /// The turns of `size` ranks, of which the first begins when all have come.
    pub(crate) fn new(size: u32, seed: u64) -> Self {
        Self {
            order: Mutex::new(Order {
                missing: size,
                ranks: Vec::new(),
                whose: None,
                random: SplitMix64::stream(seed, 1),
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is the turn of `rank`.
    fn wait<'a>(&'a self, mut order: MutexGuard<'a, Order>, rank: Rank) {
        self.changed.notify_all();
        while order.whose != Some(rank) && (order.missing > 0 || order.ranks.contains(&rank)) {
            order = (self.changed.wait(order)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A rank begins: returns when all have begun and it is its turn.
    pub(crate) fn begin(&self, rank: Rank) {
        let mut order = self.lock();
        let place = order.ranks.partition_point(|other| *other < rank);
        order.ranks.insert(place, rank);
        order.missing = order.missing.saturating_sub(1);
        order.turn();
        self.wait(order, rank);
    }

    /// A rank waits for something: others have turns until it has one again.
    pub(crate) fn pass(&self, rank: Rank) {
        let mut order = self.lock();
        if order.whose == Some(rank) {
            order.turn();
        }
        if order.whose != Some(rank) {
            self.wait(order, rank);
        }
    }

    /// A rank has no turn any more.
    pub(crate) fn end(&self, rank: Rank) {
        let mut order = self.lock();
        order.ranks.retain(|other| *other != rank);
        if order.whose == Some(rank) {
            order.turn();
        }
        self.changed.notify_all();
    }
}

/// How far time moves on at once for a rank that polls, and may wait for a moment.
const STEP: Span = Span::nanos(1_000);

/// A rank that has its turn finds nothing to do. Where that is so of all ranks, time moves on: to the next event, to when the first wakes of those
/// that sleep, or a little, where one polls.
pub(crate) fn find_nothing(state: &mut State, place: Place) {
    let member = state.member(place);
    member.idle = Some(member.epoch);
    let mut wakes = Moment::MAX;
    for member in (state.members.iter()).filter(|member| member.status == Status::Open) {
        if member.idle != Some(member.epoch) {
            return;
        }
        wakes = wakes.min(member.asleep.unwrap_or(state.now + STEP));
    }
    if state.queue.next_at().is_some_and(|at| at <= wakes) {
        state.step();
    } else if wakes < Moment::MAX {
        state.now = state.now.max(wakes);
        nobody_is_idle(state);
    }
    let now = state.now;
    state.member(place).occupy(now, Span::ZERO);
}

/// All ranks are to look again.
pub(crate) fn nobody_is_idle(state: &mut State) {
    state
        .members
        .iter_mut()
        .for_each(|member| member.idle = None);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Returns who had a turn after whom.
    fn order(seed: u64) -> Vec<u32> {
        let (turns, seen) = (Turns::new(3, seed), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for rank in 0..3 {
                let (turns, seen) = (&turns, &seen);
                scope.spawn(move || {
                    turns.begin(Rank::new(rank));
                    for _ in 0..5 * (rank + 1) {
                        seen.lock().unwrap().push(rank);
                        turns.pass(Rank::new(rank));
                    }
                    turns.end(Rank::new(rank));
                });
            }
        });
        seen.into_inner().unwrap()
    }

    #[test]
    fn a_seed_is_an_order() {
        let first = order(1);
        assert_eq!(first.len(), 5 + 10 + 15);
        assert_eq!(first, order(1));
        let others = (2..6).map(order);
        assert!(others.into_iter().any(|other| other != first));
    }
}
