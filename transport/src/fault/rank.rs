//! The wrapper: each verb is passed on, unless it is busy for no reason or the rank is dead.

use std::fmt;
use std::sync::Arc;

use tagwire_base::Rank;

use super::NAME;
use super::config::{FaultOptions, Kill};
use super::hold::PeerHold;
use super::progress::MOST_HELD;
use super::random::SplitMix64;
use crate::allocation::Allocation;
use crate::body::Body;
use crate::byte::ByteTransport;
use crate::capability::{Capabilities, Limits, Preference};
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::error::{Error, Result};
use crate::message::{AmHeader, EndpointId, Lane, Token, Upcalls};
use crate::post::{Class, Post};
use crate::remote::{RegistrationHandle, RemoteAccess, RemoteMemory};
use crate::transport::Transport;
use crate::wait::Waiter;

/// What a test does when a rank dies, so that the others find out.
type DeathHook = Box<dyn FnOnce(Rank) + Send>;

/// A transport with faults.
pub struct FaultTransport {
    inner: Option<Box<dyn ByteTransport>>,
    name: &'static str,
    rank: Rank,
    pub(super) options: FaultOptions,
    pub(super) random: SplitMix64,
    /// Calls of progress so far.
    pub(super) now: u64,
    /// By endpoint.
    pub(super) holds: Vec<PeerHold>,
    /// Messages in all holds.
    pub(super) held: usize,
    /// What upcalls kept, by number.
    messages: u64,
    pub(super) dead: bool,
    on_death: Option<DeathHook>,
}

impl FaultTransport {
    /// Puts faults between `rank` and its transport.
    #[must_use]
    pub fn new(inner: Box<dyn ByteTransport>, rank: Rank, options: FaultOptions) -> Self {
        Self {
            name: inner.name(),
            inner: Some(inner),
            rank,
            random: SplitMix64::stream(options.seed, rank.as_u32().into()),
            options,
            now: 0,
            holds: Vec::new(),
            held: 0,
            messages: 0,
            dead: false,
            on_death: None,
        }
    }

    /// Calls `hook` when the rank dies as an object, so that a test can tell the others as a
    /// launcher would, or let the network below know.
    #[must_use]
    pub fn on_death(mut self, hook: impl FnOnce(Rank) + Send + 'static) -> Self {
        self.on_death = Some(Box::new(hook));
        self
    }

    /// Whether the rank has died.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// Counts a message; returns whether the rank lives to see it.
    pub(super) fn survives_message(&mut self) -> bool {
        if self.dead {
            return false;
        }
        if self
            .options
            .kill_after
            .is_some_and(|limit| self.messages >= limit)
        {
            self.die();
            return false;
        }
        self.messages += 1;
        true
    }

    fn die(&mut self) {
        if self.options.kill == Kill::Process {
            // A failure leaves the object dead all the same.
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
        self.dead = true;
        if let Some(hook) = self.on_death.take() {
            hook(self.rank);
        }
    }

    /// What is inside, while the rank lives.
    pub(super) fn living(&mut self) -> Option<&mut (dyn ByteTransport + 'static)> {
        self.inner.as_deref_mut().filter(|_| !self.dead)
    }

    /// What is inside, or why a verb does not reach it.
    fn reach(&mut self) -> Result<&mut (dyn ByteTransport + 'static), Post> {
        if !self.dead
            && self.options.busy_percent > 0
            && self.random.chance(self.options.busy_percent)
        {
            return Err(Post::Busy);
        }
        self.living().ok_or(Post::Gone)
    }

    /// As [`reach`](Self::reach), for a message: only one that is posted counts.
    fn message(&mut self, send: impl FnOnce(&mut dyn ByteTransport) -> Post) -> Post {
        if !self.survives_message() {
            return Post::Gone;
        }
        let post = match self.reach() {
            Ok(inner) => send(inner),
            Err(post) => post,
        };
        if post != Post::Posted {
            self.messages -= 1;
        }
        post
    }

    /// What is left of the capabilities of the transport that has the faults.
    fn kept(&self, mut all: Capabilities) -> Capabilities {
        if self.options.reorder > 0 {
            all.remove(Capabilities::ORDERED);
        }
        if !self.options.is_reliable() {
            all.remove(Capabilities::RELIABLE);
        }
        all
    }

    fn inner(&self) -> &dyn ByteTransport {
        self.inner
            .as_deref()
            .expect("what is inside is taken out by drop alone")
    }
}

impl Transport for FaultTransport {
    /// The name of the transport that has the faults: to its peers it is that.
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.kept(self.inner().capabilities())
    }

    fn address(&self) -> Vec<u8> {
        self.inner().address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        match self.living() {
            Some(inner) => inner.connect(peer, address),
            None => Err(Error::Unreachable {
                transport: NAME,
                peer,
                reason: "this rank is dead".to_owned(),
            }),
        }
    }

    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        self.living()?.allocate(len)
    }

    fn leave(&mut self) {
        if let Some(inner) = self.living() {
            inner.leave();
        }
    }

    fn has_left(&self) -> bool {
        self.dead || self.inner().has_left()
    }

    fn unheard(&self, out: &mut Vec<Rank>) {
        self.inner().unheard(out);
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.inner().waiter()
    }

    fn ways(&self, out: &mut Vec<String>) {
        self.inner().ways(out);
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        let state = if self.dead { "dead, " } else { "" };
        // The sink's own failure has nowhere else to be reported.
        let _ = writeln!(
            out,
            "{NAME}: {state}{} held back, {}",
            self.held, self.options
        );
        self.inner().describe(out);
    }
}

