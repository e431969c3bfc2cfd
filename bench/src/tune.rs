//! `tagwire tune`: measures what can be chosen, and writes the choice to a file.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches, ValueEnum};
use tagwire_coll::{ALGORITHMS, Algorithm, Collective, Group, Place, Selection, Table};
use tagwire_launch::detect::{Detection, Launcher};

use crate::Host;
use crate::args::{BenchArgs, parse_time};
use crate::binding::Placement;
use crate::drive::{self, Start};
use crate::environment::Environment;
use crate::error::{Error, ExitStatus, Result};
use crate::jobs::Jobs;
use crate::link::Message;
use crate::plan::Plan;
use crate::report::file::ResultsFile;
use crate::sizes::Sizes;
use crate::stats::Seeded;
use crate::suite::TestName;

use self::choice::{Times, rows};

mod choice;

/// What is tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Tuned {
    /// The table of the algorithms of collectives, for the setting 'coll-table'
    Coll,
}

/// The options of `tagwire tune`.
#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// What to tune
    #[arg(value_enum)]
    pub what: Tuned,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: PathBuf,

    /// Group sizes, by commas [default: powers of two from 2 to the number of cores]
    #[arg(
        short = 'n', long, value_name = "LIST", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(2..=65_536)
    )]
    pub ranks: Vec<u32>,

    /// Message sizes, as 'bench' has them [default: 8:1M; with --quick 8:1M:x8,1M]
    #[arg(short = 'm', long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,

    /// Operations, by commas: allreduce, bcast, ... [default: all that have a choice]
    #[arg(long, value_name = "LIST", value_parser = TestName::parser(), value_delimiter = ',')]
    pub operations: Vec<TestName>,

    /// Iterations of each size [default: by size and time]
    #[arg(short = 'i', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Start the job of each algorithm so many times, by turns with the others [default: 5; with --quick 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub launches: Option<u32>,

    /// Fewer sizes and launches
    #[arg(long)]
    pub quick: bool,

    /// Where ranks run: none, core, or a list of CPUs [default: core]
    #[arg(long, value_name = "WHERE")]
    pub bind: Option<String>,

    /// Seed of the order of launches [default: from the clock]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// End a job that takes longer than this, in seconds or with a unit: us, ms or s
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub timeout: Option<Duration>,
}

/// Measures what `args` ask for, and writes the file. Errors go to standard error.
#[must_use]
pub fn run_tune(args: &TuneArgs, host: &Host) -> ExitStatus {
    tune(args, host).map_or_else(
        |error| {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            error.exit_status()
        },
        |()| ExitStatus::Good,
    )
}

fn tune(args: &TuneArgs, host: &Host) -> Result<()> {
    let Tuned::Coll = args.what;
    if Detection::of_environment()?.launcher() != Launcher::SINGLE {
        let reason = "'tune' starts its own ranks: call it without a launcher";
        return Err(Error::Usage(reason.to_owned()));
    }
    if !host.config.text("coll-algorithm").is_empty() {
        let reason = "'tune coll' forces each algorithm in turn: leave out coll-algorithm";
        return Err(Error::Usage(reason.to_owned()));
    }
    if host.config.choice("coll-reduction") != "auto" {
        let reason = "'tune coll' measures sums by all algorithms: coll-reduction has to be auto";
        return Err(Error::Usage(reason.to_owned()));
    }
    let tests = tests(args)?;
    // Before anything is measured in vain.
    let mut file = ResultsFile::open(&args.output)?;
    let is_shared = Selection::shares_memory_by(&host.config, true);
    let place = if is_shared { Place::Host } else { Place::Hosts };
    let seed = args.seed.unwrap_or_else(drive::seed_of_clock);
    let mut run = Run {
        args,
        host,
        random: Seeded::new(seed),
        seed,
        environment: None,
    };
    let mut all = Vec::new();
    for (test, collective) in tests {
        for ranks in run.groups()? {
            let times = run.measure(test, collective, ranks)?;
            show(&table_of(&times))?;
            all.push(times);
        }
    }
    let rows = rows(&all, place);
    file.finish(&Table::text(&run.header(), &rows))?;
    let file = args.output.display();
    show(&format!(
        "# {} rows in {file}: use it by --coll-table {file} or TAGWIRE_COLL_TABLE\n",
        rows.len()
    ))
}

/// Writes to standard output. A reader that has closed it changes nothing: the file is what counts.
fn show(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::system("write to standard output", error))
        }
        _ => Ok(()),
    }
}

