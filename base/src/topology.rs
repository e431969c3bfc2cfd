//! The machine, as far as it matters to who measures on it: processors, binding, clock, kernel.
//!
//! Everything is read from plain files below a root, so that tests can bring their own machine.
//! What a machine does not tell is `None`, never an error: containers hide files, and other
//! architectures lack them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::Time;
use crate::error::{Error, Result};

mod cpus;
#[cfg(test)]
mod tests;

pub use cpus::{CpuList, ranges};

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaNode {
    /// Its number.
    pub number: u32,
    /// Its CPUs; none where a node is only memory.
    pub cpus: CpuList,
}

/// What the machine says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Topology {
    /// The machine's name.
    pub host: Option<String>,
    /// The kernel's release, such as `6.18.4`.
    pub kernel: Option<String>,
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// Whether the processor says that it is virtual.
    pub virtual_machine: Option<bool>,
    /// CPUs that are switched on. A CPU is a hardware thread.
    pub online: Option<CpuList>,
    /// CPUs on which the calling thread may run: its binding.
    pub allowed: Option<CpuList>,
    /// CPUs that the scheduler leaves alone.
    pub isolated: Option<CpuList>,
    /// Physical cores that are switched on.
    pub cores: Option<usize>,
    /// Whether cores run more than one hardware thread.
    pub smt: Option<bool>,
    /// NUMA nodes.
    pub numa: Vec<NumaNode>,
    /// Frequency governors of the online CPUs, each once.
    pub governors: Vec<String>,
    /// Whether the processor may exceed its nominal frequency.
    pub boost: Option<bool>,
    /// What the kernel reads the time from.
    pub clock_source: Option<String>,
    /// Memory of the machine in bytes.
    pub memory: Option<u64>,
    /// Which processes may attach to each other's memory (`kernel.yama.ptrace_scope`): 0 those
    /// of one user, 1 a parent to its children, 2 the administrator's, 3 none. `None` where the
    /// kernel has no such switch.
    pub ptrace_scope: Option<u32>,
    /// The seccomp mode of the calling thread: 0 none, 1 strict, 2 a filter.
    pub seccomp: Option<u32>,
}

impl Topology {
    /// This machine, as seen by the calling thread.
    #[must_use]
    pub fn of_machine() -> Self {
        let mut topology = Self::read(Path::new("/"));
        // The system call knows better than the file, where a kernel of few CPUs serves it.
        if let Some(allowed) = binding() {
            topology.allowed = Some(allowed);
        }
        topology
    }

    /// The machine whose `proc` and `sys` lie below `root`.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let files = Files { root };
        let online: Option<CpuList> = files.parsed("sys/devices/system/cpu/online");
        let information = files.text("proc/cpuinfo").unwrap_or_default();
        let status = files.text("proc/thread-self/status").unwrap_or_default();
        Self {
            host: files.text("proc/sys/kernel/hostname"),
            kernel: files.text("proc/sys/kernel/osrelease"),
            cpu_model: cpu_model(&information),
            virtual_machine: value(&information, "flags")
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            allowed: value(&status, "Cpus_allowed_list").and_then(|list| list.parse().ok()),
            ptrace_scope: files.parsed("proc/sys/kernel/yama/ptrace_scope"),
            seccomp: value(&status, "Seccomp").and_then(|mode| mode.parse().ok()),
            isolated: files.parsed("sys/devices/system/cpu/isolated"),
            cores: online.as_ref().and_then(|online| cores(&files, online)),
            smt: smt(&files, online.as_ref()),
            numa: numa(&files),
            governors: online
                .as_ref()
                .map(|online| governors(&files, online))
                .unwrap_or_default(),
            boost: boost(&files),
            clock_source: files
                .text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            memory: files.text("proc/meminfo").and_then(|text| {
                let kibibytes = value(&text, "MemTotal")?.strip_suffix(" kB")?;
                kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)
            }),
            online,
        }
    }
}

/// The CPUs on which the calling thread may run; `None` where the kernel has more CPUs than fit
/// the question.
#[must_use]
pub fn binding() -> Option<CpuList> {
    let set = sched_getaffinity(None).ok()?;
    let limit = u32::try_from(CpuSet::MAX_CPU).ok()?;
    Some((0..limit).filter(|cpu| set.is_set(*cpu as usize)).collect())
}

/// Names a physical core: package and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub i64, pub i64);

/// The core that `cpu` belongs to; where the system does not say, each CPU is its own.
#[must_use]
pub fn core_of(cpu: u32) -> CoreId {
    let root = Path::new("/");
    core_in(&Files { root }, cpu).unwrap_or_else(|| CoreId(i64::MAX, i64::from(cpu)))
}

