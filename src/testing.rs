//! Jobs inside of a test: each rank is a thread with a [`Session`] of its own, over shared memory.
//!
//! A test that opens a [`Session`] under `cargo test` is a job of one rank, and passes whatever the other ranks would have
//! done. Here the ranks are there:
//!
//! ```
//! use tagwire::testing;
//!
//! let sums = testing::job(3, |session| {
//!     let mut sum = [u64::from(session.rank())];
//!     session.world().allreduce(&mut sum, tagwire::Sum).unwrap();
//!     sum[0]
//! });
//! assert_eq!(sums, [3, 3, 3]);
//! ```
//!
//! The feature `testing` brings this module; a program needs it for its tests alone:
//!
//! ```toml
//! [dev-dependencies]
//! tagwire = { path = "../tagwire", features = ["testing"] }
//! ```
//!
//! - Ranks are threads of one process: what a program keeps in statics is there once for all of them.
//! - A rank that panics fails for the others, whose operations with it end with an error; the test panics as the first one
//!   did.
//! - Ranks that hang are made to report what they wait for, on standard error, and the test panics ([`Job::timeout`]).
//!
//! On a simulated network ([`Job::simulated`]) time is virtual, one rank runs at a time, and a seed decides which one, and what of several things
//! comes first. So a seed with which a program goes wrong makes it go wrong again, and a second of waiting costs nothing. Messages may be late
//! there and overtake each other, and ranks be killed:
//!
//! ```
//! use std::time::Duration;
//! use tagwire::testing::Job;
//!
//! for seed in 0..10 {
//!     let heard = Job::new(3)
//!         .simulated(seed)
//!         .delay(Duration::from_micros(50))
//!         .kill(2, Duration::from_millis(1))
//!         .run(|session| {
//!             let mut byte = [0_u8];
//!             // Nothing comes of it but the news that rank 2 is dead.
//!             session.world().recv(&mut byte, 2, 1).is_err()
//!         });
//!     assert_eq!(heard, [true, true]);
//! }
//! ```
//!
//! Tests that want processes run whole under the launcher, each rank through all of the tests:
//!
//! ```text
//! CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="tagwire run -n 3 --tag-output --" cargo test -- --test-threads 1
//! ```

use std::any::Any;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_sim::{Kill, Schedule};

use crate::session::Session;

mod ground;

use ground::Ground;

/// How long a job may take, unless [`Job::timeout`] says so.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long ranks that hang have to report what they wait for, and to end once they have been told that all others failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs `body` on each rank of a job of `size`. Returns what the ranks returned, in their order.
///
/// # Panics
/// As [`Job::run`].
pub fn job<R: Send>(size: u32, body: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    Job::new(size).run(body)
}

/// A job inside of a test, with more to choose than [`job`] has.
///
/// ```
/// use std::time::Duration;
/// use tagwire::testing::Job;
///
/// let ranks = Job::new(2)
///     .timeout(Duration::from_secs(10))
///     .setting("pml", "cm")
///     .run(|session| session.rank());
/// assert_eq!(ranks, [0, 1]);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a job does nothing until it runs"]
pub struct Job {
    size: u32,
    timeout: Duration,
    settings: Vec<(String, String)>,
    /// What a seed decides, of a job on a simulated network.
    schedule: Option<Schedule>,
}

impl Job {
    /// Returns a job of `size` ranks.
    ///
    /// # Panics
    /// When `size` is 0.
    pub fn new(size: u32) -> Self {
        assert!(size > 0, "a job has at least one rank");
        Self {
            size,
            timeout: TIMEOUT,
            settings: Vec::new(),
            schedule: None,
        }
    }

    /// Puts the ranks on a simulated network, where all that they do follows from `seed`, as long as they wait for each other by their
    /// sessions alone: a rank has its turn until a call finds nothing, and one that waits in another way has all others wait. Clocks of
    /// sessions are virtual, as is the time of their waits; [`timeout`](Self::timeout) is of the machine's clock. The transport moves bytes:
    /// the setting `pml` may be `ob1` or `dr`.
    pub fn simulated(mut self, seed: u64) -> Self {
        self.schedule().seed = seed;
        self
    }

