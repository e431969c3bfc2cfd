//! Nonblocking operations: the same steps as those of a blocking call, polled by the rank's progress.
//!
//! ```text
//!     Team::start -> Running   one allocation: the future, its state, its end
//!                       |  held by
//!          Request <----+----> Active, the rank's list, which its progress polls (active.rs)
//! ```
//!
//! The list holds an operation that did not end in the call until it has ended. A request may be dropped: the operation goes on.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, transmute};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tagwire_base::unwind::NoUnwind;
use tagwire_base::{ContextId, Tag};
use tagwire_pml::Messenger;

use crate::active::{Active, Order, Pending};
use crate::board::NextLine;
use crate::call::Call;
use crate::error::Result;
use crate::named::operation_name;
use crate::opening::Opening;
use crate::operations::CollectiveOperation;
use crate::team::Team;

/// Nobody polls the future.
const IDLE: u8 = 0;
/// A thread polls it.
const POLLING: u8 = 1;
/// A thread polls it, and another has asked for one more poll: something may have happened since.
const AGAIN: u8 = 2;
/// It has ended, and the future is no more.
const COMPLETE: u8 = 3;
/// How it ended was taken.
const TAKEN: u8 = 4;

/// An operation under way: a future that one thread at a time polls.
struct Running<O, F> {
    /// Says who may touch `end` and `body`: the thread that made it `POLLING`, or the one that made it `TAKEN`.
    state: AtomicU8,
    tag: Tag,
    /// Its round on the board of its group, if it was given one.
    round: Option<u64>,
    /// Outlives what `body` borrows of it.
    team: Arc<Team>,
    end: UnsafeCell<Option<Result<()>>>,
    /// Dropped at its end, never before: what it borrows is lent to messages.
    body: UnsafeCell<ManuallyDrop<F>>,
    /// The operation, for its name alone.
    operation: PhantomData<fn() -> O>,
}

// SAFETY: `state` lets one thread at a time reach `end` and `body`, which may be sent.
unsafe impl<O, F: Send> Send for Running<O, F> {}
// SAFETY: as above.
unsafe impl<O, F: Send> Sync for Running<O, F> {}

impl<O, F> fmt::Debug for Running<O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("tag", &self.tag)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Polls the future of an operation with `tag`, and perhaps a round on the board of its group, for the first time, and puts it
/// into the list if it has not ended then.
///
/// # Safety
/// What the future borrows, but for the team, is borrowed until the operation is complete.
unsafe fn launch<'a, O, F>(
    team: &Arc<Team>,
    tag: Tag,
    round: Option<u64>,
    body: F,
) -> Arc<dyn Pending>
where
    O: 'a,
    F: Future<Output = Result<()>> + Send + 'a,
{
    let running: Arc<dyn Pending + 'a> = Arc::new(Running::<O, F> {
        state: AtomicU8::new(IDLE),
        tag,
        round,
        team: Arc::clone(team),
        end: UnsafeCell::new(None),
        body: UnsafeCell::new(ManuallyDrop::new(body)),
        operation: PhantomData,
    });
    // SAFETY: the types differ in a lifetime alone. The future is used and dropped by `poll` alone, which does so until the
    // operation is complete; up to then the caller keeps what is borrowed.
    let running: Arc<dyn Pending> =
        unsafe { transmute::<Arc<dyn Pending + 'a>, Arc<dyn Pending>>(running) };
    // One that ends at once is in no list. Once it is in the list the threads that make progress see what comes for it; what came
    // before that is seen here.
    if !running.poll() {
        team.active().enter(Arc::clone(&running));
        team.active().poll(&running);
    }
    running
}

