//! The receiving half: posting, probing, claiming, cancelling.

use tagwire_base::{ContextId, SourceSelector, TagSelector};
use tagwire_transport::{
    Cancel, Directed, Found, MatchPattern, Posted, Probed, ReceiveEnd, RecvBuffer, Refusal, Token,
};

use super::Cm;
use super::driver::MatchDriver;
use super::request::{Buffer, Phase};
use super::state::{Claimed, Pending, State};
use crate::contacts;
use crate::error::{Error, Result};
use crate::lend::lend_room;
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::{CancelOutcome, Failure, MessageId, RequestId, Status};

/// How often a transport that reports later is asked to go on before it is taken to be broken:
/// the contract has it report by progress of this rank alone.
const PATIENCE: u32 = 1 << 20;

impl Cm {
    /// Posts a receive of one region, if that is all there is to it. `None`, with nothing done,
    /// where it may be more.
    #[inline(always)]
    pub(crate) fn post_now(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        let exists = from.is_any() || from.as_u32() < self.core.lane.size;
        let fits = tag.tag().is_none_or(|tag| self.core.layout.fits(tag));
        if !exists
            || !fits
            || !self.core.lane.is_usable(context)
            || self.driver.directed == Directed::AfterConnect
            || !self.core.waiting.is_empty()
            || !self.core.lane.losses.is_empty()
            || data.region().is_none()
        {
            return None;
        }
        let handle = self.core.requests.next_handle();
        let pattern = self.core.layout.pattern(from, tag, context);
        match self
            .driver
            .rail
            .post(LANE, pattern, data, Token(handle.to_wire()))
        {
            Posted::Open => {
                self.enter_recv(from, tag, context, data.capacity());
            }
            Posted::Done(ReceiveEnd::Matched(envelope, outcome)) => {
                self.enter_recv(from, tag, context, data.capacity());
                self.core.counters.unexpected_short += 1;
                let ended = self.core.lane.ended;
                self.core.matched(handle, &envelope, outcome);
                // Whoever waits for this one is still to be told its name.
                self.core.lane.ended = ended;
            }
            // Nothing has happened.
            _ => return None,
        }
        Some(RequestId(handle))
    }

    #[inline]
    fn enter_recv(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
        capacity: usize,
    ) {
        let (_, request) = self.core.requests.occupy();
        request.set_recv(from, tag, context, capacity);
        request.order = self.core.posted;
        self.core.posted += 1;
    }

