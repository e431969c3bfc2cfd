//! What the kernel counts of a thread and of CPUs, at one moment.
//!
//! All files are read below a root, so that tests can bring their own. What a kernel does not count is
//! `None` or absent, never an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::param::clock_ticks_per_second;
use tagwire_base::topology::CpuList;

use crate::time::processor_time;

/// What the kernel had counted when this was read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// When the look at them began and ended: what was counted between two looks lies between the beginning of the first and
    /// the end of the second.
    pub began: Instant,
    pub ended: Instant,
    /// When the times of CPUs and of this process were read.
    pub at: Instant,
    /// Processor time of this process, in nanoseconds; threads that have ended included.
    pub own_ns: u64,
    /// How often another thread took this one's CPU away.
    pub switches: Option<u64>,
    /// How long this thread has waited for a CPU while it could have run, in nanoseconds.
    pub wait_ns: Option<u64>,
    /// How long each CPU was idle, in nanoseconds. The kernel measures it, where it samples what a CPU does else, and rounds each kind to a
    /// hundredth of a second: what is not idle, a hypervisor's part included, is known better by this than by the sum of the others.
    pub idle_ns: BTreeMap<u32, u64>,
}

impl Reading {
    /// Reads the counters of the calling thread.
    pub(super) fn take(root: &Path) -> Self {
        let text = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
        let now = Instant::now;
        let began = now();
        let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        let stat = text("proc/stat");
        let own_ns = u64::try_from(processor_time().as_nanos()).unwrap_or(u64::MAX);
        Self {
            began,
            at: now(),
            own_ns,
            switches: involuntary_switches(&text("proc/thread-self/status")),
            wait_ns: run_queue_wait(&text("proc/thread-self/schedstat")),
            idle_ns: idle_ticks(&stat)
                .map(|(cpu, ticks)| (cpu, ticks.saturating_mul(tick_ns)))
                .collect(),
            ended: now(),
        }
    }
}

/// The hardware threads that share a core with one of `cpus` and are not among them.
pub(super) fn siblings(root: &Path, cpus: &CpuList) -> CpuList {
    let of = |cpu: u32| -> Option<CpuList> {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let text = fs::read_to_string(root.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let all = cpus.iter().filter_map(of);
    all.flat_map(|list| list.iter().collect::<Vec<_>>())
        .filter(|&cpu| !cpus.contains(cpu))
        .collect()
}

/// Distinguishes this run of this machine's kernel from every other one.
pub(super) fn boot(root: &Path) -> String {
    fs::read_to_string(root.join("proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

/// The line of `/proc/PID/status` (man 5 `proc_pid_status`).
fn involuntary_switches(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

/// The second number of `/proc/PID/schedstat`; the kernel writes zeros where it does not count.
fn run_queue_wait(schedstat: &str) -> Option<u64> {
    let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (ran > 0).then_some(waited)
}

/// The lines of `/proc/stat` (man 5 `proc_stat`): `cpuN user nice system idle iowait irq softirq steal ...`.
/// Returns the ticks of which each CPU was idle.
fn idle_ticks(stat: &str) -> impl Iterator<Item = (u32, u64)> {
    stat.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let cpu = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).take(5).collect();
        Some((cpu, ticks.get(3..5)?.iter().sum()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_understood() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t12\n";
        assert_eq!(involuntary_switches(status), Some(12));
        assert_eq!(involuntary_switches("Name:\tx\n"), None);
        assert_eq!(run_queue_wait("66624 1500 3\n"), Some(1500));
        assert_eq!(run_queue_wait("0 0 0\n"), None);
        assert_eq!(run_queue_wait(""), None);
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                    cpu0 1 2 3 1000 2000 4 5 6 70 80\n\
                    cpu12 10 0 0 5 0 0 0 0 0 0\n\
                    intr 5 6\n";
        assert_eq!(idle_ticks(stat).collect::<Vec<_>>(), [(0, 3000), (12, 5)]);
    }

    #[test]
    fn this_machine_counts() {
        let before = Reading::take(Path::new("/"));
        let after = Reading::take(Path::new("/"));
        assert!(after.began >= before.ended && after.own_ns >= before.own_ns);
        assert!((after.began..=after.ended).contains(&after.at));
        assert!(after.switches >= before.switches && after.wait_ns >= before.wait_ns);
    }

    #[test]
    fn a_machine_without_counters_has_none() {
        let nothing = tempfile::tempdir().unwrap();
        let reading = Reading::take(nothing.path());
        assert_eq!((reading.switches, reading.wait_ns), (None, None));
        assert!(reading.idle_ns.is_empty());
        let cpus: CpuList = "0-3".parse().unwrap();
        assert!(siblings(nothing.path(), &cpus).is_empty());
    }

    #[test]
    fn siblings_are_the_other_threads_of_the_same_cores() {
        let machine = tempfile::tempdir().unwrap();
        for (cpu, list) in [(0, "0,4"), (1, "1,5"), (4, "0,4")] {
            let place = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            let place = machine.path().join(place);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("thread_siblings_list"), format!("{list}\n")).unwrap();
        }
        let of = |cpus: &str| siblings(machine.path(), &cpus.parse().unwrap()).to_string();
        assert_eq!(of("0"), "4");
        assert_eq!(of("0-1"), "4-5");
        assert_eq!(of("0,4"), "");
    }
}
