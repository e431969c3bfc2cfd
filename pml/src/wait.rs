//! How a rank waits: spin, then yield, then sleep.

use std::time::Duration;

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
}

/// What to do next while nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Spin,
    Yield,
    Sleep,
}

/// Counts how long nothing has happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    policy: WaitPolicy,
    idle: u32,
}

impl Backoff {
    pub(crate) const fn new(policy: WaitPolicy) -> Self {
        Self { policy, idle: 0 }
    }

    /// Something happened.
    #[inline]
    pub(crate) const fn reset(&mut self) {
        self.idle = 0;
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

    /// A yield gave the core away for long: others compute on it, and yielding again would too.
    /// Sleeping costs a wake-up, but a sleeper is woken for a message, not for its turn.
    #[inline]
    pub(crate) const fn core_is_contended(&mut self) {
        self.idle = u32::MAX;
    }

    /// Whether it is time to look at the clock: every so many idle steps.
    #[inline]
    pub(crate) const fn is_checkpoint(&self) -> bool {
        self.idle.is_multiple_of(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_goes_from_spin_to_sleep() {
        let policy = WaitPolicy {
            spins: 2,
            yields: 1,
            ..WaitPolicy::adaptive(false)
        };
        let mut backoff = Backoff::new(policy);
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
        backoff.reset();
        assert_eq!(backoff.step(), Step::Spin);
    }

    #[test]
    fn a_contended_core_is_slept_on() {
        let mut backoff = Backoff::new(WaitPolicy::adaptive(true));
        backoff.core_is_contended();
        assert_eq!(backoff.step(), Step::Sleep);
        backoff.reset();
        assert_eq!(backoff.step(), Step::Yield);
    }

    #[test]
    fn threads_of_a_transport_are_left_the_core_at_once() {
        let policy = WaitPolicy::adaptive(false);
        let first = |policy| Backoff::new(policy).step();
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
    fn modes_end_where_they_say() {
        for (mode, last) in [
            (WaitMode::Spin, Step::Spin),
            (WaitMode::Yield, Step::Yield),
            (WaitMode::Sleep, Step::Sleep),
        ] {
            let mut backoff = Backoff::new(WaitPolicy {
                mode,
                ..WaitPolicy::adaptive(true)
            });
            let steps = (0..1000).map(|_| backoff.step());
            assert_eq!(steps.last(), Some(last));
        }
    }
}
