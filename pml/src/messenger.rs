//! One rank's port: a [`Pml`](crate::Pml) with a thread level, waiting, deadlines, and the hang dump.

mod at_once;
#[cfg(feature = "partitioned")]
mod brief;
mod rhythm;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
mod window;

pub use at_once::{AtOnce, Waits};
use rhythm::Rhythm;
pub use window::{AccessId, Region, Target, Window};

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tagwire_base::{Clock, ContextId, Rank, SourceSelector, Tag, TagSelector, Time};
use tagwire_transport::{Allocation, RecvBuffer, SendBuffer, Transport};

use crate::driver::{Driven, Driver, Drivers};
use crate::dumps::{Dumps, Until, WaitsFor};
use crate::error::{Error, Result};
use crate::guard::{Entered, Guarded, LOOK_AFTER, ThreadLevel};
use crate::layer::Layer;
use crate::partitioned::Registry;
use crate::pml::Statistics;
use crate::sleepers::{Armed, Sleepers};
use crate::types::{CancelOutcome, MessageId, RequestId, SendMode, Status, TagLimits};
use crate::wait::{Backoff, SharedCore, Step, WaitPolicy};

/// How many polls a wait makes before it looks at anything else.
const POLLS_INSIDE: u32 = 64;

/// How many rounds with events a wait makes before it looks at anything else.
const BUSY_ROUNDS: u32 = 1024;

/// The rounds of a wait.
struct Rounds<'b> {
    backoff: Backoff<'b>,
    timeout: Option<Duration>,
    deadline: Option<Time>,
    /// Rounds in which something came.
    busy: u32,
}

impl Rounds<'_> {
    /// Returns what to do after a round that brought `events`; `None` for the next round at once.
    #[inline(always)]
    fn next(&mut self, events: usize, clock: &Clock) -> Option<Step> {
        if events > 0 {
            self.backoff.reset(clock);
            self.busy += 1;
            // Somebody keeps this rank busy: deadlines and deaths are looked for all the same.
            return self.busy.is_multiple_of(BUSY_ROUNDS).then_some(Step::Spin);
        }
        let step = self.backoff.step();
        (step != Step::Spin || self.backoff.is_checkpoint()).then_some(step)
    }

    /// Returns how long the wait may sleep, at most `longest`.
    fn sleep(&mut self, now: Time, longest: Duration) -> Result<Duration> {
        let Some(timeout) = self.timeout else {
            return Ok(longest);
        };
        // A timeout that ends after the clock does is none.
        let deadline = *self.deadline.get_or_insert(now + timeout);
        if now >= deadline {
            return Err(Error::TimedOut(timeout));
        }
        Ok(longest.min(deadline.since(now)))
    }
}

/// The lanes of a rank: each is what one thread drives at a time.
struct Lanes([Guarded<Layer>; 1]);

impl Lanes {
    /// Returns the lane that messages of all contexts are on.
    #[inline(always)]
    const fn main(&self) -> &Guarded<Layer> {
        let Self([lane]) = self;
        lane
    }
}