    /// Lets messages be late by up to `most` of virtual time, on a [simulated](Self::simulated) network, of seed 0 where none was named.
    pub fn delay(mut self, most: Duration) -> Self {
        self.schedule().delay = most;
        self
    }

    /// Lets messages that are [late](Self::delay) be overtaken by others from their sender to their receiver, on a
    /// [simulated](Self::simulated) network.
    pub fn reorder(mut self) -> Self {
        self.schedule().reorder = true;
        self
    }

    /// Kills `rank` after `time`, in virtual time, on a [simulated](Self::simulated) network. Its thread goes on, cut off: for it all others have
    /// failed, and what its body returns, or that it panics, is of no account. [`run`](Self::run) returns what the others do.
    pub fn kill(mut self, rank: u32, time: Duration) -> Self {
        self.schedule().kills.push(Kill { rank, at: time });
        self
    }

    /// Returns what is decided by a seed, of a job that is on a simulated network from now on.
    fn schedule(&mut self) -> &mut Schedule {
        self.schedule.get_or_insert_with(|| Schedule {
            shuffle: true,
            ..Schedule::default()
        })
    }

    /// Ends the job as one that hangs after `timeout`; 60 s without this.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets a setting of each rank, over what the environment says. See `tagwire info settings` for their names.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Runs `body` on each rank. Returns what the ranks returned, in their order, once all have closed their sessions. What is left out are
    /// those that were [killed](Self::kill).
    ///
    /// # Panics
    /// - As the first rank that panicked, in `body` or since its session could not be opened or closed.
    /// - When the job has not ended in time. Each rank that waits reports on standard error what for, and waits of all
    ///   ranks end with an error then. A rank that does not end even so cannot be ended alone: the process exits with
    ///   status 101.
    pub fn run<R: Send>(self, body: impl Fn(&Session) -> R + Sync) -> Vec<R> {
        let ground = Ground::new(self.size, self.schedule.as_ref());
        let watch = Watch::new(self.size);
        let ends = thread::scope(|scope| {
            let start = |number: u32| {
                let (this, ground, watch, body) = (&self, &ground, &watch, &body);
                let rank = move || {
                    let end =
                        catch_unwind(AssertUnwindSafe(|| this.rank(number, ground, watch, body)));
                    let rank = Rank::new(number);
                    // Nothing that one does after its death is of account.
                    if ground.is_killed(rank) {
                        watch.end(number, false);
                        return None;
                    }
                    if end.is_err() {
                        ground.fail(rank);
                        this.say_seed();
                    }
                    watch.end(number, end.is_err());
                    Some(end)
                };
                thread::Builder::new()
                    .name(format!("rank {number}"))
                    .spawn_scoped(scope, rank)
                    .unwrap_or_else(|error| panic!("there is no thread for rank {number}: {error}"))
            };
            let ranks: Vec<_> = (0..self.size).map(start).collect();
            let hung = self.look_after(&ground, &watch);
            let ends = ranks
                .into_iter()
                .map(|rank| rank.join().unwrap_or_else(|panic| Some(Err(panic))));
            let ends: Vec<_> = ends.collect();
            match hung {
                Some(hung) => Err(Box::new(hung) as Box<dyn Any + Send>),
                None => Ok(ends),
            }
        });
        let mut ends = ends.unwrap_or_else(|hung| resume_unwind(hung));
        if let Some(first) = watch.state().first_panic {
            let first = ends.swap_remove(first as usize).and_then(Result::err);
            if let Some(panic) = first {
                resume_unwind(panic);
            }
        }
        ends.into_iter().flatten().flatten().collect()
    }

