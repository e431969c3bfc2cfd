//! Several transports in one job: each peer is reached by the first that reaches it, shared memory
//! on the same host, a network elsewhere. The layer above sees one transport and one endpoint for
//! each peer; what it matches, it matches across all of them.

mod links;
mod polls;
mod rail;

use std::fmt;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_base::clock::Clock;
use tagwire_base::config::{Config, Setting};
use tagwire_transport::shm::Shm;
use tagwire_transport::{
    Allocation, AmHeader, Body, ByteTransport, Capabilities, Class, CooperativeTransfers,
    EndpointId, Error, Lane, Limits, Offer, Ordering, Post, Preference, RecvBuffer, Registration,
    RegistrationHandle, RemoteAccess, RemoteMemory, Result, SendBuffer, Ticket, Token, Transport,
    Upcalls, WaitObject, Waiter,
};

use crate::bundle::{bundle, unbundle};
use crate::waiter::SeveralWaiter;
use links::{Links, RailUpcalls};
use polls::Polls;
use rail::{First, Rails};

/// The name in reports.
const NAME: &str = "mixed";

/// More rails than this are refused.
const MOST: usize = 8;

/// The settings of the mixture.
pub(crate) const SETTINGS: &[Setting] = &[Setting::text(
    "rails::mixed",
    "host",
    "",
    "The name of this host where several transports are mixed: ranks of one host use those that \
     reach no further; where none is named, those of one user and one namespace of processes, on one run of one kernel",
)];

/// Several rails as one transport.
pub struct Mixed {
    rails: Rails,
    host: Vec<u8>,
    rank: Rank,
    links: Links,
    registrations: Vec<Option<Vec<RegistrationHandle>>>,
    waiter: Arc<SeveralWaiter>,
    polls: Polls,
}

impl Mixed {
    /// Mixes `rails` for `rank`: for each peer the first counts that reaches it.
    ///
    /// # Errors
    /// When there is none, or more than one reaches other hosts: messages are not striped.
    pub fn new(
        rank: Rank,
        config: &Config,
        clock: &Clock,
        rails: Vec<Box<dyn ByteTransport>>,
    ) -> Result<Self> {
        let most = rails.len() > MOST;
        let rails = Rails::new(rails)
            .filter(|rails| !most && rails.iter().filter(|(_, is_remote)| *is_remote).count() <= 1);
        let rails = rails.ok_or(Error::Unsupported {
            transport: NAME,
            what: "no transport, too many, or more than one that reaches other hosts",
        })?;
        let waiters = rails.iter().map(|(rail, _)| rail.waiter());
        Ok(Self {
            waiter: Arc::new(SeveralWaiter::new(waiters.collect())),
            host: host_of(config),
            rank,
            links: Links::new(rails.len()),
            registrations: Vec::new(),
            polls: Polls::new(clock.clone()),
            rails,
        })
    }

    /// The rail to `endpoint`, and what it calls the peer.
    #[inline]
    fn way(&mut self, endpoint: EndpointId) -> Option<(&mut dyn ByteTransport, EndpointId)> {
        let (rail, endpoint) = self.links.way(endpoint)?;
        let (rail, is_remote) = self.rails.get_mut(rail)?;
        if is_remote {
            self.polls.posted();
        }
        Some((rail, endpoint))
    }

    /// The same for who asks and posts nothing.
    fn rail(&self, endpoint: EndpointId) -> Option<(&dyn ByteTransport, EndpointId)> {
        let (rail, endpoint) = self.links.way(endpoint)?;
        Some((self.rails.get(rail)?, endpoint))
    }

