//! How the CPUs of two ranks are placed to each other, as a transfer of a cache line between them tells.
//!
//! A guest's CPUs are at times two threads of one core, two cores of one cache and two cores of none, and neither topology nor clock says
//! when that changes. What a transfer takes does: it is measured by this process before and after each job, on the CPUs that the ranks
//! are bound to, while no rank runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tagwire_base::topology::bind_to;

use crate::record::Row;

/// The key of a row's figure: a transfer before its job, in nanoseconds.
pub(crate) const BEFORE: &str = "line_transfer_ns";
/// The same after it.
pub(crate) const AFTER: &str = "line_transfer_after_ns";

/// Two threads of one core share its first cache, so that a transfer takes less than this (15 to 30 ns); no two cores reach it through a
/// cache that they share (48 to 69 ns in guests on AMD's servers, 67 to 182 on Intel's).
const ONE_CORE_NS: f64 = 40.0;
/// Two cores of one cache complex hand a line over in less than this; those of two complexes never do (220 to 280 ns in the same guests of
/// AMD's). Most of Intel's guests take more as well, though their cores share a cache: it is large, and far from each.
const CLOSE_NS: f64 = 100.0;
/// Two transfers of which one takes less than this many times the other are of one placing, also on both sides of a bound.
const SAME: f64 = 1.4;

/// Round trips of a run, and runs, of which the shortest counts: what disturbs makes a run longer.
const ROUNDS: u64 = 2_000;
const RUNS: usize = 5;
/// As in a ring of slots, each number goes into the next line.
const LINES: usize = 16;
/// How long all runs may take: on CPUs that others use each transfer waits for a turn.
const LIMIT: Duration = Duration::from_millis(200);
/// Looks at a line between two looks at the clock.
const LOOKS: u32 = 1 << 12;

/// How two CPUs are placed to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    /// They are threads of one core.
    OneCore,
    /// They are two cores with a cache in common that is near.
    Close,
    /// They are two cores.
    Apart,
}

impl Placing {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::OneCore, Self::Close, Self::Apart];

    /// Returns what a transfer of so many nanoseconds says.
    pub(crate) fn of(transfer_ns: f64) -> Self {
        match transfer_ns {
            ..ONE_CORE_NS => Self::OneCore,
            ..CLOSE_NS => Self::Close,
            _ => Self::Apart,
        }
    }

    /// Returns it in words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OneCore => "threads of one core",
            Self::Close => "cores close together",
            Self::Apart => "cores apart",
        }
    }

    /// Returns what the transfers around a row's job say, where both say the same.
    pub(crate) fn of_row(row: &Row) -> Option<Self> {
        Self::of_both(row.figures.named(BEFORE)?, row.figures.named(AFTER))
    }

    fn of_both(before: f64, after: Option<f64>) -> Option<Self> {
        let after = after.unwrap_or(before);
        let is_same = before.max(after) < SAME * before.min(after);
        let mean = Self::of((before * after).sqrt());
        (is_same || Self::of(before) == Self::of(after)).then_some(mean)
    }
}

/// How CPUs were placed that were not placed alike before and after a job.
pub const MOVED: &str = "CPUs that moved meanwhile";

/// Returns in words how the CPUs of a row's ranks were placed to each other, where `figure` returns the row's figure of a name. Rows of different
/// words do not compare. `None` where the row does not tell.
pub fn placing(figure: impl Fn(&str) -> Option<f64>) -> Option<&'static str> {
    let both = Placing::of_both(figure(BEFORE)?, figure(AFTER));
    Some(both.map_or(MOVED, Placing::name))
}

/// Returns the first two CPUs of a list that are not the same.
pub(crate) fn first_two(cpus: &[usize]) -> Option<[u32; 2]> {
    let first = *cpus.first()?;
    let second = *cpus.iter().find(|cpu| **cpu != first)?;
    Some([u32::try_from(first).ok()?, u32::try_from(second).ok()?])
}

/// Measures what a transfer of a cache line between two CPUs takes: half a round trip, in nanoseconds. `None` where they cannot be bound to,
/// or are too busy to tell.
#[must_use]
pub fn measure(cpus: [u32; 2]) -> Option<f64> {
    let shared = Arc::new(Shared {
        lines: Default::default(),
        limit: Instant::now() + LIMIT,
    });
    let start = |at: usize| {
        let shared = Arc::clone(&shared);
        // The calling thread keeps its own binding.
        let body = move || shared.run(at, cpus[at]);
        let name = "line transfer".to_owned();
        std::thread::Builder::new().name(name).spawn(body).ok()
    };
    let echo = start(1)?;
    let result = start(0).and_then(|thread| thread.join().ok().flatten());
    shared.lines[0].end();
    let echoed = echo.join().ok().flatten();
    result.filter(|_| echoed.is_some())
}

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// The lines that go one way.
#[derive(Default)]
struct Lines([Line; LINES]);

