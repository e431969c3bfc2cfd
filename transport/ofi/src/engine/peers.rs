//! The peers of a rank: where they are, what is sent to them, and which operations with them the provider has.

use std::collections::VecDeque;
use std::time::Duration;

use tagwire_base::bootstrap::JobSecret;
use tagwire_base::{Clock, Rank, Time};
use tagwire_libfabric_sys::bindings::{FI_EHOSTUNREACH, FI_ENETDOWN, FI_ENETUNREACH};
use tagwire_transport::{EndpointId, Error, Outcome, Result, Token};

use super::Sink;
use super::ops::{Op, Ops};
use super::pool::SendPool;
use crate::NAME;
use crate::fabric::{Net, OpId, Registered, Took};
use crate::link::{Greeting, Links};
use crate::quirks;
use crate::registrations::Registrations;
use crate::wire::Address;

/// How long the provider may take to end what was under way with a peer that is gone.
pub(super) const END_LIMIT: Duration = Duration::from_millis(5);

/// How long a peer is waited for that is still to be connected to, while nothing leads to it from this host. One that cannot be reached
/// for longer has failed.
pub(super) const WAY_LIMIT: Duration = Duration::from_secs(2);

/// What is told with the next progress.
#[derive(Debug)]
pub(super) enum Event {
    Complete(Token, Outcome),
    Failed(EndpointId),
}

/// What is given up at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dying {
    /// An operation with a peer that is gone.
    Op(OpId),
    /// A peer that has failed: what it sent before may still come.
    Peer(EndpointId),
}

/// Who this rank is.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) rank: Rank,
    pub(super) stamp: u32,
    pub(super) secret: JobSecret,
    pub(super) address: Address,
}

/// The endpoint of a rank, as far as it sends, with its peers.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Before the net: registrations end before their domain.
    pub(crate) registrations: Registrations,
    pub(crate) net: Net,
    pub(crate) links: Links,
    pub(crate) ops: Ops,
    pub(crate) clock: Clock,
    pub(super) identity: Identity,
    pub(super) pool: SendPool,
    pub(super) events: VecDeque<Event>,
    /// Peers for whom something is to be done: credit to be told, flushes to be asked for or replied to.
    pub(super) listed: Vec<EndpointId>,
    pub(super) window: u32,
    pub(super) inject_size: usize,
    pub(super) max_lent: usize,
    pub(super) next_flush: u64,
    /// Whether a write is visible when its delivery is told, once that was tried.
    pub(crate) delivers: Option<bool>,
    /// The queue of completions is lost.
    pub(super) broken: bool,
    /// The failed and operations with the gone, and when they are given up. Those that end by
    /// themselves meanwhile stay: their names name nothing then.
    pub(crate) dying: VecDeque<(Time, Dying)>,
}

impl Peers {
    pub(crate) const fn rank(&self) -> Rank {
        self.identity.rank
    }

    pub(crate) const fn window(&self) -> u32 {
        self.window
    }

    pub(crate) const fn inject_size(&self) -> usize {
        self.inject_size
    }

    /// Longest payload of a message that is not copied.
    pub(crate) const fn max_lent(&self) -> usize {
        self.max_lent
    }

