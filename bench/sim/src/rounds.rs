//! When the ranks of a job have ended each round.

use std::cell::RefCell;

use tagwire_sim::Moment;

use crate::rank::SimRank;

/// A round of a program: when the first of its ranks had ended it, and when the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// The first.
    pub first: Moment,
    /// The last.
    pub last: Moment,
}

/// Takes note of the ends of rounds.
#[derive(Debug, Default)]
pub(crate) struct Clockwork(RefCell<Vec<Option<Round>>>);

impl Clockwork {
    /// A rank has ended a round.
    pub(crate) fn note(&self, rank: &SimRank, round: u32) {
        let now = rank.actor().now();
        let mut rounds = self.0.borrow_mut();
        let index = round as usize;
        if rounds.len() <= index {
            rounds.resize(index + 1, None);
        }
        let round = rounds[index].get_or_insert(Round {
            first: now,
            last: now,
        });
        round.first = round.first.min(now);
        round.last = round.last.max(now);
    }

    /// Returns the rounds that any rank has ended.
    pub(crate) fn rounds(&self) -> Vec<Round> {
        self.0.borrow().iter().flatten().copied().collect()
    }
}
