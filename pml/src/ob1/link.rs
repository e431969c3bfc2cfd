//! The transport as a protocol sees it: towards one peer, for one operation.

use std::ops::Range;

use tagwire_transport::{
    Body, ByteTransport, Class, Offer, Post, RecvBuffer, RecvPart, RegistrationHandle,
    RemoteMemory, SendBuffer, Ticket, Token,
};

use super::common::Common;
use super::header::{ControlHeader, EnvelopeHeader, Kind};
use super::path::Terms;
use super::peer::{Health, Peer};
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::Failure;

/// The transport towards the peer of an operation.
pub(super) struct Link<'a> {
    rail: &'a mut dyn ByteTransport,
    peer: &'a mut Peer,
    handle: Handle,
    /// The longest piece of one get or put.
    piece: usize,
    /// How much was given to the transport.
    posted: usize,
}

impl<'a> Link<'a> {
    pub(super) fn new(
        rail: &'a mut dyn ByteTransport,
        peer: &'a mut Peer,
        handle: Handle,
        piece: usize,
    ) -> Self {
        Self {
            rail,
            peer,
            handle,
            piece,
            posted: 0,
        }
    }

    /// Returns how many things the transport took.
    pub(super) const fn posted(&self) -> usize {
        self.posted
    }

    /// Returns the operation's own name, for the peer's replies.
    pub(super) const fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the terms with the peer.
    pub(super) const fn terms(&self) -> &Terms {
        &self.peer.path.terms
    }

    /// Returns the length of the longest piece of one get or put; 0 where the transport has neither.
    pub(super) const fn piece(&self) -> usize {
        self.piece
    }

    /// Whether the peer is there.
    pub(super) fn is_alive(&self) -> bool {
        self.peer.health == Health::Alive
    }

    /// Returns what operations with the peer end with, where it is gone.
    pub(super) const fn failure(&self) -> Option<Failure> {
        self.peer.failure()
    }

    const fn token(&self) -> Token {
        Token(self.handle.to_wire())
    }

    const fn count(&mut self, post: Post) -> Post {
        if matches!(post, Post::Posted) {
            self.posted += 1;
        }
        post
    }

    const fn header(&self, kind: Kind, common: &Common) -> EnvelopeHeader {
        EnvelopeHeader {
            kind,
            context: common.context,
            tag: common.status.tag,
            sequence: self.peer.next_out,
            length: common.wanted as u32,
        }
    }

    /// Sends an envelope with `body`, which costs its receiver `bytes` of eager payload.
    pub(super) fn send_envelope(
        &mut self,
        kind: Kind,
        common: &Common,
        body: &[u8],
        bytes: usize,
    ) -> Post {
        let header = self.header(kind, common).encode();
        let post = self
            .rail
            .send(LANE, self.peer.endpoint, Class::Data, header, body);
        if post == Post::Posted {
            self.peer.spend_for(common.target, header, bytes);
        }
        self.count(post)
    }

    /// Sends an envelope that its receiver has asked for: it costs no credit, and goes where data has no room.
    pub(super) fn send_asked_for(&mut self, kind: Kind, common: &Common, body: &[u8]) -> Post {
        let header = self.header(kind, common).encode();
        let post = self
            .rail
            .send(LANE, self.peer.endpoint, Class::Control, header, body);
        if post == Post::Posted {
            self.peer.pass(0);
        }
        self.count(post)
    }

    /// Sends a packet of an eager message: with its first the whole message is charged.
    pub(super) fn send_eager(&mut self, kind: Kind, common: &Common, range: Range<usize>) -> Post {
        let header = self.header(kind, common).encode();
        let first = range.start == 0;
        let body = Body::of(common.send_buffer(), range);
        let post = self.rail.send_from(LANE, self.peer.endpoint, header, &body);
        if post == Post::Posted {
            if first {
                self.peer.spend_for(common.target, header, common.wanted);
            } else {
                self.peer.pass(0);
            }
        }
        self.count(post)
    }

    /// Sends an eager message in one packet, behind a few bytes of the protocol's own.
    pub(super) fn send_behind(&mut self, kind: Kind, common: &Common, prefix: &[u8]) -> Post {
        let header = self.header(kind, common).encode();
        let body = Body::with_prefix(prefix, common.send_buffer());
        let post = self.rail.send_from(LANE, self.peer.endpoint, header, &body);
        if post == Post::Posted {
            self.peer.spend_for(common.target, header, common.wanted);
        }
        self.count(post)
    }

