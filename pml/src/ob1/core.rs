//! The state of ob1, and what arrives into it.
//!
//! Upcalls come from inside the transport's progress and must not call it: what they want done
//! there is noted as a [`Chore`], and done right after.

use std::collections::VecDeque;

use tagwire_base::{ContextId, Rank, Sequence, Tag};
use tagwire_matching::{AnyEngine, ArriveOutcome, Cookie, Engine, Envelope};
use tagwire_transport::{AmHeader, Arrival, Outcome, Payload, PeerEvent, Token, Upcalls};
use zerocopy::{FromZeros, IntoBytes};

use super::credit::{Budget, Charged};
use super::header::{ControlHeader, EnvelopeHeader, Kind, RendezvousBody, kind_of};
use super::peer::{Early, Health, Peer, PeerIndex, Peers, Stream};
use super::reading::Source;
use super::request::{Buffer, Phase, Requests};
use super::unexpected::{Content, Unexpected};
use super::writes::state::{Writes, is_write};
use crate::losses::Losses;
use crate::slab::{Handle, Slab};
use crate::types::{Counters, Failure};

/// How far ahead of its turn a packet may come.
const EARLY_WINDOW: i32 = 4096;

/// What is wrong with a peer that sent envelopes past its window.
const OVERRUN: &str = "more envelopes than it was granted";

/// Something to be done with the transport, outside its progress.
#[derive(Debug)]
pub(super) enum Chore {
    /// Send a control packet.
    Control {
        peer: PeerIndex,
        header: AmHeader,
        body: [u8; 16],
        len: u8,
    },
    /// Claim the transfer that this receive matched.
    Claim(Handle),
    /// Read the bytes of this receive.
    Read(Handle),
    /// End this send, whose bytes its peer can still read.
    Conclude(Handle),
    /// Withdraw the offer of this send.
    Withdraw(Handle),
    /// Bring the bytes of this send to its receiver, who asked for them.
    Serve(Handle),
    /// Push fragments of this send.
    Push(Handle),
    /// Sends that wait for this peer may go on.
    Flush(PeerIndex),
    /// What this peer shows to probes grows old.
    Age(PeerIndex),
}

impl Chore {
    pub(super) fn control(peer: PeerIndex, header: ControlHeader, payload: &[u8]) -> Self {
        let mut body = [0; 16];
        body[..payload.len()].copy_from_slice(payload);
        Self::Control {
            peer,
            header: header.encode(),
            body,
            len: payload.len() as u8,
        }
    }
}

/// Everything of ob1 but the transport and the bootstrap.
#[derive(Debug)]
pub(super) struct Core {
    pub engine: AnyEngine,
    pub requests: Requests,
    pub unexpected: Slab<Unexpected>,
    pub peers: Peers,
    pub budget: Budget,
    pub chores: VecDeque<Chore>,
    pub losses: Losses,
    /// A rank is gone or a budget is spent: posted receives are looked at twice.
    pub in_trouble: bool,
    /// Bytes of buffered sends that wait.
    pub buffered: usize,
    /// The number of the next posted receive, for the order of pulls.
    pub posted: u64,
    /// Operations that may have ended since this was last asked, other than by progress.
    pub ended: usize,
    pub counters: Counters,
    /// Peers read long messages out of their sender's memory.
    pub reads: bool,
    /// There are peers to whom messages may wait for others.
    pub coalesces: bool,
    /// Those for whom some wait.
    pub batched: Vec<PeerIndex>,
    /// Messages that went at once since this rank last made progress, to such peers.
    pub burst: u32,
    /// Partitioned channels, once there were any.
    pub writes: Option<Box<Writes>>,
}

impl Core {
    pub(super) fn new(engine: AnyEngine, budget: Budget, reads: bool) -> Self {
        Self {
            engine,
            requests: Requests::new(),
            unexpected: Slab::default(),
            peers: Peers::new(),
            budget,
            chores: VecDeque::new(),
            losses: Losses::default(),
            in_trouble: false,
            buffered: 0,
            posted: 0,
            ended: 0,
            counters: Counters::default(),
            reads,
            coalesces: false,
            batched: Vec::new(),
            burst: 0,
            writes: None,
        }
    }

