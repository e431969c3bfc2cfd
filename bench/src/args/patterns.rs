//! What a command asks of a pattern: its grid, its threads, and how those compute.

use super::partitioned::{Cache, ComputeMode, SWEEP};
use super::pattern::Sides;
use super::{BenchArgs, Result, usage};
use crate::pattern::Own;
use crate::pattern::grid::Grid;
use crate::pattern::motif::{Motif, Request};

/// The policies of partitioned operations where none are named.
const POLICIES: [&str; 3] = ["default", "each", "messages"];

impl BenchArgs {
    /// What is known of the pattern; `None` of a test of another kind.
    pub(super) fn known_pattern(&self) -> Option<&'static Motif> {
        self.test.description().motif.as_ref()
    }

    /// The grid of ranks of a pattern.
    pub(crate) fn grid(&self) -> Option<Grid> {
        let known = self.known_pattern()?;
        let ranks = self.ranks.unwrap_or(1 << known.dimensions);
        Some(match &self.pattern.grid {
            Some(sides) => Grid::new(&sides.0),
            None => Grid::of_ranks(ranks, known.dimensions),
        })
    }

    /// Refuses what does not fit a pattern.
    pub(super) fn check_pattern(&self, known: &Motif) -> Result<()> {
        let Some(grid) = self.grid() else {
            return Ok(());
        };
        let sides = grid.sides().len();
        if sides != known.dimensions {
            return usage(format!(
                "{} has a grid of {} sides, not of {sides} (--grid)",
                self.test, known.dimensions
            ));
        }
        let ranks = grid.ranks();
        if let Some(asked) = self.ranks.filter(|&asked| asked != ranks) {
            let fitting = Grid::of_ranks(asked, known.dimensions);
            return usage(format!(
                "the grid has {ranks} ranks and -n is {asked}: leave one out, or --grid {}",
                Sides(fitting.sides().to_vec())
            ));
        }
        if ranks < 2 {
            return usage(format!("{} needs at least 2 ranks", self.test));
        }
        if self.partitioned.circumstances().len() > 1 {
            return usage(format!(
                "{} takes one value of --noise, --noise-pct, --compute-time and --cache each",
                self.test
            ));
        }
        (known.check)(&Request {
            threads: self.thread_count(),
            sizes: self.size_list().as_slice().to_vec(),
            pattern: self.pattern.plan(&grid),
        })
    }

    /// What the plan of a pattern has beside that of other tests.
    pub(crate) fn pattern_plan(&self) -> Option<Own> {
        let (known, grid) = (self.known_pattern()?, self.grid()?);
        let mut partitioned = self.partitioned.plan();
        let own = &mut partitioned.circumstances[0];
        if let Some(time) = known.compute {
            if self.partitioned.compute_time.is_empty() {
                own.time = time;
            }
            if self.partitioned.cache.is_empty() {
                own.cache = Cache::Cold(SWEEP);
            }
        }
        own.compute = self.compute_mode(cores());
        if self.partitioned.policy.is_empty() {
            partitioned.policies = POLICIES.map(str::to_owned).into();
        }
        Some(Own {
            pattern: self.pattern.plan(&grid),
            partitioned,
        })
    }

    /// How many rows each size of a pattern has over a transport of ours.
    pub(crate) fn rows_of_pattern(&self) -> usize {
        let rows = |known: &Motif| {
            let own = self.pattern_plan()?;
            Some((known.series)(&own.pattern, &own.partitioned.policies).len())
        };
        self.known_pattern().and_then(rows).unwrap_or(1)
    }

    /// How many threads of a pattern share a core; 1 in a test of another kind.
    pub(crate) fn threads_per_core(&self) -> u32 {
        let own = || self.all_threads().div_ceil(cores()) as u32;
        self.known_pattern().map_or(1, |_| own())
    }

    fn all_threads(&self) -> usize {
        self.rank_count() as usize * self.thread_count() as usize
    }

    /// How threads compute. Where nothing is said they sleep if they outnumber the cores, which computing would
    /// oversubscribe.
    pub(crate) fn compute_mode(&self, cores: usize) -> ComputeMode {
        let own = match self.all_threads() > cores {
            true => ComputeMode::Sleep,
            false => ComputeMode::Busy,
        };
        self.partitioned.compute.unwrap_or(own)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
