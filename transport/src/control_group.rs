//! What the control group of this process says of memory (cgroups(7), version 2).

use std::fs::read_to_string;

/// Where a process sees the files of its control group.
const GROUP: &str = "/sys/fs/cgroup";

/// Returns what a file of the control group holds; `None` where there is none.
pub(crate) fn file(name: &str) -> Option<String> {
    read_to_string(format!("{GROUP}/{name}")).ok()
}

/// Returns the limit of the group's memory in bytes; `None` where it has none.
pub(crate) fn memory_limit() -> Option<u64> {
    limit(&file("memory.max")?)
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
