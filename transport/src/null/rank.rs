//! The rank's object: its peers, and the verbs towards them.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::Rank;

use super::NAME;
use super::config::NullOptions;
use super::memory::Registrations;
use crate::body::Body;
use crate::byte::ByteTransport;
use crate::capability::{Capabilities, Limits, Ordering, Registration, WaitObject};
use crate::cooperative::CooperativeTransfers;
use crate::data::{RecvBuffer, SendBuffer};
use crate::epoch::EpochWaiter;
use crate::error::{Error, Result};
use crate::message::{AmHeader, EndpointId, Lane, Outcome, PeerEvent, Token, Upcalls};
use crate::post::{Class, Post};
use crate::remote::{RegistrationHandle, RemoteAccess, RemoteMemory};
use crate::transport::Transport;
use crate::wait::Waiter;

/// A peer: the own rank, or one that only swallows.
#[derive(Debug)]
struct Link {
    rank: Rank,
    /// Its failure was reported: sends return `Gone`.
    closed: bool,
}

/// A message to the own rank, on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) header: AmHeader,
    pub(super) bytes: Vec<u8>,
}

/// A transport that reaches the own rank, and nobody else.
#[derive(Debug)]
pub struct NullTransport {
    pub(super) rank: Rank,
    pub(super) options: NullOptions,
    links: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
    /// The own rank's endpoint, whose contact is to be reported.
    pub(super) greeting: Option<EndpointId>,
    pub(super) own: Option<EndpointId>,
    pub(super) queue: VecDeque<Message>,
    pub(super) completions: VecDeque<(Token, Outcome)>,
    /// Of puts, not told yet.
    pub(super) notices: VecDeque<u64>,
    registrations: Registrations,
    waiter: Arc<EpochWaiter>,
}

impl NullTransport {
    /// The transport of rank `rank`.
    #[must_use]
    pub fn new(rank: Rank, options: NullOptions) -> Self {
        Self {
            rank,
            options: options.made_consistent(),
            links: Vec::new(),
            by_rank: HashMap::new(),
            greeting: None,
            own: None,
            queue: VecDeque::new(),
            completions: VecDeque::new(),
            notices: VecDeque::new(),
            registrations: Registrations::default(),
            waiter: Arc::new(EpochWaiter::default()),
        }
    }

    fn link(&mut self, rank: Rank) -> EndpointId {
        *self.by_rank.entry(rank).or_insert_with(|| {
            self.links.push(Link {
                rank,
                closed: false,
            });
            EndpointId(self.links.len() as u32 - 1)
        })
    }

    /// Ends an operation on own memory: done, or not possible for what was named.
    fn finish(&mut self, to: EndpointId, token: Token, moved: Option<u64>) -> Post {
        debug_assert_eq!(self.own, Some(to));
        let outcome = moved.map_or(Outcome::Impossible, Outcome::Done);
        self.completions.push_back((token, outcome));
        self.waiter.wake();
        Post::Posted
    }

    fn address_of(rank: Rank) -> Vec<u8> {
        let mut blob = NAME.as_bytes().to_vec();
        blob.extend(rank.as_u32().to_le_bytes());
        blob
    }
}

impl Transport for NullTransport {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PUT
            | Capabilities::NOTICE
            | Capabilities::GET
            | Capabilities::WAKE
            | Capabilities::ORDERED
            | Capabilities::RELIABLE
            | Capabilities::LOOPBACK
    }

    fn address(&self) -> Vec<u8> {
        Self::address_of(self.rank)
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        if address != Self::address_of(peer) {
            return Err(Error::BadAddress {
                transport: NAME,
                peer,
                reason: format!(
                    "{} bytes that name another rank or transport",
                    address.len()
                ),
            });
        }
        let endpoint = self.link(peer);
        if peer == self.rank && self.own.is_none() {
            self.own = Some(endpoint);
            self.greeting = Some(endpoint);
        }
        Ok(endpoint)
    }

    // Nobody is there to be told.
    fn leave(&mut self) {}

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter) as Arc<dyn Waiter>
    }

    fn describe(&self, out: &mut dyn Write) {
        for (index, link) in self.links.iter().enumerate() {
            let untaken = match self.own {
                Some(own) if own.index() == index => self.queue.len(),
                _ => 0,
            };
            let closed = if link.closed { ", closed" } else { "" };
            // The sink's own failure has nowhere else to be reported.
            let _ = writeln!(out, "{NAME}: rank {}: {untaken} untaken{closed}", link.rank);
        }
    }
}

