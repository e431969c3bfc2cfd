//! The nonblocking operations of a rank that are under way.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tagwire_base::{ContextId, Tag};
use tagwire_pml::{ContextNames, Demand, Driven, Driver, Messenger};

use crate::error::Result;

/// How many operations a dump names.
const SHOWN: usize = 16;

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

    /// Returns its number among those of its group that take turns, if it does: the next is shown once this one was.
    fn turn(&self) -> Option<u64>;

    /// Returns how it stands to the others that take turns.
    fn order(&self) -> Order;

    /// Returns what it is called in a dump.
    fn name(&self) -> &'static str;

    /// Returns the port that its messages go through.
    fn messenger(&self) -> &Messenger;

    /// Returns the list that it is in.
    fn active(&self) -> &Active;
}

/// How an operation under way stands to others of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// It takes no turns, or not yet: it ends when it can.
    Any,
    /// It was shown, and ends after those before it.
    Shown,
    /// It waits for its turn to be shown.
    Waits,
}

/// The list of a rank, which its progress drives. The groups of the rank share it; it is driven until the last is dropped.
#[derive(Debug)]
pub(crate) struct Active {
    list: Arc<List>,
    _driven: Driven,
}

#[derive(Debug, Default)]
struct List {
    running: Mutex<Queues>,
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
        let mut all = running.queues.iter().flat_map(|queue| &queue.running);
        all.find(|one| one.place() == place).cloned()
    }
}

/// The operations under way.
///
/// Those of a group that take turns stand in a queue of their own, in the order of their turns: where one waits to end, all behind it
/// that were shown do, and where one waits to be shown all behind it do. Neither are looked at. So many short operations at once cost
/// each a few polls.
#[derive(Debug, Default)]
struct Queues {
    /// The first is that of the operations that take no turns.
    queues: Vec<Queue>,
    len: usize,
}

/// One that has become empty is taken for the next group that needs one.
#[derive(Debug, Default)]
struct Queue {
    /// Whose turns they take; `None` of those that take none.
    group: Option<ContextId>,
    running: VecDeque<Arc<dyn Pending>>,
}

impl Queues {
    fn enter(&mut self, running: Arc<dyn Pending>) {
        let turn = running.turn();
        let place = self.queue_of(turn.map(|_| running.place().0));
        let queue = &mut self.queues[place].running;
        // Threads that start operations one after the other may get here the other way round.
        let before = queue.iter().rev().take_while(|one| one.turn() > turn);
        let at = queue.len() - before.count();
        queue.insert(at, running);
        self.len += 1;
    }

    /// Returns the place of a group's queue; of one that was empty where the group has none.
    fn queue_of(&mut self, group: Option<ContextId>) -> usize {
        if self.queues.is_empty() {
            self.queues.push(Queue::default());
        }
        let Some(group) = group else { return 0 };
        let mut turns = self.queues.iter().skip(1);
        let own = turns.position(|queue| queue.group == Some(group) && !queue.running.is_empty());
        let mut turns = self.queues.iter().skip(1);
        let free = || turns.position(|queue| queue.running.is_empty());
        let place = own
            .or_else(free)
            .map_or(self.queues.len(), |found| found + 1);
        if place == self.queues.len() {
            self.queues.push(Queue::default());
        }
        self.queues[place].group = Some(group);
        place
    }

    fn leave(&mut self, running: &Arc<dyn Pending>) -> Option<Arc<dyn Pending>> {
        let group = running.turn().map(|_| running.place().0);
        let mut queues = self.queues.iter_mut();
        let queue = queues.find(|queue| queue.group == group && !queue.running.is_empty())?;
        let place = queue
            .running
            .iter()
            .position(|one| Arc::ptr_eq(one, running))?;
        self.len -= 1;
        // Those that are left stay in their order.
        queue.running.remove(place)
    }
}

impl List {
    fn enter(&self, running: Arc<dyn Pending>) {
        let mut list = self.lock();
        list.enter(running);
        self.count.store(list.len, Relaxed);
        if let Some(demand) = self.demand.get() {
            demand.raise();
        }
    }

    fn leave(&self, running: &Arc<dyn Pending>) {
        let mut list = self.lock();
        let left = list.leave(running);
        self.count.store(list.len, Relaxed);
        if left.is_some()
            && let Some(demand) = self.demand.get()
        {
            demand.lower();
        }
        drop(list);
        // Perhaps the last of its group, whose end calls the port.
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an operation by its place; `None` behind the last of its queue.
    fn at(&self, queue: usize, place: usize) -> Option<Arc<dyn Pending>> {
        let list = self.lock();
        list.queues.get(queue)?.running.get(place).cloned()
    }

    /// Returns the place of the first that was not shown.
    fn first_that_waits(&self, queue: usize) -> usize {
        let list = self.lock();
        let queue = list.queues.get(queue).map(|queue| &queue.running);
        queue.map_or(0, |running| {
            running.partition_point(|one| one.order() != Order::Waits)
        })
    }

    /// Moves the operations of a queue on, those that wait for their turn up to the first alone. Returns how many have ended.
    fn drive_queue(&self, queue: usize) -> usize {
        let (mut place, mut ended) = (0, 0);
        // Not under the lock: an operation may start, or end, others.
        while let Some(running) = self.at(queue, place) {
            if running.poll() {
                // Another takes its place.
                self.leave(&running);
                ended += 1;
                continue;
            }
            match running.order() {
                Order::Any => place += 1,
                Order::Shown => place = self.first_that_waits(queue).max(place + 1),
                Order::Waits => break,
            }
        }
        ended
    }
}

impl Driver for List {
    fn drive(&self) -> usize {
        let queues = self.lock().queues.len();
        (0..queues).map(|queue| self.drive_queue(queue)).sum()
    }

    fn describe(&self, names: &ContextNames, out: &mut String) {
        let list = self.lock();
        let queues = list.queues.iter();
        let all: Vec<_> = queues.flat_map(|queue| &queue.running).cloned().collect();
        drop(list);
        if !all.is_empty() {
            *out += &format!(
                "  nonblocking collective operations under way: {}\n",
                all.len()
            );
        }
        for one in all.iter().take(SHOWN) {
            *out += &format!("    {} of {}\n", one.name(), names.own(one.place().0));
        }
    }
}

#[cfg(test)]
mod tests;
