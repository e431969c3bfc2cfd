//! Operations to which many threads contribute, partition by partition.
#![allow(unsafe_code)]

mod rounds;

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::time::{Duration, Instant};

use tagwire_base::unwind::NoUnwind;
use tagwire_base::{Rank, Tag};
use tagwire_pml::partitioned as pml;
use tagwire_pml::{ContextPair, Error as PmlError};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::persistent::Memory;
use crate::plain::Plain;
use crate::selector::tag_of;
use crate::shared::Shared;

pub use rounds::{Round, wait_rounds, wait_rounds_for};
pub use tagwire_pml::Policy;
pub use tagwire_pml::partitioned::{Costs, Model};

/// The elements of an operation, and whether they may be looked at between rounds.
struct Buffer<T> {
    /// There until taken out or dropped.
    memory: Option<Memory<T>>,
}

impl<T> Buffer<T> {
    /// Returns where they begin, and how many bytes they are.
    fn bytes(&self) -> (*mut u8, usize) {
        let whole = self.part(0..usize::MAX);
        (whole.as_ptr().cast(), whole.len() * size_of::<T>())
    }

    /// How many elements there are.
    fn len(&self) -> usize {
        self.part(0..usize::MAX).len()
    }

    /// Elements `range`, in place.
    fn part(&self, range: Range<usize>) -> NonNull<[T]> {
        let whole = self.memory.as_ref().map_or_else(
            || NonNull::slice_from_raw_parts(NonNull::dangling(), 0),
            Memory::pointer,
        );
        let start = range.start.min(whole.len());
        let len = range.end.clamp(start, whole.len()) - start;
        // SAFETY: `start` is at most the length.
        let first = unsafe { whole.cast::<T>().add(start) };
        NonNull::slice_from_raw_parts(first, len)
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.memory.as_ref().map(|memory| memory.pointer().len());
        write!(f, "Buffer({len:?} elements)")
    }
}

/// Elements of partition `partition` of `count`, of those in `whole`.
fn elements(partition: u32, count: u32, whole: Range<usize>) -> Range<usize> {
    let each = whole.len() / count.max(1) as usize;
    let start = whole.start + partition as usize * each;
    start..start + each
}

/// Takes in elements, which have to be whole in each partition of each of so many rooms. Returns them with the peer and the tag.
fn take_in<T: Plain>(
    context: &Context<'_>,
    data: Vec<T>,
    partitions: u32,
    rooms: usize,
    peer: u32,
    tag: i32,
) -> Result<(Buffer<T>, (Rank, ContextPair), Tag)> {
    let tag = tag_of(tag)?;
    let peer = context.shared().peer(context.group(), peer)?;
    if partitions == 0 || !data.len().is_multiple_of(partitions as usize * rooms) {
        return Err(Error::Pml(PmlError::BadPartitions {
            count: partitions,
            bytes: size_of_val(&data[..]),
        }));
    }
    let memory = Some(Memory::new(data));
    Ok((Buffer { memory }, peer, tag))
}

/// Does what lends a buffer, of which nothing may unwind.
#[inline]
fn lending<R>(what: &'static str, body: impl FnOnce() -> Result<R, PmlError>) -> Result<R> {
    let lent = NoUnwind::of(what);
    let done = body();
    lent.over();
    Ok(done?)
}

