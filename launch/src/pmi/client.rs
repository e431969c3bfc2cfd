//! Requests and replies of PMI-1: lines of `key=value` words, one request at a time.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, FdFlags};

use crate::environment::LAUNCHER;
use crate::error::{Error, Result};
use crate::launchers::inherited_socket;
use crate::patience::{self, LATE};
use crate::store::connect_tcp;

/// The longest request, in bytes: some launchers read no more at once, and take what is left for another one.
const LONGEST_REQUEST: usize = 1000;

/// The longest reply, in bytes.
const LONGEST: usize = 64 << 10;

/// The bounds of a launcher's key-value space, in bytes, with room for a final zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maxima {
    pub key: usize,
    pub value: usize,
}

/// A rank's connection to its launcher.
#[derive(Debug)]
pub(crate) struct Client {
    socket: OwnedFd,
    unread: Vec<u8>,
    space: String,
    maxima: Maxima,
    /// How long a reply may take.
    patience: Duration,
    /// A reply did not come in time, or was none: what comes next belongs to no request.
    broken: bool,
}

/// A reply, by key.
type Reply = HashMap<String, String>;

/// Why a request has no good reply.
#[derive(Debug)]
enum Trouble {
    /// None came in this time.
    Late(Duration),
    /// The connection is of no use any more, or the launcher refuses, for this reason.
    Broken(String),
}

/// What a request comes to.
type Asked<T> = std::result::Result<T, Trouble>;

fn broken<T>(what: impl Into<String>) -> Asked<T> {
    Err(Trouble::Broken(what.into()))
}

impl Trouble {
    /// Returns the error of a request, by whose name users see how far the launcher has come.
    fn at(self, request: &str) -> Error {
        let name = request.split(' ').next().unwrap_or_default();
        let what = match self {
            Self::Broken(what) => what,
            Self::Late(limit) => format!(
                "no reply within {} s ({LATE}): is it a launcher that listens there (PMI_FD, PMI_PORT)?",
                limit.as_secs_f64()
            ),
        };
        Error::Bootstrap(tagwire_base::Error::Bootstrap(format!(
            "the launcher's PMI, asked for '{name}': {what}; 'tagwire run' needs no PMI, and {LAUNCHER}=single runs this process alone"
        )))
    }
}

impl Client {
    /// Connects by the socket that the launcher left open as descriptor `number` of this process.
    ///
    /// # Errors
    /// When there is no such socket, or nobody there speaks PMI-1.
    pub(crate) fn open(number: i32) -> Result<Self> {
        let Some(inherited) = inherited_socket(number) else {
            return Err(Error::Environment(format!(
                "PMI_FD is {number}, which is no socket of this process: a wrapper may have closed it, or the variable is another job's; TAGWIRE_LAUNCHER=single runs this process alone"
            )));
        };
        let socket = rustix::io::fcntl_dupfd_cloexec(inherited, 0)
            .map_err(|error| Error::system("copy the descriptor of PMI_FD", error))?;
        let mut client = Self::of(socket, patience::of_environment()?);
        // To a child process the variables would be this rank's.
        rustix::io::fcntl_setfd(inherited, FdFlags::CLOEXEC)
            .map_err(|error| Error::system("keep the descriptor of PMI_FD from children", error))?;
        client.greet()?;
        Ok(client)
    }

    /// Connects to the launcher at `address`, as its process `id`. Returns the connection with the rank and the job's size.
    ///
    /// # Errors
    /// When nobody listens there, or nobody who speaks PMI-1.
    pub(crate) fn connect(address: &str, id: u32) -> Result<(Self, u32, u32)> {
        let patience = patience::of_environment()?;
        let socket = connect_tcp(address, patience).map_err(|error| {
            Error::system(
                format!("connect to the launcher at '{address}' (PMI_PORT)"),
                error,
            )
        })?;
        let mut client = Self::of(socket, patience);
        let request = format!("initack pmiid={id}");
        client.ask(&request, "initack")?;
        let place = client.place(id);
        let (rank, size) = place.map_err(|trouble| trouble.at(&request))?;
        client.greet()?;
        Ok((client, rank, size))
    }