    /// The part of a bundled key that is for the rail to `endpoint`.
    fn key<'a>(&self, endpoint: EndpointId, bundle: &'a [u8]) -> Option<&'a [u8]> {
        let (rail, _) = self.links.way(endpoint)?;
        unbundle(bundle, self.rails.len())?.get(rail).copied()?
    }

    /// Registers with every rail that can; returns all keys in one.
    fn register_with(
        &mut self,
        register: impl Fn(&mut dyn ByteTransport) -> Result<RegistrationHandle>,
    ) -> Result<RegistrationHandle> {
        let mut last = None;
        let mut handles = Vec::new();
        let mut keys = Vec::new();
        for (rail, _) in self.rails.iter_mut() {
            match register(rail) {
                Ok(handle) => {
                    keys.push(Some(handle.key.clone()));
                    handles.push(handle);
                }
                Err(error) => {
                    // Keeps its place, so that a handle goes back to the rail that gave it.
                    keys.push(None);
                    handles.push(RegistrationHandle {
                        id: u64::MAX,
                        key: Vec::new(),
                    });
                    last = Some(error);
                }
            }
        }
        if keys.iter().all(Option::is_none) {
            return Err(last.unwrap_or(Error::Unsupported {
                transport: NAME,
                what: "memory registration",
            }));
        }
        let vacant = self.registrations.iter().position(Option::is_none);
        let id = vacant.unwrap_or_else(|| {
            self.registrations.push(None);
            self.registrations.len() - 1
        });
        self.registrations[id] = Some(handles);
        Ok(RegistrationHandle {
            id: id as u64,
            key: bundle(keys.iter().map(Option::as_deref)),
        })
    }

    /// Returns shared memory and its endpoint for the peer, where that is how the peer is reached.
    #[inline(always)]
    pub fn by_shared_memory(&mut self, to: EndpointId) -> Option<(&mut Shm, EndpointId)> {
        match (self.links.way(to), &mut self.rails.first) {
            (Some((0, to)), First::Shm(shm)) => Some((shm, to)),
            _ => None,
        }
    }

    /// As [`ByteTransport::progress`], with the deliveries of shared memory in line, and `burst` of them from each peer at most.
    #[inline]
    pub fn progress_in_line(
        &mut self,
        lane: Lane,
        burst: usize,
        upcalls: &mut impl Upcalls,
    ) -> usize {
        let First::Shm(shm) = &mut self.rails.first else {
            return self.progress_of_all(lane, upcalls);
        };
        let mut of_shm = RailUpcalls::new(0, &mut self.links, upcalls);
        let events = shm.progress_with(burst, &mut of_shm);
        let is_due = match events {
            // Who is about to sleep has to have seen all that has come.
            0 => self.polls.is_due() | self.waiter.is_armed() | self.links.has_lost(),
            _ => self.polls.is_due_after_events(),
        };
        if is_due {
            return events + self.progress_of_others(lane, upcalls);
        }
        events
    }

    #[cold]
    #[inline(never)]
    fn progress_of_others(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        let mut events = 0;
        for (index, other) in self.rails.others.iter_mut().enumerate() {
            let mut rail_upcalls = RailUpcalls::new(1 + index, &mut self.links, upcalls);
            events += other.transport.progress(lane, &mut rail_upcalls);
        }
        self.polls.looked(events);
        self.spread_lost(upcalls);
        events
    }

    #[inline(never)]
    fn progress_of_all(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        let mut events = 0;
        self.with_each(upcalls, |rail, upcalls| {
            events += rail.progress(lane, upcalls);
        });
        self.spread_lost(upcalls);
        events
    }

    /// Who has failed on one rail has failed. That rail knows, and may still have to tell the peer.
    fn spread_lost(&mut self, upcalls: &mut dyn Upcalls) {
        while let Some((by, rank)) = self.links.next_lost() {
            for (number, (rail, _)) in self.rails.iter_mut().enumerate() {
                if number != by {
                    let mut rail_upcalls = RailUpcalls::new(number, &mut self.links, upcalls);
                    rail.peer_failed(rank, &mut rail_upcalls);
                }
            }
        }
    }

    fn with_each(
        &mut self,
        upcalls: &mut dyn Upcalls,
        mut call: impl FnMut(&mut dyn ByteTransport, &mut dyn Upcalls),
    ) {
        for (number, (rail, _)) in self.rails.iter_mut().enumerate() {
            let mut rail_upcalls = RailUpcalls::new(number, &mut self.links, upcalls);
            call(rail, &mut rail_upcalls);
        }
    }
}

