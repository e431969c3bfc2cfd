//! The table entry of an operation under way: thin, since the transport keeps the rest.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{ClaimId, Payload, RecvBuffer, SendBuffer};

use super::bounce::Bounce;
use super::peer::PeerIndex;
use crate::slab::{Entry, Handle};
use crate::table::{self, Table};
use crate::types::{Failure, SendMode, Status};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Persistent, and not started.
    Inactive,
    /// Waits for room in the transport, in its place in the order.
    Queued,
    /// The transport has it.
    Open,
    /// Done; the status waits to be taken.
    Complete,
}

/// The user's memory, where the transport alone does not do: persistent requests, those that
/// wait for room, and shapes that it does not take.
#[derive(Debug)]
pub(super) enum Buffer {
    None,
    Send(SendBuffer),
    Recv(RecvBuffer),
}

/// An operation.
#[derive(Debug)]
pub(super) struct Request {
    pub phase: Phase,
    pub is_send: bool,
    pub persistent: bool,
    /// Nobody waits for it: freed when complete (a buffered send).
    pub detached: bool,
    pub mode: SendMode,
    /// What it ends with when the transport takes it back.
    pub doomed: Option<Failure>,
    pub context: ContextId,
    /// Where a send goes.
    pub peer: PeerIndex,
    /// What a receive asked for.
    pub from: SourceSelector,
    pub tag: TagSelector,
    /// How many bytes a receive has room for.
    pub capacity: usize,
    pub status: Status,
    pub buffer: Buffer,
    /// A copy of the bytes to be sent, or room for those to come.
    pub bounce: Option<Bounce>,
    /// The claimed message that a receive is for. Its `buffer` is there too.
    pub claim: Option<ClaimId>,
    /// The number of a receive, in the order of posting.
    pub order: u64,
}

impl Request {
    /// The bytes that a queued send has the transport send.
    pub(super) const fn send_buffer(&self) -> &SendBuffer {
        const NOTHING: &SendBuffer = &SendBuffer::EMPTY;
        match &self.buffer {
            Buffer::Send(data) => data,
            _ => NOTHING,
        }
    }

    /// Whether the transport or a queue still has something to do for it.
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Queued | Phase::Open)
    }

    /// Becomes a send to `rank` that waits for nothing yet.
    pub(super) fn set_send(
        &mut self,
        peer: PeerIndex,
        rank: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
        length: usize,
    ) {
        self.phase = Phase::Open;
        self.is_send = true;
        self.persistent = false;
        self.detached = false;
        self.mode = mode;
        self.doomed = None;
        self.context = context;
        self.peer = peer;
        self.status = Status {
            source: rank,
            tag,
            length,
            cancelled: false,
            failure: None,
        };
    }

    /// Becomes a receive.
    #[inline]
    pub(super) fn set_recv(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
        capacity: usize,
    ) {
        self.phase = Phase::Open;
        self.is_send = false;
        self.persistent = false;
        self.detached = false;
        self.doomed = None;
        self.context = context;
        self.from = from;
        self.tag = tag;
        self.capacity = capacity;
        self.status = Status::EMPTY;
    }

    /// Moves what has come to `room` into the user's buffer.
    pub(super) fn unpack(&mut self, length: usize, room: &[u8]) {
        if let Buffer::Recv(data) = &mut self.buffer {
            data.write(0, Payload::from_slice(&room[..length.min(room.len())]));
        }
    }
}

impl Entry for Request {
    #[inline]
    fn vacate(&mut self) {
        self.phase = Phase::Inactive;
        if !matches!(self.buffer, Buffer::None) || self.bounce.is_some() {
            self.buffer = Buffer::None;
            self.bounce = None;
            self.claim = None;
        }
    }
}

impl table::Request for Request {
    fn blank() -> Self {
        Self {
            phase: Phase::Inactive,
            is_send: false,
            persistent: false,
            detached: false,
            mode: SendMode::Standard,
            doomed: None,
            context: ContextId::WORLD,
            peer: PeerIndex::NONE,
            from: SourceSelector::ANY,
            tag: TagSelector::ANY,
            capacity: 0,
            status: Status::EMPTY,
            buffer: Buffer::None,
            bounce: None,
            claim: None,
            order: 0,
        }
    }

    #[inline]
    fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Queued | Phase::Open)
    }

    #[inline]
    fn is_inactive(&self) -> bool {
        self.phase == Phase::Inactive
    }

    #[inline]
    fn is_persistent(&self) -> bool {
        self.persistent
    }

    #[inline]
    fn status(&self) -> Status {
        self.status
    }

    fn deactivate(&mut self) {
        self.phase = Phase::Inactive;
    }
}

impl Table<Request> {
    /// The status of the request, if it is complete and not persistent; frees its slot then.
    #[inline]
    pub(super) fn take_complete(&mut self, handle: Handle) -> Option<Status> {
        let request = self.get(handle)?;
        if request.phase != Phase::Complete || request.persistent {
            return None;
        }
        let status = request.status;
        self.remove(handle);
        Some(status)
    }
}
