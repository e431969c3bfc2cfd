//! The options of `tagwire bench`. The same option means the same in every test.

use std::fmt;
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
pub(crate) mod granularity;
pub mod partitioned;
pub mod pattern;
mod patterns;
mod transport;

pub use concurrent::{Begin, ConcurrentArgs, Progress, Style, Tags};
pub use device::DeviceArgs;
pub use partitioned::PartitionedArgs;
pub use pattern::PatternArgs;

use partitioned::{Cache, Definition};

pub use transport::{TransportChoice, Transports};

use crate::buffer::available_memory;
use crate::concurrent as callers;
use crate::error::{Error, Result};
use crate::pattern::has_option;
use crate::port::collective::Operation;
use crate::port::remote::Access;
use crate::sizes::Sizes;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TestName {
    /// Half the round trip of a message that goes back and forth between two ranks
    Latency,
    /// One rank sends windows of messages, the other acknowledges each window
    Bandwidth,
    /// Both ranks send windows of messages at once
    Bibandwidth,
    /// Messages per second between pairs of ranks (i and i + n/2)
    MessageRate,
    /// One message travels round all ranks: time per hop
    Ring,
    /// Rank 0 waits in a receive for --seconds: the part of a core that it uses
    Idle,
    /// What is left of a core for computation while a message is on its way
    Availability,
    /// How far a message and computation at the same time hide each other
    Overlap,
    /// Partitioned operations against one message of the same size: overhead, perceived bandwidth,
    /// application availability, early-bird share
    Partitioned,
    /// Bytes written into the memory of another rank, until they are visible there: one at a time, and windows of them
    Put,
    /// Bytes read from the memory of another rank, until they are here: one at a time, and windows of them
    Get,
    /// A fetch-and-add to a word of another rank, until the old value is here
    Atomic,
    /// What full thread safety adds to the latency of one thread
    ThreadCost,
    /// Bandwidth of several processes or threads that send long messages at once
    ConcurrentBandwidth,
    /// Latency of several processes or threads at once, mean and slowest
    ConcurrentLatency,
    /// Short messages of one process or thread beside a long one of another: how evenly they wait
    ShortLong,
    /// Messages to four neighbours behind computation, with and without a thread that waits
    OverlapNeighbours,
    /// Allreduces of several processes or threads at once, each in a group of its own
    ConcurrentAllreduce,
    /// What an allreduce takes from threads that compute beside it
    AllreduceCompute,
    /// Ranks of a box compute and exchange their faces with six neighbours
    Halo3d,
    /// Wavefronts over a plane of ranks, slice by slice, from each corner
    Sweep3d,
    /// Ranks of a periodic grid exchange with the neighbours of a stencil while their threads arrive by a profile
    Cmb,
    /// A vector from a device to its host, as one copy and in pieces
    DeviceCopy,
    /// No rank leaves before all have come
    Barrier,
    /// Rank 0's bytes to all
    Bcast,
    /// The sum of all ranks' doubles at rank 0
    Reduce,
    /// The sum of all ranks' doubles at all
    Allreduce,
    /// A block of the sum of all ranks' doubles at each
    ReduceScatter,
    /// Each rank's bytes to all
    Allgather,
    /// A block of each rank to each
    Alltoall,
    /// Each rank's bytes to rank 0
    Gather,
    /// A block of rank 0 to each
    Scatter,
}

/// Long names of options that not every test has, beside those of the parts of the command.
const NOT_OF_ALL: [&str; 14] = [
    "window",
    "threads",
    "posted",
    "unexpected",
    "seconds",
    "side",
    "nonblocking",
    "memory",
    "profile",
    "percentiles",
    "raw",
    "layers",
    "cache",
    "cache-bytes",
];

/// Whether not every test has an option of the command itself, but for the number of ranks.
pub(crate) fn is_of_some(name: &str) -> bool {
    NOT_OF_ALL.contains(&name)
}

/// Whether not every test has an option of the command itself.
pub(crate) fn is_of_some_or_ranks(name: &str) -> bool {
    name == "ranks" || is_of_some(name)
}

