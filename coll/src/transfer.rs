//! Transfers that an algorithm awaits: slices that are borrowed until their messages are complete.
#![allow(unsafe_code)]

use std::future::Future;
use std::io::Write;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Failure, RequestId, SendMode};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::{Error, Result};
use crate::team::Team;

/// Messages under way, at most `N`. Completes when all are; with the first failure where there was one, and then all
/// buffers are free too.
///
/// Dropped before that, it ends the process: a peer may still touch what is lent.
#[must_use = "a transfer is awaited"]
pub(crate) struct Transfer<'a, const N: usize> {
    team: &'a Team,
    parts: [Part; N],
    failure: Option<Error>,
    lent: PhantomData<&'a mut [u8]>,
}

#[derive(Clone, Copy)]
enum Part {
    Done,
    Send(RequestId),
    Recv {
        request: RequestId,
        from: Rank,
        expected: usize,
    },
}

impl<'a, const N: usize> Transfer<'a, N> {
    pub(crate) fn new(team: &'a Team) -> Self {
        Self {
            team,
            parts: [Part::Done; N],
            failure: team.broken_by(),
            lent: PhantomData,
        }
    }

    /// Starts to send `data` as part `index`.
    pub(crate) fn send(
        mut self,
        index: usize,
        data: &'a [u8],
        to: (Rank, ContextId),
        tag: Tag,
    ) -> Self {
        if self.failure.is_some() {
            return self;
        }
        // SAFETY: the slice is borrowed for as long as this value lives, which ends with the send complete: it is not
        // dropped before (see `drop`), and it is forgotten nowhere.
        let data = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
        let (rank, context) = to;
        let messenger = self.team.messenger();
        match messenger.isend(data, rank, tag, context, SendMode::Standard) {
            Ok(RequestId::COMPLETE) => {}
            Ok(request) => self.parts[index] = Part::Send(request),
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Starts to receive into `data` as part `index`.
    pub(crate) fn recv(
        mut self,
        index: usize,
        data: &'a mut [u8],
        from: (Rank, ContextId),
        tag: Tag,
    ) -> Self {
        if self.failure.is_some() {
            return self;
        }
        let expected = data.len();
        // SAFETY: as in `send`; the borrow is exclusive.
        let data = unsafe { RecvBuffer::contiguous(data.as_mut_ptr(), data.len()) };
        let (from, context) = from;
        let messenger = self.team.messenger();
        let (source, tag) = (SourceSelector::exact(from), TagSelector::exact(tag));
        match messenger.irecv(data, source, tag, context) {
            Ok(request) => {
                self.parts[index] = Part::Recv {
                    request,
                    from,
                    expected,
                };
            }
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Keeps the first failure, and takes back what nobody has matched.
    fn fail(&mut self, error: Error) {
        if self.failure.is_some() {
            return;
        }
        self.team.break_off(&error);
        self.failure = Some(error);
        for part in self.parts {
            if let Part::Recv { request, .. } = part {
                // One that is too late completes by itself.
                let _ = self.team.messenger().cancel(request);
            }
        }
    }

    /// Looks at one part. Returns whether it is complete.
    fn look(&mut self, index: usize) -> Result<bool> {
        let (request, expectation) = match self.parts[index] {
            Part::Done => return Ok(true),
            Part::Send(request) => (request, None),
            Part::Recv {
                request,
                from,
                expected,
            } => (request, Some((from, expected))),
        };
        let Some(status) = self.team.messenger().take(request)? else {
            return Ok(false);
        };
        self.parts[index] = Part::Done;
        match (status.failure, expectation) {
            (None, None) => Ok(true),
            // Taken back after a failure that is known.
            (None, Some(_)) if status.cancelled => Ok(true),
            (None | Some(Failure::Truncated), Some((source_rank, expected)))
                if status.length != expected =>
            {
                Err(Error::Length {
                    source_rank,
                    sent: status.length,
                    expected,
                })
            }
            (None, Some(_)) => Ok(true),
            (Some(failure), _) => Err(Error::Failed(failure)),
        }
    }

    fn is_done(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Done))
    }
}

impl<const N: usize> Future for Transfer<'_, N> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        for index in 0..N {
            if let Err(error) = this.look(index) {
                this.fail(error);
            }
        }
        if !this.is_done() {
            if this.failure.is_none()
                && let Err(error) = this.team.check_members()
            {
                this.fail(error);
            }
            return Poll::Pending;
        }
        Poll::Ready(this.failure.take().map_or(Ok(()), Err))
    }
}

impl<const N: usize> Drop for Transfer<'_, N> {
    fn drop(&mut self) {
        if !self.is_done() {
            let why = "tagwire: a panic in a collective whose buffers are lent; ending the process";
            // Not `eprintln`, which panics when standard error is closed.
            let _ = writeln!(std::io::stderr(), "{why}");
            std::process::abort();
        }
    }
}
