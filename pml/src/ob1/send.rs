//! The sending half: which protocol a message takes, and its way out.

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_transport::{Class, Offer, Post, SendBuffer, Token};
use zerocopy::IntoBytes;

use super::Ob1;
use super::core::Chore;
use super::header::{ControlHeader, EnvelopeHeader, Kind, RendezvousBody};
use super::path::{LEND_FROM, Lengths};
use super::peer::{Health, Peer, PeerIndex};
use super::rail::LANE;
use super::request::{Phase, Request};
use crate::contact::{Reach, Setback};
use crate::error::{Error, Result};
use crate::lend::lend;
use crate::slab::Handle;
use crate::types::{Failure, RequestId, SendMode};

/// How far a queued send came.
enum Launch {
    /// Its turn is over.
    Gone,
    /// The transport has no room just now. Some of its packets may have found some.
    Busy { moved: bool },
    /// It may not go: no credit.
    Held,
    /// The peer is gone; the transport will say how, and that ends whatever waits for it.
    Lost,
}

impl Ob1 {
    /// Sends a short message in one packet, if nothing stands in the way: no request, no queue.
    /// Answers whether it is out; nothing has happened where it is not.
    #[inline(always)]
    pub(crate) fn send_now(
        &mut self,
        data: &SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> bool {
        if mode == SendMode::Synchronous || !self.is_usable(context) {
            return false;
        }
        let Some(bytes) = data.bytes(0..data.len()) else {
            return false;
        };
        let Some(peer) = self.core.peers.known(to) else {
            return false;
        };
        let length = bytes.len();
        if length > peer.lengths.at_once || !peer.clear || !peer.credit.covers(length) {
            return false;
        }
        let header = EnvelopeHeader {
            kind: Kind::Match,
            context,
            tag,
            sequence: peer.next_out,
            length: length as u32,
        };
        let packet = header.encode();
        let posted = self
            .rail
            .send_in_line(peer.endpoint, Class::Data, packet, bytes);
        if posted != Post::Posted {
            return false;
        }
        peer.spend(length);
        true
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
        let index = match self.core.peers.find(to) {
            Some(index) => index,
            None => self.contact(to)?,
        };
        if self.send_now(&data, to, tag, context, mode)
            || self.core.coalesces && self.send_coalesced(&data, index, tag, context, mode)
        {
            return Ok(RequestId::COMPLETE);
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
        self.ensure_connected(index)?;
        // A program that only ever posts sends would not hear of new credit: this call asks.
        // A few times, since the peer's first contact comes before its first packet.
        for _ in 0..4 {
            let peer = self.core.peers.get(index);
            if !peer.is_some_and(|peer| peer.credit.is_spent()) {
                break;
            }
            let events = self.rail.progress(LANE, &mut self.core);
            if events == 0 {
                break;
            }
            self.core.ended += events;
            self.run_chores();
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
                Some(request) if request.phase == Phase::Complete => {
                    self.core.requests.remove(handle);
                }
                Some(request) => request.detached = true,
                None => {}
            }
            return Ok(RequestId::COMPLETE);
        }
        Ok(RequestId(handle))
    }

    /// Gives a buffered send its own copy of the bytes.
    #[allow(unsafe_code, reason = "the request lends the copy that it owns")]
    fn keep_copy(&mut self, request: &mut Request) -> Result<()> {
        let wanted = request.send_buffer().len();
        if self.core.buffered + wanted > self.options.buffer_limit {
            return Err(Error::BufferFull {
                wanted,
                used: self.core.buffered,
                limit: self.options.buffer_limit,
            });
        }
        let mut copy = vec![0; wanted].into_boxed_slice();
        request.send_buffer().copy_out(0, &mut copy);
        // SAFETY: the copy lies on the heap, where it stays when its box moves into the request. Nobody writes
        // to it, and it goes with the request, once that is complete.
        request.buffer = super::request::Buffer::Send(unsafe { lend(&copy) });
        request.owned = Some(copy);
        self.core.buffered += wanted;
        Ok(())
    }

    /// Puts an active send into its peer's queue and sends what can go.
    pub(super) fn enqueue(&mut self, handle: Handle) {
        let Some(request) = self.core.requests.get_mut(handle) else {
            return;
        };
        request.phase = Phase::Queued;
        request.announced = false;
        request.moved = 0;
        request.remote = Handle::NONE;
        request.wanted = request.send_buffer().len();
        let (index, tag, context) = (request.peer, request.status.tag, request.context);
        let Some(peer) = self.core.peers.get_mut(index) else {
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
        self.flush(index);
    }

    /// Sends what waits for `index`, as far as credits and the transport allow.
    pub(super) fn flush(&mut self, index: PeerIndex) -> usize {
        match self.reach(index) {
            Reach::Now => {}
            Reach::Later => {
                self.core.flush_later(index);
                return 0;
            }
            Reach::Never => return 0,
        }
        if !self.send_batch(index) {
            self.core.flush_later(index);
            return 0;
        }
        let mut sent = 0;
        loop {
            let Some(peer) = self.core.peers.get_mut(index) else {
                return sent;
            };
            let Some(&front) = peer.queue.front() else {
                break;
            };
            if peer.pulled.is_some() {
                break;
            }
            match self.launch(index, front) {
                Launch::Gone => {
                    sent += 1;
                    if let Some(peer) = self.core.peers.get_mut(index)
                        && peer.queue.front() == Some(&front)
                    {
                        peer.queue.pop_front();
                    }
                }
                Launch::Busy { moved } => {
                    sent += usize::from(moved);
                    self.core.flush_later(index);
                    break;
                }
                Launch::Held => {
                    self.answer_wishes(index);
                    break;
                }
                Launch::Lost => break,
            }
        }
        if let Some(peer) = self.core.peers.get_mut(index) {
            peer.refresh_clear();
        }
        sent
    }

    /// Sends the send at the front of its peer's queue.
    fn launch(&mut self, index: PeerIndex, handle: Handle) -> Launch {
        let (Some(peer), Some(request)) =
            (self.core.peers.get(index), self.core.requests.get(handle))
        else {
            return Launch::Gone;
        };
        let length = request.wanted;
        if request.moved == 0 && !request.announced && peer.credit.envelopes <= 0 {
            return Launch::Held;
        }
        let affordable = peer.credit.bytes >= length as i64 || request.moved > 0;
        let offered = request.phase == Phase::Offered;
        if request.mode == SendMode::Synchronous {
            let Lengths { packet, eager, .. } = peer.lengths;
            if affordable && !offered && length + 8 <= packet && length <= eager {
                return self.launch_synchronous(index, handle);
            }
        } else if affordable && !offered && length <= peer.lengths.eager {
            let contiguous = request.send_buffer().region().is_some();
            if contiguous && LEND_FROM <= length && length <= peer.lengths.lent {
                return self.launch_lent(index, handle);
            }
            return self.launch_eager(index, handle);
        }
        self.launch_rendezvous(index, handle)
    }

    /// Sends an eager message in one packet of which the transport copies nothing.
    fn launch_lent(&mut self, index: PeerIndex, handle: Handle) -> Launch {
        let (Some(peer), Some(request)) = (
            self.core.peers.get_mut(index),
            self.core.requests.get_mut(handle),
        ) else {
            return Launch::Gone;
        };
        let length = request.wanted;
        let header = EnvelopeHeader {
            kind: Kind::Match,
            context: request.context,
            tag: request.status.tag,
            sequence: peer.next_out,
            length: length as u32,
        };
        let (endpoint, token) = (peer.endpoint, Token(handle.to_wire()));
        let data = request.send_buffer();
        match self
            .rail
            .send_zero_copy(LANE, endpoint, header.encode(), data, token)
        {
            Post::Posted => {}
            Post::Gone => return Launch::Lost,
            Post::Busy => return Launch::Busy { moved: false },
            // Not this buffer.
            Post::Unsupported => return self.launch_eager(index, handle),
        }
        peer.spend(length);
        request.moved = length;
        request.lent = true;
        request.phase = Phase::Leaving;
        Launch::Gone
    }

    /// Sends packets of an eager message until it is out.
    fn launch_eager(&mut self, index: PeerIndex, handle: Handle) -> Launch {
        let mut moved = false;
        loop {
            let (Some(peer), Some(request)) = (
                self.core.peers.get_mut(index),
                self.core.requests.get_mut(handle),
            ) else {
                return Launch::Gone;
            };
            let length = request.wanted;
            let end = length.min(request.moved + peer.lengths.packet);
            let first = request.moved == 0;
            let kind = match (first, end == length) {
                (true, true) => Kind::Match,
                (true, false) => Kind::Head,
                (false, _) => Kind::Body,
            };
            let header = EnvelopeHeader {
                kind,
                context: request.context,
                tag: request.status.tag,
                sequence: peer.next_out,
                length: length as u32,
            };
            let range = request.moved..end;
            let endpoint = peer.endpoint;
            let data = request.send_buffer();
            match self
                .rail
                .send_from(LANE, endpoint, header.encode(), data, range)
            {
                Post::Posted => {}
                Post::Gone | Post::Unsupported => return Launch::Lost,
                Post::Busy => return Launch::Busy { moved },
            }
            moved = true;
            if first {
                peer.spend(length);
            } else {
                peer.next_out = peer.next_out.next();
            }
            request.moved = end;
            if end == length {
                self.core.finish(handle, None);
                return Launch::Gone;
            }
        }
    }

    /// Sends a short message whose sender waits for the match: its handle goes along.
    fn launch_synchronous(&mut self, index: PeerIndex, handle: Handle) -> Launch {
        let (Some(peer), Some(request)) = (
            self.core.peers.get_mut(index),
            self.core.requests.get_mut(handle),
        ) else {
            return Launch::Gone;
        };
        let length = request.wanted;
        let mut body = vec![0; 8 + length];
        body[..8].copy_from_slice(&handle.to_wire().to_le_bytes());
        request.send_buffer().copy_out(0, &mut body[8..]);
        let header = EnvelopeHeader {
            kind: Kind::Sync,
            context: request.context,
            tag: request.status.tag,
            sequence: peer.next_out,
            length: length as u32,
        };
        match self
            .rail
            .send(LANE, peer.endpoint, Class::Data, header.encode(), &body)
        {
            Post::Posted => {}
            Post::Gone | Post::Unsupported => return Launch::Lost,
            Post::Busy => return Launch::Busy { moved: false },
        }
        peer.spend(length);
        request.phase = Phase::AwaitMatch;
        Launch::Gone
    }

    /// Sends the envelope alone; the bytes follow once a receive has matched.
    fn launch_rendezvous(&mut self, index: PeerIndex, handle: Handle) -> Launch {
        let (Some(peer), Some(request)) = (
            self.core.peers.get_mut(index),
            self.core.requests.get_mut(handle),
        ) else {
            return Launch::Gone;
        };
        if request.phase == Phase::Queued {
            let token = Token(handle.to_wire());
            match self
                .rail
                .offer(LANE, peer.endpoint, request.send_buffer(), token)
            {
                Offer::Open(ticket) => {
                    request.phase = Phase::Offered;
                    request.ticket = ticket;
                    request.lent = true;
                }
                // All offers may be for messages that are not matched before this one: its
                // envelope goes alone, and it is offered once its receiver asks for the bytes.
                Offer::Busy | Offer::Unsupported => {}
            }
        }
        let ticket = match request.phase {
            Phase::Offered => Some(request.ticket),
            _ => None,
        };
        let header = EnvelopeHeader {
            kind: Kind::Rendezvous,
            context: request.context,
            tag: request.status.tag,
            sequence: peer.next_out,
            length: request.wanted as u32,
        };
        let (endpoint, length) = (peer.endpoint, request.wanted as u64);
        let posted = match ticket.is_none().then(|| self.expose(handle)).flatten() {
            Some((address, key)) => {
                let (body, end) = RendezvousBody::readable(length, handle, address, key);
                let packet = EnvelopeHeader {
                    kind: Kind::Readable,
                    ..header
                };
                self.rail
                    .send(LANE, endpoint, Class::Data, packet.encode(), &body[..end])
            }
            None => {
                let body = RendezvousBody::new(length, handle, ticket);
                let packet = header.encode();
                self.rail
                    .send(LANE, endpoint, Class::Data, packet, body.as_bytes())
            }
        };
        match posted {
            Post::Posted => {}
            Post::Gone | Post::Unsupported => return Launch::Lost,
            Post::Busy => return Launch::Busy { moved: false },
        }
        let (Some(peer), Some(request)) = (
            self.core.peers.get_mut(index),
            self.core.requests.get_mut(handle),
        ) else {
            return Launch::Gone;
        };
        peer.spend(0);
        self.core.counters.sent_long += 1;
        request.announced = true;
        if ticket.is_none() {
            request.phase = Phase::AwaitMatch;
        }
        Launch::Gone
    }

    /// While envelopes are held back: sends the first that a receive of the peer waits for, else
    /// one that a probe of the peer looks for.
    fn answer_wishes(&mut self, index: PeerIndex) {
        let Some(peer) = self.core.peers.get_mut(index) else {
            return;
        };
        let mut found = None;
        for (number, wish) in peer.wishes.iter_mut().enumerate() {
            if wish.tried {
                continue;
            }
            wish.tried = true;
            let place = peer.queue.iter().position(|handle| {
                let request = self.core.requests.get(*handle);
                request.is_some_and(|request| request.is_held_for(wish.tag, wish.context))
            });
            if let Some(place) = place {
                found = Some((number, place, wish.receive));
                break;
            }
        }
        let Some((number, place, receive)) = found else {
            return self.answer_questions(index);
        };
        let sent = self.send_held(index, place, Kind::Pulled, receive.to_wire());
        if let Some(peer) = self.core.peers.get_mut(index) {
            if sent {
                peer.wishes.remove(number);
            } else if let Some(wish) = peer.wishes.get_mut(number) {
                wish.tried = false;
            }
        }
        if !sent {
            self.core.flush_later(index);
        }
    }

    /// Takes the envelope at `place` out of the queue and sends it as `kind`, without credit.
    /// Answers whether the transport took it.
    pub(super) fn send_held(
        &mut self,
        index: PeerIndex,
        place: usize,
        kind: Kind,
        receiver: u64,
    ) -> bool {
        let Some(peer) = self.core.peers.get_mut(index) else {
            return true;
        };
        let Some(&handle) = peer.queue.get(place) else {
            return true;
        };
        let Some(request) = self.core.requests.get_mut(handle) else {
            return true;
        };
        let header = EnvelopeHeader {
            kind,
            context: request.context,
            tag: request.status.tag,
            sequence: peer.next_out,
            length: request.wanted as u32,
        };
        let mut body = RendezvousBody::new(request.wanted as u64, handle, None);
        body.receiver = receiver;
        let (packet, body) = (header.encode(), body.as_bytes());
        let posted = self
            .rail
            .send(LANE, peer.endpoint, Class::Control, packet, body);
        if posted != Post::Posted {
            return false;
        }
        peer.next_out = peer.next_out.next();
        peer.queue.remove(place);
        peer.pulled = Some((handle, place));
        request.phase = Phase::AwaitMatch;
        true
    }

    /// Offers the bytes of a send whose envelope went alone and whose receiver asks for them; or
    /// pushes them.
    pub(super) fn serve(&mut self, handle: Handle) -> usize {
        let Self { rail, core, .. } = self;
        let (peers, chores) = (&core.peers, &mut core.chores);
        let Some(request) = core.requests.get_mut(handle) else {
            return 0;
        };
        let Some(peer) = peers.get(request.peer) else {
            return 0;
        };
        if request.phase != Phase::AwaitMatch {
            return 0;
        }
        if request.reach.is_some() {
            // Its receiver could not read the bytes.
            self.hide(handle);
        } else if request.wanted > peer.lengths.packet {
            let token = Token(handle.to_wire());
            let data = request.send_buffer();
            if let Offer::Open(ticket) = rail.offer(LANE, peer.endpoint, data, token) {
                request.phase = Phase::Offered;
                request.ticket = ticket;
                request.lent = true;
                let header = ControlHeader {
                    kind: Kind::Ticket,
                    handle: request.remote,
                    argument: 0,
                };
                let body = ticket.0;
                chores.push_back(Chore::control(request.peer, header, body.as_bytes()));
                return 1;
            }
        }
        if let Some(request) = self.core.requests.get_mut(handle) {
            request.phase = Phase::Pushing;
        }
        self.push(handle)
    }

    /// Sends fragments of a rendezvous until all are out or the transport is busy.
    pub(super) fn push(&mut self, handle: Handle) -> usize {
        let mut sent = 0;
        loop {
            let Some(request) = self.core.requests.get_mut(handle) else {
                return sent;
            };
            if request.phase != Phase::Pushing {
                return sent;
            }
            let index = request.peer;
            if request.moved >= request.wanted {
                self.core.finish(handle, None);
                return sent + 1;
            }
            let Some(peer) = self.core.peers.get(index) else {
                return sent;
            };
            let end = request.wanted.min(request.moved + peer.lengths.packet);
            let header = ControlHeader {
                kind: Kind::Data,
                handle: request.remote,
                argument: request.moved as u64,
            };
            let (endpoint, data) = (peer.endpoint, request.send_buffer());
            let range = request.moved..end;
            match self
                .rail
                .send_from(LANE, endpoint, header.encode(), data, range)
            {
                Post::Posted => {
                    request.moved = end;
                    sent += 1;
                }
                Post::Busy => {
                    self.core.chores.push_back(Chore::Push(handle));
                    return sent;
                }
                // How it is gone ends this send too.
                Post::Gone | Post::Unsupported => return sent,
            }
        }
    }

    /// The peer that `rank` is, connected.
    #[cold]
    pub(super) fn contact(&mut self, rank: Rank) -> Result<PeerIndex> {
        if let Some(index) = self.core.peers.find(rank) {
            self.ensure_connected(index)?;
            return Ok(index);
        }
        if rank.as_u32() >= self.size {
            return Err(Error::NoSuchRank {
                rank,
                size: self.size,
            });
        }
        let endpoint = match self.connect(rank) {
            Ok(endpoint) => endpoint,
            Err(error) => return Err(self.explain(rank, error)),
        };
        let index = self.core.peers.enter(rank, endpoint, Peer::new);
        self.note_connected(index);
        if let Some(failure) = self.core.losses.of(rank) {
            self.core.lose(index, Health::of(failure));
        }
        Ok(index)
    }

    /// A peer can be sent to: how, its transport knows.
    fn note_connected(&mut self, index: PeerIndex) {
        let Some(peer) = self.core.peers.get_mut(index) else {
            return;
        };
        let preference = self.rail.preference(peer.endpoint);
        peer.lengths = self.options.lengths(preference, &self.rail.limits());
        peer.connected = true;
        peer.refresh_clear();
        self.core.coalesces |= peer.lengths.coalesce > 0;
    }

    /// Connects to a peer that so far has only been heard. A peer that turns out to have ended is lost by that, which
    /// ends its operations: no error of this call.
    ///
    /// # Errors
    /// When the peer cannot be connected to now. It is none the worse for that.
    pub(super) fn ensure_connected(&mut self, index: PeerIndex) -> Result<()> {
        let Some(peer) = self.core.peers.get(index) else {
            return Ok(());
        };
        if peer.connected || peer.health != Health::Alive {
            return Ok(());
        }
        let rank = peer.rank;
        if let Err(error) = self.connect(rank) {
            return match self.explain(rank, error) {
                Error::Failed(_) => Ok(()),
                error => Err(error),
            };
        }
        self.note_connected(index);
        Ok(())
    }

    /// What a contact with `rank` that failed with `error` is to end with: the end of the peer, if it has ended.
    #[cold]
    fn explain(&mut self, rank: Rank, error: Error) -> Error {
        let (error, evidence) = match Setback::of(error) {
            Setback::Shortage(error) => return error,
            Setback::Ended => {
                let failure = Failure::PeerFailed(rank);
                (failure.into(), Some(failure))
            }
            Setback::Lasting(error) => (error, None),
        };
        // A goodbye may have come before its end.
        self.hear_of_ends();
        let index = self.core.peers.find(rank);
        let known = index.and_then(|index| self.core.peers.get(index)?.failure());
        let known = known.or_else(|| self.core.losses.of(rank));
        let Some(failure) = known.or(evidence) else {
            return error;
        };
        match index {
            Some(index) => self.core.lose(index, Health::of(failure)),
            None => self.core.member_gone(rank, failure),
        }
        Error::Failed(failure)
    }

    /// Whether what this rank has to send by itself can go to a peer now. What cannot be sent for a shortage waits until
    /// this rank next looks after its peers; where the peer cannot be reached at all, it is lost.
    pub(super) fn reach(&mut self, index: PeerIndex) -> Reach {
        let Some(peer) = self.core.peers.get(index) else {
            return Reach::Never;
        };
        if peer.health != Health::Alive {
            return Reach::Never;
        }
        if peer.connected {
            return Reach::Now;
        }
        self.reach_out(index, peer.rank)
    }

    #[cold]
    fn reach_out(&mut self, index: PeerIndex, rank: Rank) -> Reach {
        if self.out_of_reach.contains(&index) {
            return Reach::Later;
        }
        match self.ensure_connected(index) {
            Ok(()) => {
                let peer = self.core.peers.get(index);
                if peer.is_some_and(|peer| peer.connected) {
                    Reach::Now
                } else {
                    Reach::Never
                }
            }
            Err(error) if error.is_shortage() => {
                tracing::warn!(rank = rank.as_u32(), "cannot answer yet: {error}");
                self.out_of_reach.push(index);
                Reach::Later
            }
            Err(error) => {
                tracing::error!(rank = rank.as_u32(), "cannot answer: {error}");
                self.core.lose(index, Health::Unreachable);
                Reach::Never
            }
        }
    }
}