/// A number that is stored where no more comes.
const END: u64 = u64::MAX;

impl Lines {
    fn store(&self, number: u64) {
        let line = &self.0[number as usize % LINES];
        line.0.store(number, Ordering::Release);
    }

    fn end(&self) {
        for line in &self.0 {
            line.0.store(END, Ordering::Release);
        }
    }

    /// Returns whether `number` came in time.
    fn has(&self, number: u64, limit: Instant) -> bool {
        let line = &self.0[number as usize % LINES].0;
        loop {
            for _ in 0..LOOKS {
                match line.load(Ordering::Acquire) {
                    END => return false,
                    found if found == number => return true,
                    // No pause: a hypervisor may take it for a reason to run something else.
                    _ => {}
                }
            }
            if Instant::now() >= limit {
                return false;
            }
        }
    }
}

struct Shared {
    lines: [Lines; 2],
    limit: Instant,
}

impl Shared {
    /// One side: the first begins each round trip, the second answers. Returns half of the shortest mean round trip, in nanoseconds.
    fn run(&self, side: usize, cpu: u32) -> Option<f64> {
        let (out, into) = (&self.lines[side], &self.lines[1 - side]);
        if bind_to(cpu).is_err() {
            out.end();
            return None;
        }
        let mut best: Option<f64> = None;
        for run in 0..RUNS as u64 {
            let start = Instant::now();
            for number in run * ROUNDS + 1..=(run + 1) * ROUNDS {
                if side == 0 {
                    out.store(number);
                }
                if !into.has(number, self.limit) {
                    // The other side waits no longer.
                    out.end();
                    return best;
                }
                if side == 1 {
                    out.store(number);
                }
            }
            let half = start.elapsed().as_nanos() as f64 / (2 * ROUNDS) as f64;
            best = Some(best.map_or(half, |best| best.min(half)));
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_one_placing_or_of_none() {
        let row = |figures: &[(&str, f64)]| {
            let mut row = Row::default();
            for (name, value) in figures {
                row.figures.set(*name, *value);
            }
            Placing::of_row(&row)
        };
        assert_eq!(row(&[]), None);
        assert_eq!(row(&[(BEFORE, 30.0)]), Some(Placing::OneCore));
        assert_eq!(row(&[(BEFORE, 30.0), (AFTER, 140.0)]), None);
        let close = row(&[(BEFORE, 48.0), (AFTER, 69.0)]);
        assert_eq!(close, Some(Placing::Close));
        assert_eq!(row(&[(BEFORE, 60.0), (AFTER, 240.0)]), None);
        // One placing whose transfers lie about a bound.
        assert_eq!(row(&[(BEFORE, 95.0), (AFTER, 120.0)]), Some(Placing::Apart));
        assert_eq!(row(&[(BEFORE, 80.0), (AFTER, 120.0)]), None);
        let apart = row(&[(BEFORE, 150.0), (AFTER, 140.0)]);
        assert_eq!(apart, Some(Placing::Apart));
        let words = |before, after| placing(|name| if name == BEFORE { before } else { after });
        assert_eq!(words(None, Some(30.0)), None);
        assert_eq!(words(Some(30.0), None), Some("threads of one core"));
        assert_eq!(words(Some(140.0), Some(30.0)), Some(MOVED));
    }

    #[test]
    fn two_cpus_are_found_where_there_are_two() {
        assert_eq!(first_two(&[3, 3, 1, 2]), Some([3, 1]));
        assert_eq!(first_two(&[3, 3]), None);
        assert_eq!(first_two(&[]), None);
    }

    #[test]
    fn a_transfer_is_measured_or_given_up_in_time() {
        let cpus = tagwire_base::topology::binding().unwrap();
        let cpus: Vec<usize> = cpus.iter().map(|cpu| cpu as usize).collect();
        if let Some(transfer) = first_two(&cpus).and_then(measure) {
            assert!(transfer > 0.0);
        }
        // There is no such CPU.
        assert_eq!(measure([u32::MAX, 0]), None);
        assert_eq!(measure([0, u32::MAX]), None);
    }
}
