//! Contexts: where messages are sent and received.
#![allow(unsafe_code)]

use std::time::Duration;

use tagwire_base::unwind::NoUnwind;
use tagwire_pml::{MessageId, SendMode};

use crate::error::{Error, Result};
use crate::owned::{OwnedRecv, OwnedSend};
use crate::persistent::{PersistentRecv, PersistentSend};
use crate::plain::{Plain, Status, lend, lend_mut, zeroed};
use crate::scope::{Request, Scope};
use crate::selector::{Source, TagChoice, tag_of};
use crate::session::Session;
use crate::shared::{Group, Numbers, Shared};

/// A group of ranks with a matching space of its own: messages sent in one context are received in the same, and ranks are
/// numbered in the group (a communicator in MPI). Failures name ranks of the job.
///
/// Lengths are in elements of the slice's type. Messages between two ranks in one context are
/// received in the order in which they were sent (MPI-5.0, section 3.5).
///
/// ```
/// use tagwire::{ANY_SOURCE, ANY_TAG, Session};
///
/// let session = Session::open()?;
/// let world = session.world();
/// let request = world.isend_owned(vec![1.5f64, 2.5], session.rank(), 3)?;
/// let mut numbers = [0f64; 4];
/// let status = world.recv(&mut numbers, ANY_SOURCE, ANY_TAG)?;
/// assert_eq!((status.count::<f64>()?, status.tag()), (2, 3));
/// assert_eq!(numbers, [1.5, 2.5, 0.0, 0.0]);
/// request.wait()?;
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Context<'s> {
    session: &'s Session,
    group: Group,
}

/// A message that a matched probe has taken out of matching: only
/// [`Context::recv_claimed`] can receive it.
#[derive(Debug)]
#[must_use = "a claimed message is received by nobody else"]
pub struct Claimed {
    id: MessageId,
    status: Status,
}

impl Claimed {
    /// The message's envelope and length.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }
}

impl<'s> Context<'s> {
    pub(crate) const fn new(session: &'s Session, group: Group) -> Self {
        Self { session, group }
    }

