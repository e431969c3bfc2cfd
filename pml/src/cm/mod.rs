//! cm: one thin request over any [`MatchTransport`], which does the rest.
//!
//! ```text
//!    isend ---> rail.send(bits)     Done: no request at all | Open: a slot in the table
//!    irecv ---> rail.post(pattern)  Done | Open
//!                                             \-> rail.progress -> State (upcalls) -> the slot
//! ```
//!
//! Context and tag travel in the match bits (`layout.rs`), the source beside them. Where the
//! transport has no room, operations wait here in their order: sends per peer, receives together.
//! Shapes of memory that the transport does not take go through a copy.

mod bounce;
mod config;
mod contact;
mod driver;
mod dump;
mod layout;
mod peer;
mod recv;
mod request;
mod send;
mod state;

use std::fmt;

pub use config::CmOptions;
use tagwire_base::{Bootstrap, ContextId, Rank, Sequence, SourceSelector, Tag, TagSelector};
use tagwire_transport::{
    Capabilities, MatchTransport, Preference, RecvBuffer, RemoteAccess, SendBuffer, Transport,
};

use self::driver::MatchDriver;
use self::layout::Layout;
use self::request::{Buffer, Phase};
use self::state::State;
use crate::contacts;
use crate::dumps::ContextNames;
use crate::error::{Error, Result};
use crate::lane::Lane;
use crate::losses::Losses;
use crate::peers::Living;
use crate::pml::{self, LocalRank, PointToPoint, Statistics};
use crate::service::{Terms, Wire};
use crate::services::Services;
use crate::slab::Handle;
use crate::types::{
    CancelOutcome, Counters, Failure, MessageId, RequestId, SendMode, Status, TagLimits,
};

/// The name of the layer.
const LAYER: &str = "cm";

/// The cm layer of one rank.
pub struct Cm {
    driver: MatchDriver,
    core: State,
    buffer_limit: usize,
}

impl fmt::Debug for Cm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cm")
            .field("rank", &self.core.lane.rank)
            .field("size", &self.core.lane.size)
            .field("rail", &self.driver.rail.name())
            .finish_non_exhaustive()
    }
}

impl Cm {
    /// Opens the layer over `rail`: publishes the rail's address and waits until every rank of
    /// the job has done so.
    ///
    /// # Errors
    /// When the rail has too few match bits, or the bootstrap breaks.
    pub fn open(
        options: &CmOptions,
        rail: Box<dyn MatchTransport>,
        bootstrap: Box<dyn Bootstrap>,
    ) -> Result<Self> {
        let (rank, size) = (bootstrap.rank(), bootstrap.size());
        let limits = rail.match_limits();
        let layout = Layout::choose(&limits, rail.name(), rank, size)?;
        let (timeout, contexts) = (options.open_timeout, layout.contexts());
        let lane = Lane::open(
            (LAYER, Sequence::default()),
            &*rail,
            bootstrap,
            timeout,
            contexts,
        )?;
        Ok(Self {
            core: State::new(lane, layout),
            buffer_limit: options.buffer_limit,
            driver: MatchDriver::new(rail),
        })
    }

    /// As [`PointToPoint::take`], for requests that are complete and not persistent: the short way.
    #[inline]
    pub(crate) fn take_complete(&mut self, request: RequestId) -> Option<Status> {
        self.core.requests.take_complete(request.0)
    }

    /// Whether operations may have ended since this was asked the last time, other than by
    /// [`PointToPoint::progress`], which reports: others may wait for them.
    #[inline]
    pub(crate) const fn take_ended(&mut self) -> usize {
        self.core.lane.take_ended()
    }

    /// Checks that the id of a peer's context has a place in the match bits.
    #[inline]
    fn check_destination(&self, context: ContextId) -> Result<()> {
        if usize::from(context.as_u16()) >= self.core.layout.contexts() {
            return Err(Error::NoSuchContext(context.as_u16()));
        }
        self.core.lane.check_open()
    }

