//! The bare transport: active messages with a fixed header and no matching.
//!
//! Message number k from a peer belongs to the k-th receive that was posted for it; tags are not
//! looked at. What ob1 does below matching is done here too: a short message is one active
//! message, without a copy where the transport can; a longer one is offered for a cooperative transfer
//! where the transport has that, else it is read by its receiver where the transport has gets, and goes in
//! parts where it has neither, where the kernel forbids it, or up to the length for which it prefers that.
//! Memory stays registered, once it was.
//!
//! ```text
//!   header word 0: kind (8 bits), message number (56)     word 1: length of the whole message
//!   Whole  bytes          the message
//!   Part   bytes          the next bytes of the message
//!   Offer  ticket         to be claimed
//!   Read   address, key   to be read
//!   Got    -              it was read
//!   Refuse -              the offer cannot be claimed or read: send parts
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Bootstrap, Config, Rank, Tag};
use tagwire_pml::{WaitMode, WaitPolicy};
use tagwire_transport::{
    Allocation, AmHeader, Arrival, ByteTransport, Capabilities, Class, EndpointId, Lane, Outcome,
    PeerEvent, Post, Ticket, Token, Upcalls, Waiter,
};

use super::rail::{Connected, connect};
use super::{Endpoint, Port, peer_gone};
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};

mod long;
mod remote;

const LANE: Lane = Lane(0);
/// After how many empty polls peers are looked after.
const LOOK_AFTER: u32 = 1 << 14;

/// A rank's bare transport, connected to every other rank.
pub(crate) struct RawPort {
    rank: Rank,
    size: u32,
    driver: RefCell<Driver>,
    waiter: Arc<dyn Waiter>,
    policy: WaitPolicy,
}

struct Driver {
    rail: Box<dyn ByteTransport>,
    /// Endpoints by rank; none for this one.
    endpoints: Vec<Option<EndpointId>>,
    /// The longest message that is sent in one piece.
    longest: usize,
    cooperative: bool,
    /// Messages are sent without a copy from this length to that one.
    lent: RangeInclusive<usize>,
    /// Messages are read by their receivers from this length on: shorter ones are out before the word of
    /// them would get a reply.
    read_from: usize,
    /// What peers may read, for good.
    exposed: Vec<long::Exposed>,
    core: Core,
}

/// What upcalls change.
#[derive(Default)]
struct Core {
    peers: Vec<Peer>,
    /// Offers under way; the first has number `first_offer`.
    offers: VecDeque<OpenOffer>,
    first_offer: u64,
    /// What upcalls want the transport to do.
    pending: VecDeque<Pending>,
    remote: remote::Remote,
    failure: Option<Error>,
}

/// What is known of an endpoint's other side.
#[derive(Default)]
struct Peer {
    rank: Option<Rank>,
    next_sent: u64,
    /// Receives that are not over; the first is for message number `first`.
    receives: VecDeque<Receive>,
    first: u64,
    /// Messages for which no receive is posted yet, following those of `receives`.
    early: VecDeque<Early>,
}

struct Receive {
    data: Incoming,
    filled: usize,
    is_done: bool,
    /// Its sender is to be told that it was read.
    is_read: bool,
}

#[derive(Default)]
struct Early {
    bytes: Vec<u8>,
    length: usize,
    source: Option<Source>,
}

/// Where the bytes of a long message are to be had.
enum Source {
    Offered(Ticket),
    Exposed { address: u64, key: Box<[u8]> },
}

/// A send whose bytes are not out, or not there, yet.
struct OpenOffer {
    to: EndpointId,
    /// Of a cooperative transfer.
    ticket: Option<Ticket>,
    number: u64,
    data: Outgoing,
    is_done: bool,
}

