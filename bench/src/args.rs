//! The options of `tagwire bench`. The same option means the same in every test.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tagwire_base::Config;
use tagwire_base::config::parse;
use tagwire_pml::settings::LAYERS;

pub(crate) mod arrivals;
pub mod concurrent;
pub mod device;
mod devices;
mod given;
pub(crate) mod granularity;
pub(crate) mod names;
pub mod partitioned;
pub mod pattern;
mod patterns;
mod queues;
pub(crate) mod tool;
mod transport;

pub use concurrent::{Begin, ConcurrentArgs, Progress, Style, Tags};
pub use device::DeviceArgs;
pub use given::Given;
pub use partitioned::PartitionedArgs;
pub use pattern::PatternArgs;
pub use queues::List;

use partitioned::{Cache, Definition};

pub use tool::Tool;
pub use transport::{TransportChoice, Transports};

use crate::buffer::available_memory;
use crate::concurrent as callers;
use crate::error::{Error, Result};
use crate::position::Position;
use crate::sizes::Sizes;
use crate::spread::Spread;
use crate::suite::TestName;

/// What the rank that computes does with the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Side {
    /// It sends.
    Send,
    /// It receives.
    Recv,
}

impl Side {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Recv => "recv",
        }
    }
}

/// On which sides of a message ranks compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum)]
#[non_exhaustive]
pub enum SideChoice {
    /// The rank that sends
    Send,
    /// The rank that receives
    Recv,
    /// One after the other
    #[default]
    Both,
}

/// Where the buffers of messages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MemoryChoice {
    /// The rank's own heap
    Heap,
    /// Memory that the ranks of a host share, as far as the setting 'shm-arena' reaches
    Arena,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum)]
#[non_exhaustive]
pub enum Format {
    /// Lines of "size value ..." after header lines that begin with '#'
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One line per row, with the JSON's keys as header
    Csv,
}

/// The options of `tagwire bench`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP)]
pub struct BenchArgs {
    /// What the command line names
    #[command(flatten)]
    pub given: Given,

