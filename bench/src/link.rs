//! How ranks report to the command that started them: lines of JSON over an abstract Unix
//! socket, which leaves nothing behind and passes through any launcher. The first line of a
//! connection proves that it comes from the job.
//!
//! Any process of the host may connect. Another user's is sent away unheard. One of this user has [`FIRST_WORDS`] for its first
//! line, of which no more is kept than a secret is long.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_base::JobSecret;
use tagwire_launch::{Deadline, is_own_user};

use crate::environment::Used;
use crate::error::{Error, Result};
use crate::plan::Address;
use crate::profile::Profile;
use crate::record::Row;

/// How long whoever connects has to show that it comes from the job.
const FIRST_WORDS: Duration = Duration::from_secs(5);
/// The longest first line, in bytes: a secret in hexadecimal digits, and the line's end.
const FIRST_LINE: u64 = 2 * JobSecret::LEN as u64 + 1;
/// The longest line, in bytes: a row with all samples of a partitioned test.
const LONGEST_LINE: u64 = 64 << 20;

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
        let reached = socket(&address.socket).and_then(|name| {
            let stream = UnixStream::connect_addr(&name)?;
            match is_own_user(&stream) {
                true => Ok(stream),
                // The command is gone, and somebody else has its name.
                false => Err(std::io::Error::new(
                    ErrorKind::PermissionDenied,
                    "its socket is another user's",
                )),
            }
        });
        let stream = reached
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
    secret: JobSecret,
}

