//! Scopes: buffers on the stack, lent to operations that end before the buffers do.
//!
//! The idea is that of [`std::thread::scope`]: a request may be forgotten, but its scope is not
//! left before it is complete, so that a posted buffer cannot be freed or touched.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tagwire_pml::{CancelOutcome, Failure, RequestId};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::Result;
use crate::plain::{Plain, Status};
use crate::session::Session;
use crate::unwind::{NoUnwind, end_process};

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
    ///
    /// After a panic receives are taken back first. A send whose receive is never posted may then
    /// never end, and the rest of the program that might bring it about is not reached any more: the
    /// wait has the session's deadline for closing, and the process ends where that passes.
    fn drain(&self, panicked: bool) {
        let lent = NoUnwind::of("the end of a scope");
        let patience = self.session.close_timeout;
        let deadline = if panicked {
            Instant::now().checked_add(patience)
        } else {
            None
        };
        let messenger = &self.session.messenger;
        let open = std::mem::take(&mut *self.lock()).places;
        let open = || open.iter().filter(|id| **id != RequestId::COMPLETE);
        if panicked {
            open().for_each(|request| drop(messenger.cancel(*request)));
        }
        for request in open() {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            match messenger.wait(*request, left) {
                Ok(_) | Err(tagwire_pml::Error::StaleRequest) => {}
                Err(tagwire_pml::Error::TimedOut(_)) => {
                    let what = messenger.describe(*request).ok().flatten();
                    end_process(format_args!(
                        "a scope was left by a panic, and after {patience:?} (setting 'close-timeout') an operation on its buffers is still under way: {}",
                        what.unwrap_or_default()
                    ));
                }
                Err(error) => end_process(format_args!(
                    "a scope cannot wait for its operations: {error}"
                )),
            }
        }
        lent.over();
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
        self.all_within(&mut requests.into_iter().collect(), None)
    }

    /// Waits for all of `requests` up to `timeout`, and empties the list.
    ///
    /// # Errors
    /// The first failure among them; all are complete then. When the time passes (see
    /// [`Error::is_timeout`](crate::Error::is_timeout)) the list is as it was: every operation goes
    /// on, and its end is still to be taken.
    pub fn wait_all_for(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Duration,
    ) -> Result<Vec<Status>> {
        self.all_within(requests, Some(timeout))
    }

    fn all_within(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Status>> {
        let ids = ids(requests);
        let statuses = self.session.messenger.wait_all(&ids, timeout)?;
        requests.drain(..).for_each(Request::forget);
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
        self.any_within(requests, None)
    }

    /// As [`wait_any`](Scope::wait_any), up to `timeout`.
    ///
    /// # Errors
    /// The failure of the one that completed. When the time passes the list is as it was, and every
    /// operation goes on.
    pub fn wait_any_for(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Duration,
    ) -> Result<Option<(usize, Status)>> {
        self.any_within(requests, Some(timeout))
    }

    fn any_within(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Option<Duration>,
    ) -> Result<Option<(usize, Status)>> {
        let ids = ids(requests);
        let Some((place, status)) = self.session.messenger.wait_any(&ids, timeout)? else {
            return Ok(None);
        };
        requests.remove(place).forget();
        Ok(Some((place, Status::checked(status)?)))
    }

    /// Waits until at least one of `requests` is complete, takes all that are out of the list, and
    /// answers their places before the call, each with its status or how it failed. Empty for an
    /// empty list.
    ///
    /// ```
    /// let session = tagwire::Session::open()?;
    /// let (numbers, mut copy) = ([7u32; 3], [0u32; 3]);
    /// session.scope(|scope| {
    ///     let world = session.world();
    ///     let mut open = vec![
    ///         world.irecv(scope, &mut copy, session.rank(), 1)?,
    ///         world.isend(scope, &numbers, session.rank(), 1)?,
    ///     ];
    ///     while !open.is_empty() {
    ///         for (_place, end) in scope.wait_some(&mut open)? {
    ///             end?;
    ///         }
    ///     }
    ///     Ok::<(), tagwire::Error>(())
    /// })?;
    /// assert_eq!(copy, numbers);
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn wait_some(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
    ) -> Result<Vec<(usize, Result<Status, Failure>)>> {
        self.some_within(requests, None)
    }

    /// As [`wait_some`](Scope::wait_some), up to `timeout`.
    ///
    /// # Errors
    /// When the time passes: the list is as it was, and every operation goes on.
    pub fn wait_some_for(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Duration,
    ) -> Result<Vec<(usize, Result<Status, Failure>)>> {
        self.some_within(requests, Some(timeout))
    }

    fn some_within(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Option<Duration>,
    ) -> Result<Vec<(usize, Result<Status, Failure>)>> {
        let ids = ids(requests);
        let ended = self.session.messenger.wait_some(&ids, timeout)?;
        for (place, _) in ended.iter().rev() {
            requests.remove(*place).forget();
        }
        let ends = ended.into_iter();
        Ok(ends
            .map(|(place, status)| (place, status.ok().map(Status)))
            .collect())
    }
}

fn ids(requests: &[Request<'_, '_>]) -> Vec<RequestId> {
    requests.iter().map(|request| request.id).collect()
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
