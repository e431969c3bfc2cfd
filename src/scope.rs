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

use tagwire_base::unwind::{NoUnwind, end_process};
use tagwire_pml::{CancelOutcome, RequestId};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::coll;
use crate::error::{Error, Result};
use crate::plain::{Plain, Status};
use crate::shared::{Numbers, Shared};

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

/// An operation of a scope.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// What is in a free place.
    None,
    /// A send, or a receive with `room` bytes of room.
    Message {
        id: RequestId,
        room: usize,
        numbers: Numbers,
    },
    Collective(coll::Request),
}

impl Operation {
    /// Returns how it ended, if it has: its end is taken then.
    ///
    /// # Errors
    /// When called from a thread that may not.
    fn take(&self, shared: &Shared) -> tagwire_pml::Result<Option<Result<Status>>> {
        match self {
            Self::None => Ok(Some(Ok(Status::EMPTY))),
            Self::Message { id, .. } => {
                let status = shared.messenger.take(*id)?;
                Ok(status.map(|status| self.checked(status)))
            }
            Self::Collective(request) => Ok(request.take().map(ended)),
        }
    }

    /// Returns whether it has ended, without taking the end.
    fn is_complete(&self, shared: &Shared) -> tagwire_pml::Result<bool> {
        match self {
            Self::None => Ok(true),
            Self::Message { id, .. } => shared.messenger.is_complete(*id),
            Self::Collective(request) => Ok(request.is_complete()),
        }
    }

    /// Returns what the end of a message says.
    fn checked(&self, status: tagwire_pml::Status) -> Result<Status> {
        match self {
            Self::Message { room, numbers, .. } => Status::checked(numbers.of(status), *room),
            Self::None | Self::Collective(_) => Ok(Status::EMPTY),
        }
    }

    /// Waits for its end, up to `timeout`, and takes it.
    ///
    /// # Errors
    /// Where it is still under way: when the time passes, or this thread may not call.
    fn wait(&self, shared: &Shared, timeout: Option<Duration>) -> Result<Result<Status>> {
        match self {
            Self::None => Ok(Ok(Status::EMPTY)),
            Self::Message { id, .. } => {
                let status = shared.messenger.wait(*id, timeout)?;
                Ok(self.checked(status))
            }
            Self::Collective(request) => {
                let end = ended(request.wait(timeout));
                match request.is_complete() {
                    true => Ok(end),
                    false => end.map(Ok),
                }
            }
        }
    }

    /// Returns what it is, for a message about it.
    fn describe(&self, shared: &Shared) -> String {
        match self {
            Self::Message { id, .. } => {
                let what = shared.messenger.describe(*id).ok().flatten();
                what.unwrap_or_default()
            }
            Self::None | Self::Collective(_) => "a collective".to_owned(),
        }
    }
}

