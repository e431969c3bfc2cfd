//! What the transport `fault` does to messages: between a rank and its transport, from a seed.

use std::time::Duration;

use tagwire_conformance::Chance;

use super::{Against, Blow, Disturbance};
use crate::grounds::Setting;

/// One kind of faults.
#[derive(Debug)]
pub struct Fault {
    name: &'static str,
    about: &'static str,
    /// Whether it takes somebody who mends it.
    damages: bool,
    /// The setting for an amount.
    text: fn(u64) -> String,
    most: u64,
}

/// Messages are held back, and verbs are busy for no reason.
pub const JITTER: Fault = Fault {
    name: "jitter",
    about: "messages are held back by up to 16 calls, one verb in ten is busy",
    damages: false,
    text: |amount| format!("delay=0..{amount},busy=10%"),
    most: 16,
};
/// Messages are lost.
pub const LOSS: Fault = Fault {
    name: "loss",
    about: "up to 5 % of the messages are lost, some come late by up to 4 places",
    damages: true,
    text: |amount| format!("loss={amount}%,reorder=4"),
    most: 5,
};
/// Messages come twice.
pub const DUPLICATION: Fault = Fault {
    name: "duplication",
    about: "up to 10 % of the messages come twice, some late by up to 8 places",
    damages: true,
    text: |amount| format!("duplicate={amount}%,reorder=8"),
    most: 10,
};
/// Messages have changed bits.
pub const CORRUPTION: Fault = Fault {
    name: "corruption",
    about: "up to 2 % of the messages have changed bits",
    damages: true,
    text: |amount| format!("corrupt={amount}%"),
    most: 2,
};

impl Disturbance for Fault {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn fits(&self, against: Against<'_>) -> bool {
        against.ground.takes_faults() && (against.ground.mends() || !self.damages)
    }

    fn draw(&self, chance: &mut Chance, _ranks: u32) -> Blow {
        Blow {
            name: self.name.to_owned(),
            rank: 0,
            at: Duration::ZERO,
            lasts: Duration::ZERO,
            amount: 1 + chance.below(self.most),
        }
    }

    fn settings(&self, blow: &Blow) -> Vec<Setting> {
        vec![("TAGWIRE_FAULT", (self.text)(blow.amount))]
    }
}
