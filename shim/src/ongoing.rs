//! Operations under way that are neither messages nor collectives.

use crate::abi::Status;
use crate::error::{Class, Error, Result};
use crate::request::{End, Requests};

/// Something that a request stands for. Nothing is locked when its methods are called.
pub(crate) trait Ongoing: Send + Sync {
    /// Returns whether it has ended, without progress. Stays true.
    fn is_complete(&self, requests: &Requests) -> bool;

    /// Takes how it ended, without progress; `None` while it is under way.
    fn take(&self, requests: &Requests) -> Option<End>;

    /// Returns how it ended, which stays to be taken. `None` where the end has to be taken to know.
    fn look(&self) -> Option<Result<Status>> {
        None
    }

    /// Marks it to be cancelled, where that means something.
    ///
    /// # Errors
    /// Those of the program's function.
    fn cancel(&self) -> Result {
        Ok(())
    }

    /// Says that its request is freed. Returns what becomes of it.
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel).
    fn free(&self) -> Result<Freed> {
        Ok(Freed::GoesOn)
    }

    /// Says that it has ended, where the program says so. Returns whether its request was freed before.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where it is none of those.
    fn complete(&self) -> Result<bool> {
        let text = "the request is not generalized";
        Err(Error::new(Class::Request, text))
    }
}

/// What becomes of an operation of which the request is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    /// It goes on without a request, and its end is taken by nobody in particular.
    GoesOn,
    /// It has ended, and needs nobody who takes its end.
    Gone,
    /// The program still says by the request when it has ended.
    Kept,
}
