//! ob1: matching in software, over any [`ByteTransport`].
//!
//! ```text
//!   Ob1       posts, sends, waits: the calls of the layer; short messages take straight code
//!    |
//!   Driver    the transport: queues of sends, pending operations, connections
//!    |  \___ Link ___ protocols/   how the bytes of a message travel: a state machine each
//!   Core      what arrives: matching, credit, requests, peers
//!       \___ Matcher, Budget, Held, Coalescing, Services
//! ```
//!
//! Which protocols a message can take follows from its length, by the table of its peer (`path.rs`); what a protocol
//! is says `protocol.rs`. The wire format is in `docs/wire.md`, flow control in `credit.rs` (the arithmetic), `flow.rs` (with
//! its peers) and `held.rs` (what senders hold back).

mod arrivals;
mod coalesce;
mod common;
mod config;
mod contact;
mod core;
mod credit;
mod driver;
mod dump;
mod expose;
mod exposures;
mod failure;
mod flow;
mod header;
mod held;
mod link;
mod matcher;
mod path;
mod peeks;
mod peer;
mod pending;
mod points;
mod protocol;
mod protocols;
mod rail;
mod recv;
mod request;
mod send;
mod table;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
mod unexpected;

use std::fmt;

pub use config::Ob1Options;
pub(crate) use table::protocols;
use tagwire_base::{Bootstrap, ContextId, Rank, Sequence, SourceSelector, Tag, TagSelector};
use tagwire_matching::{Capacity, Pattern};
use tagwire_transport::shm::Shm;
use tagwire_transport::{ByteTransport, RecvBuffer, RemoteAccess, SendBuffer, Transport};

use self::common::Buffer;
use self::config::LAYER;
use self::core::Core;
use self::driver::Driver;
use self::matcher::{Bound, Matcher};
use self::protocols::State;
use self::request::Request;
use crate::contacts;
use crate::dumps::ContextNames;
use crate::error::{Error, Result};
use crate::lane::Lane;
use crate::lend::lend;
use crate::losses::Losses;
use crate::peers::Living;
use crate::pml::{self, LocalRank, PointToPoint, Statistics};
use crate::service::{Terms, Wire};
use crate::services::Services;
use crate::types::{CancelOutcome, Failure, MessageId, RequestId, SendMode, Status, TagLimits};

/// The ob1 layer of one rank.
pub struct Ob1 {
    driver: Driver,
    core: Core,
}

impl fmt::Debug for Ob1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ob1")
            .field("rank", &self.core.lane.rank)
            .field("size", &self.core.lane.size)
            .field("rail", &self.driver.rail.name())
            .finish_non_exhaustive()
    }
}

impl Ob1 {
    /// Opens the layer over `rail`: publishes the rail's address and waits until every rank of
    /// the job has done so.
    ///
    /// # Errors
    /// When the engine's name is unknown, its trace cannot be made, or the bootstrap breaks.
    pub fn open(
        options: &Ob1Options,
        rail: Box<dyn ByteTransport>,
        bootstrap: Box<dyn Bootstrap>,
    ) -> Result<Self> {
        let engine = options.engines.named(&options.engine)?;
        let capacity = Capacity::new(options.match_capacity, options.match_capacity);
        let bound = Bound {
            receives: engine.bounded(capacity).posted,
            set_by: engine.bound_of_receives(capacity),
        };
        let (timeout, contexts) = (options.open_timeout, TagLimits::ALL.contexts);
        let layer = (LAYER, Sequence::new(options.first_sequence));
        let lane = Lane::open(layer, &*rail, bootstrap, timeout, contexts)?;
        let engine = match &options.record {
            None => engine.open(capacity).beside(),
            Some(record) => {
                let (rank, clock) = (lane.rank.as_u32(), lane.clock.clone());
                record.open(&engine, capacity, (rank, lane.size), clock)?
            }
        };
        let budget = flow::budget(options.unexpected_payload, options.unexpected_headers);
        let piece = config::piece(rail.capabilities(), &rail.limits());
        Ok(Self {
            core: Core::new(lane, Matcher::new(engine, bound), budget),
            driver: Driver::new(rail.into(), options.clone(), piece),
        })
    }

