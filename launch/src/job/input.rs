//! Standard input for ranks.
//!
//! A file or a pipe that one rank reads is handed down as it is: whoever does not read it leaves it to who comes next. A
//! terminal cannot be: the rank is not in the terminal's foreground group, and would be stopped when it reads. So its
//! input is forwarded, and so is what every rank is to have.

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tagwire_base::Rank;

use super::StdinPolicy;

/// What is read at once.
const CHUNK: usize = 64 << 10;

/// What is kept for ranks that have not taken it; nothing more is read then.
const KEPT: usize = 16 << 20;

/// How often a launcher in the background looks whether the terminal is its own again.
const BACKGROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// What the process of `rank` gets as standard input.
pub(super) fn of_rank(policy: StdinPolicy, rank: Rank) -> Stdio {
    match policy {
        StdinPolicy::All => Stdio::piped(),
        StdinPolicy::Rank(reader) if reader != rank => Stdio::null(),
        StdinPolicy::Rank(_) if std::io::stdin().is_terminal() => Stdio::piped(),
        StdinPolicy::Rank(_) => Stdio::inherit(),
        StdinPolicy::Null => Stdio::null(),
    }
}

/// Forwards the launcher's input until dropped.
#[derive(Debug)]
pub(super) struct Forwarder {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    /// Starts to forward all that comes to each of `targets`.
    pub fn start(targets: Vec<ChildStdin>) -> std::io::Result<Self> {
        let stop = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?);
        let seen = Arc::clone(&stop);
        let targets = targets.into_iter().map(Target::new);
        let stream = Stream::new(targets.collect::<std::io::Result<_>>()?);
        let thread = std::thread::Builder::new()
            .name("tagwire-stdin".to_owned())
            .spawn(move || stream.forward(&std::io::stdin(), &seen))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The pipe of a rank, and how much of what is kept it has taken.
struct Target {
    pipe: OwnedFd,
    taken: usize,
}

impl Target {
    fn new(pipe: ChildStdin) -> std::io::Result<Self> {
        let pipe = OwnedFd::from(pipe);
        // Of this end alone: the rank's is a description of its own.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, taken: 0 })
    }

    /// Writes what the pipe takes. `false` where nobody reads any more.
    fn write(&mut self, kept: &[u8]) -> bool {
        while self.taken < kept.len() {
            match rustix::io::write(&self.pipe, &kept[self.taken..]) {
                Ok(count) => self.taken += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return false,
            }
        }
        true
    }
}

/// What has been read, and those who are to have it.
struct Stream {
    targets: Vec<Target>,
    kept: Vec<u8>,
    is_over: bool,
}

impl Stream {
    const fn new(targets: Vec<Target>) -> Self {
        Self {
            targets,
            kept: Vec::new(),
            is_over: false,
        }
    }

    /// Forwards until the input or the last target has ended, or `stop` is readable. A target sees the end of the input once it
    /// has all.
    fn forward(mut self, source: &impl AsFd, stop: &OwnedFd) {
        while !self.targets.is_empty() {
            let wants = !self.is_over && self.kept.len() < KEPT;
            let is_away = wants && is_in_background(source);
            match self.wait(wants && !is_away, is_away, source, stop) {
                Some(true) => self.read(source),
                Some(false) => {}
                None => return,
            }
            self.write();
        }
    }

