//! The ranks' output, line by line, each line preceded by its rank.
//!
//! ```text
//!  rank 0 stdout --pipe--+
//!  rank 0 stderr --pipe--+--> one thread: cut into lines, tag --> launcher's stdout, stderr
//!  rank 1 stdout --pipe--+
//! ```
//!
//! A rank that prints faster than the launcher's output takes is held up by its full pipe. Once
//! the output is broken, what comes is read and dropped, so that no rank hangs on it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Lines longer than this are cut.
const MAX_LINE: usize = 1 << 20;
/// Bytes taken from one pipe before the next has its turn.
const READ_CHUNK: usize = 64 * 1024;

/// How often every pipe is read after the end of the job: twice what the largest pipe of an
/// ordinary user holds. Whoever still writes then has escaped from the job.
const LAST_ROUNDS: u32 = 32;

/// Which of the launcher's streams a pipe feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Where lines go.
pub(super) struct Sinks {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
}

impl Sinks {
    /// The launcher's own streams.
    pub fn standard() -> Self {
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
        }
    }

    fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let sink = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        sink.write_all(bytes)?;
        sink.flush()
    }
}

/// Returns both streams of a rank, to one new file of its own in `folder`: each write goes behind the last one. A link is not followed,
/// which another user of the folder may have laid.
pub(super) fn files_of(folder: &Path, rank: u32) -> Result<[Stdio; 2]> {
    let path = folder.join(format!("rank-{rank}.txt"));
    let failed = |error| Error::system(format!("write to '{}'", path.display()), error);
    let open = |options: &mut OpenOptions| options.custom_flags(libc::O_NOFOLLOW).open(&path);
    open(File::options().write(true).create(true).truncate(true)).map_err(failed)?;
    let out = open(File::options().append(true)).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    Ok([out.into(), err.into()])
}

/// The thread that moves the output.
#[derive(Debug)]
pub(super) struct Pump {
    stop: Arc<OwnedFd>,
    broken: Arc<OwnedFd>,
    failure: Arc<Mutex<Option<io::Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    /// Moves what comes from `sources`, pairs of a rank's pipe and its place, to `sinks`.
    pub fn start(sources: Vec<Source>, sinks: Sinks) -> io::Result<Self> {
        let event = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).map(Arc::new);
        let (stop, broken) = (event()?, event()?);
        let failure = Arc::default();
        let mut worker = Worker {
            sources,
            sinks,
            stop: Arc::clone(&stop),
            broken: Arc::clone(&broken),
            failure: Arc::clone(&failure),
            chunk: vec![0; READ_CHUNK],
        };
        let thread = std::thread::Builder::new()
            .name("tagwire-output".to_owned())
            .spawn(move || worker.run())?;
        Ok(Self {
            stop,
            broken,
            failure,
            thread: Some(thread),
        })
    }

    /// Becomes readable when the launcher's output is broken.
    pub fn broken(&self) -> &OwnedFd {
        &self.broken
    }

    /// Why the launcher's output is broken, if it is.
    pub fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(ToString::to_string)
    }

    /// Moves what still lies in the pipes and ends.
    pub fn finish(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.finish();
    }
}

/// One pipe of one rank.
#[derive(Debug)]
pub(super) struct Source {
    pipe: OwnedFd,
    stream: Stream,
    lines: LineTagger,
}

impl Source {
    pub fn new(rank: u32, stream: Stream, pipe: OwnedFd) -> Self {
        Self {
            pipe,
            stream,
            lines: LineTagger::new(rank),
        }
    }
}

struct Worker {
    sources: Vec<Source>,
    sinks: Sinks,
    stop: Arc<OwnedFd>,
    broken: Arc<OwnedFd>,
    failure: Arc<Mutex<Option<io::Error>>>,
    chunk: Vec<u8>,
}

impl Worker {
    fn run(&mut self) {
        let mut stopping = false;
        let mut last_rounds = LAST_ROUNDS;
        while !self.sources.is_empty() && last_rounds > 0 {
            let Some((ready, stopped)) = self.ready(stopping) else {
                break;
            };
            // What lay in the pipes when the stop came is still moved.
            if stopping && ready.is_empty() {
                break;
            }
            stopping |= stopped;
            last_rounds -= u32::from(stopping);
            for index in ready.into_iter().rev() {
                self.move_from(index);
            }
        }
        for mut source in std::mem::take(&mut self.sources) {
            self.write(source.stream, &source.lines.finish());
        }
    }

    /// The sources that have something, and whether the stop has come.
    fn ready(&self, stopping: bool) -> Option<(Vec<usize>, bool)> {
        let mut polled: Vec<PollFd<'_>> = self
            .sources
            .iter()
            .map(|source| &source.pipe)
            .chain([&*self.stop])
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            match poll(&mut polled, stopping.then_some(&at_once)) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        let stopped = polled.pop().is_some_and(|stop| !stop.revents().is_empty());
        let ready = (0..)
            .zip(&polled)
            .filter(|(_, fd)| !fd.revents().is_empty());
        Some((ready.map(|(index, _)| index).collect(), stopped))
    }