    /// Sends an eager message in one packet, from its buffer, which is the transport's until that completes.
    pub(super) fn send_zero_copy(&mut self, kind: Kind, common: &Common) -> Post {
        let header = self.header(kind, common).encode();
        let (data, token) = (common.send_buffer(), self.token());
        let post = self
            .rail
            .send_zero_copy(LANE, self.peer.endpoint, header, data, token);
        if post == Post::Posted {
            self.peer.spend_for(common.target, header, common.wanted);
        }
        self.count(post)
    }

    /// Sends a control packet with bytes of a buffer.
    pub(super) fn send_fragment(
        &mut self,
        header: ControlHeader,
        data: &SendBuffer,
        range: Range<usize>,
    ) -> Post {
        let (header, body) = (header.encode(), Body::of(data, range));
        let post = self.rail.send_from(LANE, self.peer.endpoint, header, &body);
        self.count(post)
    }

    /// As [`CooperativeTransfers::offer`].
    pub(super) fn offer(&mut self, data: &SendBuffer) -> Offer {
        let token = self.token();
        self.rail.offer(LANE, self.peer.endpoint, data, token)
    }

    /// As [`CooperativeTransfers::claim`].
    pub(super) fn claim(&mut self, ticket: Ticket, data: &RecvBuffer) -> Post {
        let token = self.token();
        let post = self
            .rail
            .claim(LANE, self.peer.endpoint, ticket, data, token);
        self.count(post)
    }

    /// As [`CooperativeTransfers::fill`].
    pub(super) fn fill(&mut self, target: Ticket, data: &SendBuffer) -> Post {
        let token = self.token();
        let post = self
            .rail
            .fill(LANE, self.peer.endpoint, target, data, token);
        self.count(post)
    }

    /// The envelope that goes next has an offer: a receive that the peer exposes may take it.
    pub(super) fn remember_offer(&mut self) {
        let (sequence, send) = (self.peer.next_out.as_u32(), self.handle);
        self.peer.exposures.remember_offer(sequence, send);
    }

    /// As [`CooperativeTransfers::withdraw`].
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        self.rail.withdraw(self.peer.endpoint, ticket);
        self.posted += 1;
    }

    /// As [`RemoteAccess::expose`]; `None` where that does not work.
    pub(super) fn expose(&mut self, data: &SendBuffer) -> Option<RegistrationHandle> {
        self.rail.expose(data).ok()
    }

    /// As [`RemoteAccess::deregister`].
    pub(super) fn deregister(&mut self, registration: RegistrationHandle) {
        self.rail.deregister(registration);
    }

    /// As [`RemoteAccess::get`].
    pub(super) fn get(&mut self, data: &RecvPart<'_>, source: RemoteMemory<'_>) -> Post {
        let token = self.token();
        let post = self.rail.get(LANE, self.peer.endpoint, data, source, token);
        self.count(post)
    }

    /// As [`RemoteAccess::register`]; `None` where that does not work.
    pub(super) fn register(&mut self, data: &RecvBuffer) -> Option<RegistrationHandle> {
        self.rail.register(data).ok()
    }

    /// As [`RemoteAccess::put`] of `range` of `data`, without notice.
    #[allow(unsafe_code, reason = "a part of a buffer is lent that is lent itself")]
    pub(super) fn put(
        &mut self,
        data: &SendBuffer,
        range: Range<usize>,
        target: RemoteMemory<'_>,
    ) -> Post {
        let Some(part) = data.region().and_then(|region| region.slice(range)) else {
            return Post::Unsupported;
        };
        // SAFETY: inside of the operation's buffer, which is lent until the operation is complete: that is after its
        // tokens have completed, of which this put has one.
        let part = unsafe { SendBuffer::of(part) };
        let token = self.token();
        let post = self
            .rail
            .put(LANE, self.peer.endpoint, &part, target, None, token);
        self.count(post)
    }

    /// As [`RemoteAccess::flush`].
    pub(super) fn flush(&mut self) -> Post {
        let token = self.token();
        let post = self.rail.flush(LANE, self.peer.endpoint, token);
        self.count(post)
    }

    /// Returns the most bytes of one control packet.
    pub(super) fn longest(&self) -> usize {
        self.rail.limits().max_send
    }
}