    /// Returns the rank and the job's size of process `id`, which the launcher says by itself.
    fn place(&mut self, id: u32) -> Asked<(u32, u32)> {
        let mut told = |name: &str| {
            let mut reply = self.read("set", self.patience)?;
            let value = reply.remove(name).and_then(|value| value.parse().ok());
            value.map_or_else(
                || broken(format!("no {name} for process {id}: {reply:?}")),
                Ok,
            )
        };
        let (size, rank): (u32, u32) = (told("size")?, told("rank")?);
        told("debug")?;
        match rank < size {
            true => Ok((rank, size)),
            false => broken(format!("rank {rank} of {size}")),
        }
    }

    /// Greets the launcher on the other side of `socket`, each of whose replies may take as long as `patience`.
    ///
    /// # Errors
    /// When it does not speak PMI-1.
    #[cfg(test)]
    pub(super) fn over(socket: OwnedFd, patience: Duration) -> Result<Self> {
        let mut client = Self::of(socket, patience);
        client.greet()?;
        Ok(client)
    }

    const fn of(socket: OwnedFd, patience: Duration) -> Self {
        Self {
            socket,
            unread: Vec::new(),
            space: String::new(),
            maxima: Maxima { key: 0, value: 0 },
            patience,
            broken: false,
        }
    }

    fn greet(&mut self) -> Result<()> {
        // Slurm compares the numbers, and reads the whole line at once.
        self.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let maxima = self.ask("get_maxes", "maxes")?;
        let most = |key: &str| {
            let number = maxima.get(key).and_then(|text| text.parse().ok());
            number.filter(|number| *number >= 32)
        };
        let (Some(key), Some(value)) = (most("keylen_max"), most("vallen_max")) else {
            let what = format!("keys and values without a length: {maxima:?}");
            return Err(Trouble::Broken(what).at("get_maxes"));
        };
        self.maxima = Maxima { key, value };
        let mut space = self.ask("get_my_kvsname", "my_kvsname")?;
        let nameless = || Trouble::Broken("no name of a key-value space".to_owned());
        let name = space.remove("kvsname").ok_or_else(nameless);
        self.space = name.map_err(|trouble| trouble.at("get_my_kvsname"))?;
        Ok(())
    }

    pub(crate) const fn maxima(&self) -> Maxima {
        self.maxima
    }

    /// Returns the most bytes of a value that goes under a key of so many.
    pub(crate) fn longest_value(&self, key: usize) -> usize {
        let around = "cmd=put kvsname= key= value=\n".len() + self.space.len() + key;
        let most = self.maxima.value - 1;
        most.min(LONGEST_REQUEST.saturating_sub(around))
    }

    /// Puts a value, which others can get after the next [barrier](Client::wait_for_all).
    ///
    /// # Errors
    /// When the space is full or the launcher gone.
    pub(crate) fn put_part(&mut self, key: &str, value: &str) -> Result<()> {
        let space = &self.space;
        let request = format!("put kvsname={space} key={key} value={value}");
        self.ask(&request, "put_result").map(drop)
    }

