//! The cases of `tagwire bench overlap-neighbours` and `concurrent-allreduce`, as a simulation runs them.

use std::time::Duration;

use crate::args::names::name_of;
use crate::args::{BenchArgs, Progress};
use crate::record::{Quantity, Row};
use crate::units::{Unit, UnitKind};

use super::row_of;

/// How often a rank passes over its arrays, where the command does not say.
const PASSES: u32 = 50;

/// What a pass takes: four loops over arrays of 2^20 integers, 12 MiB each, at 8 GB/s. The paper has no time of it; this is assumed.
const PASS: Duration = Duration::from_micros(6300);

/// Iterations, where the command does not say.
const ITERATIONS: u64 = 5;

/// Who makes progress while the ranks compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Helper {
    /// Nobody.
    Nobody,
    /// A thread of the program that waits in a receive.
    Blocked,
    /// A thread of the library.
    Library,
}

/// Messages to four neighbours of a ring behind computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedNeighbours {
    /// Bytes of a message.
    pub size: usize,
    /// Ranks of the ring.
    pub ranks: u32,
    /// How long a rank computes between post and wait.
    pub compute: Duration,
    /// Who makes progress meanwhile.
    pub helper: Helper,
    /// How often.
    pub iterations: u64,
    passes: u32,
    progress: Progress,
}

/// Allreduces of several callers on each of two nodes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedCallers {
    /// Bytes of a vector.
    pub size: usize,
    /// Nodes.
    pub nodes: u32,
    /// Callers on each.
    pub callers: u32,
    /// Whether they are threads of one process; else processes.
    pub are_threads: bool,
    /// How often each calls.
    pub iterations: u64,
    unit: String,
}

impl SimulatedNeighbours {
    /// Returns the cases of a command; none where it is of another test.
    pub(super) fn all(args: &BenchArgs) -> Vec<Self> {
        if args.test.name != "overlap-neighbours" {
            return Vec::new();
        }
        let own = [Progress::None, Progress::BlockedThread];
        let asked = &args.concurrent.progress;
        let helpers = if asked.is_empty() { &own[..] } else { asked };
        let of = |progress: Progress, size: u64| Self {
            size: size as usize,
            ranks: args.ranks.unwrap_or(5),
            compute: PASS * args.concurrent.passes.unwrap_or(PASSES),
            passes: args.concurrent.passes.unwrap_or(PASSES),
            helper: match progress {
                Progress::None => Helper::Nobody,
                Progress::BlockedThread => Helper::Blocked,
                Progress::LibraryThread => Helper::Library,
            },
            iterations: args.iterations.unwrap_or(ITERATIONS),
            progress,
        };
        let sizes = args.size_list();
        let sizes = sizes.as_slice().iter();
        let all = sizes.flat_map(|size| helpers.iter().map(|progress| of(*progress, *size)));
        all.collect()
    }

    /// Returns the row of iterations, each of which took the slowest rank so many nanoseconds.
    #[must_use]
    pub fn row(&self, transport: &str, pml: &str, times: &[u64]) -> Row {
        let computed = self.compute.as_nanos() as u64;
        let mut row = row_of(self.size, transport, pml, self.ranks);
        row.series.progress = Some(name_of(self.progress));
        row.series.passes = Some(self.passes);
        row.sampling.set(self.iterations, 1);
        let us = |time: u64| time as f64 / 1e3;
        let figures = &mut row.figures;
        figures.set_all(Quantity::ITERATION, times.iter().map(|time| us(*time)));
        figures.set_all(Quantity::COMPUTATION, [us(computed)]);
        let messages = times.iter().map(|time| us(time.saturating_sub(computed)));
        figures.set_all(Quantity::COMMUNICATION, messages);
        row
    }
}

impl SimulatedCallers {
    /// Returns the cases of a command; none where it is of another test.
    ///
    /// # Errors
    /// Where it names no units.
    pub(super) fn all(args: &BenchArgs) -> Result<Vec<Self>, String> {
        if args.test.name != "concurrent-allreduce" {
            return Ok(Vec::new());
        }
        let missing = "callers are missing: --units processes:4,threads:4";
        let units = args.concurrent.units.as_ref().ok_or(missing)?.resolve(4);
        let of = |unit: &Unit, size: u64| Self {
            size: size as usize,
            nodes: args.ranks.unwrap_or(2),
            callers: unit.count,
            are_threads: unit.kind == UnitKind::Threads,
            iterations: args.iterations.unwrap_or(ITERATIONS),
            unit: unit.to_string(),
        };
        let sizes = args.size_list();
        let sizes = sizes.as_slice().iter();
        let all = sizes.flat_map(|size| units.iter().map(|unit| of(unit, *size)));
        Ok(all.collect())
    }

    /// Returns the row of the mean times of an allreduce, by caller, in nanoseconds.
    #[must_use]
    pub fn row(&self, transport: &str, pml: &str, times: &[f64]) -> Row {
        let ranks = match self.are_threads {
            true => self.nodes,
            false => self.nodes * self.callers,
        };
        let mut row = row_of(self.size, transport, pml, ranks);
        row.series.unit = Some(self.unit.clone());
        row.sampling.set(self.iterations, 1);
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let slowest = times.iter().copied().fold(0.0, f64::max);
        row.figures.set_all(Quantity::LATENCY, [mean / 1e3]);
        row.figures.set_all(Quantity::SLOWEST, [slowest / 1e3]);
        row
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::super::Simulated;
    use super::*;

    fn parsed(text: &str) -> Simulated {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Simulated::parse(&words).unwrap()
    }

    #[test]
    fn neighbours_have_a_series_for_each_who_helps() {
        let command = "overlap-neighbours -n 5 -m 4M --progress none,blocked-thread,progress-thread --passes 10 -i 2";
        let all = parsed(command).neighbours();
        let helpers: Vec<_> = all.iter().map(|one| one.helper).collect();
        assert_eq!(helpers, [Helper::Nobody, Helper::Blocked, Helper::Library]);
        assert_eq!((all[0].ranks, all[0].compute), (5, PASS * 10));
        let computed = all[1].compute.as_nanos() as u64;
        let row = all[1].row("sim:breadboard", "ob1", &[computed + 1000, computed + 3000]);
        assert_eq!(row.series.progress.as_deref(), Some("blocked-thread"));
        assert_eq!(row.figures.named("communication_us"), Some(2.0));
    }

    #[test]
    fn callers_are_threads_or_processes() {
        let all = parsed("concurrent-allreduce -m 2K --units processes:2,threads:4 -i 3").callers();
        let all = all.unwrap();
        let of = |one: &SimulatedCallers| (one.nodes, one.callers, one.are_threads);
        assert_eq!([of(&all[0]), of(&all[1])], [(2, 2, false), (2, 4, true)]);
        let row = all[0].row("sim:breadboard", "ob1", &[1000.0, 3000.0]);
        assert_eq!(row.figures.named("latency_us"), Some(2.0));
        assert_eq!(
            (row.series.ranks, row.series.unit.as_deref()),
            (4, Some("processes:2"))
        );
        let none = parsed("concurrent-allreduce -m 2K").callers();
        assert!(none.unwrap_err().contains("--units"));
    }
}