/// A send of the same buffer to the same rank, again and again, to which many threads contribute: each
/// partition leaves as soon as it is ready. Made by [`Context::psend_init`](crate::Context::psend_init).
///
/// Between two rounds the buffer can be looked at and changed. While a round is under way, each partition
/// belongs to whoever [takes](SendRound::partition) it, until it is ready. Dropped while a round is under way,
/// the operation ends, and the receiver is told, but where each partition
/// is a message: there it waits in vain. Dropped on a thread that may not call the session, the operation ends, and its
/// buffer is freed, with the next [progress](crate::Session::progress) of one that may.
///
/// Threads share it where they may share its elements:
///
/// ```compile_fail,E0277
/// use std::{cell::Cell, marker::PhantomData};
///
/// #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
/// #[repr(transparent)]
/// struct OneThread(u64, PhantomData<Cell<u8>>);
///
/// fn share<T: Sync>() {}
/// share::<tagwire::PartitionedSend<'static, OneThread>>(); // error: cannot be shared between threads
/// ```
///
/// ```
/// use std::thread;
///
/// let session = tagwire::Session::open()?;
/// let (world, me) = (session.world(), session.rank());
/// let mut send = world.psend_init(vec![0u64; 12], 4, me, 7)?;
/// let mut recv = world.precv_init(vec![0u64; 12], 3, me, 7)?;
/// for round in 0..3 {
///     let arriving = recv.start()?;
///     let sending = send.start()?;
///     thread::scope(|scope| {
///         for number in 0..4 {
///             scope.spawn(move || {
///                 let mut part = sending.partition(number)?;
///                 part.fill(round + u64::from(number));
///                 part.ready()
///             });
///         }
///     });
///     while !arriving.arrived(0)? {}
///     assert_eq!(arriving.partition(0)?, Some(&[round, round, round, round + 1][..]));
///     arriving.wait()?;
///     sending.wait()?;
/// }
/// assert_eq!(recv.data()?[9..], [5, 5, 5]);
/// # drop((send, recv));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug)]
pub struct PartitionedSend<'s, T: Plain> {
    inner: pml::PartitionedSend,
    buffer: Buffer<T>,
    /// Which partitions were taken in this round.
    taken: Box<[AtomicBool]>,
    shared: &'s Shared,
}

/// A receive into the same buffer, again and again, of which each partition can be asked for. Made by
/// [`Context::precv_init`](crate::Context::precv_init); see [`PartitionedSend`]. One with room for two rounds, by
/// [`Context::precv_init_double`](crate::Context::precv_init_double):
///
/// ```
/// # let session = tagwire::Session::open()?;
/// let (world, me) = (session.world(), session.rank());
/// let mut recv = world.precv_init_double(vec![0u8; 8], 2, me, 7)?;
/// let mut send = world.psend_init(vec![0u8; 4], 1, me, 7)?;
/// recv.start()?;
/// for round in 1..4 {
///     let sending = send.start()?;
///     sending.partition(0)?.fill(round);
///     sending.ready(0)?;
///     sending.wait()?; // the second round: before the receiver begins it
///     if round > 1 {
///         recv.wait()?;
///         assert_eq!(recv.data()?, [round - 1; 4]);
///         recv.start()?;
///     }
/// }
/// recv.wait()?;
/// assert_eq!(recv.data()?, [3; 4]);
/// # drop((send, recv));
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug)]
pub struct PartitionedRecv<'s, T: Plain> {
    inner: pml::PartitionedRecv,
    buffer: Buffer<T>,
    /// How many rounds the buffer has room for.
    rooms: usize,
    shared: &'s Shared,
}

// SAFETY: what threads share are the operations, which are made for that, flags, and partitions: to write,
// one thread takes each; to read, all may once it has arrived, and between rounds, as `T` allows.
unsafe impl<T: Plain + Sync> Sync for PartitionedSend<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Plain + Sync> Sync for PartitionedRecv<'_, T> {}

impl<'s, T: Plain> PartitionedSend<'s, T> {
    fn make(
        context: &Context<'s>,
        data: Vec<T>,
        partitions: u32,
        to: u32,
        tag: i32,
        policy: Policy,
    ) -> Result<Self> {
        let shared = context.shared();
        let (buffer, (to, context), tag) = take_in(context, data, partitions, 1, to, tag)?;
        let (at, bytes) = buffer.bytes();
        // SAFETY: the elements stay where they are until the operation is settled. Nobody writes to a
        // partition that is ready. `Plain` has no padding.
        let data = unsafe { SendBuffer::contiguous(at, bytes) };
        let messenger = &shared.messenger;
        let inner = lending("the making of a partitioned send", || {
            pml::PartitionedSend::init(messenger, &data, partitions, to, tag, context, policy)
        })?;
        Ok(Self {
            inner,
            buffer,
            taken: (0..partitions).map(|_| AtomicBool::new(false)).collect(),
            shared,
        })
    }