    /// What to measure
    #[arg(
        value_parser = TestName::parser(),
        required = false,
        required_unless_present_any = ["forever", "list"],
        default_value_ifs([
            ("forever", clap::builder::ArgPredicate::IsPresent, Some("latency")),
            ("list", clap::builder::ArgPredicate::IsPresent, Some("latency")),
        ])
    )]
    pub test: TestName,

    /// Print the tests, a line for each, and measure nothing
    #[arg(long)]
    pub list: bool,

    /// How many ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub ranks: Option<u32>,

    /// What carries the messages: a transport of the setting 'transport', mpi, mpi:PATH, a peer's own tool as
    /// tool:ucx_perftest@PREFIX:TRANSPORTS or tool:fabtests@PREFIX:PROVIDER, or all of ours that work here;
    /// several, by commas or by repeating the option, are compared in one run [default: the
    /// setting 'transport']
    #[arg(short = 't', long, value_name = "NAME")]
    pub transport: Vec<Transports>,

    /// What matches the messages [default: the setting 'pml']
    #[arg(short = 'p', long, value_name = "NAME", value_parser = PossibleValuesParser::new(LAYERS))]
    pub pml: Option<String>,

    /// Matching engine, or a list of them, each of which has jobs of its own [default: the setting 'engine']
    #[arg(long, value_name = "LIST")]
    pub engine: Option<List<String>>,

    /// Measure engines of --engine that were not checked before
    #[arg(long, requires = "engine")]
    pub unchecked: bool,

    /// Message sizes: 8, 4K, 8:1M, 8:1M:x2, 8:64:+8, netpipe:8M, or a list 1,3,17 (K is 1024)
    #[arg(short = 'm', long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,

    /// Iterations of each size [default: by size and time]
    #[arg(short = 'i', long, visible_alias = "iters", value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Iterations before anything is measured [default: by size and time]
    #[arg(short = 'x', long, value_name = "COUNT")]
    pub warmup: Option<u64>,

    /// Messages under way at once in a bandwidth or rate test [default: 64]
    #[arg(short = 'W', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub window: Option<u32>,

    /// Check every byte of every message
    #[arg(short = 'c', long)]
    pub validate: bool,

    /// Measure the bare transport, without matching
    #[arg(long, conflicts_with = "layers")]
    pub raw: bool,

    /// Measure the bare transport, cm where the transport matches, and ob1 in alternating blocks of one job;
    /// with --pml the bare transport and that one
    #[arg(long)]
    pub layers: bool,

    /// Percentiles of the single iterations [default list: 50,90,99,99.9]
    #[arg(
        short = 'z', long, value_name = "LIST", num_args = 0..=1,
        default_missing_value = "50,90,99,99.9"
    )]
    pub percentiles: Option<Percentiles>,

    /// Also tell where the time went: the part inside the library, messages by protocol, calls
    #[arg(long, conflicts_with_all = ["raw", "layers"])]
    pub profile: bool,

    /// Threads per rank that send and receive at once (message-rate), or that make partitions ready
    /// (partitioned)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Receives that never match, posted ahead of the one that does, or a list such as 0,16,1K or 1:1K:x4, each with jobs of its own
    /// (latency)
    #[arg(long, value_name = "LIST")]
    pub posted: Option<List<u32>>,

    /// Unexpected messages that wait ahead of the one that is received, or a list (latency)
    #[arg(long, value_name = "LIST", conflicts_with = "posted")]
    pub unexpected: Option<List<u32>>,

    /// How many percent of the receives of --posted are of any source, or a list; with --position they take their turns too (latency)
    #[arg(long, value_name = "LIST", requires = "posted")]
    pub wild: Option<List<u32>>,

    /// Where among the entries of --posted or --unexpected the one lies that matches: head, middle, tail, shuffled, a place counted from
    /// 1, or a list; without, behind all of them (latency)
    #[arg(long, value_name = "LIST")]
    pub position: Option<List<Position>>,

    /// What the entries of --posted or --unexpected differ by from the one that matches: tags, all of them from the peer; sources, the
    /// ranks beside the two in turn, of which -n has to give some; or a list [default: tags] (latency)
    #[arg(long, value_name = "LIST")]
    pub spread: Option<List<Spread>>,

    /// Start each collective and wait for it, as in MPI_Iallreduce and MPI_Wait (barrier, bcast, reduce, allreduce,
    /// allgather, alltoall, gather, scatter)
    #[arg(long)]
    pub nonblocking: bool,

    /// Which rank computes between post and wait (availability, overlap) [default: both, one
    /// after the other]
    #[arg(long, value_enum)]
    pub side: Option<SideChoice>,

    /// Where the buffers of messages come from [default: heap]
    #[arg(long, value_enum)]
    pub memory: Option<MemoryChoice>,

    /// How long to wait (idle), in seconds or with a unit: us, ms or s [default: 1]
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub seconds: Option<Duration>,

    /// Start the job so many times; several jobs are interleaved in random order
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub launches: u32,

    /// Measure what can be measured: a transport that cannot be used, or a job that fails, leaves a row
    /// with its error, and the status is 2 at the end
    #[arg(long)]
    pub keep_going: bool,

    /// Seed of the patterns and of the order of launches [default: from the clock]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// How results are printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,

    /// Also keep the results in this file, as JSON, or as CSV when its name ends in .csv; it is
    /// complete whenever it is written: with the first row, with others now and then, and after each job
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Go on with what an interrupted run of the same command has left in the file of -o: measure what it lacks
    #[arg(long, requires = "output", conflicts_with_all = ["profile", "listen", "connect"])]
    pub resume: bool,

    /// Measure anew where the file of -o has the unfinished results of the same command
    #[arg(long, requires = "output", conflicts_with = "resume")]
    pub overwrite: bool,

    /// Where ranks run: none, core, or a list of CPUs [default: core, or none for ranks of
    /// several threads]
    #[arg(long, value_name = "WHERE")]
    pub bind: Option<String>,

    /// End a job that takes longer than this, in seconds or with a unit: us, ms or s; its ranks
    /// tell what they wait for
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub timeout: Option<Duration>,

    /// Be one side of a run on two machines without a launcher: wait for the other at this address
    /// (port 0: any that is free), and print the results
    #[arg(
        long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "0.0.0.0:7471",
        value_parser = parse_address, conflicts_with = "connect"
    )]
    pub listen: Option<String>,

    /// Stay, and serve those who connect one after the other: each decides on its run and prints. Without a test
    #[arg(long, requires = "listen")]
    pub forever: bool,

    /// Be the other side: do what the one that listens at this address was told to do, or decide, if that has --forever.
    /// The ranks are shared out evenly, the first ones where one listens
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    pub connect: Option<String>,

    /// The file with what both sides of such a run have to know: a text of 32 bytes at most, which its owner alone may
    /// read. The side that listens makes one that is not there; without this option it draws a secret and says it
    /// on a terminal. Neither side sends it; what is measured is not encrypted: use a network that you trust
    #[arg(long, value_name = "@FILE")]
    pub secret: Option<String>,

    /// How many bytes of buffers a rank goes through before one comes again, with --cache fresh [default: 5/4 of the
    /// last-level cache]
    #[arg(long, value_name = "BYTES", value_parser = parse::bytes)]
    pub cache_bytes: Option<u64>,

    /// What only the tests that compare processes with threads have
    #[command(flatten)]
    pub concurrent: ConcurrentArgs,

    /// What only the test partitioned has
    #[command(flatten)]
    pub partitioned: PartitionedArgs,

    /// What only patterns have
    #[command(flatten)]
    pub pattern: PatternArgs,

    /// What only tests with a device have
    #[command(flatten)]
    pub device: DeviceArgs,

    /// The launcher of the MPI library [default: the mpiexec beside it]
    #[arg(long, value_name = "PATH")]
    pub mpiexec: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Figures: us, MB/s (MB is 10^6 bytes), messages/s. Sizes: K is 1024.
