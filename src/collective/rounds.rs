//! The rounds of a persistent collective, and the memory that they are lent.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;
use std::task::Context as Task;
use std::time::Duration;

use tagwire_base::unwind::NoUnwind;
use tagwire_coll::Persistent;
use tagwire_coll::operations::CollectiveOperation;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::persistent::Memory;
use crate::plain::Plain;
use crate::shared::Shared;
use crate::tasks::{Awaited, Place};

/// A persistent operation with the memory that its rounds are lent.
pub(crate) struct Rounds<'s, M: Send + 'static> {
    shared: &'s Shared,
    operation: Persistent,
    /// There until taken out or dropped.
    memory: Option<M>,
}

impl<M: Send + 'static> fmt::Debug for Rounds<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation.fmt(f)
    }
}

impl<'s, M: Send + 'static> Rounds<'s, M> {
    /// Makes the operation that `make` returns for each round.
    ///
    /// # Safety
    /// What an operation borrows lies in what `memory` owns on the heap, and is reached by nobody who does not go through
    /// [`memory`](Self::memory) and its like.
    pub(crate) unsafe fn make<O: CollectiveOperation + 'static>(
        context: &Context<'s>,
        memory: M,
        make: impl Fn() -> O + Send + Sync + 'static,
    ) -> Result<Self> {
        let shared = context.shared();
        let team = shared.group(context.group())?;
        // SAFETY: the memory stays where it is while this object is there and while a round is under way: it goes when there is
        // none, or to the orphans.
        let operation = unsafe { team.init(make) }?;
        Ok(Self {
            shared,
            operation,
            memory: Some(memory),
        })
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        if self.operation.is_active() {
            return Err(Error::UnderWay);
        }
        let lent = NoUnwind::of("the start of a persistent collective");
        let started = self.operation.start();
        lent.over();
        Ok(started?)
    }

    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Result<()> {
        Ok(self.operation.wait(timeout)?)
    }

    pub(crate) fn test(&mut self) -> Result<bool> {
        Ok(self.operation.test()?)
    }

    /// Waits in a task until the round is complete.
    pub(crate) async fn completed(&mut self) -> Result<()> {
        let Some(round) = self.operation.round().cloned() else {
            return Ok(());
        };
        let (awaited, mut place) = (Awaited::Collective(round), Place::new(self.shared));
        let operation = &mut self.operation;
        let poll = |task: &mut Task<'_>| place.poll(&awaited, task, || operation.take());
        Ok(std::future::poll_fn(poll).await?)
    }

    pub(crate) const fn is_active(&self) -> bool {
        self.operation.is_active()
    }

    /// Returns the memory while no round is under way.
    pub(crate) fn memory(&self) -> Result<&M> {
        let free = self.memory.as_ref().filter(|_| !self.is_active());
        free.ok_or(Error::UnderWay)
    }

    /// Returns the same, to be changed.
    pub(crate) fn memory_mut(&mut self) -> Result<&mut M> {
        let is_active = self.is_active();
        let free = self.memory.as_mut().filter(|_| !is_active);
        free.ok_or(Error::UnderWay)
    }

    /// Ends the operation, and gives its memory back.
    pub(crate) fn into_memory(mut self) -> Result<M> {
        match self.is_active() {
            true => Err(Error::UnderWay),
            false => self.memory.take().ok_or(Error::UnderWay),
        }
    }
}

impl<M: Send + 'static> Drop for Rounds<'_, M> {
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

/// Where bytes are that rounds are lent.
#[derive(Clone, Copy)]
pub(crate) struct Lent(NonNull<[u8]>);

// SAFETY: hands out bytes, in `bytes` alone.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Lent {
    pub(crate) fn of<T: Plain>(memory: &Memory<T>) -> Self {
        let elements = memory.pointer();
        let count = elements.len() * size_of::<T>();
        Self(NonNull::slice_from_raw_parts(elements.cast(), count))
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// They are there, and nobody else looks at them, for as long as they are used.
    pub(crate) unsafe fn bytes(&self) -> &'static mut [u8] {
        // SAFETY: the caller's promise; the elements are plain data, of which any bytes are valid.
        unsafe { &mut *self.0.as_ptr() }
    }
}
