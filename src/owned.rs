//! Operations that own their buffer: no scope, no borrow, and nothing to go wrong when dropped.
#![allow(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use tagwire_base::unwind::NoUnwind;
use tagwire_pml::{CancelOutcome, RequestId, SendMode};

use crate::error::{Error, OwnedError, Result};
use crate::plain::{Plain, Status, lend, lend_mut};
use crate::selector::{Source, TagChoice, tag_of};
use crate::shared::{Group, Numbers, Shared};
use crate::tasks::{Awaited, Place};

/// How an operation ended that owned its buffer.
type Ended<T> = Result<(Status, Vec<T>), OwnedError<T>>;

/// The error of a call that was refused, while the operation goes on.
fn refused<T: Plain>(error: Error) -> OwnedError<T> {
    OwnedError { error, data: None }
}

/// What sends and receives that own their buffer have in common.
#[derive(Debug)]
struct Owned<'s, T: Plain> {
    shared: &'s Shared,
    numbers: Numbers,
    request: RequestId,
    /// There until the end has been taken.
    buffer: Option<Vec<T>>,
    place: Place<'s>,
}

// Nothing in it is pinned: the elements are on the heap.
impl<T: Plain> Unpin for Owned<'_, T> {}

impl<'s, T: Plain> Owned<'s, T> {
    fn new(shared: &'s Shared, numbers: Numbers, request: RequestId, data: Vec<T>) -> Self {
        Self {
            shared,
            numbers,
            request,
            buffer: Some(data),
            place: Place::new(shared),
        }
    }

    /// The end of the operation, and the buffer. The outer error is that of the call: the operation goes on.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<Ended<T>> {
        let status = self.shared.messenger.wait(self.request, timeout)?;
        Ok(self.ended(status))
    }

    /// The same, if it has ended after progress was made once.
    fn test(&mut self) -> Result<Option<Ended<T>>> {
        let status = self.shared.messenger.test(self.request)?;
        Ok(status.map(|status| self.ended(status)))
    }

    /// The same for a task, which is woken when it has. Makes no progress.
    fn poll(&mut self, task: &task::Context<'_>) -> Poll<Result<Ended<T>>> {
        let (messenger, request) = (&self.shared.messenger, self.request);
        let take = || messenger.take(request).transpose();
        let polled = self.place.poll(&Awaited::Message(request), task, take);
        polled.map(|status| {
            // A send that has ended may wait to leave with others.
            messenger.flush()?;
            Ok(self.ended(status?))
        })
    }

    fn ended(&mut self, status: tagwire_pml::Status) -> Ended<T> {
        let status = self.numbers.of(status);
        let data = self.buffer.take().unwrap_or_default();
        match Status::checked(status, size_of_val(&data[..])) {
            Ok(status) => Ok((status, data)),
            Err(error) => Err(OwnedError {
                error,
                data: Some(data),
            }),
        }
    }
}

impl<T: Plain> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let _ = self.shared.messenger.cancel(self.request);
            let orphans = &self.shared.orphans;
            orphans.adopt(self.request, false, Box::new(buffer));
            orphans.reap(&self.shared.messenger);
        }
    }
}

/// A send that owns its buffer. Dropped early, it goes on, and its buffer is freed at its end.
///
/// It is a future too: of the buffer, as [`wait`](Self::wait) returns it. See [`Session::drive`](crate::Session::drive).
#[derive(Debug)]
pub struct OwnedSend<'s, T: Plain>(Owned<'s, T>);

impl<'s, T: Plain> OwnedSend<'s, T> {
    pub(crate) fn start(
        shared: &'s Shared,
        group: Group,
        data: Vec<T>,
        to: u32,
        tag: i32,
    ) -> Result<Self> {
        let tag = tag_of(tag)?;
        let (to, context) = shared.peer(group, to)?;
        // SAFETY: the vector's memory stays where it is when the vector moves into `Owned`, which
        // hands it out only once the send is complete, and to the orphans when dropped. A panic
        // before it is there ends the process.
        let buffer = unsafe { lend(&data) };
        let mode = SendMode::Standard;
        let lent = NoUnwind::of("a send");
        let request = shared.messenger.isend(buffer, to, tag, context.peer, mode);
        lent.over();
        Ok(Self(Owned::new(shared, Numbers::OF_JOB, request?, data)))
    }

    /// Waits until the send is complete; gives the buffer back.
    ///
    /// # Errors
    /// How the send failed, if it did, with the buffer.
    pub fn wait(mut self) -> Result<Vec<T>, OwnedError<T>> {
        let (_, data) = self.0.wait(None).map_err(refused)??;
        Ok(data)
    }