enum Pending {
    Fetch {
        from: EndpointId,
        number: u64,
        length: usize,
        source: Source,
    },
    Say {
        to: EndpointId,
        kind: Kind,
        number: u64,
    },
    Withdraw {
        to: EndpointId,
        ticket: Ticket,
    },
    SendParts {
        offer: u64,
        done: usize,
    },
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    Done,
    Offer(u64),
    Receive { from: EndpointId, number: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Part,
    Offer,
    Refuse,
    Read,
    Got,
}

impl Kind {
    #[inline]
    const fn header(self, number: u64, length: usize) -> AmHeader {
        AmHeader([self as u64 | number << 8, length as u64])
    }

    #[inline]
    fn parse(header: AmHeader) -> Option<(Self, u64, usize)> {
        let kind = match header.0[0] & 0xff {
            0 => Self::Whole,
            1 => Self::Part,
            2 => Self::Offer,
            3 => Self::Refuse,
            4 => Self::Read,
            5 => Self::Got,
            _ => return None,
        };
        Some((kind, header.0[0] >> 8, usize::try_from(header.0[1]).ok()?))
    }
}

impl Drop for RawPort {
    #[inline]
    fn drop(&mut self) {
        // A rank that unwinds has failed.
        if !std::thread::panicking() {
            self.driver.get_mut().rail.leave();
        }
    }
}

impl RawPort {
    /// Opens the transport that `config` names and connects it to every other rank.
    #[inline]
    pub(crate) fn open(config: &Config, bootstrap: &mut SharedBootstrap) -> Result<Self> {
        let policy = WaitPolicy::from_config(config, bootstrap.locality().local_size);
        let check = |rail: &dyn ByteTransport| {
            let needed = Capabilities::ORDERED | Capabilities::RELIABLE;
            if rail.capabilities().contains(needed) {
                return Ok(());
            }
            Err(Error::Usage(format!(
                "--raw needs a reliable transport that keeps the order of messages; {} is not one",
                rail.name()
            )))
        };
        let Connected { rail, endpoints } = connect(config, bootstrap, check)?;
        let policy = policy.over(rail.capabilities());
        let (rank, size) = (bootstrap.rank(), bootstrap.size());
        let mut core = Core::default();
        for (peer, endpoint) in (0..).map(Rank::new).zip(&endpoints) {
            if let Some(endpoint) = *endpoint {
                core.peer(endpoint).rank = Some(peer);
            }
        }
        let waiter = rail.waiter();
        let (has, limits) = (|one| rail.capabilities().contains(one), rail.limits());
        let driver = Driver {
            longest: limits.max_send,
            cooperative: has(Capabilities::COOPERATIVE),
            lent: long::LEND_FROM..=limits.max_zero_copy,
            read_from: match endpoints.iter().flatten().next() {
                Some(&peer) if has(Capabilities::GET) => rail.preference(peer).eager + 1,
                _ => usize::MAX,
            },
            exposed: Vec::new(),
            rail,
            endpoints,
            core,
        };
        Ok(Self {
            rank,
            size,
            driver: RefCell::new(driver),
            waiter,
            policy,
        })
    }

    /// Makes progress until `done`.
    #[inline]
    fn wait(&self, done: impl Fn(&Core) -> bool) -> Result<()> {
        let mut idle = 0_u32;
        loop {
            let mut driver = self.driver.borrow_mut();
            if done(&driver.core) {
                return Ok(());
            }
            let events = driver.progress()?;
            if events > 0 {
                idle = 0;
                continue;
            }
            drop(driver);
            idle = idle.wrapping_add(1);
            if idle < self.policy.spins || self.policy.mode == WaitMode::Spin {
                if idle.is_multiple_of(LOOK_AFTER) {
                    self.driver.borrow_mut().look_after_peers();
                }
                std::hint::spin_loop();
            } else {
                self.pause(idle)?;
            }
        }
    }

