//! Ranks as futures: a simulation takes the next event, and polls the rank for which something came.
//!
//! A rank's body is an asynchronous function: it reads as a program does, and a rank that waits is as large as what it has to
//! remember. A thread for each would take a stack, and the kernel would choose who goes on. State machines by hand would take
//! no less, and each program would be written twice.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tagwire_base::Rank;

use crate::carry::Stepped;
use crate::cores::Left;
use crate::member::Status;
use crate::network::SimNetwork;
use crate::place::Place;
use crate::shared::Shared;
use crate::state::State;
use crate::threads::ThreadNumber;
use crate::time::{Moment, Span};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What the threads of a rank do.
#[derive(Default)]
struct Tasks {
    first: Option<Task>,
    others: Vec<Option<Task>>,
}

impl Tasks {
    fn at(&mut self, number: ThreadNumber) -> Option<&mut Option<Task>> {
        match number.0 {
            0 => Some(&mut self.first),
            other => self.others.get_mut(other as usize - 1),
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.iter().all(Option::is_none)
    }
}

/// Nothing is left to happen, and ranks have not ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} wait for what never comes, {} after the start", Waiting(ranks), at.since_start())]
pub struct Stuck {
    /// Those that wait.
    pub ranks: Vec<Rank>,
    /// When the last event was.
    pub at: Moment,
}

/// The first of the ranks that wait, in words.
struct Waiting<'a>(&'a [Rank]);

impl fmt::Display for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 8;
        let names: Vec<_> = self.0.iter().take(NAMED).map(Rank::to_string).collect();
        write!(f, "{} ranks ({}", self.0.len(), names.join(", "))?;
        match self.0.len() > NAMED {
            true => f.write_str(", ...)"),
            false => f.write_str(")"),
        }
    }
}

/// Runs the ranks of a network in one thread.
pub struct Simulation {
    network: SimNetwork,
    /// By place.
    tasks: Vec<Tasks>,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// Returns a simulation of the ranks of `network`, which are driven by nothing else from now on.
    #[must_use]
    pub fn new(network: &SimNetwork) -> Self {
        network.shared.with(|state| state.has_tasks = true);
        Self {
            network: network.clone(),
            tasks: Vec::new(),
        }
    }

    /// Has a thread of a rank do `body` from the start on. It owns what the rank is: where it dies, this is dropped.
    pub fn spawn(&mut self, actor: &Actor, body: impl Future<Output = ()> + 'static) {
        let (place, number) = (actor.place, actor.thread);
        if self.tasks.len() <= place.index() {
            self.tasks.resize_with(place.index() + 1, Tasks::default);
        }
        let tasks = &mut self.tasks[place.index()];
        if tasks.others.len() < number.0 as usize {
            tasks.others.resize_with(number.0 as usize, || None);
        }
        if let Some(slot) = tasks.at(number) {
            *slot = Some(Box::pin(body));
        }
        self.network.shared.with(|state| state.wake(place, number));
    }

    /// Runs until every rank has ended.
    ///
    /// # Errors
    /// [`Stuck`] where ranks wait, and nothing is left to happen.
    pub fn run(&mut self) -> Result<(), Stuck> {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(next) = self.network.shared.with(next_of_ranks) {
            match next {
                Stepped::Done => {}
                Stepped::Run(place, number) => {
                    let tasks = self.tasks.get_mut(place.index());
                    let Some(slot) = tasks.and_then(|tasks| tasks.at(number)) else {
                        continue;
                    };
                    let has_ended = slot
                        .as_mut()
                        .is_none_or(|task| task.as_mut().poll(&mut context).is_ready());
                    if has_ended {
                        // What it owned says goodbye, and does not while the table is borrowed.
                        let ended = slot.take();
                        drop(ended);
                    }
                }
                Stepped::Killed(place) => {
                    let tasks = self.tasks.get_mut(place.index()).map(std::mem::take);
                    drop(tasks);
                }
            }
        }
        let waiting = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, tasks)| !tasks.is_empty());
        let waiting: Vec<_> = waiting.map(|(index, _)| index).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        Err(self.network.shared.with(|state| Stuck {
            ranks: waiting
                .into_iter()
                .map(|index| state.members[index].rank)
                .collect(),
            at: state.now,
        }))
    }
}

