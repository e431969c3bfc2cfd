//! What all operations have in common, whatever their protocol.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{Payload, RecvBuffer, SendBuffer};

use super::peer::PeerIndex;
use crate::types::{Failure, SendMode, Status};

/// The user's memory.
#[derive(Debug)]
pub(super) enum Buffer {
    Send(SendBuffer),
    Recv(RecvBuffer),
}

impl Buffer {
    /// Whether the buffer is one region, and so owns nothing.
    #[inline]
    pub(super) const fn is_contiguous(&self) -> bool {
        match self {
            Self::Send(data) => data.region().is_some(),
            Self::Recv(data) => data.region().is_some(),
        }
    }
}

/// An operation, without the state of its protocol.
#[derive(Debug)]
pub(super) struct Common {
    pub persistent: bool,
    /// Nobody waits for it: freed when complete (a buffered send).
    pub detached: bool,
    pub mode: SendMode,
    pub context: ContextId,
    /// Where a send goes; where a matched receive comes from.
    pub peer: PeerIndex,
    /// What a receive asked for.
    pub from: SourceSelector,
    pub tag: TagSelector,
    pub buffer: Buffer,
    /// How many bytes there are to move.
    pub wanted: usize,
    pub status: Status,
    /// A buffered send's own copy.
    pub owned: Option<Box<[u8]>>,
    /// The number of the receive that its peer exposes and that a send takes.
    pub target: Option<u32>,
}

impl Common {
    /// Returns a send to `rank`.
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
            persistent: false,
            detached: false,
            mode,
            context,
            peer,
            from: SourceSelector::exact(rank),
            tag: TagSelector::exact(tag),
            buffer: Buffer::Send(data),
            wanted: length,
            status: Status {
                source: rank,
                tag,
                length,
                cancelled: false,
                failure: None,
            },
            owned: None,
            target: None,
        }
    }

    /// Returns an operation that does nothing.
    pub(super) fn blank() -> Self {
        Self {
            from: SourceSelector::ANY,
            tag: TagSelector::ANY,
            ..Self::send(
                SendBuffer::EMPTY,
                PeerIndex::NONE,
                Rank::new(0),
                Status::EMPTY.tag,
                ContextId::WORLD,
                SendMode::Standard,
            )
        }
    }

    /// Returns the bytes to be sent; none for a receive.
    pub(super) const fn send_buffer(&self) -> &SendBuffer {
        const NOTHING: &SendBuffer = &SendBuffer::EMPTY;
        match &self.buffer {
            Buffer::Send(data) => data,
            Buffer::Recv(_) => NOTHING,
        }
    }

    /// Returns where the bytes go; `None` for a send.
    pub(super) const fn recv_buffer(&self) -> Option<&RecvBuffer> {
        match &self.buffer {
            Buffer::Send(_) => None,
            Buffer::Recv(data) => Some(data),
        }
    }

    pub(super) const fn is_send(&self) -> bool {
        matches!(self.buffer, Buffer::Send(_))
    }

    /// Returns how many bytes there is room for.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        match &self.buffer {
            Buffer::Recv(data) => data.capacity(),
            Buffer::Send(_) => 0,
        }
    }

    /// Writes bytes of the message that a receive takes, of which the first is at `offset`; what does not fit is dropped.
    pub(super) fn write(&mut self, offset: usize, payload: Payload<'_>) {
        if let Buffer::Recv(data) = &mut self.buffer {
            data.write(offset, payload);
        }
    }

    /// Notes the envelope of the message that a receive takes, and whether it fits.
    #[inline(always)]
    pub(super) fn matched(&mut self, peer: PeerIndex, source: Rank, tag: Tag, length: usize) {
        let capacity = self.capacity();
        self.peer = peer;
        self.wanted = length.min(capacity);
        self.status = Status {
            source,
            tag,
            length,
            cancelled: false,
            failure: if length > capacity {
                Some(Failure::truncated(capacity))
            } else {
                None
            },
        };
    }

    /// Takes a whole message, which is here.
    #[inline(always)]
    pub(super) fn take_whole(
        &mut self,
        peer: PeerIndex,
        source: Rank,
        tag: Tag,
        payload: Payload<'_>,
    ) {
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
        self.write(0, payload);
    }
}
