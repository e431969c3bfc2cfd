//! A rank that computes, or does nothing, between its calls.

use std::time::Duration;

use tagwire_conformance::Chance;

use super::{Blow, Disturbance, Moment};

/// Has a rank sleep between its steps.
#[derive(Debug)]
pub struct Slow;

/// What it is called.
pub const SLOW: &str = "slow";

impl Disturbance for Slow {
    fn name(&self) -> &'static str {
        SLOW
    }

    fn about(&self) -> &'static str {
        "a rank sleeps for up to 20 ms between its steps"
    }

    fn draw(&self, chance: &mut Chance, ranks: u32) -> Blow {
        let longest = chance.one_of(&[50, 1_000, 20_000]);
        Blow {
            name: self.name().to_owned(),
            rank: chance.below(u64::from(ranks)) as u32,
            at: Duration::ZERO,
            lasts: Duration::ZERO,
            amount: 1 + chance.below(longest),
        }
    }

    fn inside(&self, blow: &Blow, moment: Moment) {
        if moment == Moment::Step {
            std::thread::sleep(Duration::from_micros(blow.amount));
        }
    }
}
