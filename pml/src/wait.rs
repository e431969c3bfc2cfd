//! How a rank waits: spin, then yield, then sleep.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tagwire_base::{Clock, Time};
use tagwire_transport::Capabilities;

/// How far waiting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Spin, then yield the core, then sleep in the kernel.
    Adaptive,
    /// Spin for ever: lowest latency, a whole core.
    Spin,
    /// Spin, then yield for ever.
    Yield,
    /// Sleep at once: least work for the processor.
    Sleep,
}

/// The settings of waiting.
#[derive(Debug, Clone, Copy)]
pub struct WaitPolicy {
    /// How far it goes.
    pub mode: WaitMode,
    /// Empty polls before yielding.
    pub spins: u32,
    /// Yields before sleeping.
    pub yields: u32,
    /// Longest sleep in one piece: peers are looked after in between.
    pub sleep: Duration,
}

impl WaitPolicy {
    /// The policy for a machine on which each rank has a core to itself, or not.
    #[must_use]
    pub const fn adaptive(oversubscribed: bool) -> Self {
        Self {
            mode: WaitMode::Adaptive,
            // Alone on its core a rank loses nothing by spinning for some 100 us, longer than a
            // wake-up takes. On a shared core every spin is taken from the rank it waits for.
            spins: if oversubscribed { 0 } else { 10_000 },
            yields: if oversubscribed { 200 } else { 100 },
            sleep: Duration::from_millis(50),
        }
    }

    /// Returns the same policy for a rank over a transport of these capabilities. Where threads of the
    /// transport move the bytes, a rank that spins may keep them from their core, and one that yields
    /// gives it to anybody: it leaves the core at once.
    #[must_use]
    pub const fn over(self, transport: Capabilities) -> Self {
        if !transport.contains(Capabilities::THREADS) {
            return self;
        }
        Self {
            spins: 0,
            yields: 0,
            ..self
        }
    }

    /// Whether a rank takes turns with others on its core, and yields where it waits.
    const fn takes_turns(self) -> bool {
        let yields = match self.mode {
            WaitMode::Adaptive => self.yields > 0,
            WaitMode::Yield => true,
            WaitMode::Spin | WaitMode::Sleep => false,
        };
        self.spins == 0 && yields
    }

    /// Yields the core after a test that brought no `events`, where ranks take turns: a program that tests in a loop waits,
    /// and keeps the one it waits for from the core.
    pub(crate) fn after_test(self, events: usize) {
        if events == 0 && self.takes_turns() {
            rustix::thread::sched_yield();
        }
    }
}

/// A yield that took longer gave the core to somebody who computes: a rank that waits, as this
/// one does, would have given it back.
const LONG_YIELD: Duration = Duration::from_micros(100);

/// The same for a rank that spins before it yields, as long as that one may spin; a process that computes
/// keeps its core for a slice of the scheduler, a millisecond and more.
const LONG_SPIN_AND_YIELD: Duration = Duration::from_micros(600);

/// Spinning for longer than this costs more than it saves, whatever a poll takes: polls of a network are system calls.
const LONGEST_SPIN: Duration = Duration::from_micros(150);

/// After so many polls a wait looks at the clock for the first time. Short ones end before.
const FIRST_LOOK: u32 = 64;

/// Whether the rank that is waited for takes turns with this one on a core, as far as waits have shown: the
/// numbers of ranks and cores do not say it where both are bound to one core, or left one by `taskset`.
///
/// A wait shows it when it has spun in vain and the first yield brings what it waited for. Then the next
/// waits yield at once, up to one that spins again in order to see whether it is still so: once more it trusts
/// four times as many; where that one is served while it spins, the rank has its core to itself.
#[derive(Debug, Default)]
pub(crate) struct SharedCore {
    /// Waits that are still to yield at once.
    left: AtomicU32,
    /// How many it was at last.
    trust: AtomicU32,
}

impl SharedCore {
    /// How many waits yield at once after the first that has shown a peer on the core.
    const FIRST: u32 = 16;
    /// The most after one that has shown it again.
    const MOST: u32 = 4096;

