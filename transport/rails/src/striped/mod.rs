//! Several networks to the same peers as one transport, which outlives each of them.
//!
//! ```text
//!    send ─ number ─┬─ rail 0 ──>─┬─ in order ─ deliver      kept until acknowledged,
//!                   └─ rail 1 ──>─┘                          then sent again by another rail
//!    get ─ cut ─────┬─ rail 0 ──>─┬─ all there ─ complete    by weights that are measured,
//!                   └─ rail 1 ──>─┘                          asked again by another rail
//! ```
//!
//! - **Messages** carry a number for each peer. Short ones go by the first rail that has room, in the
//!   order of the setting; longer ones by the one that was given least for its weight. The receiver
//!   delivers in order; a sender that has `WINDOW` messages unacknowledged is
//!   [`Busy`](Post::Busy), so nothing else can come that far ahead of its turn. Acknowledgements ride
//!   in every header, and alone after half a window.
//! - **Gets** are cut into fragments. What a rail does not take, or fails to bring, another is asked for.
//! - **A rail dies** for one peer at a time: it says so, the peer says so by another rail, or it does
//!   not [reply](watch) while another does. What it had taken is sent again; duplicates are known by
//!   their numbers. A rail that was given up for a peer is not used for it again. The peer has failed
//!   when all its rails have.
//! - **A goodbye** counts when it came by all rails that live, with the number of messages that were
//!   sent: who leaves without having brought all of them has failed. Who has heard it by one rail is [waited for](parting)
//!   no longer than a rail may be silent.
//!
//! Not offered, whatever the rails have: *put*, since bytes that a dead rail still has in its network
//! could overwrite what was put since; *zero-copy sends*, since what may have to be sent again is kept
//! anyway, and the buffer would stay lent until the peer has it; *cooperative transfers*.

mod config;
mod core;
mod links;
mod order;
mod parting;
mod pending;
mod rail;
mod reads;
mod watch;
mod weigh;
mod wire;

use std::fmt;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_dr::window::WINDOW;
use tagwire_transport::{
    AmHeader, Arrival, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId,
    Error, Lane, Limits, Outcome, PeerEvent, Post, Preference, RecvBuffer, Registration,
    RegistrationHandle, RemoteAccess, RemoteMemory, Result, SendBuffer, Token, Transport, Upcalls,
    WaitObject, Waiter,
};

use self::core::{Core, RailUpcalls};
use crate::bundle::{bundle, unbundle};
use crate::waiter::SeveralWaiter;
pub(crate) use config::SETTINGS;
pub use config::StripedOptions;
use pending::post;
use rail::{LANE, MOST, NAME, Rail};
use weigh::{charge, least_charged};
use wire::{ABOVE, Header, Kind, write_above};

/// Messages up to this length go by the first rail that has room: order is cheap there.
const SHORT: usize = 4096;

/// The first byte of addresses and keys.
const MAGIC: u8 = 0xb5;

/// Several rails to the same peers.
pub struct Striped {
    rails: Vec<Rail>,
    core: Core,
    registrations: Vec<Option<Vec<Option<RegistrationHandle>>>>,
    waiter: Arc<SeveralWaiter>,
    capabilities: Capabilities,
    limits: Limits,
}

impl Striped {
    /// Bundles `rails`. They are known to peers by their places: all ranks name them in the same order.
    ///
    /// # Errors
    /// When there are none, too many, or one that has no room for what is put around a message.
    pub fn new(rails: Vec<Box<dyn ByteTransport>>, options: StripedOptions) -> Result<Self> {
        let unsupported = |what| Error::Unsupported {
            transport: NAME,
            what,
        };
        if rails.is_empty() || rails.len() > MOST {
            return Err(unsupported("none, or more than four networks at once"));
        }
        let (capabilities, limits) = common(&rails);
        if !capabilities.contains(Capabilities::RELIABLE) || limits.max_send == 0 {
            return Err(unsupported(
                "networks that lose messages or have no room for them",
            ));
        }
        let waiters = rails.iter().map(|rail| rail.waiter()).collect();
        let rails: Vec<_> = rails
            .into_iter()
            .map(|transport| Rail { transport })
            .collect();
        Ok(Self {
            waiter: Arc::new(SeveralWaiter::new(waiters)),
            core: Core::new(rails.len(), options),
            rails,
            registrations: Vec::new(),
            capabilities,
            limits,
        })
    }

