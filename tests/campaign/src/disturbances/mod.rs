//! What is done to a job, from outside of its ranks or inside of them.

mod cut;
mod fault;
mod kill;
mod late;
mod launcher;
mod limits;
mod scribble;
mod slow;
mod stop;

use std::time::Duration;

use tagwire_conformance::Chance;

use crate::blow::Blow;
use crate::grounds::{Ground, Setting};
use crate::job::Job;

pub use slow::SLOW;

/// What may become of whom a blow strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toll {
    /// Nothing: all that the rank does comes, later.
    None,
    /// The rank dies.
    Dies,
    /// It may die, and the others know then.
    MayDie,
    /// The whole job dies, with whoever ran it.
    Job,
    /// Whatever arrives may be wrong or missing: ranks end the contact, or wait. They do not crash.
    Anything,
}

/// What a disturbance is to strike.
#[derive(Clone, Copy)]
pub struct Against<'a> {
    /// Where the job runs.
    pub ground: &'a dyn Ground,
    /// Whether its program makes a call again that has ended for a shortage.
    pub calls_again: bool,
}

/// A disturbance. The driver calls all but [`inside`](Self::inside), in the order of its methods.
pub trait Disturbance: Sync {
    /// Returns its name in plans and reports.
    fn name(&self) -> &'static str;

    /// Returns one line for reports.
    fn about(&self) -> &'static str;

    /// What may become of the rank.
    fn toll(&self) -> Toll {
        Toll::None
    }

    /// Whether calls of the struck rank may end for a shortage.
    fn makes_short(&self) -> bool {
        false
    }

    /// Returns the time in which each rank has ended or goes on, from when the blow begins; `None` where the bound of the
    /// ground holds once it has lasted.
    fn within(&self) -> Option<Duration> {
        None
    }

    /// Whether it can be done there.
    fn fits(&self, _against: Against<'_>) -> bool {
        true
    }

    /// Draws a blow against one of so many ranks.
    fn draw(&self, chance: &mut Chance, ranks: u32) -> Blow {
        Blow {
            name: self.name().to_owned(),
            rank: chance.below(u64::from(ranks)) as u32,
            at: Duration::from_millis(chance.below(500)),
            lasts: Duration::ZERO,
            amount: 0,
        }
    }

    /// Returns settings for all ranks, before they start.
    fn settings(&self, _blow: &Blow) -> Vec<Setting> {
        Vec::new()
    }

    /// Strikes.
    ///
    /// # Errors
    /// When it cannot be done: the trial is void.
    fn begin(&self, _blow: &Blow, _job: &mut Job) -> Result<(), String> {
        Ok(())
    }

    /// Undoes it, after it has lasted.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    fn end(&self, _blow: &Blow, _job: &mut Job) -> Result<(), String> {
        Ok(())
    }

    /// Is called in the struck rank's process.
    fn inside(&self, _blow: &Blow, _moment: Moment) {}
}

/// When a disturbance may do something in its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the rank joins its job.
    Opening,
    /// Between two steps of its program.
    Step,
}

/// All of them. Plans of seeds change with this list.
pub const ALL: &[&dyn Disturbance] = &[
    &kill::Kill,
    &stop::Stop,
    &slow::Slow,
    &late::Late,
    &launcher::Launcher,
    &fault::JITTER,
    &fault::LOSS,
    &fault::DUPLICATION,
    &fault::CORRUPTION,
    &cut::CUT,
    &cut::FLAP,
    &cut::SEVER,
    &limits::DESCRIPTORS,
    &limits::MEMORY,
    &scribble::Scribble,
];

/// Returns the disturbance of a blow.
///
/// # Panics
/// When there is none: a blow is drawn, or read by who was given it.
pub fn of(blow: &Blow) -> &'static dyn Disturbance {
    let mut all = ALL.iter();
    let found = all.find(|disturbance| disturbance.name() == blow.name);
    *found.expect("a blow has the name of its disturbance")
}
