//! Under which circumstances was measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tagwire_base::Clock;
use tagwire_base::config::{Config, Origin};
use tagwire_base::topology::{Topology, clock_cost_ns};

use crate::Host;
use crate::args::tool::TOOL;

/// What a reader of figures must know of where they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Environment {
    /// Tagwire's version.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The profile that it was built in; empty where earlier versions did not tell.
    #[serde(default)]
    pub profile: String,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The machine of rank 0, whose clock the times are of.
    #[serde(flatten)]
    pub machine: Machine,
    /// How many ranks each job has.
    pub ranks: u32,
    /// How many times each job is started.
    pub launches: u32,
    /// How ranks are bound, as asked for: `none`, `core`, a list of CPUs.
    pub binding: String,
    /// Whether there are more ranks than cores that they may use.
    pub oversubscribed: bool,
    /// The seed of patterns and of the order of launches.
    pub seed: u64,
    /// What carried the messages, in the order of the command.
    pub transports: Vec<Used>,
    /// Settings that are not at their default.
    pub settings: BTreeMap<String, String>,
    /// The other machine of a run between two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Box<Other>>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// The machine's name.
    pub host: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The processor.
    pub cpu_model: Option<String>,
    /// Whether the machine is a guest.
    pub virtual_machine: Option<bool>,
    /// CPUs that are switched on, as a list such as `0-3,7`.
    pub cpus_online: Option<String>,
    /// CPUs that this run may use.
    pub cpus_allowed: Option<String>,
    /// Physical cores.
    pub cores: Option<usize>,
    /// Whether cores run several hardware threads.
    pub smt: Option<bool>,
    /// NUMA nodes.
    pub numa_nodes: usize,
    /// Frequency governors.
    pub governors: Vec<String>,
    /// Whether the processor may exceed its nominal frequency.
    pub boost: Option<bool>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// What the kernel reads the time from.
    pub clock_source: Option<String>,
    /// The congestion control that connections of TCP begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_congestion: Option<String>,
    /// What one look at the clock costs; iterations are timed singly only for percentiles.
    pub clock_cost_ns: f64,
}

/// What a reader of figures that one process has measured must know of where they come from: its build and its machine, under the
/// names of [`Environment`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Here {
    version: String,
    commit: String,
    profile: String,
    started_unix_s: u64,
    #[serde(flatten)]
    machine: Machine,
}

/// The machine that rank 0 is not on, and what its ranks use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Other {
    /// Tagwire's version there.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The profile that it was built in; empty where earlier versions did not tell.
    #[serde(default)]
    pub profile: String,
    /// The machine.
    #[serde(flatten)]
    pub machine: Machine,
    /// How its ranks are bound.
    pub binding: String,
    /// What carried the messages there, in the order of the command.
    pub transports: Vec<Used>,
}

/// What a job used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Used {
    /// The transport.
    pub transport: String,
    /// Why this one.
    pub why: String,
    /// The pml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pml: Option<String>,
    /// The matching engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// What matched for the cm beside it, where layers are compared; it is in that layer's rows.
    #[serde(skip)]
    pub(crate) engine_of_cm: Option<String>,
    /// The foreign library and its version: an MPI's own description, its first line, or what the
    /// transport uses, as `libfabric 1.17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// What the library opened for the transport, such as its provider `tcp;ofi_rxm` for `ofi:tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where the library lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<String>,
    /// How many ranks the job had.
    #[serde(default)]
    pub ranks: u32,
}

impl Used {
    /// Adds what a rank reports of itself once it is open.
    pub(crate) fn learn(&mut self, told: Self) {
        (self.pml, self.engine) = (told.pml, told.engine);
        self.ranks = told.ranks;
        if told.transport != MPI {
            self.transport = told.transport;
            (self.library, self.file) = (told.library, told.file);
            self.provider = told.provider;
        }
    }
}

/// The name of foreign libraries among the transports.
pub(crate) const MPI: &str = "mpi";

/// Whether a transport of a report is none of ours.
#[must_use]
pub fn is_foreign(transport: &str) -> bool {
    let kind = transport.split(':').next();
    kind.is_some_and(|kind| kind == MPI || kind == TOOL)
}

/// What differs from run to run on the same machine, and is no reason to doubt a comparison.
const OF_EACH_RUN: [&str; 7] = [
    "started_unix_s",
    "commit",
    "version",
    "seed",
    "clock_cost_ns",
    "launches",
    "transports",
];

