//! The sending half.

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_transport::{Refusal, SendBuffer, Sent, Token};

use super::Cm;
use super::driver::MatchDriver;
use super::peer::{Peer, PeerIndex};
use super::request::{Buffer, Phase};
use super::state::{Pending, State};
use crate::contacts::{self, Reach};
use crate::error::{Error, Result};
use crate::lend::lend;
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::{Failure, RequestId, SendMode};

impl Cm {
    /// Hands a message of one region to the transport, if nothing stands in the way. `None`, with
    /// nothing done, where something does.
    #[inline(always)]
    pub(crate) fn send_now(
        &mut self,
        data: &SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Option<RequestId> {
        let index = self.core.lane.peers.find(to)?;
        let peer = self.core.lane.peers.get(index)?;
        let is_plain = mode != SendMode::Synchronous && mode != SendMode::Buffered;
        if !is_plain
            || !peer.clear
            || self.check_destination(context).is_err()
            || !self.core.layout.fits(tag)
            || data.len() as u64 > self.driver.max_message
            || data.region().is_none()
        {
            return None;
        }
        let endpoint = peer.endpoint;
        let bits = self.core.layout.bits(tag, context);
        let token = Token(self.core.requests.next_handle().to_wire());
        match self
            .driver
            .rail
            .send(LANE, endpoint, bits, data, false, token)
        {
            Sent::Done => Some(RequestId::COMPLETE),
            Sent::Open => {
                self.driver.count_open(&mut self.core, data.len());
                let (handle, request) = self.core.requests.occupy();
                request.set_send(index, to, tag, context, mode, data.len());
                Some(RequestId(handle))
            }
            // Neither has done anything.
            _ => None,
        }
    }

    /// Sends at once where nothing stands in the way; else queues.
    #[inline]
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
            None => contacts::contact(&mut self.contacts(), to)?,
        };
        self.check_message(tag, data.len())?;
        if mode == SendMode::Buffered {
            contacts::ensure_connected(&mut self.contacts(), index)?;
            return self.start_buffered(&data, index, to, tag, context);
        }
        if let Some(Peer {
            clear: true,
            endpoint,
            ..
        }) = self.core.lane.peers.get(index)
        {
            let bits = self.core.layout.bits(tag, context);
            let handle = self.core.requests.next_handle();
            let synchronous = mode == SendMode::Synchronous;
            let token = Token(handle.to_wire());
            let sent = self
                .driver
                .rail
                .send(LANE, *endpoint, bits, &data, synchronous, token);
            if sent == Sent::Done {
                return Ok(RequestId::COMPLETE);
            }
            if sent == Sent::Open {
                self.driver.count_open(&mut self.core, data.len());
                let (handle, request) = self.core.requests.occupy();
                request.set_send(index, to, tag, context, mode, data.len());
                return Ok(RequestId(handle));
            }
        }
        self.queue_send(data, index, to, tag, context, mode)
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
        contacts::ensure_connected(&mut self.contacts(), index)?;
        // A program that only ever posts sends would not hear of new room: this call asks.
        self.driver.progress_once(&mut self.core);
        let (handle, request) = self.core.requests.occupy();
        request.set_send(index, to, tag, context, mode, data.len());
        request.buffer = Buffer::Send(data);
        self.driver.enqueue(&mut self.core, handle);
        Ok(RequestId(handle))
    }

    /// Whether the tag has a place in the match bits, and the transport takes such a length.
    #[inline]
    pub(super) fn check_message(&self, tag: Tag, length: usize) -> Result<()> {
        self.check_tag(tag)?;
        if length as u64 <= self.driver.max_message {
            return Ok(());
        }
        Err(Error::MessageTooLong {
            length: length as u64,
            transport: self.driver.rail.name(),
            limit: self.driver.max_message,
        })
    }

    #[inline]
    pub(super) fn check_tag(&self, tag: Tag) -> Result<()> {
        if self.core.layout.fits(tag) {
            return Ok(());
        }
        Err(Error::TagTooWide {
            tag,
            transport: self.driver.rail.name(),
            limit: self.core.layout.largest_tag(),
        })
    }

    /// Sends a copy. Complete for its caller; if it is not already out, nobody waits for it.
    #[allow(unsafe_code, reason = "the request lends the copy that it owns")]
    pub(super) fn start_buffered(
        &mut self,
        data: &SendBuffer,
        index: PeerIndex,
        to: Rank,
        tag: Tag,
        context: ContextId,
    ) -> Result<RequestId> {
        let wanted = data.len();
        if self.core.buffered + wanted > self.buffer_limit {
            // What is out already may be done.
            self.driver.progress_once(&mut self.core);
        }
        if self.core.buffered + wanted > self.buffer_limit {
            return Err(Error::BufferFull {
                wanted,
                used: self.core.buffered,
                limit: self.buffer_limit,
            });
        }
        let mut copy = self.core.bounces.take(wanted);
        data.copy_out(0, &mut copy);
        let (handle, request) = self.core.requests.occupy();
        request.set_send(index, to, tag, context, SendMode::Buffered, wanted);
        // SAFETY: the copy lies on the heap, where it stays when its box moves into the request. Nobody writes
        // to it, and it goes when the request is complete.
        request.buffer = Buffer::Send(unsafe { lend(&copy) });
        request.bounce = Some(copy);
        request.detached = true;
        self.core.buffered += wanted;
        self.driver.enqueue(&mut self.core, handle);
        Ok(RequestId::COMPLETE)
    }
}

