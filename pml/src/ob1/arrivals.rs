//! What arrives: packets and completions, from inside the transport's progress.
//!
//! Upcalls must not call the transport: what they want done there is [pending](super::pending), and done right after.

use tagwire_base::{Rank, Sequence};
use tagwire_transport::{AmHeader, Arrival, Outcome, Payload, PeerEvent, Token, Upcalls};
use zerocopy::{FromZeros, IntoBytes};

use super::coalesce;
use super::core::Core;
use super::credit::{Charged, Window};
use super::header::{ControlHeader, EnvelopeHeader, Kind, RendezvousBody};
use super::matcher::Arrived;
use super::peer::{Early, Health, PeerIndex, Stream};
use super::protocol::{Packet, Turn};
use super::protocols::{self, State, synchronous};
use super::unexpected::{Content, Unexpected};
use crate::service::Tokens;
use crate::slab::Handle;

/// How far ahead of its turn a packet may come.
const EARLY_WINDOW: i32 = 4096;

/// What is wrong with a peer that sent envelopes past its window.
const OVERRUN: &str = "more envelopes than it was granted";

/// What is wrong with bytes that no message lacks.
const NO_MESSAGE: &str = "bytes that belong to no message";

/// The packets that arrive, on their way to what they belong to.
struct Arrivals<'a> {
    core: &'a mut Core,
}

