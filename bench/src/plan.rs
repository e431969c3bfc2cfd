//! What a job is to do: handed to its ranks in an environment variable.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::args::{BenchArgs, MemoryChoice, Percentiles, Tool};
use crate::concurrent::{self, Callers, Variant};
use crate::error::{Error, Result};
use crate::suite::{Chosen, TestName};

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
    /// The test itself.
    pub own: Chosen,
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
    pub callers: Callers,
    /// Where buffers come from, where that was said.
    #[serde(default)]
    pub memory: Option<MemoryChoice>,
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
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub socket: String,
    pub secret: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// The window when nothing else is asked for.
const WINDOW: u32 = 64;

impl Plan {
    /// What `args` ask for, over `carrier`, as the only job over it.
    pub(crate) fn new(args: &BenchArgs, carrier: Carrier, seed: u64, launch: u32) -> Self {
        Self::of(args, None, carrier, seed, launch)
    }

    /// What `args` ask for, over `carrier`; of one of several jobs over it, on so many cores.
    pub(crate) fn of(
        args: &BenchArgs,
        variant: Option<(&Variant, usize)>,
        carrier: Carrier,
        seed: u64,
        launch: u32,
    ) -> Self {
        let ranks = variant.map(|(variant, _)| variant.shape.nodes.len() as u32);
        let callers = Callers::of(args, variant);
        let threads = callers.unit.filter(|unit| unit.is_threads());
        let layers = match carrier {
            Carrier::Mpi(_) | Carrier::Tool(_) => vec![Layer::Mpi],
            Carrier::Ours(_) if args.layers && args.pml.is_some() => vec![Layer::Pml, Layer::Raw],
            Carrier::Ours(_) if args.layers => vec![Layer::Pml, Layer::Cm, Layer::Raw],
            Carrier::Ours(_) if args.raw || args.test.access.is_some() => vec![Layer::Raw],
            Carrier::Ours(_) => vec![Layer::Pml],
        };
        let window = concurrent::asked(args).map_or(WINDOW, |test| test.window);
        Self {
            test: args.test,
            own: Chosen::of(args),
            callers,
            carrier,
            ranks: ranks.unwrap_or_else(|| args.rank_count()),
            layers,
            sizes: args.size_list().as_slice().to_vec(),
            iterations: args.iterations,
            warmup: args.warmup,
            window: args.window.unwrap_or(window),
            threads: threads.map_or_else(|| args.thread_count(), |unit| unit.count),
            memory: args.memory,
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

    /// Whether several threads of a rank communicate.
    pub(crate) fn any_thread(&self) -> bool {
        self.threads > 1 || self.callers.any_thread() || self.own.any_thread()
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
