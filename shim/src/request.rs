//! Requests by handle.
//!
//! ```text
//!     30      29 .. 22      21 .. 0
//!      1     generation       slot
//! ```
//!
//! A send that was complete when its call returned has no entry: its handle is [`DONE`], which is not `MPI_REQUEST_NULL`, so that
//! calls which wait for any of several count it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_coll as coll;
use tagwire_coll::Members;
use tagwire_pml::{Messenger, RequestId};

use crate::abi::{Comm, Request, Status};
use crate::comm::status;
use crate::error::{Class, Error, On, Result, class_of};
use crate::ongoing::{Freed, Ongoing};
use crate::partitioned::Part;

const SLOT_BITS: u32 = 22;
const SLOTS: usize = (1 << SLOT_BITS) - 1;
const GENERATIONS: usize = 1 << 8;
const REQUEST: usize = 1 << 30;

/// Every send that was complete at once.
pub(crate) const DONE: Request = Request(REQUEST | SLOTS);

/// What is done when an operation has ended well.
pub(crate) type Then = Arc<dyn Fn() + Send + Sync>;

/// How an operation ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: Status,
    pub(crate) error: Option<Error>,
}

impl End {
    pub(crate) const fn good(status: Status) -> Self {
        Self {
            status,
            error: None,
        }
    }
}

/// An operation under way. Small: waits copy them out of the table.
#[derive(Clone)]
pub(crate) enum Pending {
    /// There is none: a persistent request that is inactive.
    Inactive,
    /// A send that has ended well.
    Sent,
    /// A receive from no process.
    NoProcess,
    /// It has ended, as a call has reported that left its end to be taken.
    Reported(Arc<Mutex<Option<End>>>),
    Send(RequestId),
    /// With the members, where they have other numbers than in the job.
    Recv(RequestId, Option<Arc<Members>>),
    Collective(coll::Request, Option<Then>),
    Round(Arc<Mutex<coll::Persistent>>, Option<Then>),
    Partitioned(Part),
    Ongoing(Arc<dyn Ongoing>),
}

const _: () = assert!(size_of::<Pending>() <= 40);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inactive => "inactive",
            Self::Sent | Self::NoProcess | Self::Reported(_) => "ended",
            Self::Send(_) => "send",
            Self::Recv(..) => "receive",
            Self::Collective(..) => "collective",
            Self::Round(..) => "persistent collective",
            Self::Partitioned(_) => "partitioned",
            Self::Ongoing(_) => "another operation",
        })
    }
}

/// Starts a round of a persistent request.
pub(crate) type Again = Arc<dyn Fn() -> Result<Pending> + Send + Sync>;

struct Entry {
    pending: Pending,
    /// Errors are raised there.
    comm: Comm,
    again: Option<Again>,
    part: Option<Part>,
}

/// The requests of a process.
pub(crate) struct Requests {
    messenger: Arc<Messenger>,
    slots: Mutex<Slots>,
    /// Operations under way whose requests were freed.
    orphans: Mutex<Vec<Pending>>,
}

#[derive(Default)]
struct Slots {
    all: Vec<(usize, Option<Entry>)>,
    free: Vec<usize>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

impl Slots {
    fn entry(&mut self, request: Request) -> Result<&mut Entry> {
        let place = request.0 & SLOTS;
        let is_one = request.0 >> 30 == 1;
        let generation = request.0 >> SLOT_BITS & (GENERATIONS - 1);
        let slot = self.all.get_mut(place).filter(|slot| slot.0 == generation);
        let entry = slot.filter(|_| is_one).and_then(|slot| slot.1.as_mut());
        entry.ok_or_else(|| invalid(request))
    }

    fn retire(&mut self, request: Request) -> Request {
        if matches!(request, DONE | Request::NULL) {
            return Request::NULL;
        }
        match self.entry(request) {
            Ok(entry) if entry.again.is_some() => {
                entry.pending = Pending::Inactive;
                request
            }
            Ok(_) => {
                self.remove(request);
                Request::NULL
            }
            Err(_) => Request::NULL,
        }
    }