    /// Ends an operation.
    pub(super) fn finish(&mut self, handle: Handle, failure: Option<Failure>) {
        if self.reads && self.conclude_later(handle, failure) {
            return;
        }
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        self.ended += 1;
        request.phase = Phase::Complete;
        request.lent = false;
        if failure.is_some() {
            request.status.failure = failure;
        }
        if let Some(copy) = request.owned.take() {
            self.buffered -= copy.len();
        }
        if request.detached {
            self.requests.remove(handle);
        }
    }

    /// An envelope or more of a message, in its turn.
    fn sequenced(&mut self, kind: Kind, from: PeerIndex, header: AmHeader, payload: Payload<'_>) {
        let Some(header) = EnvelopeHeader::decode(kind, header) else {
            return self.broken(from, "a reserved tag, or flags of another version");
        };
        let open = self.peers.get(from).map(|peer| peer.stream);
        if kind != Kind::Body && open.is_some_and(|stream| stream != Stream::None) {
            return self.broken(from, "a message inside of another");
        }
        match kind {
            Kind::Match => self.charged_eager(from, header, payload.len(), payload, None),
            Kind::Head => self.charged_eager(from, header, header.length as usize, payload, None),
            Kind::Body => self.more(from, payload),
            Kind::Sync => {
                let mut sender = 0;
                if !payload.read_into(u64::as_mut_bytes(&mut sender)) {
                    return self.broken(from, "a synchronous message without a handle");
                }
                let data = payload.slice(8..payload.len());
                self.charged_eager(
                    from,
                    header,
                    data.len(),
                    data,
                    Some(Handle::from_wire(sender)),
                );
            }
            _ => self.rendezvous(from, header, payload),
        }
    }

    /// A whole eager message that comes in its turn, within what its sender was granted: what
    /// most messages are. Answers whether it was one.
    #[inline(always)]
    pub(super) fn deliver_plain(&mut self, arrival: &Arrival<'_>) -> bool {
        let AmHeader([word, rest]) = arrival.header;
        let Some((index, peer)) = self.peers.at_endpoint(arrival.from) else {
            return false;
        };
        let length = arrival.payload.len();
        let left = peer.account.granted.after(length);
        // The kind, and no flags.
        if word as u16 != Kind::Match as u16
            || (rest >> 32) as u32 != peer.next_in.as_u32()
            || !peer.plain
            || !peer.account.unsettled
            || left.is_below(self.budget.refill_below())
        {
            return false;
        }
        let Some(header) = EnvelopeHeader::decode(Kind::Match, arrival.header) else {
            return false;
        };
        peer.next_in = peer.next_in.next();
        peer.account.granted = left;
        let source = peer.rank;
        self.eager(index, source, header, length, arrival.payload, None);
        true
    }

    /// An eager message of `total` bytes, or its first packet, from a peer with a slow reason.
    fn charged_eager(
        &mut self,
        from: PeerIndex,
        header: EnvelopeHeader,
        total: usize,
        payload: Payload<'_>,
        synchronous: Option<Handle>,
    ) {
        let charged = self.charge(from, total);
        if payload.len() > total || charged == Charged::Overdrawn {
            return self.broken(from, "more than it was granted");
        }
        let Some(peer) = self.peers.get(from) else {
            return;
        };
        self.eager(from, peer.rank, header, total, payload, synchronous);
        if charged == Charged::Low {
            self.refill(from);
        }
    }

    /// Matches an eager message, or its first packet, and takes its bytes.
    #[inline(always)]
    fn eager(
        &mut self,
        from: PeerIndex,
        source: Rank,
        header: EnvelopeHeader,
        total: usize,
        payload: Payload<'_>,
        synchronous: Option<Handle>,
    ) {
        let envelope = Envelope {
            source,
            tag: header.tag,
            context: header.context,
        };
        match self
            .engine
            .arrive(envelope, Cookie(self.unexpected.next_slot()))
        {
            ArriveOutcome::Matched(Cookie(slot)) => {
                let Some((receive, request)) = self.requests.at_mut(slot) else {
                    return;
                };
                if payload.len() == total {
                    request.take_whole(from, source, header.tag, payload);
                } else {
                    request.matched(from, source, header.tag, total);
                    if let Buffer::Recv(data) = &mut request.buffer {
                        data.write(0, payload);
                    }
                    request.phase = Phase::Streaming;
                    let offset = payload.len();
                    self.set_stream(
                        from,
                        Stream::Request {
                            receive,
                            offset,
                            total,
                        },
                    );
                }
                if let Some(sender) = synchronous {
                    self.say(from, Kind::Matched, sender);
                }
            }
            ArriveOutcome::Queued(queued) => {
                self.keep(from, queued, header, total, payload, synchronous);
            }
            ArriveOutcome::Full => self.broken(from, OVERRUN),
        }
    }