/// Binds the calling thread, and the threads that it starts from now on, to one CPU.
///
/// # Errors
/// [`Error::System`] when there is no such CPU or this thread may not use it.
pub fn bind_to(cpu: u32) -> Result<()> {
    let refused = |error| {
        let allowed = binding().map_or_else(String::new, |cpus| format!(" (allowed: {cpus})"));
        Error::system(format!("cannot bind to CPU {cpu}{allowed}"), error)
    };
    let index = cpu as usize;
    if index >= CpuSet::MAX_CPU {
        return Err(refused(rustix::io::Errno::INVAL));
    }
    let mut set = CpuSet::new();
    set.set(index);
    sched_setaffinity(None, &set).map_err(refused)
}

/// What one look at the clock costs that `now` reads, in nanoseconds: the cheapest of several short series, since
/// whatever disturbs one makes it longer.
#[must_use]
pub fn clock_cost_ns(mut now: impl FnMut() -> Time) -> f64 {
    const SERIES: u32 = 32;
    const LOOKS: u32 = 256;
    let series = |_| {
        let start = now();
        for _ in 1..LOOKS {
            std::hint::black_box(now());
        }
        now().since(start).as_nanos()
    };
    let least = (0..SERIES).map(series).min().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a few microseconds")]
    let total = least as f64;
    total / f64::from(LOOKS)
}

struct Files<'a> {
    root: &'a Path,
}

impl Files<'_> {
    /// A file's text without the blanks around it, or `None` when it is missing or empty.
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn parsed<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    fn of_cpu<T: FromStr>(&self, cpu: u32, file: &str) -> Option<T> {
        self.parsed(&format!("sys/devices/system/cpu/cpu{cpu}/{file}"))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let path: PathBuf = self.root.join(folder);
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }
}

/// The first value of `key` in lines of the form `key: value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

/// Arm processors give numbers only; they name a model well enough for a comparison.
fn cpu_model(information: &str) -> Option<String> {
    let named = value(information, "model name").or_else(|| value(information, "cpu"));
    named.map(str::to_owned).or_else(|| {
        let implementer = value(information, "CPU implementer")?;
        let part = value(information, "CPU part")?;
        Some(format!("implementer {implementer} part {part}"))
    })
}

fn cores(files: &Files<'_>, online: &CpuList) -> Option<usize> {
    let names: Option<BTreeSet<_>> = online.iter().map(|cpu| core_in(files, cpu)).collect();
    names.map(|names| names.len())
}

fn core_in(files: &Files<'_>, cpu: u32) -> Option<CoreId> {
    let number = files.of_cpu(cpu, "topology/core_id")?;
    let package = files.of_cpu(cpu, "topology/physical_package_id");
    Some(CoreId(package.unwrap_or(0), number))
}

fn smt(files: &Files<'_>, online: Option<&CpuList>) -> Option<bool> {
    match files.text("sys/devices/system/cpu/smt/active").as_deref() {
        Some("1") => return Some(true),
        Some("0") => return Some(false),
        _ => {}
    }
    let first = online?.iter().next()?;
    let siblings: CpuList = files.of_cpu(first, "topology/thread_siblings_list")?;
    Some(siblings.len() > 1)
}

fn numa(files: &Files<'_>) -> Vec<NumaNode> {
    const FOLDER: &str = "sys/devices/system/node";
    let mut nodes: Vec<NumaNode> = files
        .names(FOLDER)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .map(|number| NumaNode {
            number,
            cpus: files
                .parsed(&format!("{FOLDER}/node{number}/cpulist"))
                .unwrap_or_default(),
        })
        .collect();
    nodes.sort_unstable_by_key(|node| node.number);
    nodes
}

fn governors(files: &Files<'_>, online: &CpuList) -> Vec<String> {
    let names: BTreeSet<String> = online
        .iter()
        .filter_map(|cpu| files.of_cpu(cpu, "cpufreq/scaling_governor"))
        .collect();
    names.into_iter().collect()
}

fn boost(files: &Files<'_>) -> Option<bool> {
    match files
        .text("sys/devices/system/cpu/intel_pstate/no_turbo")
        .as_deref()
    {
        Some("0") => return Some(true),
        Some("1") => return Some(false),
        _ => {}
    }
    match files
        .text("sys/devices/system/cpu/cpufreq/boost")
        .as_deref()
    {
        Some("1") => Some(true),
        Some("0") => Some(false),
        _ => None,
    }
}
