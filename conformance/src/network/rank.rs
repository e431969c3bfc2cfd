//! One rank of a memory network: its peers, and the verbs towards them.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::{
    Body, ByteTransport, Class, CooperativeTransfers, EpochWaiter, Offer, Post, RegistrationHandle,
    RemoteAccess, RemoteMemory, Ticket, Transport,
};

use super::progress::Event;
use super::state::{Message, State, Status};
use super::transfer::{Exposed, Transfer, Writable};
use super::{NAME, Shared};
use tagwire_transport::capability::{Capabilities, Limits, Ordering, WaitObject};
use tagwire_transport::data::{RecvBuffer, SendBuffer};
use tagwire_transport::error::{Error, Result};
use tagwire_transport::message::{AmHeader, EndpointId, Lane, Outcome, Token, Upcalls};
use tagwire_transport::wait::Waiter;

/// A peer, as this rank knows it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) rank: Rank,
    /// Where our messages go: the place in the peer's list of channels.
    outbound: Option<usize>,
    /// Its first contact was reported.
    pub(super) up: bool,
    /// Its end was reported: sends return `Gone`.
    pub(super) closed: bool,
}

/// One rank's access to a [`MemoryNetwork`](super::MemoryNetwork).
#[derive(Debug)]
pub struct MemoryTransport {
    pub(super) shared: Arc<Shared>,
    pub(super) rank: Rank,
    pub(super) links: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
    /// How many of our inbound channels have a link.
    pub(super) seen_channels: usize,
    /// What upcalls kept, by number.
    /// Collected under the lock, told without it.
    pub(super) events: Vec<Event>,
    waiter: Arc<EpochWaiter>,
    /// Dropping the object is a goodbye.
    leaving: bool,
}

impl MemoryTransport {
    pub(super) fn new(shared: Arc<Shared>, rank: Rank, waiter: Arc<EpochWaiter>) -> Self {
        Self {
            shared,
            rank,
            links: Vec::new(),
            by_rank: HashMap::new(),
            seen_channels: 0,
            events: Vec::new(),
            waiter,
            leaving: false,
        }
    }

    /// Returns the key of memory with a number.
    fn key(&self, id: u64) -> Vec<u8> {
        let mut key = id.to_le_bytes().to_vec();
        key.resize(self.shared.options.key, 0);
        key
    }

    /// Returns the number in a key.
    fn number(&self, key: &[u8]) -> Option<u64> {
        let is_whole = key.len() == self.shared.options.key;
        let number = key.first_chunk().filter(|_| is_whole)?;
        Some(u64::from_le_bytes(*number))
    }

    /// The link to `rank`, made on first contact.
    pub(super) fn link(&mut self, rank: Rank) -> EndpointId {
        *self.by_rank.entry(rank).or_insert_with(|| {
            self.links.push(Link {
                rank,
                outbound: None,
                up: false,
                closed: false,
            });
            EndpointId(self.links.len() as u32 - 1)
        })
    }

    pub(super) fn find_link(&self, rank: Rank) -> Option<EndpointId> {
        self.by_rank.get(&rank).copied()
    }

    /// The rank at `endpoint`, unless it or we are gone.
    fn living(&self, state: &State, endpoint: EndpointId) -> Option<Rank> {
        let link = self
            .links
            .get(endpoint.index())
            .filter(|link| !link.closed)?;
        let gone =
            state.status(self.rank) != Status::Open || state.status(link.rank) == Status::Left;
        (!gone).then_some(link.rank)
    }

    /// Where messages to `endpoint` go, getting in contact first where only the peer did.
    fn outbound(&mut self, state: &mut State, endpoint: EndpointId) -> Option<(Rank, usize)> {
        let rank = self.living(state, endpoint)?;
        let link = &mut self.links[endpoint.index()];
        if link.outbound.is_none() {
            link.outbound = state.open_channel(self.rank, rank);
        }
        link.outbound.map(|place| (rank, place))
    }

    /// Network and rank; peers of another network are not understood.
    fn address_of(&self, rank: Rank) -> Vec<u8> {
        let network = Arc::as_ptr(&self.shared).addr() as u64;
        let mut blob = NAME.as_bytes().to_vec();
        blob.extend(network.to_le_bytes());
        blob.extend(rank.as_u32().to_le_bytes());
        blob
    }
}