    /// Posts a receive, or takes a message that is here already.
    #[inline]
    pub(super) fn start_recv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.check_receive(from, tag)?;
        let (handle, request) = self.core.requests.occupy();
        request.set_recv(from, tag, context, data.capacity());
        request.order = self.core.posted;
        self.core.posted += 1;
        if self.core.waiting.is_empty() {
            let pattern = self.core.layout.pattern(from, tag, context);
            let token = Token(handle.to_wire());
            match self.driver.rail.post(LANE, pattern, &data, token) {
                Posted::Open if self.core.lane.losses.is_empty() => return Ok(RequestId(handle)),
                Posted::Done(ReceiveEnd::Matched(envelope, outcome)) => {
                    self.core.counters.unexpected_short += 1;
                    let ended = self.core.lane.ended;
                    self.core.matched(handle, &envelope, outcome);
                    // Whoever waits for this one is still to be told its name.
                    self.core.lane.ended = ended;
                    return Ok(RequestId(handle));
                }
                Posted::Open => {
                    self.driver.posted_in_trouble(&mut self.core, handle, from);
                    return Ok(RequestId(handle));
                }
                Posted::Full => {
                    self.core.requests.remove(handle);
                    let bound = "the limit of the transport, which info shows";
                    return Err(Error::TooManyReceives(bound));
                }
                _ => {}
            }
        }
        if let Some(request) = self.core.requests.get_mut(handle) {
            request.buffer = Buffer::Recv(data);
        }
        self.driver.queue_recv(&mut self.core, handle);
        Ok(RequestId(handle))
    }

    /// Checks that source and tag are such; makes contact with the source, where the transport asks for that.
    #[inline]
    pub(super) fn check_receive(&mut self, from: SourceSelector, tag: TagSelector) -> Result<()> {
        tag.tag().map_or(Ok(()), |tag| self.check_tag(tag))?;
        let contact = self.driver.directed == Directed::AfterConnect;
        match from.rank() {
            Some(rank) if rank.as_u32() >= self.core.lane.size => Err(Error::NoSuchRank {
                rank,
                size: self.core.lane.size,
            }),
            Some(rank) if contact && self.core.lane.losses.of(rank).is_none() => {
                match contacts::contact(&mut self.contacts(), rank).map(drop) {
                    // A source that turns out to have ended is lost by that: the receive is posted, and fails.
                    Err(Error::Failed(_)) => Ok(()),
                    met => met,
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the status of the earliest message that a receive like this would take (MPI-5.0, section 3.8.1).
    pub(super) fn find(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<Status>> {
        let pattern = self.core.layout.pattern(from, tag, context);
        let found = self.driver.look(&mut self.core, pattern, false)?;
        Ok(found.and_then(|found| self.core.describe(&found.envelope)))
    }

    /// Takes the earliest message that a receive like this would take out of matching (MPI-5.0, section 3.8.2).
    pub(super) fn find_and_claim(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>> {
        let pattern = self.core.layout.pattern(from, tag, context);
        let found = self.driver.look(&mut self.core, pattern, true)?;
        Ok(found.and_then(|found| self.core.keep(&found)))
    }
}

impl MatchDriver {
    /// A receive was posted while ranks are gone.
    #[cold]
    pub(super) fn posted_in_trouble(
        &mut self,
        core: &mut State,
        handle: Handle,
        from: SourceSelector,
    ) {
        if let Some(failure) = core.lane.losses.of_receive(from) {
            self.give_up(core, handle, failure);
        }
    }

    /// Puts an active receive behind those that wait for room, and posts what can go.
    #[cold]
    pub(super) fn queue_recv(&mut self, core: &mut State, handle: Handle) {
        if let Some(request) = core.requests.get_mut(handle) {
            request.phase = Phase::Queued;
        }
        core.waiting.push_back(handle);
        if core.waiting.len() == 1 {
            self.post_waiting(core);
        }
    }

    /// Posts receives that wait for room, in order. Returns how many.
    pub(super) fn post_waiting(&mut self, core: &mut State) -> usize {
        let mut posted = 0;
        while let Some(handle) = core.waiting.front() {
            if !self.post_queued(core, *handle) {
                core.pending.push_back(Pending::Post);
                break;
            }
            core.waiting.pop_front();
            posted += 1;
        }
        posted
    }

    /// Gives a queued receive to the transport. Returns whether its turn is over.
    #[allow(unsafe_code, reason = "the request lends the room that it owns")]
    fn post_queued(&mut self, core: &mut State, handle: Handle) -> bool {
        let Some(request) = core.requests.get_mut(handle) else {
            return true;
        };
        if request.phase != Phase::Queued {
            return true;
        }
        let (from, tag, context) = (request.from, request.tag, request.context);
        let pattern = core.layout.pattern(from, tag, context);
        let token = Token(handle.to_wire());
        let claim = request.claim;
        loop {
            let lent = request.bounce.as_deref_mut().map(|room| {
                // SAFETY: the room lies on the heap and goes with the request, once that is complete; nobody looks
                // at it before.
                unsafe { lend_room(room) }
            });
            let answer = match (&lent, &request.buffer) {
                (Some(data), _) | (None, Buffer::Recv(data)) => match claim {
                    Some(claim) => self.rail.receive_claimed(LANE, claim, data, token),
                    None => self.rail.post(LANE, pattern, data, token),
                },
                _ => return true,
            };
            let bounced = lent.is_some();
            match answer {
                Posted::Busy => return false,
                // As many receives as there may be, and this one is accepted: it waits.
                Posted::Full => return false,
                Posted::Open => {
                    request.phase = Phase::Open;
                    if let Some(failure) = request.doomed.take() {
                        self.give_up(core, handle, failure);
                    } else if claim.is_none() && !core.lane.losses.is_empty() {
                        self.posted_in_trouble(core, handle, from);
                    }
                    return true;
                }
                Posted::Done(ReceiveEnd::Matched(envelope, outcome)) => {
                    request.phase = Phase::Open;
                    core.counters.unexpected_short += 1;
                    core.matched(handle, &envelope, outcome);
                    return true;
                }
                Posted::Done(ReceiveEnd::Cancelled) => {
                    core.taken_back(handle);
                    return true;
                }
                // The transport wants one region.
                Posted::Refused(Refusal::Shape) if !bounced => {
                    request.bounce = Some(core.bounces.take(request.capacity));
                }
                Posted::Refused(why) => {
                    tracing::error!("a receive was refused: {why:?}");
                    core.finish(handle, Some(Failure::Closed));
                    return true;
                }
            }
        }
    }

    /// Ends a receive with `failure`, unless a message has matched.
    pub(super) fn give_up(&mut self, core: &mut State, handle: Handle, failure: Failure) {
        let Some(request) = core.requests.get_mut(handle) else {
            return;
        };
        match request.phase {
            // The transport has not looked for its message yet, which may be there.
            Phase::Queued => request.doomed = Some(failure),
            Phase::Open => match self.rail.cancel(LANE, Token(handle.to_wire())) {
                Cancel::Cancelled => core.finish_in_vain(handle, failure),
                Cancel::TooLate => {}
                Cancel::Pending => request.doomed = Some(failure),
            },
            Phase::Inactive | Phase::Complete => {}
        }
    }

    /// What the transport finds, now or a few rounds later.
    fn look(
        &mut self,
        core: &mut State,
        pattern: MatchPattern,
        claim: bool,
    ) -> Result<Option<Found>> {
        for _ in 0..PATIENCE {
            // Receives that were posted before come first.
            if !core.waiting.is_empty() {
                self.post_waiting(core);
                if !core.waiting.is_empty() {
                    return Ok(None);
                }
            }
            let token = core.probe_token();
            match self.rail.probe(LANE, pattern, claim, token) {
                Probed::Found(found) => return Ok(Some(found)),
                Probed::Nothing => return Ok(None),
                Probed::Pending => return Ok(self.await_answer(core)),
                Probed::Busy => {
                    self.rail.progress(LANE, core);
                }
                Probed::Refused(why) => return Err(Error::Refused(why)),
            }
        }
        Ok(None)
    }

    #[cold]
    fn await_answer(&mut self, core: &mut State) -> Option<Found> {
        for _ in 0..PATIENCE {
            self.rail.progress(LANE, core);
            if let Some(found) = core.probed.take() {
                return found;
            }
        }
        None
    }

    /// Receives, into no room, the messages that are here for `context`.
    pub(super) fn drop_messages(&mut self, core: &mut State, context: ContextId) -> Result<()> {
        let any = (SourceSelector::ANY, TagSelector::ANY);
        for pattern in [
            core.layout.pattern(any.0, any.1, context),
            core.layout.internal(context),
        ] {
            while let Some(found) = self.look(core, pattern, true)? {
                self.drop_claimed(core, &found)?;
            }
        }
        Ok(())
    }

    /// The same with the messages of collectives alone. Where the transport cannot tell them from other internal ones it stops
    /// before one of those, and goes on when that was received.
    pub(super) fn drop_collectives(&mut self, core: &mut State, context: ContextId) -> Result<()> {
        let pattern = core.layout.collectives(context);
        while let Some(found) = self.look(core, pattern, false)? {
            let read = core.layout.read(&found.envelope);
            let Some(tag) = read.map(|(tag, _)| tag).filter(|tag| tag.is_collective()) else {
                break;
            };
            let from = SourceSelector::exact(found.envelope.source);
            let one = core.layout.pattern(from, TagSelector::exact(tag), context);
            if let Some(found) = self.look(core, one, true)? {
                self.drop_claimed(core, &found)?;
            }
        }
        Ok(())
    }

    fn drop_claimed(&mut self, core: &mut State, found: &Found) -> Result<()> {
        let Some((message, _)) = core.keep(found) else {
            return Ok(());
        };
        let dropped = self.start_claimed(core, RecvBuffer::EMPTY, message)?;
        if core.requests.take_complete(dropped.0).is_none()
            && let Some(request) = core.requests.get_mut(dropped.0)
        {
            request.detached = true;
        }
        Ok(())
    }

    /// Receives what was claimed (MPI-5.0, section 3.8.3).
    pub(super) fn start_claimed(
        &mut self,
        core: &mut State,
        data: RecvBuffer,
        message: MessageId,
    ) -> Result<RequestId> {
        let Some(Claimed { id, status }) = core.claimed.remove(message.0) else {
            return Err(Error::StaleRequest);
        };
        let (handle, request) = core.requests.occupy();
        let (from, tag) = (
            SourceSelector::exact(status.source),
            TagSelector::exact(status.tag),
        );
        request.set_recv(from, tag, ContextId::WORLD, data.capacity());
        request.order = core.posted;
        core.posted += 1;
        request.claim = Some(id);
        request.buffer = Buffer::Recv(data);
        request.phase = Phase::Queued;
        // It waits for no other: only for room.
        if self.post_queued(core, handle) {
            return Ok(RequestId(handle));
        }
        core.waiting.push_front(handle);
        core.pending.push_back(Pending::Post);
        Ok(RequestId(handle))
    }

    /// Takes back a receive that has not matched (MPI-5.0, section 3.8.4).
    pub(super) fn take_back(&mut self, core: &mut State, handle: Handle) -> Result<CancelOutcome> {
        let request = core.requests.get_mut(handle).ok_or(Error::StaleRequest)?;
        if request.is_send {
            return Err(Error::WrongRequest("cancelled: it is a send"));
        }
        match request.phase {
            Phase::Queued if request.claim.is_none() => {
                core.waiting.retain(|other| *other != handle);
                core.taken_back(handle);
            }
            Phase::Open => match self.rail.cancel(LANE, Token(handle.to_wire())) {
                Cancel::Cancelled => core.taken_back(handle),
                Cancel::TooLate => {}
                Cancel::Pending => self.await_cancel(core, handle),
            },
            _ => {}
        }
        let cancelled = core
            .requests
            .get(handle)
            .is_some_and(|request| request.status.cancelled);
        Ok(if cancelled {
            CancelOutcome::Cancelled
        } else {
            CancelOutcome::AlreadyMatched
        })
    }

    /// Until a late transport has said what became of a cancel: not for longer than a message
    /// would take to complete.
    #[cold]
    fn await_cancel(&mut self, core: &mut State, handle: Handle) {
        for _ in 0..LATE_ROUNDS {
            self.rail.progress(LANE, core);
            let open = core.requests.get(handle);
            if open.is_none_or(|request| request.phase != Phase::Open) {
                return;
            }
        }
    }
}

/// How often a late transport is asked to go on after a cancel. If its report comes later still, it
/// is that a message has matched whose bytes are on the way.
const LATE_ROUNDS: u32 = 64;

impl State {
    /// Keeps a claimed message until it is received.
    fn keep(&mut self, found: &Found) -> Option<(MessageId, Status)> {
        let status = self.describe(&found.envelope)?;
        let id = found.claim?;
        let handle = self.claimed.insert(Claimed { id, status });
        Some((MessageId(handle), status))
    }
}
