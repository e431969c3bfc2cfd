//! The nonblocking operations of a rank that are under way.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tagwire_base::{ContextId, Tag};
use tagwire_pml::{Demand, Driven, Driver, Messenger};

use crate::error::Result;

/// An operation that has begun.
pub(crate) trait Pending: fmt::Debug + Send + Sync {
    /// Moves it on. Returns whether it ended in this call. Where another thread does so at the same time, that one does so
    /// once more.
    fn poll(&self) -> bool;

    /// Returns whether it has ended: what it borrowed is free.
    fn is_complete(&self) -> bool;

    /// Takes how it ended, once it has.
    fn take(&self) -> Option<Result<()>>;

    /// Returns whether that was taken.
    fn is_taken(&self) -> bool;

    /// Returns this rank's id of the context that it is in, and its tag there.
    fn place(&self) -> (ContextId, Tag);

    /// Returns the port that its messages go through.
    fn messenger(&self) -> &Messenger;

    /// Returns the list that it is in.
    fn active(&self) -> &Active;
}

/// The list of a rank, which its progress drives. The groups of the rank share it; it is driven until the last is dropped.
#[derive(Debug)]
pub(crate) struct Active {
    list: Arc<List>,
    _driven: Driven,
}

#[derive(Debug, Default)]
struct List {
    running: Mutex<Vec<Arc<dyn Pending>>>,
    count: AtomicUsize,
    demand: OnceLock<Demand>,
}

impl Active {
    pub(crate) fn of(messenger: &Messenger) -> Self {
        let list = Arc::new(List::default());
        let driven = messenger.drive_with(Arc::clone(&list) as Arc<dyn Driver>);
        let told = list.demand.set(driven.demand());
        debug_assert!(told.is_ok(), "made just now");
        Self {
            list,
            _driven: driven,
        }
    }

    pub(crate) fn enter(&self, running: Arc<dyn Pending>) {
        self.list.enter(running);
    }

    /// Moves an operation on that is in the list. Returns whether it has ended.
    pub(crate) fn poll(&self, running: &Arc<dyn Pending>) -> bool {
        if running.poll() {
            self.list.leave(running);
        }
        running.is_complete()
    }

    /// Returns the operation that is under way in a context under a tag. A load where none is.
    pub(crate) fn find(&self, place: (ContextId, Tag)) -> Option<Arc<dyn Pending>> {
        if self.list.count.load(Relaxed) == 0 {
            return None;
        }
        let running = self.list.lock();
        let found = running.iter().find(|one| one.place() == place);
        found.cloned()
    }
}

impl List {
    fn enter(&self, running: Arc<dyn Pending>) {
        let mut list = self.lock();
        list.push(running);
        self.count.store(list.len(), Relaxed);
        if let Some(demand) = self.demand.get() {
            demand.raise();
        }
    }

    fn leave(&self, running: &Arc<dyn Pending>) {
        let mut list = self.lock();
        let place = list.iter().position(|one| Arc::ptr_eq(one, running));
        // Those that are left stay in their order: of rounds on a board the earlier one goes first, and lets the next go.
        let left = place.map(|place| list.remove(place));
        self.count.store(list.len(), Relaxed);
        if left.is_some()
            && let Some(demand) = self.demand.get()
        {
            demand.lower();
        }
        drop(list);
        // Perhaps the last of its group, whose end calls the port.
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<dyn Pending>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, place: usize) -> Option<Arc<dyn Pending>> {
        self.lock().get(place).cloned()
    }
}

impl Driver for List {
    fn drive(&self) -> usize {
        let (mut place, mut ended) = (0, 0);
        // Not under the lock: an operation may start, or end, others.
        while let Some(running) = self.at(place) {
            if running.poll() {
                // Another takes its place.
                self.leave(&running);
                ended += 1;
            } else {
                place += 1;
            }
        }
        ended
    }
}
