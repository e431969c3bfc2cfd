//! When nothing is begun any more.

use std::time::{Duration, Instant};

/// A time from which on nothing is begun, where there is one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the one in so many seconds.
    pub fn after(seconds: Option<u64>) -> Self {
        Self(seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)))
    }

    /// Whether it has come.
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
