//! What a job is to do: handed to its ranks in an environment variable.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::concurrent::ConcurrentPlan;
use crate::args::device::DevicePlan;
use crate::args::granularity::Interface;
use crate::args::partitioned::PartitionedPlan;
use crate::args::pattern::PatternPlan;
use crate::args::{BenchArgs, MemoryChoice, Percentiles, Progress, Side, Tool};
use crate::concurrent::{self, Variant};
use crate::error::{Error, Result};
use crate::suite::TestName;
use crate::units::Unit;

/// The environment variable that holds a rank's plan. It is no setting: whoever refuses unknown
/// `TAGWIRE_` variables lets it pass.
pub(crate) const VARIABLE: &str = "TAGWIRE_BENCH_PLAN";

/// What carries a job's messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Carrier {
    /// One of our own transports, as the setting names it.
    Ours(String),
    /// This library of the MPI standard ABI.
    Mpi(PathBuf),
    /// This tool, by itself.
    Tool(Tool),
}

/// At which height messages are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Layer {
    /// Matched by the pml of the configuration.
    Pml,
    /// Matched by the transport, beside another pml.
    Cm,
    /// By the bare transport.
    Raw,
    /// By a foreign library.
    Mpi,
}

impl Layer {
    /// The name in reports, where `pml` is that of the pml in use.
    pub(crate) fn name(self, pml: Option<&str>) -> String {
        match self {
            Self::Pml => pml.unwrap_or("pml").to_owned(),
            Self::Cm => "cm".to_owned(),
            Self::Raw => "raw".to_owned(),
            Self::Mpi => "mpi".to_owned(),
        }
    }
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub test: TestName,
    pub carrier: Carrier,
    /// How many ranks the job has.
    pub ranks: u32,
    /// Measured in alternating blocks.
    pub layers: Vec<Layer>,
    pub sizes: Vec<u64>,
    pub iterations: Option<u64>,
    pub warmup: Option<u64>,
    pub window: u32,
    pub threads: u32,
    pub posted: u32,
    pub unexpected: u32,
    /// Collectives are started and waited for.
    #[serde(default)]
    pub nonblocking: bool,
    /// On which sides ranks compute.
    pub sides: Vec<Side>,
    /// Where buffers come from, where that was said.
    #[serde(default)]
    pub memory: Option<MemoryChoice>,
    /// How many bytes of buffers a rank of a collective goes through before one comes again.
    #[serde(default)]
    pub fresh: Option<u64>,
    pub idle: Duration,
    /// What the test of partitioned operations has beside.
    #[serde(default)]
    pub partitioned: Option<PartitionedPlan>,
    /// What a pattern has beside.
    #[serde(default)]
    pub pattern: Option<PatternPlan>,
    /// What a test with a device has beside.
    #[serde(default)]
    pub device: Option<DevicePlan>,
    /// What communicates at once, in the tests that compare processes with threads.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// Who makes progress while ranks compute.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// How many processes or threads share a core.
    #[serde(default)]
    pub callers_per_core: u32,
    pub concurrent: ConcurrentPlan,
    pub validate: bool,
    pub percentiles: Option<Percentiles>,
    /// Ranks keep account of their calls.
    pub profile: bool,
    pub seed: u64,
    pub launch: u32,
    /// Ranks open everything, report what they use, and end.
    #[serde(default)]
    pub opens_only: bool,
    /// The first rank of another machine, where some are there.
    #[serde(default)]
    pub other_from: Option<u32>,
    /// The CPUs of the ranks, where each has to bind itself.
    pub bind_here: Option<Vec<usize>>,
    /// Where the results go: the name of an abstract socket, and what proves that a rank belongs
    /// to this run. `None` when the rank prints them itself.
    pub results: Option<Address>,
}

/// Where a rank reports to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub socket: String,
    pub secret: String,
}

/// The window when nothing else is asked for.
const WINDOW: u32 = 64;

impl Plan {
    /// Whether ranks write into each other's memory beside their messages.
    pub(crate) fn has_rma(&self) -> bool {
        let series = self.test.motif.map(|motif| motif.series);
        let both = self.pattern.as_ref().zip(series);
        both.is_some_and(|(pattern, series)| {
            let mut all = series(pattern, &[]).into_iter();
            all.any(|series| series.interface == Interface::Rma)
        })
    }