impl MatchDriver {
    /// Counts a send that is not over at once: a short one waits for its turn or its match, and is short
    /// all the same.
    #[inline]
    const fn count_open(&self, core: &mut State, length: usize) {
        core.counters.sent_long += (length > self.max_short) as u64;
    }

    /// Puts an active send into its peer's queue and sends what can go.
    pub(super) fn enqueue(&mut self, core: &mut State, handle: Handle) {
        let Some(request) = core.requests.get_mut(handle) else {
            return;
        };
        request.phase = Phase::Queued;
        let index = request.peer;
        let Some(peer) = core.lane.peers.get_mut(index) else {
            return;
        };
        if let Some(failure) = peer.lost {
            return core.finish(handle, Some(failure));
        }
        peer.queue.push_back(handle);
        peer.clear = false;
        if peer.queue.len() == 1 {
            self.flush(core, index);
        }
    }

    /// Sends what waits for `index`, as far as the transport has room. Returns how many.
    pub(super) fn flush(&mut self, core: &mut State, index: PeerIndex) -> usize {
        match contacts::reach(&mut self.contacts(core), index) {
            Reach::Now => {}
            Reach::Later => {
                core.pending.push_back(Pending::Flush(index));
                return 0;
            }
            // What waits for it ends with its loss.
            Reach::Never => return 0,
        }
        let mut gone = 0;
        while let Some(front) = core.lane.peers.get(index).and_then(|p| p.queue.front()) {
            if !self.launch(core, index, *front) {
                break;
            }
            gone += 1;
            if let Some(peer) = core.lane.peers.get_mut(index) {
                peer.queue.pop_front();
            }
        }
        if let Some(peer) = core.lane.peers.get_mut(index) {
            peer.refresh_clear();
            if !peer.queue.is_empty() {
                core.pending.push_back(Pending::Flush(index));
            }
        }
        gone
    }

    /// Gives a queued send to the transport. Returns whether its turn is over.
    #[allow(unsafe_code, reason = "the request lends the copy that it owns")]
    fn launch(&mut self, core: &mut State, index: PeerIndex, handle: Handle) -> bool {
        let (Some(peer), Some(request)) =
            (core.lane.peers.get(index), core.requests.get_mut(handle))
        else {
            return true;
        };
        let bits = core.layout.bits(request.status.tag, request.context);
        let token = Token(handle.to_wire());
        let synchronous = request.mode == SendMode::Synchronous;
        loop {
            // SAFETY: the copy lies on the heap and goes with the request, once that is complete; nobody writes to
            // it.
            let lent = request.bounce.as_deref().map(|copy| unsafe { lend(copy) });
            let data = lent.as_ref().unwrap_or_else(|| request.send_buffer());
            let length = data.len();
            match self
                .rail
                .send(LANE, peer.endpoint, bits, data, synchronous, token)
            {
                Sent::Done => {
                    core.finish(handle, None);
                    return true;
                }
                Sent::Open => {
                    request.phase = Phase::Open;
                    self.count_open(core, length);
                    return true;
                }
                // How a peer is gone will be told, and ends whatever waits for it.
                Sent::Busy | Sent::Gone => return false,
                // The transport wants one region.
                Sent::Refused(Refusal::Shape) if lent.is_none() => {
                    let mut copy = core.bounces.take(length);
                    request.send_buffer().copy_out(0, &mut copy);
                    request.bounce = Some(copy);
                }
                Sent::Refused(why) => {
                    let rank = request.status.source;
                    tracing::error!(rank = rank.as_u32(), "a send was refused: {why:?}");
                    core.finish(handle, Some(Failure::Protocol(rank)));
                    return true;
                }
            }
        }
    }
}
