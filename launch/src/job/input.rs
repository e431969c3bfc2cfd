//! Standard input for rank 0.
//!
//! A file or a pipe is handed down as it is. A terminal cannot be: rank 0 is not in the
//! terminal's foreground group, and would be stopped when it reads. So its input is forwarded.

use std::io::{IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::StdinPolicy;

/// What the process of `rank` gets as standard input.
pub(super) fn of_rank(policy: StdinPolicy, rank: u32) -> Stdio {
    match policy {
        StdinPolicy::Rank0 if rank == 0 && std::io::stdin().is_terminal() => Stdio::piped(),
        StdinPolicy::Rank0 if rank == 0 => Stdio::inherit(),
        StdinPolicy::Rank0 | StdinPolicy::Null => Stdio::null(),
    }
}

/// Forwards the launcher's input until dropped.
#[derive(Debug)]
pub(super) struct Forwarder {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    pub fn start(target: ChildStdin) -> std::io::Result<Self> {
        let stop = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?);
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("tagwire-stdin".to_owned())
            .spawn(move || forward(target, &seen))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Forwarder {
    /// The target is dead by now, so a write to it does not block either.
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn forward(mut target: ChildStdin, stop: &OwnedFd) {
    let stdin = std::io::stdin();
    let mut buffer = [0; 4096];
    loop {
        let mut polled = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) if polled[1].revents().is_empty() => {}
            Err(Errno::INTR) => continue,
            _ => return,
        }
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(count) if count > 0 && target.write_all(&buffer[..count]).is_ok() => {}
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}
