//! Peers as they are sent to, and what ends with them.

use tagwire_base::{Rank, Time};
use tagwire_transport::{EndpointId, Outcome, Token};
use tagwire_ucx_sys::{UCS_OK, ucs_status_t};

use crate::operations::Purpose;
use crate::shared::{Mark, Pinned};
use crate::worker::Endpoint;

/// A peer, as it is sent to.
pub(crate) struct Link {
    pub(crate) rank: Rank,
    pub(crate) endpoint: Option<Endpoint>,
    /// Our hello is on its way, so that there is a connection and messages need no progress of
    /// ours to leave.
    pub(crate) established: bool,
    /// Its end was told, or will be in this call.
    pub(crate) closed: bool,
    /// It has read our goodbye.
    pub(crate) heard: bool,
    /// Its endpoint, while the reply to its goodbye is under way.
    pub(crate) parting: Option<Endpoint>,
    /// When its endpoint was closed, while something is under way on it all the same.
    pub(crate) severed: Option<Time>,
    /// Messages of ours to it that UCX still reads.
    pub(crate) under_way: usize,
    /// The bytes of these.
    pub(crate) bytes_under_way: usize,
    /// Gets from it that are under way.
    pub(crate) gets: usize,
    /// Writes to it that were begun.
    pub(crate) written: u64,
    /// How many of these it was asked to tell of.
    pub(crate) asked: u64,
    /// How many it has dealt with, as far as it has told.
    pub(crate) flushed: u64,
    /// Names the endpoint when it breaks.
    pub(crate) mark: Pinned<Mark>,
}

impl Link {
    /// A peer to which there is no way yet.
    pub(crate) const fn new(rank: Rank, closed: bool, mark: Pinned<Mark>) -> Self {
        Self {
            rank,
            endpoint: None,
            established: false,
            heard: false,
            parting: None,
            severed: None,
            closed,
            under_way: 0,
            bytes_under_way: 0,
            gets: 0,
            written: 0,
            asked: 0,
            flushed: 0,
            mark,
        }
    }
}

/// An operation of the layer above that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) purpose: Purpose,
    pub(crate) link: Option<u32>,
    pub(crate) status: ucs_status_t,
    pub(crate) tag: u64,
    pub(crate) length: u64,
}

impl Ended {
    /// How a send or a get ended, for whoever waits for it.
    pub(crate) fn outcome(&self, links: &[Link]) -> Option<(Token, Outcome)> {
        let gone = || self.link.is_none_or(|link| links[link as usize].closed);
        match self.purpose {
            Purpose::Lent(token, len) | Purpose::Write(token, len) if self.status == UCS_OK => {
                Some((token, Outcome::Done(len)))
            }
            Purpose::Write(token, _) if !gone() => Some((token, Outcome::Impossible)),
            Purpose::Lent(token, _) | Purpose::Write(token, _) => {
                Some((token, Outcome::PeerFailed))
            }
            Purpose::Put(token, len) => Some(match self.status {
                UCS_OK => (token, Outcome::Done(len)),
                _ if gone() => (token, Outcome::PeerFailed),
                _ => (token, Outcome::Impossible),
            }),
            Purpose::Get(token, len) => {
                let outcome = if self.status == UCS_OK && self.length == len {
                    Outcome::Done(len)
                } else if gone() {
                    Outcome::PeerFailed
                } else {
                    Outcome::Impossible
                };
                Some((token, outcome))
            }
            _ => None,
        }
    }
}

/// A flush that waits.
pub(crate) struct Flush {
    pub(crate) token: Token,
    pub(crate) to: EndpointId,
    /// The puts that it waits for, by name.
    pub(crate) puts: Vec<u64>,
    /// How many writes were begun before it.
    pub(crate) writes: u64,
}

impl Flush {
    /// How it ended, once there is nothing to wait for any more.
    pub(crate) fn outcome(&self, links: &[Link]) -> Option<Outcome> {
        let link = &links[self.to.index()];
        match link.flushed >= self.writes {
            _ if !self.puts.is_empty() => None,
            true => Some(Outcome::Done(0)),
            false => link.closed.then_some(Outcome::PeerFailed),
        }
    }
}
