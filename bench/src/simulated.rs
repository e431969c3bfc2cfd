//! What a simulation takes from the benchmarks: the cases of a command, how long its threads compute, and the rows that their times
//! come to.

use std::time::Duration;

use clap::Parser;
use serde_json::{Value, json};

use crate::args::BenchArgs;
use crate::args::partitioned::{Cache, Circumstances};
use crate::body::partitioned::paper::{Interval, Single};
use crate::measure::partitioned::Paper;
use crate::noise::Model;
use crate::record::{Figures, Row, SCHEMA, Sampling, Series};
use crate::stats::{Seeded, mix};
use crate::suite::partitioned::set_paper;

mod callers;
mod device;
mod exchange;
mod pair;
mod pattern;
mod profile;

pub use callers::{Helper, SimulatedCallers, SimulatedNeighbours};
pub use device::{Reduced, SimulatedReduction};
pub use exchange::{Leaves, SimulatedExchange};
pub use pair::SimulatedPair;
pub use pattern::{PatternRegion, PatternScript, SimulatedPattern};
pub use profile::{ProfiledRank, SimulatedProfile};

pub use crate::pattern::recorded::{PatternCarrier, PatternEdge, PatternEdges, PatternStep};

/// The tests that are simulated.
const TESTS: [&str; 9] = [
    "partitioned",
    "cmb",
    "sweep3d",
    "halo3d",
    "latency",
    "message-rate",
    "overlap-neighbours",
    "concurrent-allreduce",
    "allreduce",
];

/// Rounds of each kind, where the command does not say.
const ROUNDS: u64 = 20;

/// A command of `tagwire bench`, as a simulation runs it: the cases of its test.
#[derive(Debug)]
pub struct Simulated {
    args: BenchArgs,
}

/// The words of a command.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    bench: BenchArgs,
}

/// A size, a number of partitions, a policy and circumstances.
#[derive(Debug, Clone)]
pub struct SimulatedCase {
    /// Bytes of the message.
    pub size: usize,
    /// Its partitions, each of a thread of its own.
    pub partitions: u32,
    /// How they are aggregated, by the name that rows have.
    pub policy: String,
    /// Rounds of each kind.
    pub rounds: u64,
    circumstances: Circumstances,
    seed: u64,
}

/// What rounds came to, in nanoseconds.
#[derive(Debug, Default)]
pub struct Timed {
    /// Of rounds of one message: from the fork to the join, and from there to the answer.
    pub messages: Vec<[u64; 2]>,
    /// Of each partition of a round since the fork: its ready call begins, has returned, and its acknowledgement is there.
    pub partitions: Vec<Vec<[u64; 3]>>,
    /// From the last ready call to the answer.
    pub last: Vec<u64>,
    /// Which way the partitions took.
    pub way: String,
}

impl Simulated {
    /// Reads the words behind `bench`.
    ///
    /// # Errors
    /// What is wrong with them, and where they are of a test that is not simulated, or of other metrics than the paper's.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let parsed = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        let args = parsed.bench;
        args.check_without_ranks()
            .map_err(|error| error.to_string())?;
        if !TESTS.contains(&args.test.name) {
            return Err(format!("'{}' is not simulated", args.test.name));
        }
        if args.test.name == TESTS[0] && !args.partitioned.plan().definition.has_paper() {
            return Err(
                "the metrics of a simulation are the paper's: --definition paper".to_owned(),
            );
        }
        if args.test.name == "message-rate" && args.window.is_some_and(|window| window != 64) {
            return Err("the windows of a simulation have 64 messages: -W 64".to_owned());
        }
        Ok(Self { args })
    }

    /// Returns the name of its test.
    #[must_use]
    pub fn test(&self) -> &'static str {
        self.args.test.name
    }

    /// Returns the exchanges of `cmb`: those of a size behind each other.
    ///
    /// # Errors
    /// What of the command cannot be simulated.
    pub fn exchanges(&self) -> Result<Vec<SimulatedExchange>, String> {
        match self.args.test.name == TESTS[1] {
            true => SimulatedExchange::all(&self.args),
            false => Ok(Vec::new()),
        }
    }

    /// Returns the cases of `sweep3d` and `halo3d`: those of a size behind each other.
    ///
    /// # Errors
    /// What of the command cannot be simulated.
    pub fn patterns(&self) -> Result<Vec<SimulatedPattern>, String> {
        SimulatedPattern::all(&self.args)
    }

    /// Returns the cases of `latency` and `message-rate`.
    #[must_use]
    pub fn pairs(&self) -> Vec<SimulatedPair> {
        SimulatedPair::all(&self.args)
    }

    /// Returns the cases of `overlap-neighbours`.
    #[must_use]
    pub fn neighbours(&self) -> Vec<SimulatedNeighbours> {
        SimulatedNeighbours::all(&self.args)
    }

    /// Returns the cases of `concurrent-allreduce`.
    ///
    /// # Errors
    /// What of the command cannot be simulated.
    pub fn callers(&self) -> Result<Vec<SimulatedCallers>, String> {
        SimulatedCallers::all(&self.args)
    }

    /// Returns the cases of `allreduce --algorithm`: those of a size behind each other.
    ///
    /// # Errors
    /// What of the command cannot be simulated.
    pub fn reductions(&self) -> Result<Vec<SimulatedReduction>, String> {
        SimulatedReduction::all(&self.args)
    }

    /// Returns the cases of `partitioned`, in the order of rows. Caches are not simulated: only warm ones have cases.
    #[must_use]
    pub fn cases(&self) -> Vec<SimulatedCase> {
        if self.args.test.name != TESTS[0] {
            return Vec::new();
        }
        let plan = self.args.partitioned.plan();
        let mut all = Vec::new();
        for &size in self.args.size_list().as_slice() {
            for &partitions in &plan.partitions {
                let count = u64::from(partitions);
                if size < count || !size.is_multiple_of(count) {
                    continue;
                }
                let warm = plan.circumstances.iter();
                for circumstances in warm.filter(|one| one.cache == Cache::Hot) {
                    all.extend(plan.policies.iter().map(|policy| SimulatedCase {
                        size: size as usize,
                        partitions,
                        policy: policy.clone(),
                        rounds: self.args.iterations.unwrap_or(ROUNDS),
                        circumstances: *circumstances,
                        seed: self.args.seed.unwrap_or_default(),
                    }));
                }
            }
        }
        all
    }
}

