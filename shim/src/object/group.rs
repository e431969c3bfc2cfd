//! Groups by handle.

use std::ops::Deref;

use tagwire_base::Rank;

use crate::abi::Session;

/// Comparisons (MPI-5.0, section 7.3.1).
pub(crate) mod compare {
    pub(crate) const IDENT: i32 = 201;
    pub(crate) const CONGRUENT: i32 = 202;
    pub(crate) const SIMILAR: i32 = 203;
    pub(crate) const UNEQUAL: i32 = 204;
}

/// The members of a group, as ranks of the job.
#[derive(Debug)]
pub(crate) struct Ranks {
    ranks: Vec<Rank>,
    /// The session that it comes from; null for groups of the world model.
    session: Session,
}

impl Ranks {
    pub(crate) const fn new(ranks: Vec<Rank>, session: Session) -> Self {
        Self { ranks, session }
    }

    pub(crate) const fn session(&self) -> Session {
        self.session
    }
}

impl Deref for Ranks {
    type Target = [Rank];

    fn deref(&self) -> &[Rank] {
        &self.ranks
    }
}

/// Returns how two lists of ranks compare.
pub(crate) fn compared(first: &[Rank], second: &[Rank]) -> i32 {
    if first == second {
        return compare::IDENT;
    }
    let sorted = |ranks: &[Rank]| {
        let mut numbers: Vec<_> = ranks.iter().map(|rank| rank.as_u32()).collect();
        numbers.sort_unstable();
        numbers
    };
    match sorted(first) == sorted(second) {
        true => compare::SIMILAR,
        false => compare::UNEQUAL,
    }
}
