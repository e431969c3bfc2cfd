//! Requests by handle.
//!
//! A send that was complete when its call returned has no entry: its handle is [`DONE`], which is not `MPI_REQUEST_NULL`, so that
//! calls which wait for any of several count it.
//!
//! What is here is looked up, and left again, before anything is waited for or called: [`Awaited`] is what waits need.

mod slots;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tagwire_pml::{Entered, Guarded, Messenger, RequestId, ThreadLevel};

use crate::abi::{Comm, Request, Status};
use crate::error::{Class, Error, On, Result};
use crate::lock::Lock;
use crate::object::partitioned::Part;
use crate::object::pending::{End, Freed, Look, Pending, PendingOperation};
use crate::raw::{Array, StatusRef, Statuses};
use slots::{Persistent, Slots};

pub(crate) use slots::{Again, Awaited, DONE, Settled};

/// How many operations without a request a call looks at that adds one: more than one, so that those which have ended do not
/// gather, and so few that many under way cost it nothing.
const ORPHANS_AT_ONCE: usize = 8;

/// Messages that are waited for, with the places of their requests among others.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) ids: Vec<RequestId>,
    places: Vec<usize>,
}

impl Messages {
    /// Returns the place of the request that waits for message `number`.
    pub(crate) fn place(&self, number: usize) -> Option<usize> {
        self.places.get(number).copied()
    }

    fn with_capacity(count: usize) -> Self {
        Self {
            ids: Vec::with_capacity(count),
            places: Vec::with_capacity(count),
        }
    }

    #[inline]
    fn push(&mut self, place: usize, id: RequestId) {
        self.ids.push(id);
        self.places.push(place);
    }
}

/// The requests of a process.
pub(crate) struct Requests {
    messenger: Arc<Messenger>,
    slots: Guarded<Slots>,
    /// Operations under way whose requests were freed.
    orphans: Lock<VecDeque<Awaited>>,
    /// Held by who takes the end of an operation to look at it.
    peeking: Lock<()>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

impl Requests {
    pub(crate) fn new(messenger: &Arc<Messenger>) -> Self {
        Self {
            messenger: Arc::clone(messenger),
            slots: Guarded::new(ThreadLevel::Multiple, Slots::default()),
            orphans: Lock::default(),
            peeking: Lock::default(),
        }
    }

    #[inline]
    fn slots(&self) -> Result<Entered<'_, Slots>> {
        Ok(self.slots.enter()?)
    }

    /// Takes an operation under way in.
    pub(crate) fn enter(&self, pending: Pending, comm: Comm) -> Result<Request> {
        self.enter_with(|| pending, comm)
    }

    /// The same of what `make` makes, in its slot: through memory it would be stored in parts and loaded as a whole, for which a
    /// processor waits.
    #[inline(always)]
    pub(crate) fn enter_with(&self, make: impl FnOnce() -> Pending, comm: Comm) -> Result<Request> {
        if let Some(mut slots) = self.slots.enter_by_bias()
            && let Some(place) = slots.value().reuse()
        {
            return Ok(slots.value().occupy(place, make(), comm, None));
        }
        self.enter_slow(make(), comm)
    }

    /// The same for other threads than the first, and where the table grows.
    #[inline(never)]
    fn enter_slow(&self, pending: Pending, comm: Comm) -> Result<Request> {
        let mut slots = self.slots()?;
        match slots.vacant() {
            Ok(place) => Ok(slots.occupy(place, pending, comm, None)),
            Err(full) => {
                drop(slots);
                self.revoke(pending)?;
                Err(full)
            }
        }
    }

    /// Ends what was started for a request that there is no room for.
    fn revoke(&self, pending: Pending) -> Result {
        match pending {
            Pending::Recv(id, _) => {
                self.messenger.cancel(id)?;
                self.messenger.wait(id, None)?;
            }
            Pending::Send(id) => {
                self.messenger.wait(id, None)?;
            }
            // It goes on, as that of a request that was freed.
            Pending::Operation(operation) => self.orphan(Awaited::Operation(operation)),
            _ => {}
        }
        Ok(())
    }

    fn orphan(&self, awaited: Awaited) {
        self.orphans.lock().push_back(awaited);
    }

    /// Takes a persistent request in, inactive.
    pub(crate) fn enter_persistent(&self, again: Again, comm: Comm) -> Result<Request> {
        let persistent = Persistent { again, part: None };
        let persistent = Some(Arc::new(persistent));
        self.slots()?.insert(Pending::Inactive, comm, persistent)
    }

