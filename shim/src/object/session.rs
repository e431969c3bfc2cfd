//! Sessions by handle (MPI-5.0, section 11.3).

use crate::lock::Lock;
use crate::object::buffer::Slot;
use crate::object::errhandler::Handler;
use crate::object::info::Entries;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    errhandler: Lock<Handler>,
    info: Entries,
    /// For buffered sends of its communicators.
    buffer: Slot,
}

impl Session {
    pub(crate) fn new(errhandler: Handler, info: Entries) -> Self {
        Self {
            errhandler: Lock::new(errhandler),
            info,
            buffer: Slot::default(),
        }
    }

    pub(crate) fn errhandler(&self) -> Handler {
        self.errhandler.lock().clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Handler) {
        *self.errhandler.lock() = handler;
    }

    /// Returns what was asked for when it was made, as far as it is known.
    pub(crate) const fn info(&self) -> &Entries {
        &self.info
    }

    pub(crate) const fn buffer(&self) -> &Slot {
        &self.buffer
    }
}