Exit status: 0 good, 1 usage, 2 run failed, 3 validation failed, 4 threshold or baseline violated.";

/// One side of a run on two machines without a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TwoSided {
    /// It waits at this address.
    Listen(String),
    /// It connects to this address.
    Connect(String),
}

fn parse_address(text: &str) -> Result<String, String> {
    match tagwire_launch::job::has_host_and_port(text) {
        true => Ok(text.to_owned()),
        false => Err("expected HOST:PORT, such as 10.0.0.1:7471".to_owned()),
    }
}

impl BenchArgs {
    /// Which side of two machines this process is, without a launcher.
    pub(crate) fn side_of_two(&self) -> Option<TwoSided> {
        let listens = self.listen.clone().map(TwoSided::Listen);
        listens.or_else(|| self.connect.clone().map(TwoSided::Connect))
    }

    /// How many ranks the jobs have.
    #[must_use]
    pub fn rank_count(&self) -> u32 {
        let ranks = |variant: &callers::Variant| variant.shape.nodes.len() as u32;
        let variants = callers::variants(self).unwrap_or_default();
        let most = variants.iter().map(ranks).max();
        let of_grid = self.grid().map(|grid| grid.ranks());
        let asked = most.or(of_grid).or(self.ranks);
        asked.unwrap_or(self.test.ranks.own)
    }

    /// How many threads a rank has.
    #[must_use]
    pub fn thread_count(&self) -> u32 {
        let own = self.known_pattern().map(|test| test.threads);
        self.threads.or(own).unwrap_or(1)
    }

    /// The message sizes of this run.
    #[must_use]
    pub fn size_list(&self) -> Sizes {
        if let Some(sizes) = &self.sizes {
            return sizes.clone();
        }
        let of_form = callers::asked(self).and_then(|units| units.sizes);
        let own = match of_form {
            Some(sizes) => sizes,
            None if self.has_device() => device::SIZES,
            None if self.posted.is_some() || self.unexpected.is_some() => "8",
            None => self.test.sizes,
        };
        own.parse().expect("a test's own sizes")
    }

    /// How many bytes of buffers a rank goes through before one comes again; `None` where the same ones are used.
    pub(crate) fn fresh_bytes(&self) -> Option<u64> {
        let is_fresh = self.partitioned.is_fresh();
        let most = available_memory() / 8 / u64::from(self.rank_count());
        let bytes = self
            .cache_bytes
            .unwrap_or_else(|| last_level_cache() / 4 * 5);
        is_fresh.then(|| bytes.min(most))
    }

