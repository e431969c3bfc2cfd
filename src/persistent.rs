//! Operations that are made once and started again and again.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::task::Context as Task;
use std::time::Duration;

use tagwire_base::unwind::NoUnwind;
use tagwire_pml::{CancelOutcome, RequestId, SendMode};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::{Error, Result};
use crate::plain::{Plain, Status};
use crate::selector::{Source, TagChoice, tag_of};
use crate::shared::{Group, Numbers, Shared};
use crate::tasks::{Awaited, Place};

/// Elements on the heap, reached by one pointer only: the one that the request has too, so that
/// looking at them between two rounds leaves the request's pointer valid.
#[derive(Debug)]
pub(crate) struct Memory<T>(NonNull<[T]>);

// SAFETY: owns its elements as a box does, and `T` may be sent.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: a shared reference gives shared references to elements only.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T> Memory<T> {
    pub(crate) fn new(data: Vec<T>) -> Self {
        Self(NonNull::from(Box::leak(data.into_boxed_slice())))
    }

    /// # Safety
    /// No operation that writes to the elements is under way.
    pub(crate) const unsafe fn as_slice(&self) -> &[T] {
        // SAFETY: the box lives as long as this does, and nobody writes.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// No operation on the elements is under way.
    pub(crate) const unsafe fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: the box lives as long as this does, and nobody else reaches it.
        unsafe { self.0.as_mut() }
    }

    /// The pointer to the elements, for those that share them by parts.
    pub(crate) const fn pointer(&self) -> NonNull<[T]> {
        self.0
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        let data = self.0;
        std::mem::forget(self);
        // SAFETY: it comes from a box, whose owner this was.
        unsafe { Box::from_raw(data.as_ptr()) }.into_vec()
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: it comes from a box, whose owner this is.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// What persistent sends and receives have in common.
#[derive(Debug)]
struct Persistent<'s, T: Plain> {
    shared: &'s Shared,
    numbers: Numbers,
    request: RequestId,
    active: bool,
    /// There until taken out or dropped.
    memory: Option<Memory<T>>,
}

impl<'s, T: Plain> Persistent<'s, T> {
    /// Makes the request that `init` returns for the bytes of `data`.
    fn make(
        shared: &'s Shared,
        numbers: Numbers,
        (what, data): (&'static str, Vec<T>),
        init: impl FnOnce(*mut u8, usize) -> tagwire_pml::Result<RequestId>,
    ) -> Result<Self> {
        let memory = Memory::new(data);
        let lent = NoUnwind::of(what);
        let request = init(memory.0.as_ptr().cast(), size_of::<T>() * memory.0.len());
        lent.over();
        Ok(Self {
            shared,
            numbers,
            request: request?,
            active: false,
            memory: Some(memory),
        })
    }

    fn ended(&mut self, status: tagwire_pml::Status) -> Result<Status> {
        self.active = false;
        let elements = self.memory.as_ref().map_or(0, |memory| memory.0.len());
        Status::checked(self.numbers.of(status), elements * size_of::<T>())
    }
}

impl<T: Plain> Drop for Persistent<'_, T> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        let messenger = &self.shared.messenger;
        if self.active {
            let _ = messenger.cancel(self.request);
        }
        if self.active || messenger.free(self.request).is_err() {
            let orphans = &self.shared.orphans;
            orphans.adopt(self.request, true, Box::new(memory));
            orphans.reap(messenger);
        }
    }
}

/// A send of the same buffer to the same rank, again and again. Made by
/// [`Context::send_init`](crate::Context::send_init).
///
/// Between two rounds the buffer can be looked at and changed; while a round is under way it is
/// lent, and asking for it is an error. Dropped while a round is under way, the round goes on, and
/// the buffer is freed at its end.
///
/// ```
/// let session = tagwire::Session::open()?;
/// let (world, me) = (session.world(), session.rank());
/// let mut send = world.send_init(vec![0u64; 4], me, 7)?;
/// let mut recv = world.recv_init(vec![0u64; 4], me, 7)?;
/// for round in 0..3 {
///     send.data_mut()?.fill(round);
///     recv.start()?;
///     send.start()?;
///     recv.wait()?;
///     send.wait()?;
///     assert_eq!(recv.data()?, [round; 4]);
/// }
/// # drop((send, recv));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug)]
pub struct PersistentSend<'s, T: Plain>(Persistent<'s, T>);

/// A receive into the same buffer, again and again. Made by
/// [`Context::recv_init`](crate::Context::recv_init); see [`PersistentSend`].
///
/// Dropped while a round is under way, it is taken back, or goes on when a message has matched; its
/// buffer is freed at its end.
#[derive(Debug)]
pub struct PersistentRecv<'s, T: Plain>(Persistent<'s, T>);

impl<'s, T: Plain> PersistentSend<'s, T> {
    pub(crate) fn make(
        shared: &'s Shared,
        group: Group,
        data: Vec<T>,
        to: u32,
        tag: i32,
        mode: SendMode,
    ) -> Result<Self> {
        let tag = tag_of(tag)?;
        let (to, context) = shared.peer(group, to)?;
        let data = ("the making of a persistent send", data);
        let operation = Persistent::make(shared, Numbers::OF_JOB, data, |first, bytes| {
            // SAFETY: the elements stay where they are while the request is there: they go when it has
            // been freed, or to the orphans. Nobody writes to them while a round is under way. `Plain`
            // has no padding.
            let buffer = unsafe { SendBuffer::contiguous(first, bytes) };
            shared
                .messenger
                .send_init(buffer, to, tag, context.peer, mode)
        });
        operation.map(Self)
    }
}

