//! The slots of requests, which their handles name.
//!
//! ```text
//!     30      29 .. 22      21 .. 0
//!      1     generation       slot
//! ```

use std::mem;
use std::sync::Arc;

use tagwire_pml::{RequestId, Waits};

use crate::abi::{Comm, Request, Status};
use crate::error::{Class, Error, Result};
use crate::object::partitioned::Part;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::raw::StatusRef;

const SLOT_BITS: u32 = 22;
const SLOTS: usize = (1 << SLOT_BITS) - 1;
const GENERATIONS: usize = 1 << 8;
const REQUEST: usize = 1 << 30;
/// The name of a slot that is not used. As a handle it names a slot that there never is.
const VACANT: usize = usize::MAX;

/// Every send that was complete at once.
pub(crate) const DONE: Request = Request(REQUEST | SLOTS);

/// Starts a round of a persistent request.
pub(crate) type Again = Box<dyn Fn() -> Result<Pending> + Send + Sync>;

/// What a persistent request keeps from round to round.
pub(super) struct Persistent {
    pub(super) again: Again,
    pub(super) part: Option<Part>,
}

/// What calls that wait need of a request.
#[derive(Debug, Clone)]
pub(crate) enum Awaited {
    /// Null or inactive: calls that wait for any of several do not count it.
    Inactive,
    Ended,
    Message(RequestId),
    Operation(Arc<dyn PendingOperation>),
}

impl Awaited {
    pub(crate) const fn is_active(&self) -> bool {
        !matches!(self, Self::Inactive)
    }

    /// Returns whether its status has an error that says that it ended well.
    pub(crate) fn shows_success(&self) -> bool {
        matches!(self, Self::Operation(operation) if operation.shows_success())
    }
}

/// A request whose end was taken.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Its handle from now on: null, but for a persistent one.
    pub(crate) request: Request,
    pub(crate) end: End,
    /// Errors are raised there.
    pub(crate) comm: Comm,
}

impl Settled {
    /// Returns its error, to be raised on its communicator.
    pub(crate) fn outcome(self) -> Result {
        self.end.outcome(self.comm)
    }
}

/// The requests by slot.
#[derive(Default)]
pub(super) struct Slots {
    all: Vec<Slot>,
    free: Vec<usize>,
}

/// A request, or the place of one.
pub(super) struct Slot {
    /// The number of its request's handle, or [`VACANT`].
    name: usize,
    generation: usize,
    pub(super) pending: Pending,
    pub(super) comm: Comm,
    pub(super) persistent: Option<Arc<Persistent>>,
}

impl Slot {
    /// Sets the status of a message that ended well. `None` where it failed, which is kept.
    #[inline(always)]
    fn note(&mut self, ended: &tagwire_pml::Status, status: StatusRef) -> Option<()> {
        if ended.failure.is_some() {
            self.fail(ended);
            return None;
        }
        if !status.is_ignored() {
            status.set(self.end(ended).status);
        }
        Some(())
    }

    /// Leaves its place to another, if its request is not persistent. Returns whether it did.
    #[inline(always)]
    fn vacate(&mut self) -> bool {
        let leaves = self.persistent.is_none();
        if leaves {
            self.name = VACANT;
            self.generation = (self.generation + 1) % GENERATIONS;
        }
        leaves
    }

    #[cold]
    fn fail(&mut self, ended: &tagwire_pml::Status) {
        self.pending = Pending::Ended(Box::new(self.end(ended)));
    }

    /// Returns the end of a message.
    #[inline]
    pub(super) fn end(&self, ended: &tagwire_pml::Status) -> End {
        match &self.pending {
            Pending::Recv(_, members) => End::of_recv(ended, members.as_deref()),
            _ => End::of_send(ended),
        }
    }
}

impl Slots {
    #[inline(always)]
    fn find(&mut self, request: Request) -> Option<&mut Slot> {
        let slot = self.all.get_mut(request.0 & SLOTS)?;
        (slot.name == request.0).then_some(slot)
    }

    #[inline(always)]
    pub(super) fn get(&mut self, request: Request) -> Result<&mut Slot> {
        self.find(request).ok_or_else(|| invalid(request))
    }

