//! The sending half: short messages at once, all others into their peer's queue.

use tagwire_base::{ContextId, Rank, Sequence, Tag};
use tagwire_transport::{AmHeader, Body, Class, EndpointId, Pack, Post, SendBuffer};

use super::Ob1;
use super::common::Buffer;
use super::core::Core;
use super::header::{EnvelopeHeader, Kind};
use super::peer::{Peer, PeerIndex};
use super::protocols::State;
use super::rail::Rail;
use super::request::Request;
use crate::contacts;
use crate::error::{Error, Result};
use crate::lend::lend;
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::{RequestId, SendMode};

/// The data of a message that goes in one packet.
// A trait and not a closure, which the compiler does not always inline.
trait Data {
    fn length(&self) -> usize;

    fn post(self, rail: &mut Rail, to: EndpointId, header: AmHeader) -> Post;
}

impl Data for &[u8] {
    #[inline(always)]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn post(self, rail: &mut Rail, to: EndpointId, header: AmHeader) -> Post {
        rail.send_in_line(to, Class::Data, header, self)
    }
}

impl Data for &dyn Pack {
    fn length(&self) -> usize {
        self.len()
    }

    fn post(self, rail: &mut Rail, to: EndpointId, header: AmHeader) -> Post {
        rail.send_from(LANE, to, header, &Body::packed(self))
    }
}

/// Sends a message in one packet, where its length, the credit and the transport allow that. Returns whether it went.
#[inline(always)]
fn post(rail: &mut Rail, peer: &mut Peer, data: impl Data, tag: Tag, context: ContextId) -> bool {
    let length = data.length();
    if length > peer.path.terms.at_once || !peer.credit.covers(length) {
        return false;
    }
    let header = EnvelopeHeader {
        kind: Kind::MATCH,
        context,
        tag,
        sequence: peer.next_out,
        length: length as u32,
    };
    let packet = header.encode();
    if data.post(rail, peer.endpoint, packet) != Post::Posted {
        return false;
    }
    peer.spend(packet.0[0], length);
    true
}