    /// Sends a message whose bytes `fill` appends.
    fn post(
        &mut self,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        len: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Post {
        let Some(link) = self.core.links.get(to).filter(|link| !link.is_gone) else {
            return Post::Gone;
        };
        let Some(first) = link.open().next() else {
            return Post::Gone;
        };
        if len > self.limits.max_send {
            return Post::Unsupported;
        }
        if !link.out.has_room(class) {
            return Post::Busy;
        }
        let by_weight = (len > SHORT).then(|| least_charged(&link.meters()));
        let first = by_weight.flatten().unwrap_or(first);
        let mut bytes = self.core.spare.pop().unwrap_or_default();
        bytes.clear();
        write_above(header, &mut bytes);
        fill(&mut bytes);
        let header = Header {
            kind: Kind::Message,
            is_urgent: false,
            number: link.out.sent(),
            consumed: link.incoming.consumed(),
        };
        let sent = post(&mut self.rails, link, first, class, header, &bytes);
        let answer = match sent {
            Ok(rail) => {
                charge(&mut link.meters_mut(), rail, len);
                link.out.keep(bytes, rail, self.core.options.now());
                Post::Posted
            }
            Err(answer) => {
                self.core.spare.push(bytes);
                answer
            }
        };
        link.write_off();
        if !link.out.has_room(Class::Control) {
            self.core.list(to);
        }
        answer
    }

    /// Registers with every rail that can; returns all keys in one.
    fn register_with(
        &mut self,
        register: impl Fn(&mut dyn ByteTransport) -> Result<RegistrationHandle>,
    ) -> Result<RegistrationHandle> {
        let mut last = None;
        let mut handles = Vec::new();
        for rail in &mut self.rails {
            handles.push(match register(&mut *rail.transport) {
                Ok(handle) => Some(handle),
                Err(error) => {
                    last = Some(error);
                    None
                }
            });
        }
        if handles.iter().all(Option::is_none) {
            return Err(last.unwrap_or(Error::Unsupported {
                transport: NAME,
                what: "memory registration",
            }));
        }
        let keys = handles.iter().map(|handle| Some(&handle.as_ref()?.key[..]));
        let key = enclose(keys, handles.len());
        let vacant = self.registrations.iter().position(Option::is_none);
        let id = vacant.unwrap_or_else(|| {
            self.registrations.push(None);
            self.registrations.len() - 1
        });
        self.registrations[id] = Some(handles);
        Ok(RegistrationHandle { id: id as u64, key })
    }

    /// Lets every rail tell, and does what follows from it.
    fn tell(
        &mut self,
        upcalls: &mut dyn Upcalls,
        mut each: impl FnMut(&mut dyn ByteTransport, &mut dyn Upcalls) -> usize,
    ) -> usize {
        let mut events = 0;
        for (number, rail) in self.rails.iter_mut().enumerate() {
            let mut face = RailUpcalls::new(number, &mut self.core, upcalls);
            events += each(&mut *rail.transport, &mut face);
        }
        if !self.core.listed.is_empty() || !self.core.to_end.is_empty() {
            events += self.core.advance_pending(&mut self.rails, upcalls);
        }
        if self.core.farewell.is_some() {
            self.core.part(&mut self.rails);
        }
        events
    }
}

impl Transport for Striped {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        let addresses: Vec<_> = (self.rails.iter())
            .map(|rail| rail.transport.address())
            .collect();
        enclose(
            addresses.iter().map(|address| Some(&address[..])),
            addresses.len(),
        )
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let bad = |reason: &str| Error::BadAddress {
            transport: NAME,
            peer,
            reason: reason.to_owned(),
        };
        let parts = disclose(address).ok_or_else(|| bad("it is not that of several rails"))?;
        if let Some(known) = self.core.links.find(peer)
            && let Some(link) = self.core.links.get(known)
            && link.is_connected
        {
            return Ok(known);
        }
        let (mut found, mut last) = (None, None);
        for (number, (rail, address)) in self.rails.iter_mut().zip(parts).enumerate() {
            let Some(address) = address else { continue };
            match rail.transport.connect(peer, address) {
                Ok(theirs) => {
                    let ours = self.core.links.enter(peer, number, theirs);
                    if let Some(link) = self.core.links.get(ours) {
                        link.is_connected = true;
                        // It is to know all the ways back.
                        link.way(number)
                            .into_iter()
                            .for_each(|way| way.owes_hello = true);
                    }
                    self.core.list(ours);
                    found = Some(ours);
                }
                Err(error) => {
                    tracing::debug!(peer = peer.as_u32(), "not by rail {number}: {error}");
                    last = Some(error);
                }
            }
        }
        found.ok_or_else(|| last.unwrap_or_else(|| bad("it has no rail in common with this rank")))
    }

