//! What ranks do while they are disturbed, and check.

mod collectives;
mod flood;
mod mesh;
mod mpi;
mod partitioned;

use std::time::Duration;

use tagwire_conformance::Chance;

use crate::grounds::Ground;
use crate::stage::{Stage, Trouble};

/// A program. Its ranks run until they are told to end ([`Stage::step`]), go on without those who die, and check what
/// arrives.
pub trait Program: Sync {
    /// Returns its name in plans and reports.
    fn name(&self) -> &'static str;

    /// Returns one line for reports.
    fn about(&self) -> &'static str;

    /// Draws how many ranks it has.
    fn ranks(&self, chance: &mut Chance) -> u32 {
        2 + chance.below(3) as u32
    }

    /// Returns what is missing here for it. The driver asks before its first trial.
    fn why_not(&self) -> Option<String> {
        None
    }

    /// Whether the MPI library runs it, which ends a process that cannot join without a word of the program's.
    fn is_in_c(&self) -> bool {
        false
    }

    /// Returns how long it takes beyond what others do, once it is told to end. A flood may have so many messages.
    fn takes(&self, _flood: Option<u64>) -> Duration {
        Duration::ZERO
    }

    /// Whether it can run on a ground.
    fn runs_on(&self, _ground: &dyn Ground) -> bool {
        true
    }

    /// Whether a rank has to do with another, of so many, so that it hears of its end.
    fn hears_of(&self, _rank: u32, _peer: u32, _ranks: u32) -> bool {
        true
    }

    /// Whether it makes a call again that has ended for a shortage.
    fn calls_again(&self) -> bool {
        false
    }

    /// Runs one rank.
    ///
    /// # Errors
    /// When something is not as it must be. The end of a peer is said ([`Word::Lost`](crate::events::Word::Lost)), and is no error.
    fn run(&self, stage: &Stage) -> Result<(), Trouble>;
}

/// All of them. Plans of seeds change with this list.
pub const ALL: &[&dyn Program] = &[
    &mesh::Mesh,
    &collectives::Collectives,
    &flood::Flood,
    &partitioned::Partitioned,
    &mpi::MESSAGES,
    &mpi::WINDOWS,
];
