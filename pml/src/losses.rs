//! The ranks that are gone, and which of them the user knows of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tagwire_base::{Rank, SourceSelector};

use crate::types::Failure;

/// Ranks that failed or left, in contact or not; empty in the good case.
#[derive(Debug, Default)]
pub struct Losses {
    gone: HashMap<Rank, Failure>,
    failed: Vec<Rank>,
    acknowledged: usize,
}

impl Losses {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// How `rank` is gone, if it is.
    pub(crate) fn of(&self, rank: Rank) -> Option<Failure> {
        self.gone.get(&rank).copied()
    }

    /// Notes the end of `rank`, of which the first word stands. Returns whether it is news.
    pub(crate) fn note(&mut self, rank: Rank, failure: Failure) -> bool {
        let Entry::Vacant(entry) = self.gone.entry(rank) else {
            return false;
        };
        entry.insert(failure);
        if !matches!(failure, Failure::PeerLeft(_)) {
            self.failed.push(rank);
        }
        true
    }

    /// What a receive from `from` fails with that is not matched: the rank is gone, or a failure
    /// is not acknowledged and any source was asked for.
    #[cold]
    pub(crate) fn of_receive(&self, from: SourceSelector) -> Option<Failure> {
        match from.rank() {
            Some(rank) => self.of(rank),
            None => self
                .failed
                .get(self.acknowledged)
                .map(|rank| Failure::PeerFailed(*rank)),
        }
    }

    /// The ranks that failed, in the order of discovery.
    pub(crate) fn failed(&self) -> Vec<Rank> {
        self.failed.clone()
    }

    pub(crate) fn acknowledge(&mut self) -> Vec<Rank> {
        self.acknowledged = self.failed.len();
        self.failed.clone()
    }
}