impl Arrivals<'_> {
    /// An envelope or more of a message, in its turn.
    fn sequenced(&mut self, kind: Kind, from: PeerIndex, header: AmHeader, payload: Payload<'_>) {
        let Some(header) = EnvelopeHeader::decode(kind, header) else {
            return self
                .core
                .broken(from, "a reserved tag, or flags of another version");
        };
        let open = self.core.lane.peers.get(from).map(|peer| peer.stream);
        if kind != Kind::BODY && open.is_some_and(|stream| stream != Stream::None) {
            return self.core.broken(from, "a message inside of another");
        }
        match kind {
            Kind::MATCH => self.charged_eager(from, header, payload.len(), payload, None),
            Kind::HEAD => self.charged_eager(from, header, header.length as usize, payload, None),
            Kind::BODY => self.more(from, payload),
            Kind::SYNC => match synchronous::split(payload) {
                Some((sender, data)) => {
                    self.charged_eager(from, header, data.len(), data, Some(sender));
                }
                None => self
                    .core
                    .broken(from, "a synchronous message without a handle"),
            },
            _ => self.envelope(from, header, payload),
        }
    }

    /// A whole eager message that comes in its turn, within what its sender was granted: what
    /// most messages are. Returns whether it was one.
    #[inline(always)]
    fn deliver_plain(&mut self, arrival: &Arrival<'_>) -> bool {
        let AmHeader([word, rest]) = arrival.header;
        let Some((index, peer)) = self.core.lane.peers.at_endpoint(arrival.from) else {
            return false;
        };
        let length = arrival.payload.len();
        let left = peer.account.granted.after(length);
        // The kind, and no flags.
        if word as u16 != Kind::MATCH.as_byte() as u16
            || (rest >> 32) as u32 != peer.next_in.as_u32()
            || !peer.plain
            || !peer.account.unsettled
            || left.is_below(self.core.budget.refill_below())
        {
            return false;
        }
        let Some(header) = EnvelopeHeader::decode(Kind::MATCH, arrival.header) else {
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
        let charged = self.core.charge(from, total);
        if payload.len() > total || charged == Charged::Overdrawn {
            return self.core.broken(from, "more than it was granted");
        }
        let Some(peer) = self.core.lane.peers.get(from) else {
            return;
        };
        let taken = self.eager(from, peer.rank, header, total, payload, synchronous);
        if let Some(receive) = taken {
            self.core.settle_later(from, receive);
        }
        if charged == Charged::Low {
            self.core.refill(from);
        }
    }

    /// Returns the same for a path that is seldom taken: the address of `self` is not, so that it stays in a register.
    #[inline(always)]
    const fn apart(&mut self) -> Arrivals<'_> {
        Arrivals { core: self.core }
    }

    /// Matches an eager message, or its first packet, and takes its bytes. Returns the receive that took it, where one did.
    #[inline(always)]
    fn eager(
        &mut self,
        from: PeerIndex,
        source: Rank,
        header: EnvelopeHeader,
        total: usize,
        payload: Payload<'_>,
        synchronous: Option<Handle>,
    ) -> Option<Handle> {
        let mut taken = None;
        match self.core.matcher.arrive(header.envelope(source), total) {
            Arrived::Matched(slot) => {
                let (receive, request) = self.core.requests.at_mut(slot)?;
                taken = Some(receive);
                if payload.len() == total {
                    request.take_whole(from, source, header.tag, payload);
                } else {
                    request.common.matched(from, source, header.tag, total);
                    request.common.write(0, payload);
                    request.state = State::STREAMING;
                    let offset = payload.len();
                    self.apart().set_stream(
                        from,
                        Stream::Request {
                            receive,
                            offset,
                            total,
                        },
                    );
                }
                if let Some(sender) = synchronous {
                    self.core.pending.say(from, Kind::MATCHED, sender);
                }
            }
            Arrived::Unexpected(queued) => {
                self.apart()
                    .keep(from, queued, header, total, payload, synchronous);
            }
            Arrived::Full => self.core.broken(from, OVERRUN),
        }
        taken
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
        self.core.budget.keep(total);
        let offset = payload.len();
        let made = || Unexpected {
            peer: from,
            tag: header.tag,
            context: header.context,
            length: total,
            charged: total,
            queued: Some(queued),
            synchronous,
            content: Content::room(total, offset),
        };
        let message = self.core.matcher.keep_made(made, payload);
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
        if let Some(peer) = self.core.lane.peers.get_mut(from) {
            peer.stream = stream;
            peer.refresh_clear();
        }
    }

    /// More bytes of the eager message that `from` has begun.
    fn more(&mut self, from: PeerIndex, payload: Payload<'_>) {
        let Some(mut stream) = self.core.lane.peers.get(from).map(|peer| peer.stream) else {
            return;
        };
        let (Stream::Request { offset, total, .. } | Stream::Unexpected { offset, total, .. }) =
            &mut stream
        else {
            return self.core.broken(from, NO_MESSAGE);
        };
        let start = *offset;
        if payload.len() > *total - start {
            return self.core.broken(from, NO_MESSAGE);
        }
        *offset += payload.len();
        let whole = *offset == *total;
        self.set_stream(from, if whole { Stream::None } else { stream });
        match stream {
            Stream::Request { receive, .. } => {
                if let Some(request) = self.core.requests.get_mut(receive) {
                    request.common.write(start, payload);
                    if whole {
                        self.core.finish(receive, None);
                    }
                }
            }
            Stream::Unexpected { message, .. } => self.core.matcher.add(message, start, payload),
            Stream::None => {}
        }
    }

    /// The envelope of a message that stays with its sender until matched.
    fn envelope(&mut self, from: PeerIndex, header: EnvelopeHeader, payload: Payload<'_>) {
        let mut body = RendezvousBody::new_zeroed();
        if !payload.read_into(body.as_mut_bytes()) || usize::try_from(body.length).is_err() {
            return self.core.broken(from, "an envelope that is cut short");
        }
        match header.kind {
            Kind::PULLED => self.pulled(from, header, &body),
            Kind::PEEKED => self.peeked(from, header, &body),
            kind => {
                let rest = payload.slice(size_of::<RendezvousBody>()..payload.len());
                match State::announced(kind, &body, rest) {
                    Some(state) => self.announced(from, header, body.length as usize, state),
                    None => self
                        .core
                        .broken(from, "an envelope of no known kind, or with half a key"),
                }
            }
        }
    }

    /// Matches the envelope of a message; `state` is that of the receive that takes it.
    fn announced(&mut self, from: PeerIndex, header: EnvelopeHeader, length: usize, state: State) {
        let charged = self.core.charge(from, 0);
        if charged == Charged::Overdrawn {
            return self.core.broken(from, OVERRUN);
        }
        let Some(peer) = self.core.lane.peers.get(from) else {
            return;
        };
        // One that this rank cannot send to any more may still send: its messages cannot be fetched.
        let (source, gone) = (peer.rank, peer.failure());
        match self.core.matcher.arrive(header.envelope(source), length) {
            Arrived::Matched(slot) => {
                if let Some((receive, request)) = self.core.requests.at_mut(slot) {
                    request.common.matched(from, source, header.tag, length);
                    self.core.settle_later(from, receive);
                    match gone {
                        None => self.core.fetch(receive, state),
                        gone => self.core.finish(receive, gone),
                    }
                }
            }
            Arrived::Unexpected(queued) => {
                self.core.budget.keep(0);
                self.core.matcher.keep(Unexpected {
                    peer: from,
                    tag: header.tag,
                    context: header.context,
                    length,
                    charged: 0,
                    queued: Some(queued),
                    synchronous: None,
                    content: Content::Announced(state),
                });
            }
            Arrived::Full => self.core.broken(from, OVERRUN),
        }
        if charged == Charged::Low {
            self.core.refill(from);
        }
    }

    /// An envelope that a receive of ours pulled out of its sender's queue.
    fn pulled(&mut self, from: PeerIndex, header: EnvelopeHeader, body: &RendezvousBody) {
        let sender = Handle::from_wire(body.sender);
        let receive = Handle::from_wire(body.receiver);
        let source = self.core.lane.peers.get(from).map(|peer| peer.rank);
        let wants = self.core.requests.get(receive).is_some_and(|request| {
            let common = &request.common;
            request.place().is_some()
                && common.context == header.context
                && common.tag.accepts(header.tag)
                && source.is_some_and(|source| common.from.accepts(source))
        });
        let Some(source) = source.filter(|_| wants) else {
            // Another message was faster: this one goes back to its place in the order.
            return self.core.pending.say(from, Kind::PULL_RETURNED, sender);
        };
        // A receive that was posted before may take this message too, where the wishes of the two changed places on
        // their way: `receive` accepts it, so that whoever else is expected was posted before.
        if self.core.matcher.expects(header.envelope(source)) != Some(receive.slot()) {
            // Its wish is on the way, and may be for something before this.
            self.core.pending.say(from, Kind::PULL_RETURNED, sender);
            return self.core.held().pull(from, receive);
        }
        let taken = self.core.matcher.take_expected(header.envelope(source));
        debug_assert_eq!(taken, Some(receive.slot()), "nothing came between");
        self.core.settle_later(from, receive);
        self.core.pending.say(from, Kind::PULL_TAKEN, sender);
        if let Some(request) = self.core.requests.get_mut(receive) {
            let length = body.length as usize;
            request.common.matched(from, source, header.tag, length);
        }
        self.core.fetch(receive, State::ask(sender));
    }

    /// An envelope that a peer shows.
    fn peeked(&mut self, from: PeerIndex, header: EnvelopeHeader, body: &RendezvousBody) {
        let Some(source) = self.core.lane.peers.get(from).map(|peer| peer.rank) else {
            return;
        };
        // A receive that was posted meanwhile comes first, and has asked for itself.
        let wanted = self.core.matcher.expects(header.envelope(source)).is_some();
        self.core.held().peeked(from, header, body, wanted);
    }

    /// A packet that is anything but a plain message.
    #[inline(never)]
    fn deliver_other(&mut self, arrival: &Arrival<'_>) {
        let (header, payload) = (arrival.header, arrival.payload);
        let Some(index) = self.core.lane.peers.of_endpoint(arrival.from) else {
            return;
        };
        let Some(peer) = self.core.lane.peers.get_mut(index) else {
            return;
        };
        if peer.health == Health::Broken {
            return;
        }
        let kind = Kind::of(header);
        if !kind.is_sequenced() {
            return match kind {
                Kind::BATCH => self.take_apart(index, arrival),
                _ => self.control(index, ControlHeader::decode(kind, header), payload),
            };
        }
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

    /// Takes the messages of a batch as if they had come one by one.
    fn take_apart(&mut self, from: PeerIndex, arrival: &Arrival<'_>) {
        for message in coalesce::messages(arrival) {
            match message {
                Ok(message) if self.deliver_plain(&message) => {}
                Ok(message) => self.deliver_other(&message),
                Err(what) => self.core.broken(from, what),
            }
            let peer = self.core.lane.peers.get(from);
            if peer.is_none_or(|peer| peer.health == Health::Broken) {
                return;
            }
        }
    }

    /// A control packet.
    #[cold]
    fn control(&mut self, from: PeerIndex, header: ControlHeader, payload: Payload<'_>) {
        let taken = match header.kind {
            Kind::CREDIT => {
                self.credited(from, Window::unpack(header.argument));
                Ok(())
            }
            Kind::EXPOSE => self.core.exposed(from, header, payload),
            Kind::PULL => self.core.held().wish(from, header, payload),
            Kind::PEEK => self.core.held().question(from, payload),
            Kind::PULL_TAKEN | Kind::PULL_RETURNED => self.core.held().answered(from, header),
            kind if protocols::is_known(kind) => self.about_operation(from, header, payload),
            _ => self.core.lane.packet(from, header, payload),
        };
        if let Err(what) = taken {
            self.core.broken(from, what);
        }
    }

    /// A peer grants more.
    fn credited(&mut self, from: PeerIndex, grant: Window) {
        if let Some(peer) = self.core.lane.peers.get_mut(from) {
            peer.credit.add(grant);
            if !peer.queue.is_empty() {
                self.core.flush_later(from);
            }
        }
    }

    /// A peer says something of an operation of this rank.
    fn about_operation(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
    ) -> Result<(), &'static str> {
        let request = self.core.requests.get_mut(header.handle);
        let request = request.ok_or("an answer about an operation that is not there")?;
        if request.common.peer != from {
            return Err("an answer about an operation with another");
        }
        let queue = self.core.lane.peers.get(from).map(|peer| &peer.queue);
        if queue.and_then(|queue| queue.front()) == Some(&header.handle) {
            return Err("an answer to an envelope that is not out");
        }
        let packet = Packet {
            kind: header.kind,
            argument: header.argument,
            payload,
        };
        let mut turn = Turn {
            handle: header.handle,
            pending: &mut self.core.pending,
        };
        let step = request
            .state
            .on_packet(&mut request.common, packet, &mut turn)
            .ok_or("an answer about an operation that is not under way")?;
        self.core.apply(header.handle, step);
        Ok(())
    }

    /// A packet before its turn is kept; one that came twice, or from far ahead, is an error.
    #[cold]
    fn out_of_turn(&mut self, from: PeerIndex, header: AmHeader, payload: Payload<'_>) {
        let Some(peer) = self.core.lane.peers.get_mut(from) else {
            return;
        };
        let sequence = Sequence::new((header.0[1] >> 32) as u32);
        let ahead = sequence.distance_from(peer.next_in);
        if !(1..EARLY_WINDOW).contains(&ahead) || peer.early.contains_key(&sequence.as_u32()) {
            return self.core.broken(from, "a packet out of sequence");
        }
        let payload = payload.to_vec().into_boxed_slice();
        peer.early
            .insert(sequence.as_u32(), Early { header, payload });
        peer.refresh_clear();
    }

    /// Processes the early packets whose turn has come.
    #[cold]
    fn catch_up(&mut self, from: PeerIndex) {
        while let Some(peer) = self.core.lane.peers.get_mut(from)
            && let Some(early) = peer.early.remove(&peer.next_in.as_u32())
        {
            peer.next_in = peer.next_in.next();
            peer.refresh_clear();
            let payload = Payload::from_slice(&early.payload);
            self.sequenced(Kind::of(early.header), from, early.header, payload);
        }
    }
}