impl Ob1 {
    /// Sends a short message in one packet, if nothing stands in the way: no request, no queue.
    /// Returns whether it is out; nothing has happened where it is not.
    #[inline(always)]
    pub(crate) fn send_now(
        &mut self,
        data: &SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> bool {
        if mode == SendMode::Synchronous {
            return false;
        }
        // Not by a closure, which stays a function of its own where two calls are in line.
        let Some(bytes) = data.whole() else {
            return false;
        };
        self.send_data_now(bytes, to, tag, context)
    }

    /// As [`send_now`](Self::send_now), of what `data` packs: where it goes, it is packed there.
    pub(crate) fn send_packed_now(
        &mut self,
        data: &dyn Pack,
        to: Rank,
        tag: Tag,
        context: ContextId,
    ) -> bool {
        self.send_data_now(data, to, tag, context)
    }

    /// Sends a message in one packet, if nothing that is known here stands in the way. Returns whether it went.
    #[inline(always)]
    fn send_data_now(&mut self, data: impl Data, to: Rank, tag: Tag, context: ContextId) -> bool {
        if self.core.lane.closing {
            return false;
        }
        let Some(peer) = self.core.lane.peers.known(to) else {
            return false;
        };
        peer.clear && post(&mut self.driver.rail, peer, data, tag, context)
    }

    /// Sends at once where nothing stands in the way; else queues.
    pub(super) fn start_send(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        let index = match self.core.lane.peers.find(to) {
            Some(index) => index,
            None => contacts::contact(&mut self.driver.contacts(&mut self.core), to)?,
        };
        if self.send_now(&data, to, tag, context, mode)
            || self.send_past_targets(&data, index, tag, context, mode)
            || self.core.coalescing.enabled && self.send_coalesced(&data, index, tag, context, mode)
        {
            return Ok(RequestId::COMPLETE);
        }
        self.queue_send(data, index, to, tag, context, mode)
    }

    /// Sends at once a message that takes none of its peer's targets, where these alone keep it from that.
    #[inline]
    fn send_past_targets(
        &mut self,
        data: &SendBuffer,
        index: PeerIndex,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> bool {
        let Some(peer) = self.core.lane.peers.get_mut(index) else {
            return false;
        };
        if !peer.exposures.are_used {
            return false;
        }
        if data.len() > peer.path.terms.eager {
            // What its peer waits for may be here.
            let events = self.driver.rail.take_messages(&mut self.core);
            self.core.lane.ended += events;
            return false;
        }
        let is_kept_by_targets =
            peer.exposures.has_targets() && peer.is_free() && peer.path.terms.coalesce == 0;
        let takes_none = peer.exposures.target(tag, context).is_none();
        let bytes = data.bytes(0..data.len());
        mode != SendMode::Synchronous
            && is_kept_by_targets
            && takes_none
            && bytes.is_some_and(|bytes| post(&mut self.driver.rail, peer, bytes, tag, context))
    }

    #[cold]
    fn queue_send(
        &mut self,
        data: SendBuffer,
        index: PeerIndex,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        contacts::ensure_connected(&mut self.driver.contacts(&mut self.core), index)?;
        // A program that only ever posts sends would not hear of new credit: this call asks.
        // A few times, since the peer's first contact comes before its first packet.
        for _ in 0..4 {
            let peer = self.core.lane.peers.get(index);
            if !peer.is_some_and(|peer| peer.credit.is_spent()) {
                break;
            }
            let events = self.driver.rail.progress(LANE, &mut self.core);
            if events == 0 {
                break;
            }
            self.core.lane.ended += events;
            self.driver.run_pending(&mut self.core);
        }
        let mut request = Request::send(data, index, to, tag, context, mode);
        if mode == SendMode::Buffered {
            self.keep_copy(&mut request)?;
        }
        let handle = self.core.requests.insert(request);
        self.enqueue(handle);
        if mode == SendMode::Buffered {
            // Complete for its caller; if it is not already out, nobody waits for it.
            match self.core.requests.get_mut(handle) {
                Some(request) if !request.is_active() => {
                    self.core.requests.remove(handle);
                }
                Some(request) => request.common.detached = true,
                None => {}
            }
            return Ok(RequestId::COMPLETE);
        }
        Ok(RequestId(handle))
    }

    /// Gives a buffered send its own copy of the bytes.
    #[allow(unsafe_code, reason = "the request lends the copy that it owns")]
    fn keep_copy(&mut self, request: &mut Request) -> Result<()> {
        let wanted = request.common.send_buffer().len();
        if self.core.buffered + wanted > self.driver.options.buffer_limit {
            return Err(Error::BufferFull {
                wanted,
                used: self.core.buffered,
                limit: self.driver.options.buffer_limit,
            });
        }
        let mut copy = vec![0; wanted].into_boxed_slice();
        request.common.send_buffer().copy_out(0, &mut copy);
        // SAFETY: the copy lies on the heap, where it stays when its box moves into the request. Nobody writes
        // to it, and it goes with the request, once that is complete.
        request.common.buffer = Buffer::Send(unsafe { lend(&copy) });
        request.common.owned = Some(copy);
        self.core.buffered += wanted;
        Ok(())
    }

    /// Puts an active send into its peer's queue and sends what can go.
    pub(super) fn enqueue(&mut self, handle: Handle) {
        let Some(request) = self.core.requests.get_mut(handle) else {
            return;
        };
        request.state = State::Queued;
        let common = &mut request.common;
        common.wanted = common.send_buffer().len();
        let (index, tag, context) = (common.peer, common.status.tag, common.context);
        let Some(peer) = self.core.lane.peers.get_mut(index) else {
            return;
        };
        if let Some(failure) = peer.failure() {
            return self.core.finish(handle, Some(failure));
        }
        peer.queue.push_back(handle);
        peer.clear = false;
        for wish in &mut peer.wishes {
            wish.tried &= !(wish.tag.accepts(tag) && wish.context == context);
        }
        peer.peeks.look_again(tag, context);
        self.driver.flush(&mut self.core, index);
    }

    /// Sends a message to a peer to whom messages may wait for others, or lets it wait. Returns
    /// whether it is off the caller's hands; nothing has happened to it where it is not.
    #[cold]
    fn send_coalesced(
        &mut self,
        data: &SendBuffer,
        index: PeerIndex,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> bool {
        let Some(bytes) = data.bytes(0..data.len()) else {
            return false;
        };
        let header = EnvelopeHeader {
            kind: Kind::MATCH,
            context,
            tag,
            sequence: Sequence::default(),
            length: bytes.len() as u32,
        };
        let Core {
            coalescing, lane, ..
        } = &mut self.core;
        let rail = &mut *self.driver.rail;
        mode != SendMode::Synchronous
            && coalescing.send(rail, &mut lane.peers, index, header, bytes)
    }

    /// Whether messages wait for others.
    #[inline]
    pub(crate) const fn has_batches(&self) -> bool {
        !self.core.coalescing.is_empty()
    }
}
