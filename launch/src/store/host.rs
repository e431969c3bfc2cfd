//! What starts ranks on another host than the store's: its connection, by which it says which of its ranks have ended and
//! hears that the job ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tagwire_base::{Error as BaseError, JobSecret, Rank};

use super::client::Membership;
use super::socket::{self, Passed};
use super::wire::{FrameBuffer, Grant, Hello, Reply, Request, RequestId, Who};
use crate::door::COME_AGAIN;
use crate::error::{Error, Result};
use crate::host;
use crate::patience::{LATE, Stop, Tries};

/// How often a wait looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A host's connection to the store of its job.
#[derive(Debug)]
pub(crate) struct HostLink {
    socket: OwnedFd,
    incoming: FrameBuffer,
    store: String,
    secret: JobSecret,
    first: u32,
    size: u32,
    ranks: u32,
    lost: bool,
}

/// Why a host has no place in the job.
#[derive(Debug)]
enum NoPlace {
    /// The store says why.
    Refused(String),
    /// Whoever listens there does not know the secret.
    Impostor,
    /// It hung up without a word.
    Dropped,
    /// It says something else, or nothing.
    Foreign,
}

impl NoPlace {
    fn into_error(self, address: &str, patience: Duration) -> Error {
        let why = match self {
            Self::Refused(why) => format!("the job at '{address}' does not take this host: {why}"),
            Self::Impostor => format!(
                "whoever listens at '{address}' does not know the job's secret (option --secret), or somebody has changed what it said"
            ),
            Self::Dropped | Self::Foreign => format!(
                "whoever listens at '{address}' has not replied as 'tagwire run --listen' of this version does, within {} s ({LATE})",
                patience.as_secs_f64()
            ),
        };
        BaseError::Bootstrap(why).into()
    }
}

/// What a host hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostMessage {
    /// The job ends, with this status.
    End(u32),
    /// The connection is lost.
    Lost,
}

impl HostLink {
    /// Joins the job whose store is, or soon will be, at `address` (`HOST:PORT`), with so many ranks.
    ///
    /// # Errors
    /// When nobody replies there within `patience`, or whoever does refuses this host; when `stop` says why to end before.
    pub(crate) fn join(
        address: &str,
        secret: JobSecret,
        ranks: u32,
        patience: Duration,
        stop: &mut dyn FnMut() -> Option<Stop>,
    ) -> Result<Self> {
        let what = format!("reach 'tagwire run --listen {address}'");
        let stop = &mut || {
            stop().map(|Stop { why, status }| Error::Ended {
                what: what.clone(),
                why,
                status,
            })
        };
        let store = format!("{}{address}", socket::TCP);
        let mut pauses = COME_AGAIN.iter();
        loop {
            let mut link = Self {
                socket: reach(&store, &what, patience, stop)?,
                incoming: FrameBuffer::default(),
                store: store.clone(),
                secret: secret.clone(),
                first: 0,
                size: 0,
                ranks,
                lost: false,
            };
            let Err(why) = link.introduce(&Tries::within(patience), stop)? else {
                return Ok(link);
            };
            let is_dropped = matches!(why, NoPlace::Dropped);
            match pauses.next().filter(|_| is_dropped) {
                Some(pause) => std::thread::sleep(*pause),
                None => return Err(why.into_error(address, patience)),
            }
        }
    }

    /// Says who this is, and proves it; sees whether the other side knows the secret, and takes the place that it gives.
    fn introduce(
        &mut self,
        time: &Tries,
        stop: &mut dyn FnMut() -> Option<Error>,
    ) -> Result<std::result::Result<(), NoPlace>> {
        let hello = Hello::of(Who::Host {
            ranks: self.ranks,
            name: host::node(),
        })?;
        self.send(&Request::Hello(hello.clone()));
        let challenge = match self.answer(time, stop)? {
            Some(Reply::Challenge(challenge)) => challenge,
            other => return Ok(Err(self.no_place(other))),
        };
        let proof = hello.proof(&self.secret, &challenge);
        self.send(&Request::Proof(proof));
        let (grant, proof) = match self.answer(time, stop)? {
            Some(Reply::Granted(grant, proof)) => (grant, proof),
            other => return Ok(Err(self.no_place(other))),
        };
        if !hello.is_answered(&proof, &self.secret, (&challenge, &grant)) {
            return Ok(Err(NoPlace::Impostor));
        }
        let Grant::Place { first, size } = grant else {
            return Ok(Err(NoPlace::Foreign));
        };
        let is_place = first.checked_add(self.ranks).is_some_and(|end| end <= size);
        if size > Rank::MAX || !is_place {
            return Ok(Err(NoPlace::Foreign));
        }
        (self.first, self.size) = (first, size);
        Ok(Ok(()))
    }