/// One rank's port for point-to-point messages.
///
/// Calls that name no wait return at once. Waits spin, yield and sleep by the [`WaitPolicy`];
/// with a timeout they give up with [`Error::TimedOut`], and the operation goes on.
///
/// Buffers are lent as [`SendBuffer`] and [`RecvBuffer`] say; the facade has a safe interface.
///
/// # The calls by group
/// | group | calls | |
/// |---|---|---|
/// | set-up | [`new`](Self::new), [`with_clock`](Self::with_clock), [`dumps`](Self::dumps) | before the first message |
/// | remote memory | [`window`](Self::window) | regions, put, get, atomic operations, flush |
/// | memory | [`allocate`](Self::allocate), [`with_boards`](Self::with_boards) | buffers that peers map; ordinary memory serves too |
/// | contexts | [`open_context`](Self::open_context), [`close_context`](Self::close_context) | matching spaces, whose ids each rank assigns; [`tag_limits`](Self::tag_limits) says how many |
/// | one message | [`isend`](Self::isend), [`irecv`](Self::irecv), [`send`](Self::send), [`recv`](Self::recv) | the blocking ones are the others with a wait |
/// | persistent | [`send_init`](Self::send_init), [`recv_init`](Self::recv_init), [`start`](Self::start), [`free`](Self::free) | one request for many messages |
/// | matched probe | [`probe`](Self::probe), [`claim`](Self::claim), [`wait_probe`](Self::wait_probe), [`wait_claim`](Self::wait_claim), [`irecv_claimed`](Self::irecv_claimed) | the length before the buffer |
/// | completion | [`test`](Self::test), [`wait`](Self::wait), [`wait_all`](Self::wait_all), [`wait_any`](Self::wait_any), [`wait_some`](Self::wait_some), [`wait_each`](Self::wait_each), [`cancel`](Self::cancel) | each takes the status, once |
/// | short ways | [`at_once`](Self::at_once) | calls that do nothing where anything stands in their way |
/// | progress | [`progress`](Self::progress), [`progress_until`](Self::progress_until), [`take`](Self::take), [`drive_with`](Self::drive_with) | every wait and test makes progress by itself; layers above wait for more than requests, and have their own moved on |
/// | failures | [`failed`](Self::failed), [`acknowledge_failures`](Self::acknowledge_failures) | receives from any source fail until failures are acknowledged |
/// | inspection | [`describe`](Self::describe), [`statistics`](Self::statistics), [`dump`](Self::dump) | change nothing |
/// | the end | [`close`](Self::close) | once; a rank that is dropped without it has failed for its peers |
///
/// Partitioned operations are in [`partitioned`](crate::partitioned).
///
/// # Order of use
/// [`isend`](Self::isend) and [`irecv`](Self::irecv) return a request, which is active until its operation completes and
/// is then held until its status is taken. Exactly one call takes it; later ones return [`Error::StaleRequest`]. A
/// persistent request is inactive at first and whenever its status was taken; [`start`](Self::start) makes it active and
/// [`free`](Self::free) ends it. [`claim`](Self::claim) takes a message out of matching, and each claimed message is
/// received by one [`irecv_claimed`](Self::irecv_claimed). Each rank opens and frees a context for itself, and sends with
/// the id that the receiver has assigned.
///
/// # Threads
/// The [`ThreadLevel`] says who may call: at `Single` and `Funneled` the thread that opened the rank, and others get
/// [`Error::WrongThread`]; at `Serialized` and `Multiple` any.
pub struct Messenger {
    lanes: Lanes,
    level: ThreadLevel,
    pub(crate) sleepers: Arc<Sleepers>,
    policy: WaitPolicy,
    core: SharedCore,
    rank: Rank,
    size: u32,
    clock: Clock,
    /// When peers are looked after next, in nanoseconds of the clock.
    next_look: AtomicU64,
    rhythm: Rhythm,
    /// Messages of this rank wait for others to leave with.
    lingering: AtomicBool,
    dumps: Dumps,
    /// Partitioned operations that are not matched yet.
    pub(crate) partitioned: Registry,
    drivers: Drivers,
    /// Ranks that were known to have failed at the last look.
    failures: AtomicUsize,
    is_closing: AtomicBool,
    /// How often peers were looked after.
    looks: AtomicUsize,
}