    fn leave(&mut self) {
        if self.core.farewell.is_none() {
            self.core.say_farewell(&self.rails);
        }
    }

    fn has_left(&self) -> bool {
        self.core.is_heard() && self.rails.iter().all(|rail| rail.transport.has_left())
    }

    /// Whoever has acknowledged all to the bundle has all, whatever a rail still waits for.
    fn unheard(&self, out: &mut Vec<Rank>) {
        self.core.unheard(out);
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter) as Arc<dyn Waiter>
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        for (_, link) in self.core.links.iter() {
            let ways = link
                .ways
                .iter()
                .map(|way| way.as_ref().map(|way| way.state));
            // The sink's own failure has nowhere else to be reported.
            let _ = writeln!(
                out,
                "{NAME}: rank {}: {} sent, {} consumed, all acknowledged: {}, by rail: {:?}",
                link.rank,
                link.out.sent(),
                link.incoming.consumed(),
                link.out.is_empty(),
                ways.collect::<Vec<_>>(),
            );
        }
        for rail in &self.rails {
            rail.transport.describe(out);
        }
    }
}

impl RemoteAccess for Striped {
    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let (Some(target), Some(keys)) = (data.region(), disclose(source.key)) else {
            return Post::Unsupported;
        };
        if !self.capabilities.contains(Capabilities::GET) {
            return Post::Unsupported;
        }
        let keys = keys.into_iter().map(|key| key.map(Box::from)).collect();
        let source = (source.address, keys);
        self.core.read(&mut self.rails, from, target, source, token)
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        self.register_with(|rail| rail.expose(data))
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        let index = usize::try_from(handle.id).unwrap_or(usize::MAX);
        let Some(handles) = self.registrations.get_mut(index).and_then(Option::take) else {
            return;
        };
        for (rail, handle) in self.rails.iter_mut().zip(handles) {
            if let Some(handle) = handle {
                rail.transport.deregister(handle);
            }
        }
    }
}

impl CooperativeTransfers for Striped {}

