//! ob1: matching in software, over any [`ByteTransport`].
//!
//! ```text
//!    isend ---> fast path: one packet, one cache line, no request
//!       \-----> queue per peer --> eager packets | envelope (rendezvous) | held, no credit
//!
//!    progress -> transport -> Core (upcalls) -> engine: post / arrive
//!                                 \-> chores: control packets, claims, pushes
//! ```
//!
//! Protocols, by length and credit:
//!
//! - **eager**: the bytes follow the envelope at once, in packets; kept by the receiver when no
//!   receive is posted.
//! - **rendezvous**: the envelope alone; after the match a cooperative transfer where the
//!   transport has one (either side copies), else gets by the receiver (`remote.rs`), else
//!   fragments pushed by the sender.
//!
//! The wire format is in `docs/wire.md`, flow control in `credit.rs` (the arithmetic) and `flow.rs` (with its peers).

mod chores;
mod coalesce;
mod config;
mod control;
mod core;
mod credit;
mod dump;
mod failure;
mod flow;
mod header;
mod path;
mod peek;
mod peeks;
mod peer;
mod protocols;
mod rail;
mod reading;
mod recv;
mod remote;
mod request;
mod send;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
mod unexpected;
mod writes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use config::Ob1Options;
pub(crate) use protocols::protocols;
use tagwire_base::{Bootstrap, ContextId, MemberEvent, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::{AnyEngine, Capacity, Engine, Pattern};
use tagwire_transport::{
    Allocation, Buffering, ByteTransport, EndpointId, OpenChannel, RecvBuffer, SendBuffer,
    SendChannel, Waiter,
};
pub use writes::state::ChannelWay;

use self::core::Core;
use self::peer::PeerIndex;
use self::rail::{LANE, Rail};
use self::request::{Buffer, Phase, Request};
use crate::contact::{self, Language};
use crate::contexts::Contexts;
use crate::error::{Error, Result};
use crate::lend::lend;
use crate::pml::Pml;
use crate::types::{
    CancelOutcome, Counters, Failure, MessageId, RequestId, SendMode, Status, TagLimits,
};

/// The name of the layer.
const LAYER: &str = "ob1";

/// The first byte of a channel's key: whose channel it is.
const RAILS_OWN: u8 = 0;
const WRITTEN: u8 = 1;

/// The ob1 layer of one rank.
pub struct Ob1 {
    rail: Rail,
    bootstrap: Box<dyn Bootstrap>,
    core: Core,
    rank: Rank,
    size: u32,
    /// Most bytes of one get; 0 where the transport has none.
    piece: usize,
    options: Ob1Options,
    contexts: Contexts,
    closing: bool,
    /// Peers that could not be connected to for a shortage, until this rank next looks after its peers.
    out_of_reach: Vec<PeerIndex>,
}

impl fmt::Debug for Ob1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ob1")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .field("rail", &self.rail.name())
            .finish_non_exhaustive()
    }
}

impl Ob1 {
    /// Opens the layer over `rail`: publishes the rail's address and waits until every rank of
    /// the job has done so.
    ///
    /// # Errors
    /// When the engine's name is unknown or the bootstrap breaks.
    pub fn open(
        options: &Ob1Options,
        rail: Box<dyn ByteTransport>,
        mut bootstrap: Box<dyn Bootstrap>,
    ) -> Result<Self> {
        let engine = AnyEngine::by_name(
            &options.engine,
            Capacity::new(options.match_capacity, options.match_capacity),
        )?;
        let language = Language::new(LAYER, rail.name());
        language.publish(&mut *bootstrap, &rail.address(), options.open_timeout)?;
        let budget = flow::budget(options.unexpected_payload, options.unexpected_headers);
        let piece = reading::piece(rail.capabilities(), &rail.limits());
        Ok(Self {
            core: Core::new(engine, budget, piece > 0),
            rank: bootstrap.rank(),
            size: bootstrap.size(),
            piece,
            options: options.clone(),
            contexts: Contexts::new(TagLimits::ALL.contexts),
            closing: false,
            out_of_reach: Vec::new(),
            rail: rail.into(),
            bootstrap,
        })
    }

    fn connect(&mut self, rank: Rank) -> Result<EndpointId> {
        let language = Language::new(LAYER, self.rail.name());
        let address = language.address(&mut *self.bootstrap, rank)?;
        Ok(self.rail.connect(rank, &address)?)
    }

