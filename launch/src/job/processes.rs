//! What the process table says: which processes of a group handle a signal.
//!
//! A signal that asks for a report would kill a program that does not handle it: a shell around
//! the rank, say. So it goes only to those that do.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal};

/// The processes of `groups` that handle `signal`.
pub(super) fn handlers(groups: &HashSet<Pid>, signal: Signal) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .parse()
                .ok()
                .and_then(Pid::from_raw)
        })
        // Processes come and go meanwhile: one that cannot be read has gone.
        .filter(|&pid| group_of(pid).is_some_and(|group| groups.contains(&group)))
        .filter(|&pid| handles(pid, signal))
        .collect()
}

fn group_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    group_in(&stat)
}

/// The group in a process's stat line: `pid (name) state parent group ...`, where the name may
/// hold anything. Threads of the kernel have none.
fn group_in(stat: &[u8]) -> Option<Pid> {
    let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    fields
        .split_ascii_whitespace()
        .nth(2)?
        .parse()
        .ok()
        .filter(|&group| group > 0)
        .and_then(Pid::from_raw)
}

fn handles(pid: Pid, signal: Signal) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| has_signal(&status, "SigCgt:", signal))
}

/// Whether this process ignores `signal`.
pub(super) fn ignores(signal: Signal) -> bool {
    fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| has_signal(&status, "SigIgn:", signal))
}

/// Whether `signal` does in this process what it does by default. Where that cannot be found out, it does not.
pub(crate) fn is_default(signal: Signal) -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let has = |field| has_signal(&status, field, signal);
        !has("SigCgt:") && !has("SigIgn:")
    })
}

/// Whether the signal set that `field` shows in a process's status has `signal`.
fn has_signal(status: &str, field: &str, signal: Signal) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_sets_are_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000200\n";
        assert!(has_signal(status, "SigCgt:", Signal::USR1));
        assert!(!has_signal(status, "SigCgt:", Signal::HUP));
        assert!(has_signal(status, "SigIgn:", Signal::HUP));
        assert!(!has_signal("", "SigCgt:", Signal::USR1));
    }

    #[test]
    fn groups_are_read_whatever_the_name() {
        assert_eq!(
            group_in(b"7 (a) b) (c\xff) S 1 42 42 0 -1"),
            Pid::from_raw(42)
        );
        assert_eq!(group_in(b"2 (kthreadd) S 0 0 0 0 -1"), None);
        assert_eq!(group_in(b"7 (a"), None);
    }

    #[test]
    fn only_handlers_of_the_group_are_found() {
        let group = rustix::process::getpgrp();
        // Rust's runtime handles SIGSEGV and leaves SIGUSR2 alone.
        let own = rustix::process::getpid();
        assert!(handlers(&HashSet::from([group]), Signal::SEGV).contains(&own));
        assert!(!handlers(&HashSet::from([group]), Signal::USR2).contains(&own));
        assert_eq!(handlers(&HashSet::new(), Signal::SEGV), []);
    }
}