/// A circumstance that two runs do not share.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Its key in the environment.
    pub key: String,
    /// In the base; null where it was not told.
    pub base: Value,
    /// In the new results.
    pub new: Value,
}

/// Returns the circumstances of two runs that differ, but for those that differ each time (date, seed, versions). None where one
/// of them tells nothing.
#[must_use]
pub fn differences(base: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Difference> {
    if base.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let keys: BTreeSet<&String> = base.keys().chain(new.keys()).collect();
    let told = |map: &Map<String, Value>, key: &String| map.get(key).cloned().unwrap_or_default();
    let differing = keys.into_iter().filter_map(|key| {
        let (base, new) = (told(base, key), told(new, key));
        let counts = base != new && !OF_EACH_RUN.contains(&key.as_str());
        counts.then(|| Difference {
            key: key.clone(),
            base,
            new,
        })
    });
    differing.collect()
}

/// How the jobs of a run are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jobs {
    pub ranks: u32,
    pub launches: u32,
    pub binding: String,
    /// CPUs that differ among those the ranks run on, and physical cores.
    pub cores: usize,
    pub threads: u32,
    pub seed: u64,
}

impl Environment {
    /// This machine, now.
    pub(crate) fn capture(host: &Host, jobs: &Jobs) -> Self {
        Self {
            version: host.version.clone(),
            commit: host.commit.clone(),
            profile: host.profile.clone(),
            started_unix_s: now_unix_s(),
            machine: Machine::this(),
            ranks: jobs.ranks,
            launches: jobs.launches,
            binding: jobs.binding.clone(),
            oversubscribed: jobs.ranks as usize * jobs.threads as usize > jobs.cores,
            seed: jobs.seed,
            transports: Vec::new(),
            settings: settings(&host.config),
            other: None,
        }
    }

    /// The congestion control of TCP, where a transport that is known to use TCP was measured.
    pub(crate) fn tcp_congestion(&self) -> Option<&str> {
        let uses_tcp = |used: &Used| used.transport.contains("tcp");
        let name = self.machine.tcp_congestion.as_deref();
        name.filter(|_| self.transports.iter().any(uses_tcp))
    }

    /// Makes it that of a run that goes on: it began when `then` was taken.
    pub(crate) fn resumes(&mut self, then: Self) {
        self.started_unix_s = then.started_unix_s;
        self.machine.clock_cost_ns = then.machine.clock_cost_ns;
        if then.transports.len() == self.transports.len() {
            self.transports = then.transports;
        }
    }
}

impl Here {
    /// Returns this machine, now, with what the program was built from: its version, commit and profile.
    #[must_use]
    pub fn now(version: &str, commit: &str, profile: &str) -> Self {
        Self {
            version: version.to_owned(),
            commit: commit.to_owned(),
            profile: profile.to_owned(),
            started_unix_s: now_unix_s(),
            machine: Machine::this(),
        }
    }
}

impl Machine {
    /// Returns what this machine is.
    pub(crate) fn this() -> Self {
        let machine = Topology::of_machine();
        let list = |cpus: &Option<_>| cpus.as_ref().map(ToString::to_string);
        Self {
            cpus_online: list(&machine.online),
            cpus_allowed: list(&machine.allowed),
            host: machine.host,
            kernel: machine.kernel,
            cpu_model: machine.cpu_model,
            virtual_machine: machine.virtual_machine,
            cores: machine.cores,
            smt: machine.smt,
            numa_nodes: machine.numa.len(),
            governors: machine.governors,
            boost: machine.boost,
            memory_bytes: machine.memory,
            clock_source: machine.clock_source,
            tcp_congestion: tcp_congestion(),
            clock_cost_ns: (clock_cost_ns(|| Clock::default().now()) * 10.0).round() / 10.0,
        }
    }
}

impl Other {
    /// This machine, as the one that rank 0 is not on.
    pub(crate) fn this(host: &Host, binding: String) -> Self {
        Self {
            version: host.version.clone(),
            commit: host.commit.clone(),
            profile: host.profile.clone(),
            machine: Machine::this(),
            binding,
            transports: Vec::new(),
        }
    }
}

/// Returns the congestion control of this network namespace (tcp(7)); `None` where the kernel has no TCP.
fn tcp_congestion() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(name.trim().to_owned())
}

fn now_unix_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}

fn settings(config: &Config) -> BTreeMap<String, String> {
    config
        .entries()
        .filter(|entry| entry.origin() != Origin::Default)
        .map(|entry| (entry.setting().name().to_owned(), entry.value().to_string()))
        .collect()
}
