//! What both contracts share: the worker, the peers, and operations under way.
#![allow(unsafe_code)]

use std::fmt::Write;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::bootstrap::{Bootstrap, JobSecret};
use tagwire_base::{Clock, Error as BaseError, Rank, Time};
use tagwire_transport::{
    Capabilities, EndpointId, Error, Outcome, PeerEvent, Post, Result, Token, WaitObject,
};
use tagwire_ucx_sys::{Started, UCS_ERR_CANCELED, UCS_OK, ucs_status_t};
use zerocopy::IntoBytes;

use crate::NAME;
use crate::absence::{self, Absences};
use crate::config::UcxOptions;
use crate::contact::Inbox;
use crate::layout::MAX_RANKS;
use crate::library::Library;
use crate::link::{Ended, Flush, Link};
use crate::operations::{Operation, Operations, Purpose};
use crate::piece::Piece;
use crate::shared::{Finished, Mark, Pinned, REFUSED, Shared};
use crate::waiter::UcxWaiter;
use crate::wire::{self, Control, ControlKind};
use crate::worker::{Armed, Context, Endpoint, Worker};

/// How many times in a row UCX must have nothing before a failed peer has nothing more to say.
const SILENCE: u32 = 64;

/// The most calls of progress that a failed peer's last messages get.
const DRAIN_LIMIT: u32 = 100_000;

/// A peer that has failed, by the bootstrap's word: what it sent before is taken first.
struct Failing {
    id: EndpointId,
    /// Calls of progress since then, and how many of them, the last ones, brought nothing.
    calls: u32,
    silent: u32,
}

/// How far this rank is with its goodbye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Farewell {
    Unsaid,
    /// Ranks may be about to say hello: they are told goodbye as well. So many moments have passed without anything; the
    /// last began at this time.
    Greetings(u32, Time),
    /// It is on its way.
    Said,
    /// Endpoints are being closed.
    Closing,
    Over,
}

/// One rank's worker and peers.
pub(crate) struct Core {
    pub(crate) rank: Rank,
    size: u32,
    session: u32,
    secret: JobSecret,
    options: UcxOptions,
    pub(crate) clock: Clock,
    leaving: bool,
    farewell: Farewell,
    /// When what it waits for is waited for no more.
    farewell_until: Time,
    failing: Vec<Failing>,
    /// Peers that are waited for until there is a way to them.
    pub(crate) absences: Absences,
    /// Messages of our own that UCX has not sent yet: to connect, and to go on where there was no
    /// room, it needs progress for which it does not wake us.
    pending: usize,
    /// What ended and is to be told.
    pub(crate) ended: Vec<Ended>,
    /// Registrations that a reply is not read from any more.
    pub(crate) served: Vec<u32>,
    /// Puts of peers that are in their places, by the peers' names for them.
    pub(crate) filled: Vec<(EndpointId, u64)>,
    /// Flushes that wait for puts.
    pub(crate) flushes: Vec<Flush>,
    pub(crate) waiter: Arc<UcxWaiter>,
    // In the order in which they must go: the worker first, then what its callbacks are given and
    // write to.
    pub(crate) worker: Worker,
    pub(crate) links: Vec<Link>,
    pub(crate) operations: Operations,
    pub(crate) shared: Pinned<Shared>,
}

