//! When results are saved while more come.

use std::time::Duration;

use tagwire_base::{Clock, Time};

/// How much longer than a save the time between two is at least. Ranks measure meanwhile, perhaps on the same processors: a save is a load of
/// the machine, and one after each row takes longer the more rows there are.
const APART: u32 = 200;

/// When results were saved, and what that took.
#[derive(Debug, Default)]
pub(super) struct Pace {
    clock: Clock,
    last: Option<(Time, Duration)>,
}

impl Pace {
    /// Returns whether results that have come are to be saved now.
    pub(super) fn is_due(&self) -> bool {
        let Some((at, took)) = self.last else {
            return true;
        };
        self.clock.now().since(at) >= took.saturating_mul(APART)
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Says that they are saved, which began at a moment.
    pub(super) fn saved(&mut self, began: Time) {
        let now = self.clock.now();
        self.last = Some((now, now.since(began)));
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::ManualClock;

    use super::*;

    #[test]
    fn saves_take_a_200th_of_the_time_at_the_most() {
        let clock = ManualClock::default();
        let pass = |ms| clock.advance(Duration::from_millis(ms));
        let mut pace = Pace {
            clock: clock.clock(),
            last: None,
        };
        let save = |pace: &mut Pace, ms| {
            let began = pace.now();
            pass(ms);
            pace.saved(began);
        };
        assert!(pace.is_due(), "the first row is saved");
        save(&mut pace, 10);
        pass(1999);
        assert!(!pace.is_due());
        pass(1);
        assert!(pace.is_due());
        // The more there is to save, the rarer.
        save(&mut pace, 50);
        pass(9999);
        assert!(!pace.is_due());
        pass(1);
        assert!(pace.is_due());
    }
}
