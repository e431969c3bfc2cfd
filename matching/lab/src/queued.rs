//! What an engine must hold in one of its queues, and what it returns of it.

use std::fmt;

use tagwire_matching::{CancelOutcome, Capacity, Cookie, Envelope, Handle, QueueStats};

/// What is queued in one queue, in order, and what was.
pub(crate) struct Line<T> {
    pub(crate) entries: Vec<Entry<T>>,
    capacity: usize,
    /// Every entry that was ever queued: its handle, and the step that queued it.
    pub(crate) queued: Vec<(Handle, Cookie)>,
    pub(crate) stats: QueueStats,
    /// What an entry is called.
    noun: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) struct Entry<T> {
    pub(crate) what: T,
    pub(crate) cookie: Cookie,
    handle: Handle,
}

impl<T: Copy + PartialEq> Line<T> {
    pub(crate) fn new(noun: &'static str, capacity: u32) -> Self {
        Self {
            entries: Vec::new(),
            capacity: capacity.min(Capacity::MAX) as usize,
            queued: Vec::new(),
            stats: QueueStats::default(),
            noun,
        }
    }

    pub(crate) fn push(
        &mut self,
        what: T,
        cookie: Cookie,
        handle: Handle,
    ) -> Result<Answer, String> {
        let noun = self.noun;
        if self.entries.len() >= self.capacity {
            return Err(format!(
                "the {noun} was queued, and {} are all that it may hold",
                self.capacity
            ));
        }
        if let Some(other) = self.entries.iter().find(|entry| entry.handle == handle) {
            return Err(format!(
                "the {noun} has the handle of that of line {}",
                other.cookie.0
            ));
        }
        self.entries.push(Entry {
            what,
            cookie,
            handle,
        });
        self.queued.push((handle, cookie));
        self.stats.queued += 1;
        self.stats.high_water = self.stats.high_water.max(self.entries.len() as u32);
        Ok(Answer::Queued)
    }

    pub(crate) fn is_full(&self) -> Result<Answer, String> {
        if self.entries.len() >= self.capacity {
            return Ok(Answer::Full);
        }
        Err(format!(
            "there is no room for the {}, and {} of {} are queued",
            self.noun,
            self.entries.len(),
            self.capacity
        ))
    }

    pub(crate) fn place_of(&self, cookie: Cookie) -> Result<usize, String> {
        let place = self.entries.iter().position(|entry| entry.cookie == cookie);
        place.ok_or_else(|| self.no_such(cookie))
    }

    pub(crate) fn no_such(&self, cookie: Cookie) -> String {
        format!("it gave {} {}, which is not queued", self.noun, cookie.0)
    }

    /// Counts a search that took the entry at a place, or none.
    pub(crate) fn search(&mut self, place: Option<usize>) {
        if self.entries.is_empty() {
            return;
        }
        match place {
            Some(place) => {
                self.entries.remove(place);
                self.stats.hits += 1;
            }
            None => self.stats.misses += 1,
        }
    }

    pub(crate) fn named(&self, which: u32) -> Option<(Handle, Cookie)> {
        let which = (which as usize).checked_rem(self.queued.len())?;
        self.queued.get(which).copied()
    }

    pub(crate) fn withdraw(
        &mut self,
        handle: Handle,
        named: Cookie,
        outcome: CancelOutcome,
    ) -> Result<Answer, String> {
        let of = |entry: &Entry<T>| (entry.handle, entry.cookie) == (handle, named);
        let place = self.entries.iter().position(of);
        let noun = self.noun;
        match (place, outcome) {
            (Some(place), CancelOutcome::Cancelled(cookie)) if cookie == named => {
                self.entries.remove(place);
                Ok(Answer::Took(noun, cookie))
            }
            (None, CancelOutcome::AlreadyMatched) => Ok(Answer::Left(noun, named)),
            (Some(_), CancelOutcome::AlreadyMatched) => Err(format!(
                "the {noun} of line {} is queued, and its handle names nothing",
                named.0
            )),
            (_, CancelOutcome::Cancelled(cookie)) => Err(format!(
                "the handle of the {noun} of line {} named {}",
                named.0, cookie.0
            )),
        }
    }

    pub(crate) fn compare_length(&self, told: usize) -> Result<(), String> {
        match told == self.entries.len() {
            true => Ok(()),
            false => Err(format!(
                "it says that it holds {told} {}s, and they are {}",
                self.noun,
                self.entries.len()
            )),
        }
    }

    /// Compares what the engine visits with what is queued; two neighbours that `swap` allows may come in either order.
    pub(crate) fn compare(
        &self,
        visited: Vec<(T, Cookie)>,
        swap: impl Fn(&T, &T) -> bool,
    ) -> Result<(), String> {
        let mut left: Vec<(T, Cookie)> = self.entries.iter().map(|e| (e.what, e.cookie)).collect();
        for entry in &visited {
            let place = left.iter().position(|one| one == entry);
            let before = place.map(|place| &left[..place]);
            if !before.is_some_and(|before| before.iter().all(|one| swap(&one.0, &entry.0))) {
                return Err(format!(
                    "it visits the {} of line {} where another one should come",
                    self.noun, entry.1.0
                ));
            }
            left.retain(|one| one != entry);
        }
        match left.first() {
            Some((_, cookie)) => Err(format!(
                "it does not visit the {} of line {}",
                self.noun, cookie.0
            )),
            None => Ok(()),
        }
    }
}

impl Line<Envelope> {
    pub(crate) fn envelope_of(&self, cookie: Cookie) -> Option<Envelope> {
        let entry = self.entries.iter().find(|entry| entry.cookie == cookie);
        entry.map(|entry| entry.what)
    }
}

/// What an engine answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// It found or took the entry that the operation of this number queued.
    Took(&'static str, Cookie),
    /// It found none.
    None(&'static str),
    /// The handle of this entry is stale.
    Left(&'static str, Cookie),
    Queued,
    Full,
    Nothing,
}

impl Answer {
    pub(crate) const fn taken(noun: &'static str, given: Option<Cookie>) -> Self {
        match given {
            Some(cookie) => Self::Took(noun, cookie),
            None => Self::None(noun),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Took(noun, cookie) => write!(f, "the {noun} of line {}", cookie.0),
            Self::None(noun) => write!(f, "no {noun}"),
            Self::Left(noun, cookie) => write!(f, "the {noun} of line {} has left", cookie.0),
            Self::Queued => f.write_str("queued"),
            Self::Full => f.write_str("no room"),
            Self::Nothing => f.write_str("-"),
        }
    }
}