    /// Waits up to `timeout`. Returns the buffer, or how the send failed.
    ///
    /// # Errors
    /// The send itself when the time passed: it goes on.
    pub fn wait_for(mut self, timeout: Duration) -> Result<Result<Vec<T>, OwnedError<T>>, Self> {
        match self.0.wait(Some(timeout)) {
            Err(error) if error.is_timeout() => Err(self),
            Err(error) => Ok(Err(refused(error))),
            Ok(ended) => Ok(ended.map(|(_, data)| data)),
        }
    }

    /// Makes progress once. Returns the buffer where the send is complete, or how it failed.
    ///
    /// # Errors
    /// The send itself while it goes on.
    pub fn test(mut self) -> Result<Result<Vec<T>, OwnedError<T>>, Self> {
        match self.0.test() {
            Ok(None) => Err(self),
            Err(error) => Ok(Err(refused(error))),
            Ok(Some(ended)) => Ok(ended.map(|(_, data)| data)),
        }
    }
}

/// A receive that owns its buffer. Dropped early, it is taken back, or goes on when a message
/// has matched; its buffer is freed at its end.
///
/// It is a future too: of what [`wait`](Self::wait) returns. See [`Session::drive`](crate::Session::drive).
#[derive(Debug)]
pub struct OwnedRecv<'s, T: Plain>(Owned<'s, T>);

impl<'s, T: Plain> OwnedRecv<'s, T> {
    pub(crate) fn start(
        shared: &'s Shared,
        group: Group,
        mut data: Vec<T>,
        from: Source,
        tag: TagChoice,
    ) -> Result<Self> {
        let (from, tag, context) = shared.source(group, from, tag)?;
        let numbers = shared.numbers(group);
        // SAFETY: as in `OwnedSend::start`.
        let buffer = unsafe { lend_mut(&mut data) };
        let lent = NoUnwind::of("a receive");
        let request = shared.messenger.irecv(buffer, from, tag, context);
        lent.over();
        Ok(Self(Owned::new(shared, numbers, request?, data)))
    }

    /// Waits until the receive is complete; gives the buffer back, at its full length, with the
    /// status.
    ///
    /// # Errors
    /// How the receive failed, if it did, with the buffer:
    ///
    /// ```
    /// # let session = tagwire::Session::open()?;
    /// let (world, me) = (session.world(), session.rank());
    /// let receive = world.irecv_owned(vec![0u8; 4], me, 7)?;
    /// world.send(b"longer", me, 7)?;
    /// let (error, data) = receive.wait().unwrap_err().into_parts();
    /// assert_eq!(data.as_deref(), Some(&b"long"[..]));
    /// assert_eq!(error.status().map(|status| status.bytes()), Some(6));
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    pub fn wait(mut self) -> Result<(Status, Vec<T>), OwnedError<T>> {
        self.0.wait(None).map_err(refused)?
    }

    /// Waits up to `timeout`.
    ///
    /// # Errors
    /// The receive itself when the time passed: it goes on.
    pub fn wait_for(mut self, timeout: Duration) -> Result<Ended<T>, Self> {
        match self.0.wait(Some(timeout)) {
            Err(error) if error.is_timeout() => Err(self),
            Err(error) => Ok(Err(refused(error))),
            Ok(ended) => Ok(ended),
        }
    }

    /// Makes progress once. Returns the status and the buffer where the receive is complete, or how it failed.
    ///
    /// ```
    /// # let session = tagwire::Session::open()?;
    /// let (world, me) = (session.world(), session.rank());
    /// let mut receive = world.irecv_owned(vec![0u8; 4], me, 7)?;
    /// let send = world.isend_owned(b"work".to_vec(), me, 7)?;
    /// let data = loop {
    ///     match receive.test() {
    ///         Ok(ended) => break ended?.1,
    ///         Err(open) => receive = open, // time for something else
    ///     }
    /// };
    /// assert_eq!(data, b"work");
    /// send.wait()?;
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// The receive itself while it goes on.
    pub fn test(mut self) -> Result<Ended<T>, Self> {
        match self.0.test() {
            Ok(None) => Err(self),
            Err(error) => Ok(Err(refused(error))),
            Ok(Some(ended)) => Ok(ended),
        }
    }

    /// Takes the receive back unless a message has matched. It completes either way: wait for it
    /// (MPI-5.0, section 3.8.4).
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn cancel(&self) -> Result<CancelOutcome> {
        Ok(self.0.shared.messenger.cancel(self.0.request)?)
    }
}

impl<T: Plain> Future for OwnedSend<'_, T> {
    type Output = Result<Vec<T>, OwnedError<T>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let polled = self.0.poll(task);
        polled.map(|ended| Ok(ended.map_err(refused)??.1))
    }
}

impl<T: Plain> Future for OwnedRecv<'_, T> {
    type Output = Ended<T>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let polled = self.0.poll(task);
        polled.map(|ended| ended.map_err(refused)?)
    }
}
