//! The transport that matches: tagged messages.
//!
//! ```text
//!   short, within the allowance                 others
//!   send ── tagged message ──> receive          send ── empty tagged message ──> receive
//!   Done                       Matched          Open                               │ matched
//!                                                    <──── grant: where, how much ─┘
//!                                                    ── the bytes ──> waiting receive
//!                                               Done                  Matched
//! ```
//!
//! The provider matches, in the order of both. What it is not trusted with: directed receives
//! (the source rides in the tag), truncation (what does not fit goes to a place for waste, and of
//! long messages only what fits is asked for), bounds for unexpected messages, and the news that a
//! message has matched. A claim is a look, and then a receive of just what was seen.

mod incoming;
mod lengths;
mod outgoing;
mod receive;
mod rooms;
mod send;
mod sweep;
mod table;
mod tags;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::bootstrap::Bootstrap;
use tagwire_base::{Error as BaseError, Rank};
use tagwire_transport::flow::{Count, Flows};
use tagwire_transport::{
    AmHeader, Arrival, Cancel, Capabilities, ClaimId, Directed, EndpointId, Lane, MatchCounts,
    MatchEnvelope, MatchLevels, MatchLimits, MatchPattern, MatchRemote, MatchTransport,
    MatchUpcalls, Outcome, PeerEvent, Posted, Probed, RecvBuffer, Refusal, Result, SendBuffer,
    Sent, Token, Transport, WaitObject, Waiter,
};

use crate::NAME;
use crate::byte::Ofi;
use crate::config::OfiOptions;
use crate::engine::{MAX_WIRE, Sink};
use crate::error::Failure;
use crate::fabric::{BlockId, Completion, Fault};
use crate::open::Use;
use incoming::Incoming;
use lengths::Lengths;
use outgoing::Outgoing;
use rooms::Rooms;
use table::Table;
use tags::{Asks, Tags};

/// What is told, once the engine is done with its turn.
#[derive(Debug)]
enum Happening {
    End(u32, std::result::Result<Completion, Fault>),
    Control(EndpointId, Control),
    Packet(EndpointId, AmHeader, Vec<u8>),
    Complete(Token, Outcome),
    Notice(u64),
    Peer(PeerEvent),
}

/// A message from transport to transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// The message has matched: so many of its bytes are waited for by that receive.
    Grant {
        number: u32,
        receive: u64,
        granted: u64,
    },
    /// So much of what was sent at once has matched.
    Matched(Count),
    /// How long an announced message is, where its announcement cannot say it.
    Length { number: u32, length: u64 },
    /// None of ours.
    Nonsense,
}

impl Control {
    /// Which one it is: the highest byte of the first word, which is 0 in packets of the layer above.
    const GRANT: u64 = 1 << 56;
    const MATCHED: u64 = 2 << 56;
    const LENGTH: u64 = 3 << 56;
    const KINDS: u64 = 0xff << 56;

    fn encode(self) -> (AmHeader, [u8; 8]) {
        match self {
            Self::Grant {
                number,
                receive,
                granted,
            } => (
                AmHeader([Self::GRANT | u64::from(number), receive]),
                granted.to_le_bytes(),
            ),
            Self::Matched(count) => (
                AmHeader([Self::MATCHED | count.messages, count.bytes]),
                [0; 8],
            ),
            Self::Length { number, length } => {
                let first = Self::LENGTH | u64::from(number);
                (AmHeader([first, length]), [0; 8])
            }
            Self::Nonsense => (AmHeader([0, 0]), [0; 8]),
        }
    }

    fn decode(arrival: &Arrival<'_>) -> Self {
        let [first, second] = arrival.header.0;
        let mut granted = [0; 8];
        if !arrival.payload.read_into(&mut granted) {
            return Self::Nonsense;
        }
        match first & Self::KINDS {
            Self::GRANT => Self::Grant {
                number: first as u32,
                receive: second,
                granted: u64::from_le_bytes(granted),
            },
            Self::MATCHED => Self::Matched(Count {
                messages: first & !Self::KINDS,
                bytes: second,
            }),
            Self::LENGTH => Self::Length {
                number: first as u32,
                length: second,
            },
            _ => Self::Nonsense,
        }
    }
}