    fn remove(&mut self, request: Request) {
        let place = request.0 & SLOTS;
        let slot = &mut self.all[place];
        slot.0 = (slot.0 + 1) % GENERATIONS;
        slot.1 = None;
        self.free.push(place);
    }
}

impl Requests {
    pub(crate) fn new(messenger: &Arc<Messenger>) -> Self {
        Self {
            messenger: Arc::clone(messenger),
            slots: Mutex::default(),
            orphans: Mutex::default(),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an operation under way in.
    pub(crate) fn enter(&self, pending: Pending, comm: Comm) -> Result<Request> {
        self.insert(Entry {
            pending,
            comm,
            again: None,
            part: None,
        })
    }

    /// Takes a persistent request in, inactive.
    pub(crate) fn enter_persistent(&self, again: Again, comm: Comm) -> Result<Request> {
        self.insert(Entry {
            pending: Pending::Inactive,
            comm,
            again: Some(again),
            part: None,
        })
    }

    /// Takes a partitioned request in, inactive.
    pub(crate) fn enter_partitioned(&self, part: Part, comm: Comm) -> Result<Request> {
        let starts = part.clone();
        let again: Again = Arc::new(move || {
            starts.start()?;
            Ok(Pending::Partitioned(starts.clone()))
        });
        self.insert(Entry {
            pending: Pending::Inactive,
            comm,
            again: Some(again),
            part: Some(part),
        })
    }

    /// Returns the end of a partitioned operation.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where the request is none.
    pub(crate) fn part(&self, request: Request) -> Result<Part> {
        let mut slots = self.slots();
        let entry = slots.entry(request)?;
        entry.part.clone().ok_or_else(|| {
            let text = "the request is not partitioned";
            Error::new(Class::Request, text).on(On::Comm(entry.comm))
        })
    }

    /// Returns an operation that is neither a message nor a collective.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where the request stands for none.
    pub(crate) fn ongoing(&self, request: Request) -> Result<Arc<dyn Ongoing>> {
        match self.pending(request)? {
            (Pending::Ongoing(ongoing), _) => Ok(ongoing),
            (_, comm) => {
                let text = "the request is not generalized";
                Err(Error::new(Class::Request, text).on(On::Comm(comm)))
            }
        }
    }

    fn insert(&self, entry: Entry) -> Result<Request> {
        let mut slots = self.slots();
        let place = match slots.free.pop() {
            Some(place) => place,
            None if slots.all.len() < SLOTS => {
                slots.all.push((0, None));
                slots.all.len() - 1
            }
            None => return Err(Error::new(Class::Other, "too many requests")),
        };
        let slot = &mut slots.all[place];
        slot.1 = Some(entry);
        Ok(Request(REQUEST | slot.0 << SLOT_BITS | place))
    }

    /// Returns what a request has under way, and where its errors are raised.
    pub(crate) fn pending(&self, request: Request) -> Result<(Pending, Comm)> {
        let mut slots = self.slots();
        let entry = slots.entry(request)?;
        Ok((entry.pending.clone(), entry.comm))
    }

    /// Calls `each` with what each of some requests has under way, and where its errors are raised, all at once.
    pub(crate) fn pending_of_all(
        &self,
        requests: impl Iterator<Item = Request>,
        mut each: impl FnMut(Request, Pending, Comm),
    ) -> Result {
        let mut slots = self.slots();
        for request in requests {
            let (pending, comm) = match request {
                Request::NULL => (Pending::Inactive, Comm::SELF),
                DONE => (Pending::Sent, Comm::SELF),
                _ => {
                    let entry = slots.entry(request)?;
                    (entry.pending.clone(), entry.comm)
                }
            };
            each(request, pending, comm);
        }
        Ok(())
    }

    /// Says that the operation of a request has ended, which was taken: it is inactive where it is persistent, else there is none.
    /// Returns what its handle is from now on.
    pub(crate) fn retire(&self, request: Request) -> Request {
        self.slots().retire(request)
    }

    /// The same for all of some requests, of which `replace` is told.
    pub(crate) fn retire_all(
        &self,
        requests: impl Iterator<Item = (usize, Request)>,
        mut replace: impl FnMut(usize, Request),
    ) {
        let mut slots = self.slots();
        requests.for_each(|(place, request)| replace(place, slots.retire(request)));
    }

    /// Starts a round of a persistent request.
    pub(crate) fn start(&self, request: Request) -> Result {
        let mut slots = self.slots();
        let entry = slots.entry(request)?;
        let comm = entry.comm;
        let again = match (&entry.again, &entry.pending) {
            (Some(again), Pending::Inactive) => Arc::clone(again),
            _ => {
                let text = "the request is not persistent, or it is active";
                return Err(Error::new(Class::Request, text).on(On::Comm(comm)));
            }
        };
        drop(slots);
        // Nothing is locked: it may call what calls back.
        let pending = again().map_err(|error| error.on(On::Comm(comm)))?;
        self.slots().entry(request)?.pending = pending;
        Ok(())
    }

    /// Frees a request. What it has under way goes on.
    pub(crate) fn free(&self, request: Request) -> Result {
        if request == DONE {
            return Ok(());
        }
        let mut slots = self.slots();
        let pending = slots.entry(request)?.pending.clone();
        if let Pending::Ongoing(ongoing) = &pending {
            let ongoing = Arc::clone(ongoing);
            drop(slots);
            let freed = ongoing.free();
            if matches!(freed, Ok(Freed::Kept)) {
                return Ok(());
            }
            slots = self.slots();
            if !matches!(freed, Ok(Freed::GoesOn)) {
                slots.entry(request)?;
                slots.remove(request);
                return freed.map(drop);
            }
        }
        slots.remove(request);
        drop(slots);
        let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        orphans.push(pending);
        orphans.retain(|pending| !self.is_complete(pending) || self.take(pending).is_none());
        Ok(())
    }

    /// Takes the ends of operations whose requests were freed, as far as they have ended.
    pub(crate) fn abandon(&self) {
        let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        orphans.retain(|pending| !self.is_complete(pending) || self.take(pending).is_none());
    }

    /// Returns how an operation ended whose end stays to be taken; `None` while it is under way.
    pub(crate) fn peek(&self, request: Request, pending: &Pending) -> Option<Status> {
        if !self.is_complete(pending) {
            return None;
        }
        let end = self.take(pending)?;
        // From now on the request has ended so.
        if request != DONE
            && !matches!(pending, Pending::Inactive)
            && let Ok(entry) = self.slots().entry(request)
        {
            let status = end.status;
            entry.pending = Pending::Reported(Arc::new(Mutex::new(Some(end))));
            return Some(status);
        }
        Some(end.status)
    }

    /// Returns whether an operation has ended, without progress.
    pub(crate) fn is_complete(&self, pending: &Pending) -> bool {
        match pending {
            Pending::Inactive | Pending::Sent | Pending::NoProcess | Pending::Reported(_) => true,
            // One that is not known any more has ended.
            Pending::Send(id) | Pending::Recv(id, _) => {
                self.messenger.is_complete(*id).unwrap_or(true)
            }
            Pending::Collective(request, _) => request.is_complete(),
            Pending::Round(persistent, _) => {
                let held = persistent.lock().unwrap_or_else(PoisonError::into_inner);
                held.round().is_none_or(coll::Request::is_complete)
            }
            Pending::Partitioned(part) => part.is_complete(),
            Pending::Ongoing(ongoing) => ongoing.is_complete(self),
        }
    }

    /// Takes how an operation ended; `None` while it is under way.
    pub(crate) fn take(&self, pending: &Pending) -> Option<End> {
        match pending {
            Pending::Inactive | Pending::Sent => Some(End::good(Status::EMPTY)),
            Pending::NoProcess => Some(End::good(Status::NO_PROC)),
            Pending::Reported(end) => {
                let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
                Some(end.take().unwrap_or(End::good(Status::EMPTY)))
            }
            Pending::Send(id) => self.message(*id, None, true),
            Pending::Recv(id, members) => self.message(*id, members.as_deref(), false),
            Pending::Collective(request, then) => {
                request.take().map(|end| collective(end, then.as_ref()))
            }
            Pending::Round(persistent, then) => {
                let mut held = persistent.lock().unwrap_or_else(PoisonError::into_inner);
                let end = held.take();
                drop(held);
                end.map(|end| collective(end, then.as_ref()))
            }
            Pending::Partitioned(part) => part.take().map(|end| End {
                status: Status::EMPTY,
                error: end.err(),
            }),
            Pending::Ongoing(ongoing) => ongoing.take(self),
        }
    }

    fn message(&self, id: RequestId, members: Option<&Members>, is_send: bool) -> Option<End> {
        match self.messenger.take(id) {
            Ok(None) => None,
            Ok(Some(ended)) => Some(end_of(&ended, members, is_send)),
            Err(error) => Some(End {
                status: Status::EMPTY,
                error: Some(error.into()),
            }),
        }
    }
}

/// Returns how a message ended.
pub(crate) fn end_of(ended: &tagwire_pml::Status, members: Option<&Members>, is_send: bool) -> End {
    let error = ended
        .failure
        .map(|failure| Error::new(class_of(failure), failure.to_string()));
    let status = match is_send {
        true => Status::EMPTY.with_cancelled(ended.cancelled),
        false => status(ended, members),
    };
    End { status, error }
}

fn collective(end: coll::Result<()>, then: Option<&Then>) -> End {
    let status = Status::EMPTY;
    match end {
        Ok(()) => {
            if let Some(then) = then {
                then();
            }
            End::good(status)
        }
        Err(error) => End {
            status,
            error: Some(error.into()),
        },
    }
}

#[cold]
fn invalid(request: Request) -> Error {
    Error::new(Class::Request, format!("{:#x} is no request", request.0))
}