    /// Keeps an eager message, or its first packet, for a receive to come.
    #[cold]
    #[inline(never)]
    fn keep(
        &mut self,
        from: PeerIndex,
        queued: tagwire_matching::Handle,
        header: EnvelopeHeader,
        total: usize,
        payload: Payload<'_>,
        synchronous: Option<Handle>,
    ) {
        self.budget.keep(total);
        let offset = payload.len();
        let message = self.unexpected.insert(Unexpected {
            peer: from,
            tag: header.tag,
            context: header.context,
            length: total,
            charged: total,
            queued: Some(queued),
            synchronous,
            content: Content::eager(total, payload),
        });
        if offset < total {
            self.set_stream(
                from,
                Stream::Unexpected {
                    message,
                    offset,
                    total,
                },
            );
        }
    }

    fn set_stream(&mut self, from: PeerIndex, stream: Stream) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.stream = stream;
            peer.refresh_clear();
        }
    }

    /// More bytes of the eager message that `from` has begun.
    fn more(&mut self, from: PeerIndex, payload: Payload<'_>) {
        let Some(stream) = self.peers.get(from).map(|peer| peer.stream) else {
            return;
        };
        match stream {
            Stream::Request {
                receive,
                offset,
                total,
            } if payload.len() <= total - offset => {
                let end = offset + payload.len();
                let rest = Stream::Request {
                    receive,
                    offset: end,
                    total,
                };
                self.set_stream(from, if end < total { rest } else { Stream::None });
                if let Some(request) = self.requests.get_mut(receive) {
                    if let Buffer::Recv(data) = &mut request.buffer {
                        data.write(offset, payload);
                    }
                    if end == total {
                        self.finish(receive, None);
                    }
                }
            }
            Stream::Unexpected {
                message,
                offset,
                total,
            } if payload.len() <= total - offset => {
                let end = offset + payload.len();
                let rest = Stream::Unexpected {
                    message,
                    offset: end,
                    total,
                };
                self.set_stream(from, if end < total { rest } else { Stream::None });
                if let Some(Unexpected {
                    content: Content::Heap { bytes, arrived },
                    ..
                }) = self.unexpected.get_mut(message)
                {
                    payload.copy_to_slice(&mut bytes[offset..end]);
                    *arrived = end;
                }
            }
            _ => self.broken(from, "bytes that belong to no message"),
        }
    }

    /// The envelope of a message that stays with its sender until matched.
    fn rendezvous(&mut self, from: PeerIndex, header: EnvelopeHeader, payload: Payload<'_>) {
        let mut body = RendezvousBody::new_zeroed();
        if !payload.read_into(body.as_mut_bytes()) || usize::try_from(body.length).is_err() {
            return self.broken(from, "an envelope that is cut short");
        }
        if header.kind == Kind::Pulled {
            return self.pulled(from, header, &body);
        }
        if header.kind == Kind::Peeked {
            return self.peeked(from, header, &body);
        }
        let charged = self.charge(from, 0);
        if charged == Charged::Overdrawn {
            return self.broken(from, OVERRUN);
        }
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let source = peer.rank;
        let length = body.length as usize;
        let Some(source_of_bytes) = body.source(header.kind, payload) else {
            return self.broken(from, "an envelope with half a key");
        };
        let envelope = Envelope {
            source,
            tag: header.tag,
            context: header.context,
        };
        match self
            .engine
            .arrive(envelope, Cookie(self.unexpected.next_slot()))
        {
            ArriveOutcome::Matched(Cookie(slot)) => {
                if let Some((receive, request)) = self.requests.at_mut(slot) {
                    request.matched(from, source, header.tag, length);
                    self.fetch(receive, Handle::from_wire(body.sender), source_of_bytes);
                }
            }
            ArriveOutcome::Queued(queued) => {
                self.budget.keep(0);
                self.unexpected.insert(Unexpected {
                    peer: from,
                    tag: header.tag,
                    context: header.context,
                    length,
                    charged: 0,
                    queued: Some(queued),
                    synchronous: None,
                    content: Content::Rendezvous {
                        sender: Handle::from_wire(body.sender),
                        source: source_of_bytes,
                    },
                });
            }
            ArriveOutcome::Full => self.broken(from, OVERRUN),
        }
        if charged == Charged::Low {
            self.refill(from);
        }
    }

    /// An envelope that a receive of ours pulled out of its sender's queue.
    fn pulled(&mut self, from: PeerIndex, header: EnvelopeHeader, body: &RendezvousBody) {
        let sender = Handle::from_wire(body.sender);
        let receive = Handle::from_wire(body.receiver);
        let source = self.peers.get(from).map(|peer| peer.rank);
        let wanted = self
            .requests
            .get(receive)
            .and_then(|request| match request.phase {
                Phase::Posted
                    if request.context == header.context
                        && request.tag.accepts(header.tag)
                        && source.is_some_and(|source| request.from.accepts(source)) =>
                {
                    Some(request.queued)
                }
                _ => None,
            });
        let (Some(queued), Some(source)) = (wanted, source) else {
            // Another message was faster: this one goes back to its place in the order.
            return self.say(from, Kind::PullReturned, sender);
        };
        if self.is_wanted_earlier(receive, source, header.tag, header.context) {
            // Its wish is on the way, and may be for something before this.
            self.say(from, Kind::PullReturned, sender);
            return self.pull(from, receive);
        }
        let _ = self.engine.cancel(queued);
        self.say(from, Kind::PullTaken, sender);
        if let Some(request) = self.requests.get_mut(receive) {
            request.matched(from, source, header.tag, body.length as usize);
        }
        self.fetch(receive, sender, Source::Asked);
    }

    /// Whether a receive that was posted before `receive` would take this message too. Only where
    /// the wishes of the two changed places on their way.
    fn is_wanted_earlier(
        &mut self,
        receive: Handle,
        source: Rank,
        tag: Tag,
        context: ContextId,
    ) -> bool {
        let envelope = Envelope {
            source,
            tag,
            context,
        };
        // `receive` accepts it, so that whoever else is found was posted before.
        self.engine.expects(envelope) != Some(Cookie(receive.slot()))
    }

    /// Begins to move the bytes of a matched rendezvous.
    pub(super) fn fetch(&mut self, receive: Handle, sender: Handle, source: Source) {
        let Some(request) = self.requests.get_mut(receive) else {
            return;
        };
        request.remote = sender;
        match source {
            Source::Offered(ticket) => {
                request.phase = Phase::ClaimPending;
                request.ticket = ticket;
                self.chores.push_back(Chore::Claim(receive));
            }
            Source::Exposed(reading) => self.start_reading(receive, *reading),
            Source::Asked => self.ask_for_fragments(receive),
        }
    }

    /// Tells the sender of a matched rendezvous to send the bytes in fragments.
    pub(super) fn ask_for_fragments(&mut self, receive: Handle) {
        let Some(request) = self.requests.get_mut(receive) else {
            return;
        };
        request.phase = Phase::Fragments;
        request.moved = 0;
        let (peer, wanted) = (request.peer, request.wanted as u64);
        let header = ControlHeader {
            kind: Kind::Fragments,
            handle: request.remote,
            argument: receive.to_wire(),
        };
        self.chores
            .push_back(Chore::control(peer, header, wanted.as_bytes()));
        if wanted == 0 {
            self.finish(receive, None);
        }
    }

    /// Sends `kind` about the peer's operation `handle`.
    pub(super) fn say(&mut self, peer: PeerIndex, kind: Kind, handle: Handle) {
        let header = ControlHeader {
            kind,
            handle,
            argument: 0,
        };
        self.chores.push_back(Chore::control(peer, header, &[]));
    }

    /// A packet that is anything but a plain message.
    #[inline(never)]
    pub(super) fn deliver_other(&mut self, arrival: &Arrival<'_>) {
        let (header, payload) = (arrival.header, arrival.payload);
        let Some(index) = self.peers.of_endpoint(arrival.from) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(index) else {
            return;
        };
        if peer.health == Health::Broken {
            return;
        }
        match kind_of(header) {
            Some(kind) if kind.is_sequenced() => {
                if (header.0[1] >> 32) as u32 != peer.next_in.as_u32() {
                    return self.out_of_turn(index, header, payload);
                }
                peer.next_in = peer.next_in.next();
                let behind = !peer.early.is_empty();
                self.sequenced(kind, index, header, payload);
                if behind {
                    self.catch_up(index);
                }
            }
            Some(Kind::Batch) => self.take_apart(index, arrival),
            Some(kind) => self.control(index, ControlHeader::decode(kind, header), payload),
            None => self.broken(index, "a packet of no known kind"),
        }
    }

    /// A packet before its turn is kept; one that came twice, or from far ahead, is an error.
    #[cold]
    fn out_of_turn(&mut self, from: PeerIndex, header: AmHeader, payload: Payload<'_>) {
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let sequence = Sequence::new((header.0[1] >> 32) as u32);
        let ahead = sequence.distance_from(peer.next_in);
        if !(1..EARLY_WINDOW).contains(&ahead) || peer.early.contains_key(&sequence.as_u32()) {
            return self.broken(from, "a packet out of sequence");
        }
        let payload = payload.to_vec().into_boxed_slice();
        peer.early
            .insert(sequence.as_u32(), Early { header, payload });
        peer.refresh_clear();
    }

    /// Processes the early packets whose turn has come.
    #[cold]
    fn catch_up(&mut self, from: PeerIndex) {
        while let Some(peer) = self.peers.get_mut(from)
            && let Some(early) = peer.early.remove(&peer.next_in.as_u32())
        {
            peer.next_in = peer.next_in.next();
            peer.refresh_clear();
            if let Some(kind) = kind_of(early.header) {
                self.sequenced(
                    kind,
                    from,
                    early.header,
                    Payload::from_slice(&early.payload),
                );
            }
        }
    }

    /// `from` has sent what no correct peer sends: it is not listened to any more.
    #[cold]
    pub(super) fn broken(&mut self, from: PeerIndex, what: &str) {
        if let Some(peer) = self.peers.get(from)
            && peer.health == Health::Alive
        {
            tracing::error!(rank = peer.rank.as_u32(), "protocol error: {what}");
            self.lose(from, Health::Broken);
        }
    }
}