    #[cold]
    fn pause(&self, idle: u32) -> Result<()> {
        if idle < self.policy.spins.saturating_add(self.policy.yields) {
            std::thread::yield_now();
            return Ok(());
        }
        self.driver.borrow_mut().look_after_peers();
        let key = self.waiter.arm();
        // What came before the arming is seen here; what comes after it wakes.
        match self.driver.borrow_mut().progress() {
            Ok(0) => self.waiter.sleep(key, self.policy.sleep),
            Ok(_) => self.waiter.disarm(),
            Err(error) => {
                self.waiter.disarm();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Repeats `post` until the transport takes it.
    #[inline]
    fn insist(&self, to: Rank, mut post: impl FnMut(&mut Driver) -> Post) -> Result<bool> {
        loop {
            let mut driver = self.driver.borrow_mut();
            match post(&mut driver) {
                Post::Posted => return Ok(true),
                Post::Unsupported => return Ok(false),
                Post::Gone => return Err(peer_gone(to)),
                Post::Busy => {
                    driver.progress()?;
                }
            }
        }
    }

    #[inline]
    fn endpoint(&self, rank: Rank) -> Result<EndpointId> {
        let endpoints = &self.driver.borrow().endpoints;
        let found = endpoints.get(rank.index()).copied().flatten();
        found.ok_or_else(|| Error::Peer(format!("no endpoint for rank {rank}")))
    }
}

impl Driver {
    #[inline]
    fn progress(&mut self) -> Result<usize> {
        let events = self.rail.progress(LANE, &mut self.core);
        if self.core.pending.is_empty() && self.core.failure.is_none() {
            return Ok(events);
        }
        self.work()?;
        Ok(events)
    }

    #[inline]
    fn look_after_peers(&mut self) {
        self.rail.look_after_peers(&mut self.core);
    }

    /// Does what upcalls have left to do; what finds no room stays.
    #[cold]
    fn work(&mut self) -> Result<()> {
        if let Some(error) = self.core.failure.take() {
            return Err(error);
        }
        for _ in 0..self.core.pending.len() {
            let Some(operation) = self.core.pending.pop_front() else {
                break;
            };
            if let Some(again) = self.attempt(operation) {
                self.core.pending.push_back(again);
            }
        }
        Ok(())
    }

    /// Tries a pending operation; returns what is left of it.
    #[inline]
    fn attempt(&mut self, operation: Pending) -> Option<Pending> {
        match operation {
            Pending::Fetch {
                from,
                number,
                length,
                source,
            } => self.fetch(from, number, length, source),
            Pending::Say { to, kind, number } => {
                let header = kind.header(number, 0);
                let sent = self.rail.send(LANE, to, Class::Control, header, &[]);
                (sent == Post::Busy).then_some(operation)
            }
            Pending::Withdraw { to, ticket } => {
                self.rail.withdraw(to, ticket);
                None
            }
            Pending::SendParts { offer, mut done } => {
                let open = self.core.offer(offer)?;
                let (to, number, data) = (open.to, open.number, open.data);
                while done < data.len() {
                    match self.send_part(to, number, data, done) {
                        Post::Posted => done += (data.len() - done).min(self.longest),
                        _ => return Some(Pending::SendParts { offer, done }),
                    }
                }
                self.core.finish_offer(offer);
                None
            }
        }
    }

    #[inline]
    fn send_part(&mut self, to: EndpointId, number: u64, data: Outgoing, done: usize) -> Post {
        let end = (done + self.longest).min(data.len());
        let header = Kind::Part.header(number, data.len());
        self.rail
            .send(LANE, to, Class::Data, header, &data.bytes()[done..end])
    }
}

/// Names a claim: odd, where offers are even.
#[inline]
const fn claim_token(from: EndpointId, number: u64) -> Token {
    Token(((from.0 as u64) << 40 | number) << 1 | 1)
}

impl Core {
    #[inline]
    fn peer(&mut self, endpoint: EndpointId) -> &mut Peer {
        let index = endpoint.index();
        if index >= self.peers.len() {
            self.peers.resize_with(index + 1, Peer::default);
        }
        &mut self.peers[index]
    }

    #[inline]
    fn number_sent(&mut self, to: EndpointId) -> u64 {
        let next = &mut self.peer(to).next_sent;
        *next += 1;
        *next - 1
    }

    #[inline]
    fn offer(&mut self, number: u64) -> Option<&mut OpenOffer> {
        let index = usize::try_from(number.checked_sub(self.first_offer)?).ok()?;
        self.offers.get_mut(index)
    }

    #[inline]
    fn finish_offer(&mut self, number: u64) {
        if let Some(offer) = self.offer(number) {
            offer.is_done = true;
        }
        while self.offers.front().is_some_and(|offer| offer.is_done) {
            self.offers.pop_front();
            self.first_offer += 1;
        }
    }

    #[inline]
    fn is_done(&self, request: Request) -> bool {
        match request {
            Request::Done => true,
            Request::Offer(number) => number
                .checked_sub(self.first_offer)
                .and_then(|index| self.offers.get(usize::try_from(index).ok()?))
                .is_none_or(|offer| offer.is_done),
            Request::Receive { from, number } => self.peers[from.index()].is_received(number),
        }
    }

    #[cold]
    fn fail(&mut self, from: EndpointId, reason: &str) {
        let rank = self
            .peer(from)
            .rank
            .map_or_else(|| "?".to_owned(), |rank| rank.to_string());
        self.failure
            .get_or_insert_with(|| Error::Peer(format!("rank {rank} {reason}")));
    }
}

impl Peer {
    #[inline]
    fn receive(&mut self, number: u64) -> Option<&mut Receive> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.receives.get_mut(index)
    }

    #[inline]
    fn is_received(&self, number: u64) -> bool {
        number
            .checked_sub(self.first)
            .and_then(|index| self.receives.get(usize::try_from(index).ok()?))
            .is_none_or(|receive| receive.is_done)
    }

    #[inline]
    fn retire(&mut self) {
        while self.receives.front().is_some_and(|receive| receive.is_done) {
            self.receives.pop_front();
            self.first += 1;
        }
    }

    /// The message `number`, for which no receive is posted yet.
    #[inline]
    fn early(&mut self, number: u64) -> Option<&mut Early> {
        let next = self.first + self.receives.len() as u64;
        let index = usize::try_from(number.checked_sub(next)?).ok()?;
        // Messages come in order: at most one that is not known yet.
        if index == self.early.len() {
            self.early.push_back(Early::default());
        }
        self.early.get_mut(index)
    }
}

impl Upcalls for Core {
    #[inline]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let Arrival {
            from,
            header,
            payload,
            ..
        } = arrival;
        let Some((kind, number, length)) = Kind::parse(header) else {
            self.fail(from, "sent a message of a kind that does not exist");
            return;
        };
        let source = match kind {
            Kind::Offer | Kind::Read => {
                let Some(source) = Source::parse(kind, payload) else {
                    self.fail(from, "offered a message without saying where");
                    return;
                };
                Some(source)
            }
            Kind::Refuse | Kind::Got => {
                self.answered(from, kind, number);
                return;
            }
            Kind::Whole | Kind::Part => None,
        };
        let peer = self.peer(from);
        if let Some(receive) = peer.receive(number) {
            if length > receive.data.len() || payload.len() > length - receive.filled.min(length) {
                self.fail(from, "sent more than the receive has room for");
            } else if let Some(source) = source {
                self.pending.push_back(Pending::Fetch {
                    from,
                    number,
                    length,
                    source,
                });
            } else {
                receive.data.buffer().write(receive.filled, payload);
                receive.filled += payload.len();
                receive.is_done = receive.filled == length;
                peer.retire();
            }
            return;
        }
        match peer.early(number) {
            Some(early) => {
                early.length = length;
                let has_bytes = source.is_none();
                early.source = source;
                if has_bytes {
                    let start = early.bytes.len();
                    early.bytes.resize(start + payload.len(), 0);
                    payload.copy_to_slice(&mut early.bytes[start..]);
                }
            }
            None => self.fail(from, "sent messages out of order"),
        }
    }

