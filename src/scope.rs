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

use tagwire_pml::{CancelOutcome, RequestId};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::Result;
use crate::plain::{Plain, Status};
use crate::shared::{Group, Shared};
use crate::unwind::{NoUnwind, end_process};

/// Where buffers are lent to sends and receives. Made by
/// [`Session::scope`](crate::Session::scope) and [`Session::try_scope`](crate::Session::try_scope).
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) shared: &'env Shared,
    open: Mutex<Open>,
    // Invariant in both, as std's scope is: neither may be shortened or stretched.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The operations of a scope whose end nobody has taken. Each keeps its place, so that a scope may
/// have very many.
#[derive(Debug, Default)]
struct Open {
    places: Vec<Operation>,
    free: Vec<usize>,
}

/// An operation, and how many bytes it has room for if it is a receive.
#[derive(Debug, Clone, Copy)]
struct Operation {
    id: RequestId,
    room: usize,
    group: Group,
}

impl Operation {
    /// What is in a free place.
    const NONE: Self = Self {
        id: RequestId::COMPLETE,
        room: 0,
        group: Group::WORLD,
    };
}

impl Open {
    fn enter(&mut self, operation: Operation) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = operation;
                place
            }
            None => {
                self.places.push(operation);
                self.places.len() - 1
            }
        }
    }

    fn leave(&mut self, place: usize) {
        self.places[place] = Operation::NONE;
        self.free.push(place);
    }
}