impl SimulatedCase {
    /// Returns how long a thread computes in a round. Where one is late, it is the first, as in the paper's program.
    #[must_use]
    pub fn delay(&self, round: u64, thread: u32) -> Duration {
        let Circumstances {
            time,
            noise,
            noise_pct,
            ..
        } = self.circumstances;
        let stream = mix(u64::from(thread) << 40 | round);
        let mut random = Seeded::new(self.seed ^ stream);
        let model = Model {
            noise,
            pct: noise_pct,
        };
        model.of_thread(time, thread == 0, &mut random)
    }

    /// Returns the row of what `timed` has, on a transport of this name.
    #[must_use]
    pub fn row(&self, transport: &str, pml: &str, timed: &Timed) -> Row {
        let single = |&[fork_join, message]: &[u64; 2]| Single { fork_join, message };
        let interval = |&[called, ready, arrived]: &[u64; 3]| Interval {
            called,
            ready,
            arrived,
        };
        let singles: Vec<_> = timed.messages.iter().map(single).collect();
        let rounds = timed.partitions.iter();
        let parts: Vec<Vec<_>> = rounds
            .map(|round| round.iter().map(interval).collect())
            .collect();
        let last = timed.last.iter().map(|ns| *ns as f64).collect();
        let mut figures = Figures::default();
        set_paper(&mut figures, &Paper::of(&singles, &parts, last, self.size));
        let [compute, noise] = self.circumstances.labels();
        let mut row = Row {
            size: self.size as u64,
            series: Series {
                transport: transport.to_owned(),
                pml: Some(pml.to_owned()),
                ranks: 2,
                threads: Some(self.partitions),
                partitions: Some(self.partitions),
                policy: Some(self.policy.clone()),
                compute,
                noise,
                ..Series::default()
            },
            sampling: Sampling {
                launch: Some(0),
                ..Sampling::default()
            },
            way: Some(timed.way.clone()).filter(|way| !way.is_empty()),
            figures,
            ..Row::default()
        };
        row.sampling.set(self.rounds, 1);
        row
    }
}

/// Returns a row of a size without figures.
fn row_of(size: usize, transport: &str, pml: &str, ranks: u32) -> Row {
    Row {
        size: size as u64,
        series: Series {
            transport: transport.to_owned(),
            pml: Some(pml.to_owned()),
            ranks,
            ..Series::default()
        },
        sampling: Sampling {
            launch: Some(0),
            ..Sampling::default()
        },
        ..Row::default()
    }
}

/// Returns results with these rows, as `tagwire bench` writes them. `environment` names the machine that they were simulated on.
#[must_use]
pub fn results(test: &str, command: &str, environment: &Value, rows: &[Row]) -> Value {
    json!({
        "schema": SCHEMA,
        "test": test,
        "command": command,
        "environment": environment,
        "warnings": [],
        "rows": rows,
        "summary": [],
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_has_its_cases() {
        let command = "partitioned -m 1,64,1K --partitions 1,2 --policy each,messages --noise single --noise-pct 4 \
                       --compute-time 10ms --cache hot,cold --definition paper -i 7";
        let cases = Simulated::parse(&words(command)).unwrap().cases();
        // A byte has no two partitions.
        assert_eq!(cases.len(), 2 * (1 + 2 + 2));
        let case = &cases[0];
        assert_eq!((case.size, case.partitions, case.rounds), (1, 1, 7));
        let late = [case.delay(3, 0), case.delay(3, 1)];
        assert_eq!(late, [10_400, 10_000].map(Duration::from_micros));
        for (wrong, why) in [
            ("idle", "is not simulated"),
            ("partitioned --partitions 2", "--definition paper"),
            ("partitioned --nosuch", "--nosuch"),
        ] {
            let error = Simulated::parse(&words(wrong)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn rounds_come_to_a_row_of_the_schema() {
        let command =
            "partitioned -m 400 --partitions 2 --policy each --compute-time 1ms --definition paper";
        let cases = Simulated::parse(&words(command)).unwrap().cases();
        let timed = Timed {
            messages: vec![[150, 50], [150, 150]],
            partitions: vec![vec![[90, 100, 140], [175, 180, 240]]],
            last: vec![20],
            way: String::new(),
        };
        let row = cases[0].row("sim:niagara", "ob1", &timed);
        assert_eq!(row.figures.named("overhead_paper"), Some(1.0));
        assert_eq!(row.figures.named("availability_paper"), Some(0.4));
        let results = results("partitioned", "x", &json!({"preset": "niagara"}), &[row]);
        let read = crate::document(results.to_string().as_bytes()).unwrap();
        let row = &read["rows"][0];
        assert_eq!(row["transport"], "sim:niagara");
        assert_eq!(row["compute"], "sleep:1000");
        assert_eq!(row["perceived_bandwidth_paper_mb_s"], 20_000.0);
    }
}
