//! Messages over any provider: what both transports of this crate stand on.
//!
//! ```text
//!     post ── inject, or a buffer of the pool ──> provider ──> multi-receive block ── deliver
//!        credit: 128 messages under way to a peer, at most    │
//!     <──────────────── in the header of what goes back ──────┘
//! ```
//!
//! The provider's own back-pressure differs from one to the next, and some have none but memory.
//! So each message counts, the receiver reports in every header how many it has consumed, and a
//! sender that is out of credit is `Busy`.

mod ops;
mod parting;
mod pool;
mod receives;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tagwire_base::bootstrap::{Bootstrap, JobSecret};
use tagwire_base::{Clock, Error as BaseError, Rank, Time};
use tagwire_libfabric_sys::bindings::{FI_EOVERRUN, FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE};

use tagwire_transport::{Arrival, EndpointId, Error, Outcome, PeerEvent, Result, Token};

pub(crate) use ops::{Access, Op};

use crate::NAME;
use crate::config::{Notices, OfiOptions};
use crate::error::Failure;
use crate::fabric::{Completion, Fault, Info, Net, OpId, Reading, Registered, Took};
use crate::link::{Greeting, Links};
use crate::quirks;
use crate::waiter::OfiWaiter;
use crate::wire::{Address, HEADER};
use ops::Ops;
use parting::{Farewell, Parting};
use pool::SendPool;
pub(crate) use pool::{MAX_INLINE, MAX_SEND, MAX_WIRE};
use receives::Receives;

/// Longest payload that is not copied, over providers that send messages of any length at once.
const MAX_LENT: usize = 64 * 1024;

/// Messages that may be under way to a peer, where the provider's queues are long enough.
const WINDOW: u32 = 128;

/// Batches of completions that one call of progress reads.
const BATCHES: usize = 4;

/// How long what a failed peer has sent has to come out of the provider, and then at most to be read.
const DRAIN_LIMIT: Duration = Duration::from_millis(2);

/// Calls of progress that may end with completions unread before peers are written to all the same.
const PUT_OFF: u32 = 8;

/// How long the provider may take to end what was under way with a peer that is gone.
const END_LIMIT: Duration = Duration::from_millis(5);

/// What the engine reports.
pub(crate) trait Sink {
    /// A message of the layer above.
    fn deliver(&mut self, arrival: Arrival<'_>);

    /// The operation that was given `token` has ended.
    fn complete(&mut self, token: Token, outcome: Outcome);

    /// Something happened to a peer.
    fn peer(&mut self, event: PeerEvent);

    /// A peer has written to memory of this rank, with this value.
    fn notice(&mut self, immediate: u64) {
        let _ = immediate;
    }

    /// A tagged operation has ended.
    fn tagged(&mut self, number: u32, end: Result<Completion, Fault>) {
        let _ = (number, end);
    }
}

/// What is told with the next progress.
#[derive(Debug)]
enum Event {
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
struct Identity {
    rank: Rank,
    stamp: u32,
    secret: JobSecret,
    address: Address,
}

/// An open endpoint with its peers.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) net: Net,
    pub(crate) links: Links,
    pub(crate) ops: Ops,
    pub(crate) clock: Clock,
    identity: Identity,
    pool: SendPool,
    receives: Receives,
    events: VecDeque<Event>,
    /// Peers for whom something is to be done: credit to be told, flushes to be asked for or replied to.
    listed: Vec<EndpointId>,
    /// Calls of progress for which that was put off.
    put_off: u32,
    /// Peers that have left, and have to be told that this was heard.
    parting: Vec<Parting>,
    window: u32,
    inject_size: usize,
    max_lent: usize,
    next_flush: u64,
    leaving: bool,
    farewell: Option<Farewell>,
    restless: bool,
    mid_transfer: bool,
    /// The queue of completions is lost.
    broken: bool,
    /// The failed and operations with the gone, and when they are given up. Those that end by
    /// themselves meanwhile stay: their names name nothing then.
    pub(crate) dying: VecDeque<(Time, Dying)>,
    silent: Arc<AtomicBool>,
    disconnect_timeout: Duration,
    waiter: Arc<OfiWaiter>,
    /// Writes may tell their target a value, as far as the user is concerned.
    notices: bool,
}

impl Engine {
    pub(crate) fn open(
        info: Info,
        options: &OfiOptions,
        bootstrap: &dyn Bootstrap,
    ) -> Result<Self> {
        let mut name = info.provider().name();
        if !options.source.is_empty() {
            name = format!("{name} on {} (TAGWIRE_OFI_SOURCE)", options.source);
        }
        let max_lent = match quirks::asks_before_long_messages(&info.provider()) {
            true => MAX_SEND,
            false => MAX_LENT,
        };
        let net = Net::open(info, &name, max_lent + HEADER)?;
        let provider = net.provider();
        let (transmit, receive) = provider.queue_sizes();
        let inject_size = provider.inject_size();
        let multi = quirks::trusts_multi_receives(&net) && !options.plain_receives;
        let format = provider.address_format();
        let failed = |what: &'static str| {
            let (name, library) = (name.clone(), net.library().clone());
            move |code| BaseError::from(Failure::new(&name, what, &library.describe(code)))
        };
        let address = Address {
            rank: bootstrap.rank(),
            format,
            name: net.address().map_err(failed("asking for the address"))?,
        };
        let arrivals = net
            .wait_descriptor()
            .and_then(|descriptor| descriptor.try_clone_to_owned().ok());
        let waiter = OfiWaiter::new(arrivals).map_err(|source| BaseError::System {
            what: "eventfd".to_owned(),
            source,
        })?;
        let mut stamp = [0; 4];
        getrandom::fill(&mut stamp)
            .map_err(|error| BaseError::Bootstrap(format!("no randomness: {error}")))?;
        let start = failed("posting receives");
        let mut engine = Self {
            net,
            links: Links::default(),
            ops: Ops::default(),
            clock: bootstrap.clock(),
            identity: Identity {
                rank: bootstrap.rank(),
                stamp: u32::from_ne_bytes(stamp),
                secret: bootstrap.secret().clone(),
                address,
            },
            pool: SendPool::default(),
            receives: Receives::new(multi, max_lent + HEADER),
            events: VecDeque::new(),
            listed: Vec::new(),
            put_off: 0,
            parting: Vec::new(),
            window: WINDOW.min((transmit.min(receive) / 2) as u32).max(16),
            inject_size,
            max_lent,
            next_flush: 0,
            leaving: false,
            farewell: None,
            restless: false,
            mid_transfer: false,
            broken: false,
            dying: VecDeque::new(),
            silent: Arc::clone(&options.silent),
            disconnect_timeout: options.disconnect_timeout,
            waiter: Arc::new(waiter),
            notices: options.notices == Notices::Data,
        };
        engine.start_receives().map_err(start)?;
        Ok(engine)
    }