    /// Takes note of the ends of members, by the transport's word and by the bootstrap's.
    fn hear_of_ends(&mut self) {
        self.rail.look_after_peers(&mut self.core);
        let events = self.bootstrap.poll_events();
        if !events.is_empty() {
            // Whoever left sent what it had to say before: its contact, which the transport may
            // not have looked at yet, comes before the goodbye. What follows the contact then
            // ends with the transport's own word.
            let _ = self.rail.progress(LANE, &mut self.core);
        }
        for event in events {
            match event {
                MemberEvent::Left(rank) => {
                    self.core.member_gone(rank, Failure::PeerLeft(rank));
                }
                MemberEvent::Failed(rank) => {
                    self.rail.peer_failed(rank, &mut self.core);
                    self.core.member_gone(rank, Failure::PeerFailed(rank));
                }
                MemberEvent::StoreLost => {
                    tracing::error!("{}", contact::STORE_LOST);
                    for rank in contact::others(self.rank, self.size) {
                        // Those in contact are watched by the transport.
                        if self.core.peers.find(rank).is_none() {
                            self.core.member_gone(rank, Failure::Unreachable(rank));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// As [`Pml::take`], for requests that are complete and not persistent.
    #[inline(always)]
    pub(crate) fn take_complete(&mut self, request: RequestId) -> Option<Status> {
        self.is_takeable(request).then(|| self.take_now(request))
    }

    /// Whether the request is complete and not persistent: [`Ob1::take_now`] may take its end.
    #[inline(always)]
    pub(crate) fn is_takeable(&self, request: RequestId) -> bool {
        self.core.requests.is_takeable(request.0)
    }

    /// As [`Pml::take`], for requests that are takeable: the short way.
    #[inline(always)]
    pub(crate) fn take_now(&mut self, request: RequestId) -> Status {
        self.core.requests.take(request.0)
    }

    /// Whether operations may have ended since this was asked the last time, other than by
    /// [`Pml::progress`], which tells: others may wait for them.
    #[inline]
    pub(crate) const fn take_ended(&mut self) -> usize {
        std::mem::replace(&mut self.core.ended, 0)
    }

    /// The endpoint of `rank`, which is contacted if it was not.
    fn endpoint(&mut self, rank: Rank) -> Result<EndpointId> {
        let index = self.contact(rank)?;
        let peer = self.core.peers.get(index);
        peer.map(|peer| peer.endpoint).ok_or(Error::StaleRequest)
    }

    fn check_open(&self) -> Result<()> {
        if self.closing {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Whether new operations may use `context`.
    #[inline(always)]
    fn is_usable(&self, context: ContextId) -> bool {
        self.contexts.contains(context) && !self.closing
    }

    #[inline]
    fn check_context(&self, context: ContextId) -> Result<()> {
        if self.is_usable(context) {
            return Ok(());
        }
        self.check_any_context(context)
    }

    #[cold]
    fn check_any_context(&self, context: ContextId) -> Result<()> {
        if !self.contexts.contains(context) {
            return Err(Error::NoSuchContext(context.as_u16()));
        }
        self.check_open()
    }

    fn insert_inactive(&mut self, mut request: Request) -> RequestId {
        request.phase = Phase::Inactive;
        request.persistent = true;
        RequestId(self.core.requests.insert(request))
    }

    /// Starts a persistent buffered send: an ordinary one, with a copy, in its place.
    #[allow(unsafe_code, reason = "a copy is lent for a call")]
    fn start_buffered(&mut self, request: RequestId) -> Result<()> {
        let Some(template) = self.core.requests.get(request.0) else {
            return Err(Error::StaleRequest);
        };
        let mut copy = vec![0; template.send_buffer().len()];
        template.send_buffer().copy_out(0, &mut copy);
        let Status {
            source: to, tag, ..
        } = template.status;
        // SAFETY: a buffered send has a copy of its own, or is out, when the call that starts it returns or
        // panics: nothing keeps this buffer for longer than `copy` is there.
        let data = unsafe { lend(&copy) };
        self.start_send(data, to, tag, template.context, SendMode::Buffered)?;
        self.core.finish(request.0, None);
        Ok(())
    }
}

impl Pml for Ob1 {
    fn name(&self) -> &'static str {
        LAYER
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn tag_limits(&self) -> TagLimits {
        TagLimits {
            receives: self.options.match_capacity as usize,
            ..TagLimits::ALL
        }
    }

    #[inline]
    fn isend(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        self.check_context(context)?;
        self.start_send(data, to, tag, context, mode)
    }

    #[inline]
    fn irecv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.check_context(context)?;
        self.start_recv(data, from, tag, context)
    }

    fn probe(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<Status>> {
        self.check_context(context)?;
        self.check_source(from)?;
        Ok(self.core.probe(Pattern {
            source: from,
            tag,
            context,
        }))
    }

    fn claim(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>> {
        self.check_context(context)?;
        self.check_source(from)?;
        Ok(self.core.claim(Pattern {
            source: from,
            tag,
            context,
        }))
    }

    fn receive_can_happen(&self, from: SourceSelector) -> Result<()> {
        if self.core.losses.is_empty() {
            return Ok(());
        }
        self.core
            .losses
            .of_receive(from)
            .map_or(Ok(()), |failure| Err(Error::Failed(failure)))
    }

    fn irecv_claimed(&mut self, data: RecvBuffer, message: MessageId) -> Result<RequestId> {
        self.check_open()?;
        let (from, tag, context) = match self.core.unexpected.get(message.0) {
            Some(message) if message.queued.is_none() => (
                SourceSelector::ANY,
                TagSelector::exact(message.tag),
                message.context,
            ),
            _ => return Err(Error::StaleRequest),
        };
        let handle = self
            .core
            .requests
            .insert(Request::recv(data, from, tag, context));
        self.core.receive_unexpected(handle, message.0);
        self.run_chores();
        Ok(RequestId(handle))
    }

    fn cancel(&mut self, request: RequestId) -> Result<CancelOutcome> {
        if request == RequestId::COMPLETE {
            return Err(Error::WrongRequest("cancelled: it is a send"));
        }
        self.core.cancel(request.0)
    }

    fn send_init(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        self.check_context(context)?;
        let peer = self.contact(to)?;
        Ok(self.insert_inactive(Request::send(data, peer, to, tag, context, mode)))
    }

    fn recv_init(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.check_context(context)?;
        self.check_source(from)?;
        Ok(self.insert_inactive(Request::recv(data, from, tag, context)))
    }

    fn start(&mut self, request: RequestId) -> Result<()> {
        self.check_open()?;
        let entry = self
            .core
            .requests
            .get_mut(request.0)
            .ok_or(Error::StaleRequest)?;
        if !entry.persistent || entry.phase != Phase::Inactive {
            return Err(Error::WrongRequest(
                "started: it is not persistent and inactive",
            ));
        }
        entry.status.failure = None;
        match &entry.buffer {
            Buffer::Send(_) if entry.mode == SendMode::Buffered => {
                return self.start_buffered(request);
            }
            Buffer::Send(_) => self.enqueue(request.0),
            Buffer::Recv(_) => {
                entry.status = Status::EMPTY;
                let pattern = Pattern {
                    source: entry.from,
                    tag: entry.tag,
                    context: entry.context,
                };
                self.core.post(request.0, pattern)?;
            }
        }
        self.run_chores();
        Ok(())
    }

    fn free(&mut self, request: RequestId) -> Result<()> {
        let entry = self
            .core
            .requests
            .get(request.0)
            .ok_or(Error::StaleRequest)?;
        if !entry.persistent || entry.phase != Phase::Inactive {
            return Err(Error::WrongRequest(
                "freed: it is not persistent and inactive",
            ));
        }
        self.core.requests.remove(request.0);
        Ok(())
    }

    #[inline]
    fn is_complete(&self, request: RequestId) -> bool {
        request == RequestId::COMPLETE
            || self
                .core
                .requests
                .get(request.0)
                .is_none_or(|request| !request.is_active())
    }

    #[inline]
    fn take(&mut self, request: RequestId) -> Result<Option<Status>> {
        if request == RequestId::COMPLETE {
            return Ok(Some(Status::EMPTY));
        }
        let Some(entry) = self.core.requests.get_mut(request.0) else {
            return Err(Error::StaleRequest);
        };
        match entry.phase {
            Phase::Complete if entry.persistent => {
                entry.phase = Phase::Inactive;
                Ok(Some(entry.status))
            }
            Phase::Complete => {
                let status = entry.status;
                self.core.requests.remove(request.0);
                Ok(Some(status))
            }
            Phase::Inactive => Ok(Some(Status::EMPTY)),
            _ => Ok(None),
        }
    }

    #[inline]
    fn progress(&mut self) -> usize {
        let mut events = 0;
        if self.core.coalesces {
            events = self.send_batches();
        }
        let writes = self.core.writes.is_some();
        if writes && self.core.writes_call() {
            events += self.drive_writes();
        }
        events += self.rail.progress_in_line(&mut self.core);
        if writes {
            events += self.core.look_at_flags();
        }
        if !self.core.chores.is_empty() {
            events += self.run_chores();
        }
        self.core.ended = 0;
        events
    }

    fn look_after_peers(&mut self) {
        self.out_of_reach.clear();
        self.hear_of_ends();
        self.run_chores();
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.rail.waiter()
    }

    fn longest_nap(&self) -> Duration {
        self.core.longest_nap()
    }

    fn failed(&self) -> Vec<Rank> {
        self.core.losses.failed()
    }

    fn acknowledge_failures(&mut self) -> Vec<Rank> {
        self.core.losses.acknowledge()
    }

    fn create_context(&mut self) -> Result<ContextId> {
        self.check_open()?;
        self.contexts.create()
    }

    fn free_context(&mut self, context: ContextId) -> Result<()> {
        self.check_context(context)?;
        let message = self.core.describe_first(Pattern {
            source: SourceSelector::ANY,
            tag: TagSelector::ANY,
            context,
        });
        let requests = self.core.requests.iter().map(|(_, request)| request);
        let posted = requests.filter(|request| request.phase == Phase::Posted);
        let posted = posted.map(|request| (request.context, request.tag));
        Contexts::check_unused(context, posted, message)?;
        self.contexts.free(context)
    }

    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        self.rail.allocate(len)
    }

    fn worth_a_write(&mut self, to: Rank) -> Result<usize> {
        let endpoint = self.endpoint(to)?;
        Ok(self.rail.preference(endpoint).write)
    }

    fn open_channel(
        &mut self,
        from: Rank,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Result<Option<OpenChannel>> {
        let peer = self.contact(from)?;
        let endpoint = self.endpoint(from)?;
        let (kind, opened) = match self.rail.open_channel(endpoint, data, ends, buffering) {
            Some(opened) => (RAILS_OWN, Some(opened)),
            None => (WRITTEN, self.open_written(peer, data, ends, buffering)),
        };
        Ok(opened.map(|mut opened| {
            opened.key.insert(0, kind);
            opened
        }))
    }

    fn join_channel(
        &mut self,
        to: Rank,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        let peer = self.contact(to)?;
        let endpoint = self.endpoint(to)?;
        match key.split_first() {
            Some((&RAILS_OWN, key)) => Ok(self.rail.join_channel(endpoint, data, ends, key)?),
            Some((&WRITTEN, key)) => self.join_written(peer, data, ends, key),
            _ => Err(Error::BadRound("was answered with a key of no known kind")),
        }
    }

    fn begin_close(&mut self) {
        self.closing = true;
        let posted: Vec<_> = self
            .core
            .requests
            .iter()
            .filter(|(_, request)| request.phase == Phase::Posted)
            .map(|(handle, request)| (handle, request.queued))
            .collect();
        for (handle, queued) in posted {
            let _ = self.core.engine.cancel(queued);
            self.core.finish(handle, Some(Failure::Closed));
        }
    }

    fn matcher(&self) -> &'static str {
        self.core.engine.name()
    }

    fn counters(&self) -> Counters {
        self.core.counters
    }

    fn open_work(&self) -> Option<String> {
        let requests = || self.core.requests.iter().map(|(_, request)| request);
        let sends = requests().filter(|r| r.is_active() && r.is_send()).count();
        let receives = requests().filter(|r| r.is_active() && !r.is_send()).count();
        let closing = self
            .core
            .writes
            .as_ref()
            .map_or(0, |writes| writes.unfinished());
        let chores = self.core.chores.len() + self.core.batched.len() + closing;
        if sends + receives + chores == 0 {
            return None;
        }
        let mut peers: Vec<u32> = requests()
            .filter(|r| r.is_active())
            .map(|r| r.status.source.as_u32())
            .collect();
        peers.sort_unstable();
        peers.dedup();
        Some(format!(
            "{sends} sends, {receives} matched receives, {chores} control packets; with ranks {peers:?}"
        ))
    }

    fn leave(&mut self) {
        self.rail.leave();
        self.bootstrap.leave();
    }

    fn describe(&self, request: RequestId) -> Option<String> {
        let request = self.core.requests.get(request.0)?;
        Some(dump::describe(request))
    }

    fn dump(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_dump(out)
    }
}