impl Core {
    /// Opens a context and a worker for `features`.
    pub(crate) fn open(
        options: UcxOptions,
        bootstrap: &dyn Bootstrap,
        features: u64,
    ) -> Result<Self> {
        if bootstrap.size() > MAX_RANKS {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "jobs of more than 65536 ranks",
            });
        }
        let library = Library::open(options.library_name())?;
        if bootstrap.locality().local_size < bootstrap.size() {
            absence::await_way(&bootstrap.clock());
        }
        let context = Context::open(library, &options, features)?;
        let (rank, secret) = (bootstrap.rank(), bootstrap.secret().clone());
        let session = wire::session_of(rank, bootstrap.size(), draw()?);
        let inbox = Inbox::new(rank, bootstrap.size(), secret.clone());
        let shared = Pinned::new(Shared::new(library.ucp, inbox));
        let worker = Worker::open(context, &shared)?;
        let waiter = Arc::new(UcxWaiter::new(worker.descriptor())?);
        Ok(Self {
            rank,
            size: bootstrap.size(),
            session,
            secret,
            options,
            clock: bootstrap.clock(),
            leaving: false,
            farewell: Farewell::Unsaid,
            farewell_until: Time::default(),
            failing: Vec::new(),
            absences: Absences::of_host(),
            pending: 0,
            ended: Vec::new(),
            served: Vec::new(),
            filled: Vec::new(),
            flushes: Vec::new(),
            links: Vec::new(),
            waiter,
            worker,
            operations: Operations::default(),
            shared,
        })
    }

    pub(crate) const fn options(&self) -> &UcxOptions {
        &self.options
    }

    pub(crate) const fn secret(&self) -> &JobSecret {
        &self.secret
    }

    pub(crate) const fn session(&self) -> u32 {
        self.session
    }

    /// What both contracts can be sure of.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::ORDERED
            | Capabilities::RELIABLE
            | Capabilities::REMOTE
            | Capabilities::LOCAL
            | Capabilities::LOOPBACK;
        all.set(Capabilities::WAKE, self.worker.wakes());
        all.set(Capabilities::FAILURE_DETECTION, self.finds_failures());
        all
    }

    pub(crate) const fn wait_object(&self) -> WaitObject {
        if self.worker.wakes() {
            WaitObject::Descriptor
        } else {
            WaitObject::None
        }
    }

    /// Whether a dead peer breaks its connections. Over shared memory UCX looks after its peers
    /// seldom, or, as we ask it, not at all.
    fn finds_failures(&self) -> bool {
        self.options.avoids_shared_memory()
    }

    /// What a peer needs to reach this rank.
    pub(crate) fn address(&self) -> Vec<u8> {
        wire::address_of(self.rank, &self.worker.address, &self.secret)
    }

    /// The endpoint for `peer`.
    pub(crate) fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let worker = wire::read_address(peer, address, &self.secret);
        let worker = worker.map_err(|reason| Error::BadAddress {
            transport: NAME,
            peer,
            reason,
        })?;
        if self.shared.inbox.borrow().is_lost(peer) {
            return Err(unreachable(peer, "it has failed".to_owned()));
        }
        let known = self.shared.inbox.borrow().find(peer);
        let id = known.unwrap_or_else(|| self.shared.inbox.borrow_mut().inbound(peer));
        self.link_inbound();
        let link = &self.links[id.index()];
        if !link.closed && link.endpoint.is_none() && !self.absences.has(id) {
            self.begin(id, worker)
                .map_err(|reason| unreachable(peer, reason))?;
        }
        Ok(id)
    }

    /// A link for each inbound, by the same index.
    fn link_inbound(&mut self) {
        let inbox = self.shared.inbox.borrow();
        for inbound in &inbox.all_inbound()[self.links.len()..] {
            let mark = Mark::new(&self.shared, self.links.len() as u32);
            self.links
                .push(Link::new(inbound.rank, inbound.closed, mark));
        }
    }

    /// Connects to a peer's worker, now or once there is a way to it.
    fn begin(&mut self, id: EndpointId, worker: &[u8]) -> Result<(), String> {
        let Err(status) = self.establish(id, worker) else {
            return Ok(());
        };
        let noted = self.absences.note(id, worker, status, self.clock.now());
        let text = |status| crate::worker::status_text(self.shared.ucp, status);
        noted.map_err(|status| text(status) + &self.absences.why())
    }

    /// Tries again to connect to the peers whose time it is.
    #[cold]
    fn look_for_absent(&mut self) {
        let now = self.clock.now();
        for absent in self.absences.take_due(now) {
            let id = absent.id;
            if !self.links[id.index()].closed
                && let Err(status) = self.establish(id, &absent.worker)
                && !self.absences.wait_on(absent, status, now)
            {
                self.fail(id);
                self.shared.stir();
            }
        }
    }

    /// Makes the endpoint to a peer's worker, and says hello.
    fn establish(&mut self, id: EndpointId, worker: &[u8]) -> Result<(), ucs_status_t> {
        let link = &mut self.links[id.index()];
        let endpoint = self.worker.connect(worker, &link.mark)?;
        link.endpoint = Some(endpoint);
        let to = link.rank;
        let address = self.address();
        let hello = Control::hello(self.rank, self.session, to, (&self.secret, &address));
        self.send_own(id, Purpose::Hello, &hello, &address);
        Ok(())
    }

    /// A control message of `kind` to `id`.
    pub(crate) fn control(&self, kind: ControlKind, id: EndpointId) -> Control {
        Control::new(kind, self.rank, self.session, self.links[id.index()].rank)
    }

    /// Sends a control message; past all bounds, since there are few.
    pub(crate) fn send_control(&mut self, id: EndpointId, control: &Control, payload: &[u8]) {
        self.send_own(id, Purpose::Copied, control, payload);
    }

    fn send_own(&mut self, id: EndpointId, purpose: Purpose, control: &Control, payload: &[u8]) {
        if let Some(endpoint) = self.links[id.index()].endpoint {
            self.send_on(endpoint, id, purpose, control, payload);
        }
    }

    fn send_on(
        &mut self,
        endpoint: Endpoint,
        id: EndpointId,
        purpose: Purpose,
        control: &Control,
        payload: &[u8],
    ) {
        let index = self.operations.take(&self.shared, purpose, Some(id.0));
        self.operations
            .get_mut(index)
            .fill(control.as_bytes(), payload.len(), |room| {
                room.copy_from_slice(payload);
            });
        let operation = self.operations.get(index);
        let bytes = operation.piece();
        // SAFETY: the endpoint is open; the operation keeps its bytes until it is given back,
        // which is after the mark ended.
        let started = unsafe { self.worker.send_control(endpoint, bytes, &operation.mark) };
        self.note_start(id, index, started);
    }

    /// Sends a message of `len` bytes behind `header`, which `fill` writes where UCX reads them.
    #[inline]
    pub(crate) fn send_copied(
        &mut self,
        (to, endpoint): (EndpointId, Endpoint),
        header: &[u8],
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Post {
        let index = self
            .operations
            .take(&self.shared, Purpose::Copied, Some(to.0));
        self.operations.get_mut(index).fill(header, len, fill);
        let operation = self.operations.get(index);
        let (bytes, mark) = (operation.piece(), &operation.mark);
        // SAFETY: links hold open endpoints; the operation keeps its bytes until it is given
        // back, which is after its mark ended.
        let started = unsafe { self.worker.send_message(endpoint, Piece::NONE, bytes, mark) };
        if self.note_start(to, index, started) {
            Post::Posted
        } else {
            Post::Gone
        }
    }

    /// Takes note of how an operation towards `id` began; returns whether it did.
    #[inline]
    pub(crate) fn note_start(&mut self, id: EndpointId, index: u32, started: Started) -> bool {
        match started {
            Started::Done => {
                let purpose = self.operations.get(index).purpose;
                if purpose == Purpose::Hello {
                    self.links[id.index()].established = true;
                }
                self.operations.give(index);
                if purpose == Purpose::Heard {
                    self.sever(id);
                }
                true
            }
            Started::Open(request) => {
                let operation = self.operations.get_mut(index);
                let len = operation.piece().len;
                operation.request = NonNull::new(request);
                if operation.purpose.is_own() {
                    self.pending += 1;
                    self.waiter.disturbed();
                }
                if operation.purpose.is_message() {
                    let link = &mut self.links[id.index()];
                    link.under_way += 1;
                    link.bytes_under_way += len;
                }
                true
            }
            Started::Failed(_) => {
                self.operations.give(index);
                self.fail(id);
                false
            }
        }
    }

    /// As [`note_start`](Self::note_start), of an operation that somebody waits for.
    pub(crate) fn begin_lent(&mut self, id: EndpointId, index: u32, started: Started) -> bool {
        if started == Started::Done {
            self.ended.push(Ended {
                purpose: self.operations.get(index).purpose,
                link: Some(id.0),
                status: UCS_OK,
                tag: 0,
                length: 0,
            });
        }
        self.note_start(id, index, started)
    }

    /// Does what callbacks have noted: closes what broke, replies to who greeted, frees what ended.
    /// What ended for the layer above is in `ended`, after the events that explain it.
    /// Returns whether there was anything.
    #[inline]
    pub(crate) fn attend(&mut self) -> bool {
        let dirty = self.shared.dirty.replace(false);
        if dirty {
            if self.shared.stirred.replace(false) {
                self.attend_now();
            }
            self.reap();
        }
        dirty
    }

    #[cold]
    fn attend_now(&mut self) {
        self.link_inbound();
        self.answer_greetings();
        let parted = std::mem::take(&mut self.shared.inbox.borrow_mut().parted);
        for id in parted {
            self.part_from(id);
        }
        let heard = std::mem::take(&mut self.shared.inbox.borrow_mut().heard);
        for id in heard {
            self.links[id.index()].heard = true;
        }
        let broken = std::mem::take(&mut *self.shared.broken.borrow_mut());
        for index in broken {
            self.fail(EndpointId(index));
        }
    }

    fn answer_greetings(&mut self) {
        let greeted = std::mem::take(&mut self.shared.inbox.borrow_mut().greeted);
        for (id, address) in greeted {
            let link = &self.links[id.index()];
            if link.closed || link.endpoint.is_some() || self.absences.has(id) {
                continue;
            }
            let worker = wire::read_address(link.rank, &address, &self.secret);
            let answered = worker.and_then(|worker| self.begin(id, worker));
            if answered.is_err() {
                self.fail(id);
            }
        }
    }

    /// The peer at `id` has failed: once, unless its end was told already.
    pub(crate) fn fail(&mut self, id: EndpointId) {
        {
            let mut inbox = self.shared.inbox.borrow_mut();
            if inbox.close(id) {
                inbox.tell(PeerEvent::Failed(id));
            }
        }
        self.sever(id);
    }

    /// Acknowledges a goodbye, and closes the endpoint then: whoever left waits for that.
    fn part_from(&mut self, id: EndpointId) {
        self.cancel_gets(id);
        let heard = self.control(ControlKind::Heard, id);
        let link = &mut self.links[id.index()];
        link.closed = true;
        link.parting = link.endpoint.take();
        if let Some(endpoint) = link.parting {
            link.severed = Some(self.clock.now());
            self.send_on(endpoint, id, Purpose::Heard, &heard, &[]);
        }
    }

    /// Closes the endpoint, which ends what is under way on it.
    fn sever(&mut self, id: EndpointId) {
        self.cancel_gets(id);
        let link = &mut self.links[id.index()];
        link.closed = true;
        let Some(endpoint) = link.endpoint.take().or_else(|| link.parting.take()) else {
            return;
        };
        link.severed = Some(self.clock.now());
        let index = self.operations.take(&self.shared, Purpose::Close, None);
        let mark = &self.operations.get(index).mark;
        // SAFETY: taken out of the link, so closed once and not used any more; operations keep
        // their marks until they have ended.
        match unsafe { self.worker.close(endpoint, mark) } {
            Started::Open(request) => {
                self.operations.get_mut(index).request = NonNull::new(request);
            }
            Started::Done | Started::Failed(_) => self.operations.give(index),
        }
    }

    /// How an operation ended whose callback came from within the call that started it, or took it
    /// back; it is freed, and not told of any more.
    pub(crate) fn ended_at_once(&mut self, index: u32) -> Option<Finished> {
        if !self.operations.get(index).mark.ended.get() {
            return None;
        }
        let mut finished = self.shared.finished.borrow_mut();
        let place = finished.iter().rposition(|one| one.operation == index)?;
        let one = finished.remove(place)?;
        self.operations.give(index);
        Some(one)
    }

    /// Ends the sends to peers whose endpoints UCX does not get closed: over shared memory it waits
    /// for room in the queue of a peer that reads no more.
    ///
    /// By now UCX has failed the endpoint's lanes and dropped what was queued on them: it reads
    /// the buffers no more but to reply to the peer, whose messages have been heard to the end. The
    /// slots stay taken until the callbacks come, or the worker goes.
    pub(crate) fn end_overdue(&mut self) {
        for index in 0..self.links.len() {
            let severed = self.links[index].severed;
            if severed.is_none_or(|then| self.clock.now().since(then) <= CLOSE_PATIENCE) {
                continue;
            }
            if self.links[index].parting.is_some() {
                // Its reply does not get through. From now on it is closed as any other.
                self.sever(EndpointId(index as u32));
            } else {
                self.links[index].severed = None;
                self.orphan(index as u32);
            }
        }
    }

    fn orphan(&mut self, link: u32) {
        for operation in self.operations.iter_mut() {
            let is_lent = matches!(operation.purpose, Purpose::Lent(..) | Purpose::Write(..));
            if !is_lent || operation.link != Some(link) || operation.mark.ended.get() {
                continue;
            }
            self.ended.push(Ended {
                purpose: operation.purpose,
                link: Some(link),
                status: UCS_ERR_CANCELED,
                tag: 0,
                length: 0,
            });
            operation.purpose = Purpose::Orphan;
            operation.link = None;
        }
    }

    /// Takes back the receives of gets whose peer replies no more.
    fn cancel_gets(&mut self, id: EndpointId) {
        for (_, operation) in self.operations.iter() {
            let is_receive = matches!(operation.purpose, Purpose::Get(..) | Purpose::Fill(..));
            if is_receive && operation.link == Some(id.0) {
                self.cancel(operation);
            }
        }
        let is_put = |purpose| matches!(purpose, Purpose::Put(..));
        let puts: Vec<u32> = (self.operations.iter())
            .filter(|(_, slot)| is_put(slot.purpose) && slot.link == Some(id.0))
            .map(|(index, _)| index)
            .collect();
        for index in puts {
            self.end_put(index, UCS_ERR_CANCELED);
        }
    }

    /// The bytes of a put are UCX's no more.
    fn put_sent(&mut self, put: u64) {
        let Some(index) = self.operations.find(put) else {
            return;
        };
        self.operations.get_mut(index).sent = true;
        let gone = self.operations.get(index).link;
        let gone = gone.is_none_or(|link| self.links[link as usize].closed);
        if gone {
            self.end_put(index, UCS_ERR_CANCELED);
        } else if self.operations.get(index).placed {
            self.end_put(index, UCS_OK);
        }
    }

    /// A put ends, unless UCX still reads its bytes.
    pub(crate) fn end_put(&mut self, index: u32, status: ucs_status_t) {
        let operation = self.operations.get(index);
        if !operation.sent {
            return;
        }
        let (name, purpose, link) = (
            self.operations.name(index),
            operation.purpose,
            operation.link,
        );
        self.operations.give(index);
        self.ended.push(Ended {
            purpose,
            link,
            status,
            tag: 0,
            length: 0,
        });
        for flush in &mut self.flushes {
            flush.puts.retain(|put| *put != name);
        }
    }

    /// Takes a receive back, unless it has ended or a message has matched it.
    pub(crate) fn cancel(&self, operation: &Operation) {
        if let Some(request) = operation.request
            && !operation.mark.ended.get()
        {
            // SAFETY: the callback, which frees the request, has not come: the mark would say so.
            unsafe { self.worker.cancel(request) };
        }
    }

    /// Frees the operations that ended.
    fn reap(&mut self) {
        loop {
            // One after the other: to end one may end others, and adds to the list.
            let Some(finished) = self.shared.finished.borrow_mut().pop_front() else {
                return;
            };
            self.end(&finished);
        }
    }

    fn end(&mut self, finished: &Finished) {
        let operation = self.operations.get(finished.operation);
        let (purpose, link, len) = (operation.purpose, operation.link, operation.piece().len);
        self.operations.give(finished.operation);
        if purpose.is_own() {
            self.pending -= 1;
        }
        if let Some(index) = link {
            let link = &mut self.links[index as usize];
            if purpose.is_message() {
                link.under_way -= 1;
                link.bytes_under_way -= len;
            }
            match purpose {
                Purpose::Get(..) => link.gets -= 1,
                Purpose::Hello => link.established = finished.status == UCS_OK,
                _ => {}
            }
            let is_ours = matches!(
                purpose,
                Purpose::Get(..) | Purpose::Receive(..) | Purpose::Fill(..)
            );
            // A write that the peer refused is no failure. One of the peer's that does not land is
            // one: nobody would hear of it otherwise.
            let is_refused = matches!(purpose, Purpose::Write(..)) && finished.status == REFUSED;
            if finished.status != UCS_OK && !is_ours && !is_refused && !link.closed {
                self.fail(EndpointId(index));
            }
        }
        match purpose {
            Purpose::Heard => link
                .into_iter()
                .for_each(|link| self.sever(EndpointId(link))),
            Purpose::Copied
            | Purpose::Hello
            | Purpose::Orphan
            | Purpose::Inherit
            | Purpose::Close
            | Purpose::Flush => {}
            Purpose::Serve(registration) => self.served.push(registration),
            Purpose::Fill(registration, put) => {
                self.served.push(registration);
                let good = finished.status == UCS_OK;
                self.filled
                    .extend(link.filter(|_| good).map(|link| (EndpointId(link), put)));
            }
            Purpose::PutBytes(put) => self.put_sent(put),
            Purpose::Land(registration, immediate) => {
                self.served.push(registration);
                let notice = (finished.status == UCS_OK).then_some(immediate);
                if let Some(from) = link {
                    self.end_landing(EndpointId(from), notice);
                }
            }
            Purpose::Lent(..)
            | Purpose::Write(..)
            | Purpose::Receive(..)
            | Purpose::Get(..)
            | Purpose::Put(..) => self.ended.push(Ended {
                purpose,
                link,
                status: finished.status,
                tag: finished.tag,
                length: finished.length,
            }),
        }
    }

    /// A write of `from` that was to be fetched is dealt with, see
    /// [`Inbox::end_landing`](crate::contact::Inbox::end_landing).
    pub(crate) fn end_landing(&self, from: EndpointId, notice: Option<u64>) {
        let noted = self.shared.inbox.borrow_mut().end_landing(from, notice);
        self.shared.note(noted);
    }

    /// Tells of the flushes that have nothing to wait for any more. Returns how many did.
    pub(crate) fn tell_flushes(&mut self, mut tell: impl FnMut(Token, Outcome)) -> usize {
        let (before, links) = (self.flushes.len(), &self.links);
        self.flushes.retain(|flush| match flush.outcome(links) {
            Some(outcome) => {
                tell(flush.token, outcome);
                false
            }
            None => true,
        });
        before - self.flushes.len()
    }

    /// After progress: sees to it that sleepers are woken. `count` is what the worker returned.
    #[inline]
    pub(crate) fn after_progress(&self, count: u32) {
        if count > 0 {
            self.waiter.disturbed();
        } else if self.pending == 0 && self.waiter.wants_arming() && !self.ends_peers() {
            self.arm();
        }
    }

    /// Whether progress has something to do that no event of UCX brings.
    fn ends_peers(&self) -> bool {
        self.farewell != Farewell::Unsaid || !self.failing.is_empty() || !self.absences.is_empty()
    }

    /// Lets sleepers sleep on the worker's descriptor, where there is nothing to do.
    #[cold]
    fn arm(&self) {
        // What came between the last look and the arming makes the descriptor readable on Mellanox's
        // devices alone, where UCX takes it for granted (docs/libraries.md).
        if self.worker.arm() == Armed::Yes && self.worker.progress() == 0 {
            self.waiter.armed();
        }
    }

    /// The link at `id`, where it leads somewhere.
    pub(crate) fn open_link(&self, id: EndpointId) -> Option<&Link> {
        let link = self.links.get(id.index());
        link.filter(|link| link.endpoint.is_some())
    }

    /// One line for each peer.
    pub(crate) fn describe(&self, out: &mut dyn Write) {
        for link in &self.links {
            // The sink's own failure has nowhere else to be reported.
            let _ = writeln!(
                out,
                "{NAME}: rank {}: {} messages ({} bytes) on their way{}",
                link.rank,
                link.under_way,
                link.bytes_under_way,
                if link.closed { ", closed" } else { "" },
            );
        }
    }

    /// Begins to say goodbye; [`part`](Self::part) goes on with it.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        self.begin_farewell();
    }

    fn begin_farewell(&mut self) {
        if self.farewell == Farewell::Unsaid {
            let now = self.clock.now();
            self.farewell_until = now + self.options.linger;
            self.farewell = Farewell::Greetings(0, now);
        }
    }

    /// Whether everyone in contact has read the goodbye, or is waited for no more, and endpoints are closed.
    pub(crate) fn has_left(&self) -> bool {
        self.farewell == Farewell::Over
    }

    /// Goes on with the goodbye, after a call of progress that did `count` things: says it to everyone in contact, and closes
    /// the endpoints once they have read that and all before it.
    ///
    /// That it is on its way would not do: by TCP, UCX drops what it has not read of a connection
    /// once it fails to write to it, and a peer that has yet to reply to our hello writes. Seen with
    /// UCX 1.13: the last messages of a rank that closed right after them were lost, and it was
    /// taken to have failed.
    #[cold]
    fn part(&mut self, count: u32) {
        let now = self.clock.now();
        let is_late = now >= self.farewell_until;
        match self.farewell {
            Farewell::Unsaid | Farewell::Over => {}
            Farewell::Greetings(quiet, since) => {
                self.farewell = match now.since(since) >= MOMENT {
                    _ if count > 0 => Farewell::Greetings(0, now),
                    true => Farewell::Greetings(quiet + 1, now),
                    false => self.farewell,
                };
                if is_late || quiet >= QUIET_MOMENTS || !self.has_strangers() {
                    self.say_goodbye();
                    self.farewell = Farewell::Said;
                    self.farewell_until = now + self.options.linger;
                }
            }
            Farewell::Said if is_late || self.is_heard() => {
                for index in 0..self.links.len() as u32 {
                    self.sever(EndpointId(index));
                }
                self.farewell = Farewell::Closing;
                self.farewell_until = now + CLOSE_TIME;
            }
            Farewell::Closing if is_late || !self.has_any(|one| one == Purpose::Close) => {
                self.farewell = Farewell::Over;
            }
            Farewell::Said | Farewell::Closing => {}
        }
    }

    fn say_goodbye(&mut self) {
        let kind = if self.leaving {
            ControlKind::Leaving
        } else {
            ControlKind::Failing
        };
        for index in 0..self.links.len() as u32 {
            let goodbye = self.control(kind, EndpointId(index));
            self.send_control(EndpointId(index), &goodbye, &[]);
        }
        let index = self.operations.take(&self.shared, Purpose::Flush, None);
        let mark = &self.operations.get(index).mark;
        // SAFETY: operations keep their marks until they have ended.
        match unsafe { self.worker.flush_all(mark) } {
            Started::Open(request) => {
                self.operations.get_mut(index).request = NonNull::new(request);
            }
            Started::Done | Started::Failed(_) => self.operations.give(index),
        }
    }

    /// Whether everyone has read the goodbye, and UCX the messages that are our own.
    fn is_heard(&self) -> bool {
        let is_heard = |link: &Link| link.heard || link.endpoint.is_none();
        self.links.iter().all(is_heard)
            && !self.has_any(|purpose| purpose.is_own() || purpose == Purpose::Flush)
    }

    fn has_any(&self, is_one: impl Fn(Purpose) -> bool) -> bool {
        let mut operations = self.operations.iter();
        operations.any(|(_, operation)| is_one(operation.purpose))
    }

    /// Whether there are ranks that may be about to say hello.
    fn has_strangers(&self) -> bool {
        let others = self.links.iter().filter(|link| link.rank != self.rank);
        others.count() + 1 < self.size as usize
    }

    /// Notes that `rank` has failed, by the bootstrap: progress takes what it sent, then reports the failure.
    pub(crate) fn peer_failed(&mut self, rank: Rank) {
        let mut inbox = self.shared.inbox.borrow_mut();
        match inbox.find(rank) {
            Some(id) => self.failing.push(Failing {
                id,
                calls: 0,
                silent: 0,
            }),
            None => inbox.lose(rank),
        }
    }

    /// After a call of progress that did `count` things: loses the failed of whom nothing comes any more.
    #[cold]
    fn lose_failing(&mut self, count: u32) {
        for mut one in std::mem::take(&mut self.failing) {
            one.calls += 1;
            one.silent = if count > 0 { 0 } else { one.silent + 1 };
            if one.silent < SILENCE && one.calls < DRAIN_LIMIT {
                self.failing.push(one);
                continue;
            }
            let rank = self.links[one.id.index()].rank;
            self.shared.inbox.borrow_mut().lose(rank);
            self.fail(one.id);
            self.shared.stir();
        }
    }

    /// After a call of progress that did `count` things, and before that is told: goes on with the ends of peers.
    #[inline]
    pub(crate) fn end_peers(&mut self, count: u32) {
        if !self.failing.is_empty() {
            self.lose_failing(count);
        }
        if !self.absences.is_empty() {
            self.look_for_absent();
        }
        if self.farewell != Farewell::Unsaid {
            self.part(count);
        }
    }
}

