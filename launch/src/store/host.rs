//! What starts ranks on another host than the store's: its connection, by which it says which of its ranks have ended and
//! hears that the job ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tagwire_base::{Error as BaseError, JobSecret, Rank};

use super::client::Membership;
use super::socket::{self, Passed};
use super::wire::{FrameBuffer, Reply, Request, RequestId, VERSION};
use crate::error::{Error, Result};
use crate::patience::{LATE, Tries};

/// How long the store may take for its reply.
const ANSWER: Duration = Duration::from_secs(30);

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

/// What a host hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// The job ends, with this status.
    End(u32),
    /// The connection is lost.
    Lost,
}

impl HostLink {
    /// Joins the job whose store is, or soon will be, at `address` (`HOST:PORT`), with so many ranks.
    ///
    /// # Errors
    /// When nobody answers there within `patience`, or whoever does refuses this host.
    pub(crate) fn join(
        address: &str,
        secret: JobSecret,
        ranks: u32,
        patience: Duration,
    ) -> Result<Self> {
        let store = format!("{}{address}", socket::TCP);
        let mut link = Self {
            socket: reach(&store, address, patience)?,
            incoming: FrameBuffer::default(),
            store,
            secret,
            first: 0,
            size: 0,
            ranks,
            lost: false,
        };
        let hello = Request::Host {
            version: VERSION,
            ranks,
            secret: link.secret.clone(),
        };
        link.send(&hello);
        match link.answer(Instant::now() + ANSWER) {
            Some(Reply::Place { first, size })
                if size <= Rank::MAX && first.checked_add(ranks).is_some_and(|end| end <= size) =>
            {
                (link.first, link.size) = (first, size);
                Ok(link)
            }
            Some(Reply::Refused(why)) => Err(BaseError::Bootstrap(format!(
                "the job at '{address}' does not take this host: {why}"
            ))
            .into()),
            _ => Err(BaseError::Bootstrap(format!(
                "whoever listens at '{address}' is no 'tagwire run --listen' of this version"
            ))
            .into()),
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
        }
    }

    /// Says that a rank has ended.
    pub(crate) fn rank_ended(&mut self, rank: Rank, status: u32) {
        let rank = rank.as_u32();
        self.send(&Request::Ended { rank, status });
    }

    /// Returns what has come since. Never blocks.
    pub(crate) fn hear(&mut self) -> Option<Word> {
        if self.lost {
            return None;
        }
        match self.next() {
            Ok(Some(Reply::End { status })) => Some(Word::End(status)),
            Ok(Some(_)) | Err(()) => {
                self.lost = true;
                Some(Word::Lost)
            }
            Ok(None) => None,
        }
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

    fn answer(&mut self, until: Instant) -> Option<Reply> {
        loop {
            if let Some(reply) = self.next().ok()? {
                return Some(reply);
            }
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) => return None,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return None,
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

/// Connects, as soon as somebody listens.
fn reach(store: &str, address: &str, patience: Duration) -> Result<OwnedFd> {
    let mut tries = Tries::within(patience);
    loop {
        match socket::connect(store) {
            Ok(socket) => return Ok(socket),
            Err(_) if tries.again() => {}
            Err(error) => {
                return Err(Error::system(
                    format!(
                        "reach 'tagwire run --listen {address}' within {} s ({LATE})",
                        patience.as_secs_f64()
                    ),
                    error,
                ));
            }
        }
    }
}