impl Transport for Mixed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        // What is asked for with each message may result in Unsupported; the rest has to hold
        // for all peers.
        let of_some = Capabilities::ZERO_COPY
            | Capabilities::PUT
            | Capabilities::GET
            | Capabilities::CHANNELS
            | Capabilities::REMOTE
            | Capabilities::LOCAL
            | Capabilities::LOOPBACK
            | Capabilities::THREADS;
        let all = self.rails.iter().map(|(rail, _)| rail.capabilities());
        let (any, every) = all.fold(
            (Capabilities::empty(), Capabilities::all()),
            |(any, every), one| (any | one, every & one),
        );
        (any & of_some) | (every - of_some)
    }

    fn address(&self) -> Vec<u8> {
        let addresses: Vec<Vec<u8>> = self.rails.iter().map(|(rail, _)| rail.address()).collect();
        let parts = addresses.iter().map(Vec::as_slice);
        bundle(std::iter::once(&self.host[..]).chain(parts).map(Some))
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        if let Some(known) = self.links.connected(peer) {
            return Ok(known);
        }
        let bad = |reason: String| Error::BadAddress {
            transport: NAME,
            peer,
            reason,
        };
        let parts = unbundle(address, self.rails.len() + 1)
            .ok_or_else(|| bad(format!("it is not that of {} rails", self.rails.len())))?;
        let is_here = parts[0] == Some(&self.host[..]);
        let mut last = None;
        for (number, (rail, is_remote)) in self.rails.iter_mut().enumerate() {
            let Some(address) = parts[number + 1].filter(|_| is_remote || is_here) else {
                continue;
            };
            let loops = rail.capabilities().contains(Capabilities::LOOPBACK);
            if peer == self.rank && !loops {
                continue;
            }
            match rail.connect(peer, address) {
                Ok(endpoint) => return Ok(self.links.connect(peer, number, endpoint)),
                Err(error) => {
                    tracing::debug!(peer = peer.as_u32(), "not by {}: {error}", rail.name());
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| Error::Unreachable {
            transport: NAME,
            peer,
            reason: "it is on another host, and no transport here goes there".to_owned(),
        }))
    }

    /// Of the first rail that has such memory: to the others it is as any.
    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        let mut rails = self.rails.iter_mut();
        rails.find_map(|(rail, _)| rail.allocate(len))
    }

    #[cfg(feature = "partitioned")]
    fn channels(
        &mut self,
        peer: EndpointId,
    ) -> Option<(&mut dyn tagwire_transport::Channels, EndpointId)> {
        let (rail, peer) = self.way(peer)?;
        rail.channels(peer)
    }

    #[cfg(feature = "coll")]
    fn boards(
        &mut self,
        peer: EndpointId,
    ) -> Option<(&mut dyn tagwire_transport::Boards, EndpointId)> {
        let (rail, peer) = self.way(peer)?;
        rail.boards(peer)
    }

    fn leave(&mut self) {
        for (rail, _) in self.rails.iter_mut() {
            rail.leave();
        }
    }

    fn has_left(&self) -> bool {
        self.rails.iter().all(|(rail, _)| rail.has_left())
    }

    fn unheard(&self, out: &mut Vec<Rank>) {
        for (rail, _) in self.rails.iter() {
            rail.unheard(out);
        }
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter) as Arc<dyn Waiter>
    }

    fn ways(&self, out: &mut Vec<String>) {
        for (rail, _) in self.rails.iter() {
            rail.ways(out);
        }
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        for (rail, _) in self.rails.iter() {
            rail.describe(out);
        }
    }
}

impl RemoteAccess for Mixed {
    fn put(
        &mut self,
        lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        let Some(key) = self.key(to, target.key) else {
            return Post::Unsupported;
        };
        let target = RemoteMemory { key, ..target };
        match self.way(to) {
            Some((rail, to)) => rail.put(lane, to, data, target, immediate, token),
            None => Post::Gone,
        }
    }

    fn get(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let Some(key) = self.key(from, source.key) else {
            return Post::Unsupported;
        };
        let source = RemoteMemory { key, ..source };
        match self.way(from) {
            Some((rail, from)) => rail.get(lane, from, data, source, token),
            None => Post::Gone,
        }
    }

    fn flush(&mut self, lane: Lane, to: EndpointId, token: Token) -> Post {
        match self.way(to) {
            Some((rail, to)) => rail.flush(lane, to, token),
            None => Post::Gone,
        }
    }

    fn fence(&mut self, lane: Lane, to: EndpointId) -> Post {
        match self.way(to) {
            Some((rail, to)) => rail.fence(lane, to),
            None => Post::Gone,
        }
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        self.register_with(|rail| rail.register(data))
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        self.register_with(|rail| rail.expose(data))
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        let index = usize::try_from(handle.id).unwrap_or(usize::MAX);
        let Some(handles) = self.registrations.get_mut(index).and_then(Option::take) else {
            return;
        };
        for ((rail, _), handle) in self.rails.iter_mut().zip(handles) {
            if handle.id != u64::MAX {
                rail.deregister(handle);
            }
        }
    }
}

impl CooperativeTransfers for Mixed {
    fn offer(&mut self, lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        match self.way(to) {
            Some((rail, to)) => rail.offer(lane, to, data, token),
            None => Offer::Unsupported,
        }
    }

    fn maps(&self, to: EndpointId, data: &SendBuffer) -> bool {
        let rail = self.rail(to);
        rail.is_some_and(|(rail, theirs)| rail.maps(theirs, data))
    }

    fn goes_ahead(&mut self, to: EndpointId, data: &SendBuffer) -> bool {
        self.way(to)
            .is_some_and(|(rail, to)| rail.goes_ahead(to, data))
    }