    /// What `args` ask for, over `carrier`.
    pub(crate) fn new(args: &BenchArgs, carrier: Carrier, seed: u64, launch: u32) -> Self {
        let layers = match carrier {
            Carrier::Mpi(_) | Carrier::Tool(_) => vec![Layer::Mpi],
            Carrier::Ours(_) if args.layers && args.pml.is_some() => vec![Layer::Pml, Layer::Raw],
            Carrier::Ours(_) if args.layers => vec![Layer::Pml, Layer::Cm, Layer::Raw],
            Carrier::Ours(_) if args.raw || args.test.access.is_some() => vec![Layer::Raw],
            Carrier::Ours(_) => vec![Layer::Pml],
        };
        let window = concurrent::asked(args).map_or(WINDOW, |test| test.window);
        let (pattern, partitioned) = args.pattern_plan().unzip();
        let own = args
            .test
            .has_option("definition")
            .then(|| args.partitioned.plan());
        Self {
            test: args.test,
            carrier,
            ranks: args.rank_count(),
            layers,
            sizes: args.size_list().as_slice().to_vec(),
            iterations: args.iterations,
            warmup: args.warmup,
            window: args.window.unwrap_or(window),
            threads: args.thread_count(),
            posted: args.posted.unwrap_or(0),
            unexpected: args.unexpected.unwrap_or(0),
            nonblocking: args.nonblocking,
            sides: args.sides().to_vec(),
            memory: args.memory,
            fresh: args.fresh_bytes(),
            idle: args.seconds.unwrap_or(Duration::from_secs(1)),
            callers_per_core: pattern.as_ref().map_or(1, |_| args.threads_per_core()),
            partitioned: own.or(partitioned),
            pattern,
            device: args.device_plan(),
            unit: None,
            progress: None,
            concurrent: args.concurrent.plan(),
            validate: args.validate,
            percentiles: args.percentiles.clone(),
            profile: args.profile,
            seed,
            launch,
            opens_only: false,
            other_from: None,
            bind_here: None,
            results: None,
        }
    }

    /// Returns the same for one of several jobs over the transport, on so many cores.
    pub(crate) fn of_variant(mut self, variant: &Variant, cores: usize) -> Self {
        let callers = variant.shape.callers as usize;
        self.ranks = variant.shape.nodes.len() as u32;
        (self.unit, self.progress) = (Some(variant.unit), variant.progress);
        self.callers_per_core = callers.div_ceil(cores.max(1)) as u32;
        if variant.unit.is_threads() {
            self.threads = variant.unit.count;
        }
        self
    }

    /// Whether several threads of a rank communicate.
    pub(crate) fn any_thread(&self) -> bool {
        let helped = self.progress.is_some_and(|by| by != Progress::None);
        let by_partition = self.partitioned.as_ref().is_some_and(|plan| {
            plan.definition.has_paper() && plan.partitions.iter().any(|count| *count > 1)
        });
        let by_device = self.device.as_ref().is_some_and(DevicePlan::any_thread);
        self.threads > 1
            || by_partition
            || by_device
            || helped
            || self.unit.is_some_and(Unit::is_threads)
    }

    /// As text for [`VARIABLE`].
    pub(crate) fn to_text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::Job(format!("plan: {error}")))
    }

    /// The plan that this process was given, if it was given one.
    pub(crate) fn of_environment() -> Result<Option<Self>> {
        let Some(text) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let plan = Self::of_text(&text.to_string_lossy());
        let plan = plan.map_err(|error| Error::Usage(format!("{VARIABLE}: {error}")))?;
        Ok(Some(plan))
    }

    /// The plan that [`to_text`](Self::to_text) wrote.
    pub(crate) fn of_text(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::Job(format!("no plan: {error}")))
    }

    /// The longest message, in bytes of this machine's address space.
    pub(crate) fn largest(&self) -> Result<usize> {
        let largest = self.sizes.iter().copied().max().unwrap_or(0);
        usize::try_from(largest)
            .map_err(|_| Error::Usage(format!("size {largest} is too large for this machine")))
    }
}