    /// Begins a round.
    ///
    /// # Errors
    /// When one is under way, or the receiver is gone.
    pub fn start(&mut self) -> Result<SendRound<'_, T>> {
        if self.inner.is_active() {
            return Err(Error::UnderWay);
        }
        self.taken
            .iter_mut()
            .for_each(|taken| *taken.get_mut() = false);
        lending("the start of a partitioned round", || self.inner.start())?;
        Ok(SendRound { send: self })
    }

    /// How many transport partitions there are: what the policy made of the partitions.
    #[must_use]
    pub fn transport_partitions(&self) -> u32 {
        self.inner.transport_partitions()
    }

    /// The elements of a round.
    fn round(&self) -> Range<usize> {
        0..self.buffer.len()
    }
}

impl<'s, T: Plain> PartitionedRecv<'s, T> {
    fn make(
        context: &Context<'s>,
        data: Vec<T>,
        partitions: u32,
        from: u32,
        tag: i32,
        rooms: usize,
    ) -> Result<Self> {
        let shared = context.shared();
        let (buffer, (from, context), tag) = take_in(context, data, partitions, rooms, from, tag)?;
        let (at, bytes) = buffer.bytes();
        // SAFETY: the elements stay where they are until the operation is settled, and nobody looks at
        // a partition in a round before it has arrived. Any bytes make a `Plain` value.
        let data = unsafe { RecvBuffer::contiguous(at, bytes) };
        let init = match rooms {
            1 => pml::PartitionedRecv::init,
            _ => pml::PartitionedRecv::init_double,
        };
        let inner = lending("the making of a partitioned receive", || {
            init(&shared.messenger, &data, partitions, from, tag, context)
        })?;
        Ok(Self {
            inner,
            buffer,
            rooms,
            shared,
        })
    }

    /// Begins a round.
    ///
    /// # Errors
    /// When one is under way, or the sender is gone.
    pub fn start(&mut self) -> Result<RecvRound<'_, T>> {
        if self.inner.is_active() {
            return Err(Error::UnderWay);
        }
        lending("the start of a partitioned round", || self.inner.start())?;
        Ok(RecvRound { recv: self })
    }

    /// The elements of the round that is under way, or was last.
    fn round(&self) -> Range<usize> {
        let each = self.buffer.len() / self.rooms;
        let first = self.inner.room() * each;
        first..first + each
    }
}