/// Returns the end of a collective as that of a message without an envelope.
fn ended(end: coll::Result<()>) -> Result<Status> {
    end.map(|()| Status::EMPTY).map_err(Into::into)
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
        self.places[place] = Operation::None;
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
        if body != Body::Returned {
            for one in &open {
                if let Operation::Message { id, .. } = one {
                    let _ = messenger.cancel(*id);
                }
            }
        }
        let mut outcome = Ok(());
        for one in &open {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            match one.wait(self.shared, left) {
                Ok(Err(Error::Pml(tagwire_pml::Error::StaleRequest)))
                | Err(Error::Pml(tagwire_pml::Error::StaleRequest)) => {}
                Ok(end) => {
                    if let (Ok(()), Err(error)) = (&outcome, end) {
                        outcome = Err(error);
                    }
                }
                Err(error) if error.is_timeout() => {
                    let what = one.describe(self.shared);
                    end_process(format_args!(
                        "a scope was left by a panic, and after {patience:?} (setting 'close-timeout') an operation on its buffers is still under way: {what}"
                    ));
                }
                Err(error) => end_process(format_args!(
                    "a scope cannot wait for its operations: {error}"
                )),
            }
        }
        lent.over();
        outcome
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
        numbers: Numbers,
    ) -> Request<'scope, 'env> {
        let operation = Operation::Message { id, room, numbers };
        self.enter(operation, id != RequestId::COMPLETE)
    }

    /// Takes an operation in, which is to be waited for if it `is_open`.
    pub(crate) fn enter(
        &'scope self,
        operation: Operation,
        is_open: bool,
    ) -> Request<'scope, 'env> {
        let place = is_open.then(|| self.lock().enter(operation.clone()));
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
        let messenger = &self.shared.messenger;
        // All are taken, also behind a failure.
        let ended: Vec<_> = if let Some(ids) = ids(requests) {
            let statuses = messenger.wait_all(&ids, timeout)?;
            let ends = requests.drain(..).zip(statuses);
            ends.map(|(request, status)| request.end(status)).collect()
        } else {
            let mut first = 0;
            messenger.progress_until(timeout, || {
                while let Some(request) = requests.get(first) {
                    if !request.operation.is_complete(self.shared)? {
                        return Ok(None);
                    }
                    first += 1;
                }
                Ok(Some(()))
            })?;
            requests.drain(..).map(Request::wait).collect()
        };
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
        match self.ended_within(requests, timeout, 1)?.pop() {
            Some((place, end)) => Ok(Some((place, end?))),
            None => Ok(None),
        }
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
        self.ended_within(requests, None, usize::MAX)
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
        self.ended_within(requests, Some(timeout), usize::MAX)
    }

    /// Waits until at least one of `requests` is complete, and takes up to `most` that are out of the list.
    fn ended_within(
        &'scope self,
        requests: &mut Vec<Request<'scope, 'env>>,
        timeout: Option<Duration>,
        most: usize,
    ) -> Result<Vec<(usize, Result<Status>)>> {
        let messenger = &self.shared.messenger;
        let ends: Vec<_> = if let Some(ids) = ids(requests) {
            let ended = match most {
                1 => messenger.wait_any(&ids, timeout)?.into_iter().collect(),
                _ => messenger.wait_some(&ids, timeout)?,
            };
            let end =
                |(place, status): (usize, _)| (place, requests[place].operation.checked(status));
            ended.into_iter().map(end).collect()
        } else {
            messenger.progress_until(timeout, || {
                let mut ends = Vec::new();
                for (place, request) in requests.iter().enumerate() {
                    if ends.len() == most {
                        break;
                    }
                    if let Some(end) = request.operation.take(self.shared)? {
                        ends.push((place, end));
                    }
                }
                Ok((!ends.is_empty()).then_some(ends))
            })?
        };
        // From the back, so that places before it stay true.
        ends.iter()
            .rev()
            .for_each(|(place, _)| requests.remove(*place).forget());
        Ok(ends)
    }
}

/// Returns the requests below, if all are messages.
fn ids(requests: &[Request<'_, '_>]) -> Option<Vec<RequestId>> {
    let ids = requests.iter().map(|request| match &request.operation {
        Operation::Message { id, .. } => Some(*id),
        Operation::None | Operation::Collective(_) => None,
    });
    ids.collect()
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
        let end = self.operation.checked(status);
        self.forget();
        end
    }

    /// Its end has been taken: the scope does not wait for it.
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
        let end = self.operation.wait(self.scope.shared, None)?;
        self.forget();
        end
    }

    /// Waits until the operation is complete, up to `timeout`.
    ///
    /// # Errors
    /// The request itself when the time passed: the operation goes on.
    pub fn wait_for(self, timeout: Duration) -> Result<Result<Status>, Self> {
        match self.operation.wait(self.scope.shared, Some(timeout)) {
            Err(error) if error.is_timeout() => Err(self),
            Err(error) => Ok(Err(error)),
            Ok(end) => {
                self.forget();
                Ok(end)
            }
        }
    }

    /// Looks whether the operation is complete, after moving things on once.
    ///
    /// # Errors
    /// The request itself while the operation goes on.
    pub fn test(self) -> Result<Result<Status>, Self> {
        let shared = self.scope.shared;
        let progressed = shared.messenger.progress().map(drop);
        match progressed.and_then(|()| self.operation.take(shared)) {
            Ok(None) => Err(self),
            Err(error) => Ok(Err(error.into())),
            Ok(Some(end)) => {
                self.forget();
                Ok(end)
            }
        }
    }

    /// Takes back a receive that nothing has matched. The operation completes either way: wait
    /// for it (MPI-5.0, section 3.8.4).
    ///
    /// # Errors
    /// When it is a send or a collective.
    pub fn cancel(&self) -> Result<CancelOutcome> {
        let messenger = &self.scope.shared.messenger;
        match &self.operation {
            Operation::None => Ok(CancelOutcome::AlreadyMatched),
            Operation::Message { id, .. } => Ok(messenger.cancel(*id)?),
            Operation::Collective(_) => {
                let why = "a collective cannot be cancelled".to_owned();
                Err(coll::Error::Argument(why).into())
            }
        }
    }
}