/// Has events happen up to one that is a rank's; `None` where none is left.
fn next_of_ranks(state: &mut State) -> Option<Stepped> {
    loop {
        match state.step()? {
            Stepped::Done => {}
            other => return Some(other),
        }
    }
}

/// A thread of a rank of a simulation, as its body sees it. One future at a time waits by it.
#[derive(Debug, Clone)]
pub struct Actor {
    shared: Arc<Shared>,
    place: Place,
    rank: Rank,
    thread: ThreadNumber,
}

impl SimNetwork {
    /// Returns the first thread of a rank, which is open, as its body sees it.
    ///
    /// # Panics
    /// When it was not opened.
    #[must_use]
    pub fn actor(&self, rank: Rank) -> Actor {
        let place = self.shared.with(|state| state.find(rank));
        Actor {
            shared: Arc::clone(&self.shared),
            place: place.unwrap_or_else(|| panic!("{rank:?} was not opened")),
            rank,
            thread: ThreadNumber(0),
        }
    }
}

impl Actor {
    /// Returns one more thread of the rank. It waits, computes and sleeps by itself. Messages cost it the time that they cost any
    /// thread of the rank, and one of them at a time is in the library.
    #[must_use]
    pub fn thread(&self) -> Self {
        let add = |state: &mut State| {
            let now = state.now;
            state.member(self.place).threads.add(now)
        };
        Self {
            thread: self.shared.with(add),
            ..self.clone()
        }
    }

    /// Has the other threads of the rank that wait look again, at the moment up to which the one that runs is busy.
    pub fn wake(&self) {
        self.shared.with(|state| state.tell(self.place));
    }

    /// Returns the rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns up to when the thread was busy.
    #[must_use]
    pub fn now(&self) -> Moment {
        let local = |state: &mut State| state.member(self.place).threads.at(self.thread).local;
        self.shared.with(local)
    }

    /// Returns how many messages the rank has sent, those of its collectives and of the layers above among them.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.shared.with(|state| state.member(self.place).sent)
    }

    /// Waits until something has come for the rank since the thread was last polled. May end early without cause.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let mut is_waiting = false;
        std::future::poll_fn(move |_| match std::mem::replace(&mut is_waiting, true) {
            false => Poll::Pending,
            true => Poll::Ready(()),
        })
    }

    /// Computes for `time` of a core's time. What comes meanwhile waits.
    pub fn compute(&self, time: Duration) -> impl Future<Output = ()> + use<> {
        let left = Left::Work(Span::from(time));
        self.busy(move |state, place, thread| state.compute(place, thread, left))
    }

    /// Computes until `time` has passed since it had a core, as a loop does that looks at the clock: what others of its node
    /// have of the core meanwhile counts. What comes meanwhile waits.
    pub fn compute_by_clock(&self, time: Duration) -> impl Future<Output = ()> + use<> {
        let left = Left::Clock(Span::from(time));
        self.busy(move |state, place, thread| state.compute(place, thread, left))
    }

    /// Sleeps for `time`, without a core. What comes meanwhile waits.
    pub fn sleep(&self, time: Duration) -> impl Future<Output = ()> + use<> {
        self.busy(move |state, place, thread| {
            let late = state.machine().map_or(Span::ZERO, |machine| machine.wake);
            let late = state.drawn(late);
            state.sleep(place, thread, Span::from(time) + late);
        })
    }

    /// Has left the library, which other threads that wait for it enter before this one does again.
    pub fn give_way(&self) -> impl Future<Output = ()> + use<> {
        self.busy(|state, place, thread| state.sleep(place, thread, Span::ZERO))
    }

    /// Waits until what `begin` begins has ended.
    fn busy<F>(&self, begin: F) -> impl Future<Output = ()> + use<F>
    where
        F: Fn(&mut State, Place, ThreadNumber),
    {
        let (shared, place, thread) = (Arc::clone(&self.shared), self.place, self.thread);
        let mut has_begun = false;
        std::future::poll_fn(move |_| {
            if std::mem::replace(&mut has_begun, true) {
                return Poll::Ready(());
            }
            shared.with(|state| begin(state, place, thread));
            Poll::Pending
        })
    }

    /// Returns whether the rank is alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let status = self.shared.with(|state| state.member(self.place).status);
        status == Status::Open
    }
}
