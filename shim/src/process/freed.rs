//! Communicators that were freed while requests of theirs were there: errors of these still go by their error handlers
//! (MPI-5.0, sections 7.4.3 and 9.3).

use crate::abi::Comm;
use crate::lock::Lock;
use crate::object::errhandler::Handler;

/// The error handlers of freed communicators that have requests.
#[derive(Debug, Default)]
pub(crate) struct Freed(Lock<Vec<(Comm, Handler)>>);

impl Freed {
    /// Takes a communicator in, and forgets those that have no requests any more, as `has_requests` says.
    pub(crate) fn enter(&self, comm: Comm, handler: Handler, has_requests: impl Fn(Comm) -> bool) {
        let mut held = self.0.lock();
        held.retain(|(other, _)| *other != comm && has_requests(*other));
        if has_requests(comm) {
            held.push((comm, handler));
        }
    }

    /// Returns the error handler of one.
    pub(crate) fn handler(&self, comm: Comm) -> Option<Handler> {
        let held = self.0.lock();
        let found = held.iter().find(|(other, _)| *other == comm);
        found.map(|(_, handler)| handler.clone())
    }
}
