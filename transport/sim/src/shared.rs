//! The lock around what ranks share, and what sleepers sleep on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tagwire_base::{Rank, Time};
use tagwire_transport::wait::{WaitKey, Waiter};

use crate::member::Status;
use crate::options::SimOptions;
use crate::place::Place;
use crate::queue::Event;
use crate::state::State;
use crate::time::{Moment, Span};
use crate::turns::{Turns, find_nothing};

/// What the ranks of a network share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) size: u32,
    pub(crate) options: Arc<SimOptions>,
    state: Mutex<State>,
    moved: Condvar,
    /// Threads that sleep.
    sleeping: AtomicUsize,
    turns: Option<Turns>,
}

impl Shared {
    pub(crate) fn new(size: u32, options: SimOptions) -> Self {
        let options = Arc::new(options.made_consistent());
        if let Some(trace) = &options.trace {
            trace.begin();
        }
        Self {
            size,
            state: Mutex::new(State::new(Arc::clone(&options))),
            turns: options
                .turns
                .then(|| Turns::new(size, options.schedule.seed)),
            options,
            moved: Condvar::new(),
            sleeping: AtomicUsize::new(0),
        }
    }

    /// The order of threads that take turns.
    pub(crate) const fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    /// A rank waits, where ranks take turns: others have theirs meanwhile.
    pub(crate) fn pass(&self, rank: Rank) {
        if let Some(turns) = &self.turns {
            turns.pass(rank);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `change` under the lock, and wakes those who sleep where something came for anybody.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let is_moved = std::mem::take(&mut state.is_moved);
        drop(state);
        if is_moved && self.sleeping.load(Ordering::Relaxed) > 0 {
            self.moved.notify_all();
        }
        result
    }
}

/// What threads of one rank sleep on. A sleeper has the network's events happen, until something comes for its rank. Where there
/// are none, it sleeps in the kernel, and the rank's clock has moved on by as much when its time is over.
#[derive(Debug)]
pub(crate) struct SimWaiter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
}

impl SimWaiter {
    /// The rank has slept for `time` in vain.
    fn pass(&self, state: &mut State, time: Duration) {
        if state.machine().is_some() {
            let now = state.now;
            state.member(self.place).occupy(now, Span::from(time));
        }
    }

    /// Sleeps while others have turns: until something comes, or `timeout` has passed in virtual time.
    fn wait_for_turns<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        key: WaitKey,
        timeout: Duration,
    ) {
        let rank = state.member(self.place).rank;
        let until = state.now.max(state.member(self.place).shown()) + Span::from(timeout);
        state.member(self.place).asleep = Some(until);
        loop {
            let member = state.member(self.place);
            if member.epoch != key.0 || member.status != Status::Open || state.now >= until {
                break;
            }
            find_nothing(&mut state, self.place);
            drop(state);
            self.shared.pass(rank);
            state = self.shared.lock();
        }
        let now = state.now;
        let member = state.member(self.place);
        (member.asleep, member.idle) = (None, None);
        member.occupy(now, Span::ZERO);
    }
}

impl Waiter for SimWaiter {
    fn arm(&self) -> WaitKey {
        let mut state = self.shared.lock();
        // Counted from here on: what comes between this and the sleep is seen by the epoch.
        WaitKey(state.member(self.place).epoch)
    }

    fn sleep(&self, key: WaitKey, timeout: Duration) {
        let shared = &self.shared;
        let mut state = shared.lock();
        // The simulation's own thread: others do nothing meanwhile, and sleeping is waiting in virtual time.
        if state.has_tasks {
            return self.pass(&mut state, timeout);
        }
        if shared.turns.is_some() {
            return self.wait_for_turns(state, key, timeout);
        }
        shared.sleeping.fetch_add(1, Ordering::Relaxed);
        let mut has_slept = false;
        while state.member(self.place).epoch == key.0 {
            if state.step().is_some() {
                if std::mem::take(&mut state.is_moved) {
                    shared.moved.notify_all();
                }
                continue;
            }
            // What woke it was for others. It sleeps no second time: the first may have taken all of its time.
            if std::mem::replace(&mut has_slept, true) {
                break;
            }
            let waited = shared.moved.wait_timeout(state, timeout);
            let (again, end) = waited.unwrap_or_else(PoisonError::into_inner);
            state = again;
            if end.timed_out() {
                self.pass(&mut state, timeout);
                break;
            }
        }
        shared.sleeping.fetch_sub(1, Ordering::Relaxed);
    }

    fn disarm(&self) {}

    fn wake(&self) {
        self.shared.with(|state| state.tell(self.place));
    }

    fn call_at(&self, at: Time) -> bool {
        self.shared.with(|state| {
            if state.has_tasks {
                let at = Moment::default() + Span::nanos(at.as_nanos());
                let at = at.max(state.now);
                state.queue.push(at, 0, Event::Alarm(self.place.0));
            }
            state.has_tasks
        })
    }
}
