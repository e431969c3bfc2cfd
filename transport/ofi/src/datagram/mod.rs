//! Datagrams of a provider: messages that may be lost, come twice and overtake each other, with no connection.
//!
//! ```text
//!     send ── inject, or a buffer ──> provider ──> a buffer for one datagram ── the job's? ── deliver
//! ```
//!
//! - A message is one datagram. Longer ones are the layer above's to cut ([`Limits::max_send`]).
//! - A peer's address comes from the bootstrap. Until a rank has heard from a peer, its datagrams carry its own address, so that the
//!   peer can reply.
//! - A datagram proves that it is of the job, and for this rank; one that does not, or has come before, is dropped.
//! - Nothing is acknowledged: there are no goodbyes, and a peer fails when the bootstrap says so. The transport is not
//!   [reliable](Capabilities::RELIABLE); data reliability (`tagwire-dr`) around it is.

#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::bootstrap::{Bootstrap, JobSecret};
use tagwire_base::slab::Slab;
use tagwire_base::{Error as BaseError, Rank};
use tagwire_libfabric_sys::bindings::FI_EINVAL;
use tagwire_transport::{
    AmHeader, Arrival, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId,
    Error, Lane, Limits, PeerEvent, Post, Preference, RemoteAccess, Result, Transport, Upcalls,
    WaitObject, Waiter,
};

use crate::NAME;
use crate::config::OfiOptions;
use crate::error::Failure;
use crate::fabric::{BlockId, Completion, Net, OpId, Peer, Place, Reading, Took};
use crate::open::{Use, open_info};
use crate::waiter::OfiWaiter;
use crate::wire::Address;

/// Buffers for datagrams that come, one each.
const RECEIVES: usize = 256;

/// Buffers for datagrams that the provider does not copy.
const SENDS: usize = 64;

/// Batches of completions that one call of progress reads.
const BATCHES: usize = 8;

/// Longest datagram that is sent, whatever the provider takes.
const LONGEST: usize = 16 * 1024;

/// An operation that the provider has.
#[derive(Debug)]
enum Op {
    Send(Place),
    Receive(BlockId),
}

/// A peer.
#[derive(Debug)]
struct Link {
    rank: Rank,
    peer: Option<Peer>,
    /// Where it is, as it publishes it.
    at: Vec<u8>,
    /// It has sent something: it knows where this rank is, and the layer above knows of it.
    is_heard: bool,
    is_closed: bool,
    /// Datagrams that were sent to it.
    sent: u64,
    /// Those that came from it.
    come: wire::Counts,
}

/// One rank's access to a provider's datagrams.
#[derive(Debug)]
pub struct OfiDatagram {
    net: Net,
    ops: Slab<Op>,
    /// Buffers that no send has.
    free: Vec<Place>,
    /// Buffers that the provider is to have.
    waiting: Vec<(BlockId, OpId)>,
    links: Vec<Link>,
    by_rank: HashMap<Rank, EndpointId>,
    rank: Rank,
    secret: JobSecret,
    address: Address,
    /// What this rank publishes.
    published: Vec<u8>,
    /// Longest datagram.
    longest: usize,
    waiter: Arc<OfiWaiter>,
    /// A datagram that is put together.
    draft: Vec<u8>,
    /// One that has come.
    inbox: Vec<u8>,
    /// Datagrams that were not of the job.
    foreign: u64,
    /// Those that had come before.
    repeated: u64,
    is_broken: bool,
}

