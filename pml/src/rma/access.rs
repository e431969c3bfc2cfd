//! Accesses to the memory of peers, as their initiator drives them.

use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::{
    Capabilities, EndpointId, Post, RecvBuffer, RemoteMemory, SendBuffer, Token,
};
use zerocopy::IntoBytes;

use super::atomic::Atomic;
use super::wire::{AtomicBody, FRONT, GetBody, Key};
use crate::error::Error;
use crate::packet::{ControlHeader, Kind};
use crate::peers::LANE;
use crate::peers::PeerIndex;
use crate::service::{Out, Terms, Wire};
use crate::slab::Handle;
use crate::types::Failure;

/// Most bytes of an access in one packet.
const PIECE: usize = 8 * 1024;

/// Pieces of one access that are under way at a time.
const WINDOW: u64 = 8;

/// The region of a peer.
#[derive(Debug)]
pub(crate) struct Remote {
    pub rank: Rank,
    pub peer: PeerIndex,
    pub endpoint: EndpointId,
    pub key: Key,
    /// What the transport does of it.
    pub capabilities: Capabilities,
    /// Most bytes that it moves at once.
    pub longest: u64,
    /// Most bytes of an access in one packet.
    piece: usize,
}

impl Remote {
    /// The region that `rank` has given `key` of. Of this rank's `own` regions nothing goes by the transport.
    ///
    /// `None` where the transport has neither access nor packets.
    pub(crate) fn new(rank: Rank, terms: &Terms, key: Key, own: bool) -> Option<Self> {
        let (capabilities, limits) = terms.access.as_ref()?;
        let is_by_packets = own || key.memory.is_empty();
        Some(Self {
            rank,
            peer: terms.peer,
            endpoint: terms.endpoint,
            key,
            capabilities: match is_by_packets {
                true => Capabilities::empty(),
                false => *capabilities,
            },
            longest: limits.max_remote_access,
            piece: PIECE.min(limits.max_send.saturating_sub(FRONT)),
        })
    }
}

/// What an access does.
#[derive(Debug)]
pub(crate) enum What {
    Put(SendBuffer),
    Get(RecvBuffer),
    Atomic(Atomic),
    /// Ends when what the transport has put before is visible.
    Flush,
}

impl What {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Put(data) => data.len() as u64,
            Self::Get(room) => room.capacity() as u64,
            Self::Atomic(_) => size_of::<u64>() as u64,
            Self::Flush => 0,
        }
    }
}

/// By what an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By the transport, which has not taken it.
    Transport,
    /// The transport has it.
    WithTransport,
    /// By packets: so many bytes were asked for, and so many are done.
    Packets { asked: u64, done: u64 },
}

/// Why an access did not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Failed(Failure),
    /// The owner has no such region any more.
    Refused,
}

impl Fault {
    pub(super) fn error(self, rank: Rank) -> Error {
        match self {
            Self::Failed(failure) => Error::Failed(failure),
            Self::Refused => Error::NoSuchRegion(rank),
        }
    }
}

/// How an access ended; of an atomic operation with what the word was.
pub(super) type End = Result<u64, Fault>;

/// An access to the memory of a peer.
#[derive(Debug)]
pub(super) struct Access {
    pub target: Arc<Remote>,
    pub offset: u64,
    pub what: What,
    pub way: Way,
    pub end: Option<End>,
    /// Whether its end is taken by who started it, and by no flush.
    pub is_kept: bool,
    /// How the peer is gone, if it is.
    pub lost: Option<Failure>,
}

impl Access {
    pub(super) fn is_with_transport(&self) -> bool {
        self.way == Way::WithTransport
    }

    /// Whether it is a put that the transport has not taken yet.
    pub(super) fn is_posted_later(&self) -> bool {
        self.way == Way::Transport && matches!(self.what, What::Put(_))
    }

    /// Returns how the peer is gone, of which the transport may know first.
    pub(super) fn failure(&self) -> Failure {
        self.lost.unwrap_or(Failure::PeerFailed(self.target.rank))
    }

    /// Has it go by packets from now on. Returns whether it can.
    pub(super) const fn go_by_packets(&mut self) -> bool {
        self.way = Way::Packets { asked: 0, done: 0 };
        !matches!(self.what, What::Flush)
    }

    /// Gives the access to the transport.
    pub(super) fn post(&self, token: Token, wire: &mut Wire<'_>) -> Post {
        let Some(rail) = wire.rail.as_deref_mut() else {
            return Post::Unsupported;
        };
        let Self { target, offset, .. } = self;
        let memory = RemoteMemory {
            address: target.key.address.wrapping_add(*offset),
            key: &target.key.memory,
        };
        match &self.what {
            What::Put(data) => rail.put(LANE, target.endpoint, data, memory, None, token),
            What::Get(room) => rail.get(LANE, target.endpoint, room, memory, token),
            What::Atomic(Atomic::Sum(operand)) => {
                rail.fetch_add(LANE, target.endpoint, memory, *operand, token)
            }
            What::Atomic(_) => Post::Unsupported,
            What::Flush => rail.flush(LANE, target.endpoint, token),
        }
    }

    /// Asks the owner for the next pieces. Returns whether there were any.
    pub(super) fn ask(&mut self, handle: Handle, out: &mut dyn Out) -> bool {
        let Self {
            target,
            offset,
            what,
            way,
            ..
        } = self;
        let Way::Packets { asked, done } = way else {
            return false;
        };
        let (len, piece) = (what.len(), target.piece as u64);
        let before = *asked;
        let mut is_first = len == 0 && before == 0;
        while is_first || *asked < len && *asked - *done < WINDOW * piece {
            is_first = false;
            let count = piece.min(len - *asked);
            let header = |kind| ControlHeader {
                kind,
                handle: target.key.region,
                argument: *offset + *asked,
            };
            let access = handle.to_wire().into();
            match what {
                What::Put(data) => {
                    let mut bytes = vec![0; FRONT + count as usize];
                    bytes[..FRONT].copy_from_slice(&handle.to_wire().to_le_bytes());
                    data.copy_out(*asked as usize, &mut bytes[FRONT..]);
                    out.packet(target.peer, header(Kind::RMA_PUT), &bytes);
                }
                What::Get(_) => {
                    let length = count.into();
                    let body = GetBody { access, length };
                    out.packet(target.peer, header(Kind::RMA_GET), body.as_bytes());
                }
                What::Atomic(atomic) => {
                    let body = AtomicBody::new(handle, *atomic);
                    out.packet(target.peer, header(Kind::RMA_ATOMIC), body.as_bytes());
                }
                What::Flush => {}
            }
            *asked += count;
        }
        *asked > before
    }
}

/// What is under way to a peer.
#[derive(Debug, Default)]
pub(super) struct Towards {
    /// Accesses that have not ended.
    pub under_way: usize,
    /// The transport has taken puts since it was last asked to flush.
    pub unflushed: bool,
    /// Why the first of those did not work that ended since the last flush.
    pub fault: Option<Fault>,
}

impl Towards {
    /// An access has ended.
    pub(super) fn note(&mut self, end: End) {
        self.under_way -= 1;
        if let Err(fault) = end {
            self.fault.get_or_insert(fault);
        }
    }
}