    #[inline]
    fn complete(&mut self, token: Token, outcome: Outcome) {
        if self.end_remote(token, &outcome) {
            return;
        }
        let number = token.0 >> 1;
        if token.0 & 1 == 0 {
            match outcome {
                Outcome::Done(_) => self.finish_offer(number),
                Outcome::Impossible | Outcome::Withdrawn => {
                    self.pending.push_back(Pending::SendParts {
                        offer: number,
                        done: 0,
                    });
                }
                _ => {
                    if let Some(to) = self.offer(number).map(|offer| offer.to) {
                        self.fail(to, "failed");
                    }
                }
            }
            return;
        }
        let from = EndpointId(u32::try_from(number >> 40).unwrap_or(u32::MAX));
        match outcome {
            Outcome::Done(_) => self.fetched(from, number & ((1 << 40) - 1)),
            Outcome::Impossible => self.not_fetched(from, number & ((1 << 40) - 1)),
            _ => self.fail(from, "failed"),
        }
    }

    #[inline]
    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => {
                Core::peer(self, endpoint).rank = Some(rank);
            }
            // A peer that has what it wants leaves while others still measure.
            PeerEvent::Left(_) => {}
            PeerEvent::Failed(endpoint) => self.fail(endpoint, "failed"),
            PeerEvent::Protocol(_, error) => {
                self.failure.get_or_insert_with(|| error.into());
            }
            _ => {}
        }
    }
}