    /// Starts a persistent buffered send: an ordinary one, with a copy, in its place.
    fn start_persistent_buffered(&mut self, request: RequestId) -> Result<()> {
        let Some(template) = self.core.requests.get_mut(request.0) else {
            return Err(Error::StaleRequest);
        };
        let Status {
            source: to, tag, ..
        } = template.status;
        let (index, context) = (template.peer, template.context);
        let Buffer::Send(data) = std::mem::replace(&mut template.buffer, Buffer::None) else {
            return Err(Error::StaleRequest);
        };
        let started = self.start_buffered(&data, index, to, tag, context);
        if let Some(template) = self.core.requests.get_mut(request.0) {
            template.buffer = Buffer::Send(data);
        }
        started?;
        self.core.finish(request.0, None);
        Ok(())
    }
}

impl PointToPoint for Cm {
    fn tag_limits(&self) -> TagLimits {
        TagLimits {
            largest_tag: self.core.layout.largest_tag(),
            contexts: self.core.layout.contexts(),
            receives: self.driver.max_posted,
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
        self.check_destination(context)?;
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
        self.check_receive(from, tag)?;
        self.find(from, tag, context)
    }

    fn claim(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>> {
        self.core.lane.check_context(context)?;
        self.check_receive(from, tag)?;
        self.find_and_claim(from, tag, context)
    }

    fn irecv_claimed(&mut self, data: RecvBuffer, message: MessageId) -> Result<RequestId> {
        self.core.lane.check_open()?;
        self.driver.start_claimed(&mut self.core, data, message)
    }

    fn cancel(&mut self, request: RequestId) -> Result<CancelOutcome> {
        if request == RequestId::COMPLETE {
            return Err(Error::WrongRequest("cancelled: it is a send"));
        }
        self.driver.take_back(&mut self.core, request.0)
    }

    fn send_init(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        self.check_destination(context)?;
        self.check_message(tag, data.len())?;
        let peer = contacts::contact(&mut self.contacts(), to)?;
        let (handle, request) = self.core.requests.occupy();
        request.set_send(peer, to, tag, context, mode, data.len());
        request.buffer = Buffer::Send(data);
        request.phase = Phase::Inactive;
        request.persistent = true;
        Ok(RequestId(handle))
    }

    fn recv_init(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.core.lane.check_context(context)?;
        self.check_receive(from, tag)?;
        let (handle, request) = self.core.requests.occupy();
        request.set_recv(from, tag, context, data.capacity());
        request.buffer = Buffer::Recv(data);
        request.phase = Phase::Inactive;
        request.persistent = true;
        Ok(RequestId(handle))
    }

    fn start(&mut self, request: RequestId) -> Result<()> {
        self.core.lane.check_open()?;
        let posted = self.core.posted;
        let requests = &mut self.core.requests;
        let entry = requests.at_rest(request, "started: it is not persistent and inactive")?;
        entry.doomed = None;
        if !entry.is_send {
            if !self.core.lane.contexts.contains(entry.context) {
                return Err(Error::NoSuchContext(entry.context.as_u16()));
            }
            entry.status = Status::EMPTY;
            entry.order = posted;
            self.core.posted += 1;
            self.driver.queue_recv(&mut self.core, request.0);
            return Ok(());
        }
        entry.status.failure = None;
        if entry.mode == SendMode::Buffered {
            return self.start_persistent_buffered(request);
        }
        self.driver.enqueue(&mut self.core, request.0);
        Ok(())
    }

    fn free(&mut self, request: RequestId) -> Result<()> {
        self.core.requests.free(request)
    }

    #[inline]
    fn is_complete(&self, request: RequestId) -> bool {
        self.core.requests.is_complete(request)
    }

    #[inline]
    fn take(&mut self, request: RequestId) -> Result<Option<Status>> {
        self.core.requests.take_end(request)
    }

    #[inline]
    fn progress(&mut self) -> usize {
        let events = self.driver.progress_once(&mut self.core);
        self.core.lane.ended = 0;
        events
    }

    fn describe(&self, request: RequestId) -> Option<String> {
        let request = self.core.requests.get(request.0)?;
        Some(dump::describe(request))
    }
}

impl LocalRank for Cm {
    fn identity(&self) -> (Rank, u32) {
        (self.core.lane.rank, self.core.lane.size)
    }

    fn transport(&mut self) -> &mut dyn Transport {
        &mut *self.driver.rail
    }

    fn terms(&mut self, rank: Rank) -> Result<Terms> {
        let peer = contacts::contact(&mut self.contacts(), rank)?;
        let endpoint = self.core.lane.peers.endpoint(peer)?;
        let preference = match self
            .driver
            .rail
            .capabilities()
            .contains(Capabilities::CHANNELS)
        {
            true => Preference::SHARED_MEMORY,
            false => Preference::NETWORK,
        };
        let remote = self.driver.rail.remote();
        Ok(Terms {
            peer,
            endpoint,
            write: preference.write,
            access: remote.map(|remote| (remote.capabilities(), remote.remote_limits())),
            carries_partitions: preference.remote_access,
        })
    }

    fn services(&mut self) -> (&mut Services, Wire<'_>) {
        let remote = self.driver.rail.remote();
        let rail = remote.map(|remote| remote as &mut dyn RemoteAccess);
        self.core.lane.services(rail)
    }

    fn services_in_use(&self) -> Option<(&Services, &dyn Living)> {
        self.core.lane.services_in_use()
    }

    fn losses(&mut self) -> &mut Losses {
        &mut self.core.lane.losses
    }

    fn look_after_peers(&mut self) {
        self.core.lane.out_of_reach.clear();
        contacts::hear_of_ends(&mut self.contacts());
        if !self.driver.leavers.is_empty() {
            self.driver.await_leavers(&mut self.core);
        }
        for context in self.core.lane.contexts.broken() {
            // What cannot be dropped now is looked at again.
            let _ = self.driver.drop_collectives(&mut self.core, context);
        }
        self.driver.advance_pending(&mut self.core);
    }

    fn open_context(&mut self) -> Result<ContextId> {
        self.core.lane.check_open()?;
        // Persistent ones may be started again. While receives wait for room no message of a freed context is found: ids rest.
        let State {
            lane,
            requests,
            waiting,
            ..
        } = &mut self.core;
        let rests = !waiting.is_empty();
        let holds = |r: &request::Request| !r.is_send && (r.is_active() || r.persistent);
        let is_busy = |id| rests || requests.iter().any(|(_, r)| r.context == id && holds(r));
        let context = lane.contexts.open(is_busy)?;
        // What came since the context that had this id was freed.
        self.driver.drop_messages(&mut self.core, context)?;
        Ok(context)
    }

    fn close_context(&mut self, context: ContextId) -> Result<()> {
        self.core.lane.contexts.close(context)?;
        self.driver.drop_messages(&mut self.core, context)
    }

    fn break_collectives(&mut self, context: ContextId) {
        self.core.lane.contexts.break_collectives(context);
        let _ = self.driver.drop_collectives(&mut self.core, context);
    }

    fn begin_close(&mut self) {
        self.core.lane.closing = true;
        let receives: Vec<Handle> = self
            .core
            .requests
            .iter()
            .filter(|(_, request)| {
                request.is_active() && !request.is_send && request.claim.is_none()
            })
            .map(|(handle, _)| handle)
            .collect();
        for handle in receives {
            self.driver.give_up(&mut self.core, handle, Failure::Closed);
        }
    }

    fn statistics(&self) -> Statistics {
        let counts = self.driver.rail.counts();
        Statistics {
            layer: LAYER,
            matcher: self.driver.rail.matcher(),
            counters: Counters {
                unexpected_long: counts.fetched,
                ..self.core.counters
            },
            matching: counts.engine,
            levels: Some(self.driver.rail.levels()),
            counts: Some(counts),
            // Where messages are matched by the transport it moves them by one way.
            ways: Vec::new(),
        }
    }

    fn open_work(&self) -> Option<String> {
        let core = &self.core;
        let active = core
            .requests
            .iter()
            .map(|(_, r)| r)
            .filter(|r| r.is_active());
        let pending = core.pending.len() + self.driver.rail.unfinished() + core.lane.unfinished();
        let active = active.map(|r| (r.is_send, r.is_send.then_some(r.status.source)));
        pml::open_work(active, pending, "notices")
    }

    fn leave(&mut self) {
        self.driver.rail.leave();
        self.core.lane.bootstrap.leave();
    }

    fn dump(&self, names: &ContextNames, out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_dump(names, out)
    }
}
