//! Proof that a peer's process has ended.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How the end of a peer's process is found out.
#[derive(Debug)]
pub(super) enum Liveness {
    /// Not at all: it lives in another namespace, or is not known yet.
    Unknown,
    /// It has ended before anybody could watch it.
    Over,
    /// The peer is another rank of this process.
    SameProcess,
    /// Through a descriptor of the process.
    Descriptor(OwnedFd),
    /// Through `/proc`, where no such descriptor was to be had.
    Listing(Listed),
}

impl Liveness {
    /// Begins to watch process `pid` of this namespace. Whoever calls then makes sure that it is
    /// still the process that was meant.
    pub(super) fn watch(pid: u32) -> Self {
        if pid == std::process::id() {
            return Self::SameProcess;
        }
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return Self::Unknown;
        };
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(descriptor) => Self::Descriptor(descriptor),
            Err(rustix::io::Errno::SRCH) => Self::Over,
            Err(_) => Listed::find(pid).map_or(Self::Over, Self::Listing),
        }
    }

    /// For a process whose descriptor could not be opened: where `/proc` does not know the
    /// process, or not with this descriptor, the one that was meant has ended.
    pub(super) fn watch_unseen(pid: u32, descriptor: u32) -> Self {
        match std::fs::symlink_metadata(format!("/proc/{pid}/fd/{descriptor}")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::Over,
            _ => Self::watch(pid),
        }
    }

    /// Whether the process has ended, so that nothing of it can touch memory any more.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Unknown | Self::SameProcess => false,
            Self::Over => true,
            Self::Descriptor(descriptor) => {
                let mut wanted = [PollFd::new(descriptor, PollFlags::IN)];
                let at_once = Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                poll(&mut wanted, Some(&at_once)).is_ok_and(|ready| ready > 0)
            }
            Self::Listing(process) => process.is_over(),
        }
    }
}

/// A process in `/proc`: its number, and when it was started, since numbers are given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pid: u32,
    /// In ticks since the machine was started; `None` where `/proc` cannot be read.
    started: Option<u64>,
}

impl Listed {
    /// The process `pid`, if there is one.
    fn find(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        if matches!(&text, Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
            return None;
        }
        let started = text.ok().and_then(|text| parse_stat(&text));
        Some(Self {
            pid,
            started: started.map(|(started, _)| started),
        })
    }

    /// Whether `/proc` knows the process as one of which nothing runs any more, or not at all.
    fn is_over(self) -> bool {
        match std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(text) => parse_stat(&text).is_some_and(|(started, ended)| {
                ended || self.started.is_some_and(|then| then != started)
            }),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

/// When a process was started and whether it has ended, from its line in `/proc` (proc_pid_stat(5):
/// fields 3, 20 and 22).
fn parse_stat(text: &str) -> Option<(u64, bool)> {
    // The state follows the name, which is in brackets and may itself hold any character.
    let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let (state, threads, started) = (fields.first()?, fields.get(17)?, fields.get(19)?);
    // The first thread of a process may end, and be a zombie, while others go on.
    let ended = matches!(*state, "Z" | "X") && matches!(*threads, "0" | "1");
    Some((started.parse().ok()?, ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let watched = Liveness::watch(child.id());
        let listed = Liveness::Listing(Listed::find(child.id()).unwrap());
        assert!(matches!(watched, Liveness::Descriptor(_)));
        assert!(!watched.is_over() && !listed.is_over());
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !(watched.is_over() && listed.is_over()) {
            assert!(std::time::Instant::now() < deadline, "not seen in time");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(watched.is_over() && listed.is_over());
    }

    #[test]
    fn a_number_that_was_given_out_again_is_another_process() {
        let own = Listed::find(std::process::id()).unwrap();
        assert!(!own.is_over());
        let before = Listed {
            started: own.started.map(|started| started - 1),
            ..own
        };
        assert!(before.is_over());
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let line = |state, threads| {
            format!("7 (a) b) {state} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 123 0 0")
        };
        assert_eq!(parse_stat(&line('R', 1)), Some((123, false)));
        assert_eq!(parse_stat(&line('Z', 1)), Some((123, true)));
        assert_eq!(parse_stat(&line('Z', 2)), Some((123, false)));
        assert_eq!(parse_stat("7 (a) R 1"), None);
    }

    #[test]
    fn the_own_process_never_ends() {
        assert!(!Liveness::watch(std::process::id()).is_over());
    }
}