impl Endpoint for RawPort {
    #[inline]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn allocate(&self, len: usize) -> Result<Option<Allocation>> {
        let driver = &mut *self.driver.borrow_mut();
        let memory = driver.rail.allocate(len);
        driver.cooperative |= memory.is_some();
        Ok(memory)
    }

    #[inline]
    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        match self.isend(data, to, tag)? {
            Request::Done => Ok(()),
            request => self.wait(|core| core.is_done(request)),
        }
    }

    #[inline]
    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        let request = self.irecv(data, from, tag)?;
        self.wait(|core| core.is_done(request))
    }
}

impl Port for RawPort {
    type Request = Request;

    #[inline]
    fn isend(&self, data: Outgoing, to: Rank, _: Tag) -> Result<Request> {
        let endpoint = self.endpoint(to)?;
        let (number, is_lent, longest) = {
            let driver = &mut *self.driver.borrow_mut();
            let number = driver.core.number_sent(endpoint);
            (number, driver.lent.contains(&data.len()), driver.longest)
        };
        if is_lent {
            return self.send_lent(to, endpoint, number, data);
        }
        if data.len() > longest {
            return self.send_long(to, endpoint, number, data);
        }
        let header = Kind::Whole.header(number, data.len());
        self.insist(to, |driver| {
            driver
                .rail
                .send(LANE, endpoint, Class::Data, header, data.bytes())
        })?;
        Ok(Request::Done)
    }

    #[inline]
    fn irecv(&self, data: Incoming, from: Rank, _: Tag) -> Result<Request> {
        let endpoint = self.endpoint(from)?;
        let mut driver = self.driver.borrow_mut();
        let core = &mut driver.core;
        let peer = core.peer(endpoint);
        let number = peer.first + peer.receives.len() as u64;
        let mut receive = Receive {
            data,
            filled: 0,
            is_done: false,
            is_read: false,
        };
        if let Some(early) = peer.early.pop_front() {
            if early.length > data.len() {
                core.fail(endpoint, "sent more than the receive has room for");
                return driver.work().map(|()| Request::Done);
            }
            let bytes = tagwire_transport::Payload::from_slice(&early.bytes);
            receive.data.buffer().write(0, bytes);
            receive.filled = early.bytes.len();
            receive.is_done = early.source.is_none() && receive.filled == early.length;
            if let Some(source) = early.source {
                core.pending.push_back(Pending::Fetch {
                    from: endpoint,
                    number,
                    length: early.length,
                    source,
                });
            }
        }
        let peer = core.peer(endpoint);
        peer.receives.push_back(receive);
        peer.retire();
        Ok(Request::Receive {
            from: endpoint,
            number,
        })
    }

    #[inline]
    fn wait_all(&self, requests: &mut Vec<Request>) -> Result<()> {
        for request in requests.drain(..) {
            self.wait(|core| core.is_done(request))?;
        }
        Ok(())
    }
}