impl Transport for MemoryTransport {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let options = &self.shared.options;
        let mut all = Capabilities::WAKE
            | Capabilities::ORDERED
            | Capabilities::RELIABLE
            | Capabilities::LOCAL
            | Capabilities::LOOPBACK;
        all.set(Capabilities::COOPERATIVE, options.cooperative);
        all.set(Capabilities::GET, options.get);
        all.set(Capabilities::PUT, options.put);
        all.set(Capabilities::NOTICE, options.put && options.notices);
        all.set(Capabilities::REMOTE, options.remote);
        all.set(Capabilities::FAILURE_DETECTION, options.detect_failures);
        all
    }

    fn address(&self) -> Vec<u8> {
        self.address_of(self.rank)
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        if address != self.address_of(peer) {
            return Err(Error::BadAddress {
                transport: NAME,
                peer,
                reason: format!("{} bytes that name another network or rank", address.len()),
            });
        }
        if let Some(known) = self.find_link(peer) {
            return Ok(known);
        }
        let shared = Arc::clone(&self.shared);
        let place = shared.state().open_channel(self.rank, peer);
        let place = place.ok_or_else(|| Error::Unreachable {
            transport: NAME,
            peer,
            reason: "it is not there".to_owned(),
        })?;
        let endpoint = self.link(peer);
        self.links[endpoint.index()].outbound = Some(place);
        Ok(endpoint)
    }

    fn leave(&mut self) {
        self.leaving = true;
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter) as Arc<dyn Waiter>
    }

    fn describe(&self, out: &mut dyn Write) {
        let state = self.shared.state();
        for link in &self.links {
            let depth = |of: Rank, from: Rank| {
                state
                    .members
                    .get(&of)
                    .and_then(|member| Some(member.inbound[member.find_channel(from)?].queue.len()))
                    .unwrap_or(0)
            };
            let open = state
                .transfers
                .values()
                .filter(|transfer| transfer.involves(self.rank) && transfer.involves(link.rank))
                .count();
            // The sink's own failure has nowhere else to be reported.
            let _ = writeln!(
                out,
                "{NAME}: rank {}: {} untaken there, {} untaken here, {open} transfers{}",
                link.rank,
                depth(link.rank, self.rank),
                depth(self.rank, link.rank),
                if link.closed { ", closed" } else { "" },
            );
        }
    }
}

impl RemoteAccess for MemoryTransport {
    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let Some(target) = data.region().filter(|_| self.shared.options.get) else {
            return Post::Unsupported;
        };
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let Some(rank) = self.living(&state, from) else {
            return Post::Gone;
        };
        let read = (self.number(source.key))
            .and_then(|id| state.exposed.get(&id))
            .is_some_and(|memory| memory.owner == rank && memory.read(source.address, target));
        let outcome = if read {
            Outcome::Done(target.len() as u64)
        } else {
            Outcome::Impossible
        };
        state.complete(self.rank, token, outcome);
        Post::Posted
    }

    fn put(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        let options = &self.shared.options;
        if !options.put || immediate.is_some() && !options.notices {
            return Post::Unsupported;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let Some(rank) = self.living(&state, to) else {
            return Post::Gone;
        };
        if state.unreported(self.rank) >= options.puts {
            return Post::Busy;
        }
        let written = (self.number(target.key))
            .and_then(|id| state.writable.get(&id))
            .is_some_and(|memory| memory.owner == rank && memory.write(target.address, data));
        if written {
            state.puts.count += 1;
            state.puts.bytes += data.len();
        }
        if let Some(immediate) = immediate.filter(|_| written) {
            state.notify(rank, immediate);
        }
        let outcome = if written {
            Outcome::Done(data.len() as u64)
        } else {
            Outcome::Impossible
        };
        state.complete(self.rank, token, outcome);
        Post::Posted
    }

    fn flush(&mut self, _lane: Lane, to: EndpointId, token: Token) -> Post {
        if !self.shared.options.put {
            return Post::Unsupported;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if self.living(&state, to).is_none() {
            return Post::Gone;
        }
        state.puts.flushes += 1;
        // A put is done when it returns.
        state.complete(self.rank, token, Outcome::Done(0));
        Post::Posted
    }

    fn fence(&mut self, _lane: Lane, to: EndpointId) -> Post {
        let state = self.shared.state();
        match (self.shared.options.put, self.living(&state, to)) {
            (false, _) => Post::Unsupported,
            (true, None) => Post::Gone,
            (true, Some(_)) => Post::Posted,
        }
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let target = data.region().filter(|_| self.shared.options.put);
        let target = target.ok_or(Error::Unsupported {
            transport: NAME,
            what: "writes to this memory by peers",
        })?;
        let owner = self.rank;
        let mut state = self.shared.state();
        let id = state.next_exposed;
        state.next_exposed += 1;
        state.writable.insert(id, Writable { owner, target });
        Ok(RegistrationHandle {
            id,
            key: self.key(id),
        })
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let source = data.region().filter(|_| self.shared.options.get);
        let source = source.ok_or(Error::Unsupported {
            transport: NAME,
            what: "reading of this memory by peers",
        })?;
        let mut state = self.shared.state();
        let id = state.next_exposed;
        state.next_exposed += 1;
        let owner = self.rank;
        state.exposed.insert(id, Exposed { owner, source });
        Ok(RegistrationHandle {
            id,
            key: self.key(id),
        })
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        let mut state = self.shared.state();
        state.exposed.remove(&handle.id);
        state.writable.remove(&handle.id);
    }
}

impl CooperativeTransfers for MemoryTransport {
    fn offer(&mut self, _lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        let Some(source) = data.region().filter(|_| self.shared.options.cooperative) else {
            return Offer::Unsupported;
        };
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let Some(rank) = self.living(&state, to) else {
            return Offer::Unsupported;
        };
        let open = state
            .transfers
            .values()
            .filter(|transfer| transfer.offerer == self.rank && transfer.claimer == rank)
            .count();
        if open >= shared.options.max_offers {
            return Offer::Busy;
        }
        let id = state.next_transfer;
        state.next_transfer += 1;
        state
            .transfers
            .insert(id, Transfer::new(self.rank, rank, source, token));
        Offer::Open(Ticket([id, !id]))
    }

    fn claim(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        let Some(target) = data.region().filter(|_| self.shared.options.cooperative) else {
            return Post::Unsupported;
        };
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let Some(rank) = self.living(&state, from) else {
            return Post::Gone;
        };
        let own = self.rank;
        let [id, check] = ticket.0;
        let joined = state
            .transfers
            .get_mut(&id)
            .filter(|transfer| check == !id && transfer.offerer == rank && transfer.claimer == own);
        let Some(transfer) = joined else {
            return Post::Unsupported;
        };
        if transfer.is_halted() {
            return Post::Gone;
        }
        if !transfer.join(target, token) {
            return Post::Unsupported;
        }
        state.wake(rank);
        state.wake(own);
        Post::Posted
    }

    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        let Some(link) = self.links.get(to.index()) else {
            return;
        };
        let (own, peer) = (self.rank, link.rank);
        let mut state = self.shared.state();
        let id = ticket.0[0];
        let is_ours = state.transfers.get(&id).is_some_and(|transfer| {
            transfer.offerer == own && transfer.claimer == peer && !transfer.is_claimed()
        });
        if is_ours && let Some(mut transfer) = state.transfers.remove(&id) {
            for token in transfer.take_tokens(own) {
                state.complete(own, token, Outcome::Withdrawn);
            }
        }
    }
}

