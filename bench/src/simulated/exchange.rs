//! The cases of `tagwire bench cmb`, as a simulation runs them on a ring of ranks.

use std::sync::Arc;
use std::time::Duration;

use crate::args::BenchArgs;
use crate::args::granularity::{Granularity, Interface};
use crate::args::pattern::Sides;
use crate::arrivals::Source;
use crate::pattern::measure::figures_of;
use crate::pattern::motif::{Series, granularities};
use crate::record::{PatternKeys, Row, Sampling, Series as Keys};
use crate::stats::{Seeded, mix};

/// Iterations, where the command does not say.
const ITERATIONS: u64 = 5;

/// How long threads compute where the command does not say, as the test has it.
const TIME: Duration = Duration::from_nanos(1 << 26);

/// When pieces of a buffer leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leaves {
    /// After the join, to one peer after the other, each of which is waited for.
    Serially,
    /// After the join, to all peers at once.
    Together,
    /// Each as soon as its last thread has arrived.
    Early,
}

/// A size and a series: an exchange of buffers with the next ranks of a ring.
#[derive(Debug, Clone)]
pub struct SimulatedExchange {
    /// Bytes of the buffer that each peer gets.
    pub size: usize,
    /// Ranks, and threads of each.
    pub ranks: u32,
    /// Threads of a rank.
    pub threads: u32,
    /// To how many ranks each sends.
    pub peers: u32,
    /// Into how many messages the buffer is cut.
    pub parts: u32,
    /// When they leave.
    pub leaves: Leaves,
    /// Whether they are written into their receiver's memory.
    pub is_remote: bool,
    /// How often.
    pub iterations: u64,
    series: Series,
    keys: PatternKeys,
    source: Arc<Source>,
    time: Duration,
    seed: u64,
}

impl SimulatedExchange {
    /// Returns the cases of a command: those of a size behind each other.
    pub(super) fn all(args: &BenchArgs) -> Result<Vec<Self>, String> {
        let grid = args.grid().ok_or("a grid of ranks is missing: --grid")?;
        let plan = args.pattern.plan(&grid);
        let (cmb, threads) = (&plan.cmb, args.thread_count());
        if !cmb.ring {
            return Err(
                "ranks of a simulation lie on a ring, as in the paper's program: --ring".to_owned(),
            );
        }
        let source = Source::of(&cmb.arrivals, threads).map_err(|error| error.to_string())?;
        let source = Arc::new(source);
        let time = args.partitioned.compute_time.first().copied();
        let mut all = Vec::new();
        for &size in args.size_list().as_slice() {
            for series in granularities(&plan, &[]) {
                let Some(granularity) = series.granularity else {
                    continue;
                };
                let is_remote = series.interface == Interface::Rma;
                let mut keys = PatternKeys {
                    grid: Some(Sides(grid.sides().to_vec()).to_string()),
                    stencil: Some(format!("{}-point-ring", cmb.stencil)),
                    arrivals: Some(cmb.arrivals.model.to_string()),
                    granularity: Some(granularity.to_string()),
                    middleware: Some(if is_remote { "rma" } else { "messages" }.to_owned()),
                    ..PatternKeys::default()
                };
                let label = keys.label(is_remote.then_some("rma"));
                keys.series = label.map(|label| format!("{label}@{threads}"));
                all.push(Self {
                    size: size as usize,
                    ranks: grid.ranks(),
                    threads,
                    peers: cmb.stencil - 1,
                    parts: granularity.parts(threads),
                    leaves: match granularity {
                        Granularity::Bsp => Leaves::Serially,
                        Granularity::BspAll => Leaves::Together,
                        Granularity::Bins(_) | Granularity::Each => Leaves::Early,
                    },
                    is_remote,
                    iterations: args.iterations.unwrap_or(ITERATIONS),
                    series,
                    keys,
                    source: Arc::clone(&source),
                    time: time.unwrap_or(TIME),
                    seed: args.seed.unwrap_or_default(),
                });
            }
        }
        Ok(all)
    }

    /// Returns when the threads of a rank arrive in an iteration.
    #[must_use]
    pub fn arrivals(&self, iteration: u64, rank: u32) -> Vec<Duration> {
        let stream = mix(self.seed ^ mix(u64::from(rank))) ^ mix(iteration);
        let mut random = Seeded::new(stream);
        self.source
            .draw(&mut random, iteration, self.time, self.threads)
    }

    /// Returns the rows of all series of a size, each with the times of every rank's iterations, in nanoseconds.
    #[must_use]
    pub fn rows(transport: &str, pml: &str, timed: &[(Self, Vec<Vec<u64>>)]) -> Vec<Row> {
        let series: Vec<Series> = timed.iter().map(|(of, _)| of.series.clone()).collect();
        let times: Vec<&[Vec<u64>]> = timed.iter().map(|(_, times)| &times[..]).collect();
        let figures = figures_of(&series, &times);
        let rows = timed.iter().zip(figures).map(|((of, _), mut figures)| {
            figures.set("messages", f64::from(of.peers * of.parts));
            let mut row = Row {
                size: of.size as u64,
                series: Keys {
                    transport: transport.to_owned(),
                    pml: Some(pml.to_owned()),
                    ranks: of.ranks,
                    threads: Some(of.threads),
                    partitions: Some(of.parts),
                    compute: Some(format!("sleep:{}", of.time.as_micros())),
                    pattern: of.keys.clone(),
                    ..Keys::default()
                },
                sampling: Sampling {
                    launch: Some(0),
                    ..Sampling::default()
                },
                figures,
                ..Row::default()
            };
            row.sampling.set(of.iterations, 1);
            row
        });
        rows.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::super::Simulated;
    use super::*;

    #[test]
    fn a_command_has_its_exchanges_and_rows() {
        let words = "cmb --grid 4x1x1 --ring --stencil 7 --threads 4 -m 64,256 --arrivals laggard:10% --compute-time 1ms \
                     --granularity bsp,bins:2,each --interface p2p,rma -i 2";
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let cases = Simulated::parse(&words).unwrap().exchanges().unwrap();
        // Bulk-synchronous messages, and both others each way.
        assert_eq!(cases.len(), 2 * 5);
        assert_eq!(
            (cases[0].ranks, cases[0].peers, cases[0].leaves),
            (4, 6, Leaves::Serially)
        );
        assert_eq!(cases[1].parts, 2);
        let arrivals = cases[0].arrivals(0, 3);
        assert_eq!(arrivals[..2], [1100, 1000].map(Duration::from_micros));
        let two = [cases[0].clone(), cases[1].clone()];
        let times = [
            vec![vec![200, 200], vec![100, 100]],
            vec![vec![100, 140], vec![150, 100]],
        ];
        let timed: Vec<_> = two.into_iter().zip(times).collect();
        let rows = SimulatedExchange::rows("sim:mutrino", "ob1", &timed);
        // The slowest ranks take 400 in all, and 290.
        assert_eq!(rows[1].figures.named("speedup_pct"), Some(27.5));
        assert_eq!(rows[1].figures.named("messages"), Some(12.0));
        let name = rows[1].series.pattern.series.as_deref();
        assert_eq!(name, Some("7-point-ring/bins:2@4"));
    }
}
