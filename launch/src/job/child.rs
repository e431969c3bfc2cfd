//! One rank's process, set up so that it cannot outlive the launcher.
//!
//! Two mechanisms of the kernel see to it, both of which hold when the launcher is killed:
//!
//! - The **parent-death signal** kills the rank itself when the thread that forked it ends.
//! - The **leash** kills its whole process group, with what a wrapper started. It is a pipe whose
//!   only write end the launcher holds. The rank inherits the read end, set up to signal the
//!   rank's group as soon as something happens to the pipe; the only thing that ever happens is
//!   that the write end is closed.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

/// What a rank's process is set up with before its program starts.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// The CPU to run on.
    pub cpu: Option<usize>,
    /// The limit of open files to give back, where the launcher raised its own.
    pub files: Option<Rlimit>,
    /// What an outer launcher has left open for this process, and not for its children.
    pub outer: Option<RawFd>,
}

/// A started rank.
#[derive(Debug)]
pub(super) struct RankProcess {
    pub child: Child,
    /// Its process id and that of its group.
    pub pid: Pid,
    /// Readable when the process has ended.
    pub pidfd: OwnedFd,
    /// Kills the group when closed.
    _leash: OwnedFd,
}

/// Starts `command` as leader of its own process group.
pub(super) fn spawn(mut command: Command, setup: Setup) -> io::Result<RankProcess> {
    let (leash_end, leash) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let launcher = rustix::process::getpid();
    let end = leash_end.as_raw_fd();
    command.process_group(0);
    // SAFETY: the closure runs in the forked child, where only async-signal-safe calls are
    // sound. It makes system calls without allocating, and touches no lock. The descriptor `end`
    // is open there, because `leash_end` lives until after the fork.
    unsafe {
        command.pre_exec(move || prepare(launcher, end, &setup));
    }
    let child = command.spawn()?;
    drop(leash_end);
    let pid = Pid::from_child(&child);
    // The child is not reaped, so the number is still its own.
    let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(error) => {
            kill_and_reap(child, pid);
            return Err(error.into());
        }
    };
    Ok(RankProcess {
        child,
        pid,
        pidfd,
        _leash: leash,
    })
}

/// Ends a rank's group at once and takes its leader's remains.
pub(super) fn kill_and_reap(mut child: Child, group: Pid) {
    // Fails when the group has no process left, and a killed leader can always be waited for.
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Runs in the child between fork and exec, already in its own process group.
fn prepare(launcher: Pid, leash: RawFd, setup: &Setup) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A launcher that died before this line sends no signal any more.
    if rustix::process::getppid() != Some(launcher) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    put_on_leash(leash)?;
    if let Some(cpu) = setup.cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    if let Some(limit) = &setup.files {
        rustix::process::setrlimit(Resource::Nofile, *limit)?;
    }
    if let Some(outer) = setup.outer {
        // SAFETY: the launcher has looked that it is open, and nothing in this child closes it.
        let outer = unsafe { std::os::fd::BorrowedFd::borrow_raw(outer) };
        rustix::io::fcntl_setfd(outer, FdFlags::CLOEXEC)?;
    }
    Ok(())
}

fn put_on_leash(leash: RawFd) -> io::Result<()> {
    // SAFETY: the caller's descriptor is open, and nothing else in this child closes it.
    let leash = unsafe { std::os::fd::BorrowedFd::borrow_raw(leash) };
    rustix::io::fcntl_setfd(leash, FdFlags::empty())?;
    let group = rustix::process::getpid().as_raw_nonzero().get();
    let (fd, kill) = (leash.as_raw_fd(), Signal::KILL.as_raw());
    // SAFETY: these commands take an integer and touch no memory of ours.
    let refused = unsafe {
        libc::fcntl(fd, libc::F_SETOWN, -group) == -1
            || libc::fcntl(fd, F_SETSIG, kill) == -1
            || libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC) == -1
    };
    // Sandboxes that lack signals on descriptors still have the parent-death signal.
    if refused {
        rustix::io::fcntl_setfd(leash, FdFlags::CLOEXEC)?;
    }
    Ok(())
}

/// Linux's number for "which signal a descriptor sends"; the libc crate lacks it.
const F_SETSIG: libc::c_int = 10;
