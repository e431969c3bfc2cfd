//! The notes that the launcher writes to standard error.
//!
//! Nobody may be reading there: a pager that is stopped, a pipe that is full. So a thread of its own writes, and whoever
//! has something to say does not wait for it.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

/// Lines that wait until somebody reads; later ones are dropped, and counted.
const MOST: usize = 1024;
/// How long the end of a job waits for its lines to be written.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Where notes go. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    writer: Option<Writer>,
    /// Lines that found no room, since the last one that did.
    dropped: u64,
}

/// The thread that writes.
#[derive(Debug)]
struct Writer {
    lines: SyncSender<String>,
    /// Hung up once the thread has written everything.
    over: Receiver<()>,
}

impl Writer {
    fn start(mut write: impl FnMut(&[u8]) + Send + 'static) -> io::Result<Self> {
        let (lines, queue) = sync_channel::<String>(MOST);
        let (alive, over) = channel();
        std::thread::Builder::new()
            .name("tagwire-notes".to_owned())
            .spawn(move || {
                let _alive = alive;
                queue.iter().for_each(|line| write(line.as_bytes()));
            })?;
        Ok(Self { lines, over })
    }
}

impl Notes {
    /// Says one line. Never waits. Whether anybody reads it is not the job's concern.
    pub fn say(&self, message: fmt::Arguments<'_>) {
        self.say_by(message, to_stderr);
    }

    fn say_by(&self, message: fmt::Arguments<'_>, write: impl FnMut(&[u8]) + Send + 'static) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { writer, dropped } = &mut *state;
        if writer.is_none() {
            *writer = Writer::start(write).ok();
        }
        let Some(writer) = writer else { return };
        let lost = match *dropped {
            0 => String::new(),
            count => format!("tagwire: {count} notes were dropped: nobody read standard error\n"),
        };
        match writer.lines.try_send(format!("{lost}tagwire: {message}\n")) {
            Ok(()) => *dropped = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => *dropped += 1,
        }
    }

    /// Waits until everything is written, for as long as somebody may be expected to read. Whether it is.
    pub fn finish(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.finish()
    }
}

impl State {
    fn finish(&mut self) -> bool {
        let Some(Writer { lines, over }) = self.writer.take() else {
            return true;
        };
        drop(lines);
        over.recv_timeout(DRAIN_LIMIT) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Writes to standard error past the standard library's lock: others in this process may print while nobody reads what
/// this thread has to say.
fn to_stderr(mut bytes: &[u8]) {
    let stderr = io::stderr();
    while !bytes.is_empty() {
        match rustix::io::write(stderr.as_fd(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    fn pipe() -> (File, File) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        (reader.into(), writer.into())
    }

    fn to(mut pipe: File) -> impl FnMut(&[u8]) + Send + 'static {
        move |bytes| pipe.write_all(bytes).unwrap()
    }

    #[test]
    fn what_is_read_is_whole_and_in_order() {
        let (mut reader, writer) = pipe();
        let notes = Notes::default();
        for number in 0..100 {
            notes.say_by(
                format_args!("line {number}"),
                to(writer.try_clone().unwrap()),
            );
        }
        drop(writer);
        assert!(notes.finish());
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let expected: String = (0..100).map(|n| format!("tagwire: line {n}\n")).collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn nobody_waits_for_a_reader_and_what_is_dropped_is_counted() {
        let (mut reader, writer) = pipe();
        let notes = Notes::default();
        let long = "x".repeat(1000);
        let say = || notes.say_by(format_args!("{long}"), to(writer.try_clone().unwrap()));
        // Far more than a pipe and the queue hold.
        (0..4 * MOST).for_each(|_| say());
        // The thread that writes may have made room just before the last one.
        while notes.0.lock().unwrap().dropped == 0 {
            say();
        }
        // Once somebody reads there is room again.
        let text = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        while notes.0.lock().unwrap().dropped > 0 {
            notes.say_by(format_args!("last"), to(writer.try_clone().unwrap()));
            std::thread::yield_now();
        }
        drop(writer);
        notes.finish();
        let text = text.join().unwrap();
        assert!(text.ends_with("notes were dropped: nobody read standard error\ntagwire: last\n"));
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (reader, mut writer) = pipe();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        while writer.write(&[0; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
        let notes = Notes::default();
        notes.say_by(format_args!("unheard"), move |bytes| {
            // Ends with an error, once the reader has gone.
            let _ = writer.write_all(bytes);
        });
        assert!(!notes.finish());
        drop(reader);
    }
}