/// The tests of operations with several algorithms, as far as they are asked for.
fn tests(args: &TuneArgs) -> Result<Vec<(TestName, Collective)>> {
    let choices = CHOICES.iter().map(|(name, collective)| {
        let test: TestName = name.parse().map_err(Error::Usage)?;
        Ok((test, *collective))
    });
    let choices = choices.collect::<Result<Vec<_>>>()?;
    if args.operations.is_empty() {
        return Ok(choices);
    }
    let known = args.operations.iter().map(|test| {
        let found = choices.iter().find(|(known, _)| known == test).copied();
        found.ok_or_else(|| {
            let names: Vec<_> = CHOICES.iter().map(|(name, _)| *name).collect();
            Error::Usage(format!(
                "{test} has no choice of algorithms; these have: {}",
                names.join(", ")
            ))
        })
    });
    known.collect()
}

/// The tests of operations with a choice.
const CHOICES: &[(&str, Collective)] = &[
    ("allgather", Collective::Allgather),
    ("allreduce", Collective::Allreduce),
    ("alltoall", Collective::Alltoall),
    ("bcast", Collective::Broadcast),
    ("gather", Collective::Gather),
    ("reduce", Collective::Reduce),
    ("reduce-scatter", Collective::ReduceScatter),
    ("scatter", Collective::Scatter),
];

struct Run<'a> {
    args: &'a TuneArgs,
    host: &'a Host,
    random: Seeded,
    seed: u64,
    /// Of the first job.
    environment: Option<Environment>,
}