impl MemoryTransport {
    /// Enters a message of `len` bytes, which `copy` copies.
    fn enqueue(
        &mut self,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        len: usize,
        copy: impl FnOnce() -> Vec<u8>,
    ) -> Post {
        let shared = Arc::clone(&self.shared);
        let options = &shared.options;
        if len > options.max_send {
            return Post::Unsupported;
        }
        let mut state = shared.state();
        let Some((rank, place)) = self.outbound(&mut state, to) else {
            return Post::Gone;
        };
        let Some(member) = state.members.get_mut(&rank) else {
            return Post::Gone;
        };
        let channel = &mut member.inbound[place];
        let room = match class {
            Class::Data => options.slots - options.control_slots,
            Class::Control => options.slots,
        };
        // A reader that gave us up takes nothing any more: what we send is lost, as it is when a
        // reader has died and we do not know yet.
        if channel.queue.len() >= room {
            channel.starved = true;
            return Post::Busy;
        }
        if !channel.closed {
            let bytes = copy();
            channel.queue.push_back(Message { header, bytes });
            member.waiter.wake();
        }
        Post::Posted
    }
}

impl ByteTransport for MemoryTransport {
    fn limits(&self) -> Limits {
        let options = &self.shared.options;
        let mut limits = Limits::copying(options.max_send.min(40), options.max_send);
        if options.cooperative {
            limits.max_offers = options.max_offers;
        }
        if options.get || options.put {
            limits.max_remote_access = u64::MAX;
        }
        if options.put && options.notices {
            limits.immediate_width = 8;
        }
        if options.put && options.ordered_puts {
            limits.ordering = Ordering::WriteAfterWrite;
        }
        limits.memory_per_peer = options.slots * options.max_send;
        limits.wait_object = WaitObject::Futex;
        limits
    }

    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.enqueue(to, class, header, data.len(), || data.to_vec())
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        self.enqueue(to, Class::Data, header, body.len(), || body.to_vec())
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.collect() + self.tell(upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        if self.shared.options.detect_failures {
            for rank in self.failed_peers() {
                self.peer_failed(rank, upcalls);
            }
        }
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.collect_failure(rank);
        self.tell(upcalls);
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        let status = if self.leaving {
            Status::Left
        } else {
            Status::Failed
        };
        self.shared.state().end(self.rank, status);
    }
}
