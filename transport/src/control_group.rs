//! What the control group of this process says of memory (cgroups(7), version 2).

use std::fs::read_to_string;

/// Where a process sees the files of its control group.
const GROUP: &str = "/sys/fs/cgroup";

/// Returns what a file of the control group holds; `None` where there is none.
pub(crate) fn file(name: &str) -> Option<String> {
    read_to_string(format!("{GROUP}/{name}")).ok()
}

/// Returns the bytes of memory that there are for this process: those of the machine, or fewer by the limit of its control group.
#[must_use]
pub fn process_memory() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
    let limit = file("memory.max").and_then(|text| limit(&text));
    limit.map_or(machine, |limit| limit.min(machine))
}

/// Returns the limit that a `memory.max` holds; `None` where it is `max`.
pub(crate) fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_has_a_limit_or_none() {
        assert_eq!(limit("1073741824\n"), Some(1 << 30));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit(""), None);
    }
}