impl Drop for Core {
    /// A rank that has not left before waits for that: nobody makes progress after it.
    fn drop(&mut self) {
        // Nobody could be told of what is written from now on.
        self.shared.memory.borrow_mut().end_all();
        self.begin_farewell();
        let mut idle = 0_u32;
        while !self.has_left() {
            let count = self.worker.progress();
            self.attend();
            self.ended.clear();
            self.part(count);
            idle = if count > 0 { 0 } else { idle + 1 };
            if idle > 100 {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// So many moments without anything a rank that closes waits for those that are just saying hello. Moments and no time:
/// on a busy machine they last longer, and leave the core to who is about to say hello.
const QUIET_MOMENTS: u32 = 25;

/// How long a moment lasts at least.
const MOMENT: Duration = Duration::from_millis(1);

/// How long a rank that was dropped before it had left sleeps while nothing comes.
const PAUSE: Duration = Duration::from_micros(100);

/// How long UCX may take to close an endpoint before sends on it are told to have ended.
const CLOSE_PATIENCE: Duration = Duration::from_millis(100);

/// How long closing by force may take.
const CLOSE_TIME: Duration = Duration::from_secs(1);

fn unreachable(peer: Rank, reason: String) -> Error {
    Error::Unreachable {
        transport: NAME,
        peer,
        reason,
    }
}

/// A random number.
fn draw() -> Result<u32> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(
        |error| BaseError::System {
            what: "ucx: a random number".to_owned(),
            source: error.into(),
        },
    )?;
    Ok(u32::from_ne_bytes(bytes))
}
