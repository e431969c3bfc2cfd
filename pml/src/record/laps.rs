//! Times between records.

use tagwire_base::Clock;
use tagwire_base::clock::Time;
use tagwire_base::ticks::ticks;

/// The times between looks at a clock, whose sum is never ahead of the clock by more than a look at it takes.
///
/// A look at the machine's clock takes more than twice as long as one at the processor's own counter. So the counter is read, at a
/// scale that the clock gives it, and the clock itself after [`MOST`] ticks, and as long as there is no scale.
pub(super) struct Laps {
    clock: Clock,
    start: Time,
    /// Nanoseconds that were told since the start.
    told: u64,
    counter: Counter,
}

/// The processor's counter, as far as it follows a clock.
#[derive(Default)]
struct Counter {
    /// Where it was at the last look.
    ticks: u64,
    /// Nanoseconds of a tick, times 2^32, and what is left of those of the laps before.
    scale: u64,
    rest: u64,
    /// Ticks behind a look at the clock within which laps are measured by it; 0 without a scale.
    most: u64,
    /// Where it was when the clock was read.
    read: u64,
    /// A moment by both.
    base: Option<(Time, u64)>,
}

impl Laps {
    /// Starts now.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            start: clock.now(),
            clock,
            told: 0,
            counter: Counter::default(),
        }
    }

    /// Returns the nanoseconds since the call before, or since the start.
    #[inline]
    pub(super) fn lap(&mut self) -> u64 {
        match self.lap_by_counter() {
            Some(nanos) => u64::from(nanos),
            None => self.look(),
        }
    }

    /// The same by the counter; `None` where the clock is to be read.
    #[inline(always)]
    pub(super) fn lap_by_counter(&mut self) -> Option<u32> {
        let nanos = self.counter.lap(ticks())?;
        self.told += u64::from(nanos);
        Some(nanos)
    }

    /// The same by the clock.
    #[cold]
    #[inline(never)]
    fn look(&mut self) -> u64 {
        let before = ticks();
        let now = self.clock.now();
        let ticks = ticks();
        let nanos = (now.since(self.start).as_nanos() as u64).saturating_sub(self.told);
        self.told += nanos;
        if self.clock.is_of_machine() {
            self.counter.follow(now, before, ticks);
        }
        nanos
    }
}

impl Counter {
    /// Returns the nanoseconds since it was read before; `None` where the clock is to be asked.
    #[inline]
    fn lap(&mut self, ticks: u64) -> Option<u32> {
        // Where counters of processors differ it may have gone back, and that is a long way ahead.
        let passed = ticks.wrapping_sub(self.ticks);
        if passed >= self.most || ticks.wrapping_sub(self.read) >= self.most {
            return None;
        }
        self.ticks = ticks;
        let nanos = passed * self.scale + self.rest;
        self.rest = nanos & u64::from(u32::MAX);
        Some((nanos >> 32) as u32)
    }

    /// Goes on from a moment by the clock, read between two looks at the counter.
    fn follow(&mut self, now: Time, before: u64, ticks: u64) {
        (self.ticks, self.read, self.rest) = (ticks, ticks, 0);
        // Between them something else ran: the moment is not the same by both.
        if ticks.wrapping_sub(before) > NEAR {
            return;
        }
        let Some((base, first)) = self.base else {
            self.base = Some((now, ticks));
            return;
        };
        let nanos = now.since(base).as_nanos() as u64;
        if nanos < SPAN {
            return;
        }
        self.base = Some((now, ticks));
        let scale = (u128::from(nanos) << 32).checked_div(u128::from(ticks.wrapping_sub(first)));
        // From a tick of a microsecond on it tells nothing.
        let scale = scale.filter(|scale| (1..1000 << 32).contains(scale));
        self.scale = scale.unwrap_or(0) as u64;
        self.most = scale.map_or(0, |_| MOST);
    }
}

/// Most ticks between two looks at the counter that are taken for one moment.
const NEAR: u64 = 2_000;

/// Nanoseconds from which a scale is taken: a thousand times what a moment is uncertain by.
const SPAN: u64 = 1_000_000;

/// Ticks behind a look at the clock within which the counter is taken for it: a quarter of a millisecond to half of one.
const MOST: u64 = 1 << 20;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use tagwire_base::clock::ManualClock;

    use super::*;

    /// A counter of 2.5 ticks a nanosecond that follows a clock from 0 to 2 ms.
    fn counter() -> (Counter, ManualClock) {
        let clock = ManualClock::default();
        let mut counter = Counter::default();
        counter.follow(clock.clock().now(), 0, 100);
        assert_eq!(counter.lap(101), None, "there is no scale yet");
        clock.advance(Duration::from_millis(2));
        counter.follow(clock.clock().now(), 5_000_000, 5_000_100);
        (counter, clock)
    }

    #[test]
    fn laps_by_the_counter_have_the_scale_of_the_clock() {
        let (mut counter, _) = counter();
        // 0.4 ns a tick: fractions are not lost.
        let laps = (1..=50).map(|lap| counter.lap(5_000_100 + 3 * lap));
        let sum: u64 = laps.map(|nanos| u64::from(nanos.unwrap_or(u32::MAX))).sum();
        assert!((59..=60).contains(&sum), "{sum}");
    }

    #[test]
    fn the_clock_is_asked_after_a_while_a_pause_and_a_counter_that_went_back() {
        for ticks in [5_000_100 + MOST, 5_000_099] {
            assert_eq!(counter().0.lap(ticks), None);
        }
        // Laps of a thousand ticks, as long as the clock was read less than `MOST` ticks ago.
        let (mut counter, _) = counter();
        for ticks in (1000..MOST).step_by(1000) {
            assert!(counter.lap(5_000_100 + ticks).is_some());
        }
        assert_eq!(counter.lap(5_000_100 + MOST), None);
        // Back by less than that, behind laps.
        let (mut counter, _) = self::counter();
        assert!(counter.lap(5_001_000).is_some());
        assert_eq!(counter.lap(5_000_900), None);
    }

    #[test]
    fn a_moment_with_something_between_gives_no_scale() {
        let (mut counter, clock) = counter();
        let scale = counter.scale;
        clock.advance(Duration::from_millis(2));
        counter.follow(clock.clock().now(), 10_000_000, 90_000_000);
        assert_eq!(counter.scale, scale);
        assert_eq!(counter.lap(90_000_251), Some(100));
    }

    #[test]
    fn a_manual_clock_is_told_to_the_nanosecond() {
        let clock = ManualClock::default();
        let mut laps = Laps::new(clock.clock());
        for nanos in [1, 0, 3_000_000, 7] {
            clock.advance(Duration::from_nanos(nanos));
            assert_eq!(laps.lap(), nanos);
        }
    }

    #[test]
    fn the_sum_of_laps_follows_the_machines_clock() {
        let clock = Clock::default();
        let mut laps = Laps::new(clock.clone());
        let start = laps.start;
        let mut sum = 0;
        while clock.now().since(start) < Duration::from_millis(5) {
            sum += laps.lap();
        }
        sum += laps.look();
        // Never behind the clock after a look at it; ahead by no more than what the laps since the one before are uncertain by.
        let now = clock.now().since(start).as_nanos() as u64;
        assert_eq!(sum, laps.told);
        assert!(sum <= now + MOST, "{sum} {now}");
        assert!(sum >= 5_000_000, "{sum}");
    }
}