    /// The sides on which ranks compute.
    #[must_use]
    pub fn sides(&self) -> &'static [Side] {
        match self.side.unwrap_or_default() {
            SideChoice::Send => &[Side::Send],
            SideChoice::Recv => &[Side::Recv],
            SideChoice::Both => &[Side::Send, Side::Recv],
        }
    }

    /// How many rows each size of a job has.
    #[must_use]
    pub fn rows_per_size(&self) -> usize {
        match self.layers {
            true => 2 + usize::from(self.pml.is_none()),
            false => (self.test.rows)(self),
        }
    }

    /// Whether an option that not every test has is one of what is asked for.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        let lacks = callers::asked(self).is_some_and(|units| units.lacks.contains(&name));
        self.test.has_option(name) && !lacks
    }

    /// Refuses what makes no sense together.
    ///
    /// # Errors
    /// [`Error::Usage`], with the reason.
    pub fn check(&self) -> Result<()> {
        if let Some(known) = self.known_pattern() {
            self.check_pattern(known)?;
        } else if callers::asked(self).is_none() {
            let has_others = self.has_option("spread") && self.has_sources();
            check_ranks(self.test, has_others, self.rank_count())?;
        }
        self.check_without_ranks()?;
        self.check_groups()
    }

    /// As [`check`](Self::check), where another launcher has decided on the ranks.
    pub(crate) fn check_without_ranks(&self) -> Result<()> {
        self.check_meaning()?;
        self.check_device()?;
        let has_mpi = self.named().any(TransportChoice::is_mpi);
        callers::check(self, has_mpi)?;
        self.check_queues()?;
        if (self.raw || self.layers) && has_mpi {
            return usage("--raw and --layers look below a pml of ours; transport 'mpi' has none");
        }
        if let Some(side) = self.side_of_two() {
            self.check_two(&side, has_mpi)?;
        } else if self.secret.is_some() {
            return usage("--secret is for --listen and --connect");
        }
        if self.memory == Some(MemoryChoice::Arena) && has_mpi {
            return usage("--memory arena is memory of our transports; 'mpi' has none");
        }
        if self.mpiexec.is_some() && !has_mpi {
            return usage("--mpiexec is for transport 'mpi'");
        }
        (self.test.check)(self)?;
        self.check_output()?;
        if self.raw || self.layers {
            if !self.has_option("raw") {
                return usage(format!(
                    "{} needs a pml, without --raw and --layers",
                    self.test
                ));
            }
            let single = self.threads == Some(1);
            let matched = [
                "threads",
                "posted",
                "unexpected",
                "wild",
                "position",
                "spread",
            ];
            let matched = &matched[usize::from(single)..];
            if let Some(name) = self.given.first_of(matched) {
                return usage(format!(
                    "--{name} needs a pml: the bare transport neither matches nor takes threads"
                ));
            }
        }
        for (place, choice) in self.named().enumerate() {
            if self.named().take(place).any(|earlier| earlier == choice) {
                return usage(format!("transport '{choice}' is given twice"));
            }
        }
        Ok(())
    }

    fn check_output(&self) -> Result<()> {
        let file = self.output.as_deref();
        let of_report = file.filter(|file| {
            let extension = file
                .extension()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let extension = extension.to_ascii_lowercase();
            ["html", "htm", "svg", "md"].contains(&&*extension)
        });
        if let Some(file) = of_report {
            let (file, json) = (file.display(), file.with_extension("json"));
            return usage(format!(
                "-o keeps results as JSON or CSV: -o {json}, and then 'tagwire report {json} -o {file}'",
                json = json.display()
            ));
        }
        let file = self.output.as_deref().filter(|_| self.resume);
        let extension = file.and_then(Path::extension);
        if extension.is_some_and(|name| name.eq_ignore_ascii_case("csv")) {
            return usage("--resume goes on with JSON: give -o a name that does not end in .csv");
        }
        if self.resume && self.pattern.record.is_some() {
            return usage("--resume has no meaning with --record, whose file is of a whole run");
        }
        Ok(())
    }

    fn check_two(&self, side: &TwoSided, has_mpi: bool) -> Result<()> {
        if has_mpi {
            return usage("--listen and --connect are for our own transports; 'mpi' has launchers");
        }
        if self.rank_count() < 2 {
            return usage("--listen and --connect need a rank on each side: -n is 2 at least");
        }
        if matches!(side, TwoSided::Connect(_)) && self.secret.is_none() {
            return usage(
                "--connect needs --secret @FILE, a file with what the side that listens knows",
            );
        }
        if self.forever && self.decides() {
            return usage(
                "--forever serves what those who connect ask for: give -t, -n, -m, -o and the like there",
            );
        }
        let processes = callers::variants(self)?
            .into_iter()
            .map(|variant| variant.unit);
        let processes = processes.filter(|unit| !unit.is_threads() && callers::pairs(self));
        let most = processes.map(|unit| unit.count).max().unwrap_or(1);
        if most > 1 {
            return usage(format!(
                "{} pairs neighbouring ranks, which are on one machine: between two, --units takes processes:1 and \
                 threads:N; message-rate -n N has N/2 pairs of ranks",
                self.test
            ));
        }
        Ok(())
    }

    /// Whether there are options that only the side which decides has.
    pub(crate) fn decides(&self) -> bool {
        let has_options = !self.transport.is_empty() || self.sizes.is_some() || self.launches > 1;
        has_options || self.ranks.is_some() || self.iterations.is_some() || self.output.is_some()
    }

    /// Whether the transports are all that work here, which [`BenchArgs::name_all`] is to name.
    #[must_use]
    pub fn wants_all_transports(&self) -> bool {
        self.named().any(TransportChoice::is_all)
    }

    /// Puts these transports in the place of `all`.
    pub fn name_all(&mut self, all: &[String]) {
        for Transports(choices) in &mut self.transport {
            let named = std::mem::take(choices).into_iter().flat_map(|choice| {
                let ours = |name: &String| TransportChoice::Ours(name.clone());
                match choice.is_all() {
                    true => all.iter().map(ours).collect(),
                    false => vec![choice],
                }
            });
            *choices = named.collect();
        }
    }

    /// The transports that the command line names.
    fn named(&self) -> impl Iterator<Item = &TransportChoice> {
        self.transport.iter().flat_map(|list| &list.0)
    }

    /// What is to be compared; at least one.
    #[must_use]
    pub fn transports(&self, config: &Config) -> Vec<TransportChoice> {
        let named: Vec<_> = self.named().cloned().collect();
        if named.is_empty() {
            return vec![TransportChoice::of_setting(config)];
        }
        named
    }

    fn check_meaning(&self) -> Result<()> {
        let test = self.test;
        self.check_cache()?;
        let is_paper = self.partitioned.definition == Some(Definition::Paper);
        if self.partitioned.advise && is_paper {
            return usage("--advise goes by Tagwire's metrics: --definition ours or both");
        }
        let mut given = self.given.iter().filter(|name| match *name {
            // What is wrong with these is said with the reason.
            "raw" | "ranks" => false,
            "layers" => test.has_option("raw"),
            _ => true,
        });
        match given.find(|name| !self.has_option(name)) {
            Some(name) => usage(format!("--{name} has no meaning for {test}")),
            None => Ok(()),
        }
    }

    fn check_cache(&self) -> Result<()> {
        let cache = &self.partitioned.cache;
        let is_cold = cache.iter().any(|one| matches!(one, Cache::Cold(_)));
        let is_fresh = cache.contains(&Cache::Fresh);
        match self.test.collective {
            Some(_) if is_cold => {
                usage("--cache cold is for partitioned; collectives have --cache fresh")
            }
            None if is_fresh => {
                usage("--cache fresh is for collectives; partitioned has --cache cold")
            }
            Some(_) if cache.len() > 1 => usage("collectives have one --cache"),
            _ if self.cache_bytes.is_some() && !is_fresh => {
                usage("--cache-bytes is for --cache fresh")
            }
            _ => Ok(()),
        }
    }
}