    /// Returns a slot that was used before.
    #[inline(always)]
    pub(super) fn reuse(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Returns whether a communicator has requests.
    pub(super) fn are_of(&self, comm: Comm) -> bool {
        let is_of = |slot: &Slot| slot.name != VACANT && slot.comm == comm;
        self.all.iter().any(is_of)
    }

    pub(super) fn insert(
        &mut self,
        pending: Pending,
        comm: Comm,
        persistent: Option<Arc<Persistent>>,
    ) -> Result<Request> {
        let place = self.vacant()?;
        Ok(self.occupy(place, pending, comm, persistent))
    }

    pub(super) fn vacant(&mut self) -> Result<usize> {
        if let Some(place) = self.reuse() {
            return Ok(place);
        }
        if self.all.len() == SLOTS {
            return Err(Error::new(Class::Other, "too many requests"));
        }
        self.all.push(Slot {
            name: VACANT,
            generation: 0,
            pending: Pending::Inactive,
            comm: Comm::NULL,
            persistent: None,
        });
        Ok(self.all.len() - 1)
    }

    #[inline(always)]
    pub(super) fn occupy(
        &mut self,
        place: usize,
        pending: Pending,
        comm: Comm,
        persistent: Option<Arc<Persistent>>,
    ) -> Request {
        let slot = &mut self.all[place];
        slot.name = REQUEST | slot.generation << SLOT_BITS | place;
        slot.comm = comm;
        // One that is free has neither: there is nothing to drop.
        mem::forget(mem::replace(&mut slot.pending, pending));
        mem::forget(mem::replace(&mut slot.persistent, persistent));
        Request(slot.name)
    }

    /// Returns the slot of a request that waits for a message, and which.
    #[inline(always)]
    pub(super) fn message(&mut self, request: Request) -> Option<(&mut Slot, RequestId)> {
        let slot = self.find(request)?;
        let id = match &slot.pending {
            Pending::Send(id) | Pending::Recv(id, _) => *id,
            _ => return None,
        };
        Some((slot, id))
    }

    /// Takes the end of a request that is one of `awaited` messages, if that has come, and sets its status. Returns the handle from
    /// now on.
    #[inline(always)]
    pub(super) fn try_take(
        &mut self,
        waits: &mut Waits<'_>,
        request: Request,
        awaited: usize,
        status: StatusRef,
    ) -> Option<Request> {
        let (slot, id) = self.message(request)?;
        waits.take(id, awaited, |ended| slot.note(ended, status))??;
        slot.pending.reset();
        if !slot.vacate() {
            return Some(request);
        }
        self.free.push(request.0 & SLOTS);
        Some(Request::NULL)
    }

    pub(super) fn awaited(&mut self, request: Request) -> Result<Awaited> {
        if request == Request::NULL {
            return Ok(Awaited::Inactive);
        }
        if request == DONE {
            return Ok(Awaited::Ended);
        }
        Ok(match &self.get(request)?.pending {
            Pending::Inactive => Awaited::Inactive,
            Pending::Sent | Pending::NoProcess | Pending::Ended(_) => Awaited::Ended,
            Pending::Send(id) | Pending::Recv(id, _) => Awaited::Message(*id),
            Pending::Operation(operation) => Awaited::Operation(Arc::clone(operation)),
        })
    }

    /// Takes what a request had under way: it is inactive where it is persistent, else there is none any more.
    #[inline(always)]
    pub(super) fn retire(&mut self, request: Request) -> Option<(Request, Pending, Comm)> {
        let slot = self.find(request)?;
        let (pending, comm) = (
            mem::replace(&mut slot.pending, Pending::Inactive),
            slot.comm,
        );
        Some((self.retire_slot(request), pending, comm))
    }

    /// Frees the slot of a request that has nothing under way, if it is not persistent. Returns its handle from now on.
    #[inline(always)]
    fn retire_slot(&mut self, request: Request) -> Request {
        let place = request.0 & SLOTS;
        if !self.all[place].vacate() {
            return request;
        }
        self.free.push(place);
        Request::NULL
    }

    /// Ends a request whose message has ended, or which has ended by itself.
    #[inline]
    pub(super) fn settle(
        &mut self,
        request: Request,
        ended: Option<&tagwire_pml::Status>,
    ) -> Settled {
        let retired = match request {
            DONE | Request::NULL => None,
            _ => self.retire(request),
        };
        let Some((request, pending, comm)) = retired else {
            return Settled {
                request: Request::NULL,
                end: End::EMPTY,
                comm: Comm::SELF,
            };
        };
        let end = match (pending, ended) {
            (Pending::Send(_), Some(ended)) => End::of_send(ended),
            (Pending::Recv(_, members), Some(ended)) => End::of_recv(ended, members.as_deref()),
            (Pending::NoProcess, _) => End::good(Status::NO_PROC),
            (Pending::Ended(end), _) => *end,
            _ => End::EMPTY,
        };
        Settled { request, end, comm }
    }
}

#[cold]
fn invalid(request: Request) -> Error {
    let text = match request {
        Request::NULL => "the request is MPI_REQUEST_NULL".to_owned(),
        Request(number) => format!("{number:#x} is no request"),
    };
    Error::new(Class::Request, text)
}