impl OfiDatagram {
    /// Opens the datagrams of the provider that `options` name.
    ///
    /// # Errors
    /// When there is no such library or provider, or it has no datagrams.
    pub fn open(options: &OfiOptions, bootstrap: &dyn Bootstrap) -> Result<Self> {
        let info = open_info(options, bootstrap.size(), Use::Datagrams)?;
        let name = info.provider().name();
        let longest = info.provider().max_message().min(LONGEST);
        let net = Net::open(info, &name, longest)?;
        let failed = |what: &'static str| {
            let (name, library) = (name.clone(), net.library().clone());
            move |code| BaseError::from(Failure::new(&name, what, &library.describe(code)))
        };
        let address = Address {
            rank: bootstrap.rank(),
            format: net.provider().address_format(),
            name: net.address().map_err(failed("asking for the address"))?,
        };
        let published = address.encode();
        if published.len() > wire::MAX_ADDRESS || longest < LEAST {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "datagrams so short, or addresses so long",
            });
        }
        let waiter = OfiWaiter::of(&net)?;
        let mut datagram = Self {
            ops: Slab::default(),
            free: Vec::new(),
            waiting: Vec::new(),
            links: Vec::new(),
            by_rank: HashMap::new(),
            rank: bootstrap.rank(),
            secret: bootstrap.secret().clone(),
            address,
            published,
            longest,
            waiter: Arc::new(waiter),
            draft: Vec::new(),
            inbox: Vec::new(),
            foreign: 0,
            repeated: 0,
            is_broken: false,
            net,
        };
        datagram
            .allocate()
            .map_err(|code| datagram.failure("making room for datagrams", code))?;
        Ok(datagram)
    }

    fn failure(&self, what: &'static str, code: i32) -> BaseError {
        let (name, library) = (self.net.provider().name(), self.net.library());
        Failure::new(&name, what, &library.describe(code)).into()
    }

    /// Makes the buffers, and gives the provider those for what comes.
    fn allocate(&mut self) -> std::result::Result<(), i32> {
        for _ in 0..RECEIVES {
            let block = self.net.allocate(self.longest)?;
            let op = self.ops.insert(Op::Receive(block));
            self.waiting.push((block, op));
        }
        let sends = self.net.allocate(SENDS * self.longest)?;
        self.free.extend((0..SENDS).map(|number| Place {
            block: sends,
            offset: number * self.longest,
        }));
        self.offer_buffers()
    }

    /// Gives the provider what it may have.
    fn offer_buffers(&mut self) -> std::result::Result<(), i32> {
        while let Some((block, op)) = self.waiting.pop() {
            match self.net.receive_into(block, false, op) {
                Took::Yes => {}
                Took::Busy => {
                    self.waiting.push((block, op));
                    break;
                }
                Took::Failed(code) => {
                    self.waiting.push((block, op));
                    return Err(code);
                }
            }
        }
        Ok(())
    }

    /// Returns the endpoint for a rank.
    fn at(&mut self, rank: Rank) -> EndpointId {
        let next = EndpointId(self.links.len() as u32);
        let endpoint = *self.by_rank.entry(rank).or_insert(next);
        if endpoint == next {
            self.links.push(Link {
                rank,
                peer: None,
                at: Vec::new(),
                is_heard: false,
                is_closed: false,
                sent: 0,
                come: wire::Counts::default(),
            });
        }
        endpoint
    }

    /// Enters a peer and where it is, once. One whose address the provider refuses is not entered: nothing could be sent to it.
    fn reach(&mut self, rank: Rank, address: &Address) -> std::result::Result<EndpointId, i32> {
        let known = self.by_rank.get(&rank).copied();
        let is_settled = |endpoint: &EndpointId| {
            let link = &self.links[endpoint.index()];
            link.peer.is_some() || link.is_closed
        };
        if let Some(endpoint) = known.filter(is_settled) {
            return Ok(endpoint);
        }
        if !self.is_of_own_kind(address) {
            return Err(-(FI_EINVAL as i32));
        }
        let peer = self.net.insert(&address.name)?;
        let endpoint = self.at(rank);
        let link = &mut self.links[endpoint.index()];
        link.peer = Some(peer);
        link.at = address.encode();
        Ok(endpoint)
    }

    /// Whether an address may be one of this provider's. After one that is none, the provider of libfabric 1.17 takes no others either.
    fn is_of_own_kind(&self, address: &Address) -> bool {
        let (own, theirs) = (&self.address, address);
        let family = match own.format {
            // FI_SOCKADDR, FI_SOCKADDR_IN and FI_SOCKADDR_IN6 (fi_getinfo(3)): a sockaddr begins with its family.
            1..=3 => 2,
            _ => 0,
        };
        own.format == theirs.format
            && own.name.len() == theirs.name.len()
            && own.name.get(..family) == theirs.name.get(..family)
    }

    /// Sends a datagram whose payload of so many bytes `fill` appends.
    fn post(
        &mut self,
        to: EndpointId,
        words: AmHeader,
        len: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Post {
        if len > self.max_send() {
            return Post::Unsupported;
        }
        let links = &mut self.links;
        let link = links.get_mut(to.index()).filter(|link| !link.is_closed);
        let known = link.and_then(|link| Some((link.peer?, link)));
        let Some((peer, link)) = known.filter(|_| !self.is_broken) else {
            return Post::Gone;
        };
        let address = match link.is_heard {
            true => &[],
            false => &self.published[..],
        };
        // Of one that finds no room the next one has it: nobody has seen it.
        let count = link.sent + 1;
        let way = wire::Way {
            from: self.rank,
            to: link.rank,
            at: &link.at,
        };
        self.draft.clear();
        let draft = &mut self.draft;
        wire::write(way, count, words, &self.secret, address, draft);
        fill(&mut self.draft);
        let draft = &self.draft[..];
        let took = if draft.len() <= self.net.provider().inject_size() {
            self.net.inject(peer, draft)
        } else if let Some(place) = self.free.pop() {
            self.net.room(place, draft.len()).copy_from_slice(draft);
            let op = self.ops.insert(Op::Send(place));
            let took = self.net.send(peer, place, draft.len(), op);
            if took != Took::Yes {
                self.ops.remove(op);
                self.free.push(place);
            }
            took
        } else {
            Took::Busy
        };
        if took != Took::Busy
            && let Some(link) = self.links.get_mut(to.index())
        {
            link.sent = count;
        }
        match took {
            Took::Busy => Post::Busy,
            Took::Yes => Post::Posted,
            // A datagram that cannot be sent now, as where nobody listens, is one that is lost.
            Took::Failed(code) => {
                let error = self.net.library().describe(code);
                tracing::debug!(error, "ofi: a datagram was not sent");
                Post::Posted
            }
        }
    }

    /// Longest payload: an address may precede it.
    fn max_send(&self) -> usize {
        self.longest - wire::HEADER - self.published.len()
    }

    /// Takes what has come into a buffer.
    fn take(&mut self, bytes: &[u8], upcalls: &mut dyn Upcalls) -> bool {
        let Some(front) = wire::read(bytes, &self.secret, self.rank, &self.published) else {
            self.foreign += 1;
            return false;
        };
        let reached = match &front.address {
            Some(address) => self.reach(front.source, address),
            None => match self.by_rank.get(&front.source) {
                Some(endpoint) => Ok(*endpoint),
                // It will say where it is until it has heard from this rank.
                None => return false,
            },
        };
        let endpoint = match reached {
            Ok(endpoint) => endpoint,
            Err(code) => {
                let error = self.net.library().describe(code);
                tracing::debug!(error, "ofi: the address in a datagram is refused");
                return false;
            }
        };
        let link = &mut self.links[endpoint.index()];
        if link.is_closed {
            return false;
        }
        if !link.come.take(front.count) {
            self.repeated += 1;
            return false;
        }
        if !std::mem::replace(&mut link.is_heard, true) {
            let rank = link.rank;
            upcalls.peer(PeerEvent::Up { endpoint, rank });
        }
        upcalls.deliver(Arrival::kept(
            endpoint,
            front.words,
            &bytes[front.payload..],
        ));
        true
    }

    /// The provider is done with an operation.
    fn retire(&mut self, op: OpId) {
        match self.ops.get(op) {
            Some(Op::Send(place)) => {
                self.free.push(*place);
                self.ops.remove(op);
            }
            Some(Op::Receive(block)) => self.waiting.push((*block, op)),
            None => {}
        }
    }

    /// Takes what a completion brings; returns whether that is a message.
    fn completed(&mut self, completion: &Completion, upcalls: &mut dyn Upcalls) -> bool {
        let Some(op) = completion.op else {
            return false;
        };
        let mut bytes = std::mem::take(&mut self.inbox);
        bytes.clear();
        if let Some(Op::Receive(block)) = self.ops.get(op)
            && let Some(payload) = self.net.payload(*block, completion)
        {
            bytes.resize(payload.len(), 0);
            payload.copy_to_slice(&mut bytes);
        }
        self.retire(op);
        let is_message = !bytes.is_empty() && self.take(&bytes, upcalls);
        self.inbox = bytes;
        is_message
    }

    /// The provider has lost its queue: nobody can be heard.
    #[cold]
    fn lose_all(&mut self, code: i32, upcalls: &mut dyn Upcalls) {
        self.is_broken = true;
        tracing::warn!(
            error = self.net.library().describe(code),
            "ofi: the completion queue broke"
        );
        for (place, link) in self.links.iter_mut().enumerate() {
            if !std::mem::replace(&mut link.is_closed, true) {
                upcalls.peer(PeerEvent::Failed(EndpointId(place as u32)));
            }
        }
    }

    /// Reads what has come; returns how many messages there were.
    fn receive(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut messages = 0;
        for _ in 0..BATCHES {
            let count = match self.net.read() {
                Reading::Some(count) => count,
                Reading::Nothing => break,
                // Of a datagram that was not sent, or longer than any of ours.
                Reading::Fault(fault) => {
                    if let Some(op) = fault.completion.op {
                        self.retire(op);
                    }
                    continue;
                }
                Reading::Broken(code) => {
                    self.lose_all(code, upcalls);
                    break;
                }
            };
            for place in 0..count {
                let completion = self.net.completion(place);
                messages += usize::from(self.completed(&completion, upcalls));
            }
        }
        if let Err(code) = self.offer_buffers()
            && !self.is_broken
        {
            self.lose_all(code, upcalls);
        }
        messages
    }
}