impl fmt::Debug for Messenger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messenger")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Messenger {
    /// A port over one of the layers.
    #[must_use]
    pub fn new(layer: impl Into<Layer>, level: ThreadLevel, policy: WaitPolicy) -> Self {
        let mut layer = layer.into();
        Self {
            sleepers: Sleepers::new(layer.waiter()),
            rank: layer.rank(),
            size: layer.size(),
            lanes: Lanes([Guarded::new(level, layer)]),
            level,
            policy,
            core: SharedCore::default(),
            next_look: AtomicU64::new((Clock::default().now() + LOOK_AFTER).as_nanos()),
            clock: Clock::default(),
            rhythm: Rhythm::default(),
            lingering: AtomicBool::new(false),
            dumps: Dumps::default(),
            partitioned: Registry::default(),
            drivers: Drivers::default(),
            failures: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            looks: AtomicUsize::new(0),
        }
    }

    /// Makes the port read `clock`, its rank's, and not the machine's. Before the first call.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        *self.next_look.get_mut() = (clock.now() + LOOK_AFTER).as_nanos();
        self.partitioned.clock = clock.clone();
        self.clock = clock;
        self
    }

    /// Which tags and how many contexts there can be.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn tag_limits(&self) -> Result<TagLimits> {
        Ok(self.enter()?.tag_limits())
    }

    /// This rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// How many ranks the job has.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Memory that peers can reach by a mapping; see [`Pml::allocate`](crate::Pml::allocate).
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn allocate(&self, len: usize) -> Result<Option<Allocation>> {
        Ok(self.enter()?.allocate(len))
    }

    /// Calls `make` with the part of the transport that makes boards with `peer`, and the peer's endpoint there. `None` where
    /// the two share no memory.
    ///
    /// # Errors
    /// [`Error::WrongThread`]; when the rank does not exist or cannot be reached.
    #[cfg(feature = "coll")]
    pub fn with_boards<T>(
        &self,
        peer: Rank,
        make: impl FnOnce(&mut dyn tagwire_transport::Boards, tagwire_transport::EndpointId) -> T,
    ) -> Result<Option<T>> {
        self.call(|layer| {
            let to = layer.terms(peer)?.endpoint;
            let lent = layer.transport().boards(to);
            Ok(lent.map(|(boards, to)| make(boards, to)))
        })
    }

    /// Returns the clock that the port reads.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What asks for the hang dump, and the names in it.
    #[must_use]
    pub const fn dumps(&self) -> &Dumps {
        &self.dumps
    }

    /// The short ways of the thread that opened the rank, for layers above that have long ones.
    #[inline(always)]
    #[must_use]
    pub const fn at_once(&self) -> AtOnce<'_> {
        AtOnce(self)
    }

    /// Checks that the calling thread may call.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    #[inline]
    pub fn check_thread(&self) -> Result<()> {
        self.enter().map(drop)
    }

    #[inline]
    fn enter(&self) -> Result<Entered<'_, Layer>> {
        self.lanes.main().enter()
    }

    /// Runs `body`, and wakes the threads that sleep where it has ended operations: they may be theirs.
    #[inline]
    pub(crate) fn call<T>(&self, body: impl FnOnce(&mut Layer) -> Result<T>) -> Result<T> {
        let mut layer = self.enter()?;
        let answer = body(&mut layer);
        self.leave(layer);
        answer
    }

    /// Leaves, and wakes as [`Messenger::call`] does.
    #[inline]
    fn leave(&self, mut layer: Entered<'_, Layer>) {
        let ended = layer.take_ended();
        drop(layer);
        if ended > 0 {
            self.after_progress(ended);
        }
    }

    /// Starts a send; see [`PointToPoint::isend`](crate::PointToPoint::isend).
    ///
    /// # Errors
    /// As there, and [`Error::WrongThread`].
    #[inline]
    pub fn isend(
        &self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        if let Some(request) = self.at_once().send(&data, to, tag, context, mode) {
            // One region, or it would not have gone: it owns nothing.
            std::mem::forget(data);
            return Ok(request);
        }
        self.isend_slow(data, to, tag, context, mode)
    }

    /// As [`isend`](Self::isend), of a message that [`AtOnce::send`] has declined: whatever does not go at once, and other threads
    /// than the first.
    ///
    /// # Errors
    /// As there.
    #[inline(never)]
    pub fn isend_slow(
        &self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        let mut layer = self.enter()?;
        let sent = layer.isend(data, to, tag, context, mode);
        if layer.has_batches() {
            self.lingering.store(true, Ordering::Relaxed);
        }
        self.leave(layer);
        sent
    }

    /// Sends what waits to leave with other messages: the caller waits, or has no more to send. Waits do so by themselves.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    #[inline]
    pub fn flush(&self) -> Result<()> {
        if self.lingering.load(Ordering::Relaxed) {
            self.lingering.store(false, Ordering::Relaxed);
            self.progress()?;
            if self.enter()?.has_batches() {
                self.lingering.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Starts a receive; see [`PointToPoint::irecv`](crate::PointToPoint::irecv).
    ///
    /// # Errors
    /// As there, and [`Error::WrongThread`].
    #[inline]
    pub fn irecv(
        &self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        if let Some(request) = self.at_once().recv(&data, from, tag, context) {
            std::mem::forget(data);
            return Ok(request);
        }
        self.irecv_slow(data, from, tag, context)
    }

    /// The same for whatever is not done at once, and for other threads than the first.
    #[inline(never)]
    fn irecv_slow(
        &self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        let at_once = self.at_once();
        if let Some(request) = at_once.recv_beside_messages(&data, from, tag, context) {
            // One region: it owns nothing.
            std::mem::forget(data);
            return Ok(request);
        }
        self.call(|layer| layer.irecv(data, from, tag, context))
    }

    /// Sends, and returns when the buffer is the caller's again.
    ///
    /// # Errors
    /// As [`Messenger::isend`]; [`Error::Failed`] when the send did not end well.
    #[inline]
    pub fn send(
        &self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<()> {
        let request = self.isend(data, to, tag, context, mode)?;
        if request != RequestId::COMPLETE {
            self.wait(request, None)?.ok().map_err(Error::Failed)?;
        }
        self.flush()
    }

    /// Receives a message.
    ///
    /// # Errors
    /// As [`Messenger::irecv`]. How the receive ended is in the status.
    #[inline]
    pub fn recv(
        &self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Status> {
        let request = self.irecv(data, from, tag, context)?;
        self.wait(request, None)
    }

    /// Looks for a message; see [`PointToPoint::probe`](crate::PointToPoint::probe). Makes progress once.
    ///
    /// # Errors
    /// As there.
    pub fn probe(
        &self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<Status>> {
        self.progress_then(|layer| layer.probe(from, tag, context))?
    }

    /// Looks for a message and takes it out of matching; see [`PointToPoint::claim`](crate::PointToPoint::claim). Makes progress once.
    ///
    /// # Errors
    /// As there.
    pub fn claim(
        &self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>> {
        self.progress_then(|layer| layer.claim(from, tag, context))?
    }

    /// The same of what has arrived, without progress.
    ///
    /// # Errors
    /// As there; [`Error::Failed`] when nothing is here of a rank that is gone.
    pub fn claim_arrived(
        &self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>> {
        let mut layer = self.enter()?;
        match layer.claim(from, tag, context)? {
            None if !from.is_any() => layer.receive_can_happen(from).map(|()| None),
            found => Ok(found),
        }
    }

    /// Waits for a message without receiving it.
    ///
    /// # Errors
    /// As [`Messenger::probe`]; [`Error::TimedOut`]; [`Error::Failed`] when the rank asked for is gone.
    pub fn wait_probe(
        &self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
        timeout: Option<Duration>,
    ) -> Result<Status> {
        self.wait_until(timeout, |pml| match pml.probe(from, tag, context)? {
            Some(status) => Ok(Some(status)),
            None => pml.receive_can_happen(from).map(|()| None),
        })
    }

    /// Waits for a message and takes it out of matching.
    ///
    /// # Errors
    /// As [`Messenger::wait_probe`].
    pub fn wait_claim(
        &self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
        timeout: Option<Duration>,
    ) -> Result<(MessageId, Status)> {
        self.wait_until(timeout, |pml| match pml.claim(from, tag, context)? {
            Some(found) => Ok(Some(found)),
            None => pml.receive_can_happen(from).map(|()| None),
        })
    }

    /// Starts to receive a claimed message; see [`PointToPoint::irecv_claimed`](crate::PointToPoint::irecv_claimed).
    ///
    /// # Errors
    /// As there.
    pub fn irecv_claimed(&self, data: RecvBuffer, message: MessageId) -> Result<RequestId> {
        self.call(|pml| pml.irecv_claimed(data, message))
    }

    /// Takes back a receive; see [`PointToPoint::cancel`](crate::PointToPoint::cancel).
    ///
    /// # Errors
    /// As there.
    pub fn cancel(&self, request: RequestId) -> Result<CancelOutcome> {
        self.call(|pml| pml.cancel(request))
    }

    /// An inactive persistent send; see [`PointToPoint::send_init`](crate::PointToPoint::send_init).
    ///
    /// # Errors
    /// As there.
    pub fn send_init(
        &self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        self.enter()?.send_init(data, to, tag, context, mode)
    }

    /// An inactive persistent receive; see [`PointToPoint::recv_init`](crate::PointToPoint::recv_init).
    ///
    /// # Errors
    /// As there.
    pub fn recv_init(
        &self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.enter()?.recv_init(data, from, tag, context)
    }

    /// Activates persistent requests, in order.
    ///
    /// # Errors
    /// As [`PointToPoint::start`](crate::PointToPoint::start); those before the one that failed are active.
    pub fn start(&self, requests: &[RequestId]) -> Result<()> {
        self.call(|pml| requests.iter().try_for_each(|request| pml.start(*request)))
    }

    /// Frees an inactive persistent request; see [`PointToPoint::free`](crate::PointToPoint::free).
    ///
    /// # Errors
    /// As there.
    pub fn free(&self, request: RequestId) -> Result<()> {
        self.enter()?.free(request)
    }

    /// Takes the end of a request, if it has come. Makes progress once.
    ///
    /// # Errors
    /// [`Error::StaleRequest`] when its end was taken before.
    #[inline]
    pub fn test(&self, request: RequestId) -> Result<Option<Status>> {
        self.progress_then(|layer| match layer.take_complete(request) {
            Some(status) => Ok(Some(status)),
            None => layer.take(request),
        })?
    }

    /// Waits for a request and takes its end.
    ///
    /// # Errors
    /// [`Error::StaleRequest`] when its end was taken before, [`Error::TimedOut`].
    #[inline]
    pub fn wait(&self, request: RequestId, timeout: Option<Duration>) -> Result<Status> {
        self.count_call()?;
        if request == RequestId::COMPLETE {
            self.flush()?;
            return Ok(Status::EMPTY);
        }
        if let Some(mut layer) = self.lanes.main().enter_by_bias()
            && let Some(pml) = layer.value().ob1()
        {
            // Most ends are here, or come with the first poll: the loop, which keeps more at hand, is apart.
            let events = match pml.is_takeable(request) {
                true => 0,
                false => pml.progress_for_one(0),
            };
            if pml.is_takeable(request) {
                // Not by an option of a status, which costs ten instructions.
                let status = pml.take_now(request);
                drop(layer);
                self.after_progress(events);
                return Ok(status);
            }
            drop(layer);
            self.after_progress(events);
        }
        self.wait_at_length(request, timeout)
    }

    /// The same for whatever takes longer, for other layers, and for other threads than the first.
    #[inline(never)]
    fn wait_at_length(&self, request: RequestId, timeout: Option<Duration>) -> Result<Status> {
        self.flush()?;
        let mut layer = self.enter()?;
        let pml: &mut Layer = &mut layer;
        let mut events = 0;
        for _ in 0..=self.polls_inside() {
            if pml.is_complete(request) {
                let taken = pml.take(request);
                drop(layer);
                self.after_progress(events);
                return taken?.ok_or(Error::StaleRequest);
            }
            events += pml.progress_for_one(events);
        }
        drop(layer);
        self.after_progress(events);
        // This is asked all the time: a status in the result, which goes through memory, would cost a
        // stalled load each time.
        let mut status = None;
        self.wait_until(timeout, |pml| {
            if pml.is_complete(request) {
                status = pml.take(request)?;
            }
            Ok(status.is_some().then_some(()))
        })?;
        status.ok_or(Error::StaleRequest)
    }

    /// How many polls a wait makes at first, without leaving in between: one where other threads
    /// may want in, or another rank the core.
    #[inline(always)]
    const fn polls_inside(&self) -> u32 {
        if self.lanes.main().is_shared() | (self.policy.spins == 0) {
            1
        } else {
            POLLS_INSIDE
        }
    }

    /// Waits for all requests and takes their ends, in the order of `requests`. After a timeout
    /// none has been taken (MPI-5.0, section 3.7.5).
    ///
    /// # Errors
    /// As [`Messenger::wait`].
    pub fn wait_all(
        &self,
        requests: &[RequestId],
        timeout: Option<Duration>,
    ) -> Result<Vec<Status>> {
        self.wait_complete(requests, timeout)?;
        let mut layer = self.enter()?;
        let pml: &mut Layer = &mut layer;
        requests
            .iter()
            .map(|request| pml.take(*request)?.ok_or(Error::StaleRequest))
            .collect()
    }

    /// Waits for all requests and takes their ends, keeping only what went wrong first. Allocates
    /// nothing. After a timeout none has been taken.
    ///
    /// # Errors
    /// As [`Messenger::wait`]; [`Error::Failed`] when one did not end well.
    pub fn wait_all_quiet(&self, requests: &[RequestId], timeout: Option<Duration>) -> Result<()> {
        if timeout.is_some() {
            self.wait_complete(requests, timeout)?;
        }
        let mut outcome = Ok(());
        self.wait_each(requests, |_, status| {
            if let (Some(failure), Ok(())) = (status.failure, &outcome) {
                outcome = Err(Error::Failed(failure));
            }
        })?;
        outcome
    }

    /// Waits for all requests, takes their ends, and calls `each` with the place and the end of each, in the order of
    /// `requests`. Allocates nothing. `each` must not call this port: it is refused.
    ///
    /// # Errors
    /// [`Error::WrongThread`]; [`Error::StaleRequest`] at the first request whose end was taken before.
    #[inline]
    pub fn wait_each(
        &self,
        requests: &[RequestId],
        mut each: impl FnMut(usize, &Status),
    ) -> Result<()> {
        self.count_call()?;
        let mut next = 0;
        self.wait_until(None, |pml| {
            while let Some(&request) = requests.get(next) {
                let status = match pml.take_complete(request) {
                    Some(status) => status,
                    // Under way, persistent, or of no request.
                    None => match pml.take(request)? {
                        Some(status) => status,
                        None => return Ok(None),
                    },
                };
                each(next, &status);
                next += 1;
            }
            Ok(Some(()))
        })
    }

    /// Waits until all are complete, without taking any.
    #[inline]
    fn wait_complete(&self, requests: &[RequestId], timeout: Option<Duration>) -> Result<()> {
        let mut first = 0;
        self.wait_until(timeout, |pml| {
            while let Some(request) = requests.get(first) {
                if !pml.is_complete(*request) {
                    return Ok(None);
                }
                first += 1;
            }
            Ok(Some(()))
        })
    }

    /// Waits for any request and takes its end; returns which. `None` for an empty list
    /// (MPI-5.0, section 3.7.5).
    ///
    /// # Errors
    /// As [`Messenger::wait`].
    pub fn wait_any(
        &self,
        requests: &[RequestId],
        timeout: Option<Duration>,
    ) -> Result<Option<(usize, Status)>> {
        if requests.is_empty() {
            return Ok(None);
        }
        self.count_call()?;
        self.wait_until(timeout, |pml| {
            for (place, request) in requests.iter().enumerate() {
                if let Some(status) = pml.take(*request)? {
                    return Ok(Some(Some((place, status))));
                }
            }
            Ok(None)
        })
    }

    /// Waits until at least one is complete and takes the ends of all that are. Empty for an
    /// empty list (MPI-5.0, section 3.7.5).
    ///
    /// # Errors
    /// As [`Messenger::wait`].
    pub fn wait_some(
        &self,
        requests: &[RequestId],
        timeout: Option<Duration>,
    ) -> Result<Vec<(usize, Status)>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        self.count_call()?;
        self.wait_until(timeout, |pml| {
            let mut ended = Vec::new();
            for (place, request) in requests.iter().enumerate() {
                if let Some(status) = pml.take(*request)? {
                    ended.push((place, status));
                }
            }
            Ok(if ended.is_empty() { None } else { Some(ended) })
        })
    }

    /// Makes progress once. Returns how many things happened.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    #[inline]
    pub fn progress(&self) -> Result<usize> {
        let mut layer = self.enter()?;
        let events = layer.progress();
        self.partitioned.drive(&mut layer);
        drop(layer);
        self.after_progress(events);
        self.drive();
        if self.rhythm.count() {
            self.look_at_times(events)?;
        }
        Ok(events)
    }

    /// Says that something has happened which the waits of other threads may look for: they look once more.
    pub fn notify(&self) {
        self.sleepers.note(true);
        self.sleepers.wake();
    }

    /// Makes progress once, and looks at what came of it.
    #[inline(always)]
    fn progress_then<T>(&self, look: impl Fn(&mut Layer) -> T) -> Result<T> {
        match self.progress_now(&look) {
            Some(found) => Ok(found),
            None => self.progress_at_length(look),
        }
    }

    /// The same for the thread that opened the rank. `None`, with nothing done, for others.
    #[inline(always)]
    fn progress_now<T>(&self, look: impl FnOnce(&mut Layer) -> T) -> Option<T> {
        let mut biased = self.lanes.main().enter_by_bias()?;
        let layer = biased.value();
        let events = layer.progress();
        self.partitioned.drive(layer);
        let found = look(layer);
        drop(biased);
        self.after_progress(events);
        self.drive();
        if self.rhythm.count() {
            // What is refused to this thread is refused to its next call.
            let _ = self.look_at_times(events);
        }
        Some(found)
    }

    #[inline(never)]
    fn progress_at_length<T>(&self, look: impl FnOnce(&mut Layer) -> T) -> Result<T> {
        self.progress()?;
        Ok(look(&mut *self.enter()?))
    }

    /// Has every call that makes progress drive `driver` too while it has [demand](crate::Demand), until the value is dropped.
    pub fn drive_with(&self, driver: Arc<dyn Driver>) -> Driven {
        self.drivers.add(driver)
    }

    /// Takes the end of a request, if it has come, without progress; see [`PointToPoint::take`](crate::PointToPoint::take).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn take(&self, request: RequestId) -> Result<Option<Status>> {
        let mut layer = self.enter()?;
        match layer.take_complete(request) {
            Some(status) => Ok(Some(status)),
            None => layer.take(request),
        }
    }

    /// Returns whether a request is complete, without progress and without taking its end.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn is_complete(&self, request: RequestId) -> Result<bool> {
        Ok(self.enter()?.is_complete(request))
    }

    /// Makes progress a few times, until `is_done`, which is asked before each. [Drivers](crate::Driver) do nothing meanwhile.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    #[inline]
    pub fn poll_inside(&self, mut is_done: impl FnMut() -> bool) -> Result<bool> {
        self.count_call()?;
        for _ in 0..self.polls_inside() {
            if is_done() {
                break;
            }
            let mut layer = self.enter()?;
            let events = layer.progress();
            drop(layer);
            self.after_progress(events);
        }
        // It may be what threads that sleep wait for, or what theirs comes after.
        let ended = is_done();
        self.after_progress(usize::from(ended));
        Ok(ended)
    }

    /// Makes progress until `done`, which may call this port, returns a value. It is called after each progress that brought something.
    ///
    /// # Errors
    /// [`Error::WrongThread`], [`Error::TimedOut`], and those of `done`.
    #[inline]
    pub fn progress_until<'w, T>(
        &self,
        until: impl Into<Until<'w>>,
        mut done: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let Until { timeout, what } = until.into();
        self.flush()?;
        let mut rounds = self.rounds(timeout);
        loop {
            if let Some(answer) = done()? {
                return Ok(answer);
            }
            let mut layer = self.enter()?;
            let events = layer.progress_of_wait();
            self.partitioned.drive(&mut layer);
            drop(layer);
            self.after_progress(events);
            let Some(step) = rounds.next(events + self.drive(), &self.clock) else {
                continue;
            };
            let mut answer = None;
            self.idle((step, what), &mut rounds, &mut || {
                answer = done()?;
                Ok(answer.is_some())
            })?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }

    fn rounds(&self, timeout: Option<Duration>) -> Rounds<'_> {
        Rounds {
            backoff: Backoff::new(self.policy, &self.core),
            timeout,
            deadline: None,
            busy: 0,
        }
    }

    /// Looks after peers when it is time, also for a caller that is never idle.
    #[inline]
    pub(crate) fn count_call(&self) -> Result<()> {
        if self.rhythm.count() {
            // Waits that end at once have driven nothing.
            self.drive();
            self.look_if_due(self.clock.now())?;
        }
        Ok(())
    }

    /// Counts a call, and looks after peers when it is time. Returns `false` where it could not: the next call looks again.
    #[inline(always)]
    fn counts_on(&self) -> bool {
        self.rhythm.count_unless_due() || self.look_now()
    }

    #[cold]
    #[inline(never)]
    fn look_now(&self) -> bool {
        // Waits that end at once have driven nothing.
        self.drive();
        let looked = self.look_if_due(self.clock.now()).is_ok();
        looked && self.rhythm.count()
    }

    #[inline(never)]
    fn look_at_times(&self, events: usize) -> Result<()> {
        let looked = self.look_if_due(self.clock.now());
        looked.map(|()| self.policy.after_test(events))
    }

    #[cold]
    fn look_if_due(&self, now: Time) -> Result<()> {
        if now.as_nanos() > self.next_look.load(Ordering::Relaxed) {
            self.look_around()?;
        }
        Ok(())
    }

    /// Whether threads other than the one that opened the rank may call at any time.
    pub(crate) const fn takes_any_thread(&self) -> bool {
        matches!(self.level, ThreadLevel::Multiple)
    }

    /// Announces a sleep, and makes progress once: `None` where something has happened since a caller has `seen` how often
    /// something had. Looks after peers now and then.
    pub(crate) fn arm(&self, seen: usize) -> Result<Option<Armed>> {
        self.flush()?;
        self.look_if_due(self.clock.now())?;
        self.arm_until(self.policy.sleep, &mut || Ok(self.sleepers.noted() != seen))
    }

    /// Moves on what layers above have under way. Another thread may wait for what has ended.
    #[inline]
    fn drive(&self) -> usize {
        let ended = self.drivers.drive();
        self.after_progress(ended);
        ended
    }

    /// Another thread may wait for what this one has completed.
    #[inline]
    fn after_progress(&self, events: usize) {
        if events > 0 {
            self.sleepers.note(self.lanes.main().is_shared());
        }
    }

    /// Makes progress until `done` returns a value.
    #[inline]
    pub(crate) fn wait_until<T>(
        &self,
        timeout: Option<Duration>,
        mut done: impl FnMut(&mut Layer) -> Result<Option<T>>,
    ) -> Result<T> {
        self.flush()?;
        let mut rounds = self.rounds(timeout);
        loop {
            let mut layer = self.enter()?;
            let pml: &mut Layer = &mut layer;
            if let Some(answer) = done(pml)? {
                return Ok(answer);
            }
            let events = pml.progress_of_wait();
            self.partitioned.drive(pml);
            drop(layer);
            self.after_progress(events);
            let Some(step) = rounds.next(events + self.drive(), &self.clock) else {
                continue;
            };
            let mut answer = None;
            self.idle((step, None), &mut rounds, &mut || {
                let mut layer = self.enter()?;
                answer = done(&mut layer)?;
                Ok(answer.is_some())
            })?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }

    /// Yields or sleeps, and looks after everything that is not a message. `look` returns whether the wait is over.
    #[cold]
    fn idle(
        &self,
        (step, what): (Step, Option<&WaitsFor<'_>>),
        rounds: &mut Rounds<'_>,
        look: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        // One look at the clock serves all: a turn on a shared core is hardly longer than two of them.
        let now = self.clock.now();
        let sleep = rounds.sleep(now, self.policy.sleep)?;
        match rounds.backoff.step_at(step, now) {
            Step::Spin => {}
            Step::Yield => rustix::thread::sched_yield(),
            Step::Sleep => {
                let mut is_over = false;
                let armed = self.arm_until(sleep, &mut || {
                    is_over = look()?;
                    Ok(is_over)
                })?;
                if is_over {
                    return Ok(());
                }
                if let Some(armed) = armed {
                    armed.sleep();
                }
            }
        }
        self.look_if_due(now)?;
        self.dumps.write_if_wanted(|| self.dump(), what)
    }

    /// Announces a sleep, and makes progress once, unless the wait is `over`.
    fn arm_until(
        &self,
        sleep: Duration,
        over: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<Option<Armed>> {
        let mut events = 0;
        let armed = self.sleepers.arm(|| {
            if over()? {
                return Ok(None);
            }
            events = self.drive();
            let mut layer = self.enter()?;
            events += layer.progress();
            self.partitioned.drive(&mut layer);
            Ok((events == 0).then(|| sleep.min(layer.longest_sleep())))
        })?;
        self.after_progress(events);
        Ok(armed)
    }

    /// Looks after peers: deaths, sleepers.
    fn look_around(&self) -> Result<()> {
        let next = (self.clock.now() + LOOK_AFTER).as_nanos();
        self.next_look.store(next, Ordering::Relaxed);
        let mut layer = self.enter()?;
        layer.look_after_peers();
        self.failures.store(layer.failed().len(), Ordering::Relaxed);
        self.looks.fetch_add(1, Ordering::Relaxed);
        drop(layer);
        // A failure completes operations of other threads too.
        self.after_progress(1);
        Ok(())
    }

    /// The ranks that have failed.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn failed(&self) -> Result<Vec<Rank>> {
        self.look_around()?;
        Ok(self.enter()?.failed())
    }

    /// Takes note of failures; see [`Pml::acknowledge_failures`](crate::Pml::acknowledge_failures).
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn acknowledge_failures(&self) -> Result<Vec<Rank>> {
        Ok(self.enter()?.acknowledge_failures())
    }

    /// Opens a context of this rank; see [`LocalRank::open_context`](crate::LocalRank::open_context).
    ///
    /// # Errors
    /// As there.
    pub fn open_context(&self) -> Result<ContextId> {
        self.enter()?.open_context()
    }

    /// Frees a context of this rank; see [`LocalRank::close_context`](crate::LocalRank::close_context).
    ///
    /// # Errors
    /// As there.
    pub fn close_context(&self, context: ContextId) -> Result<()> {
        self.call(|layer| {
            layer.close_context(context)?;
            self.partitioned.forget_context(layer, context);
            Ok(())
        })
    }

    /// Has the messages of collectives in a context dropped; see [`LocalRank::break_collectives`](crate::LocalRank::break_collectives).
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn break_collectives(&self, context: ContextId) -> Result<()> {
        self.call(|layer| {
            layer.break_collectives(context);
            Ok(())
        })
    }

    /// Returns how many ranks were known to have failed when peers were looked after the last time, which waits do about ten
    /// times a second. A load.
    #[inline]
    #[must_use]
    pub fn failures(&self) -> usize {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns whether the rank [closes](Self::close), and nothing can come any more. A load.
    #[inline]
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Returns how often peers were looked after: a rhythm of about ten times a second for what waits do besides. A load.
    #[inline]
    #[must_use]
    pub fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }

    /// What a request is and how far it has come; see [`PointToPoint::describe`](crate::PointToPoint::describe).
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn describe(&self, request: RequestId) -> Result<Option<String>> {
        Ok(self.enter()?.describe(request))
    }

    /// What the layer is, and what it has done; see [`LocalRank::statistics`](crate::LocalRank::statistics).
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn statistics(&self) -> Result<Statistics> {
        Ok(self.enter()?.statistics())
    }

    /// What this rank waits for, in words.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn dump(&self) -> Result<String> {
        let (names, mut text) = (self.dumps.names(), String::new());
        let dumped = self.enter()?.dump(&names, &mut text);
        debug_assert!(dumped.is_ok(), "a string takes everything");
        self.drivers.describe(&names, &mut text);
        Ok(text)
    }

    /// Completes what is under way, leaves, waits until peers have been told, and is closed, once. Posted receives complete as closed.
    /// Work and leaving take at most the deadline each. What is still open after the deadline never completes, and its
    /// buffers stay lent until the process ends: a peer that is stopped may touch them when it goes on.
    ///
    /// # Errors
    /// [`Error::CloseDeadline`], with what is still open, or who has not acknowledged all; the rank is closed all the same.
    pub fn close(&self, deadline: Duration) -> Result<()> {
        if self.is_closing() {
            return Ok(());
        }
        self.call(|pml| {
            pml.begin_close();
            Ok(())
        })?;
        let is_done = ends_within(self, deadline, |pml| pml.open_work().is_none())?;
        let open = self.enter()?.open_work().filter(|_| !is_done);
        // What layers above have under way hears that its messages have ended, and ends where it has none.
        self.is_closing.store(true, Ordering::Relaxed);
        self.drive();
        self.enter()?.transport().leave();
        ends_within(self, deadline, |pml| pml.transport().has_left())?;
        let open = open.or(not_acknowledged(self.enter()?.transport()));
        self.enter()?.leave();
        open.map_or(Ok(()), |open| Err(Error::CloseDeadline { deadline, open }))
    }
}

/// Makes progress until `done`, for at most `timeout`. Returns whether it is.
fn ends_within(
    messenger: &Messenger,
    timeout: Duration,
    mut done: impl FnMut(&mut Layer) -> bool,
) -> Result<bool> {
    match messenger.wait_until(Some(timeout), |pml| Ok(done(pml).then_some(()))) {
        Ok(()) => Ok(true),
        Err(Error::TimedOut(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns which peers may lack some of what was sent to them, in words. What they have not heard the transport goes on with when it is
/// dropped.
fn not_acknowledged(transport: &dyn Transport) -> Option<String> {
    let mut peers = Vec::new();
    transport.unheard(&mut peers);
    let (first, others) = peers.split_first()?;
    Some(match others.len() {
        0 => format!("rank {first} has not acknowledged all that was sent to it"),
        more => format!(
            "rank {first} and {more} others have not acknowledged all that was sent to them"
        ),
    })
}
