//! The table entry of an operation under way.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching as matching;
use tagwire_transport::{RecvBuffer, SendBuffer, Ticket};

use super::peer::PeerIndex;
use crate::slab::Handle;
use crate::types::{Failure, SendMode, Status};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Persistent, and not started.
    Inactive,
    /// A receive in the engine, not matched.
    Posted(matching::Handle),
    /// A receive whose eager message is arriving, packet by packet.
    Streaming,
    /// A receive whose rendezvous is to be claimed: the transport was busy.
    ClaimPending(Ticket),
    /// A receive that takes part in a cooperative transfer.
    Claimed,
    /// A receive whose bytes come as fragments.
    Fragments,
    /// A send that waits for its turn at its peer.
    Queued,
    /// A send whose cooperative transfer is open.
    Offered(Ticket),
    /// A send whose envelope is out and whose receiver has not said how it wants the bytes.
    AwaitMatch,
    /// A send whose bytes go out as fragments.
    Pushing,
    /// Done; the status waits to be taken.
    Complete,
}

/// The user's memory.
#[derive(Debug)]
pub(super) enum Buffer {
    Send(SendBuffer),
    Recv(RecvBuffer),
}

/// An operation.
#[derive(Debug)]
pub(super) struct Request {
    pub phase: Phase,
    pub persistent: bool,
    /// Nobody waits for it: freed when complete (a buffered send).
    pub detached: bool,
    /// The transport has an open offer or claim on the buffer.
    pub lent: bool,
    pub mode: SendMode,
    pub context: ContextId,
    /// Where a send goes; where a matched receive comes from.
    pub peer: PeerIndex,
    /// What a receive asked for.
    pub from: SourceSelector,
    pub tag: TagSelector,
    pub buffer: Buffer,
    /// Bytes moved so far.
    pub moved: usize,
    /// How many bytes there are to move.
    pub wanted: usize,
    /// The peer's name for its side.
    pub remote: Handle,
    pub status: Status,
    /// The number of a posted receive, in the order of posting.
    pub order: u64,
    /// The envelope of a rendezvous is out.
    pub announced: bool,
    /// A buffered send's own copy.
    pub owned: Option<Box<[u8]>>,
}

impl Request {
    /// A send to `rank`.
    pub(super) fn send(
        data: SendBuffer,
        peer: PeerIndex,
        rank: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Self {
        let length = data.len();
        Self {
            phase: Phase::Queued,
            persistent: false,
            detached: false,
            lent: false,
            mode,
            context,
            peer,
            from: SourceSelector::exact(rank),
            tag: TagSelector::exact(tag),
            buffer: Buffer::Send(data),
            moved: 0,
            wanted: length,
            remote: Handle::NONE,
            status: Status {
                source: rank,
                tag,
                length,
                cancelled: false,
                failure: None,
            },
            order: 0,
            announced: false,
            owned: None,
        }
    }

    /// A receive.
    #[inline]
    pub(super) fn recv(
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Self {
        Self {
            phase: Phase::Inactive,
            persistent: false,
            detached: false,
            lent: false,
            mode: SendMode::Standard,
            context,
            peer: PeerIndex::NONE,
            from,
            tag,
            buffer: Buffer::Recv(data),
            moved: 0,
            wanted: 0,
            remote: Handle::NONE,
            status: Status::EMPTY,
            order: 0,
            announced: false,
            owned: None,
        }
    }

    /// The bytes to be sent; empty for a receive.
    pub(super) const fn send_buffer(&self) -> &SendBuffer {
        const NOTHING: &SendBuffer = &SendBuffer::EMPTY;
        match &self.buffer {
            Buffer::Send(data) => data,
            Buffer::Recv(_) => NOTHING,
        }
    }

    /// How many bytes there is room for.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        match &self.buffer {
            Buffer::Recv(data) => data.capacity(),
            Buffer::Send(_) => 0,
        }
    }

    pub(super) const fn is_send(&self) -> bool {
        matches!(self.buffer, Buffer::Send(_))
    }

    /// Whether a peer or the engine still has something to do for it.
    pub(super) const fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Inactive | Phase::Complete)
    }

    /// Notes the envelope of the message that a receive takes, and whether it fits.
    #[inline]
    pub(super) fn matched(&mut self, peer: PeerIndex, source: Rank, tag: Tag, length: usize) {
        let capacity = self.capacity();
        self.peer = peer;
        self.wanted = length.min(capacity);
        self.moved = 0;
        self.status = Status {
            source,
            tag,
            length,
            cancelled: false,
            failure: if length > capacity {
                Some(Failure::Truncated)
            } else {
                None
            },
        };
    }
}
