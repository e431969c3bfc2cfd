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
    Listing(u32),
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
        pidfd_open(id, PidfdFlags::empty()).map_or(Self::Listing(pid), Self::Descriptor)
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
            Self::Listing(pid) => is_gone_from_listing(*pid),
        }
    }
}

/// Whether `/proc` knows the process as a zombie, or not at all.
fn is_gone_from_listing(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state follows the name, which is in brackets and may itself hold any character.
        Ok(text) => text
            .rsplit_once(')')
            .is_some_and(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X'))),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let watched = Liveness::watch(child.id());
        let listed = Liveness::Listing(child.id());
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
    fn the_own_process_never_ends() {
        assert!(!Liveness::watch(std::process::id()).is_over());
    }
}
