//! Collectives that are made once and started again and again.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use tagwire_coll::operations::{
    Allgather, Allgatherv, Alltoall, Alltoallv, Barrier, Broadcast, CollectiveOperation, Exscan,
    Gather, Gatherv, Scan, Scatter, Scatterv,
};

use super::combine::Reducer;
use super::operations::{allreduce, in_place, lengths, reduce_scatter};
use super::rounds::{Lent, Rounds};
use crate::context::Context;
use crate::error::Result;
use crate::persistent::Memory;
use crate::plain::Plain;

/// A collective on the same buffers, again and again (MPI-5.0, section 6.13). Made by [`Context::allreduce_init`] and its
/// like, in the same order on all ranks of the context; started by all ranks, in any order.
///
/// Between two rounds the buffers can be looked at and changed; while a round is under way they are lent, and asking for
/// them is an error. Dropped while a round is under way, the round goes on, and the buffers are freed at its end.
///
/// ```
/// use tagwire::{Session, Sum};
///
/// let session = Session::open()?;
/// let mut sum = session.world().allreduce_init(vec![0.0; 2], Sum)?;
/// for round in 1..=3 {
///     sum.data_mut()?.fill(f64::from(round));
///     sum.start()?;
///     // ... computes something else ...
///     sum.wait()?;
///     assert_eq!(sum.data()?, [f64::from(round) * f64::from(session.size()); 2]);
/// }
/// # drop(sum);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
pub struct PersistentCollective<'s, T: Plain>(Rounds<'s, (Memory<T>, Memory<T>)>);

impl<T: Plain> fmt::Debug for PersistentCollective<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PersistentCollective")
            .field(&self.0)
            .finish()
    }
}

impl<'s, T: Plain> PersistentCollective<'s, T> {
    /// Makes what `operation` returns for the bytes of both buffers.
    pub(crate) fn make<O: CollectiveOperation + 'static>(
        context: &Context<'s>,
        (data, result): (Vec<T>, Vec<T>),
        operation: impl Fn(&'static mut [u8], &'static mut [u8]) -> O + Send + Sync + 'static,
    ) -> Result<Self> {
        let memory = (Memory::new(data), Memory::new(result));
        let (given, got) = (Lent::of(&memory.0), Lent::of(&memory.1));
        let make = move || {
            // SAFETY: an operation is made while none is under way. Nobody looks at the elements while one is: this object does
            // not while it is active, and is not there yet for the first.
            let (data, result) = unsafe { (given.bytes(), got.bytes()) };
            operation(data, result)
        };
        // SAFETY: what is lent is in `memory`.
        Ok(Self(unsafe { Rounds::make(context, memory, make) }?))
    }

    /// Begins a round.
    ///
    /// # Errors
    /// [`Error::UnderWay`](crate::Error::UnderWay) when one is under way; when a collective of the context has failed.
    pub fn start(&mut self) -> Result<()> {
        self.0.start()
    }

    /// Waits until the round is complete. At once when none was started.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub fn wait(&mut self) -> Result<()> {
        self.0.wait(None)
    }

    /// Waits up to `timeout`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). When the time passes ([`Error::is_timeout`](crate::Error::is_timeout)) the round goes on, and the buffers stay lent.
    pub fn wait_for(&mut self, timeout: Duration) -> Result<()> {
        self.0.wait(Some(timeout))
    }

    /// Waits in a task until the round is complete, while the session is [driven](crate::Session::drive). Dropped
    /// before, the round goes on.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub async fn completed(&mut self) -> Result<()> {
        self.0.completed().await
    }

    /// Looks whether the round is complete, after moving things on once.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// Returns whether a round was started whose end has not been taken.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.0.is_active()
    }

    /// Returns what this rank gives, and after a round of a collective in place what it has got.
    ///
    /// # Errors
    /// [`Error::UnderWay`](crate::Error::UnderWay) while a round is under way.
    pub fn data(&self) -> Result<&[T]> {
        // SAFETY: no round is under way.
        Ok(unsafe { self.0.memory()?.0.as_slice() })
    }

    /// Returns the same, to be changed between two rounds.
    ///
    /// # Errors
    /// [`Error::UnderWay`](crate::Error::UnderWay) while a round is under way.
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        // SAFETY: no round is under way.
        Ok(unsafe { self.0.memory_mut()?.0.as_mut_slice() })
    }

    /// Returns what this rank has got from a collective that is not in place; empty for one that is.
    ///
    /// # Errors
    /// [`Error::UnderWay`](crate::Error::UnderWay) while a round is under way.
    pub fn result(&self) -> Result<&[T]> {
        // SAFETY: no round is under way.
        Ok(unsafe { self.0.memory()?.1.as_slice() })
    }

    /// Ends the operation, and gives both buffers back.
    ///
    /// # Errors
    /// [`Error::UnderWay`](crate::Error::UnderWay) while a round is under way; the operation is dropped then.
    pub fn into_data(self) -> Result<(Vec<T>, Vec<T>)> {
        let (data, result) = self.0.into_memory()?;
        Ok((data.into_vec(), result.into_vec()))
    }
}

