//! A lock of state that a panic leaves as it was, or that nobody asks for after one: it has no poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