impl TestName {
    /// The name in commands and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Bibandwidth => "bibandwidth",
            Self::MessageRate => "message-rate",
            Self::Ring => "ring",
            Self::Idle => "idle",
            Self::Availability => "availability",
            Self::Overlap => "overlap",
            Self::Partitioned => "partitioned",
            Self::Put => "put",
            Self::Get => "get",
            Self::Atomic => "atomic",
            Self::ThreadCost => "thread-cost",
            Self::ConcurrentBandwidth => "concurrent-bandwidth",
            Self::ConcurrentLatency => "concurrent-latency",
            Self::ShortLong => "short-long",
            Self::OverlapNeighbours => "overlap-neighbours",
            Self::ConcurrentAllreduce => "concurrent-allreduce",
            Self::AllreduceCompute => "allreduce-compute",
            Self::Halo3d => "halo3d",
            Self::Sweep3d => "sweep3d",
            Self::Cmb => "cmb",
            Self::DeviceCopy => "device-copy",
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
        }
    }

    /// Whether the option of `bench` with this long name has a meaning for the test.
    #[must_use]
    pub fn has_option(self, name: &str) -> bool {
        if let Some(known) = callers::decides(self, name) {
            return known.has_option(name);
        }
        let of_device = DeviceArgs::has_option(self.as_str(), name);
        if let Some(has) = of_device.or_else(|| has_option(self.as_str(), name)) {
            return has;
        }
        match name {
            "window" => matches!(
                self,
                Self::Bandwidth | Self::Bibandwidth | Self::MessageRate | Self::Put | Self::Get
            ),
            "threads" => matches!(self, Self::MessageRate | Self::Partitioned),
            "posted" | "unexpected" => self == Self::Latency,
            "list" => false,
            "seconds" => self == Self::Idle,
            "side" => self.computes(),
            "nonblocking" => self.collective().is_some(),
            "memory" => self != Self::Partitioned,
            "profile" => self != Self::Partitioned && self.access().is_none(),
            "percentiles" => self != Self::Idle && self != Self::Partitioned && !self.computes(),
            // The bare transport does not match, and these need that.
            "raw" | "layers" => {
                self != Self::Partitioned
                    && !self.computes()
                    && self.collective().is_none()
                    && self.access().is_none()
            }
            "cache" => self == Self::Partitioned || self.has_buffers(),
            "cache-bytes" => self.has_buffers(),
            name if PartitionedArgs::has_option(name) => self == Self::Partitioned,
            _ => true,
        }
    }

    /// The operation that all ranks call, where that is the test.
    pub(crate) const fn collective(self) -> Option<Operation> {
        Some(match self {
            Self::Barrier => Operation::Barrier,
            Self::Bcast => Operation::Bcast,
            Self::Reduce => Operation::Reduce,
            Self::Allreduce => Operation::Allreduce,
            Self::ReduceScatter => Operation::ReduceScatter,
            Self::Allgather => Operation::Allgather,
            Self::Alltoall => Operation::Alltoall,
            Self::Gather => Operation::Gather,
            Self::Scatter => Operation::Scatter,
            _ => return None,
        })
    }

    /// What is done to another rank's memory, where that is the test.
    pub(crate) const fn access(self) -> Option<Access> {
        Some(match self {
            Self::Put => Access::Put,
            Self::Get => Access::Get,
            Self::Atomic => Access::Add,
            _ => return None,
        })
    }

    /// Whether it is a collective with data.
    fn has_buffers(self) -> bool {
        self.collective().is_some_and(|it| it != Operation::Barrier)
    }

    /// Whether a rank computes while a message is on its way.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(self, Self::Availability | Self::Overlap)
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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