/// Persistent collectives (MPI-5.0, section 6.13). Every rank of the context makes them in the same order; no other rank is
/// waited for. See [`PersistentCollective`].
impl<'s> Context<'s> {
    /// Makes a persistent [`barrier`](Self::barrier).
    ///
    /// # Errors
    /// When a collective of the context has failed; when it has as many persistent ones as there can be.
    pub fn barrier_init(&self) -> Result<PersistentCollective<'s, ()>> {
        PersistentCollective::make(self, Default::default(), |_, _| Barrier)
    }

    /// Makes a persistent [`broadcast`](Self::broadcast) of the data of `root`.
    ///
    /// # Errors
    /// As [`barrier_init`](Self::barrier_init); when there is no such rank.
    pub fn broadcast_init<T: Plain>(
        &self,
        data: Vec<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let root = root as usize;
        PersistentCollective::make(self, (data, Vec::new()), move |data, _| Broadcast {
            data,
            root,
        })
    }

    /// Makes a persistent [`allreduce`](Self::allreduce).
    ///
    /// # Errors
    /// As [`barrier_init`](Self::barrier_init); when the operation is not defined for the numbers.
    pub fn allreduce_init<T: Plain>(
        &self,
        data: Vec<T>,
        by: impl Reducer<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        let operator = by.operator();
        PersistentCollective::make(self, (data, Vec::new()), move |data, _| {
            allreduce(operator.clone(), data)
        })
    }

    /// Makes a persistent [`reduce`](Self::reduce).
    ///
    /// # Errors
    /// As [`allreduce_init`](Self::allreduce_init); when there is no such rank.
    pub fn reduce_init<T: Plain>(
        &self,
        data: Vec<T>,
        by: impl Reducer<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let (operator, rank) = (by.operator(), self.rank()?);
        PersistentCollective::make(self, (data, Vec::new()), move |data, _| {
            in_place(operator.clone(), data, rank, root)
        })
    }

    /// Makes a persistent [`scan`](Self::scan).
    ///
    /// # Errors
    /// As [`allreduce_init`](Self::allreduce_init).
    pub fn scan_init<T: Plain>(
        &self,
        data: Vec<T>,
        by: impl Reducer<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        let operator = by.operator();
        PersistentCollective::make(self, (data, Vec::new()), move |data, _| Scan {
            operator: operator.clone(),
            data,
        })
    }

    /// Makes a persistent [`exscan`](Self::exscan).
    ///
    /// # Errors
    /// As [`allreduce_init`](Self::allreduce_init).
    pub fn exscan_init<T: Plain>(
        &self,
        data: Vec<T>,
        by: impl Reducer<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        let operator = by.operator();
        PersistentCollective::make(self, (data, Vec::new()), move |data, _| Exscan {
            operator: operator.clone(),
            data,
        })
    }

    /// Makes a persistent [`reduce_scatter`](Self::reduce_scatter), whose result is as long as `own`.
    ///
    /// # Errors
    /// As [`allreduce_init`](Self::allreduce_init).
    pub fn reduce_scatter_init<T: Plain>(
        &self,
        data: Vec<T>,
        own: Vec<T>,
        by: impl Reducer<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        let operator = by.operator();
        let size = self.size()?;
        PersistentCollective::make(self, (data, own), move |data, own| {
            reduce_scatter(operator.clone(), data, own, size)
        })
    }

    /// Makes a persistent [`gather`](Self::gather).
    ///
    /// # Errors
    /// As [`broadcast_init`](Self::broadcast_init); when lengths are wrong.
    pub fn gather_init<T: Plain>(
        &self,
        own: Vec<T>,
        all: Vec<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let root = root as usize;
        PersistentCollective::make(self, (own, all), move |own, all| Gather {
            own,
            out: Some(all),
            root,
        })
    }

    /// Makes a persistent [`gather_varying`](Self::gather_varying).
    ///
    /// # Errors
    /// As [`gather_init`](Self::gather_init).
    pub fn gather_varying_init<T: Plain>(
        &self,
        own: Vec<T>,
        all: Vec<T>,
        counts: &[usize],
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let (lengths, root) = (lengths::<T>(counts), root as usize);
        PersistentCollective::make(self, (own, all), move |own, all| Gatherv {
            own,
            lengths: Cow::Owned(lengths.clone()),
            out: Some(all),
            root,
        })
    }

    /// Makes a persistent [`allgather`](Self::allgather).
    ///
    /// # Errors
    /// As [`barrier_init`](Self::barrier_init); when lengths are wrong.
    pub fn allgather_init<T: Plain>(
        &self,
        own: Vec<T>,
        all: Vec<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        PersistentCollective::make(self, (own, all), |own, out| Allgather { own, out })
    }

    /// Makes a persistent [`allgather_varying`](Self::allgather_varying).
    ///
    /// # Errors
    /// As [`allgather_init`](Self::allgather_init).
    pub fn allgather_varying_init<T: Plain>(
        &self,
        own: Vec<T>,
        all: Vec<T>,
        counts: &[usize],
    ) -> Result<PersistentCollective<'s, T>> {
        let lengths = lengths::<T>(counts);
        PersistentCollective::make(self, (own, all), move |own, out| Allgatherv {
            own,
            lengths: Cow::Owned(lengths.clone()),
            out,
        })
    }

    /// Makes a persistent [`scatter`](Self::scatter).
    ///
    /// # Errors
    /// As [`gather_init`](Self::gather_init).
    pub fn scatter_init<T: Plain>(
        &self,
        all: Vec<T>,
        own: Vec<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let root = root as usize;
        PersistentCollective::make(self, (all, own), move |all, own| Scatter {
            input: Some(all),
            own,
            root,
        })
    }

    /// Makes a persistent [`scatter_varying`](Self::scatter_varying).
    ///
    /// # Errors
    /// As [`gather_init`](Self::gather_init).
    pub fn scatter_varying_init<T: Plain>(
        &self,
        all: Vec<T>,
        counts: &[usize],
        own: Vec<T>,
        root: u32,
    ) -> Result<PersistentCollective<'s, T>> {
        let (lengths, root) = (lengths::<T>(counts), root as usize);
        PersistentCollective::make(self, (all, own), move |all, own| Scatterv {
            input: Some(all),
            lengths: Cow::Owned(lengths.clone()),
            own,
            root,
        })
    }

    /// Makes a persistent [`alltoall`](Self::alltoall).
    ///
    /// # Errors
    /// As [`allgather_init`](Self::allgather_init).
    pub fn alltoall_init<T: Plain>(
        &self,
        data: Vec<T>,
        from_all: Vec<T>,
    ) -> Result<PersistentCollective<'s, T>> {
        PersistentCollective::make(self, (data, from_all), |input, out| Alltoall { input, out })
    }

    /// Makes a persistent [`alltoall_varying`](Self::alltoall_varying).
    ///
    /// # Errors
    /// As [`allgather_init`](Self::allgather_init).
    pub fn alltoall_varying_init<T: Plain>(
        &self,
        data: Vec<T>,
        to: &[usize],
        from_all: Vec<T>,
        from: &[usize],
    ) -> Result<PersistentCollective<'s, T>> {
        let (to, from) = (lengths::<T>(to), lengths::<T>(from));
        PersistentCollective::make(self, (data, from_all), move |input, out| Alltoallv {
            input,
            to: Cow::Owned(to.clone()),
            out,
            from: Cow::Owned(from.clone()),
        })
    }
}