    /// One rank, from its opening to its end.
    fn rank<R>(
        &self,
        number: u32,
        ground: &Ground,
        watch: &Watch,
        body: &impl Fn(&Session) -> R,
    ) -> R {
        let mut builder = Session::builder();
        for (name, value) in &self.settings {
            builder = builder.setting(name, value);
        }
        let rank = Rank::new(number);
        let _turn = ground.begin(rank);
        let session = ground
            .open(rank, builder)
            .unwrap_or_else(|error| panic!("rank {number} cannot open its session: {error}"));
        watch.opened(number, session.dump_flag());
        let value = body(&session);
        if let Err(error) = session.close() {
            panic!("rank {number} cannot close its session: {error}");
        }
        value
    }

    /// Says on standard error how what has gone wrong is had again.
    fn say_seed(&self) {
        if let Some(Schedule { seed, .. }) = &self.schedule {
            eprintln!("tagwire: the ranks are on a simulated network, with seed {seed}");
        }
    }

    /// Waits until all ranks have ended. Returns which have not in time, in words; they have then, or this process does.
    fn look_after(&self, ground: &Ground, watch: &Watch) -> Option<String> {
        if watch.wait(self.timeout, State::have_all_ended) {
            return None;
        }
        let report = watch.report(self.size, self.timeout);
        self.say_seed();
        (0..self.size).for_each(|rank| ground.fail(Rank::new(rank)));
        if !watch.wait(PATIENCE, State::have_all_ended) {
            eprintln!("{report}; not all of them can be ended");
            std::process::exit(101);
        }
        Some(report)
    }
}

/// How far the ranks are.
#[derive(Debug)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ranks: Vec<Progress>,
    /// The rank that panicked before all others did.
    first_panic: Option<u32>,
}

#[derive(Debug, Clone)]
enum Progress {
    Opening,
    /// The flag asks the rank what it waits for.
    Open(Arc<AtomicBool>),
    Ended,
}

impl State {
    fn have_all_ended(&self) -> bool {
        let mut ranks = self.ranks.iter();
        ranks.all(|rank| matches!(rank, Progress::Ended))
    }

    /// Returns whether each rank that was asked has begun to report.
    fn have_all_reported(&self) -> bool {
        self.ranks
            .iter()
            .all(|rank| !matches!(rank, Progress::Open(flag) if flag.load(Relaxed)))
    }
}

impl Watch {
    fn new(size: u32) -> Self {
        Self {
            state: Mutex::new(State {
                ranks: vec![Progress::Opening; size as usize],
                first_panic: None,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, rank: u32, flag: Arc<AtomicBool>) {
        self.state().ranks[rank as usize] = Progress::Open(flag);
    }

    fn end(&self, rank: u32, panicked: bool) {
        let mut state = self.state();
        state.ranks[rank as usize] = Progress::Ended;
        if panicked {
            state.first_panic.get_or_insert(rank);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until it is so. Returns whether it is, at the latest after `timeout`.
    fn wait(&self, timeout: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let waits = |state: &mut State| !is_so(state);
        let waited = self
            .changed
            .wait_timeout_while(self.state(), timeout, waits);
        let (state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        !outcome.timed_out()
    }

    /// Asks all open ranks what they wait for, which each prints itself. Returns which have not ended, and what of them is known.
    fn report(&self, size: u32, timeout: Duration) -> String {
        let ask = |rank: &Progress| {
            if let Progress::Open(flag) = rank {
                flag.store(true, Relaxed);
            }
        };
        self.state().ranks.iter().for_each(ask);
        // Nobody is told when a rank has reported.
        for _ in 0..100 {
            if self.wait(Duration::from_millis(20), State::have_all_reported) {
                break;
            }
        }
        let mut text = format!("the job of {size} ranks has not ended within {timeout:?}");
        for (rank, progress) in self.state().ranks.iter().enumerate() {
            let what = match progress {
                Progress::Opening => "opens its session",
                Progress::Open(flag) if flag.load(Relaxed) => "makes no call",
                Progress::Open(_) => "waits: see its report on standard error",
                Progress::Ended => continue,
            };
            let _ = write!(text, "; rank {rank} {what}");
        }
        text
    }
}