    /// Registers memory of the caller for an operation, with rights for this rank alone, where the provider asks for that.
    ///
    /// # Safety
    /// The memory is lent until the registration has been dropped.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    pub(crate) unsafe fn register_locally(
        &mut self,
        start: *const u8,
        len: usize,
        access: u64,
    ) -> std::result::Result<Option<Registered>, i32> {
        if len == 0 || !self.net.provider().registers_locally() {
            return Ok(None);
        }
        let Self {
            registrations, net, ..
        } = self;
        let register = |start, len, access| {
            // SAFETY: as the caller promises, for as long as the operation has it; rounded to pages these are there as well. Where it is
            // kept longer, no operation names it unless the memory is lent again and the same, and with rights for this rank alone nobody
            // else can.
            unsafe { net.register(start, len, access) }
        };
        registrations.lend(start, len, access, register).map(Some)
    }

    /// What this rank publishes.
    pub(crate) fn address(&self) -> Vec<u8> {
        self.identity.address.encode()
    }

    /// The endpoint for `peer`, whose published address is `bytes`.
    pub(crate) fn connect(&mut self, peer: Rank, bytes: &[u8]) -> Result<EndpointId> {
        let bad = |reason: &str| Error::BadAddress {
            transport: NAME,
            peer,
            reason: reason.to_owned(),
        };
        let address = Address::decode(bytes).ok_or_else(|| bad("it is no address of ofi"))?;
        if address.rank != peer {
            return Err(bad("it is another rank's"));
        }
        let own = &self.identity.address;
        if (address.format, address.name.len()) != (own.format, own.name.len())
            && address.format != own.format
        {
            return Err(bad("it is of another provider"));
        }
        if self.broken {
            return Err(Error::Unreachable {
                transport: NAME,
                peer,
                reason: "the completion queue of this rank broke".to_owned(),
            });
        }
        let endpoint = self.links.at(peer);
        self.reach(endpoint, &address)?;
        Ok(endpoint)
    }

    /// Enters where a peer is, once.
    pub(super) fn reach(&mut self, endpoint: EndpointId, address: &Address) -> Result<()> {
        let link = &mut self.links[endpoint];
        if link.peer.is_some() {
            return Ok(());
        }
        let peer = self
            .net
            .insert(&address.name)
            .map_err(|code| Error::Unreachable {
                transport: NAME,
                peer: address.rank,
                reason: self.net.library().describe(code),
            })?;
        link.peer = Some(peer);
        Ok(())
    }

    /// Tells `token` with the next progress.
    pub(crate) fn tell_later(&mut self, token: Token, outcome: Outcome) {
        self.events.push_back(Event::Complete(token, outcome));
    }

    /// Takes note that a peer is gone.
    pub(super) fn end_link(&mut self, endpoint: EndpointId, sink: &mut impl Sink) -> usize {
        let link = &mut self.links[endpoint];
        link.closed = true;
        link.answers.clear();
        let flushes = std::mem::take(&mut link.flushes);
        let tokens = flushes.iter().filter_map(|flush| flush.token);
        tokens
            .map(|token| sink.complete(token, Outcome::PeerFailed))
            .count()
    }

    /// Lets the provider end what is under way with a peer that is gone.
    pub(crate) fn disconnect(&mut self, endpoint: EndpointId) {
        if let Some(peer) = self.links[endpoint].peer.take()
            && quirks::disconnects(&self.net)
        {
            self.net.remove(peer);
            let ops: Vec<_> = self.ops.with(endpoint).collect();
            for op in ops {
                self.give_up_soon(op);
            }
        }
    }

    /// An operation with a peer that is gone, whose connection is closed: should the provider
    /// never report its end (that of `ofi_rxm` does not always), it is given up after a while.
    pub(crate) fn give_up_soon(&mut self, op: OpId) {
        if !self.broken && quirks::disconnects(&self.net) {
            let until = self.clock.now() + END_LIMIT;
            self.dying.push_back((until, Dying::Op(op)));
        }
    }

    /// Gives a tagged operation to the provider, which `post` does, under a name of its own. After
    /// the queue of completions was lost the provider is given nothing, as if it had no room.
    pub(crate) fn start_tagged(
        &mut self,
        number: u32,
        post: impl FnOnce(&mut Net, OpId) -> Took,
    ) -> std::result::Result<OpId, Took> {
        if self.broken {
            return Err(Took::Busy);
        }
        let op = self.ops.insert(Op::Tagged { number });
        match post(&mut self.net, op) {
            Took::Yes => Ok(op),
            took => {
                self.ops.free(op);
                Err(took)
            }
        }
    }

    /// Whether the queue of completions is lost: every operation has ended, and the provider is given
    /// no others.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether a peer to which a message failed is waited for: none has gone to it yet, and nothing leads to it for now, as where a cable is
    /// out. A connection that is there outlives that, since the kernel sends again; one that is to be made is refused at once.
    #[cold]
    pub(super) fn waits_for_way(&mut self, to: EndpointId, code: i32) -> bool {
        let is_out = [FI_ENETDOWN, FI_ENETUNREACH, FI_EHOSTUNREACH]
            .contains(&u64::from(code.unsigned_abs()));
        let link = &mut self.links[to];
        if link.greeting != Greeting::Unsaid || !is_out {
            return false;
        }
        // Nobody says when there is a way again: who waits looks again soon.
        self.net.refusals().note();
        let now = self.clock.now();
        now < *link.awaited.get_or_insert(now + WAY_LIMIT)
    }

    /// A verb found out that a peer is gone: it is closed at once and told with progress.
    pub(crate) fn lose_later(&mut self, endpoint: EndpointId, code: i32) {
        let link = &mut self.links[endpoint];
        tracing::debug!(
            rank = link.rank.as_u32(),
            error = self.net.library().describe(code),
            "ofi: a peer cannot be sent to"
        );
        if !std::mem::replace(&mut link.closed, true) {
            self.disconnect(endpoint);
            let link = &mut self.links[endpoint];
            let flushes = std::mem::take(&mut link.flushes);
            self.events.push_back(Event::Failed(endpoint));
            for token in flushes.iter().filter_map(|flush| flush.token) {
                self.tell_later(token, Outcome::PeerFailed);
            }
        }
    }

    /// The provider takes no receives any more: nobody can be heard, which is told with progress.
    #[cold]
    pub(crate) fn lose_all_later(&mut self, code: i32) {
        let open = self.links.iter().filter(|(_, link)| !link.closed);
        let open: Vec<_> = open.map(|(endpoint, _)| endpoint).collect();
        for endpoint in open {
            self.lose_later(endpoint, code);
        }
    }

    /// One line for each peer.
    pub(crate) fn describe(&self, out: &mut dyn std::fmt::Write) {
        for (endpoint, link) in self.links.iter() {
            let state = match (link.closed, link.stamp) {
                (true, _) => "gone",
                (false, Some(_)) => "in contact",
                (false, None) => "not heard of",
            };
            // Whoever writes a dump has nobody to tell that it fails.
            let _ = writeln!(
                out,
                "ofi: rank {} (endpoint {}): {state}, {} messages under way of {}, {} not \
                 completed, {} remote accesses, {} flushes",
                link.rank.as_u32(),
                endpoint.0,
                link.in_flight(),
                self.window,
                link.sending,
                link.accessing,
                link.flushes.len(),
            );
        }
        if self.net.provider().registers_locally() {
            let _ = writeln!(out, "ofi: {}", self.registrations);
        }
    }
}