macro_rules! rounds {
    ($($operation:ident, $round:ident, $side:ident, $end:ident;)*) => {$(
        impl<T: Plain> $operation<'_, T> {
            /// How many partitions the buffer has on this side.
            #[must_use]
            pub fn partitions(&self) -> u32 {
                self.inner.partitions()
            }

            /// Waits until the round is complete. At once when none was started.
            ///
            /// # Errors
            /// When the peer is gone: the operation is over.
            pub fn wait(&mut self) -> Result<()> {
                Ok(self.inner.wait(None)?)
            }

            /// Waits up to `timeout`.
            ///
            /// # Errors
            /// As [`wait`](Self::wait). When the time passes ([`Error::is_timeout`]) the round goes on,
            /// and the buffer stays lent.
            pub fn wait_for(&mut self, timeout: Duration) -> Result<()> {
                Ok(self.inner.wait(Some(timeout))?)
            }

            /// Looks whether the round is complete, after moving things on once.
            ///
            /// # Errors
            /// As [`wait`](Self::wait).
            pub fn test(&mut self) -> Result<bool> {
                Ok(self.inner.test()?)
            }

            /// Whether a round was started whose end has not been waited for.
            #[must_use]
            pub fn is_active(&self) -> bool {
                self.inner.is_active()
            }

            /// Which way the partitions take, and why; `None` before the two ends are matched.
            #[must_use]
            pub fn describe(&self) -> Option<String> {
                self.inner.describe()
            }

            fn is_free(&self) -> bool {
                let failed = self.inner.has_failed();
                !self.inner.is_active() && (!failed || self.inner.is_settled())
            }

            /// The elements of the last round, between two rounds.
            ///
            /// # Errors
            /// [`Error::UnderWay`] while a round is under way, and after one that failed as long as the
            /// peer may be at the elements.
            pub fn data(&self) -> Result<&[T]> {
                match &self.buffer.memory {
                    // SAFETY: no round is under way. Where the buffer has room for two, the other one is
                    // not part of this.
                    Some(_) if self.is_free() => Ok(unsafe { self.buffer.part(self.round()).as_ref() }),
                    _ => Err(Error::UnderWay),
                }
            }

            /// The same, to be changed between two rounds.
            ///
            /// # Errors
            /// As [`data`](Self::data).
            pub fn data_mut(&mut self) -> Result<&mut [T]> {
                match &self.buffer.memory {
                    // SAFETY: as for `data`; the borrow is the only one.
                    Some(_) if self.is_free() => Ok(unsafe { self.buffer.part(self.round()).as_mut() }),
                    _ => Err(Error::UnderWay),
                }
            }

            /// Ends the operation, and gives all elements back. A sender that may be writing the next round
            /// already, where there is room for two, is asked to stop: that is waited for, up to the setting
            /// `close-timeout`.
            ///
            /// # Errors
            /// [`Error::UnderWay`] as [`data`](Self::data), and when the sender does not reply; when called from a
            /// thread that may not. The operation is dropped then.
            pub fn into_data(mut self) -> Result<Vec<T>> {
                if !self.is_free() {
                    return Err(Error::UnderWay);
                }
                let until = Instant::now() + self.shared.close_timeout;
                while !self.inner.is_settled() {
                    if Instant::now() >= until {
                        return Err(Error::UnderWay);
                    }
                    self.shared.messenger.progress()?;
                    std::thread::yield_now();
                }
                self.inner.free()?;
                let memory = self.buffer.memory.take();
                Ok(memory.map(Memory::into_vec).unwrap_or_default())
            }
        }

        impl<T: Plain> Drop for $operation<'_, T> {
            fn drop(&mut self) {
                let orphans = &self.shared.orphans;
                orphans.reap(&self.shared.messenger);
                if let Some(memory) = self.buffer.memory.take()
                    && !self.inner.is_settled()
                {
                    let is_settled = self.inner.ending();
                    orphans.adopt_until(move |_| is_settled(), Box::new(memory));
                }
            }
        }

        impl<T: Plain> Clone for $round<'_, T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T: Plain> Copy for $round<'_, T> {}

        impl<'a, T: Plain> From<$round<'a, T>> for Round<'a> {
            fn from(round: $round<'a, T>) -> Self {
                Self(pml::End::$end(&round.$side.inner))
            }
        }
    )*};
}

rounds! {
    PartitionedSend, SendRound, send, Send;
    PartitionedRecv, RecvRound, recv, Recv;
}

/// A round of a [`PartitionedSend`] that is under way. May be copied to threads; dropped, the round goes on.
#[derive(Debug)]
pub struct SendRound<'a, T: Plain> {
    send: &'a PartitionedSend<'a, T>,
}

/// A round of a [`PartitionedRecv`] that is under way. May be copied to threads; dropped, the round goes on.
#[derive(Debug)]
pub struct RecvRound<'a, T: Plain> {
    recv: &'a PartitionedRecv<'a, T>,
}

