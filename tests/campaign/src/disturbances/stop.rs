//! A rank that does not run for a while.

use std::time::Duration;

use rustix::process::Signal;
use tagwire_conformance::Chance;

use super::{Blow, Disturbance, Job};

/// Stops a rank's process, and lets it continue.
#[derive(Debug)]
pub struct Stop;

impl Disturbance for Stop {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn about(&self) -> &'static str {
        "SIGSTOP to a rank, SIGCONT up to 700 ms later"
    }

    fn draw(&self, chance: &mut Chance, ranks: u32) -> Blow {
        let longest = chance.one_of(&[3, 30, 700]);
        Blow {
            name: self.name().to_owned(),
            rank: chance.below(u64::from(ranks)) as u32,
            at: Duration::from_millis(chance.below(500)),
            lasts: Duration::from_millis(1 + chance.below(longest)),
            amount: 0,
        }
    }

    fn begin(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        job.signal(blow.rank, Signal::STOP);
        Ok(())
    }

    fn end(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        job.signal(blow.rank, Signal::CONT);
        Ok(())
    }
}