    /// Takes a partitioned request in, inactive.
    pub(crate) fn enter_partitioned(&self, part: Part, comm: Comm) -> Result<Request> {
        let (starts, part) = (part.clone(), Some(part));
        let again: Again = Box::new(move || {
            starts.start()?;
            Ok(Pending::Operation(Arc::new(starts.clone())))
        });
        let persistent = Some(Arc::new(Persistent { again, part }));
        self.slots()?.insert(Pending::Inactive, comm, persistent)
    }

    /// Returns the end of a partitioned operation.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where the request is none.
    pub(crate) fn part(&self, request: Request) -> Result<Part> {
        let mut slots = self.slots()?;
        let slot = slots.get(request)?;
        let part = slot.persistent.as_ref().and_then(|one| one.part.clone());
        part.ok_or_else(|| {
            let text = "the request is not partitioned";
            Error::new(Class::Request, text).on(On::Comm(slot.comm))
        })
    }

    /// Waits a moment for the message of a request, and sets its status: the fast path of the thread that initialized MPI. Returns
    /// the handle from now on; `None`, where anything stands in the way, or the message failed: then that is the request's end.
    #[inline(always)]
    pub(crate) fn try_wait(&self, request: Request, status: StatusRef) -> Option<Request> {
        let mut slots = self.slots.enter_by_bias()?;
        let slots = slots.value();
        let messenger = self.messenger.at_once();
        messenger.waits(|waits| slots.try_take(waits, request, 1, status))?
    }

    /// The same of each of some of several requests, in their order, up to the first that is not done with so. Returns its place, the
    /// end of `places` where all are; `None` for other threads than the first.
    #[inline(always)]
    pub(crate) fn try_wait_each(
        &self,
        places: Range<usize>,
        requests: Array<Request>,
        statuses: Statuses,
    ) -> Option<usize> {
        let mut slots = self.slots.enter_by_bias()?;
        let slots = slots.value();
        self.messenger.at_once().waits(|waits| {
            for place in places.clone() {
                let (request, status) = (requests.get(place), statuses.at(place));
                if matches!(request, DONE | Request::NULL) {
                    requests.set(place, Request::NULL);
                    status.set(Status::EMPTY);
                    continue;
                }
                let awaited = places.end - place;
                let Some(retired) = slots.try_take(waits, request, awaited, status) else {
                    return place;
                };
                requests.set(place, retired);
            }
            places.end
        })
    }

    /// Checks that requests are some.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` at the first that is none.
    pub(crate) fn check(&self, mut requests: impl Iterator<Item = Request>) -> Result {
        let mut slots = self.slots()?;
        requests.try_for_each(|request| match request {
            DONE | Request::NULL => Ok(()),
            _ => slots.get(request).map(drop),
        })
    }

    /// Returns the message that a request waits for: the fast path of the thread that initialized MPI.
    #[inline(always)]
    pub(crate) fn try_message(&self, request: Request) -> Option<RequestId> {
        let mut slots = self.slots.enter_by_bias()?;
        slots.value().message(request).map(|(_, id)| id)
    }

    /// Returns what is waited for with a request.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where there is none.
    #[inline]
    pub(crate) fn awaited(&self, request: Request) -> Result<Awaited> {
        self.slots()?.awaited(request)
    }

    /// Calls `each` with what is waited for with each of some requests, in their order.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` at the first that is none.
    #[inline]
    pub(crate) fn awaited_all(
        &self,
        mut requests: impl Iterator<Item = Request>,
        mut each: impl FnMut(Request, Awaited),
    ) -> Result {
        let mut slots = self.slots()?;
        requests.try_for_each(|request| {
            each(request, slots.awaited(request)?);
            Ok(())
        })
    }

    /// Returns the messages that are waited for with some requests, with the places of these; requests that wait for nothing are
    /// passed over. `None` where anything else is waited for.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where one is none.
    pub(crate) fn messages(
        &self,
        requests: impl ExactSizeIterator<Item = Request>,
    ) -> Result<Option<Messages>> {
        let mut slots = self.slots()?;
        let mut messages = Messages::with_capacity(requests.len());
        for (place, request) in requests.enumerate() {
            if matches!(request, Request::NULL | DONE) {
                continue;
            }
            match &slots.get(request)?.pending {
                Pending::Send(id) | Pending::Recv(id, _) => messages.push(place, *id),
                Pending::Operation(_) => return Ok(None),
                _ => {}
            }
        }
        Ok(Some(messages))
    }