impl ReportServer {
    /// A socket of a fresh name.
    pub(crate) fn open() -> Result<Self> {
        let (name, secret) = (JobSecret::generate()?.to_hex(), JobSecret::generate()?);
        let name = format!("tagwire-bench-{}", &name[..32]);
        let listener = socket(&name)
            .and_then(|name| UnixListener::bind_addr(&name))
            .map_err(|error| Error::system("open a socket for the results", error))?;
        Ok(Self {
            listener,
            address: Address {
                socket: name,
                secret: secret.to_hex(),
            },
            secret,
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
                    // Another user's costs no thread.
                    if is_own_user(&stream) {
                        scope.spawn(|| self.listen(stream, &over, &taker));
                    }
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
            over,
        };
        let first = lines.next(FIRST_LINE, Deadline::within(Some(FIRST_WORDS)));
        let said = first.and_then(|line| JobSecret::from_hex(&line));
        if said.is_none_or(|said| said != self.secret) {
            return;
        }
        while let Some(line) = lines.next(LONGEST_LINE, Deadline::within(None)) {
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

struct Lines<'a, R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Once this is set nothing is waited for.
    over: &'a AtomicBool,
}

impl<R: Read> Lines<'_, R> {
    /// Returns the next line; `None` at the end, where it is longer than `most` bytes, and when nothing comes and the time or the job is
    /// over.
    fn next(&mut self, most: u64, deadline: Deadline) -> Option<String> {
        loop {
            let is_over = || deadline.left().is_some_and(|left| left.is_zero());
            let was_over = self.over.load(Ordering::Acquire) || is_over();
            let room = most - self.line.len() as u64;
            let mut reader = self.reader.by_ref().take(room);
            match reader.read_until(b'\n', &mut self.line) {
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
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

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

    /// A source that gives one byte at a time, and counts them.
    struct Drip(u64);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            // As a socket with a time limit does between bytes.
            if self.0 % 2 == 1 {
                self.0 += 1;
                return Err(ErrorKind::WouldBlock.into());
            }
            self.0 += 1;
            buffer[0] = b'x';
            Ok(1)
        }
    }

    #[test]
    fn a_stranger_is_heard_for_one_short_line_and_for_so_long() {
        let over = AtomicBool::new(false);
        let mut lines = Lines {
            reader: BufReader::with_capacity(1, Drip(0)),
            line: Vec::new(),
            over: &over,
        };
        assert_eq!(lines.next(FIRST_LINE, Deadline::within(None)), None);
        assert_eq!(lines.line.len() as u64, FIRST_LINE);
        assert!(lines.reader.get_ref().0 <= 2 * FIRST_LINE);
        lines.line.clear();
        let begun = lines.reader.get_ref().0;
        let past = Deadline::within(Some(Duration::ZERO));
        assert_eq!(lines.next(FIRST_LINE, past), None);
        assert!(lines.reader.get_ref().0 <= begun + 2, "it was heard on");
    }

    /// Ranks that are heard do not wait for those that say nothing.
    #[test]
    fn who_says_nothing_keeps_nobody_waiting() {
        let server = ReportServer::open().unwrap();
        let mut taken = Vec::new();
        let take = |message| {
            taken.push(message);
            Ok(())
        };
        let name = socket(&server.address().socket).unwrap();
        let silent: Vec<UnixStream> = (0..20)
            .map(|_| UnixStream::connect_addr(&name).unwrap())
            .collect();
        let (_, took) = server.serve(take, || {
            let mut reporter = Reporter::connect(server.address()).unwrap();
            reporter.send(&Message::Done).unwrap();
        });
        took.unwrap();
        assert_eq!(taken, [Message::Done]);
        drop(silent);
    }

    const PART: &str = "TAGWIRE_LINK_TEST_PART";
    const PLACE: &str = "TAGWIRE_LINK_TEST_PLACE";

    /// Has another user play a part: this program, started again. The child is there once it has said so.
    fn another_user(part: &str, place: &str) -> Child {
        let mut child = Command::new("/proc/self/exe")
            .args(["--exact", "link::tests::plays_its_part", "--nocapture"])
            .env(PART, part)
            .env(PLACE, place)
            .uid(65534)
            .gid(65534)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        assert!(said.lines().any(|line| line.unwrap().contains("is ready")));
        child
    }

    /// What the child does; in the parent's run of the tests, nothing.
    #[test]
    fn plays_its_part() {
        let Ok(part) = std::env::var(PART) else {
            return;
        };
        let place = std::env::var(PLACE).unwrap();
        let (name, secret) = place.split_once(' ').unwrap();
        let name = socket(name).unwrap();
        let mut held: Vec<Box<dyn std::any::Any>> = Vec::new();
        match &*part {
            "listens" => held.push(Box::new(UnixListener::bind_addr(&name).unwrap())),
            _ => {
                // It knows all that a rank knows, and takes whatever is left over to come in.
                for _ in 0..50 {
                    let mut stream = UnixStream::connect_addr(&name).unwrap();
                    let done = serde_json::to_string(&Message::Done).unwrap();
                    let _ = stream.write_all(format!("{secret}\n{done}\n").as_bytes());
                    held.push(Box::new(stream));
                }
            }
        }
        println!("it is ready");
        // Until the parent goes on, which hears no more.
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    }

    #[test]
    fn another_user_is_not_heard_and_not_spoken_to() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can become another user");
            return;
        }
        let server = ReportServer::open().unwrap();
        let place = format!("{} {}", server.address().socket, server.address().secret);
        let mut taken = 0;
        let take = |_| {
            taken += 1;
            Ok(())
        };
        server
            .serve(take, || {
                let mut child = another_user("reports", &place);
                drop(child.stdin.take());
                assert!(child.wait().unwrap().success());
            })
            .1
            .unwrap();
        assert_eq!(taken, 0, "another user was heard");

        let address = Address {
            socket: format!("tagwire-link-test-{}", std::process::id()),
            ..server.address().clone()
        };
        let mut child = another_user("listens", &format!("{} {}", address.socket, address.secret));
        let error = Reporter::connect(&address).unwrap_err().to_string();
        assert!(error.contains("another user's"), "{error}");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn no_text_of_an_address_has_the_secret() {
        let server = ReportServer::open().unwrap();
        let secret = &server.address().secret;
        assert!(!format!("{server:?} {:?}", server.address()).contains(&**secret));
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