/// Shortest longest datagram: room for what precedes the payload, and for what data reliability and the layer above it need.
const LEAST: usize = wire::HEADER + wire::MAX_ADDRESS + 128;

impl Transport for OfiDatagram {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::LOCAL | Capabilities::REMOTE;
        all.set(Capabilities::WAKE, self.waiter.sees_arrivals());
        all
    }

    fn address(&self) -> Vec<u8> {
        self.published.clone()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let bad = |reason: &str| Error::BadAddress {
            transport: NAME,
            peer,
            reason: reason.to_owned(),
        };
        let address = Address::decode(address).ok_or_else(|| bad("it is no address of ofi"))?;
        if address.rank != peer {
            return Err(bad("it is another rank's"));
        }
        if !self.is_of_own_kind(&address) {
            return Err(bad("it is of another provider"));
        }
        let reached = self.reach(peer, &address);
        reached.map_err(|code| Error::Unreachable {
            transport: NAME,
            peer,
            reason: self.net.library().describe(code),
        })
    }

    fn leave(&mut self) {}

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.waiter) as Arc<dyn Waiter>
    }

    fn describe(&self, out: &mut dyn Write) {
        for link in &self.links {
            let state = match (link.is_closed, link.is_heard) {
                (true, _) => "gone",
                (false, true) => "heard",
                (false, false) => "not heard",
            };
            // Whoever writes a dump has nobody to tell that it fails.
            let _ = writeln!(out, "ofi: datagrams, rank {}: {state}", link.rank);
        }
        let _ = writeln!(
            out,
            "ofi: {} datagrams that are not the job's, {} that had come before",
            self.foreign, self.repeated
        );
    }
}