    pub(crate) const fn shared(&self) -> &'s Shared {
        &self.session.shared
    }

    pub(crate) const fn group(&self) -> Group {
        self.group
    }

    /// The session that the context belongs to.
    #[must_use]
    pub const fn session(&self) -> &'s Session {
        self.session
    }

    /// Returns this rank's number in the context, which other threads may free meanwhile. In the world's it is
    /// [`Session::rank`](crate::Session::rank), which cannot fail.
    ///
    /// # Errors
    /// When the context was freed.
    pub fn rank(&self) -> Result<u32> {
        let shared = self.shared();
        shared.with(self.group(), |team| Ok(team.me() as u32))
    }

    /// Returns how many ranks the context has.
    ///
    /// # Errors
    /// When the context was freed.
    pub fn size(&self) -> Result<u32> {
        let shared = self.shared();
        shared.with(self.group(), |team| Ok(team.size() as u32))
    }

    /// Sends `data` to rank `to`; returns once the buffer is free, which says nothing of whether
    /// it was received.
    ///
    /// # Errors
    /// When the rank does not exist or is gone, or the tag is negative.
    pub fn send<T: Plain>(&self, data: &[T], to: u32, tag: i32) -> Result<()> {
        self.send_with(SendMode::Standard, data, to, tag)
    }

    /// As [`send`](Context::send), in another mode: synchronous returns once a receive has matched,
    /// buffered at once, ready when the caller knows that the receive is posted.
    ///
    /// # Errors
    /// As [`send`](Context::send); a buffered send also when the setting `buffer-limit` is reached.
    pub fn send_with<T: Plain>(&self, mode: SendMode, data: &[T], to: u32, tag: i32) -> Result<()> {
        let tag = tag_of(tag)?;
        let (to, context) = self.shared().peer(self.group, to)?;
        // SAFETY: `data` is borrowed until this call returns, and it returns when the send is
        // complete: a wait without a timeout ends in no other way but a refused first call, and a
        // panic ends the process.
        let buffer = unsafe { lend(data) };
        let messenger = &self.shared().messenger;
        let lent = NoUnwind::of("a send");
        let sent = messenger.send(buffer, to, tag, context.peer, mode);
        lent.over();
        Ok(sent?)
    }

    /// Sends `data`, waiting up to `timeout`.
    ///
    /// # Errors
    /// The request when the time passed: the send goes on, and `data` stays lent to the scope,
    /// which waits for it at its end. Inside, as [`send`](Context::send).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let session = tagwire::Session::open()?;
    /// let (numbers, mut copy) = (vec![1u64; 100_000], vec![0u64; 100_000]);
    /// session.try_scope(|scope| {
    ///     let (world, soon) = (session.world(), Duration::from_millis(1));
    ///     match world.send_for(scope, &numbers, session.rank(), 7, soon) {
    ///         Ok(done) => drop(done?),
    ///         Err(late) => {
    ///             world.recv(&mut copy, session.rank(), 7)?; // now it can end
    ///             late.wait()?;
    ///         }
    ///     }
    ///     Ok(())
    /// })?;
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    pub fn send_for<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        to: u32,
        tag: i32,
        timeout: Duration,
    ) -> Result<Result<Status>, Request<'scope, 'env>> {
        match self.isend(scope, data, to, tag) {
            Ok(request) => request.wait_for(timeout),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Receives a message into `data`, and says whose it was.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the message was longer: what fits is in `data`, and the error has the
    /// status. When the source is gone; when it does not exist.
    pub fn recv<T: Plain>(
        &self,
        data: &mut [T],
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<Status> {
        let (from, tag, context) = self.shared().source(self.group, from.into(), tag.into())?;
        // SAFETY: as in `send_with`.
        let buffer = unsafe { lend_mut(data) };
        let lent = NoUnwind::of("a receive");
        let received = self.shared().messenger.recv(buffer, from, tag, context);
        lent.over();
        self.ended(received?, size_of_val(data))
    }

    /// Receives a message into `data`, waiting up to `timeout`.
    ///
    /// # Errors
    /// The request when the time passed: the receive stays posted, and `data` stays lent to the
    /// scope. Wait again, or [`cancel`](Request::cancel) it. Inside, as [`recv`](Context::recv).
    pub fn recv_for<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
        timeout: Duration,
    ) -> Result<Result<Status>, Request<'scope, 'env>> {
        match self.irecv(scope, data, from, tag) {
            Ok(request) => request.wait_for(timeout),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Refuses the scope of another session: its end would not wait for what is started here.
    pub(crate) fn check_scope(&self, scope: &Scope<'_, '_>) -> Result<()> {
        if std::ptr::eq(self.shared(), scope.shared) {
            Ok(())
        } else {
            Err(Error::OtherSession)
        }
    }

    /// Starts to send `data`, which stays lent for the scope.
    ///
    /// # Errors
    /// As [`send`](Context::send).
    pub fn isend<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        to: u32,
        tag: i32,
    ) -> Result<Request<'scope, 'env>> {
        self.isend_with(SendMode::Standard, scope, data, to, tag)
    }

    /// Starts to send `data` in `mode`.
    ///
    /// # Errors
    /// As [`send_with`](Context::send_with). [`Error::OtherSession`] when the scope is not of this
    /// context's session.
    pub fn isend_with<'scope, 'env, T: Plain>(
        &self,
        mode: SendMode,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env [T],
        to: u32,
        tag: i32,
    ) -> Result<Request<'scope, 'env>> {
        self.check_scope(scope)?;
        let tag = tag_of(tag)?;
        let (to, context) = self.shared().peer(self.group, to)?;
        let buffer = scope.lend(data);
        let messenger = &self.shared().messenger;
        // The scope waits for what it tracks: a send that a panic leaves behind is not.
        let lent = NoUnwind::of("a send");
        let request = messenger.isend(buffer, to, tag, context.peer, mode);
        let request = request.map(|request| scope.track(request, 0, Numbers::OF_JOB));
        lent.over();
        Ok(request?)
    }

    /// Starts to receive into `data`, which stays lent for the scope.
    ///
    /// # Errors
    /// When the source does not exist or the tag is negative. [`Error::OtherSession`] when the scope
    /// is not of this context's session.
    pub fn irecv<'scope, 'env, T: Plain>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        data: &'env mut [T],
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<Request<'scope, 'env>> {
        self.check_scope(scope)?;
        let (from, tag, context) = self.shared().source(self.group, from.into(), tag.into())?;
        let room = size_of_val(data);
        let buffer = scope.lend_mut(data);
        let messenger = &self.shared().messenger;
        let lent = NoUnwind::of("a receive");
        let request = messenger.irecv(buffer, from, tag, context);
        let request =
            request.map(|request| scope.track(request, room, self.shared().numbers(self.group)));
        lent.over();
        Ok(request?)
    }

    /// Starts to send `data`, which the operation owns and gives back at its end.
    ///
    /// # Errors
    /// As [`send`](Context::send).
    pub fn isend_owned<T: Plain>(
        &self,
        data: Vec<T>,
        to: u32,
        tag: i32,
    ) -> Result<OwnedSend<'s, T>> {
        OwnedSend::start(self.shared(), self.group, data, to, tag)
    }

    /// Starts to receive into `data`, which the operation owns and gives back at its end.
    ///
    /// # Errors
    /// As [`irecv`](Context::irecv).
    pub fn irecv_owned<T: Plain>(
        &self,
        data: Vec<T>,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<OwnedRecv<'s, T>> {
        OwnedRecv::start(self.shared(), self.group, data, from.into(), tag.into())
    }

    /// Whether a message is there that such a receive would take; it stays (MPI-5.0, section 3.8.1).
    ///
    /// # Errors
    /// When the source does not exist.
    pub fn probe(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<Option<Status>> {
        let (from, tag, context) = self.shared().source(self.group, from.into(), tag.into())?;
        let found = self.shared().messenger.probe(from, tag, context)?;
        Ok(found.map(|status| self.found(status)))
    }

    /// Waits for a message that such a receive would take; it stays.
    ///
    /// # Errors
    /// When the time passes, or the source is gone.
    pub fn wait_probe(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
        timeout: Option<Duration>,
    ) -> Result<Status> {
        let (from, tag, context) = self.shared().source(self.group, from.into(), tag.into())?;
        let messenger = &self.shared().messenger;
        Ok(self.found(messenger.wait_probe(from, tag, context, timeout)?))
    }

    /// Takes the first such message out of matching (`MPI_Improbe`): safe when several threads
    /// probe (MPI-5.0, section 3.8.2).
    ///
    /// # Errors
    /// When the source does not exist.
    pub fn claim(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<Option<Claimed>> {
        let (from, tag, context) = self.shared().source(self.group, from.into(), tag.into())?;
        let found = self.shared().messenger.claim(from, tag, context)?;
        Ok(found.map(|(id, status)| Claimed {
            id,
            status: self.found(status),
        }))
    }

    /// Waits for such a message and takes it out of matching.
    ///
    /// # Errors
    /// When the time passes, or the source is gone or does not exist.
    pub fn wait_claim(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
        timeout: Option<Duration>,
    ) -> Result<Claimed> {
        let (from, tag, context) = self.shared().source(self.group, from.into(), tag.into())?;
        let messenger = &self.shared().messenger;
        let (id, status) = messenger.wait_claim(from, tag, context, timeout)?;
        let status = self.found(status);
        Ok(Claimed { id, status })
    }

    /// Receives a claimed message into `data`.
    ///
    /// # Errors
    /// As [`recv`](Context::recv).
    pub fn recv_claimed<T: Plain>(&self, data: &mut [T], message: Claimed) -> Result<Status> {
        // SAFETY: as in `send_with`.
        let buffer = unsafe { lend_mut(data) };
        let messenger = &self.shared().messenger;
        let lent = NoUnwind::of("a receive");
        let received = messenger
            .irecv_claimed(buffer, message.id)
            .and_then(|request| messenger.wait(request, None));
        lent.over();
        self.ended(received?, size_of_val(data))
    }

    /// Sends to one rank while it receives from another, or from the same: two ranks that do so do not wait for each other
    /// (MPI-5.0, section 3.10). What is sent comes first, with its rank and its tag; then what is received.
    ///
    /// ```
    /// let session = tagwire::Session::open()?;
    /// let (rank, size) = (session.rank(), session.size());
    /// let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    /// let mut from_left = [0];
    /// session.world().sendrecv((&[rank], right, 3), (&mut from_left, left, 3))?;
    /// assert_eq!(from_left, [left]);
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`send`](Self::send) and [`recv`](Self::recv).
    pub fn sendrecv<T: Plain, U: Plain>(
        &self,
        (data, to, tag): (&[T], u32, i32),
        (into, from, recv_tag): (&mut [U], impl Into<Source>, impl Into<TagChoice>),
    ) -> Result<Status> {
        let (from, recv_tag) = (from.into(), recv_tag.into());
        self.session().try_scope(|scope| {
            let received = self.irecv(scope, into, from, recv_tag)?;
            self.isend_with(SendMode::Standard, scope, data, to, tag)?;
            received.wait()
        })
    }

    /// Receives a message of any length into a vector of its own (MPI-5.0, section 3.8.2).
    ///
    /// # Errors
    /// [`Error::Fraction`](crate::Error::Fraction) when the message is no whole number of elements: it is lost. When the source is gone or does
    /// not exist.
    pub fn recv_vec<T: Plain>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<(Vec<T>, Status)> {
        let message = self.wait_claim(from, tag, None)?;
        let count = message.status().count::<T>();
        let mut data: Vec<T> = Vec::new();
        data.resize_with(*count.as_ref().unwrap_or(&0), zeroed);
        match (count, self.recv_claimed(&mut data, message)) {
            (Err(fraction), _) => Err(fraction),
            (Ok(_), received) => Ok((data, received?)),
        }
    }

    /// A send that can be started again and again, of the same buffer to the same rank (MPI-5.0,
    /// section 3.9). It owns the buffer, lends it while a round is under way, and is inactive
    /// until [started](PersistentSend::start).
    ///
    /// # Errors
    /// As [`isend`](Context::isend).
    pub fn send_init<T: Plain>(
        &self,
        data: Vec<T>,
        to: u32,
        tag: i32,
    ) -> Result<PersistentSend<'s, T>> {
        self.send_init_with(SendMode::Standard, data, to, tag)
    }

    /// As [`send_init`](Context::send_init), in another mode.
    ///
    /// # Errors
    /// As [`isend`](Context::isend).
    pub fn send_init_with<T: Plain>(
        &self,
        mode: SendMode,
        data: Vec<T>,
        to: u32,
        tag: i32,
    ) -> Result<PersistentSend<'s, T>> {
        PersistentSend::make(self.shared(), self.group, data, to, tag, mode)
    }

    /// A receive that can be started again and again, into the same buffer, which it owns.
    /// Inactive until [started](PersistentRecv::start).
    ///
    /// # Errors
    /// As [`irecv`](Context::irecv).
    pub fn recv_init<T: Plain>(
        &self,
        data: Vec<T>,
        from: impl Into<Source>,
        tag: impl Into<TagChoice>,
    ) -> Result<PersistentRecv<'s, T>> {
        PersistentRecv::make(self.shared(), self.group, data, from.into(), tag.into())
    }

    /// Returns the status of a message that was found.
    fn found(&self, status: tagwire_pml::Status) -> Status {
        Status(self.shared().numbered(self.group, status))
    }

    fn ended(&self, status: tagwire_pml::Status, room: usize) -> Result<Status> {
        Status::checked(self.shared().numbered(self.group, status), room)
    }
}
