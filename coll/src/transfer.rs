//! Transfers that an algorithm awaits: slices that are borrowed until their messages are complete.
#![allow(unsafe_code)]

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use tagwire_base::unwind::end_process;
use tagwire_base::{Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Failure, RequestId, SendMode};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::error::{Error, Result};
use crate::team::Team;

/// Messages under way, as many as `P` has room for: an array, or a list where their number is known at run time. Completes
/// when all are; with the first failure where there was one, and then all buffers are free too.
///
/// Dropped before that, it ends the process: a peer may still touch what is lent.
#[must_use = "a transfer is awaited"]
pub(crate) struct Transfer<'a, P> {
    team: &'a Team,
    parts: P,
    /// So many of the parts were under way at the last look, the first ones.
    open: usize,
    failure: Option<Error>,
    lent: PhantomData<&'a mut [u8]>,
}

/// A message under way.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// There is none, or it is complete.
    None,
    Send(RequestId),
    Recv {
        request: RequestId,
        from: Rank,
        expected: usize,
    },
}

impl<'a, const N: usize> Transfer<'a, [Part; N]> {
    /// Returns one with room for `N` messages.
    pub(crate) fn new(team: &'a Team) -> Self {
        Self::of(team, [Part::None; N])
    }
}

impl<'a> Transfer<'a, Vec<Part>> {
    /// Returns one with room for `most` messages.
    pub(crate) fn list(team: &'a Team, most: usize) -> Self {
        Self::of(team, vec![Part::None; most])
    }
}

impl<'a, P: AsMut<[Part]>> Transfer<'a, P> {
    fn of(team: &'a Team, parts: P) -> Self {
        Self {
            team,
            parts,
            open: 0,
            failure: team.broken_by(),
            lent: PhantomData,
        }
    }

    /// Starts to send `data` to a member.
    pub(crate) fn send(self, data: &'a [u8], to: usize, tag: Tag) -> Self {
        if self.failure.is_some() {
            return self;
        }
        let (rank, context) = match self.team.peer(to) {
            Ok(to) => to,
            Err(error) => return self.failed(error),
        };
        // SAFETY: the slice is borrowed for as long as this value lives, which ends with the send complete: it is not
        // dropped before (see `drop`), and it is forgotten nowhere.
        let data = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
        let messenger = self.team.messenger();
        match messenger.isend(data, rank, tag, context, SendMode::Standard) {
            Ok(RequestId::COMPLETE) => self,
            Ok(request) => self.with(Part::Send(request)),
            Err(error) => self.failed(error.into()),
        }
    }

    /// Starts to receive into `data` from a member.
    pub(crate) fn recv(self, data: &'a mut [u8], from: usize, tag: Tag) -> Self {
        if self.failure.is_some() {
            return self;
        }
        let (from, context) = match self.team.source(from) {
            Ok(from) => from,
            Err(error) => return self.failed(error),
        };
        let expected = data.len();
        // SAFETY: as in `send`; the borrow is exclusive.
        let data = unsafe { RecvBuffer::contiguous(data.as_mut_ptr(), data.len()) };
        let messenger = self.team.messenger();
        let (source, tag) = (SourceSelector::exact(from), TagSelector::exact(tag));
        match messenger.irecv(data, source, tag, context) {
            Ok(request) => self.with(Part::Recv {
                request,
                from,
                expected,
            }),
            Err(error) => self.failed(error.into()),
        }
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.as_mut()[self.open] = part;
        self.open += 1;
        self
    }

    fn failed(mut self, error: Error) -> Self {
        self.fail(error);
        self
    }

    /// Keeps the first failure, and takes back what nobody has matched.
    fn fail(&mut self, error: Error) {
        if self.failure.is_some() {
            return;
        }
        self.team.break_off(&error);
        self.failure = Some(error);
        for part in &self.parts.as_mut()[..self.open] {
            if let Part::Recv { request, .. } = part {
                // One that is too late completes by itself.
                let _ = self.team.messenger().cancel(*request);
            }
        }
    }

    /// Looks at all that are under way. Those that are not complete stay in order: where several fail, the first one says why.
    fn look(&mut self) {
        for index in 0..self.open {
            if let Err(error) = self.look_at(index) {
                self.fail(error);
            }
        }
        let parts = &mut self.parts.as_mut()[..self.open];
        self.open = 0;
        for index in 0..parts.len() {
            if !matches!(parts[index], Part::None) {
                parts[self.open] = parts[index];
                self.open += 1;
            }
        }
    }

    /// Looks at one. Where it is complete there is none any more.
    fn look_at(&mut self, index: usize) -> Result<()> {
        let part = &mut self.parts.as_mut()[index];
        let (request, expectation) = match *part {
            Part::None => return Ok(()),
            Part::Send(request) => (request, None),
            Part::Recv {
                request,
                from,
                expected,
            } => (request, Some((from, expected))),
        };
        let Some(status) = self.team.messenger().take(request)? else {
            return Ok(());
        };
        *part = Part::None;
        match (status.failure, expectation) {
            (None, None) => Ok(()),
            // Taken back after a failure that is known.
            (None, Some(_)) if status.cancelled => Ok(()),
            (None | Some(Failure::Truncated { .. }), Some((source_rank, expected)))
                if status.length != expected =>
            {
                Err(Error::Length {
                    source_rank,
                    sent: status.length,
                    expected,
                })
            }
            (None, Some(_)) => Ok(()),
            (Some(failure), _) => Err(Error::Failed(failure)),
        }
    }
}

impl<P: AsMut<[Part]> + Unpin> Future for Transfer<'_, P> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        this.look();
        if this.open > 0 {
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

impl<P> Drop for Transfer<'_, P> {
    fn drop(&mut self) {
        if self.open > 0 {
            end_process("a panic in a collective whose buffers are lent");
        }
    }
}
