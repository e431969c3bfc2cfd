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
mod peers;
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

use tagwire_base::bootstrap::Bootstrap;
use tagwire_base::{Error as BaseError, Rank};
use tagwire_libfabric_sys::bindings::{FI_EOVERRUN, FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE};

use tagwire_transport::{Arrival, EndpointId, Outcome, PeerEvent, Result, Token};

pub(crate) use ops::{Access, Op};

use crate::config::{Notices, OfiOptions};
use crate::error::Failure;
use crate::fabric::{BATCH, Completion, Fault, Info, Net, OpId, Reading};
use crate::link::{Greeting, Links};
use crate::quirks;
use crate::registrations::Registrations;
use crate::waiter::OfiWaiter;
use crate::wire::{Address, HEADER};
use ops::Ops;
use parting::{Goodbyes, IgnoreUpcalls};
pub(crate) use peers::Peers;
use peers::{Dying, Event, Identity};
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

/// How long a rank that was dropped before it had left leaves the core to others while nothing comes.
const PAUSE: Duration = Duration::from_micros(100);

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

/// An open endpoint with its peers.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) peers: Peers,
    receives: Receives,
    goodbyes: Goodbyes,
    /// Calls of progress for which what is owed to peers was put off.
    put_off: u32,
    restless: bool,
    mid_transfer: bool,
    silent: Arc<AtomicBool>,
    waiter: Arc<OfiWaiter>,
    /// Writes may tell their target a value, as far as the user is concerned.
    notices: bool,
    /// Messages of nobody in the job.
    refused: u64,
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
        let waiter = OfiWaiter::of(&net)?;
        let mut stamp = [0; 4];
        getrandom::fill(&mut stamp)
            .map_err(|error| BaseError::Bootstrap(format!("no randomness: {error}")))?;
        let start = failed("posting receives");
        let mut peers = Peers {
            registrations: Registrations::new(options.registrations, options.registered_bytes),
            net,
            links: Links::counted_from(options.first_message),
            ops: Ops::default(),
            clock: bootstrap.clock(),
            identity: Identity {
                rank: bootstrap.rank(),
                stamp: u32::from_ne_bytes(stamp),
                secret: bootstrap.secret().clone(),
                address,
            },
            pool: SendPool::default(),
            events: VecDeque::new(),
            listed: Vec::new(),
            window: WINDOW.min((transmit.min(receive) / 2) as u32).max(16),
            inject_size,
            max_lent,
            next_flush: 0,
            delivers: None,
            broken: false,
            dying: VecDeque::new(),
        };
        let mut receives = Receives::new(multi, max_lent + HEADER);
        let started = receives.start(&mut peers.net, &mut peers.ops);
        started.map_err(start)?;
        Ok(Self {
            peers,
            receives,
            goodbyes: Goodbyes::new(options.disconnect_timeout),
            put_off: 0,
            restless: false,
            mid_transfer: false,
            silent: Arc::clone(&options.silent),
            waiter: Arc::new(waiter),
            notices: options.notices == Notices::Data,
            refused: 0,
        })
    }

    pub(crate) fn has_remote_access(&self) -> bool {
        quirks::trusts_remote_access(&self.peers.net)
    }

    pub(crate) fn has_threads(&self) -> bool {
        quirks::moves_by_threads(&self.peers.net)
    }

    /// Bytes of the value that a write can tell its target.
    pub(crate) fn immediate_width(&self) -> usize {
        let net = &self.peers.net;
        match self.notices && quirks::trusts_notices(net) {
            true => net.provider().immediate_width().min(size_of::<u64>()),
            false => 0,
        }
    }

    pub(crate) const fn waiter(&self) -> &Arc<OfiWaiter> {
        &self.waiter
    }

    /// The transport above has things to do for which there was no room: nobody is to sleep.
    pub(crate) const fn set_restless(&mut self, restless: bool) {
        self.restless = restless;
    }

    /// The transport above is about to close, with bytes of lent buffers under way.
    pub(crate) const fn set_mid_transfer(&mut self) {
        self.mid_transfer = true;
    }

    /// Makes progress; returns how many things were told.
    #[inline]
    pub(crate) fn progress(&mut self, sink: &mut impl Sink) -> usize {
        let mut told = if self.peers.events.is_empty() {
            0
        } else {
            self.tell(sink)
        };
        if self.peers.broken {
            return told;
        }
        let mut drained = false;
        for _ in 0..BATCHES {
            match self.peers.net.read() {
                Reading::Some(count) => {
                    for place in 0..count {
                        let completion = self.peers.net.completion(place);
                        told += self.end(&completion, sink);
                    }
                    // These were all, and another look, a call of the system, would stand between a message and its answer.
                    let are_all = count < BATCH && told > 0;
                    if are_all && !self.has_to_do() && !self.goodbyes.has_begun() {
                        break;
                    }
                }
                Reading::Nothing => {
                    drained = true;
                    break;
                }
                Reading::Fault(fault) => told += self.fail(&fault, sink),
                Reading::Broken(code) => told += self.give_all_up(code, sink),
            }
            if self.peers.broken {
                return told;
            }
        }
        if !self.peers.listed.is_empty() || self.receives.any_waits() || self.goodbyes.has_begun() {
            self.advance_pending(drained);
        }
        if self.goodbyes.are_under_way() {
            self.goodbyes.part(&mut self.peers);
        }
        if !self.peers.dying.is_empty() {
            told += self.give_up(drained, sink);
        }
        if told == 0 && self.waiter.is_armed() && !self.has_to_do() {
            self.waiter.allow(|| self.peers.net.may_sleep());
        }
        told
    }

    /// Something waits for room, of which nobody reports when there is.
    fn has_to_do(&self) -> bool {
        self.restless
            || !self.peers.dying.is_empty()
            || self.goodbyes.are_under_way()
            || !self.peers.listed.is_empty()
            || self.receives.any_waits()
    }

    #[cold]
    fn tell(&mut self, sink: &mut impl Sink) -> usize {
        let count = self.peers.events.len();
        for _ in 0..count {
            match self.peers.events.pop_front() {
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
        let Some(entry) = self.peers.ops.get(op) else {
            return 0;
        };
        match entry {
            Op::Receive { chunk } => {
                let chunk = *chunk;
                self.take_message(chunk, completion, sink)
            }
            Op::Send { link, place } => {
                let (link, place) = (*link, *place);
                self.peers.ops.free(op);
                self.peers.pool.put_back(place);
                let link = &mut self.peers.links[link];
                link.sending -= 1;
                // The hello goes alone.
                link.greeting = Greeting::Heard;
                0
            }
            Op::Tagged { number } => {
                let number = *number;
                self.peers.ops.free(op);
                sink.tagged(number, Ok(*completion));
                1
            }
            Op::ZeroCopy { .. } => self.end_zero_copy(op, true, sink),
            Op::Access(_) => self.end_access(op, true, sink),
            Op::Orphan => {
                self.peers.ops.free(op);
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
        let Some(entry) = self.peers.ops.get(op) else {
            return 0;
        };
        tracing::debug!(
            error = self.peers.net.library().describe(fault.error),
            op = ?entry,
            "ofi: an operation failed"
        );
        match entry {
            Op::Receive { chunk } => {
                let chunk = *chunk;
                self.receives.note_cut(chunk);
                0
            }
            Op::Send { link, place } => {
                let (link, place) = (*link, *place);
                self.peers.ops.free(op);
                self.peers.pool.put_back(place);
                self.peers.links[link].sending -= 1;
                self.lose(link, sink)
            }
            Op::Tagged { number } => {
                let number = *number;
                self.peers.ops.free(op);
                sink.tagged(number, Err(*fault));
                1
            }
            Op::ZeroCopy { link, .. } => {
                let link = *link;
                self.lose(link, sink) + self.end_zero_copy(op, false, sink)
            }
            Op::Access(_) => self.end_access(op, false, sink),
            Op::Orphan => {
                self.peers.ops.free(op);
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
        }) = self.peers.ops.remove(op)
        else {
            return 0;
        };
        self.peers.pool.put_back(place);
        self.peers.links[link].sending -= 1;
        let outcome = if good {
            Outcome::Done(len as u64)
        } else {
            Outcome::PeerFailed
        };
        sink.complete(token, outcome);
        1
    }

    fn end_access(&mut self, op: OpId, good: bool, sink: &mut impl Sink) -> usize {
        let Some(Op::Access(access)) = self.peers.ops.remove(op) else {
            return 0;
        };
        let link = &mut self.peers.links[access.link];
        link.accessing -= 1;
        let outcome = match (good, link.closed) {
            (true, false) => Outcome::Done(access.len),
            (false, false) => Outcome::Impossible,
            (_, true) => Outcome::PeerFailed,
        };
        if !link.flushes.is_empty() {
            self.peers.list(access.link);
        }
        sink.complete(access.token, outcome);
        1
    }

    /// Ends contact with a peer that has failed; informs it, once.
    pub(crate) fn lose(&mut self, endpoint: EndpointId, sink: &mut impl Sink) -> usize {
        if self.peers.links[endpoint].closed {
            return 0;
        }
        sink.peer(PeerEvent::Failed(endpoint));
        1 + self.close_link(endpoint, sink)
    }

    /// Ends contact with a peer: nothing comes from it any more, nothing goes to it.
    fn close_link(&mut self, endpoint: EndpointId, sink: &mut impl Sink) -> usize {
        self.peers.disconnect(endpoint);
        self.peers.end_link(endpoint, sink)
    }

    /// Gives up what the provider was given long enough to end; `drained` where nothing is left to be read.
    #[cold]
    fn give_up(&mut self, drained: bool, sink: &mut impl Sink) -> usize {
        let now = self.peers.clock.now();
        let mut told = 0;
        while let Some((when, one)) = self.peers.dying.front().copied() {
            let is_early = match one {
                Dying::Op(op) => when > now && self.peers.ops.get(op).is_some(),
                Dying::Peer(_) => when > now || !drained && when + DRAIN_LIMIT > now,
            };
            if is_early {
                break;
            }
            self.peers.dying.pop_front();
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
        match self.peers.ops.orphan(op) {
            Some(Op::Tagged { number }) => sink.tagged(number, Err(Fault::given_up(op))),
            Some(Op::ZeroCopy { token, .. } | Op::Access(Access { token, .. })) => {
                sink.complete(token, Outcome::PeerFailed);
            }
            _ => return 0,
        }
        1
    }

    /// The queue of completions is lost: nobody can be heard any more, and of no operation will it be
    /// known that it has ended. So all contact ends, then all operations, once the provider can touch
    /// their buffers no more: messages of peers that live may still come.
    #[cold]
    fn give_all_up(&mut self, code: i32, sink: &mut impl Sink) -> usize {
        self.peers.broken = true;
        tracing::error!(
            error = self.peers.net.library().describe(code),
            "ofi: the completion queue broke"
        );
        let links = self.peers.links.iter();
        let all: Vec<_> = links.map(|(endpoint, _)| endpoint).collect();
        let mut told = 0;
        for endpoint in all {
            told += self.lose(endpoint, sink);
            // Those that have left are closed, and may be connected all the same.
            self.peers.disconnect(endpoint);
        }
        self.goodbyes.forget();
        self.peers.listed.clear();
        self.peers.dying.clear();
        if !self.silence() {
            return told;
        }
        let ops: Vec<_> = self.peers.ops.iter().map(|(op, _)| op).collect();
        told + ops
            .into_iter()
            .map(|op| self.forsake(op, sink))
            .sum::<usize>()
    }

    /// Sees to it that the provider touches no buffer any more, as far as it can be made to: returns
    /// whether that is so. Peers have been disconnected.
    fn silence(&mut self) -> bool {
        if quirks::closes_mid_transfer(&self.peers.net) {
            self.peers.net.close_endpoint();
            return !self.peers.net.is_abandoned();
        }
        // This one moves bytes in calls of the library alone, of which none is made any more: its
        // endpoint stays open.
        true
    }

    /// Notes that `rank` has failed, by the bootstrap: progress takes what it sent, then reports the failure.
    pub(crate) fn peer_failed(&mut self, rank: Rank) {
        let endpoint = self.peers.links.at(rank);
        if self.peers.links[endpoint].closed {
            return;
        }
        if self.peers.links[endpoint].peer.is_none() {
            // Nothing to be told of a stranger, but it cannot be reached later.
            self.peers.links[endpoint].closed = true;
            return;
        }
        let until = self.peers.clock.now() + DRAIN_LIMIT;
        self.peers.dying.push_back((until, Dying::Peer(endpoint)));
    }

    /// Does what is owed to peers, as far as there is room; `drained` says that nothing is left to
    /// be read.
    #[cold]
    pub(super) fn advance_pending(&mut self, drained: bool) {
        let Peers { net, ops, .. } = &mut self.peers;
        if let Err(code) = self.receives.post(net, ops) {
            self.peers.lose_all_later(code);
        }
        // What has come is read first: should a goodbye be in it, a word to who has gone would reset
        // the connection, and the goodbye with it. But a stream that never ends is not waited for.
        if !drained && self.put_off < PUT_OFF {
            self.put_off += 1;
            return;
        }
        self.put_off = 0;
        self.peers.serve_listed();
        self.goodbyes.say(&mut self.peers);
    }

    /// Begins to say goodbye; progress goes on with it.
    pub(crate) fn leave(&mut self) {
        self.goodbyes.leave(self.peers.clock.now());
    }

    /// Returns whether all peers have heard the goodbye, or are waited for no more.
    pub(crate) fn has_left(&self) -> bool {
        self.goodbyes.has_left(&self.peers)
    }

    /// Says goodbye in a rank that was dropped before it had left, and waits until that is heard.
    fn leave_now(&mut self) {
        self.goodbyes.begin_last(self.peers.clock.now());
        while !self.has_left() {
            if self.progress(&mut IgnoreUpcalls) == 0 {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.silent.load(Ordering::Relaxed) {
            self.leave_now();
        }
        let mid_transfer = self.mid_transfer || self.peers.ops.any_transfer();
        if mid_transfer && !quirks::closes_mid_transfer(&self.peers.net) {
            self.peers.net.abandon();
            self.peers.ops.forget();
            return;
        }
        // The endpoint goes first, then the registrations of what was under way.
        self.peers.net.close_endpoint();
        self.peers.ops.clear();
    }
}