/// The length of the largest cache of the first processor; 64 MiB where the system does not say.
fn last_level_cache() -> u64 {
    let length = |index| {
        let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(file).ok()?;
        parse::bytes(text.trim()).ok()
    };
    (0..8).filter_map(length).max().unwrap_or(64 << 20)
}

/// Refuses a number of ranks that a test does not run on, whose ranks have others beside their peers or not.
pub(crate) fn check_ranks(test: TestName, has_others: bool, ranks: u32) -> Result<()> {
    let (wanted, with) = match test.ranks.with_others.filter(|_| has_others) {
        Some(wanted) => (wanted, " with --spread sources"),
        None => (&test.ranks, ""),
    };
    if (wanted.fits)(ranks) {
        return Ok(());
    }
    let wanted = wanted.wanted;
    usage(format!(
        "{test}{with} runs on {wanted} ranks, not on {ranks} (option -n)"
    ))
}

pub(crate) fn usage<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Usage(reason.into()))
}

/// A list of percentiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Percentiles(Vec<f64>);

impl Percentiles {
    /// The percentiles, each from 0 to 100.
    #[must_use]
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// The key of `percentile` in a row: `p99_us`, `p99_9_us`.
    #[must_use]
    pub fn key(percentile: f64) -> String {
        format!("p{}_us", percentile.to_string().replace('.', "_"))
    }
}

impl FromStr for Percentiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|piece| match piece.trim().parse::<f64>() {
                Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
                _ => Err(format!("'{piece}' is no percentile from 0 to 100")),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// A duration with its unit, as everywhere else, or a number of seconds.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => parse::duration(text)?.as_secs_f64(),
    };
    if !(0.001..=1e6).contains(&seconds) {
        return Err("not between 1 ms and 1000000 s".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests;