    /// Makes progress for who waits for one request, and has met `events` before. At first no more than one message of each peer is
    /// delivered, which may be what is waited for: the next one has a receive of its own then, and is not unexpected.
    #[inline(always)]
    pub(crate) fn progress_for_one(&mut self, events: usize) -> usize {
        self.progress_by(if events == 0 { 1 } else { Shm::BURST })
    }

    /// Makes progress that delivers at most `burst` messages of each peer.
    #[inline]
    pub(crate) fn progress_by(&mut self, burst: usize) -> usize {
        let Self { driver, core } = self;
        let mut events = 0;
        if core.has_extras {
            events = driver.run_extras(core);
        }
        events += driver.rail.progress_in_line(burst, core);
        if core.has_extras || !core.pending.is_empty() {
            events += driver.run_rest(core);
        }
        core.lane.ended = 0;
        events
    }

    /// Takes note that progress found nothing, while the rank waits.
    #[inline]
    pub(crate) const fn note_idle(&mut self) {
        self.core.idle = self.core.idle.wrapping_add(1);
    }

    /// Whether the request is complete and not persistent.
    #[inline(always)]
    pub(crate) fn is_takeable(&self, request: RequestId) -> bool {
        self.core.requests.is_takeable(request.0)
    }

    /// As [`PointToPoint::take`], for requests that are complete and not persistent: returns what `look` finds in the status.
    #[inline(always)]
    pub(crate) fn take_with<R>(
        &mut self,
        request: RequestId,
        look: impl FnOnce(&Status) -> R,
    ) -> Option<R> {
        self.core.requests.take_with(request.0, look)
    }

    /// The same, of a request that is takeable: returns the status.
    #[inline(always)]
    pub(crate) fn take_now(&mut self, request: RequestId) -> Status {
        self.core.requests.take(request.0)
    }

    /// Whether progress would do nothing, where that can be told at once.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.core.has_extras && self.core.pending.is_empty() && self.driver.rail.has_nothing()
    }

    /// Whether the request is there and has not ended.
    #[inline(always)]
    pub(crate) fn is_under_way(&self, request: RequestId) -> bool {
        self.core.requests.is_under_way(request.0)
    }

    /// Whether operations may have ended since this was asked the last time, other than by
    /// [`PointToPoint::progress`], which reports: others may wait for them.
    #[inline]
    pub(crate) const fn take_ended(&mut self) -> usize {
        self.core.lane.take_ended()
    }

    /// Drops the messages that are here and that nobody will receive.
    fn drop_strays(&mut self) {
        let all = 0..self.core.matcher.slots();
        self.core.drop_messages(all, Core::is_stray);
        self.driver.run_pending(&mut self.core);
    }

    fn insert_inactive(&mut self, mut request: Request) -> RequestId {
        request.state = State::Inactive;
        request.common.persistent = true;
        RequestId(self.core.requests.insert(request))
    }

    /// Starts a persistent buffered send: an ordinary one, with a copy, in its place.
    #[allow(unsafe_code, reason = "a copy is lent for a call")]
    fn start_buffered(&mut self, request: RequestId) -> Result<()> {
        let Some(template) = self.core.requests.get(request.0) else {
            return Err(Error::StaleRequest);
        };
        let (template, context) = (&template.common, template.common.context);
        let mut copy = vec![0; template.send_buffer().len()];
        template.send_buffer().copy_out(0, &mut copy);
        let Status {
            source: to, tag, ..
        } = template.status;
        // SAFETY: a buffered send has a copy of its own, or is out, when the call that starts it returns or
        // panics: nothing keeps this buffer for longer than `copy` is there.
        let data = unsafe { lend(&copy) };
        self.start_send(data, to, tag, context, SendMode::Buffered)?;
        self.core.finish(request.0, None);
        Ok(())
    }
}