impl MemoryChoice {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Arena => "arena",
        }
    }
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
    /// What to measure
    #[arg(
        value_enum,
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

    /// What carries the messages: a transport of the setting 'transport', mpi, mpi:PATH, or all of ours that work here;
    /// several, by commas or by repeating the option, are compared in one run [default: the
    /// setting 'transport']
    #[arg(short = 't', long, value_name = "NAME")]
    pub transport: Vec<Transports>,

    /// What matches the messages [default: the setting 'pml']
    #[arg(short = 'p', long, value_name = "NAME", value_parser = PossibleValuesParser::new(LAYERS))]
    pub pml: Option<String>,

    /// Matching engine [default: the setting 'engine']
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,

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

    /// Receives that never match, posted ahead of the one that does (latency)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub posted: Option<u32>,

    /// Unexpected messages that wait ahead of the one that is received (latency)
    #[arg(
        long, value_name = "COUNT", conflicts_with = "posted",
        value_parser = clap::value_parser!(u32).range(1..=16_777_216)
    )]
    pub unexpected: Option<u32>,

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
    /// complete after every row
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

    /// What both sides of such a run have to know, 32 bytes at most; @FILE reads it from a file, so that
    /// it is not in the list of processes. The side that listens draws one and prints it, unless it is
    /// given. Neither side sends it; what is measured is not encrypted: use a network that you trust
    #[arg(long, value_name = "TEXT|@FILE")]
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
        let own = if self.test == TestName::DeviceCopy {
            1
        } else {
            2
        };
        most.or(of_grid).or(self.ranks).unwrap_or(own)
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
        if let (None, Some(test)) = (&self.sizes, callers::asked(self)) {
            return test.sizes.parse().expect("a test's own sizes");
        }
        if let (None, Some(test)) = (&self.sizes, self.known_pattern()) {
            return test.sizes.parse().expect("a pattern's own sizes");
        }
        self.sizes.clone().unwrap_or_else(|| match self.test {
            _ if self.has_device() => device::SIZES.parse().expect("the paper's sizes"),
            TestName::Ring | TestName::Idle | TestName::Atomic => Sizes::one(8),
            TestName::Partitioned => Sizes::powers(64, 1 << 20),
            TestName::Barrier => Sizes::one(0),
            test if test.collective().is_some() => Sizes::powers(8, 1 << 20),
            _ if self.posted.or(self.unexpected).is_some() => Sizes::one(8),
            _ => Sizes::powers(1, 4 << 20),
        })
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
        match self.test {
            TestName::Availability => self.sides().len(),
            TestName::Overlap => 2 * self.sides().len(),
            TestName::Partitioned => {
                let plan = self.partitioned.plan();
                plan.partitions.len() * plan.policies.len() * plan.circumstances.len()
            }
            _ if self.known_pattern().is_some() => self.rows_of_pattern().unwrap_or(1),
            _ if self.has_device() => self.device_plan().map_or(1, |plan| plan.series().len()),
            _ if self.layers => 2 + usize::from(self.pml.is_none()),
            _ => 1,
        }
    }

    /// Refuses what makes no sense together.
    ///
    /// # Errors
    /// [`Error::Usage`], with the reason.
    pub fn check(&self) -> Result<()> {
        if let Some(known) = self.known_pattern() {
            self.check_pattern(known)?;
        } else if callers::asked(self).is_none() {
            check_ranks(self.test, self.rank_count())?;
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
        self.check_access()?;
        self.check_partitioned()?;
        self.check_output()?;
        if self.raw || self.layers {
            let is_collective = self.test.collective().is_some();
            let is_other =
                is_collective || callers::asked(self).is_some() || self.known_pattern().is_some();
            if self.test.computes() || self.test == TestName::Partitioned || is_other {
                return usage(format!(
                    "{} needs a pml, without --raw and --layers",
                    self.test
                ));
            }
            let matched = [
                ("--threads", self.threads.is_some_and(|threads| threads > 1)),
                ("--posted", self.posted.is_some()),
                ("--unexpected", self.unexpected.is_some()),
            ];
            if let Some((name, _)) = matched.iter().find(|(_, given)| *given) {
                return usage(format!(
                    "{name} needs a pml: the bare transport neither matches nor takes threads"
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

    fn check_access(&self) -> Result<()> {
        let Some(access) = self.test.access() else {
            return Ok(());
        };
        if self.raw || self.layers {
            return usage(format!(
                "{} is of the bare transport already, without --raw and --layers",
                self.test
            ));
        }
        let matching = [
            ("pml", self.pml.is_some()),
            ("engine", self.engine.is_some()),
        ];
        if let Some((name, _)) = matching.into_iter().find(|(_, given)| *given) {
            return usage(format!(
                "--{name} has no meaning for {}: nothing is matched",
                self.test
            ));
        }
        let sizes = self.size_list();
        match access {
            Access::Add if sizes.as_slice().iter().any(|size| *size != 8) => {
                usage("atomic is of words of 8 bytes: without -m, or -m 8")
            }
            _ => Ok(()),
        }
    }

    /// Refuses lists of a test of partitioned operations of which nothing would come.
    fn check_partitioned(&self) -> Result<()> {
        if self.test != TestName::Partitioned {
            return Ok(());
        }
        let partitioned = &self.partitioned;
        let is_still = partitioned.compute_time.iter().all(Duration::is_zero);
        if !partitioned.noise.is_empty() && is_still {
            return usage("--noise makes threads compute longer: it needs --compute-time");
        }
        if !partitioned.noise_pct.is_empty() && partitioned.noise.is_empty() {
            return usage("--noise-pct says how much of --noise there is, and that is not given");
        }
        let (counts, sizes) = (partitioned.plan().partitions, self.size_list());
        let sizes = sizes.as_slice();
        let fits = |count: &u32| {
            let count = u64::from(*count);
            sizes
                .iter()
                .any(|size| *size >= count && size.is_multiple_of(count))
        };
        match counts.iter().find(|count| !fits(count)) {
            Some(count) => usage(format!(
                "no size of -m has {count} partitions (--partitions): sizes are multiples of it, and of {count} bytes at least"
            )),
            None => Ok(()),
        }
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
            return usage("--connect needs --secret, which the side that listens prints");
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
        let given = [
            ("window", self.window.is_some()),
            ("threads", self.threads.is_some()),
            ("posted", self.posted.is_some()),
            ("unexpected", self.unexpected.is_some()),
            ("seconds", self.seconds.is_some()),
            ("nonblocking", self.nonblocking),
            ("side", self.side.is_some()),
            ("memory", self.memory.is_some()),
            ("percentiles", self.percentiles.is_some()),
            ("profile", self.profile),
            ("cache-bytes", self.cache_bytes.is_some()),
        ];
        let given = given.into_iter().chain(self.partitioned.given());
        let given = given.chain(self.concurrent.given());
        let given = given.chain(self.pattern.given());
        let given = given.chain(self.device.given());
        let test = self.test;
        self.check_cache()?;
        let is_paper = self.partitioned.definition == Some(Definition::Paper);
        if self.partitioned.advise && is_paper {
            return usage("--advise goes by Tagwire's metrics: --definition ours or both");
        }
        let mut given = given.filter(|(_, given)| *given).map(|(name, _)| name);
        match given.find(|name| !callers::has_option(self, name)) {
            Some(name) => usage(format!("--{name} has no meaning for {test}")),
            None => Ok(()),
        }
    }

    fn check_cache(&self) -> Result<()> {
        let cache = &self.partitioned.cache;
        let is_cold = cache.iter().any(|one| matches!(one, Cache::Cold(_)));
        let is_fresh = cache.contains(&Cache::Fresh);
        match self.test.collective() {
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

/// Refuses a number of ranks that the test cannot use.
pub(crate) fn check_ranks(test: TestName, ranks: u32) -> Result<()> {
    let (fits, wanted) = match test {
        TestName::MessageRate => (ranks >= 2 && ranks.is_multiple_of(2), "an even number of"),
        TestName::Ring => (ranks >= 2, "at least 2"),
        TestName::DeviceCopy => (ranks >= 1, "at least 1"),
        test if test.collective().is_some() => (ranks >= 2, "at least 2"),
        _ => (ranks == 2, "exactly 2"),
    };
    if fits {
        return Ok(());
    }
    usage(format!(
        "{test} runs on {wanted} ranks, not on {ranks} (option -n)"
    ))
}

fn usage<T>(reason: impl Into<String>) -> Result<T> {
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
