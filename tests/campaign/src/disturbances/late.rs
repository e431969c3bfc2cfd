//! A rank that joins later than the others.

use std::time::Duration;

use tagwire_conformance::Chance;

use super::{Blow, Disturbance, Moment};

/// Has a rank sleep before it opens its session.
#[derive(Debug)]
pub struct Late;

impl Disturbance for Late {
    fn name(&self) -> &'static str {
        "late"
    }

    fn about(&self) -> &'static str {
        "a rank joins up to 400 ms after the others"
    }

    fn draw(&self, chance: &mut Chance, ranks: u32) -> Blow {
        let late = 1 + chance.below(400);
        Blow {
            name: self.name().to_owned(),
            rank: chance.below(u64::from(ranks)) as u32,
            at: Duration::ZERO,
            lasts: Duration::from_millis(late),
            amount: late,
        }
    }

    fn inside(&self, blow: &Blow, moment: Moment) {
        if moment == Moment::Opening {
            std::thread::sleep(Duration::from_millis(blow.amount));
        }
    }
}
