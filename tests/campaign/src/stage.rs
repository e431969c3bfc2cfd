//! One rank of a trial: what its program needs, and what strikes it from inside.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tagwire::{Error, Failure, Session};

use crate::blow::Blow;
use crate::disturbances::{self, Moment};
use crate::events::{Word, say};

/// How often a rank says that it is not stuck.
const EVERY: Duration = Duration::from_millis(50);
/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);

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

    fn strike(&self, moment: Moment) {
        for blow in &self.blows {
            disturbances::of(blow).inside(blow, moment);
        }
    }

    /// Marks a step of the program: nothing is stuck here, and `checked` messages or operations were as they must be.
    /// Returns whether the program is to end.
    pub fn step(&self, checked: u64) -> bool {
        self.checked.set(self.checked.get() + checked);
        self.strike(Moment::Step);
        let now = Instant::now();
        if now - self.said.get() >= EVERY {
            self.said.set(now);
            self.say(&Word::Alive);
        }
        if !self.ends.get() && now - self.looked.get() >= LOOK {
            self.looked.set(now);
            self.ends.set(self.end.exists());
        }
        self.ends.get()
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
