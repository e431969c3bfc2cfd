//! Collectives that are made once and started again and again, and the memory that their rounds are lent.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;
use std::task::Context as Task;
use std::time::Duration;

use tagwire_base::unwind::NoUnwind;
use tagwire_coll::Persistent;

use super::buffers::{Lasting, OwnedBuffers};
use super::value::{Below, Collective};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::persistent::Memory;
use crate::plain::Plain;
use crate::shared::Shared;
use crate::tasks::{Awaited, Place};

/// A collective on the same buffers, again and again (MPI-5.0, sections 6.13 and 8.8). Made by [`Context::init`], in the same
/// order on all ranks of the context; started by all ranks, in any order. `M` are its buffers: [`OwnedBuffers`] of elements,
/// [`OwnedBlocks`](crate::OwnedBlocks), or `()` for a barrier.
///
/// Between two rounds the buffers can be looked at and changed; while a round is under way they are lent, and asking for
/// them is an error. Dropped while a round is under way, the round goes on, and the buffers are freed at its end.
///
/// ```
/// use tagwire::{Allreduce, Session, Sum};
///
/// let session = Session::open()?;
/// let mut sum = session.world().init(Allreduce::in_place(vec![0.0; 2], Sum))?;
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
///
/// One of buffers of several types has them by rank:
///
/// ```
/// use tagwire::{Alltoall, OwnedBlocks, Session};
///
/// let session = Session::open()?;
/// let blocks = (0..session.size()).fold(OwnedBlocks::new(), |blocks, _| {
///     blocks.send(vec![0.0; 3]).recv(vec![0.0; 3])
/// });
/// let mut exchange = session.world().init(Alltoall::blocks(blocks))?;
/// for round in 1..=3 {
///     exchange.sent_mut::<f64>(0)?.fill(f64::from(round));
///     exchange.start()?;
///     exchange.wait()?;
///     if session.rank() == 0 {
///         assert_eq!(exchange.received::<f64>(0)?, [f64::from(round); 3]);
///     }
/// }
/// # drop(exchange);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
pub struct PersistentCollective<'s, M: Lasting> {
    shared: &'s Shared,
    operation: Persistent,
    /// There until taken out or dropped.
    memory: Option<M>,
}

impl<M: Lasting> fmt::Debug for PersistentCollective<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("PersistentCollective");
        tuple.field(&self.operation).finish()
    }
}

impl<'s, M: Lasting> PersistentCollective<'s, M> {
    pub(super) fn make<G: Send + Sync + 'static, O: Below<'static, G, M::Lent>>(
        context: &Context<'s>,
        members: Arc<G>,
        collective: Collective<O, M>,
    ) -> Result<Self> {
        let shared = context.shared();
        let team = shared.group(context.group())?;
        let (operation, memory) = (collective.operation, collective.buffers);
        // SAFETY: an operation is made while none is under way. Nobody looks at the memory while one is: this object does not
        // while it is active, and is not there yet for the first.
        let lent = unsafe { memory.lender() };
        let make = move || operation.clone().below(&*members, lent());
        // SAFETY: the memory stays where it is while this object is there and while a round is under way: it goes when there is
        // none, or to the orphans.
        let operation = unsafe { team.init(make) }?;
        Ok(Self {
            shared,
            operation,
            memory: Some(memory),
        })
    }

    /// Begins a round.
    ///
    /// # Errors
    /// [`Error::UnderWay`] when one is under way; when a collective of the context has failed.
    pub fn start(&mut self) -> Result<()> {
        if self.operation.is_active() {
            return Err(Error::UnderWay);
        }
        let lent = NoUnwind::of("the start of a persistent collective");
        let started = self.operation.start();
        lent.over();
        Ok(started?)
    }

    /// Waits until the round is complete. At once when none was started.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub fn wait(&mut self) -> Result<()> {
        Ok(self.operation.wait(None)?)
    }

    /// Waits up to `timeout`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). When the time passes ([`Error::is_timeout`]) the round goes on, and the buffers stay lent.
    pub fn wait_for(&mut self, timeout: Duration) -> Result<()> {
        Ok(self.operation.wait(Some(timeout))?)
    }

    /// Waits in a task until the round is complete, while the session is [driven](crate::Session::drive). Dropped
    /// before, the round goes on.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub async fn completed(&mut self) -> Result<()> {
        let Some(round) = self.operation.round().cloned() else {
            return Ok(());
        };
        let (awaited, mut place) = (Awaited::Collective(round), Place::new(self.shared));
        let operation = &mut self.operation;
        let poll = |task: &mut Task<'_>| place.poll(&awaited, task, || operation.take());
        Ok(std::future::poll_fn(poll).await?)
    }

    /// Looks whether the round is complete, after making progress once.
    ///
    /// # Errors
    /// How the round failed, if it did.
    pub fn test(&mut self) -> Result<bool> {
        Ok(self.operation.test()?)
    }

    /// Returns whether a round was started whose end has not been taken.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.operation.is_active()
    }

    /// Returns the memory while no round is under way.
    pub(super) fn memory(&self) -> Result<&M> {
        let free = self.memory.as_ref().filter(|_| !self.is_active());
        free.ok_or(Error::UnderWay)
    }

    /// Returns the same, to be changed.
    pub(super) fn memory_mut(&mut self) -> Result<&mut M> {
        self.memory()?;
        self.memory.as_mut().ok_or(Error::UnderWay)
    }
}

impl<T: Plain> PersistentCollective<'_, OwnedBuffers<T>> {
    /// Returns what this rank gives, and after a round of a collective in place what it has got.
    ///
    /// # Errors
    /// [`Error::UnderWay`] while a round is under way.
    pub fn data(&self) -> Result<&[T]> {
        // SAFETY: no round is under way.
        Ok(unsafe { self.memory()?.data.as_slice() })
    }

    /// Returns the same, to be changed between two rounds.
    ///
    /// # Errors
    /// [`Error::UnderWay`] while a round is under way.
    pub fn data_mut(&mut self) -> Result<&mut [T]> {
        // SAFETY: no round is under way.
        Ok(unsafe { self.memory_mut()?.data.as_mut_slice() })
    }

    /// Returns what this rank has got from a collective that is not in place; empty for one that is.
    ///
    /// # Errors
    /// [`Error::UnderWay`] while a round is under way.
    pub fn result(&self) -> Result<&[T]> {
        let result = self.memory()?.result.as_ref();
        // SAFETY: no round is under way.
        Ok(result.map_or(&[], |result| unsafe { result.as_slice() }))
    }

    /// Ends the operation, and gives both buffers back.
    ///
    /// # Errors
    /// [`Error::UnderWay`] while a round is under way; the operation is dropped then.
    pub fn into_data(mut self) -> Result<(Vec<T>, Vec<T>)> {
        self.memory()?;
        let memory = self.memory.take().ok_or(Error::UnderWay)?;
        let result = memory.result.map(Memory::into_vec);
        Ok((memory.data.into_vec(), result.unwrap_or_default()))
    }
}

impl<M: Lasting> Drop for PersistentCollective<'_, M> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        if let Some(round) = self.operation.round().cloned()
            && !round.is_complete()
        {
            let orphans = &self.shared.orphans;
            orphans.adopt_until(move |_| round.is_complete(), Box::new(memory));
            orphans.reap(&self.shared.messenger);
        }
    }
}
