//! Cables between hosts that are pulled.

use std::time::Duration;

use tagwire_conformance::Chance;

use super::{Against, Blow, Disturbance, Job, Toll};

/// How long hosts need to find out that they are apart.
const APART: Duration = Duration::from_secs(6);

/// How a cable is pulled.
#[derive(Debug)]
pub struct Cut {
    name: &'static str,
    about: &'static str,
    toll: Toll,
    /// Whether it fits to so many cables.
    fits: fn(u8) -> bool,
    /// Draws the cable, and for how many milliseconds.
    draw: fn(&mut Chance) -> (u64, u64),
    is_mended: bool,
    within: Option<Duration>,
}

/// One of two cables is pulled for good: messages go by the other, and none is lost.
pub const CUT: Cut = Cut {
    name: "cut",
    about: "one of two cables between two hosts is pulled, for good",
    toll: Toll::None,
    fits: |cables| cables == 2,
    // The rails' patience, and the connections that are made anew.
    draw: |_| (1, 1000),
    is_mended: false,
    within: None,
};
/// A cable is pulled, and plugged in again before anybody may give up.
pub const FLAP: Cut = Cut {
    name: "flap",
    about: "a cable between two hosts is pulled, and plugged in again up to 400 ms later",
    toll: Toll::None,
    fits: |cables| cables == 1,
    draw: |chance| (0, 1 + chance.below(400)),
    is_mended: true,
    within: None,
};
/// The only cable is pulled for good: each side loses the other, and the one without the job's store ends.
pub const SEVER: Cut = Cut {
    name: "sever",
    about: "the only cable between two hosts is pulled, for good: both sides end or go on alone, within 6 s",
    toll: Toll::Job,
    fits: |cables| cables == 1,
    // What docs/failures.md states for hosts without a connection.
    draw: |_| (0, APART.as_millis() as u64),
    is_mended: false,
    within: Some(APART),
};

impl Disturbance for Cut {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn toll(&self) -> Toll {
        self.toll
    }

    fn within(&self) -> Option<Duration> {
        self.within
    }

    fn fits(&self, against: Against<'_>) -> bool {
        (self.fits)(against.ground.cables())
    }

    fn draw(&self, chance: &mut Chance, _ranks: u32) -> Blow {
        let at = chance.below(300);
        let (cable, lasts) = (self.draw)(chance);
        Blow {
            name: self.name.to_owned(),
            rank: 0,
            at: Duration::from_millis(at),
            lasts: Duration::from_millis(lasts),
            amount: cable,
        }
    }

    fn begin(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        job.site.set_cable(blow.amount, false)
    }

    fn end(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        match self.is_mended {
            true => job.site.set_cable(blow.amount, true),
            false => Ok(()),
        }
    }
}