    fn claim(
        &mut self,
        lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        match self.way(from) {
            Some((rail, from)) => rail.claim(lane, from, ticket, data, token),
            None => Post::Gone,
        }
    }

    fn offer_recv(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        token: Token,
    ) -> Offer {
        match self.way(from) {
            Some((rail, from)) => rail.offer_recv(lane, from, data, token),
            None => Offer::Unsupported,
        }
    }

    fn fill(
        &mut self,
        lane: Lane,
        to: EndpointId,
        ticket: Ticket,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        match self.way(to) {
            Some((rail, to)) => rail.fill(lane, to, ticket, data, token),
            None => Post::Gone,
        }
    }

    fn revoke(&mut self, from: EndpointId, ticket: Ticket) -> bool {
        let way = self.way(from);
        way.is_some_and(|(rail, from)| rail.revoke(from, ticket))
    }

    fn forget(&mut self, to: EndpointId, ticket: Ticket) {
        if let Some((rail, to)) = self.way(to) {
            rail.forget(to, ticket);
        }
    }

    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        if let Some((rail, to)) = self.way(to) {
            rail.withdraw(to, ticket);
        }
    }
}

impl ByteTransport for Mixed {
    fn limits(&self) -> Limits {
        let mut all = self.rails.iter().map(|(rail, _)| rail.limits());
        let first = all.next().unwrap_or(Limits::copying(0, 0));
        let mut limits = all.fold(first, |mut least, one| {
            least.max_inline = least.max_inline.min(one.max_inline);
            least.max_send = least.max_send.min(one.max_send);
            least.max_zero_copy = smallest(least.max_zero_copy, one.max_zero_copy);
            least.max_remote_access = smallest(least.max_remote_access, one.max_remote_access);
            least.max_offers = least.max_offers.min(one.max_offers);
            least.immediate_width = least.immediate_width.min(one.immediate_width);
            least.memory_per_peer = least.memory_per_peer.max(one.memory_per_peer);
            least
        });
        limits.lanes = 1;
        limits.ordering = Ordering::None;
        limits.registration = Registration::Remote;
        limits.wait_object = WaitObject::Descriptor;
        limits
    }

    fn towards(&self, to: EndpointId) -> (Capabilities, Limits) {
        match self.rail(to) {
            Some((rail, theirs)) => rail.towards(theirs),
            None => (self.capabilities(), self.limits()),
        }
    }

    fn preference(&self, to: EndpointId) -> Preference {
        self.rail(to)
            .map_or(Preference::SHARED_MEMORY, |(rail, theirs)| {
                rail.preference(theirs)
            })
    }

    #[inline]
    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        match self.way(to) {
            Some((rail, to)) => rail.send(lane, to, class, header, data),
            None => Post::Gone,
        }
    }

    fn send_from(&mut self, lane: Lane, to: EndpointId, header: AmHeader, body: &Body<'_>) -> Post {
        match self.way(to) {
            Some((rail, to)) => rail.send_from(lane, to, header, body),
            None => Post::Gone,
        }
    }

    fn send_zero_copy(
        &mut self,
        lane: Lane,
        to: EndpointId,
        header: AmHeader,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        match self.way(to) {
            Some((rail, to)) => rail.send_zero_copy(lane, to, header, data, token),
            None => Post::Gone,
        }
    }

    fn progress(&mut self, lane: Lane, mut upcalls: &mut dyn Upcalls) -> usize {
        self.progress_in_line(lane, Shm::BURST, &mut upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.with_each(upcalls, |rail, upcalls| rail.look_after_peers(upcalls));
        self.spread_lost(upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.with_each(upcalls, |rail, upcalls| rail.peer_failed(rank, upcalls));
        self.spread_lost(upcalls);
    }

    fn peer_left(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.with_each(upcalls, |rail, upcalls| rail.peer_left(rank, upcalls));
        self.spread_lost(upcalls);
    }
}

impl fmt::Debug for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.rails.iter().map(|(rail, _)| rail.name()).collect();
        f.debug_struct("Mixed")
            .field("rails", &names)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

/// The smaller of two that both have something; 0 is nothing.
fn smallest<N: Ord + Default>(a: N, b: N) -> N {
    let nothing = N::default();
    if a == nothing {
        b
    } else if b == nothing {
        a
    } else {
        a.min(b)
    }
}

/// What distinguishes this host from others.
fn host_of(config: &Config) -> Vec<u8> {
    let named = config.text("host");
    if !named.is_empty() {
        return named.as_bytes().to_vec();
    }
    // One that cannot be read makes the rank a stranger to all: the network then carries everything.
    tagwire_base::host::identity()
        .unwrap_or_default()
        .into_bytes()
}