/// What could not be done for want of room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    Control(EndpointId, Control),
    /// The bytes of this send were asked for.
    Bytes(u32),
    /// This receive is to be given to the provider, as what it is now.
    Receive(u32),
}

/// One rank's access to a provider that matches.
#[derive(Debug)]
pub struct OfiMatch {
    /// What it is without matching: peers, packets, and access to memory.
    bytes: Ofi,
    tags: Tags,
    asks: Asks,
    lengths: Lengths,
    size: u32,
    flows: Flows,
    incoming: Table<Incoming>,
    outgoing: Table<Outgoing>,
    happenings: Vec<Happening>,
    /// The room of those that were told last.
    spare: Vec<Happening>,
    owed: VecDeque<Owed>,
    rooms: Rooms,
    /// Where goes what does not fit.
    waste: BlockId,
    /// Claims of which the message is not had yet: no receive is posted meanwhile.
    claiming: u32,
    fetched: u64,
}

impl OfiMatch {
    /// Opens the provider that `options` name.
    ///
    /// # Errors
    /// When there is no such library or provider, or it cannot do what is needed.
    pub fn open(options: &OfiOptions, bootstrap: &dyn Bootstrap) -> Result<Self> {
        let mut bytes = Ofi::open_for(options, bootstrap, Use::Matching)?;
        let engine = &mut bytes.engine;
        let name = engine.peers.net.provider().name();
        let width = engine.peers.net.provider().immediate_width();
        if width < Asks::NEEDED {
            let failure = Failure::new(&name, "matching", "it has no 4 bytes of completion data");
            return Err(BaseError::from(failure).into());
        }
        let width = if options.little_data {
            Asks::NEEDED
        } else {
            width
        };
        let short = MAX_WIRE;
        let longest = short.max(engine.peers.max_lent());
        let waste = engine.peers.net.allocate(longest).map_err(|code| {
            let reason = engine.peers.net.library().describe(code);
            BaseError::from(Failure::new(&name, "memory for messages", &reason))
        })?;
        let size = bootstrap.size();
        let share = |total: usize| (total / size.max(1) as usize) as u64;
        let allowance = Count {
            messages: share(options.unexpected_messages),
            bytes: share(options.unexpected_bytes),
        };
        let untold = Count {
            messages: allowance.messages / 4,
            bytes: allowance.bytes / 4,
        };
        Ok(Self {
            tags: Tags::new(size),
            asks: Asks::new(width),
            lengths: Lengths::default(),
            size,
            flows: Flows::new(allowance, untold),
            incoming: Table::default(),
            outgoing: Table::default(),
            happenings: Vec::new(),
            spare: Vec::new(),
            owed: VecDeque::new(),
            rooms: Rooms::new(short, longest),
            waste,
            claiming: 0,
            fetched: 0,
            bytes,
        })
    }

    /// Sends a word to a peer, or keeps it until there is room.
    fn owe(&mut self, to: EndpointId, control: Control) {
        // A count must not overtake an earlier one, and says all that the earlier one does.
        if let Control::Matched(_) = control {
            let is_count = |owed: &&mut Owed| matches!(owed, Owed::Control(one, Control::Matched(_)) if *one == to);
            if let Some(earlier) = self.owed.iter_mut().find(is_count) {
                *earlier = Owed::Control(to, control);
                return;
            }
        }
        if !self.tell_peer(to, control) {
            self.owed.push_back(Owed::Control(to, control));
        }
    }

    /// Sends a word to a peer; returns whether that is done with.
    fn tell_peer(&mut self, to: EndpointId, control: Control) -> bool {
        use tagwire_transport::{Class, Post};
        let link = &self.bytes.engine.peers.links[to];
        if link.peer.is_none() && !link.closed {
            // Its hello is on the way.
            return false;
        }
        let (header, payload) = control.encode();
        self.bytes
            .engine
            .peers
            .post(to, Class::Control, header, &payload)
            != Post::Busy
    }

