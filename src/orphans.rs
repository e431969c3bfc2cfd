//! Buffers of operations that were dropped before their end.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tagwire_pml::{Messenger, RequestId};

/// The buffer of a dropped operation, kept until the operation is complete.
struct Orphan {
    request: RequestId,
    /// The request is to be freed at its end.
    persistent: bool,
    buffer: Box<dyn Send>,
}

/// The buffer of a dropped partitioned operation, kept until its peer cannot touch it any more.
struct Part {
    /// Whether that is so by now.
    is_settled: Box<dyn Fn() -> bool + Send>,
    buffer: Box<dyn Send>,
}

/// Buffers of operations that were dropped before their end.
#[derive(Default)]
pub(crate) struct Orphans {
    requests: Mutex<Vec<Orphan>>,
    parts: Mutex<Vec<Part>>,
}

impl fmt::Debug for Orphans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = lock(&self.requests).len() + lock(&self.parts).len();
        write!(f, "Orphans({count})")
    }
}

impl Orphans {
    pub(crate) fn adopt(&self, request: RequestId, persistent: bool, buffer: Box<dyn Send>) {
        let orphan = Orphan {
            request,
            persistent,
            buffer,
        };
        lock(&self.requests).push(orphan);
    }

    /// Keeps `buffer` until `is_settled`.
    pub(crate) fn adopt_part(
        &self,
        is_settled: Box<dyn Fn() -> bool + Send>,
        buffer: Box<dyn Send>,
    ) {
        lock(&self.parts).push(Part { is_settled, buffer });
    }

    /// Frees what is complete.
    pub(crate) fn reap(&self, messenger: &Messenger) {
        lock(&self.parts).retain(|part| !(part.is_settled)());
        lock(&self.requests).retain(|orphan| match messenger.test(orphan.request) {
            Ok(Some(_)) => orphan.persistent && messenger.free(orphan.request).is_err(),
            Err(tagwire_pml::Error::StaleRequest) => false,
            _ => true,
        });
    }

    /// Leaves the rest to the end of the process: a peer may still touch it.
    pub(crate) fn abandon(&self) {
        let requests = lock(&self.requests).drain(..).collect::<Vec<_>>();
        requests
            .into_iter()
            .for_each(|orphan| std::mem::forget(orphan.buffer));
        let parts = lock(&self.parts).drain(..).collect::<Vec<_>>();
        parts
            .into_iter()
            .for_each(|part| std::mem::forget(part.buffer));
    }
}

fn lock<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