impl Upcalls for Core {
    #[inline(always)]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        if !self.deliver_plain(&arrival) {
            self.deliver_other(&arrival);
        }
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        if is_write(token) {
            return self.write_ended(token, outcome);
        }
        let handle = Handle::from_wire(token.0);
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        if request.phase == Phase::Reading {
            return self.piece_came(handle, outcome);
        }
        request.lent = false;
        let peer = request.peer;
        let gone = self.peers.get(peer).and_then(super::peer::Peer::failure);
        match (outcome, request.phase) {
            (Outcome::Done(bytes), Phase::Claimed) if bytes < request.wanted as u64 => {
                let source = request.status.source;
                self.finish(handle, Some(Failure::Protocol(source)));
            }
            (Outcome::Done(_), _) => self.finish(handle, None),
            // Whoever is gone answers to nothing more.
            _ if gone.is_some() => self.finish(handle, gone),
            (Outcome::Impossible, Phase::Claimed) => self.ask_for_fragments(handle),
            (Outcome::Impossible | Outcome::Withdrawn, Phase::Offered) => {
                if request.remote == Handle::NONE {
                    request.phase = Phase::AwaitMatch;
                } else {
                    request.phase = Phase::Pushing;
                    self.chores.push_back(Chore::Push(handle));
                }
            }
            _ => {
                let rank = request.status.source;
                self.finish(handle, Some(Failure::PeerFailed(rank)));
            }
        }
    }

    fn notice(&mut self, immediate: u64) {
        self.written(immediate);
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => {
                let index = self.peers.enter(rank, endpoint, Peer::new);
                let Some(peer) = self.peers.get_mut(index) else {
                    return;
                };
                let alive = peer.health == Health::Alive;
                self.budget.open(&mut peer.account, alive);
            }
            PeerEvent::Left(endpoint) => {
                if let Some(peer) = self.peers.of_endpoint(endpoint) {
                    self.lose(peer, Health::Left);
                }
            }
            PeerEvent::Failed(endpoint) => {
                if let Some(peer) = self.peers.of_endpoint(endpoint) {
                    self.lose(peer, Health::Failed);
                }
            }
            PeerEvent::Protocol(endpoint, error) => {
                tracing::error!("{error}");
                if let Some(peer) = endpoint.and_then(|endpoint| self.peers.of_endpoint(endpoint)) {
                    self.lose(peer, Health::Broken);
                }
            }
            _ => {}
        }
    }
}