    /// Does what there was no room for.
    #[cold]
    fn pay(&mut self, upcalls: &mut dyn MatchUpcalls) {
        for _ in 0..self.owed.len() {
            let Some(owed) = self.owed.pop_front() else {
                break;
            };
            let done = match owed {
                Owed::Control(to, control) => self.tell_peer(to, control),
                Owed::Bytes(slot) => self.send_bytes(slot),
                Owed::Receive(slot) if self.bytes.engine.peers.is_broken() => {
                    self.end_unposted(slot, upcalls);
                    true
                }
                Owed::Receive(slot) => self.give_receive(slot),
            };
            if !done {
                self.owed.push_back(owed);
            }
        }
    }

    /// Deals with what the engine told.
    fn settle(&mut self, upcalls: &mut dyn MatchUpcalls) {
        while !self.happenings.is_empty() {
            let mut happenings =
                std::mem::replace(&mut self.happenings, std::mem::take(&mut self.spare));
            for happening in happenings.drain(..) {
                self.happen(happening, upcalls);
            }
            self.spare = happenings;
        }
        if !self.owed.is_empty() {
            self.pay(upcalls);
        }
        self.bytes.engine.set_restless(!self.owed.is_empty());
    }

    #[inline]
    fn happen(&mut self, happening: Happening, upcalls: &mut dyn MatchUpcalls) {
        match happening {
            Happening::End(number, end) if number & 1 == 0 => {
                self.end_incoming(number >> 1, end, upcalls);
            }
            Happening::End(number, end) => {
                self.end_outgoing(number >> 1, end.is_ok(), upcalls);
            }
            Happening::Control(from, control) => self.heed(from, control, upcalls),
            Happening::Packet(from, header, bytes) => {
                upcalls.packet(Arrival::kept(from, header, &bytes))
            }
            Happening::Complete(token, outcome) => upcalls.complete(token, outcome),
            Happening::Notice(immediate) => upcalls.notice(immediate),
            Happening::Peer(event) => self.tell_of_peer(event, upcalls),
        }
    }

    fn heed(&mut self, from: EndpointId, control: Control, upcalls: &mut dyn MatchUpcalls) {
        if self.bytes.engine.peers.links[from].closed {
            return;
        }
        let good = match control {
            Control::Grant {
                number,
                receive,
                granted,
            } => self.grant(from, number, receive, granted, upcalls),
            Control::Matched(count) => self.flows.note_matched(from, count),
            Control::Length { number, length } => self.note_length(from, (number, length), upcalls),
            Control::Nonsense => false,
        };
        if !good {
            let mut told = Collect(&mut self.happenings);
            self.bytes
                .engine
                .break_off(from, "a word that fits nothing", &mut told);
        }
    }

    /// Tells of a peer, then ends what depends on it.
    fn tell_of_peer(&mut self, event: PeerEvent, upcalls: &mut dyn MatchUpcalls) {
        let gone = match &event {
            PeerEvent::Left(endpoint)
            | PeerEvent::Failed(endpoint)
            | PeerEvent::Protocol(Some(endpoint), _) => Some(*endpoint),
            _ => None,
        };
        if let Some(endpoint) = gone {
            self.sweep(endpoint);
        }
        upcalls.peer(event);
        if let Some(endpoint) = gone {
            self.owed
                .retain(|owed| !matches!(owed, Owed::Control(to, _) if *to == endpoint));
            self.bury_sends(endpoint, upcalls);
            self.bury_receives(endpoint, upcalls);
            self.bury_lengths(endpoint, upcalls);
        }
    }

    /// Why a receive or probe of `pattern` is refused, if so.
    fn check(&self, pattern: &MatchPattern) -> Option<Refusal> {
        if (pattern.bits | pattern.ignore) & !self.tags.user() != 0 {
            return Some(Refusal::ReservedBits);
        }
        let source = pattern.source.map(Rank::as_u32);
        let stranger = source >= Some(self.size);
        stranger.then_some(Refusal::Unknown)
    }
}