impl RemoteAccess for NullTransport {
    fn put(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        if self.own != Some(to) {
            return Post::Unsupported;
        }
        let moved = self.registrations.put(data, target);
        self.notices.extend(immediate.filter(|_| moved.is_some()));
        self.finish(to, token, moved)
    }

    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        if self.own != Some(from) || data.region().is_none() {
            return Post::Unsupported;
        }
        let moved = self.registrations.get(data, source);
        self.finish(from, token, moved)
    }

    fn flush(&mut self, _lane: Lane, to: EndpointId, token: Token) -> Post {
        if self.own != Some(to) {
            return Post::Unsupported;
        }
        self.finish(to, token, Some(0))
    }

    fn fence(&mut self, _lane: Lane, to: EndpointId) -> Post {
        // A put is done when it returns: any two are in order.
        if self.own == Some(to) {
            Post::Posted
        } else {
            Post::Unsupported
        }
    }

    fn fetch_add(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        target: RemoteMemory<'_>,
        operand: u64,
        token: Token,
    ) -> Post {
        if self.own != Some(to) {
            return Post::Unsupported;
        }
        let old = self.registrations.fetch_add(target, operand);
        self.finish(to, token, old)
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let region = data.region().ok_or(Error::Unsupported {
            transport: NAME,
            what: "registration of memory that is not contiguous",
        })?;
        Ok(self.registrations.register(region))
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let region = data.region().ok_or(Error::Unsupported {
            transport: NAME,
            what: "registration of memory that is not contiguous",
        })?;
        Ok(self.registrations.expose(region))
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        self.registrations.deregister(handle.id);
    }
}

impl CooperativeTransfers for NullTransport {}

impl NullTransport {
    /// Sends a message of `len` bytes, which `copy` copies where it goes to the rank itself.
    fn enqueue(
        &mut self,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        len: usize,
        copy: impl FnOnce() -> Vec<u8>,
    ) -> Post {
        if len > self.options.max_send {
            return Post::Unsupported;
        }
        match self.links.get(to.index()) {
            Some(link) if !link.closed => {}
            _ => return Post::Gone,
        }
        if self.own != Some(to) {
            return Post::Posted;
        }
        let room = match class {
            Class::Data => self.options.slots - self.options.control_slots,
            Class::Control => self.options.slots,
        };
        if self.queue.len() >= room {
            return Post::Busy;
        }
        let bytes = copy();
        self.queue.push_back(Message { header, bytes });
        self.waiter.wake();
        Post::Posted
    }
}

impl ByteTransport for NullTransport {
    fn limits(&self) -> Limits {
        Limits {
            max_remote_access: isize::MAX as u64,
            immediate_width: 8,
            memory_per_peer: 0,
            ordering: Ordering::WriteAfterWrite,
            registration: Registration::Remote,
            wait_object: WaitObject::Futex,
            ..Limits::copying(self.options.max_send.min(40), self.options.max_send)
        }
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
        self.greet(upcalls) + self.deliver(upcalls) + self.complete(upcalls)
    }

    fn look_after_peers(&mut self, _upcalls: &mut dyn Upcalls) {
        // The own rank lives as long as this is called; the others were never there.
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        if rank == self.rank {
            return;
        }
        let known = self.by_rank.contains_key(&rank);
        let endpoint = self.link(rank);
        let link = &mut self.links[endpoint.index()];
        if !std::mem::replace(&mut link.closed, true) && known {
            upcalls.peer(PeerEvent::Failed(endpoint));
        }
    }
}
