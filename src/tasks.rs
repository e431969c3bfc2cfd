//! Tasks that wait for operations, and what wakes them.
//!
//! ```text
//!     a task polls a future ---- not complete ----> its waker enters the table
//!                                                        | the task that drives is woken once
//!     it makes progress, arms the wake-up <--------------+<---- the thread that sleeps for the rank
//!            |
//!            +---- wakes the tasks whose operations are complete
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tagwire_pml::{Messenger, RequestId};

use crate::coll;
use crate::shared::Shared;

/// What a task waits for.
#[derive(Debug, Clone)]
pub(crate) enum Awaited {
    Message(RequestId),
    Collective(coll::Request),
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

/// The tasks of a session that wait, and the one that drives it.
#[derive(Default)]
pub(crate) struct Tasks {
    table: Mutex<Table>,
    driver: Arc<Driver>,
}

#[derive(Default)]
struct Table {
    waiting: BTreeMap<u64, Waiting>,
    /// The number of the last one that began to wait.
    last: u64,
}

/// The task that drives a session, if one does.
#[derive(Debug, Default)]
pub(crate) struct Driver(Mutex<Option<Waker>>);

impl Driver {
    /// Says how the task that drives is woken, or that there is none.
    pub(crate) fn set(&self, driver: Option<Waker>) {
        let former = std::mem::replace(&mut *self.lock(), driver);
        // Code of others, with nothing locked; and so is a wake.
        drop(former);
    }

    /// Has it look once more.
    pub(crate) fn wake(&self) {
        let driver = self.lock().clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    pub(crate) const fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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
            table.last += 1;
            table.last
        });
        let waiting = Waiting {
            awaited: awaited.clone(),
            waker: Some(waker),
        };
        let former = table.waiting.insert(number, waiting);
        let is_new = former.as_ref().is_none_or(|one| one.waker.is_none());
        drop(table);
        drop(former);
        if is_new {
            // It may sleep, and what was started since waits for its progress.
            self.shared.tasks.driver.wake();
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