impl ByteTransport for Striped {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn preference(&self, _to: EndpointId) -> Preference {
        Preference::NETWORK
    }

    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.post(to, class, header, data.len(), |bytes| {
            bytes.extend_from_slice(data);
        })
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        self.post(to, Class::Data, header, body.len(), |bytes| {
            body.append_to(bytes);
        })
    }

    fn progress(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.tell(upcalls, |rail, face| rail.progress(lane, face))
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.core.watch(upcalls);
        self.core.give_up_unheard(&self.rails);
        self.tell(upcalls, |rail, face| {
            rail.look_after_peers(face);
            0
        });
    }

    fn peer_left(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.tell(upcalls, |rail, face| {
            rail.peer_left(rank, face);
            0
        });
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        if let Some(ours) = self.core.links.find(rank)
            && let Some(link) = self.core.links.get(ours)
        {
            link.is_dead = true;
        }
        self.tell(upcalls, |rail, face| {
            rail.peer_failed(rank, face);
            0
        });
        let now = self.core.options.now();
        if let Some(ours) = self.core.links.find(rank)
            && let Some(link) = self.core.links.get(ours)
        {
            for rail in 0..self.rails.len() {
                link.close_way(rail, now);
            }
        }
    }
}

impl Drop for Striped {
    /// A rank that leaves, and is dropped before it has left, waits for that; then the rails do.
    fn drop(&mut self) {
        while let Some(farewell) = self.core.farewell.filter(|farewell| !farewell.is_heard) {
            if self.core.options.clock.now() >= farewell.dropped_until {
                self.core.end_farewell(&mut self.rails);
                return;
            }
            self.progress(LANE, &mut IgnoreUpcalls);
            std::thread::yield_now();
        }
    }
}

impl fmt::Debug for Striped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rails.iter().map(|rail| rail.transport.name());
        f.debug_struct("Striped")
            .field("rails", &names.collect::<Vec<_>>())
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}

/// Hears nothing: what comes while a rank closes.
struct IgnoreUpcalls;

impl Upcalls for IgnoreUpcalls {
    fn deliver(&mut self, _: Arrival<'_>) {}

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}

/// What holds of all rails, and within what sizes.
fn common(rails: &[Box<dyn ByteTransport>]) -> (Capabilities, Limits) {
    const KEPT: Capabilities = Capabilities::GET
        .union(Capabilities::WAKE)
        .union(Capabilities::FAILURE_DETECTION)
        .union(Capabilities::RELIABLE)
        .union(Capabilities::REMOTE)
        .union(Capabilities::LOCAL)
        .union(Capabilities::LOOPBACK);
    let all = rails.iter().map(|rail| rail.capabilities());
    let (any, every) = all.fold((Capabilities::empty(), KEPT), |(any, every), one| {
        (any | one, every & one)
    });
    let capabilities = every | (any & Capabilities::THREADS) | Capabilities::ORDERED;
    let limits = || rails.iter().map(|rail| rail.limits());
    let least = |size: fn(&Limits) -> usize| limits().map(|one| size(&one)).min().unwrap_or(0);
    let max_send = least(|one| one.max_send).saturating_sub(ABOVE);
    let max_inline = least(|one| one.max_inline).saturating_sub(ABOVE);
    let kept = WINDOW as usize * max_send;
    let mut common = Limits::copying(max_inline, max_send);
    common.memory_per_peer = limits().map(|one| one.memory_per_peer).sum::<usize>() + kept;
    if capabilities.contains(Capabilities::GET) {
        let most = limits().map(|one| one.max_remote_access).min();
        common.max_remote_access = most.unwrap_or(0);
        common.registration = Registration::Remote;
    }
    if capabilities.contains(Capabilities::WAKE) {
        common.wait_object = WaitObject::Descriptor;
    }
    (capabilities, common)
}

/// What each of `count` rails has, in one blob.
fn enclose<'a>(parts: impl Iterator<Item = Option<&'a [u8]>>, count: usize) -> Vec<u8> {
    let mut blob = vec![MAGIC, count as u8];
    blob.extend(bundle(parts));
    blob
}

/// What each rail has, of a peer that has as many.
fn disclose(blob: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let (&[magic, count], parts) = blob.split_first_chunk()?;
    let count = usize::from(count);
    let fits = magic == MAGIC && (1..=MOST).contains(&count);
    fits.then(|| unbundle(parts, count))?
}
