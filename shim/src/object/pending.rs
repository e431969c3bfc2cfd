//! What a request has under way, and how that ends.

use std::fmt;
use std::mem;
use std::sync::Arc;

use tagwire_coll::Members;
use tagwire_pml::{Failure, RequestId};

use crate::abi::{Comm, Status};
use crate::error::{Class, Error, On, Result, class_of};

/// An operation under way that is not one message: a collective, say. Its calls are made with nothing locked.
pub(crate) trait PendingOperation: fmt::Debug + Send + Sync {
    /// Returns whether it has ended, without progress.
    fn is_complete(&self) -> bool;

    /// Takes how it ended, once; `None` while it is under way.
    fn take(&self) -> Option<End>;

    /// Cancels it, where that can be (MPI-5.0, section 3.8.4).
    ///
    /// # Errors
    /// Those of a function of the program that cancels it.
    fn cancel(&self) -> Result {
        Ok(())
    }

    /// Returns whether its request may be freed.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where it must have ended before.
    fn check_free(&self) -> Result {
        Ok(())
    }

    /// Says that its request is freed. Returns what becomes of it.
    ///
    /// # Errors
    /// Those of a function of the program.
    fn free(&self) -> Result<Freed> {
        Ok(Freed::GoesOn)
    }

    /// Looks how it ended, which stays to be taken.
    fn look(&self) -> Look {
        Look::Taking
    }

    /// Returns whether calls that wait for several set the error of its status where it ended well. The standard has that left
    /// as it was (MPI-5.0, section 3.2.5), but tests of partitioned communication read it.
    fn shows_success(&self) -> bool {
        false
    }

    /// Says that it has ended, where the program says so (MPI-5.0, section 13.2). Returns whether its request was freed before.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` where it is none of those.
    fn complete(&self) -> Result<bool> {
        let text = "the request is not generalized";
        Err(Error::new(Class::Request, text))
    }
}

/// What a look at an operation finds.
#[derive(Debug)]
pub(crate) enum Look {
    UnderWay,
    Ended(Result<Status>),
    /// Its end has to be taken to know.
    Taking,
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

/// What a request stands for.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Nothing: a persistent request that is inactive.
    Inactive,
    /// A send that has ended well.
    Sent,
    /// A receive from no process.
    NoProcess,
    /// It has ended so, as a call has reported that left its end to be taken.
    Ended(Box<End>),
    Send(RequestId),
    /// With the members, where they have other numbers than in the job.
    Recv(RequestId, Option<Arc<Members>>),
    Operation(Arc<dyn PendingOperation>),
}

impl Pending {
    /// Drops it: nothing to be done for most messages.
    #[inline(always)]
    pub(crate) fn discard(mut self) {
        self.reset();
    }

    /// Makes it inactive. What it was is dropped: nothing to be done for most messages.
    #[inline(always)]
    pub(crate) fn reset(&mut self) {
        match self {
            Self::Inactive | Self::Sent | Self::Send(_) | Self::Recv(_, None) => {
                mem::forget(mem::replace(self, Self::Inactive));
            }
            _ => drop_out_of_line(mem::replace(self, Self::Inactive)),
        }
    }
}

#[inline(never)]
fn drop_out_of_line(pending: Pending) {
    drop(pending);
}

// There is one for each request, and many are under way at once.
const _: () = assert!(size_of::<Pending>() <= 24);

/// How an operation ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: Status,
    pub(crate) error: Option<Error>,
}

impl End {
    pub(crate) const EMPTY: Self = Self::good(Status::EMPTY);

    pub(crate) const fn good(status: Status) -> Self {
        Self {
            status,
            error: None,
        }
    }

    /// Returns its error, to be raised on a communicator.
    #[inline]
    pub(crate) fn outcome(self, comm: Comm) -> Result {
        match self.error {
            None => Ok(()),
            Some(error) => Err(error.on(On::Comm(comm))),
        }
    }

    /// Returns that of an operation whose status says nothing.
    pub(crate) fn of(outcome: Result) -> Self {
        Self {
            status: Status::EMPTY,
            error: outcome.err(),
        }
    }

    /// Returns how a send ended.
    pub(crate) fn of_send(ended: &tagwire_pml::Status) -> Self {
        Self {
            status: Status::EMPTY.with_cancelled(ended.cancelled),
            error: ended.failure.map(failed),
        }
    }

    /// Returns how a receive ended from one of `members`, of the job's ranks where there are none.
    #[inline]
    pub(crate) fn of_recv(ended: &tagwire_pml::Status, members: Option<&Members>) -> Self {
        let status = crate::object::comm::status(ended, members);
        Self {
            error: ended.failure.map(|failure| failed_recv(failure, &status)),
            status,
        }
    }
}

#[cold]
fn failed(failure: Failure) -> Error {
    Error::new(class_of(failure), failure.to_string())
}

/// Returns the error of a receive. One that was cut off says of what: by the ranks of its communicator, as its status.
#[cold]
fn failed_recv(failure: Failure, status: &Status) -> Error {
    let Failure::Truncated { room } = failure else {
        return failed(failure);
    };
    let (source, tag, sent) = (status.source, status.tag, status.bytes());
    let room = match room {
        u32::MAX => "less".to_owned(),
        room => format!("{room} bytes"),
    };
    let text = format!(
        "the message from rank {source} with tag {tag} has {sent} bytes, and the receive had room for {room}: the rest is lost"
    );
    Error::new(class_of(failure), text)
}