impl<'a, T: Plain> SendRound<'a, T> {
    /// Takes partition `partition`, to be filled and made [ready](Partition::ready). Dropped before that, it
    /// can be taken again.
    ///
    /// # Errors
    /// When there is no such partition, or it was taken in this round.
    pub fn partition(&self, partition: u32) -> Result<Partition<'a, T>> {
        self.take(partition)?;
        let range = elements(partition, self.send.partitions(), self.send.round());
        Ok(Partition {
            send: self.send,
            number: partition,
            data: self.send.buffer.part(range),
        })
    }

    fn take(&self, partition: u32) -> Result<()> {
        let refuse = |what| Err(Error::Pml(PmlError::BadPartition { partition, what }));
        match self.send.taken.get(partition as usize) {
            None => refuse("is out of range"),
            Some(taken) if taken.swap(true, AcqRel) => {
                refuse("was taken or ready before in this round")
            }
            Some(_) => Ok(()),
        }
    }

    /// Partition `partition` is ready as it is: it travels, without a lock on its way
    /// (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// As [`partition`](SendRound::partition).
    pub fn ready(&self, partition: u32) -> Result<()> {
        self.take(partition)?;
        lending(READY, || self.send.inner.ready(partition))
    }

    /// All of `partitions` are ready as they are (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// As [`partition`](SendRound::partition); those before the one that is wrong are ready.
    pub fn ready_range(&self, partitions: Range<u32>) -> Result<()> {
        let start = partitions.start;
        self.ready_each(partitions, |send, count| {
            send.ready_range(start..start + count as u32)
        })
    }

    /// All in `partitions` are ready as they are (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// As [`ready_range`](SendRound::ready_range).
    pub fn ready_list(&self, partitions: &[u32]) -> Result<()> {
        self.ready_each(partitions.iter().copied(), |send, count| {
            send.ready_list(&partitions[..count])
        })
    }

    /// Takes partitions up to the first that is wrong, so many of which `ready` makes ready.
    fn ready_each(
        &self,
        mut partitions: impl Iterator<Item = u32>,
        ready: impl FnOnce(&pml::PartitionedSend, usize) -> Result<(), PmlError>,
    ) -> Result<()> {
        let mut count = 0;
        let taken = partitions.try_for_each(|partition| {
            self.take(partition)?;
            count += 1;
            Ok(())
        });
        lending(READY, || ready(&self.send.inner, count))?;
        taken
    }

    /// Waits until all partitions were ready and the buffer is free again.
    ///
    /// # Errors
    /// When the receiver is gone: the operation is over.
    pub fn wait(self) -> Result<()> {
        Ok(self.send.inner.wait(None)?)
    }
}

impl<'a, T: Plain> RecvRound<'a, T> {
    /// Whether partition `partition` has arrived. Looks, and where it has not, makes progress
    /// (MPI-5.0, section 4.2.2).
    ///
    /// # Errors
    /// When there is no such partition, or it cannot arrive any more.
    pub fn arrived(&self, partition: u32) -> Result<bool> {
        Ok(self.recv.inner.arrived(partition)?)
    }

    /// The elements of partition `partition`, once it has arrived.
    ///
    /// # Errors
    /// As [`arrived`](RecvRound::arrived).
    pub fn partition(&self, partition: u32) -> Result<Option<&'a [T]>> {
        if !self.arrived(partition)? {
            return Ok(None);
        }
        let range = elements(partition, self.recv.partitions(), self.recv.round());
        let part = self.recv.buffer.part(range);
        // SAFETY: the partition has arrived: nobody writes it before the next round, which cannot begin
        // while the operation is borrowed.
        Ok(Some(unsafe { part.as_ref() }))
    }

    /// Waits until everything has arrived.
    ///
    /// # Errors
    /// When the sender is gone: the operation is over.
    pub fn wait(self) -> Result<()> {
        Ok(self.recv.inner.wait(None)?)
    }
}

/// A partition that one thread fills. Its elements are the thread's own until it is
/// [ready](Partition::ready).
pub struct Partition<'a, T: Plain> {
    send: &'a PartitionedSend<'a, T>,
    number: u32,
    data: NonNull<[T]>,
}

// SAFETY: a mutable borrow of its elements, which may be sent.
unsafe impl<T: Plain> Send for Partition<'_, T> {}
// SAFETY: a shared one gives shared references to elements only.
unsafe impl<T: Plain + Sync> Sync for Partition<'_, T> {}

impl<T: Plain> Partition<'_, T> {
    /// The elements stay as they are from now on, and travel.
    ///
    /// # Errors
    /// When the round has failed.
    pub fn ready(self) -> Result<()> {
        let (send, number) = (self.send, self.number);
        std::mem::forget(self);
        lending(READY, || send.inner.ready(number))
    }
}

impl<T: Plain> Drop for Partition<'_, T> {
    fn drop(&mut self) {
        self.send.taken[self.number as usize].store(false, Release);
    }
}

impl<T: Plain> Deref for Partition<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the partition was taken: nobody else reaches it.
        unsafe { self.data.as_ref() }
    }
}

impl<T: Plain> DerefMut for Partition<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { self.data.as_mut() }
    }
}

impl<T: Plain> fmt::Debug for Partition<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, count) = (self.number, self.send.partitions());
        write!(f, "Partition({number} of {count})")
    }
}