    /// Returns whether what is waited for has ended, without progress.
    pub(crate) fn is_complete(&self, awaited: &Awaited) -> bool {
        match awaited {
            Awaited::Inactive | Awaited::Ended => true,
            // One that is not known any more has ended.
            Awaited::Message(id) => self.messenger.is_complete(*id).unwrap_or(true),
            Awaited::Operation(operation) => operation.is_complete(),
        }
    }

    /// Takes the end of a request; `None` while its operation is under way.
    ///
    /// # Errors
    /// Those of the layer below.
    pub(crate) fn take(&self, request: Request, awaited: &Awaited) -> Result<Option<Settled>> {
        match awaited {
            Awaited::Inactive | Awaited::Ended => self.settle(request, None).map(Some),
            Awaited::Message(id) => match self.messenger.take(*id)? {
                Some(ended) => self.settle(request, Some(&ended)).map(Some),
                None => Ok(None),
            },
            Awaited::Operation(operation) => match operation.take() {
                Some(end) => self.settle_with(request, end).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Ends a request whose message has ended, or which has ended by itself.
    #[inline]
    pub(crate) fn settle(
        &self,
        request: Request,
        ended: Option<&tagwire_pml::Status>,
    ) -> Result<Settled> {
        Ok(self.slots()?.settle(request, ended))
    }

    /// Ends a request whose operation ended so.
    pub(crate) fn settle_with(&self, request: Request, end: End) -> Result<Settled> {
        let retired = self.slots()?.retire(request);
        let (request, _, comm) = retired.unwrap_or((Request::NULL, Pending::Inactive, Comm::SELF));
        Ok(Settled { request, end, comm })
    }

    /// Ends requests whose messages have ended as `ends` says, and those that waited for nothing, and calls `each` with each, in
    /// their order. Where nobody `asks` for statuses it calls `quiet` for those that ended well.
    #[inline(always)]
    pub(crate) fn settle_all(
        &self,
        requests: impl Iterator<Item = Request>,
        messages: &Messages,
        ends: &[tagwire_pml::Status],
        asks: bool,
        mut quiet: impl FnMut(usize, Request),
        mut each: impl FnMut(usize, Settled),
    ) -> Result {
        let mut slots = self.slots()?;
        let mut awaited = messages.places.iter().zip(ends).peekable();
        for (place, request) in requests.enumerate() {
            let ended = awaited.next_if(|(awaited, _)| **awaited == place);
            let ended = ended.map(|(_, ended)| ended);
            if asks || ended.is_some_and(|ended| ended.failure.is_some()) {
                each(place, slots.settle(request, ended));
            } else if matches!(request, DONE | Request::NULL) {
                quiet(place, Request::NULL);
            } else if let Some((request, pending, comm)) = slots.retire(request) {
                match pending {
                    // A call has reported its end before, and left its error.
                    Pending::Ended(end) => each(
                        place,
                        Settled {
                            request,
                            end: *end,
                            comm,
                        },
                    ),
                    _ => {
                        pending.discard();
                        quiet(place, request);
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts a round of a persistent request.
    pub(crate) fn start(&self, request: Request) -> Result {
        let mut slots = self.slots()?;
        let slot = slots.get(request)?;
        let comm = slot.comm;
        let persistent = match (&slot.persistent, &slot.pending) {
            (Some(persistent), Pending::Inactive) => Arc::clone(persistent),
            _ => {
                let text = "the request is not persistent, or it is active";
                return Err(Error::new(Class::Request, text).on(On::Comm(comm)));
            }
        };
        drop(slots);
        // Nothing is locked: it may call what calls back.
        let pending = (persistent.again)().map_err(|error| error.on(On::Comm(comm)))?;
        self.slots()?.get(request)?.pending = pending;
        Ok(())
    }

    /// Frees a request. What it has under way goes on.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where there is none, or where the operation has to end before.
    pub(crate) fn free(&self, request: Request) -> Result {
        if request == DONE {
            return Ok(());
        }
        if let Awaited::Operation(operation) = self.awaited(request)? {
            let comm = self.slots()?.get(request)?.comm;
            let freed = operation.check_free().and_then(|()| operation.free());
            match freed.map_err(|error| error.on(On::Comm(comm)))? {
                Freed::Kept => return Ok(()),
                Freed::Gone => {
                    let retired = self.slots()?.retire(request);
                    drop(retired);
                    return Ok(());
                }
                Freed::GoesOn => {}
            }
        }
        let mut slots = self.slots()?;
        let awaited = slots.awaited(request)?;
        let persistent = slots.get(request)?.persistent.take();
        let retired = slots.retire(request);
        drop(slots);
        // What these held is dropped with nothing locked.
        drop((persistent, retired));
        if matches!(awaited, Awaited::Message(_) | Awaited::Operation(_)) {
            self.orphan(awaited);
        }
        self.abandon(ORPHANS_AT_ONCE);
        Ok(())
    }

    /// Takes the ends of operations whose requests were freed, as far as they have ended: of the next `count` in turn.
    pub(crate) fn abandon(&self, count: usize) {
        let mut orphans = self.orphans.lock();
        let count = count.min(orphans.len());
        let next: Vec<_> = orphans.drain(..count).collect();
        drop(orphans);
        let is_under_way = |awaited: &Awaited| match awaited {
            Awaited::Inactive | Awaited::Ended => false,
            Awaited::Message(id) => matches!(self.messenger.take(*id), Ok(None)),
            Awaited::Operation(operation) => operation.take().is_none(),
        };
        let rest: Vec<_> = next.into_iter().filter(is_under_way).collect();
        self.orphans.lock().extend(rest);
    }

    /// Cancels a receive, or an operation that can be cancelled. Of a send nothing is done.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where there is no such request; those of the operation.
    pub(crate) fn cancel(&self, request: Request) -> Result {
        if request == DONE {
            return Ok(());
        }
        let mut slots = self.slots()?;
        let operation = match &slots.get(request)?.pending {
            Pending::Recv(id, _) => {
                let id = *id;
                drop(slots);
                self.messenger.cancel(id)?;
                return Ok(());
            }
            Pending::Operation(operation) => Arc::clone(operation),
            _ => return Ok(()),
        };
        drop(slots);
        operation.cancel()
    }

    /// Returns how an operation ended whose end stays to be taken; `None` while it is under way.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where there is no such request; those of the layer below.
    pub(crate) fn peek(&self, request: Request) -> Result<Option<Status>> {
        match self.awaited(request)? {
            Awaited::Inactive => Ok(Some(Status::EMPTY)),
            Awaited::Operation(operation) => match operation.look() {
                Look::UnderWay => Ok(None),
                Look::Ended(status) => status.map(Some),
                Look::Taking => self.peek_operation(request),
            },
            Awaited::Ended | Awaited::Message(_) => self.peek_message(request),
        }
    }

    /// Looks at an operation whose end has to be taken: one caller at a time takes it, and leaves it for the next.
    fn peek_operation(&self, request: Request) -> Result<Option<Status>> {
        let _peeking = self.peeking.lock();
        let Awaited::Operation(operation) = self.awaited(request)? else {
            return self.peek_message(request);
        };
        let Some(end) = operation.take() else {
            return Ok(None);
        };
        let status = end.status;
        self.slots()?.get(request)?.pending = Pending::Ended(Box::new(end));
        Ok(Some(status))
    }

    fn peek_message(&self, request: Request) -> Result<Option<Status>> {
        if request == DONE {
            return Ok(Some(Status::EMPTY));
        }
        // One caller at a time takes the end and leaves it for the next.
        let mut slots = self.slots()?;
        let slot = slots.get(request)?;
        let end = match &slot.pending {
            Pending::Send(id) | Pending::Recv(id, _) => match self.messenger.take(*id)? {
                Some(ended) => slot.end(&ended),
                None => return Ok(None),
            },
            Pending::NoProcess => return Ok(Some(Status::NO_PROC)),
            Pending::Ended(end) => return Ok(Some(end.status)),
            _ => return Ok(Some(Status::EMPTY)),
        };
        let status = end.status;
        slot.pending = Pending::Ended(Box::new(end));
        Ok(Some(status))
    }

    /// Returns whether a communicator has requests.
    pub(crate) fn are_of(&self, comm: Comm) -> bool {
        self.slots().is_ok_and(|slots| slots.are_of(comm))
    }

    /// Returns the communicator of a request.
    pub(crate) fn comm(&self, request: Request) -> Comm {
        let comm = self
            .slots()
            .and_then(|mut slots| Ok(slots.get(request)?.comm));
        comm.unwrap_or(Comm::SELF)
    }

    /// Returns an operation that is not one message.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where the request stands for none.
    pub(crate) fn operation(&self, request: Request) -> Result<Arc<dyn PendingOperation>> {
        match self.awaited(request)? {
            Awaited::Operation(operation) => Ok(operation),
            _ => {
                let text = "the request is not generalized";
                let error = Error::new(Class::Request, text);
                Err(error.on(On::Comm(self.comm(request))))
            }
        }
    }
}

#[cfg(test)]
mod tests;