impl Run<'_> {
    fn launches(&self) -> u32 {
        let launches = if self.args.quick { 3 } else { 5 };
        self.args.launches.unwrap_or(launches)
    }

    /// The sizes of groups, the smallest first, as rows of a table have to be.
    fn groups(&self) -> Result<Vec<u32>> {
        let mut groups = self.args.ranks.clone();
        if groups.is_empty() {
            let cores = Placement::new(self.args.bind.as_deref(), 2, 1)?
                .cores
                .max(2);
            let powers = (1..17).map(|power| 1 << power);
            groups = powers
                .take_while(|ranks| *ranks as usize <= cores)
                .collect();
        }
        groups.sort_unstable();
        groups.dedup();
        Ok(groups)
    }

    /// The options of the jobs of a test.
    fn bench_args(&self, test: TestName, ranks: u32) -> Result<BenchArgs> {
        let line = [test.name, "-n", &ranks.to_string()].map(str::to_owned);
        let command = BenchArgs::augment_args(Command::new("bench")).no_binary_name(true);
        let matches = command.try_get_matches_from(line);
        let parsed = matches.and_then(|matches| BenchArgs::from_arg_matches(&matches));
        let mut args = parsed.map_err(|error| Error::Usage(error.to_string()))?;
        let default = if self.args.quick {
            "8:1M:x8,1M"
        } else {
            "8:1M"
        };
        args.sizes = match &self.args.sizes {
            Some(sizes) => Some(sizes.clone()),
            None => Some(
                default
                    .parse()
                    .map_err(|error| Error::Usage(format!("{error}")))?,
            ),
        };
        args.iterations = self.args.iterations;
        args.bind.clone_from(&self.args.bind);
        args.timeout = self.args.timeout;
        args.launches = self.launches();
        args.check()?;
        Ok(args)
    }

    /// Measures the algorithms of an operation by turns.
    fn measure(&mut self, test: TestName, collective: Collective, ranks: u32) -> Result<Times> {
        let args = self.bench_args(test, ranks)?;
        let placement = Placement::new(args.bind.as_deref(), ranks, 1)?;
        let (starts, _) = drive::starts(&args, self.host)?;
        let [start] = &starts[..] else {
            return Err(Error::Usage("'tune' takes one transport".to_owned()));
        };
        // Its jobs are on one host.
        let group = Group::from(ranks as usize);
        let config = &self.host.config;
        let selection = Selection::default();
        let selection = selection.on_one_host(Selection::shares_memory_by(config, true));
        let can =
            |it: &&Algorithm| it.needs.are_met_by(group) && selection.why_not(it, config).is_none();
        let own = ALGORITHMS.iter().filter(|it| it.collective == collective);
        let algorithms: Vec<&'static Algorithm> = own.filter(can).collect();
        let mut sizes = args.size_list().as_slice().to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let mut samples = vec![vec![Vec::new(); sizes.len()]; algorithms.len()];
        for launch in 0..args.launches {
            let mut order: Vec<usize> = (0..algorithms.len()).collect();
            self.random.shuffle(&mut order);
            for number in order {
                let forced = algorithms[number].to_string();
                let times = self.launch(&args, &placement, start, launch, &forced)?;
                for (size, time) in times {
                    if let Ok(place) = sizes.binary_search(&size) {
                        samples[number][place].push(time);
                    }
                }
            }
        }
        Ok(Times {
            collective,
            ranks: ranks as usize,
            lengths: sizes
                .iter()
                .map(|size| length(collective, *size, ranks))
                .collect(),
            algorithms,
            samples,
        })
    }

    /// Starts one job with an algorithm forced, and returns the time at each size.
    fn launch(
        &mut self,
        args: &BenchArgs,
        placement: &Placement,
        start: &Start,
        launch: u32,
        forced: &str,
    ) -> Result<Vec<(u64, f64)>> {
        let mut host = self.host.clone();
        host.config.set("coll-algorithm", forced)?;
        let plan = Plan::new(args, start.carrier.clone(), self.seed, launch);
        let jobs = Jobs {
            args,
            host: &host,
            placement,
        };
        let (mut times, mut learnt) = (Vec::new(), None);
        jobs.run(start, plan, |message| {
            match message {
                Message::Row(row) => {
                    let time = row.figures.named("latency_us");
                    times.extend(time.map(|time| (row.size, time)));
                }
                Message::Greeting(used) => learnt = Some(used),
                _ => {}
            }
            Ok(())
        })?;
        if self.environment.is_none() {
            let starts = std::slice::from_ref(start);
            let case = drive::Case::plain(placement.clone());
            let environment = drive::environment(args, self.host, &[case], self.seed, starts);
            let environment = self.environment.insert(environment);
            if let Some(used) = learnt {
                environment.transports[0].learn(used);
            }
        }
        Ok(times)
    }

    /// Under which circumstances the rows were found.
    fn header(&self) -> String {
        let mut text = format!("Written by: {}\n", drive::command_line());
        let Some(it) = &self.environment else {
            return text;
        };
        let unknown = "unknown";
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name}: {value}");
        };
        line("Version", &format!("{} (commit {})", it.version, it.commit));
        line(
            "Started",
            &format!("{} s after 1970 began", it.started_unix_s),
        );
        line("Host", it.machine.host.as_deref().unwrap_or(unknown));
        line("Kernel", it.machine.kernel.as_deref().unwrap_or(unknown));
        line("CPU", it.machine.cpu_model.as_deref().unwrap_or(unknown));
        let cores = it
            .machine
            .cores
            .map_or_else(|| unknown.to_owned(), |cores| cores.to_string());
        line("Cores", &cores);
        for used in &it.transports {
            let library = used.library.iter().map(|name| format!(", {name}"));
            line(
                "Transport",
                &format!("{}{}", used.transport, library.collect::<String>()),
            );
        }
        line(
            "Launches",
            &format!("{}, by turns; seed {}", it.launches, it.seed),
        );
        for (name, value) in &it.settings {
            line("Setting", &format!("{name} = {value}"));
        }
        text.push_str(
            "An algorithm is here where it was faster than the one of the tree by more than the spread of launches.\n",
        );
        text
    }
}

/// The length by which the table knows a size of the test.
fn length(collective: Collective, size: u64, ranks: u32) -> usize {
    let bytes = match collective {
        Collective::Allgather | Collective::ReduceScatter => size.saturating_mul(ranks.into()),
        _ => size,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The medians of an operation in one group, and what is taken.
fn table_of(times: &Times) -> String {
    let mut text = format!("# {}, {} ranks, us\n", times.collective, times.ranks);
    let names: Vec<_> = times.algorithms.iter().map(|it| it.name).collect();
    let cells = names.iter().map(|name| format!("{name:>20}"));
    let _ = writeln!(text, "# {:<10}{}", "Bytes", cells.collect::<String>());
    for (place, length) in times.lengths.iter().enumerate() {
        let cells = (0..names.len()).map(|algorithm| {
            let median = times.summary(algorithm, place).map(|it| it.median);
            let median = median.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
            format!("{median:>20}")
        });
        let _ = writeln!(text, "{length:<12}{}", cells.collect::<String>());
    }
    text
}
