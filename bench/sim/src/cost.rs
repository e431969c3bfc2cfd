//! What a simulation costs: time of the processor, and memory.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns how long this process has computed.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns a figure of this process's memory in bytes (man 5 `proc_pid_status`); 0 where it cannot be read.
pub(crate) fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kibibytes(&status, name).unwrap_or_default() * 1024
}

/// Returns the number of the line that begins with `name`, in KiB.
pub(crate) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_have_numbers() {
        let text = "VmPeak:\t  9 kB\nVmHWM:\t    1234 kB\n";
        assert_eq!(kibibytes(text, "VmHWM:"), Some(1234));
        assert_eq!(kibibytes(text, "VmRSS:"), None);
    }
}
