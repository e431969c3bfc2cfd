//! The table entry of an operation under way.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching as matching;
use tagwire_transport::{Payload, RecvBuffer, SendBuffer, Ticket};

use super::peer::PeerIndex;
use super::reading::Reach;
use crate::slab::Handle;
use crate::table::{Entry, Table};
use crate::types::{Failure, SendMode, Status};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Persistent, and not started.
    Inactive,
    /// A receive in the engine, at `queued`, not matched.
    Posted,
    /// A receive whose eager message is arriving, packet by packet.
    Streaming,
    /// A receive whose rendezvous is to be claimed: the transport was busy.
    ClaimPending,
    /// A receive that takes part in a cooperative transfer.
    Claimed,
    /// A receive that reads the bytes out of its sender's memory.
    Reading,
    /// A receive whose bytes come as fragments.
    Fragments,
    /// A send that waits for its turn at its peer.
    Queued,
    /// A send whose message is out, and its buffer with the transport.
    Leaving,
    /// A send whose cooperative transfer is open.
    Offered,
    /// A send whose envelope is out and whose receiver has not said how it wants the bytes.
    AwaitMatch,
    /// A send whose bytes go out as fragments.
    Pushing,
    /// A send that is over, but for its bytes, which its peer can still read.
    Concluding,
    /// Done; the status waits to be taken.
    Complete,
}

/// The user's memory.
#[derive(Debug)]
pub(super) enum Buffer {
    Send(SendBuffer),
    Recv(RecvBuffer),
}

impl Buffer {
    /// Whether the buffer is one region, and so owns nothing.
    #[inline]
    const fn is_contiguous(&self) -> bool {
        match self {
            Self::Send(data) => data.region().is_some(),
            Self::Recv(data) => data.region().is_some(),
        }
    }
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
    /// A posted receive's place in the engine.
    pub queued: matching::Handle,
    /// The cooperative transfer that a send offers or a receive is to claim.
    pub ticket: Ticket,
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
    /// What a get has to do with it.
    pub reach: Option<Box<Reach>>,
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
            queued: NOWHERE,
            ticket: Ticket([0; 2]),
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
            reach: None,
        }
    }

    /// A receive.
    pub(super) fn recv(
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Self {
        Self {
            from,
            tag,
            context,
            buffer: Buffer::Recv(data),
            ..Self::blank()
        }
    }

    /// Makes the content of a vacant slot a receive: writes only what a receive reads.
    #[inline(always)]
    fn become_recv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) {
        self.phase = Phase::Inactive;
        self.persistent = false;
        self.detached = false;
        self.lent = false;
        self.context = context;
        self.from = from;
        self.tag = tag;
        // A vacant slot's buffer owns nothing (see `vacate`): there is nothing to drop.
        std::mem::forget(std::mem::replace(&mut self.buffer, Buffer::Recv(data)));
        self.status = Status::EMPTY;
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

    /// Whether this send waits for its turn and is what such a receive takes.
    pub(super) fn is_held_for(&self, tag: TagSelector, context: ContextId) -> bool {
        self.phase == Phase::Queued
            && self.moved == 0
            && self.context == context
            && tag.accepts(self.status.tag)
    }

    pub(super) const fn is_send(&self) -> bool {
        matches!(self.buffer, Buffer::Send(_))
    }

    /// Whether a peer or the engine still has something to do for it.
    pub(super) const fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Inactive | Phase::Complete)
    }

    /// Notes the envelope of the message that a receive takes, and whether it fits.
    #[inline(always)]
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

    /// Takes a whole message, which is here: the receive is complete.
    #[inline(always)]
    pub(super) fn take_whole(
        &mut self,
        peer: PeerIndex,
        source: Rank,
        tag: Tag,
        payload: Payload<'_>,
    ) {
        self.phase = Phase::Complete;
        if let Buffer::Recv(data) = &mut self.buffer
            && data.write_whole(payload)
        {
            self.status = Status {
                source,
                tag,
                length: payload.len(),
                cancelled: false,
                failure: None,
            };
            return;
        }
        self.take_pieces(peer, source, tag, payload);
    }

    /// The same where it is cut off, or goes to several places.
    #[cold]
    fn take_pieces(&mut self, peer: PeerIndex, source: Rank, tag: Tag, payload: Payload<'_>) {
        self.matched(peer, source, tag, payload.len());
        if let Buffer::Recv(data) = &mut self.buffer {
            data.write(0, payload);
        }
    }
}