impl<'s, T: Plain> PersistentRecv<'s, T> {
    pub(crate) fn make(
        shared: &'s Shared,
        group: Group,
        data: Vec<T>,
        from: Source,
        tag: TagChoice,
    ) -> Result<Self> {
        let (from, tag, context) = shared.source(group, from, tag)?;
        let data = ("the making of a persistent receive", data);
        let operation = Persistent::make(shared, shared.numbers(group), data, |first, bytes| {
            // SAFETY: as in `PersistentSend::make`, and nobody reads them while a round is under way. Any
            // bytes make a `Plain` value.
            let buffer = unsafe { RecvBuffer::contiguous(first, bytes) };
            shared.messenger.recv_init(buffer, from, tag, context)
        });
        operation.map(Self)
    }

    /// Takes the round back unless a message has matched. It completes either way: wait for it
    /// (MPI-5.0, section 3.8.4).
    ///
    /// # Errors
    /// When called from a thread that may not.
    pub fn cancel(&self) -> Result<CancelOutcome> {
        Ok(self.0.shared.messenger.cancel(self.0.request)?)
    }
}

macro_rules! rounds {
    ($($operation:ident),*) => {$(
        impl<T: Plain> $operation<'_, T> {
            /// Begins a round.
            ///
            /// # Errors
            /// [`Error::UnderWay`] when one is under way; as the operation that it stands for.
            pub fn start(&mut self) -> Result<()> {
                if self.0.active {
                    return Err(Error::UnderWay);
                }
                let lent = NoUnwind::of("the start of a persistent operation");
                let started = self.0.shared.messenger.start(&[self.0.request]);
                self.0.active = started.is_ok();
                lent.over();
                Ok(started?)
            }

            /// Waits until the round is complete. At once, with an empty status, when none was
            /// started.
            ///
            /// # Errors
            /// How the round failed, if it did; the next one can be started all the same.
            pub fn wait(&mut self) -> Result<Status> {
                let status = self.0.shared.messenger.wait(self.0.request, None)?;
                self.0.ended(status)
            }

            /// Waits up to `timeout`.
            ///
            /// # Errors
            /// As [`wait`](Self::wait). When the time passes
            /// ([`Error::is_timeout`]) the round goes on, and the buffer stays lent.
            pub fn wait_for(&mut self, timeout: Duration) -> Result<Status> {
                let status = self.0.shared.messenger.wait(self.0.request, Some(timeout))?;
                self.0.ended(status)
            }

            /// Waits in a task until the round is complete, while the session is [driven](crate::Session::drive). Dropped
            /// before, the round goes on.
            ///
            /// # Errors
            /// How the round failed, if it did.
            pub async fn completed(&mut self) -> Result<Status> {
                let (messenger, request) = (&self.0.shared.messenger, self.0.request);
                let (awaited, mut place) = (Awaited::Message(request), Place::new(self.0.shared));
                let take = || messenger.take(request).transpose();
                let poll = |task: &mut Task<'_>| place.poll(&awaited, task, take);
                let status = std::future::poll_fn(poll).await?;
                let ended = self.0.ended(status);
                messenger.flush()?;
                ended
            }

            /// Looks whether the round is complete, after moving things on once.
            ///
            /// # Errors
            /// How the round failed, if it did.
            pub fn test(&mut self) -> Result<Option<Status>> {
                let status = self.0.shared.messenger.test(self.0.request)?;
                status.map(|status| self.0.ended(status)).transpose()
            }

            /// Whether a round was started whose end has not been taken.
            #[must_use]
            pub const fn is_active(&self) -> bool {
                self.0.active
            }

            /// The elements, between two rounds.
            ///
            /// # Errors
            /// [`Error::UnderWay`] while a round is under way.
            pub fn data(&self) -> Result<&[T]> {
                match &self.0.memory {
                    // SAFETY: no round is under way.
                    Some(memory) if !self.0.active => Ok(unsafe { memory.as_slice() }),
                    _ => Err(Error::UnderWay),
                }
            }

            /// The elements, to be changed between two rounds.
            ///
            /// # Errors
            /// [`Error::UnderWay`] while a round is under way.
            pub fn data_mut(&mut self) -> Result<&mut [T]> {
                match &mut self.0.memory {
                    // SAFETY: no round is under way.
                    Some(memory) if !self.0.active => Ok(unsafe { memory.as_mut_slice() }),
                    _ => Err(Error::UnderWay),
                }
            }

            /// Ends the operation, and gives the elements back.
            ///
            /// # Errors
            /// [`Error::UnderWay`] while a round is under way; the operation is dropped then.
            pub fn into_data(mut self) -> Result<Vec<T>> {
                if self.0.active {
                    return Err(Error::UnderWay);
                }
                self.0.shared.messenger.free(self.0.request)?;
                Ok(self.0.memory.take().map(Memory::into_vec).unwrap_or_default())
            }
        }
    )*};
}

rounds!(PersistentSend, PersistentRecv);
