//! Communicators that were freed while requests of theirs were there: errors of these still go by their error handlers
//! (MPI-5.0, sections 7.4.3 and 9.3). And windows whose free has failed: it is raised by theirs.

use crate::abi::{Comm, Win};
use crate::lock::Lock;
use crate::object::errhandler::Handler;

/// The error handlers of freed communicators that have requests, and of windows until the error of their free is raised.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    comms: Lock<Vec<(Comm, Handler)>>,
    windows: Lock<Vec<(Win, Handler)>>,
}

impl Freed {
    /// Takes a communicator in, and forgets those that have no requests any more, as `has_requests` says.
    pub(crate) fn enter(&self, comm: Comm, handler: Handler, has_requests: impl Fn(Comm) -> bool) {
        let mut held = self.comms.lock();
        held.retain(|(other, _)| *other != comm && has_requests(*other));
        if has_requests(comm) {
            held.push((comm, handler));
        }
    }

    /// Returns the error handler of one.
    pub(crate) fn handler(&self, comm: Comm) -> Option<Handler> {
        let held = self.comms.lock();
        let found = held.iter().find(|(other, _)| *other == comm);
        found.map(|(_, handler)| handler.clone())
    }

    /// Takes a window in of which the free has failed.
    pub(crate) fn enter_window(&self, window: Win, handler: Handler) {
        let mut held = self.windows.lock();
        held.retain(|(other, _)| *other != window);
        held.push((window, handler));
    }

    /// Returns the error handler of one, once.
    pub(crate) fn take_window(&self, window: Win) -> Option<Handler> {
        let mut held = self.windows.lock();
        let place = held.iter().position(|(other, _)| *other == window)?;
        Some(held.swap_remove(place).1)
    }
}