impl<O, F: Future<Output = Result<()>> + Send> Pending for Running<O, F> {
    fn poll(&self) -> bool {
        loop {
            match self.state.compare_exchange(IDLE, POLLING, Acquire, Relaxed) {
                Ok(_) => break,
                Err(POLLING) => {
                    let asked = self
                        .state
                        .compare_exchange(POLLING, AGAIN, Release, Relaxed);
                    if asked.is_ok() {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        let inside = NoUnwind::of("a collective");
        let mut context = Context::from_waker(Waker::noop());
        let has_ended = loop {
            // SAFETY: this thread has made the state `POLLING`, and no other makes it that before this one leaves it. The
            // future has not ended, so it was not dropped. It lies in an `Arc` of which nothing is moved out.
            let body = unsafe { Pin::new_unchecked(&mut **self.body.get()) };
            if let Poll::Ready(end) = body.poll(&mut context) {
                // SAFETY: as above. Nobody polls it again, since the state is never `IDLE` again.
                unsafe {
                    ManuallyDrop::drop(&mut *self.body.get());
                    *self.end.get() = Some(end);
                }
                self.state.store(COMPLETE, Release);
                break true;
            }
            let left = self.state.compare_exchange(POLLING, IDLE, Release, Relaxed);
            if left.is_ok() {
                break false;
            }
            self.state.swap(POLLING, Acquire);
        };
        inside.over();
        has_ended
    }

    fn is_complete(&self) -> bool {
        self.state.load(Acquire) >= COMPLETE
    }

    fn take(&self) -> Option<Result<()>> {
        match self
            .state
            .compare_exchange(COMPLETE, TAKEN, Acquire, Acquire)
        {
            // SAFETY: this thread has made the state `TAKEN`, which no other can; the one that ended it is done with it.
            Ok(_) => unsafe { (*self.end.get()).take() },
            Err(TAKEN) => Some(Err(tagwire_pml::Error::StaleRequest.into())),
            Err(_) => None,
        }
    }

    fn is_taken(&self) -> bool {
        self.state.load(Relaxed) == TAKEN
    }

    fn place(&self) -> (ContextId, Tag) {
        (self.team.context(), self.tag)
    }

    fn turn(&self) -> Option<u64> {
        self.round
    }

    fn order(&self) -> Order {
        self.round
            .map_or(Order::Any, |round| self.team.board.order(round))
    }

    fn name(&self) -> &'static str {
        operation_name::<O>()
    }

    fn messenger(&self) -> &Messenger {
        self.team.messenger()
    }

    fn active(&self) -> &Active {
        self.team.active()
    }
}

/// A nonblocking operation. Any call of its rank that makes progress moves it on, and so do waits for anything else.
///
/// Exactly one call takes how it ended; later ones return [`StaleRequest`](tagwire_pml::Error::StaleRequest). Dropped
/// before that, the operation goes on. A clone stands for the same operation.
#[derive(Debug, Clone)]
pub struct Request(Arc<dyn Pending>);

impl Request {
    /// Returns whether the operation has ended, without progress: what it was lent is free. Stays true.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Returns whether somebody has taken how it ended.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_taken()
    }

    /// Takes how the operation ended, without progress; `None` while it is under way.
    #[must_use = "the end is there once"]
    pub fn take(&self) -> Option<Result<()>> {
        self.0.take()
    }

    /// Makes progress once, and takes the end of the operation. Returns whether it has ended.
    ///
    /// # Errors
    /// How the operation failed. While it is under way ([`is_complete`](Self::is_complete)): when this thread may not call.
    pub fn test(&self) -> Result<bool> {
        if !self.is_complete() {
            self.0.messenger().progress()?;
        }
        self.take().map_or(Ok(false), |end| end.map(|()| true))
    }

    /// Waits until the operation has ended, up to `timeout`.
    ///
    /// # Errors
    /// How the operation failed. While it is under way: when the time passes
    /// ([`TimedOut`](tagwire_pml::Error::TimedOut)), or this thread may not call.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let messenger = self.0.messenger();
        // By itself at first: a round of the whole list costs more.
        let active = self.0.active();
        if !self.is_complete() && !messenger.poll_inside(|| active.poll(&self.0))? {
            messenger.progress_until(timeout, || Ok(self.is_complete().then_some(())))?;
        }
        self.take()
            .unwrap_or_else(|| Err(tagwire_pml::Error::StaleRequest.into()))
    }
}

impl Team {
    /// Starts an operation, and returns at once (MPI-5.0, section 6.12). Operations of a group, blocking or not, are in one
    /// order of calls on all members. Several may be under way, and end in any order.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tagwire_coll::Team;
    /// use tagwire_coll::operations::Barrier;
    ///
    /// # fn example(team: &Arc<Team>) -> tagwire_coll::Result<()> {
    /// // SAFETY: it borrows nothing.
    /// let request = unsafe { team.start(Barrier) }?;
    /// // ... computes, sends, receives ...
    /// request.wait(None)
    /// # }
    /// ```
    ///
    /// # Safety
    /// What the operation borrows stays borrowed as it is there until the operation has
    /// [ended](Request::is_complete), also when the request is dropped before.
    ///
    /// # Errors
    /// What is wrong with the arguments, and when an earlier operation of the group has failed: nothing is started then.
    pub unsafe fn start<'a>(
        self: &Arc<Self>,
        operation: impl CollectiveOperation + 'a,
    ) -> Result<Request> {
        operation.check(self)?;
        let (tag, opening) = self.open(&operation)?;
        let fits_line = operation.fits_line(self);
        // SAFETY: the caller's promise.
        Ok(unsafe { begin(self, tag, opening, fits_line, operation) })
    }
}

/// Starts an operation that borrows nothing which ever goes.
///
/// # Errors
/// As [`Team::start`].
pub(crate) fn start_owned(
    team: &Arc<Team>,
    operation: impl CollectiveOperation + 'static,
) -> Result<Request> {
    // SAFETY: what it borrows stays borrowed for good.
    unsafe { team.start(operation) }
}

/// Starts an operation that was checked, under `tag`, after what comes first. With `fits_line` it is a round on the board of such
/// operations, where the group has one. Each future has room for the steps that it takes alone: it is moved as a whole.
///
/// # Safety
/// As [`Team::start`].
pub(crate) unsafe fn begin<'a, O: CollectiveOperation + 'a>(
    team: &Arc<Team>,
    tag: Tag,
    opening: Option<Opening>,
    fits_line: bool,
    mut operation: O,
) -> Request {
    // SAFETY: the team is behind an `Arc` that the operation keeps for longer than the future, which is dropped at its end
    // or never.
    let lent: &'a Team = unsafe { &*Arc::as_ptr(team) };
    let call = Call::new(lent, tag);
    let next = match fits_line {
        true => NextLine::of(lent),
        false => NextLine::None,
    };
    // SAFETY: the caller's promise, in each.
    Request(unsafe {
        match (opening, next) {
            (None, NextLine::None) => {
                launch::<O, _>(team, tag, None, async move { operation.steps(call).await })
            }
            (None, NextLine::Ready(line)) => {
                let round = Some(line.round());
                launch::<O, _>(
                    team,
                    tag,
                    round,
                    async move { operation.line_steps(line).await },
                )
            }
            // Its steps before its turn need progress of their own.
            (opening, next) => launch::<O, _>(team, tag, None, async move {
                if let Some(opening) = opening {
                    opening.run(call).await?;
                }
                match next.line().await? {
                    Some(line) => operation.line_steps(line).await,
                    None => operation.steps(call).await,
                }
            }),
        }
    })
}

#[cfg(test)]
mod tests;
