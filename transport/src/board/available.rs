//! How much memory the system still has for this process: what is taken beyond it ends processes, and no call fails before.

use std::fs::read_to_string;

use crate::control_group::{self, file};

/// Returns how many bytes can be taken, by what the host and the control group say; `None` where neither says anything.
pub(super) fn available() -> Option<u64> {
    let host = read_to_string("/proc/meminfo").ok();
    let host = host.and_then(|text| of_host(&text));
    let group = || {
        of_group(
            &file("memory.max")?,
            &file("memory.current")?,
            &file("memory.stat")?,
        )
    };
    match (host, group()) {
        (Some(host), Some(group)) => Some(host.min(group)),
        (host, group) => host.or(group),
    }
}

/// Returns what a host has, by its `meminfo` (proc_meminfo(5)).
fn of_host(text: &str) -> Option<u64> {
    let lines = text.lines();
    let kibibytes = lines
        .filter_map(|line| line.strip_prefix("MemAvailable:"))
        .next()?;
    let number = kibibytes.trim().strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns what a control group has: up to its limit, with what it has of files that can be read again. `None` where it has no
/// limit.
fn of_group(limit: &str, current: &str, statistics: &str) -> Option<u64> {
    let limit = control_group::limit(limit)?;
    let current: u64 = current.trim().parse().ok()?;
    let statistic = |name: &str| {
        let mut words = statistics.lines().filter_map(|line| line.split_once(' '));
        let found = words.find(|(key, _)| *key == name);
        found.and_then(|(_, number)| number.trim().parse::<u64>().ok())
    };
    let files = statistic("file").unwrap_or(0);
    let shared = statistic("shmem").unwrap_or(0);
    let held = current.saturating_sub(files.saturating_sub(shared));
    Some(limit.saturating_sub(held))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_host_says_what_it_has() {
        let text = "MemTotal:       8000 kB\nMemAvailable:       7 kB\nBuffers: 1 kB\n";
        assert_eq!(of_host(text), Some(7 * 1024));
        for other in ["", "MemAvailable:", "MemAvailable: 7", "MemAvailable: x kB"] {
            assert_eq!(of_host(other), None, "{other}");
        }
    }

    #[test]
    fn a_group_has_what_is_left_of_its_limit() {
        let statistics = "anon 50\nfile 40\nshmem 10\nfile_mapped 3\n";
        assert_eq!(of_group("200\n", "100\n", statistics), Some(130));
        assert_eq!(of_group("200", "100", ""), Some(100));
        assert_eq!(of_group("50", "100", ""), Some(0));
        assert_eq!(of_group("max\n", "100\n", statistics), None);
    }

    #[test]
    fn this_host_says_something() {
        assert!(available().is_none_or(|bytes| bytes > 0));
    }
}