    /// Returns how many waits were trusted at last, where the next one is to see whether it is still so; `None`
    /// where that one yields at once.
    #[inline]
    fn trust(&self) -> Option<u32> {
        (self.left.load(Ordering::Relaxed) == 0).then(|| self.trust.load(Ordering::Relaxed))
    }

    /// A wait has yielded at once. Threads may lose counts to each other: it is a rhythm, no sum.
    fn count(&self) {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
    }

    /// A wait that spun in vain had what it waited for after a yield that took `away`.
    #[cold]
    fn learn(&self, away: Duration, trust: u32) {
        if away > LONG_SPIN_AND_YIELD {
            return;
        }
        let trust = (trust * 4).clamp(Self::FIRST, Self::MOST);
        self.trust.store(trust, Ordering::Relaxed);
        self.left.store(trust, Ordering::Relaxed);
    }

    /// Yielding at once does not bring the peer's turn: others compute on the core, or the peer has another.
    #[cold]
    fn forget(&self) {
        self.trust.store(0, Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }
}

/// What to do next while nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Spin,
    Yield,
    Sleep,
}

/// Counts how long nothing has happened, in one wait.
#[derive(Debug)]
pub(crate) struct Backoff<'a> {
    policy: WaitPolicy,
    core: &'a SharedCore,
    /// How many waits the core's last lesson was trusted for, if this one may unlearn it; else 0.
    trust: u32,
    idle: u32,
    /// When the last turn began, if it yielded.
    yielded: Option<Time>,
    /// When the clock was looked at first, once it was.
    spins_since: Time,
}

impl<'a> Backoff<'a> {
    #[inline]
    pub(crate) fn new(policy: WaitPolicy, core: &'a SharedCore) -> Self {
        let trust = core.trust();
        let spins = if trust.is_some() { policy.spins } else { 0 };
        Self {
            policy: WaitPolicy { spins, ..policy },
            core,
            trust: trust.unwrap_or(0),
            idle: 0,
            yielded: None,
            spins_since: Time::default(),
        }
    }

    /// Something happened.
    #[inline]
    pub(crate) fn reset(&mut self, clock: &Clock) {
        if self.yielded.is_some() {
            self.learn(clock);
        } else if self.trust > 0 && self.idle > 0 {
            self.trust = 0;
            self.core.forget();
        }
        self.idle = 0;
    }

    /// Something happened after a yield. What is done from now on is no time that the core was away.
    #[cold]
    fn learn(&mut self, clock: &Clock) {
        let Some(before) = self.yielded.take() else {
            return;
        };
        if self.policy.spins > 0 && self.idle == self.policy.spins + 1 {
            self.core.learn(clock.now().since(before), self.trust);
        }
    }

    /// Nothing happened: what now?
    #[inline]
    pub(crate) const fn step(&mut self) -> Step {
        self.idle = self.idle.saturating_add(1);
        match self.policy.mode {
            WaitMode::Spin => Step::Spin,
            WaitMode::Sleep => Step::Sleep,
            _ if self.idle <= self.policy.spins => Step::Spin,
            WaitMode::Yield => Step::Yield,
            WaitMode::Adaptive if self.idle - self.policy.spins <= self.policy.yields => {
                Step::Yield
            }
            WaitMode::Adaptive => Step::Sleep,
        }
    }

    /// Returns what to do in place of `step` at `now`. After a yield that gave the core to somebody who
    /// computes, yielding again would too: sleeping costs a wake-up, but a sleeper is woken for a message,
    /// not for its turn.
    pub(crate) fn step_at(&mut self, step: Step, now: Time) -> Step {
        if step == Step::Spin {
            self.spin_at(now);
            return step;
        }
        let before = self.yielded.take();
        if self.policy.spins == 0 && self.idle == 1 {
            self.core.count();
        }
        let is_contended = before.is_some_and(|before| now.since(before) > LONG_YIELD);
        let step = if is_contended {
            self.core.forget();
            self.idle = u32::MAX;
            match step {
                Step::Yield => self.step(),
                other => other,
            }
        } else {
            step
        };
        if step == Step::Yield {
            self.yielded = Some(now);
        }
        step
    }