impl<'s> Context<'s> {
    /// A send whose buffer has `partitions` equal partitions, each of which is sent as soon as it is ready
    /// (MPI-5.0, chapter 4). It matches the receive that rank `to` makes with
    /// [`precv_init`](Context::precv_init) under the same tag, once; the two may have different
    /// numbers of partitions. Inactive until [started](PartitionedSend::start).
    ///
    /// # Errors
    /// As [`isend`](Context::isend); when the buffer cannot have so many partitions.
    pub fn psend_init<T: Plain>(
        &self,
        data: Vec<T>,
        partitions: u32,
        to: u32,
        tag: i32,
    ) -> Result<PartitionedSend<'s, T>> {
        self.psend_init_with(Policy::default(), data, partitions, to, tag)
    }

    /// As [`psend_init`](Context::psend_init), with another policy of which partitions travel together.
    ///
    /// # Errors
    /// As there.
    pub fn psend_init_with<T: Plain>(
        &self,
        policy: Policy,
        data: Vec<T>,
        partitions: u32,
        to: u32,
        tag: i32,
    ) -> Result<PartitionedSend<'s, T>> {
        PartitionedSend::make(self, data, partitions, to, tag, policy)
    }

    /// A receive whose buffer has `partitions` equal partitions, each of which can be asked for. It
    /// matches the send that rank `from` makes with [`psend_init`](Context::psend_init) under the same
    /// tag, once; no wildcards. Inactive until [started](PartitionedRecv::start) (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// As [`irecv`](Context::irecv); when the buffer cannot have so many partitions.
    pub fn precv_init<T: Plain>(
        &self,
        data: Vec<T>,
        partitions: u32,
        from: u32,
        tag: i32,
    ) -> Result<PartitionedRecv<'s, T>> {
        PartitionedRecv::make(self, data, partitions, from, tag, 1)
    }

    /// The same with room for two rounds: `data` has twice the elements of one, and rounds use its halves by
    /// turns. When a round begins the sender may write the next one too, and does not wait for the
    /// word that it has begun here.
    ///
    /// When such a receive ends, its sender is asked to write no more, and
    /// [`Session::close`](crate::Session::close) waits for the reply: the sender gives it with its next call that
    /// makes progress, or with its own end.
    ///
    /// # Errors
    /// As [`precv_init`](Context::precv_init); when the buffer has no two halves of whole partitions.
    pub fn precv_init_double<T: Plain>(
        &self,
        data: Vec<T>,
        partitions: u32,
        from: u32,
        tag: i32,
    ) -> Result<PartitionedRecv<'s, T>> {
        PartitionedRecv::make(self, data, partitions, from, tag, 2)
    }
}

const READY: &str = "a ready call";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use crate::Session;

    /// At a level of one thread nobody waits elsewhere for the thread that may be copying the elements.
    #[test]
    fn what_is_dropped_elsewhere_keeps_its_elements_for_the_ranks_own_thread() {
        let session = Session::open().unwrap();
        let (world, me) = (session.world(), session.rank());
        let mut send = world.psend_init(vec![1u8; 4096], 2, me, 7).unwrap();
        let mut recv = world.precv_init(vec![0u8; 4096], 2, me, 7).unwrap();
        recv.start().unwrap();
        let sending = send.start().unwrap();
        sending.ready(0).unwrap();
        while send.describe().is_none() {
            session.progress().unwrap();
        }
        let kept = || format!("{:?}", session.shared.orphans);
        std::thread::scope(|threads| threads.spawn(move || drop(send)).join().unwrap());
        assert_eq!(kept(), "Orphans(1)");
        session.progress().unwrap();
        assert_eq!(kept(), "Orphans(0)");

        let unmatched = world.psend_init(vec![1u8; 4096], 2, me, 8).unwrap();
        let taken = std::thread::scope(|threads| {
            let other = threads.spawn(move || unmatched.into_data());
            other.join().unwrap()
        });
        assert!(taken.is_err(), "{taken:?}");
        assert_eq!(kept(), "Orphans(1)");
        session.progress().unwrap();
        assert_eq!(kept(), "Orphans(0)");
    }
}
