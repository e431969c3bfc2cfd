//! Communicators that were freed while requests of theirs were there: errors of these still go by their error handlers
//! (MPI-5.0, sections 7.4.3 and 9.3).

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::Comm;
use crate::object::errhandler::Handler;

/// The error handlers of freed communicators that have requests.
#[derive(Debug, Default)]
pub(crate) struct Freed(Mutex<Vec<(Comm, Handler)>>);

impl Freed {
    fn held(&self) -> MutexGuard<'_, Vec<(Comm, Handler)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a communicator in, and forgets those that have no requests any more, as `has_requests` says.
    pub(crate) fn enter(&self, comm: Comm, handler: Handler, has_requests: impl Fn(Comm) -> bool) {
        let mut held = self.held();
        held.retain(|(other, _)| *other != comm && has_requests(*other));
        if has_requests(comm) {
            held.push((comm, handler));
        }
    }

    /// Returns the error handler of one.
    pub(crate) fn handler(&self, comm: Comm) -> Option<Handler> {
        let held = self.held();
        let found = held.iter().find(|(other, _)| *other == comm);
        found.map(|(_, handler)| handler.clone())
    }
}
