//! How long ranks wait for those that come late.

use std::time::{Duration, Instant};

use tagwire_base::config::parse;

use crate::error::{Error, Result};

/// The variable that says how long a rank waits for the others of its job to come, where no launcher of ours reports
/// those that never do. A duration with its unit.
pub const LATE: &str = "TAGWIRE_LATE_RANKS";

/// How long, where nothing is said.
const DEFAULT: Duration = Duration::from_secs(60);

/// Pauses between two looks for what is not there yet: short at first.
#[derive(Debug)]
pub(crate) struct Pauses(Duration);

impl Pauses {
    const FIRST: Duration = Duration::from_micros(200);
    const LONGEST: Duration = Duration::from_millis(20);

    pub(crate) const fn new() -> Self {
        Self(Self::FIRST)
    }

    /// Sleeps, and longer the next time.
    pub(crate) fn sleep(&mut self) {
        std::thread::sleep(self.0);
        self.0 = Self::LONGEST.min(self.0 * 2);
    }
}

/// When something is to be over, if ever.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Begins to count; `None`, and a time that no clock reaches, have no end.
    #[must_use]
    pub fn within(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// Returns when that is.
    #[must_use]
    pub const fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Returns how much time is left; `None` where there is no end.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(Instant::now()))
    }
}

/// Tries of what may not be possible yet, within some time.
#[derive(Debug)]
pub(crate) struct Tries {
    deadline: Deadline,
    pauses: Pauses,
}

impl Tries {
    /// Begins to count; a time that no clock reaches has no end.
    pub(crate) fn within(patience: Duration) -> Self {
        Self {
            deadline: Deadline::within(Some(patience)),
            pauses: Pauses::new(),
        }
    }

    /// Returns how much time is left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.left().unwrap_or(Duration::MAX)
    }

    /// Pauses, and returns whether there is time for another try.
    pub(crate) fn again(&mut self) -> bool {
        let is_in_time = !self.left().is_zero();
        if is_in_time {
            self.pauses.sleep();
        }
        is_in_time
    }
}

/// What ends a wait before its time.
#[derive(Debug)]
pub(crate) struct Stop {
    /// Who, for people.
    pub why: String,
    /// The exit status that it means.
    pub status: i32,
}

/// Returns how long this rank waits for the others.
///
/// # Errors
/// When the variable holds no duration.
pub(crate) fn of_environment() -> Result<Duration> {
    let Some(value) = std::env::var_os(LATE) else {
        return Ok(DEFAULT);
    };
    let text = value.to_str().unwrap_or_default();
    parse::duration(text)
        .map_err(|error| Error::Environment(format!("{LATE} is {value:?}: {error}")))
}