    fn move_from(&mut self, index: usize) {
        let source = &mut self.sources[index];
        let stream = source.stream;
        let lines = match rustix::io::read(&source.pipe, &mut self.chunk[..]) {
            Err(Errno::INTR | Errno::AGAIN) => return,
            Ok(count) if count > 0 => source.lines.push(&self.chunk[..count]),
            _ => self.sources.swap_remove(index).lines.finish(),
        };
        self.write(stream, &lines);
    }

    fn write(&mut self, stream: Stream, lines: &[u8]) {
        let is_broken = self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some();
        if lines.is_empty() || is_broken {
            return;
        }
        // Error output that nobody takes is no reason to end a job.
        if let Err(error) = self.sinks.write(stream, lines)
            && stream == Stream::Out
        {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            let _ = rustix::io::write(&*self.broken, &1u64.to_ne_bytes());
        }
    }
}

/// Cuts bytes into lines and puts the rank before each.
#[derive(Debug)]
struct LineTagger {
    tag: Vec<u8>,
    partial: Vec<u8>,
}

impl LineTagger {
    fn new(rank: u32) -> Self {
        Self {
            tag: format!("[{rank}] ").into_bytes(),
            partial: Vec::new(),
        }
    }

    /// Takes bytes and returns the lines that are complete.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= MAX_LINE {
                lines.extend_from_slice(&self.finish());
            }
        }
        lines
    }

    /// What has no end of line yet, given one.
    fn finish(&mut self) -> Vec<u8> {
        if self.partial.is_empty() {
            return Vec::new();
        }
        let mut line = self.tag.clone();
        line.append(&mut self.partial);
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs::File;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_link_in_place_of_a_ranks_file_is_not_followed() {
        let folder = std::env::temp_dir().join(format!("tagwire-output-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let victim = folder.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join("rank-1.txt")).unwrap();
        let error = files_of(&folder, 1).unwrap_err().to_string();
        assert!(error.contains("rank-1.txt"), "{error}");
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        std::fs::write(folder.join("rank-2.txt"), "of before").unwrap();
        files_of(&folder, 2).unwrap();
        assert_eq!(std::fs::read(folder.join("rank-2.txt")).unwrap(), b"");
        std::fs::remove_dir_all(folder).unwrap();
    }

    proptest! {
        #[test]
        fn lines_come_out_whole_however_they_are_cut(
            text in prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n')], 0..400),
            step in 1usize..50,
        ) {
            let mut tagger = LineTagger::new(3);
            let mut out: Vec<u8> =
                text.chunks(step).flat_map(|piece| tagger.push(piece)).collect();
            out.extend(tagger.finish());
            let expected: Vec<u8> = text
                .split_inclusive(|&byte| byte == b'\n')
                .flat_map(|line| {
                    let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
                    [b"[3] ", line, end].concat()
                })
                .collect();
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    fn endless_lines_are_cut() {
        let mut tagger = LineTagger::new(0);
        let mut out = Vec::new();
        for _ in 0..3 * MAX_LINE / 4096 {
            out.extend(tagger.push(&[b'x'; 4096]));
            assert!(tagger.partial.len() < MAX_LINE);
        }
        assert_eq!(out.split(|&byte| byte == b'\n').count(), 3 + 1);
    }

    /// A sink that the test can read.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn ranks_that_print_at_once_mix_only_between_lines() {
        const RANKS: u32 = 6;
        const LINES: u32 = 2000;
        let (out, err) = (Shared::default(), Shared::default());
        let mut sources = Vec::new();
        let mut writers = Vec::new();
        for rank in 0..RANKS {
            for stream in [Stream::Out, Stream::Err] {
                let (reader, writer) = rustix::pipe::pipe().unwrap();
                sources.push(Source::new(rank, stream, reader));
                writers.push(std::thread::spawn(move || {
                    let mut writer = File::from(writer);
                    for line in 0..LINES {
                        // In two writes, so that lines arrive in parts.
                        write!(writer, "{line} of").unwrap();
                        writeln!(writer, " rank {rank} \u{e9}").unwrap();
                    }
                    write!(writer, "end").unwrap();
                }));
            }
        }
        let sinks = Sinks {
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
        };
        let mut pump = Pump::start(sources, sinks).unwrap();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        pump.finish();
        for sink in [out, err] {
            let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
            let mut next: HashMap<u32, u32> = HashMap::new();
            for line in text.lines() {
                let (rank, body) = line.strip_prefix('[').unwrap().split_once("] ").unwrap();
                let rank = rank.parse().unwrap();
                let number = next.entry(rank).or_default();
                if *number < LINES {
                    assert_eq!(body, format!("{number} of rank {rank} \u{e9}"));
                } else {
                    assert_eq!(body, "end");
                }
                *number += 1;
            }
            assert!(next.len() == RANKS as usize && next.values().all(|&n| n == LINES + 1));
        }
    }

    #[test]
    fn a_broken_sink_is_told_and_holds_up_nobody() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let sinks = Sinks {
            out: Box::new(Broken),
            err: Box::new(io::sink()),
        };
        let mut pump = Pump::start(vec![Source::new(0, Stream::Out, reader)], sinks).unwrap();
        let mut writer = File::from(writer);
        // Many times what a pipe holds.
        (0..10_000).for_each(|_| writer.write_all(&[b'\n'; 100]).unwrap());
        poll(&mut [PollFd::new(pump.broken(), PollFlags::IN)], None).unwrap();
        assert!(pump.failure().is_some());
        drop(writer);
        pump.finish();
    }
}