impl RemoteAccess for FaultTransport {
    fn put(
        &mut self,
        lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        self.reach().map_or_else(
            |post| post,
            |inner| inner.put(lane, to, data, target, immediate, token),
        )
    }

    fn get(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        self.reach().map_or_else(
            |post| post,
            |inner| inner.get(lane, from, data, source, token),
        )
    }

    fn flush(&mut self, lane: Lane, to: EndpointId, token: Token) -> Post {
        self.reach()
            .map_or_else(|post| post, |inner| inner.flush(lane, to, token))
    }

    fn fence(&mut self, lane: Lane, to: EndpointId) -> Post {
        self.reach()
            .map_or_else(|post| post, |inner| inner.fence(lane, to))
    }

    fn fetch_add(
        &mut self,
        lane: Lane,
        to: EndpointId,
        target: RemoteMemory<'_>,
        operand: u64,
        token: Token,
    ) -> Post {
        self.reach().map_or_else(
            |post| post,
            |inner| inner.fetch_add(lane, to, target, operand, token),
        )
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        match self.living() {
            Some(inner) => inner.register(data),
            None => Err(Error::Unsupported {
                transport: NAME,
                what: "memory registration by a dead rank",
            }),
        }
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        match self.living() {
            Some(inner) => inner.expose(data),
            None => Err(Error::Unsupported {
                transport: NAME,
                what: "memory registration by a dead rank",
            }),
        }
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        // Also of a dead rank: the memory may be freed after this.
        if let Some(inner) = self.inner.as_deref_mut() {
            inner.deregister(handle);
        }
    }
}

impl CooperativeTransfers for FaultTransport {
    fn offer(&mut self, lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        match self.reach() {
            Ok(inner) => inner.offer(lane, to, data, token),
            Err(Post::Busy) => Offer::Busy,
            Err(_) => Offer::Unsupported,
        }
    }

    fn maps(&self, to: EndpointId, data: &SendBuffer) -> bool {
        let inner = self.inner.as_deref();
        inner.is_some_and(|inner| inner.maps(to, data))
    }

    fn goes_ahead(&mut self, to: EndpointId, data: &SendBuffer) -> bool {
        let inner = self.inner.as_deref_mut();
        inner.is_some_and(|inner| inner.goes_ahead(to, data))
    }

    fn claim(
        &mut self,
        lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        self.reach().map_or_else(
            |post| post,
            |inner| inner.claim(lane, from, ticket, data, token),
        )
    }

    fn offer_recv(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        token: Token,
    ) -> Offer {
        match self.reach() {
            Ok(inner) => inner.offer_recv(lane, from, data, token),
            Err(Post::Busy) => Offer::Busy,
            Err(_) => Offer::Unsupported,
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
        self.reach().map_or_else(
            |post| post,
            |inner| inner.fill(lane, to, ticket, data, token),
        )
    }

    fn revoke(&mut self, from: EndpointId, ticket: Ticket) -> bool {
        let inner = self.living();
        inner.is_some_and(|inner| inner.revoke(from, ticket))
    }

    fn forget(&mut self, to: EndpointId, ticket: Ticket) {
        if let Some(inner) = self.living() {
            inner.forget(to, ticket);
        }
    }

    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        if let Some(inner) = self.living() {
            inner.withdraw(to, ticket);
        }
    }
}

impl ByteTransport for FaultTransport {
    fn limits(&self) -> Limits {
        self.inner().limits()
    }

    fn towards(&self, to: EndpointId) -> (Capabilities, Limits) {
        let (capabilities, limits) = self.inner().towards(to);
        (self.kept(capabilities), limits)
    }

    fn preference(&self, to: EndpointId) -> Preference {
        self.inner().preference(to)
    }

    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.message(|inner| inner.send(lane, to, class, header, data))
    }

    fn send_from(&mut self, lane: Lane, to: EndpointId, header: AmHeader, body: &Body<'_>) -> Post {
        self.message(|inner| inner.send_from(lane, to, header, body))
    }

    fn send_zero_copy(
        &mut self,
        lane: Lane,
        to: EndpointId,
        header: AmHeader,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        self.message(|inner| inner.send_zero_copy(lane, to, header, data, token))
    }

    fn progress(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.now += 1;
        if self.dead {
            return 0;
        }
        let inner = match self.held {
            MOST_HELD.. => 0,
            _ => self.take_in(upcalls, |inner, intake| inner.progress(lane, intake)),
        };
        let told = self.let_go(upcalls);
        // While something is held back there is more to come without an arrival that would wake
        // a sleeper: the caller has to come again.
        inner + told + self.held
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.take_in(upcalls, |inner, intake| inner.look_after_peers(intake));
        self.let_go(upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.take_in(upcalls, |inner, intake| inner.peer_failed(rank, intake));
        self.let_go(upcalls);
    }

    fn peer_left(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.take_in(upcalls, |inner, intake| inner.peer_left(rank, intake));
        self.let_go(upcalls);
    }
}

impl fmt::Debug for FaultTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultTransport")
            .field("rank", &self.rank)
            .field("options", &self.options)
            .field("held", &self.held)
            .field("dead", &self.dead)
            .finish_non_exhaustive()
    }
}

impl Drop for FaultTransport {
    fn drop(&mut self) {
        if self.dead {
            // The dead say no goodbye: closing what is inside would be one.
            std::mem::forget(self.inner.take());
        }
    }
}