    /// Returns a value; `None` where nobody has put one.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub(crate) fn get_part(&mut self, key: &str) -> Result<Option<String>> {
        let request = format!("get kvsname={} key={key}", self.space);
        let reply = self.write(&request);
        let reply = reply.and_then(|()| self.read("get_result", self.patience));
        let mut reply = reply.map_err(|trouble| trouble.at(&request))?;
        // Of a missing key the value is a word like any other.
        let found = reply.get("rc").is_none_or(|rc| rc == "0");
        Ok(reply.remove("value").filter(|_| found))
    }

    /// Returns once every rank has called it. `None` where `timeout` passes before: the connection is of no use then.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub(crate) fn wait_for_all(&mut self, timeout: Duration) -> Result<Option<()>> {
        const REQUEST: &str = "barrier_in";
        let reply = self.write(REQUEST);
        match reply.and_then(|()| self.read("barrier_out", timeout)) {
            Ok(reply) => match checked(reply) {
                Ok(_) => Ok(Some(())),
                Err(trouble) => Err(trouble.at(REQUEST)),
            },
            Err(Trouble::Late(_)) => Ok(None),
            Err(trouble) => Err(trouble.at(REQUEST)),
        }
    }

    /// Says that this process leaves in good order.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub(crate) fn say_goodbye(&mut self) -> Result<()> {
        self.ask("finalize", "finalize_ack").map(drop)
    }

    /// Asks the launcher to end the job with a status. It does not reply.
    pub(crate) fn end_job(&mut self, status: i32) {
        if let Err(error) = self.write(&format!("abort exitcode={status}")) {
            tracing::debug!(?error, "the launcher did not hear that the job is to end");
        }
    }

    /// Returns a number that the launcher knows; `None` where it does not, or does not know what is asked.
    pub(crate) fn number(&mut self, request: &str, reply: &str, word: &str) -> Option<u32> {
        self.ask(request, reply).ok()?.remove(word)?.parse().ok()
    }

    fn ask(&mut self, request: &str, reply: &str) -> Result<Reply> {
        let asked = self.write(request);
        let asked = asked.and_then(|()| self.read(reply, self.patience));
        asked
            .and_then(checked)
            .map_err(|trouble| trouble.at(request))
    }

    /// Sends a request in one piece: Slurm takes what it reads at once for one.
    fn write(&mut self, request: &str) -> Asked<()> {
        if self.broken {
            return broken("an earlier reply did not come");
        }
        let line = format!("cmd={request}\n");
        let sent = loop {
            match rustix::net::send(
                &self.socket,
                line.as_bytes(),
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Err(Errno::INTR) => {}
                sent => break sent,
            }
        };
        match sent {
            Ok(sent) if sent == line.len() => Ok(()),
            Ok(_) => {
                self.broken = true;
                broken("a request went out in part")
            }
            Err(error) => {
                self.broken = true;
                broken(format!("the connection has ended: {error}"))
            }
        }
    }

    /// Returns the reply called `wanted`.
    fn read(&mut self, wanted: &str, timeout: Duration) -> Asked<Reply> {
        // Until the reply is here, what comes later would be taken for another one's.
        self.broken = true;
        let line = self.line(timeout)?;
        let words = line.split_ascii_whitespace();
        let reply: Reply = words
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        if reply.get("cmd").map(String::as_str) != Some(wanted) {
            // A value may be the job's secret.
            let words = line.split_ascii_whitespace();
            let shown: Vec<&str> = words.filter(|word| !word.starts_with("value=")).collect();
            return broken(format!("'{}' in place of '{wanted}'", shown.join(" ")));
        }
        self.broken = false;
        Ok(reply)
    }

    fn line(&mut self, timeout: Duration) -> Asked<String> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return String::from_utf8(line).or_else(|_| broken("a reply that is no text"));
            }
            if self.unread.len() > LONGEST {
                return broken("a reply without an end");
            }
            self.wait(deadline, timeout)?;
            let mut bytes = [0; 4096];
            match rustix::io::read(&self.socket, &mut bytes) {
                Ok(0) => return broken("the launcher has closed the connection"),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return broken(format!("the connection has ended: {error}")),
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>, timeout: Duration) -> Asked<()> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut polled = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut polled, left.as_ref()) {
            Ok(0) => Err(Trouble::Late(timeout)),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => broken(format!("it cannot be waited for: {error}")),
        }
    }
}

/// Returns the reply where its request was carried out.
fn checked(reply: Reply) -> Asked<Reply> {
    match reply.get("rc").map_or("0", String::as_str) {
        "0" => Ok(reply),
        rc => {
            let reason = reply.get("msg").map_or("no reason given", String::as_str);
            broken(format!("refused with {rc}: {reason}"))
        }
    }
}