impl Core {
    /// The transport has done with the buffer of an operation.
    pub(super) fn done(&mut self, handle: Handle, outcome: Outcome) {
        let Some(request) = self.requests.get_mut(handle) else {
            debug_assert!(false, "an operation with an open token is there");
            return;
        };
        let peer = self.lane.peers.get_mut(request.common.peer);
        let gone = peer.and_then(|peer| {
            peer.fails |= outcome == Outcome::PeerFailed;
            peer.failure()
        });
        let mut turn = Turn {
            handle,
            pending: &mut self.pending,
        };
        let step = request
            .state
            .on_complete(&mut request.common, outcome, gone, &mut turn);
        self.apply(handle, step);
    }
}

impl Upcalls for Core {
    #[inline(always)]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        if !(Arrivals { core: self }).deliver_plain(&arrival) {
            Arrivals { core: self }.deliver_other(&arrival);
        }
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        if Tokens::are_of(token) {
            return self.lane.complete(token, outcome);
        }
        let (handle, outcome) = match Self::exposed_of(token) {
            None => (Handle::from_wire(token.0), outcome),
            Some(receive) => match self.note_filled(receive, outcome) {
                Some(outcome) => (receive, outcome),
                None => return,
            },
        };
        self.done(handle, outcome);
    }

    fn notice(&mut self, immediate: u64) {
        if let Err((peer, what)) = self.lane.notice(immediate) {
            self.broken(peer, what);
        }
    }

    fn peer(&mut self, event: PeerEvent) {
        let (endpoint, health) = match event {
            PeerEvent::Up { endpoint, rank } => {
                let index = self.lane.peers.enter(rank, endpoint);
                if let Some(peer) = self.lane.peers.get_mut(index) {
                    let alive = peer.health == Health::Alive;
                    self.budget.open(&mut peer.account, alive);
                }
                return;
            }
            PeerEvent::Left(endpoint) => (Some(endpoint), Health::Left),
            PeerEvent::Failed(endpoint) => (Some(endpoint), Health::Failed),
            PeerEvent::Protocol(endpoint, error) => {
                self.lane.offences.log(endpoint, &error);
                (endpoint, Health::Broken)
            }
            _ => return,
        };
        let peers = &self.lane.peers;
        if let Some(peer) = endpoint.and_then(|endpoint| peers.of_endpoint(endpoint)) {
            self.lose(peer, health);
        }
    }
}
