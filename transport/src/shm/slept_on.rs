//! Where a thread sleeps, and where it goes on.
//!
//! The kernel may wake a thread on the CPU of who wakes it although the one where it slept is idle: a guest takes a CPU of its own that
//! has halted for one that its host has taken away (`available_idle_cpu` in the scheduler). Both then share a CPU until it balances loads,
//! 50 ms later at times.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use tagwire_base::topology::bind_to;

/// The CPU of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SleptOn(u32);

impl SleptOn {
    /// Returns the one that the calling thread runs on.
    pub(super) fn here() -> Self {
        Self(u32::try_from(sched_getcpu()).unwrap_or(u32::MAX))
    }

    /// Returns its number plus one, which is not 0.
    pub(super) const fn number(self) -> u32 {
        self.0.wrapping_add(1)
    }

    /// Has the thread that slept there go back, where it has been woken on the CPU of this number, its waker's. It may run where it
    /// might before.
    pub(super) fn leave_to_waker(self, woken_on: u32) {
        let here = Self::here();
        if here != self && here.number() == woken_on {
            self.go_back();
        }
    }

    /// Where the thread may not run there any more, or the system refuses, it stays.
    #[cold]
    fn go_back(self) {
        let Ok(allowed) = sched_getaffinity(None) else {
            return;
        };
        let cpu = self.0 as usize;
        if cpu < CpuSet::MAX_CPU && allowed.is_set(cpu) && bind_to(self.0).is_ok() {
            // What it was is accepted.
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    /// Others may want a CPU at any time, so that some of the attempts count.
    #[test]
    fn who_is_woken_beside_its_waker_goes_back() {
        let allowed = sched_getaffinity(None).unwrap();
        let mut cpus = (0..CpuSet::MAX_CPU as u32).filter(|cpu| allowed.is_set(*cpu as usize));
        let (Some(own), Some(other)) = (cpus.next(), cpus.next()) else {
            eprintln!("SKIPPED: who_is_woken_beside_its_waker_goes_back needs two CPUs");
            return;
        };
        let after = |woken_on: u32| {
            bind_to(own).unwrap();
            let slept_on = SleptOn::here();
            assert_eq!(slept_on, SleptOn(own));
            bind_to(other).unwrap();
            sched_setaffinity(None, &allowed).unwrap();
            slept_on.leave_to_waker(woken_on);
            let here = SleptOn::here();
            assert_eq!(sched_getaffinity(None).unwrap(), allowed);
            usize::from(here == slept_on)
        };
        let waker = SleptOn(other).number();
        let back: usize = (0..100).map(|_| after(waker)).sum();
        assert!(back > 50, "{back} of 100 times");
        // On a CPU that the kernel has chosen otherwise it stays.
        let back: usize = [0, waker + 1].map(after).into_iter().sum();
        assert!(back < 2);
    }

    #[test]
    fn who_may_not_run_there_any_more_stays() {
        let allowed = sched_getaffinity(None).unwrap();
        let here = SleptOn::here();
        let far = CpuSet::MAX_CPU - 1;
        if !allowed.is_set(far) {
            SleptOn(far as u32).leave_to_waker(here.number());
        }
        SleptOn(CpuSet::MAX_CPU as u32).go_back();
        SleptOn(u32::MAX - 1).go_back();
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
    }
}
