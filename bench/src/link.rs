//! How ranks report to the command that started them: lines of JSON over an abstract Unix
//! socket, which leaves nothing behind and passes through any launcher. The first line of a
//! connection proves that it comes from the job.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_base::JobSecret;

use crate::environment::Used;
use crate::error::{Error, Result};
use crate::plan::Address;
use crate::profile::Profile;
use crate::record::Row;

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Message {
    /// Rank 0 is open, and uses this.
    Greeting(Used),
    /// The first rank of another machine is open, and uses this.
    OtherGreeting(Used),
    /// Rank 0 has measured something.
    Row(Box<Row>),
    /// Where the time of a rank went.
    Profile(Box<Profile>),
    /// Rank 0 has measured everything.
    Done,
    /// A rank failed.
    Failure {
        /// Which.
        rank: u32,
        /// In words.
        message: String,
        /// Its exit status.
        status: i32,
    },
}

/// A rank's end.
#[derive(Debug)]
pub(crate) struct Reporter {
    stream: UnixStream,
}

impl Reporter {
    /// Connects to whoever started this job.
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let stream = socket(&address.socket)
            .and_then(|name| UnixStream::connect_addr(&name))
            .map_err(|error| Error::system("reach the command that started this rank", error))?;
        let mut reporter = Self { stream };
        reporter.line(&address.secret)?;
        Ok(reporter)
    }

    /// Says something.
    pub(crate) fn send(&mut self, message: &Message) -> Result<()> {
        let text = serde_json::to_string(message).map_err(|error| Error::Job(error.to_string()))?;
        self.line(&text)
    }

    fn line(&mut self, text: &str) -> Result<()> {
        let line = format!("{text}\n");
        self.stream
            .write_all(line.as_bytes())
            .map_err(|error| Error::system("report to the command that started this rank", error))
    }
}

/// The command's end, for one job.
#[derive(Debug)]
pub(crate) struct ReportServer {
    listener: UnixListener,
    address: Address,
}

impl ReportServer {
    /// A socket of a fresh name.
    pub(crate) fn open() -> Result<Self> {
        let (name, secret) = (
            JobSecret::generate()?.to_hex(),
            JobSecret::generate()?.to_hex(),
        );
        let name = format!("tagwire-bench-{}", &name[..32]);
        let listener = socket(&name)
            .and_then(|name| UnixListener::bind_addr(&name))
            .map_err(|error| Error::system("open a socket for the results", error))?;
        Ok(Self {
            listener,
            address: Address {
                socket: name,
                secret,
            },
        })
    }

    /// Where ranks report to.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Gives every message to `take` while `work` runs, and returns what came of that. When
    /// `take` fails, no rank can report any more, which ends their job; the failure is returned.
    pub(crate) fn serve<T>(
        &self,
        take: impl FnMut(Message) -> Result<()> + Send,
        work: impl FnOnce() -> T,
    ) -> (T, Result<()>) {
        let over = AtomicBool::new(false);
        let taker = Mutex::new((take, Ok(())));
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Ranks that have connected are heard even when the work has ended meanwhile.
                while let Some(stream) = self.accept() {
                    scope.spawn(|| self.listen(stream, &over, &taker));
                    if over.load(Ordering::Acquire) && self.listener.set_nonblocking(true).is_err()
                    {
                        return;
                    }
                }
            });
            let result = work();
            over.store(true, Ordering::Release);
            // Lets the thread above look at the flag.
            let _ = socket(&self.address.socket).and_then(|name| UnixStream::connect_addr(&name));
            result
        });
        let taken = taker
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        (result, taken.1)
    }

    /// The next connection; `None` when there is none and nobody shall be waited for any more.
    fn accept(&self) -> Option<UnixStream> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => return Some(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                // Out of descriptors, say: it may pass.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn listen<F: FnMut(Message) -> Result<()>>(
        &self,
        stream: UnixStream,
        over: &AtomicBool,
        taker: &Mutex<(F, Result<()>)>,
    ) {
        // Once the job is over only what is in the socket already is read.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let mut lines = Lines {
            reader: BufReader::new(stream),
            line: Vec::new(),
        };
        if lines
            .next(over)
            .is_none_or(|line| line != self.address.secret)
        {
            return;
        }
        while let Some(line) = lines.next(over) {
            let Ok(message) = serde_json::from_str::<Message>(&line) else {
                return;
            };
            let mut taker = taker
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if taker.1.is_err() {
                return;
            }
            taker.1 = (taker.0)(message);
        }
    }
}

struct Lines {
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl Lines {
    /// The next line; `None` at the end, or when nothing comes and the job is over.
    fn next(&mut self, over: &AtomicBool) -> Option<String> {
        loop {
            let was_over = over.load(Ordering::Acquire);
            match self.reader.read_until(b'\n', &mut self.line) {
                Ok(0) => return None,
                Ok(_) if self.line.ends_with(b"\n") => {
                    self.line.pop();
                    return String::from_utf8(std::mem::take(&mut self.line)).ok();
                }
                Ok(_) => return None,
                // The part of a line that has come stays in `line`.
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if was_over => return None,
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return None,
                },
            }
        }
    }
}

fn socket(name: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(rank: u32) -> Message {
        Message::Failure {
            rank,
            message: "no".to_owned(),
            status: 3,
        }
    }

    #[test]
    fn messages_arrive_until_the_work_ends() {
        let server = ReportServer::open().unwrap();
        let mut taken = Vec::new();
        let take = |message| {
            taken.push(message);
            Ok(())
        };
        let (result, took) = server.serve(take, || {
            let mut reporter = Reporter::connect(server.address()).unwrap();
            reporter.send(&Message::Done).unwrap();
            reporter.send(&failure(1)).unwrap();
            7
        });
        took.unwrap();
        assert_eq!(result, 7);
        assert_eq!(taken, [Message::Done, failure(1)]);
    }

    #[test]
    fn strangers_are_not_heard() {
        let server = ReportServer::open().unwrap();
        let mut taken = 0;
        let take = |_| {
            taken += 1;
            Ok(())
        };
        server
            .serve(take, || {
                let address = Address {
                    secret: "guess".to_owned(),
                    ..server.address().clone()
                };
                let mut reporter = Reporter::connect(&address).unwrap();
                let _ = reporter.send(&Message::Done);
            })
            .1
            .unwrap();
        assert_eq!(taken, 0);
    }

    #[test]
    fn who_cannot_take_ends_the_conversation() {
        let server = ReportServer::open().unwrap();
        let (cut_off, took) = server.serve(
            |_| Err(Error::Job("full".to_owned())),
            || {
                let mut reporter = Reporter::connect(server.address()).unwrap();
                (0..100).any(|_| {
                    std::thread::sleep(Duration::from_millis(10));
                    reporter.send(&Message::Done).is_err()
                })
            },
        );
        assert!(cut_off);
        assert_eq!(took.unwrap_err().to_string(), "full");
    }
}