    /// Has spun up to `now`: the next step yields once that has taken long.
    const fn spin_at(&mut self, now: Time) {
        if self.idle == FIRST_LOOK {
            self.spins_since = now;
        }
        let has_looked = self.idle > FIRST_LOOK && !matches!(self.policy.mode, WaitMode::Spin);
        let since = now.since(self.spins_since);
        if has_looked && self.idle < self.policy.spins && since.as_nanos() > LONGEST_SPIN.as_nanos()
        {
            self.idle = self.policy.spins;
        }
    }

    /// Whether it is time to look at the clock: after each doubling of the idle steps, and every so many.
    #[inline]
    pub(crate) const fn is_checkpoint(&self) -> bool {
        self.idle.is_multiple_of(1024) || (self.idle >= FIRST_LOOK && self.idle.is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::ManualClock;

    use super::*;

    #[test]
    fn waiting_goes_from_spin_to_sleep() {
        let policy = WaitPolicy {
            spins: 2,
            yields: 1,
            ..WaitPolicy::adaptive(false)
        };
        let core = SharedCore::default();
        let mut backoff = Backoff::new(policy, &core);
        let steps: Vec<_> = (0..5).map(|_| backoff.step()).collect();
        assert_eq!(
            steps,
            [
                Step::Spin,
                Step::Spin,
                Step::Yield,
                Step::Sleep,
                Step::Sleep
            ]
        );
        backoff.reset(&Clock::default());
        assert_eq!(backoff.step(), Step::Spin);
    }

    /// A poll of a network is a system call.
    #[test]
    fn slow_polls_are_not_many() {
        let (core, hand) = (SharedCore::default(), ManualClock::default());
        let clock = hand.clock();
        let polls = |each: Duration, mode| {
            let policy = WaitPolicy {
                mode,
                ..WaitPolicy::adaptive(false)
            };
            let mut backoff = Backoff::new(policy, &core);
            let mut polls = 0;
            while polls < 20_000 && backoff.step() == Step::Spin {
                if backoff.is_checkpoint() {
                    assert_eq!(backoff.step_at(Step::Spin, clock.now()), Step::Spin);
                }
                hand.advance(each);
                polls += 1;
            }
            polls
        };
        let (fast, slow) = (Duration::from_nanos(10), Duration::from_micros(1));
        assert_eq!(polls(fast, WaitMode::Adaptive), 10_000);
        assert_eq!(polls(slow, WaitMode::Adaptive), 256);
        assert_eq!(polls(slow, WaitMode::Spin), 20_000);
    }

    /// Waits that spin twice.
    const POLICY: WaitPolicy = WaitPolicy {
        spins: 2,
        ..WaitPolicy::adaptive(false)
    };

    /// One wait, whose yield keeps the rank off its core for `away` and brings what it waited for. Returns
    /// how often it spun before.
    fn wait(core: &SharedCore, away: Duration) -> usize {
        let hand = ManualClock::default();
        let clock = hand.clock();
        let mut backoff = Backoff::new(POLICY, core);
        let mut spins = 0;
        while backoff.step() == Step::Spin {
            spins += 1;
        }
        assert_eq!(backoff.step_at(Step::Yield, clock.now()), Step::Yield);
        hand.advance(away);
        backoff.reset(&clock);
        spins
    }

    #[test]
    fn a_core_shared_with_the_peer_is_yielded_at_once() {
        let core = SharedCore::default();
        let away = Duration::from_micros(70);
        assert_eq!(wait(&core, away), 2, "as on a core of its own");
        for trust in [16, 64, 256, 1024, 4096, 4096] {
            for _ in 0..trust {
                assert_eq!(wait(&core, away), 0);
            }
            assert_eq!(wait(&core, away), 2, "to see whether it is still so");
        }
    }

    #[test]
    fn what_comes_while_spinning_comes_from_another_core() {
        let (core, clock) = (SharedCore::default(), Clock::default());
        let away = Duration::from_micros(70);
        for _ in 0..3 {
            assert_eq!(wait(&core, away), 2);
            for _ in 0..16 {
                assert_eq!(wait(&core, away), 0);
            }
            let mut backoff = Backoff::new(POLICY, &core);
            assert_eq!(backoff.step(), Step::Spin);
            backoff.reset(&clock);
        }
    }

    #[test]
    fn somebody_who_computes_on_the_core_is_no_peer() {
        let core = SharedCore::default();
        for _ in 0..3 {
            assert_eq!(wait(&core, Duration::from_millis(1)), 2);
        }
    }

    #[test]
    fn a_yield_that_is_not_the_first_after_spins_shows_nothing() {
        let (core, clock) = (SharedCore::default(), Clock::default());
        let mut backoff = Backoff::new(POLICY, &core);
        let now = clock.now();
        for step in [Step::Spin, Step::Spin, Step::Yield, Step::Yield] {
            assert_eq!(backoff.step(), step);
            if step == Step::Yield {
                assert_eq!(backoff.step_at(step, now), step);
            }
        }
        backoff.reset(&clock);
        assert_eq!(wait(&core, Duration::ZERO), 2);
    }

    #[test]
    fn a_contended_core_is_slept_on() {
        let core = SharedCore::default();
        let (hand, policy) = (ManualClock::default(), WaitPolicy::adaptive(true));
        let clock = hand.clock();
        let mut backoff = Backoff::new(policy, &core);
        for (away, step) in [
            (Duration::ZERO, Step::Yield),
            (Duration::from_micros(90), Step::Yield),
            (Duration::from_micros(110), Step::Sleep),
        ] {
            hand.advance(away);
            let next = backoff.step();
            assert_eq!(backoff.step_at(next, clock.now()), step, "after {away:?}");
        }
        assert_eq!(backoff.step(), Step::Sleep);
        backoff.reset(&clock);
        assert_eq!(backoff.step(), Step::Yield);
    }

    #[test]
    fn a_contended_core_is_not_yielded_at_once() {
        let core = SharedCore::default();
        wait(&core, Duration::ZERO);
        let (hand, mut backoff) = (ManualClock::default(), Backoff::new(POLICY, &core));
        let clock = hand.clock();
        for (away, step) in [(0, Step::Yield), (110, Step::Sleep)] {
            hand.advance(Duration::from_micros(away));
            let next = backoff.step();
            assert_eq!(backoff.step_at(next, clock.now()), step);
        }
        assert_eq!(wait(&core, Duration::ZERO), 2);
    }

    #[test]
    fn threads_of_a_transport_are_left_the_core_at_once() {
        let policy = WaitPolicy::adaptive(false);
        let core = SharedCore::default();
        let first = |policy| Backoff::new(policy, &core).step();
        assert_eq!(first(policy.over(Capabilities::WAKE)), Step::Spin);
        let over = policy.over(Capabilities::WAKE | Capabilities::THREADS);
        assert_eq!(first(over), Step::Sleep);
        for (mode, step) in [(WaitMode::Spin, Step::Spin), (WaitMode::Yield, Step::Yield)] {
            assert_eq!(
                first(WaitPolicy { mode, ..over }),
                step,
                "as it was asked for"
            );
        }
    }

    #[test]
    fn ranks_that_share_cores_take_turns_in_tests_too() {
        let shared = WaitPolicy::adaptive(true);
        assert!(shared.takes_turns());
        assert!(!WaitPolicy::adaptive(false).takes_turns());
        assert!(!shared.over(Capabilities::THREADS).takes_turns());
        for (mode, takes_turns) in [
            (WaitMode::Spin, false),
            (WaitMode::Yield, true),
            (WaitMode::Sleep, false),
        ] {
            assert_eq!(WaitPolicy { mode, ..shared }.takes_turns(), takes_turns);
        }
    }

    #[test]
    fn modes_end_where_they_say() {
        for (mode, last) in [
            (WaitMode::Spin, Step::Spin),
            (WaitMode::Yield, Step::Yield),
            (WaitMode::Sleep, Step::Sleep),
        ] {
            let policy = WaitPolicy {
                mode,
                ..WaitPolicy::adaptive(true)
            };
            let core = SharedCore::default();
            let mut backoff = Backoff::new(policy, &core);
            let steps = (0..1000).map(|_| backoff.step());
            assert_eq!(steps.last(), Some(last));
        }
    }
}