/// How the body of a scope ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Returned,
    /// It returned an error: what it did not get to may be what a posted receive waits for.
    Failed,
    Panicked,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// The result of `body`, and the first failure of an operation whose end it did not take. `is_failure` decides
    /// whether a result is one.
    pub(crate) fn run<R>(
        shared: &'env Shared,
        body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> R,
        is_failure: impl FnOnce(&R) -> bool,
    ) -> (R, Result<()>) {
        let scope = Scope {
            shared,
            open: Mutex::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let result = body(&scope);
            let failed = is_failure(&result);
            (result, failed)
        }));
        let ended = scope.drain(match &result {
            Ok((_, false)) => Body::Returned,
            Ok((_, true)) => Body::Failed,
            Err(_) => Body::Panicked,
        });
        match result {
            Ok((result, _)) => (result, ended),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Waits for everything that is open. The buffers are about to go: where that cannot be
    /// waited for, because the scope was moved to a thread that may not call, the process ends.
    ///
    /// Unless the body ended well receives are taken back first. After a panic a send whose receive is never posted may
    /// never end, and the rest of the program that might bring it about is not reached any more: the
    /// wait has the session's deadline for closing, and the process ends where that passes.
    ///
    /// Returns the first failure.
    fn drain(&self, body: Body) -> Result<()> {
        let lent = NoUnwind::of("the end of a scope");
        let patience = self.shared.close_timeout;
        let deadline = match body {
            Body::Panicked => Instant::now().checked_add(patience),
            Body::Returned | Body::Failed => None,
        };
        let messenger = &self.shared.messenger;
        let open = std::mem::take(&mut *self.lock()).places;
        let open = || open.iter().filter(|one| one.id != RequestId::COMPLETE);
        if body != Body::Returned {
            open().for_each(|one| drop(messenger.cancel(one.id)));
        }
        let mut ended = Ok(());
        for one in open() {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            match messenger.wait(one.id, left) {
                Ok(status) => {
                    let status = self.shared.numbered(one.group, status);
                    ended = ended.and_then(|()| Status::checked(status, one.room).map(drop));
                }
                Err(tagwire_pml::Error::StaleRequest) => {}
                Err(tagwire_pml::Error::TimedOut(_)) => {
                    let what = messenger.describe(one.id).ok().flatten();
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
        ended
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

    /// Takes an operation into the scope, which has `room` bytes of room if it is a receive.
    pub(crate) fn track(
        &'scope self,
        id: RequestId,
        room: usize,
        group: Group,
    ) -> Request<'scope, 'env> {
        let operation = Operation { id, room, group };
        let place = if id == RequestId::COMPLETE {
            None
        } else {
            Some(self.lock().enter(operation))
        };
        Request {
            scope: self,
            operation,
            place,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all of `requests`; their statuses come in the same order (MPI-5.0, section 3.7.5).
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
        let statuses = self.shared.messenger.wait_all(&ids, timeout)?;
        // All are taken, also behind a failure.
        let ended: Vec<_> = requests
            .drain(..)
            .zip(statuses)
            .map(|(request, status)| request.end(status))
            .collect();
        ended.into_iter().collect()
    }

    /// Waits for any of `requests`, takes it out of the list, and returns its place and status.
    /// `None` for an empty list (MPI-5.0, section 3.7.5).
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
        let Some((place, status)) = self.shared.messenger.wait_any(&ids, timeout)? else {
            return Ok(None);
        };
        Ok(Some((place, requests.remove(place).end(status)?)))
    }

    /// Waits until at least one of `requests` is complete, takes all that are out of the list, and
    /// returns their places before the call, each with its status or how it failed. Empty for an
    /// empty list (MPI-5.0, section 3.7.5).
    ///
    /// ```
    /// let session = tagwire::Session::open()?;
    /// let (numbers, mut copy) = ([7u32; 3], [0u32; 3]);
    /// session.try_scope(|scope| {
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
    ///     Ok(())
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
    ) -> Result<Vec<(usize, Result<Status>)>> {
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
    ) -> Result<Vec<(usize, Result<Status>)>> {
        self.some_within(requests, Some(timeout))
    }

    fn some_within(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Option<Duration>,
    ) -> Result<Vec<(usize, Result<Status>)>> {
        let ids = ids(requests);
        let ended = self.shared.messenger.wait_some(&ids, timeout)?;
        // From the back, so that places before it stay true.
        let mut ends: Vec<_> = ended
            .into_iter()
            .rev()
            .map(|(place, status)| (place, requests.remove(place).end(status)))
            .collect();
        ends.reverse();
        Ok(ends)
    }
}

fn ids(requests: &[Request<'_, '_>]) -> Vec<RequestId> {
    requests
        .iter()
        .map(|request| request.operation.id)
        .collect()
}

/// An operation under way in a scope. May be dropped: the scope waits for it.
#[derive(Debug)]
pub struct Request<'scope, 'env: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    operation: Operation,
    /// Its place among the open ones, if it was not complete at once.
    place: Option<usize>,
}

impl Request<'_, '_> {
    /// Its end has been taken: the status, or how it failed.
    fn end(self, status: tagwire_pml::Status) -> Result<Status> {
        if let Some(place) = self.place {
            self.scope.lock().leave(place);
        }
        let Operation { room, group, .. } = self.operation;
        Status::checked(self.scope.shared.numbered(group, status), room)
    }

    /// Waits until the operation is complete.
    ///
    /// # Errors
    /// How it failed, if it did.
    pub fn wait(self) -> Result<Status> {
        let messenger = &self.scope.shared.messenger;
        let status = messenger.wait(self.operation.id, None)?;
        self.end(status)
    }

    /// Waits until the operation is complete, up to `timeout`.
    ///
    /// # Errors
    /// The request itself when the time passed: the operation goes on.
    pub fn wait_for(self, timeout: Duration) -> Result<Result<Status>, Self> {
        let messenger = &self.scope.shared.messenger;
        match messenger.wait(self.operation.id, Some(timeout)) {
            Err(tagwire_pml::Error::TimedOut(_)) => Err(self),
            Err(error) => Ok(Err(error.into())),
            Ok(status) => Ok(self.end(status)),
        }
    }

    /// Looks whether the operation is complete, after moving things on once.
    ///
    /// # Errors
    /// The request itself while the operation goes on.
    pub fn test(self) -> Result<Result<Status>, Self> {
        match self.scope.shared.messenger.test(self.operation.id) {
            Ok(None) => Err(self),
            Err(error) => Ok(Err(error.into())),
            Ok(Some(status)) => Ok(self.end(status)),
        }
    }

    /// Takes back a receive that nothing has matched. The operation completes either way: wait
    /// for it (MPI-5.0, section 3.8.4).
    ///
    /// # Errors
    /// When it is a send.
    pub fn cancel(&self) -> Result<CancelOutcome> {
        Ok(self.scope.shared.messenger.cancel(self.operation.id)?)
    }
}