    pub(crate) const fn rank(&self) -> Rank {
        self.identity.rank
    }

    pub(crate) const fn window(&self) -> u32 {
        self.window
    }

    pub(crate) fn has_remote_access(&self) -> bool {
        quirks::trusts_remote_access(&self.net)
    }

    pub(crate) fn has_threads(&self) -> bool {
        quirks::moves_by_threads(&self.net)
    }

    /// Bytes of the value that a write can tell its target.
    pub(crate) fn immediate_width(&self) -> usize {
        match self.notices && quirks::trusts_notices(&self.net) {
            true => self.net.provider().immediate_width().min(size_of::<u64>()),
            false => 0,
        }
    }

    pub(crate) const fn waiter(&self) -> &Arc<OfiWaiter> {
        &self.waiter
    }

    /// Longest payload of a message that is not copied.
    pub(crate) const fn max_lent(&self) -> usize {
        self.max_lent
    }

    pub(crate) const fn inject_size(&self) -> usize {
        self.inject_size
    }

    /// The transport above has things to do for which there was no room: nobody is to sleep.
    pub(crate) const fn set_restless(&mut self, restless: bool) {
        self.restless = restless;
    }

    /// The transport above is about to close, with bytes of lent buffers under way.
    pub(crate) const fn set_mid_transfer(&mut self) {
        self.mid_transfer = true;
    }