/// A place in no engine.
const NOWHERE: matching::Handle = matching::Handle::from_parts(u32::MAX, 0);

impl Entry for Request {
    fn blank() -> Self {
        let nobody = Rank::new(0);
        let data = SendBuffer::EMPTY;
        let world = ContextId::WORLD;
        let tag = Status::EMPTY.tag;
        Self {
            phase: Phase::Inactive,
            from: SourceSelector::ANY,
            tag: TagSelector::ANY,
            ..Self::send(
                data,
                PeerIndex::NONE,
                nobody,
                tag,
                world,
                SendMode::Standard,
            )
        }
    }

    #[inline(always)]
    fn vacate(&mut self) {
        self.phase = Phase::Inactive;
        if !self.buffer.is_contiguous() || self.owned.is_some() || self.reach.is_some() {
            self.buffer = Buffer::Send(SendBuffer::EMPTY);
            self.owned = None;
            self.reach = None;
        }
    }
}

/// The requests of a rank. A receive writes just the fields that it needs: nothing of the size of
/// a request is moved on the way of a message.
#[derive(Debug)]
pub(super) struct Requests {
    table: Table<Request>,
    /// How many requests walks over all of them have looked at.
    #[cfg(test)]
    pub walked: std::cell::Cell<usize>,
}

impl Requests {
    pub(super) const fn new() -> Self {
        Self {
            table: Table::new(),
            #[cfg(test)]
            walked: std::cell::Cell::new(0),
        }
    }

    /// Takes `request` in.
    pub(super) fn insert(&mut self, request: Request) -> Handle {
        let (handle, slot) = self.table.occupy();
        *slot = request;
        handle
    }

    /// Takes a receive in.
    pub(super) fn insert_recv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Handle {
        let (handle, request) = self.table.occupy();
        request.become_recv(data, from, tag, context);
        handle
    }

    /// The same for a buffer of one region, where a slot is vacant. The receive is one that `data` is given to: the
    /// caller forgets it.
    #[inline(always)]
    #[allow(unsafe_code, reason = "nothing of the size of a buffer is moved here")]
    pub(super) fn insert_recv_now(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<(Handle, &mut Request)> {
        let region = data.region()?;
        let (handle, request) = self.table.occupy_vacant()?;
        // SAFETY: the buffer is lent until this receive is complete. Its slot, vacant after that, keeps the
        // address and does not use it.
        let data = unsafe { RecvBuffer::of(region) };
        request.become_recv(data, from, tag, context);
        Some((handle, request))
    }

    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<&Request> {
        self.table.get(handle)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut Request> {
        self.table.get_mut(handle)
    }

    /// The request in slot `number`, as the engine names it.
    #[inline]
    pub(super) fn at_mut(&mut self, number: u32) -> Option<(Handle, &mut Request)> {
        self.table.at_mut(number)
    }

    /// Whether the request is there, complete and not persistent.
    #[inline(always)]
    pub(super) fn is_takeable(&self, handle: Handle) -> bool {
        self.get(handle)
            .is_some_and(|request| request.phase == Phase::Complete && !request.persistent)
    }

    /// The status of a request that [is there to be taken](Requests::is_takeable); frees its slot.
    #[inline(always)]
    pub(super) fn take(&mut self, handle: Handle) -> Status {
        let status = self
            .get(handle)
            .map_or(Status::EMPTY, |request| request.status);
        self.table.remove(handle);
        status
    }

    /// Frees the request's slot; its handle is stale from now on.
    #[inline(never)]
    pub(super) fn remove(&mut self, handle: Handle) {
        self.table.remove(handle);
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn is_empty(&self) -> bool {
        self.table.iter().next().is_none()
    }

    /// All requests in use, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Handle, &Request)> {
        let used = self.table.iter();
        #[cfg(test)]
        let used = used.inspect(|_| self.walked.set(self.walked.get() + 1));
        used
    }
}