    /// Waits for something to do; returns whether there is input, and `None` at `stop`.
    fn wait(&self, wants: bool, is_away: bool, source: &impl AsFd, stop: &OwnedFd) -> Option<bool> {
        let mut polled = vec![PollFd::new(stop, PollFlags::IN)];
        // Those that have all are looked at too, for their end.
        polled.extend(self.targets.iter().map(|target| {
            let is_behind = target.taken < self.kept.len();
            let flags = if is_behind {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            PollFd::new(&target.pipe, flags)
        }));
        if wants {
            polled.push(PollFd::new(source, PollFlags::IN));
        }
        let timeout = is_away.then_some(&BACKGROUND);
        match poll(&mut polled, timeout) {
            Ok(_) if !polled[0].revents().is_empty() => None,
            Ok(_) => Some(wants && polled.last().is_some_and(|last| !last.revents().is_empty())),
            Err(Errno::INTR) => Some(false),
            Err(_) => None,
        }
    }

    fn read(&mut self, source: &impl AsFd) {
        let start = self.kept.len();
        self.kept.resize(start + CHUNK, 0);
        let read = rustix::io::read(source, &mut self.kept[start..]);
        self.kept.truncate(start + read.unwrap_or(0));
        self.is_over = !matches!(read, Ok(1..) | Err(Errno::INTR | Errno::AGAIN));
    }

    /// Writes to every target, drops those that have ended or have all, and what all have taken.
    fn write(&mut self) {
        let Self {
            targets,
            kept,
            is_over,
        } = self;
        targets.retain_mut(|target| {
            let is_read = target.write(kept) && !is_gone(&target.pipe);
            is_read && !(*is_over && target.taken == kept.len())
        });
        let taken = targets.iter().map(|target| target.taken).min();
        let taken = taken.unwrap_or(kept.len());
        // Moving the rest pays once it is less than what goes.
        if taken > 0 && taken >= kept.len() - taken {
            kept.drain(..taken);
            for target in targets {
                target.taken -= taken;
            }
        }
    }
}

/// Whether nobody reads a pipe any more.
fn is_gone(pipe: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}

/// Whether `source` is a terminal that another job of the shell has: a read would stop this process.
fn is_in_background(source: &impl AsFd) -> bool {
    rustix::termios::tcgetpgrp(source).is_ok_and(|group| group != rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    /// Returns a stream to `count` pipes, and their ends.
    fn streams(count: usize) -> (Stream, Vec<File>) {
        let pipes = (0..count).map(|_| rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC));
        let (ends, targets): (Vec<File>, Vec<Target>) = pipes
            .map(|pipe| {
                let (end, pipe) = pipe.unwrap();
                (File::from(end), Target::new(pipe.into()).unwrap())
            })
            .unzip();
        (Stream::new(targets), ends)
    }

    fn stop() -> OwnedFd {
        rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap()
    }

    #[test]
    fn every_target_has_all_and_the_end() {
        let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let (source, writer) = rustix::pipe::pipe().unwrap();
        let sent = bytes.clone();
        let sender = std::thread::spawn(move || File::from(writer).write_all(&sent).unwrap());
        let (stream, mut ends) = streams(3);
        // One that nobody reads and that ends is in nobody's way.
        drop(ends.pop());
        let forwarder = std::thread::spawn(move || stream.forward(&source, &stop()));
        let readers = ends.into_iter().map(|mut end| {
            std::thread::spawn(move || {
                let mut all = Vec::new();
                end.read_to_end(&mut all).unwrap();
                all
            })
        });
        let readers: Vec<_> = readers.collect();
        for reader in readers {
            assert!(reader.join().unwrap() == bytes);
        }
        sender.join().unwrap();
        forwarder.join().unwrap();
    }

    /// It ends at `stop` though a target has not taken what there is.
    #[test]
    fn a_target_that_does_not_read_keeps_nobody() {
        let (source, writer) = rustix::pipe::pipe().unwrap();
        let (stream, ends) = streams(1);
        let stop = Arc::new(stop());
        let seen = Arc::clone(&stop);
        let forwarder = std::thread::spawn(move || stream.forward(&source, &seen));
        File::from(writer).write_all(&vec![0; 1 << 20]).unwrap();
        rustix::io::write(&*stop, &1u64.to_ne_bytes()).unwrap();
        forwarder.join().unwrap();
        drop(ends);
    }

    /// Nobody is left who would read: the input is left alone.
    #[test]
    fn it_ends_with_the_last_target() {
        let (source, _writer) = rustix::pipe::pipe().unwrap();
        let (stream, ends) = streams(2);
        let forwarder = std::thread::spawn(move || stream.forward(&source, &stop()));
        drop(ends);
        forwarder.join().unwrap();
    }
}