impl Transport for OfiMatch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        // These are those of `remote`.
        let bytes =
            Capabilities::ZERO_COPY | Capabilities::PUT | Capabilities::GET | Capabilities::NOTICE;
        (self.bytes.capabilities() - bytes) | Capabilities::LOOPBACK
    }

    fn address(&self) -> Vec<u8> {
        self.bytes.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        self.bytes.connect(peer, address)
    }

    fn leave(&mut self) {
        self.bytes.leave();
    }

    fn has_left(&self) -> bool {
        self.bytes.has_left()
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.bytes.waiter()
    }

    fn describe(&self, out: &mut dyn Write) {
        self.bytes.describe(out);
        let levels = self.levels();
        // Whoever writes a dump has nobody to tell that it fails.
        let _ = writeln!(
            out,
            "ofi: {} receives posted, {} sends announced, {} things owed",
            levels.posted,
            levels.held,
            self.owed.len()
        );
    }
}

impl MatchTransport for OfiMatch {
    fn match_limits(&self) -> MatchLimits {
        let mut limits = MatchLimits::UNLIMITED;
        limits.bits = self.tags.user();
        limits.ignorable = self.tags.user();
        limits.directed = Directed::BySource;
        limits.max_message = tags::MAX_MESSAGE;
        limits.max_short = self.rooms.short;
        limits.memory_per_peer = self.bytes.engine.peers.window() as usize * MAX_WIRE;
        if self.bytes.engine.waiter().sees_arrivals() {
            limits.wait_object = WaitObject::Descriptor;
        }
        limits
    }

    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        self.start_send(to, bits, data, synchronous, token)
    }

    fn post(
        &mut self,
        _lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        self.start_receive(&pattern, data, token)
    }

    fn probe(&mut self, _lane: Lane, pattern: MatchPattern, claim: bool, token: Token) -> Probed {
        self.look(&pattern, claim, token)
    }

    fn receive_claimed(
        &mut self,
        _lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        self.take_claimed(claim, data, token)
    }

    fn cancel(&mut self, _lane: Lane, token: Token) -> Cancel {
        self.cancel_receive(token)
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize {
        let told = self
            .bytes
            .engine
            .progress(&mut Collect(&mut self.happenings));
        if told > 0 || !self.owed.is_empty() {
            self.settle(upcalls);
        }
        told
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls) {
        self.progress(Lane(0), upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, _upcalls: &mut dyn MatchUpcalls) {
        self.bytes.engine.peer_failed(rank);
    }

    fn remote(&mut self) -> Option<&mut dyn MatchRemote> {
        Some(&mut self.bytes)
    }

    fn unfinished(&self) -> usize {
        self.owed.len()
    }

    fn levels(&self) -> MatchLevels {
        let is_posted = |incoming: &Incoming| matches!(incoming, Incoming::Posted { .. });
        let is_held = |outgoing: &Outgoing| matches!(outgoing, Outgoing::Announced { .. });
        MatchLevels {
            posted: self
                .incoming
                .iter()
                .filter(|(_, one)| is_posted(one))
                .count(),
            held: self.outgoing.iter().filter(|(_, one)| is_held(one)).count(),
            // What the provider keeps it does not show.
            ..MatchLevels::default()
        }
    }

    fn counts(&self) -> MatchCounts {
        MatchCounts::of_library(self.fetched)
    }

    /// The provider keeps them, and shows none.
    fn visit_unexpected(&self, _visit: &mut dyn FnMut(&MatchEnvelope)) {}
}

impl Drop for OfiMatch {
    fn drop(&mut self) {
        let receives = self.incoming.iter().any(|(_, one)| one.moves());
        if receives || self.outgoing.iter().any(|(_, one)| one.moves()) {
            self.bytes.engine.set_mid_transfer();
        }
    }
}

/// Takes note of what the engine reports, in its order.
struct Collect<'a>(&'a mut Vec<Happening>);

impl Sink for Collect<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let (from, header) = (arrival.from, arrival.header);
        self.0.push(match header.0[0] & Control::KINDS {
            0 => Happening::Packet(from, header, arrival.payload.to_vec()),
            _ => Happening::Control(from, Control::decode(&arrival)),
        });
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.0.push(Happening::Complete(token, outcome));
    }

    fn notice(&mut self, immediate: u64) {
        self.0.push(Happening::Notice(immediate));
    }

    fn peer(&mut self, event: PeerEvent) {
        self.0.push(Happening::Peer(event));
    }

    fn tagged(&mut self, number: u32, end: std::result::Result<Completion, Fault>) {
        self.0.push(Happening::End(number, end));
    }
}