    /// Returns what it means that something else came, or nothing.
    fn no_place(&self, reply: Option<Reply>) -> NoPlace {
        match reply {
            Some(Reply::Refused(why)) => NoPlace::Refused(why),
            None if self.lost => NoPlace::Dropped,
            _ => NoPlace::Foreign,
        }
    }

    /// The number of this host's first rank.
    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// What the rank that is `local` here needs to know.
    pub(crate) fn membership(&self, local: u32) -> Membership {
        Membership {
            rank: Rank::new(self.first + local),
            size: self.size,
            local_rank: local,
            local_size: self.ranks,
            store: self.store.clone(),
            secret: self.secret.clone(),
            application: None,
        }
    }

    /// Says that a rank has ended.
    pub(crate) fn rank_ended(&mut self, rank: Rank, status: u32) {
        let rank = rank.as_u32();
        self.send(&Request::Ended { rank, status });
    }

    /// Returns all that has come since, also what came in one piece with the place. Never blocks.
    pub(crate) fn hear(&mut self) -> Vec<HostMessage> {
        let mut words = Vec::new();
        while !self.lost {
            match self.next() {
                Ok(Some(Reply::End { status })) => words.push(HostMessage::End(status)),
                Ok(Some(_)) | Err(()) => {
                    self.lost = true;
                    words.push(HostMessage::Lost);
                }
                Ok(None) => break,
            }
        }
        words
    }

    /// Whether something may still come, as what [`as_fd`](AsFd::as_fd) returns is readable.
    pub(crate) const fn is_open(&self) -> bool {
        !self.lost
    }

    fn send(&mut self, request: &Request) {
        let bytes = request.encode(RequestId(1));
        // The socket has room for more than a host ever says; what cannot be sent is a lost connection, of which the next
        // look reports.
        if socket::send(&self.socket, &bytes, None) != Ok(bytes.len()) {
            tracing::debug!("the job's store does not take what this host says");
            // Half of a word is none: the store is to see that this host is lost, as it soon does itself.
            let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        }
    }

    /// Returns the next reply; `None` where there is none in time, or the connection is lost, which is noted.
    fn answer(
        &mut self,
        time: &Tries,
        stop: &mut dyn FnMut() -> Option<Error>,
    ) -> Result<Option<Reply>> {
        loop {
            match self.next() {
                Ok(None) => {}
                Ok(reply) => return Ok(reply),
                Err(()) => {
                    self.lost = true;
                    return Ok(None);
                }
            }
            if let Some(error) = stop() {
                return Err(error);
            }
            let left = time.left();
            let timeout = Timespec::try_from(left.min(LOOK)).ok();
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) if left.is_zero() => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Returns the next frame that is here whole.
    fn next(&mut self) -> std::result::Result<Option<Reply>, ()> {
        loop {
            if let Some(frame) = self.incoming.next_frame().map_err(|_| ())? {
                return Reply::decode(&frame).map(Some).map_err(|_| ());
            }
            let mut bytes = [0; 4096];
            let mut nothing: Vec<Passed> = Vec::new();
            match socket::receive(&self.socket, &mut bytes, &mut nothing) {
                Ok(0) => return Err(()),
                Ok(count) => self.incoming.extend(&bytes[..count]),
                Err(Errno::AGAIN) => return Ok(None),
                Err(_) => return Err(()),
            }
        }
    }
}

impl AsFd for HostLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connects, as soon as somebody listens. A thread does, for `stop` to be heard meanwhile: to look a name up and to connect
/// takes as long as networks do.
fn reach(
    store: &str,
    what: &str,
    patience: Duration,
    stop: &mut dyn FnMut() -> Option<Error>,
) -> Result<OwnedFd> {
    let (sender, reached) = channel();
    let asked_for = Arc::new(());
    let is_asked_for = Arc::downgrade(&asked_for);
    let store = store.to_owned();
    let look = move || {
        let mut tries = Tries::within(patience);
        loop {
            match socket::connect(&store, tries.left()) {
                Err(_) if is_asked_for.strong_count() > 0 && tries.again() => {}
                // Nobody may want it any more: a connection without a hello means nothing there.
                found => return drop(sender.send(found)),
            }
        }
    };
    std::thread::Builder::new()
        .name("tagwire-reach".to_owned())
        .spawn(look)
        .map_err(|error| Error::system("start the thread that connects", error))?;
    let found = loop {
        match reached.recv_timeout(LOOK) {
            Ok(found) => break found,
            Err(RecvTimeoutError::Disconnected) => {
                break Err(std::io::Error::other("its thread ended"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(error) = stop() {
                    return Err(error);
                }
            }
        }
    };
    found.map_err(|error| {
        let within = patience.as_secs_f64();
        Error::system(format!("{what} within {within} s ({LATE})"), error)
    })
}
