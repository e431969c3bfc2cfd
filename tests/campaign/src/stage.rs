//! One rank of a trial: what its program needs, and what strikes it from inside.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tagwire::{Error, Failure, Session};

use crate::blow::Blow;
use crate::disturbances::{self, Moment, SLOW};
use crate::events::{Progress, Stream, Word, say};

/// How often a rank says how far it is.
const EVERY: Duration = Duration::from_millis(50);
/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);
/// `RANK:MILLISECONDS`: that rank makes no progress for so long, once an operation of it has ended, and goes on saying how far it is.
/// Tests set it, to see whether that is found.
const STALL: &str = "CAMPAIGN_STALL";

/// What a rank is given on its command line.
#[derive(Debug, Clone, clap::Args)]
pub struct RankOptions {
    /// The program
    pub program: String,
    /// The seed of the trial
    pub seed: u64,
    /// A file: once it is there, the program ends
    pub end: PathBuf,
    /// What strikes the job
    pub blows: Vec<Blow>,
}

/// A rank of a trial.
#[derive(Debug)]
pub struct Stage {
    /// The seed of the trial.
    pub seed: u64,
    /// This rank's number.
    pub me: u32,
    end: PathBuf,
    blows: Vec<Blow>,
    said: Cell<Instant>,
    looked: Cell<Instant>,
    ends: Cell<bool>,
    checked: Cell<u64>,
    progress: RefCell<Progress>,
    stall: Cell<Option<Duration>>,
}

/// A rank that does nothing before others have done something. It goes on when this is dropped.
#[derive(Debug)]
#[must_use = "the rank waits as long as this lives"]
pub struct Waiting<'a>(&'a Stage);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.progress.borrow_mut().waits_for.clear();
    }
}

/// What a program ends with when something is not as it must be.
#[derive(Debug)]
pub enum Trouble {
    /// It could not join.
    Unopened(String),
    /// Something is wrong.
    Wrong(String),
}

impl Trouble {
    /// Returns it with what went before.
    pub fn after(self, what: &str) -> Self {
        match self {
            Self::Wrong(why) => Self::Wrong(format!("{why}, after: {what}")),
            other => other,
        }
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Wrong(error.to_string())
    }
}

impl Stage {
    /// Returns that of a rank.
    pub fn new(options: RankOptions, me: u32) -> Self {
        let now = Instant::now();
        Self {
            seed: options.seed,
            me,
            end: options.end,
            blows: options
                .blows
                .into_iter()
                .filter(|blow| blow.rank == me)
                .collect(),
            said: Cell::new(now),
            looked: Cell::new(now),
            ends: Cell::new(false),
            checked: Cell::new(0),
            progress: RefCell::default(),
            stall: Cell::new(stall(me)),
        }
    }

    /// Joins the job.
    ///
    /// # Errors
    /// When that fails.
    pub fn open(&self, builder: tagwire::Builder) -> Result<Session, Trouble> {
        self.strike(Moment::Opening);
        let session = builder
            .open()
            .map_err(|why| Trouble::Unopened(why.to_string()))?;
        self.say(&Word::Ready);
        Ok(session)
    }

    /// Is struck by what happens before a rank opens, where it does that by itself.
    pub fn before_opening(&self) {
        self.strike(Moment::Opening);
    }

    /// Returns the seed of the trial, and the file that ends it.
    pub fn of_trial(&self) -> (u64, &std::path::Path) {
        (self.seed, &self.end)
    }

    /// Returns what programs in C do by themselves at a step, in the order of their arguments: how long they sleep, in microseconds,
    /// and how long they stall once, in milliseconds.
    pub fn of_steps(&self) -> [u64; 2] {
        let sleeps = self.blows.iter().filter(|blow| blow.name == SLOW);
        let stall = self.stall.get().unwrap_or_default();
        [
            sleeps.map(|blow| blow.amount).sum(),
            stall.as_millis() as u64,
        ]
    }

    fn strike(&self, moment: Moment) {
        for blow in &self.blows {
            disturbances::of(blow).inside(blow, moment);
        }
    }

    /// Marks a step of the program: `checked` messages or operations have ended, and were as they must be. Returns whether the
    /// program is to end.
    pub fn step(&self, checked: u64) -> bool {
        self.checked.set(self.checked.get() + checked);
        self.ended(checked);
        if !self.blows.is_empty() {
            let began = Instant::now();
            self.strike(Moment::Step);
            self.progress.borrow_mut().slept += began.elapsed();
        }
        let now = Instant::now();
        if now - self.said.get() >= EVERY {
            self.said.set(now);
            self.say(&Word::Alive(self.progress.borrow().clone()));
        }
        let ended = self.progress.borrow().ended;
        if ended > 0
            && let Some(stall) = self.stall.take()
        {
            while now.elapsed() < stall {
                self.step(0);
                std::thread::sleep(LOOK);
            }
        }
        if !self.ends.get() && now - self.looked.get() >= LOOK {
            self.looked.set(now);
            self.ends.set(self.end.exists());
        }
        self.ends.get()
    }

    /// Counts operations that have ended, or begun without a wait, and of which nothing is to be checked.
    pub fn ended(&self, count: u64) {
        self.progress.borrow_mut().ended += count;
    }

    /// Says, as long as the value lives, that the rank does nothing before these ranks have done something: nothing of it has to
    /// end while one of them goes on.
    pub fn waits_for(&self, peers: impl IntoIterator<Item = u32>) -> Waiting<'_> {
        self.progress.borrow_mut().waits_for.extend(peers);
        Waiting(self)
    }

    /// Says how many messages of a stream have ended, `None` where it has none under way. Whoever says this looks after the stream at
    /// each step: it goes on all the time, whatever else the two ranks do.
    pub fn stream(&self, stream: Stream, ended: Option<u64>) {
        let streams = &mut self.progress.borrow_mut().streams;
        match ended {
            Some(ended) => streams.insert(stream, ended),
            None => streams.remove(&stream),
        };
    }

    /// Says a word.
    pub fn say(&self, word: &Word) {
        say(self.me, word);
    }

    /// Leaves the job.
    ///
    /// # Errors
    /// When that fails.
    pub fn close(&self, session: Session) -> Result<(), Trouble> {
        self.say(&Word::Closing(self.checked.get()));
        Ok(session.close()?)
    }
}

/// Returns how long a rank stalls, where a test asks for that.
fn stall(me: u32) -> Option<Duration> {
    let text = std::env::var(STALL).ok()?;
    let (rank, millis) = text.split_once(':')?;
    let millis = (rank.parse() == Ok(me)).then(|| millis.parse().ok());
    millis.flatten().map(Duration::from_millis)
}

/// Returns whose end an error tells of, where it tells of one.
pub fn whose(error: &Error) -> Option<u32> {
    match error.failure()? {
        Failure::PeerFailed(rank)
        | Failure::PeerLeft(rank)
        | Failure::Protocol(rank)
        | Failure::Unreachable(rank) => Some(rank.as_u32()),
        _ => None,
    }
}