    /// Registers memory of the caller for an operation, where the provider asks for that.
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
        // SAFETY: as the caller promises.
        unsafe { self.net.register(start, len, access) }.map(Some)
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
    fn reach(&mut self, endpoint: EndpointId, address: &Address) -> Result<()> {
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

    /// Makes progress; returns how many things were told.
    #[inline]
    pub(crate) fn progress(&mut self, sink: &mut impl Sink) -> usize {
        let mut told = if self.events.is_empty() {
            0
        } else {
            self.tell(sink)
        };
        if self.broken {
            return told;
        }
        let mut drained = false;
        for _ in 0..BATCHES {
            match self.net.read() {
                Reading::Some(count) => {
                    for place in 0..count {
                        let completion = self.net.completion(place);
                        told += self.end(&completion, sink);
                    }
                }
                Reading::Nothing => {
                    drained = true;
                    break;
                }
                Reading::Fault(fault) => told += self.fail(&fault, sink),
                Reading::Broken(code) => told += self.give_all_up(code, sink),
            }
            if self.broken {
                return told;
            }
        }
        if !self.listed.is_empty() || self.receives.any_waits() || self.farewell.is_some() {
            self.advance_pending(drained);
        }
        if !self.parting.is_empty() {
            self.part();
        }
        if !self.dying.is_empty() {
            told += self.give_up(drained, sink);
        }
        if told == 0 && self.waiter.is_armed() && !self.has_to_do() {
            self.waiter.allow(|| self.net.may_sleep());
        }
        told
    }

    /// Something waits for room, of which nobody reports when there is.
    fn has_to_do(&self) -> bool {
        self.restless
            || self.farewell.is_some()
            || !self.dying.is_empty()
            || !self.parting.is_empty()
            || !self.listed.is_empty()
            || self.receives.any_waits()
    }

    #[cold]
    fn tell(&mut self, sink: &mut impl Sink) -> usize {
        let count = self.events.len();
        for _ in 0..count {
            match self.events.pop_front() {
                Some(Event::Complete(token, outcome)) => sink.complete(token, outcome),
                Some(Event::Failed(endpoint)) => sink.peer(PeerEvent::Failed(endpoint)),
                None => break,
            }
        }
        count
    }

    /// An operation has completed.
    #[inline]
    fn end(&mut self, completion: &Completion, sink: &mut impl Sink) -> usize {
        if completion.flags & FI_REMOTE_WRITE != 0 {
            return self.end_remote_write(completion, sink);
        }
        let Some(op) = completion.op else { return 0 };
        let Some(entry) = self.ops.get(op) else {
            return 0;
        };
        match entry {
            Op::Receive { chunk } => {
                let chunk = *chunk;
                self.take_message(chunk, completion, sink)
            }
            Op::Send { link, place } => {
                let (link, place) = (*link, *place);
                self.ops.free(op);
                self.pool.put_back(place);
                let link = &mut self.links[link];
                link.sending -= 1;
                // The hello goes alone.
                link.greeting = Greeting::Heard;
                0
            }
            Op::Tagged { number } => {
                let number = *number;
                self.ops.free(op);
                sink.tagged(number, Ok(*completion));
                1
            }
            Op::ZeroCopy { .. } => self.end_zero_copy(op, true, sink),
            Op::Access(_) => self.end_access(op, true, sink),
            Op::Orphan => {
                self.ops.free(op);
                0
            }
        }
    }

    /// A peer has written to memory of this rank.
    fn end_remote_write(&mut self, completion: &Completion, sink: &mut impl Sink) -> usize {
        if completion.flags & FI_REMOTE_CQ_DATA == 0 {
            return 0;
        }
        sink.notice(completion.data);
        1
    }

    /// An operation has failed.
    #[cold]
    fn fail(&mut self, fault: &Fault, sink: &mut impl Sink) -> usize {
        let Some(op) = fault.completion.op else {
            // That it ran over, a queue reports in either way.
            return match fault.error == FI_EOVERRUN as i32 {
                true => self.give_all_up(-fault.error, sink),
                false => 0,
            };
        };
        let Some(entry) = self.ops.get(op) else {
            return 0;
        };
        tracing::debug!(
            error = self.net.library().describe(fault.error),
            op = ?entry,
            "ofi: an operation failed"
        );
        match entry {
            Op::Receive { chunk } => {
                let chunk = *chunk;
                self.retire(chunk);
                0
            }
            Op::Send { link, place } => {
                let (link, place) = (*link, *place);
                self.ops.free(op);
                self.pool.put_back(place);
                self.links[link].sending -= 1;
                self.lose(link, sink)
            }
            Op::Tagged { number } => {
                let number = *number;
                self.ops.free(op);
                sink.tagged(number, Err(*fault));
                1
            }
            Op::ZeroCopy { link, .. } => {
                let link = *link;
                self.lose(link, sink) + self.end_zero_copy(op, false, sink)
            }
            Op::Access(_) => self.end_access(op, false, sink),
            Op::Orphan => {
                self.ops.free(op);
                0
            }
        }
    }

    fn end_zero_copy(&mut self, op: OpId, good: bool, sink: &mut impl Sink) -> usize {
        let Some(Op::ZeroCopy {
            link,
            place,
            token,
            len,
            ..
        }) = self.ops.remove(op)
        else {
            return 0;
        };
        self.pool.put_back(place);
        self.links[link].sending -= 1;
        let outcome = if good {
            Outcome::Done(len as u64)
        } else {
            Outcome::PeerFailed
        };
        sink.complete(token, outcome);
        1
    }

    fn end_access(&mut self, op: OpId, good: bool, sink: &mut impl Sink) -> usize {
        let Some(Op::Access(access)) = self.ops.remove(op) else {
            return 0;
        };
        let link = &mut self.links[access.link];
        link.accessing -= 1;
        let outcome = match (good, link.closed) {
            (true, false) => Outcome::Done(access.len),
            (false, false) => Outcome::Impossible,
            (_, true) => Outcome::PeerFailed,
        };
        if !link.flushes.is_empty() {
            self.list(access.link);
        }
        sink.complete(access.token, outcome);
        1
    }

    /// Ends contact with a peer that has failed; informs it, once.
    pub(crate) fn lose(&mut self, endpoint: EndpointId, sink: &mut impl Sink) -> usize {
        if self.links[endpoint].closed {
            return 0;
        }
        sink.peer(PeerEvent::Failed(endpoint));
        1 + self.close_link(endpoint, sink)
    }

    /// Ends contact with a peer: nothing comes from it any more, nothing goes to it.
    fn close_link(&mut self, endpoint: EndpointId, sink: &mut impl Sink) -> usize {
        self.disconnect(endpoint);
        self.end_link(endpoint, sink)
    }

    /// Takes note that a peer is gone.
    fn end_link(&mut self, endpoint: EndpointId, sink: &mut impl Sink) -> usize {
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

    /// Gives up what the provider was given long enough to end; `drained` says that nothing is left to be read.
    #[cold]
    fn give_up(&mut self, drained: bool, sink: &mut impl Sink) -> usize {
        let now = self.clock.now();
        let mut told = 0;
        while let Some((when, one)) = self.dying.front().copied() {
            let is_early = match one {
                Dying::Op(op) => when > now && self.ops.get(op).is_some(),
                Dying::Peer(_) => when > now || !drained && when + DRAIN_LIMIT > now,
            };
            if is_early {
                break;
            }
            self.dying.pop_front();
            told += match one {
                Dying::Op(op) => self.forsake(op, sink),
                Dying::Peer(endpoint) => self.lose(endpoint, sink),
            };
        }
        told
    }

    /// Ends an operation that the provider does not end. The provider must not touch its buffers
    /// any more; it may still report its end, which is not heeded then.
    fn forsake(&mut self, op: OpId, sink: &mut impl Sink) -> usize {
        match self.ops.orphan(op) {
            Some(Op::Tagged { number }) => sink.tagged(number, Err(Fault::given_up(op))),
            Some(Op::ZeroCopy { token, .. } | Op::Access(Access { token, .. })) => {
                sink.complete(token, Outcome::PeerFailed);
            }
            _ => return 0,
        }
        1
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

    /// The queue of completions is lost: nobody can be heard any more, and of no operation will it be
    /// known that it has ended. So all contact ends, then all operations, once the provider can touch
    /// their buffers no more: messages of peers that live may still come.
    #[cold]
    fn give_all_up(&mut self, code: i32, sink: &mut impl Sink) -> usize {
        self.broken = true;
        tracing::error!(
            error = self.net.library().describe(code),
            "ofi: the completion queue broke"
        );
        let all: Vec<_> = self.links.iter().map(|(endpoint, _)| endpoint).collect();
        let mut told = 0;
        for endpoint in all {
            told += self.lose(endpoint, sink);
            // Those that have left are closed, and may be connected all the same.
            self.disconnect(endpoint);
        }
        self.parting.clear();
        self.listed.clear();
        self.dying.clear();
        if !self.silence() {
            return told;
        }
        let ops: Vec<_> = self.ops.iter().map(|(op, _)| op).collect();
        told + ops
            .into_iter()
            .map(|op| self.forsake(op, sink))
            .sum::<usize>()
    }

    /// Sees to it that the provider touches no buffer any more, as far as it can be made to: returns
    /// whether that is so. Peers have been disconnected.
    fn silence(&mut self) -> bool {
        if quirks::closes_mid_transfer(&self.net) {
            self.net.close_endpoint();
            return !self.net.is_abandoned();
        }
        // This one moves bytes in calls of the library alone, of which none is made any more: its
        // endpoint stays open.
        true
    }

    /// The bootstrap says that `rank` has failed: progress takes what it sent, then tells that.
    pub(crate) fn peer_failed(&mut self, rank: Rank) {
        let endpoint = self.links.at(rank);
        if self.links[endpoint].closed {
            return;
        }
        if self.links[endpoint].peer.is_none() {
            // Nothing to be told of a stranger, but it cannot be reached later.
            self.links[endpoint].closed = true;
            return;
        }
        let until = self.clock.now() + DRAIN_LIMIT;
        self.dying.push_back((until, Dying::Peer(endpoint)));
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
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.silent.load(Ordering::Relaxed) {
            self.leave_now();
        }
        let mid_transfer = self.mid_transfer || self.ops.any_transfer();
        if mid_transfer && !quirks::closes_mid_transfer(&self.net) {
            self.net.abandon();
            self.ops.forget();
            return;
        }
        // The endpoint goes first, then the registrations of what was under way.
        self.net.close_endpoint();
        self.ops.clear();
    }
}
