//! Tasks that wait for operations, and what wakes them.
//!
//! ```text
//!     a task polls a future ---- not complete ----> its waker enters the table
//!                                                        | the task that drives is woken once
//!     it makes progress, arms the descriptor <-----------+<---- the descriptor is readable
//!            |
//!            +---- wakes the tasks whose operations are complete
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tagwire_pml::{Messenger, RequestId};

use crate::shared::Shared;

/// What a task waits for.
#[derive(Debug, Clone)]
pub(crate) enum Awaited {
    Message(RequestId),
    Collective(tagwire_coll::Request),
}

impl Awaited {
    /// Returns whether it is complete. One that cannot be asked for is: its task learns why.
    fn is_complete(&self, messenger: &Messenger) -> bool {
        match self {
            Self::Message(id) => messenger.is_complete(*id).unwrap_or(true),
            Self::Collective(request) => request.is_complete(),
        }
    }
}

#[derive(Debug)]
struct Waiting {
    awaited: Awaited,
    /// There until it was woken.
    waker: Option<Waker>,
}

/// The tasks of a session that wait.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Table>);

#[derive(Default)]
struct Table {
    waiting: BTreeMap<u64, Waiting>,
    /// The number of the next one that waits.
    next: u64,
    /// The task that drives the session.
    driver: Option<Waker>,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks({})", self.lock().waiting.len())
    }
}

impl Tasks {
    /// Wakes the tasks whose operations are complete.
    pub(crate) fn wake_complete(&self, messenger: &Messenger) {
        let mut table = self.lock();
        let complete = |one: &mut Waiting| {
            let is_due = one.waker.is_some() && one.awaited.is_complete(messenger);
            is_due.then(|| one.waker.take()).flatten()
        };
        let wakers: Vec<_> = table.waiting.values_mut().filter_map(complete).collect();
        // A waker is code of others, which may poll.
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Has `driver` woken whenever a task begins to wait, until the returned value is dropped.
    pub(crate) const fn drive(&self) -> Driving<'_> {
        Driving(self)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that drives.
#[derive(Debug)]
pub(crate) struct Driving<'s>(&'s Tasks);

impl Driving<'_> {
    /// Says how the task that drives is woken.
    pub(crate) fn by(&self, driver: &Waker) {
        let mut table = self.0.lock();
        let is_known = |known: &Waker| known.will_wake(driver);
        if !table.driver.as_ref().is_some_and(is_known) {
            let former = table.driver.replace(driver.clone());
            drop(table);
            drop(former);
        }
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        let former = self.0.lock().driver.take();
        drop(former);
    }
}

/// The place of a future among those that wait: free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'s> {
    shared: &'s Shared,
    number: Option<u64>,
}

impl<'s> Place<'s> {
    pub(crate) const fn new(shared: &'s Shared) -> Self {
        Self {
            shared,
            number: None,
        }
    }

    /// Returns what `take` does, without progress. Where that is nothing, `task` is woken once `awaited` is complete.
    pub(crate) fn poll<R>(
        &mut self,
        awaited: &Awaited,
        task: &Context<'_>,
        mut take: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        // Most often that is all.
        if let Some(end) = take() {
            self.leave();
            return Poll::Ready(end);
        }
        let waker = task.waker().clone();
        let mut table = self.shared.tasks.lock();
        // Whoever completes it from now on finds the waker in the table.
        if let Some(end) = take() {
            drop(table);
            self.leave();
            return Poll::Ready(end);
        }
        let number = *self.number.get_or_insert_with(|| {
            table.next += 1;
            table.next
        });
        let waiting = Waiting {
            awaited: awaited.clone(),
            waker: Some(waker),
        };
        let former = table.waiting.insert(number, waiting);
        let is_new = former.as_ref().is_none_or(|one| one.waker.is_none());
        let driver = table.driver.clone().filter(|_| is_new);
        drop(table);
        drop(former);
        // It may sleep, and what was started since waits for its progress.
        if let Some(driver) = driver {
            driver.wake();
        }
        Poll::Pending
    }

    fn leave(&mut self) {
        if let Some(number) = self.number.take() {
            let former = self.shared.tasks.lock().waiting.remove(&number);
            drop(former);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