impl PointToPoint for Ob1 {
    fn tag_limits(&self) -> TagLimits {
        TagLimits {
            receives: self.core.matcher.bound().receives as usize,
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
        self.core.lane.check_open()?;
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
        self.core.lane.check_context(context)?;
        self.start_recv(data, from, tag, context)
    }

    fn probe(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<Status>> {
        self.core.lane.check_context(context)?;
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
        self.core.lane.check_context(context)?;
        self.check_source(from)?;
        Ok(self.core.claim(Pattern {
            source: from,
            tag,
            context,
        }))
    }

    fn irecv_claimed(&mut self, data: RecvBuffer, message: MessageId) -> Result<RequestId> {
        self.core.lane.check_open()?;
        let Some(claimed) = self.core.matcher.claimed(message.0) else {
            return Err(Error::StaleRequest);
        };
        let (from, tag) = (SourceSelector::ANY, TagSelector::exact(claimed.tag));
        let context = claimed.context;
        let handle = self
            .core
            .requests
            .insert(Request::recv(data, from, tag, context));
        self.core.receive_unexpected(handle, message.0);
        self.driver.run_pending(&mut self.core);
        Ok(RequestId(handle))
    }

    fn cancel(&mut self, request: RequestId) -> Result<CancelOutcome> {
        if request == RequestId::COMPLETE {
            return Err(Error::WrongRequest("cancelled: it is a send"));
        }
        if !self.driver.revoke(&mut self.core, request.0) {
            return Ok(CancelOutcome::AlreadyMatched);
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
        self.core.lane.check_open()?;
        let peer = contacts::contact(&mut self.driver.contacts(&mut self.core), to)?;
        Ok(self.insert_inactive(Request::send(data, peer, to, tag, context, mode)))
    }

    fn recv_init(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.core.lane.check_context(context)?;
        self.check_source(from)?;
        Ok(self.insert_inactive(Request::recv(data, from, tag, context)))
    }

    fn start(&mut self, request: RequestId) -> Result<()> {
        self.core.lane.check_open()?;
        let requests = &mut self.core.requests.table;
        let entry = requests.at_rest(request, "started: it is not persistent and inactive")?;
        let common = &mut entry.common;
        common.status.failure = None;
        match &common.buffer {
            Buffer::Send(_) if common.mode == SendMode::Buffered => {
                return self.start_buffered(request);
            }
            Buffer::Send(_) => self.enqueue(request.0),
            Buffer::Recv(_) => {
                common.status = Status::EMPTY;
                let pattern = Pattern {
                    source: common.from,
                    tag: common.tag,
                    context: common.context,
                };
                if !self.core.lane.contexts.contains(pattern.context) {
                    return Err(Error::NoSuchContext(pattern.context.as_u16()));
                }
                self.core.post(request.0, pattern)?;
                self.driver.run_pending(&mut self.core);
                self.driver.expose(&mut self.core, request.0);
                return Ok(());
            }
        }
        self.driver.run_pending(&mut self.core);
        Ok(())
    }

    fn free(&mut self, request: RequestId) -> Result<()> {
        self.core.requests.table.free(request)
    }

    #[inline]
    fn is_complete(&self, request: RequestId) -> bool {
        self.core.requests.table.is_complete(request)
    }

    #[inline]
    fn take(&mut self, request: RequestId) -> Result<Option<Status>> {
        self.core.requests.table.take_end(request)
    }

    #[inline]
    fn progress(&mut self) -> usize {
        self.progress_by(Shm::BURST)
    }

    fn describe(&self, request: RequestId) -> Option<String> {
        let request = self.core.requests.get(request.0)?;
        Some(dump::describe(request))
    }
}

impl LocalRank for Ob1 {
    fn identity(&self) -> (Rank, u32) {
        (self.core.lane.rank, self.core.lane.size)
    }

    fn transport(&mut self) -> &mut dyn Transport {
        &mut *self.driver.rail
    }

    fn terms(&mut self, rank: Rank) -> Result<Terms> {
        let peer = contacts::contact(&mut self.driver.contacts(&mut self.core), rank)?;
        let endpoint = self.core.lane.peers.endpoint(peer)?;
        let preference = self.driver.rail.preference(endpoint);
        Ok(Terms {
            peer,
            endpoint,
            write: preference.write,
            access: Some(self.driver.rail.towards(endpoint)),
            carries_partitions: preference.remote_access,
        })
    }

    fn services(&mut self) -> (&mut Services, Wire<'_>) {
        self.core.has_extras = true;
        let rail = &mut *self.driver.rail as &mut dyn RemoteAccess;
        self.core.lane.services(Some(rail))
    }

    fn services_in_use(&self) -> Option<(&Services, &dyn Living)> {
        self.core.lane.services_in_use()
    }

    fn losses(&mut self) -> &mut Losses {
        &mut self.core.lane.losses
    }

    fn look_after_peers(&mut self) {
        self.core.drop_some_strays();
        self.core.lane.out_of_reach.clear();
        contacts::hear_of_ends(&mut self.driver.contacts(&mut self.core));
        self.driver.run_pending(&mut self.core);
    }

    fn open_context(&mut self) -> Result<ContextId> {
        self.core.lane.check_open()?;
        let Core { lane, requests, .. } = &mut self.core;
        let is_busy = |context| {
            let mut requests = requests.iter().map(|(_, request)| request);
            // Persistent ones may be started again.
            let is_open = |r: &Request| r.place().is_some() || r.common.persistent;
            requests.any(|r| !r.is_send() && r.common.context == context && is_open(r))
        };
        let context = lane.contexts.open(is_busy)?;
        // What came since the context that had this id was freed.
        let all = 0..self.core.matcher.slots();
        self.core
            .drop_messages(all, |_, message| message.context == context);
        self.driver.run_pending(&mut self.core);
        Ok(context)
    }

    fn close_context(&mut self, context: ContextId) -> Result<()> {
        self.core.lane.contexts.close(context)?;
        self.drop_strays();
        Ok(())
    }

    fn break_collectives(&mut self, context: ContextId) {
        self.core.lane.contexts.break_collectives(context);
        self.drop_strays();
    }

    fn begin_close(&mut self) {
        self.core.lane.closing = true;
        let requests = self.core.requests.iter();
        let posted: Vec<_> = requests
            .filter_map(|(handle, request)| Some((handle, request.place()?)))
            .collect();
        for (handle, place) in posted {
            // One whose memory is being filled has a message, whose envelope comes.
            if self.driver.revoke(&mut self.core, handle) {
                self.core.matcher.withdraw(place);
                self.core.finish(handle, Some(Failure::Closed));
            }
        }
    }

    fn statistics(&self) -> Statistics {
        let mut ways = Vec::new();
        self.driver.rail.ways(&mut ways);
        Statistics {
            layer: LAYER,
            matcher: self.core.matcher.name(),
            counters: self.core.counters,
            matching: Some(self.core.matcher.stats()),
            levels: None,
            counts: None,
            ways,
        }
    }

    fn open_work(&self) -> Option<String> {
        let core = &self.core;
        let active = core
            .requests
            .iter()
            .map(|(_, r)| r)
            .filter(|r| r.is_active());
        let pending = core.pending.len() + core.coalescing.len() + core.lane.unfinished();
        let active = active.map(|r| (r.is_send(), Some(r.common.status.source)));
        pml::open_work(active, pending, "control packets")
    }

    fn leave(&mut self) {
        self.driver.rail.leave();
        self.core.lane.bootstrap.leave();
    }

    fn dump(&self, names: &ContextNames, out: &mut dyn fmt::Write) -> fmt::Result {
        let rank = self.identity();
        dump::write(&self.core, rank, &*self.driver.rail, (names, out))
    }
}
