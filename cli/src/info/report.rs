//! What `tagwire info` has found out; both of its outputs are made from this.

use serde::Serialize;
use tagwire_base::Clock;
use tagwire_base::Config;
use tagwire_base::config::Entry;
use tagwire_base::topology::{Topology, clock_cost_ns};
use tagwire_launch::Detection;

use super::choices::{ENGINE, Named, choices};
use super::collectives::CollectivesReport;
use super::messages::MessagesReport;
use super::pmls::PmlReport;
use super::transports::{TransportReport, catalogue, survey};
use crate::failure::Failure;
use crate::stamp::{Build, build};

/// All of it. The field names are those of the JSON document.
#[derive(Debug, Serialize)]
pub struct Report {
    /// `tagwire.info/1`: raised when a field changes its meaning or goes.
    pub schema: &'static str,
    /// This build.
    pub build: Build,
    /// Who started this process.
    pub launcher: LauncherReport,
    /// The machine.
    pub machine: Machine,
    /// The transports.
    pub transports: Vec<TransportReport>,
    /// What would carry messages, by peer and length.
    pub messages: Vec<MessagesReport>,
    /// The matching engines.
    pub engines: Vec<Named>,
    /// The layers that make messages of what transports move.
    pub pmls: Vec<PmlReport>,
    /// The algorithms of collectives.
    pub collectives: CollectivesReport,
    /// The settings.
    pub settings: Vec<SettingReport>,
}

/// Who started this process.
#[derive(Debug, Serialize)]
pub struct LauncherReport {
    /// The one that is taken; `None` when the environment contradicts itself.
    pub detected: Option<String>,
    /// What was found of each, in the order in which they are asked; or the contradiction.
    pub findings: Vec<String>,
}

/// The fields of [`Topology`], and what a look at the clock costs.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub host: Option<String>,
    pub kernel: Option<String>,
    pub cpu_model: Option<String>,
    pub virtual_machine: Option<bool>,
    pub cpus_online: Option<String>,
    pub cpus_allowed: Option<String>,
    pub cpus_isolated: Option<String>,
    pub cores: Option<usize>,
    pub smt: Option<bool>,
    pub numa_nodes: Vec<String>,
    pub governors: Vec<String>,
    pub boost: Option<bool>,
    pub memory_bytes: Option<u64>,
    pub clock_source: Option<String>,
    pub clock_cost_ns: f64,
    pub ptrace_scope: Option<u32>,
    pub seccomp: Option<u32>,
}

/// The fields of a setting and of its entry in the configuration.
#[derive(Debug, Serialize)]
pub struct SettingReport {
    pub name: &'static str,
    pub variable: String,
    pub kind: &'static str,
    pub value: String,
    pub origin: String,
    pub default: String,
    pub range: String,
    pub read_by: &'static str,
    pub help: &'static str,
}

/// Finds everything out.
pub fn gather(config: &Config, topology: Topology) -> Report {
    let mut transports = catalogue(config, &topology);
    survey(&mut transports, config);
    Report {
        schema: "tagwire.info/1",
        build: build(),
        launcher: launcher(),
        transports,
        machine: machine(topology),
        messages: super::messages::gather(config),
        engines: choices(config, ENGINE),
        pmls: super::pmls::catalogue(config),
        collectives: super::collectives::gather(config),
        settings: settings(config),
    }
}

impl Report {
    /// The JSON document, with a line end.
    pub fn to_json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .map_err(|error| Failure::run(format!("cannot write JSON: {error}")))
    }
}

/// Every setting.
pub fn settings(config: &Config) -> Vec<SettingReport> {
    config.entries().map(setting).collect()
}

/// A launcher whose variables are incomplete is told, not refused: to see that is what `info` is
/// for.
pub fn launcher() -> LauncherReport {
    match Detection::of_environment() {
        Ok(detection) => LauncherReport {
            detected: Some(detection.launcher().to_string()),
            findings: detection
                .candidates
                .iter()
                .map(ToString::to_string)
                .collect(),
        },
        Err(error) => LauncherReport {
            detected: None,
            findings: vec![error.to_string()],
        },
    }
}

/// What is known of the machine.
pub fn machine(topology: Topology) -> Machine {
    let list = |cpus: Option<tagwire_base::topology::CpuList>| cpus.map(|cpus| cpus.to_string());
    Machine {
        host: topology.host,
        kernel: topology.kernel,
        cpu_model: topology.cpu_model,
        virtual_machine: topology.virtual_machine,
        cpus_online: list(topology.online),
        cpus_allowed: list(topology.allowed),
        cpus_isolated: list(topology.isolated),
        cores: topology.cores,
        smt: topology.smt,
        numa_nodes: topology
            .numa
            .iter()
            .map(|node| format!("{}: {}", node.number, node.cpus))
            .collect(),
        governors: topology.governors,
        boost: topology.boost,
        memory_bytes: topology.memory,
        clock_source: topology.clock_source,
        clock_cost_ns: clock_cost_ns(|| Clock::default().now()),
        ptrace_scope: topology.ptrace_scope,
        seccomp: topology.seccomp,
    }
}

fn setting(entry: &Entry) -> SettingReport {
    let setting = entry.setting();
    SettingReport {
        name: setting.name(),
        variable: setting.variable(),
        kind: setting.kind().name(),
        value: entry.value().to_string(),
        origin: entry.origin().to_string(),
        default: setting.default_value().to_string(),
        range: setting.kind().range(),
        read_by: setting.reader(),
        help: setting.help(),
    }
}