impl RemoteAccess for OfiDatagram {}

impl CooperativeTransfers for OfiDatagram {}

impl ByteTransport for OfiDatagram {
    fn limits(&self) -> Limits {
        let most = self.max_send();
        let mut limits = Limits::copying(most.min(256), most);
        if self.waiter.sees_arrivals() {
            limits.wait_object = WaitObject::Descriptor;
        }
        limits
    }

    fn preference(&self, _to: EndpointId) -> Preference {
        Preference {
            remote_access: false,
            ..Preference::NETWORK
        }
    }

    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        _class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.post(to, header, data.len(), |draft| draft.extend(data))
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        self.post(to, header, body.len(), |draft| body.append_to(draft))
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        if self.is_broken {
            return 0;
        }
        let messages = self.receive(upcalls);
        if messages == 0 && self.waiter.is_armed() {
            let net = &self.net;
            self.waiter.allow(|| net.may_sleep());
        }
        messages
    }

    fn look_after_peers(&mut self, _upcalls: &mut dyn Upcalls) {}

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        let Some(endpoint) = self.by_rank.get(&rank).copied() else {
            // Nobody that this rank knows: it is not to be reached later either.
            let endpoint = self.at(rank);
            self.links[endpoint.index()].is_closed = true;
            return;
        };
        // What it has sent may have come.
        let mut left = LAST_LOOKS;
        while left > 0 && !self.is_broken && self.receive(upcalls) > 0 {
            left -= 1;
        }
        let link = &mut self.links[endpoint.index()];
        if !std::mem::replace(&mut link.is_closed, true) {
            upcalls.peer(PeerEvent::Failed(endpoint));
        }
    }
}

/// Looks at what has come before a peer that failed is closed.
const LAST_LOOKS: u32 = 16;

impl Drop for OfiDatagram {
    /// The endpoint is closed before the buffers go.
    fn drop(&mut self) {
        self.net.close_endpoint();
    }
}
