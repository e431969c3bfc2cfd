//! Engines whose answers somebody judges, and those whose answers end the program.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::engine::Engine;

/// An engine that is opened for somebody who judges its answers.
pub struct Judged {
    /// The engine.
    pub engine: Box<dyn Engine + Send>,
    /// What it answered that no engine can.
    pub impossible: Impossible,
}

/// The first answer of an engine that no call has: in its place the caller of the engine was given one that there is.
#[derive(Debug, Clone, Default)]
pub struct Impossible(Arc<OnceLock<String>>);

impl Impossible {
    /// Notes an answer, in words that follow on the engine's name.
    pub fn note(&self, answer: impl FnOnce() -> String) {
        self.0.get_or_init(answer);
    }

    /// Returns the answer.
    #[must_use]
    pub fn told(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl Judged {
    /// Returns an engine whose answers are of the kinds that there are, right or wrong.
    #[must_use]
    pub fn of(engine: Box<dyn Engine + Send>) -> Self {
        Self {
            engine,
            impossible: Impossible::default(),
        }
    }
}

impl fmt::Debug for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judged")
            .field("impossible", &self.impossible)
            .finish_non_exhaustive()
    }
}

/// Ends the program at an answer of an engine that cannot be, or at an engine that cannot be made.
///
/// # Panics
/// It does, with a message that [`refusal`] knows.
#[cold]
pub fn refuse(engine: &dyn fmt::Display, why: &dyn fmt::Display) -> ! {
    panic!("{REFUSED}{engine}' {why}")
}

/// Returns what [`refuse`] said, of the payload of a panic that was caught.
#[must_use]
pub fn refusal(payload: &(dyn Any + Send)) -> Option<&str> {
    let said = payload.downcast_ref::<String>()?;
    said.starts_with(REFUSED).then_some(said.as_str())
}

const REFUSED: &str = "the matching engine '";
