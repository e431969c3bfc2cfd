//! Scopes: buffers on the stack, lent to operations that end before the buffers do.
//!
//! The idea is that of [`std::thread::scope`]: a request may be forgotten, but its scope is not
//! left before it is complete, so that a posted buffer cannot be freed or touched.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tagwire_pml::{CancelOutcome, RequestId};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::Result;
use crate::plain::{Plain, Status};
use crate::session::Session;

/// Where buffers are lent to sends and receives. Made by [`Session::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) session: &'env Session,
    open: Mutex<Open>,
    // Invariant in both, as std's scope is: neither may be shortened or stretched.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The operations of a scope whose end nobody has taken. Each keeps its place, so that a scope may
/// have very many.
#[derive(Debug, Default)]
struct Open {
    /// `COMPLETE` where there is none.
    places: Vec<RequestId>,
    free: Vec<usize>,
}

impl Open {
    fn enter(&mut self, id: RequestId) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = id;
                place
            }
            None => {
                self.places.push(id);
                self.places.len() - 1
            }
        }
    }

    fn leave(&mut self, place: usize) {
        self.places[place] = RequestId::COMPLETE;
        self.free.push(place);
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn run<R>(
        session: &'env Session,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> R,
    ) -> R {
        let scope = Scope {
            session,
            open: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        scope.drain(result.is_err());
        match result {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Waits for everything that is open. The buffers are about to go: where that cannot be
    /// waited for, because the scope was moved to a thread that may not call, the process ends.
    fn drain(&self, cancel: bool) {
        let open = std::mem::take(&mut *self.lock()).places;
        for request in open.into_iter().filter(|id| *id != RequestId::COMPLETE) {
            let messenger = &self.session.messenger;
            if cancel {
                let _ = messenger.cancel(request);
            }
            match messenger.wait(request, None) {
                Ok(_) | Err(tagwire_pml::Error::StaleRequest) => {}
                Err(error) => {
                    eprintln!("tagwire: a scope cannot wait for its operations: {error}");
                    std::process::abort();
                }
            }
        }
    }

    /// Lends a slice to a send for the scope.
    pub(crate) fn lend<T: Plain>(&'scope self, data: &'env [T]) -> SendBuffer {
        // SAFETY: the slice is borrowed for 'env, which outlives the scope, and the scope is not
        // left before the operation is complete.
        unsafe { crate::plain::lend(data) }
    }

    /// Lends a slice to a receive for the scope.
    pub(crate) fn lend_mut<T: Plain>(&'scope self, data: &'env mut [T]) -> RecvBuffer {
        // SAFETY: as above.
        unsafe { crate::plain::lend_mut(data) }
    }

    /// Takes an operation into the scope.
    pub(crate) fn track(&'scope self, id: RequestId) -> Request<'scope, 'env> {
        let place = if id == RequestId::COMPLETE {
            None
        } else {
            Some(self.lock().enter(id))
        };
        Request {
            scope: self,
            id,
            place,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all of `requests`; their statuses come in the same order.
    ///
    /// # Errors
    /// The first failure among them; all are complete then.
    pub fn wait_all(
        &'scope self,
        requests: impl IntoIterator<Item = Request<'scope, 'env>>,
    ) -> Result<Vec<Status>> {
        let (ids, places): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .map(|request| (request.id, request.place))
            .unzip();
        let statuses = self.session.messenger.wait_all(&ids, None)?;
        let mut open = self.lock();
        places
            .into_iter()
            .flatten()
            .for_each(|place| open.leave(place));
        drop(open);
        statuses.into_iter().map(Status::checked).collect()
    }

    /// Waits for any of `requests`, takes it out of the list, and answers its place and status.
    /// `None` for an empty list.
    ///
    /// # Errors
    /// The failure of the one that completed.
    pub fn wait_any(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
    ) -> Result<Option<(usize, Status)>> {
        let ids: Vec<_> = requests.iter().map(|request| request.id).collect();
        let Some((place, status)) = self.session.messenger.wait_any(&ids, None)? else {
            return Ok(None);
        };
        requests.remove(place).forget();
        Ok(Some((place, Status::checked(status)?)))
    }
}

/// An operation under way in a scope. May be dropped: the scope waits for it.
#[derive(Debug)]
pub struct Request<'scope, 'env: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    id: RequestId,
    /// Its place among the open ones, if it was not complete at once.
    place: Option<usize>,
}

impl Request<'_, '_> {
    /// Its end has been taken.
    fn forget(self) {
        if let Some(place) = self.place {
            self.scope.lock().leave(place);
        }
    }

    /// Waits until the operation is complete.
    ///
    /// # Errors
    /// How it failed, if it did.
    pub fn wait(self) -> Result<Status> {
        let status = self.scope.session.messenger.wait(self.id, None)?;
        self.forget();
        Status::checked(status)
    }

    /// Waits until the operation is complete, up to `timeout`.
    ///
    /// # Errors
    /// The request itself when the time passed: the operation goes on.
    pub fn wait_for(self, timeout: Duration) -> Result<Result<Status>, Self> {
        match self.scope.session.messenger.wait(self.id, Some(timeout)) {
            Err(tagwire_pml::Error::TimedOut(_)) => Err(self),
            Err(error) => Ok(Err(error.into())),
            Ok(status) => {
                self.forget();
                Ok(Status::checked(status))
            }
        }
    }

    /// Looks whether the operation is complete, after moving things on once.
    ///
    /// # Errors
    /// The request itself while the operation goes on.
    pub fn test(self) -> Result<Result<Status>, Self> {
        match self.scope.session.messenger.test(self.id) {
            Ok(None) => Err(self),
            Err(error) => Ok(Err(error.into())),
            Ok(Some(status)) => {
                self.forget();
                Ok(Status::checked(status))
            }
        }
    }

    /// Takes back a receive that nothing has matched. The operation completes either way: wait
    /// for it.
    ///
    /// # Errors
    /// When it is a send.
    pub fn cancel(&self) -> Result<CancelOutcome> {
        Ok(self.scope.session.messenger.cancel(self.id)?)
    }
}
