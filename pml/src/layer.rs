//! The point-to-point layers there are. Which one a rank has is chosen when it is opened: a
//! comparison then, and no indirect call, for sends, receives, starts, tests and progress.

use std::ops::{Deref, DerefMut};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::cm::Cm;
use crate::error::Result;
use crate::ob1::Ob1;
use crate::pml::{Pml, PointToPoint};
use crate::types::{RequestId, SendMode, Status};

/// One of the layers.
#[derive(Debug)]
#[non_exhaustive]
pub enum Layer {
    /// Matches in software, over a transport that moves bytes.
    Ob1(Box<Ob1>),
    /// Leaves matching to its transport.
    Cm(Box<Cm>),
}

impl From<Ob1> for Layer {
    fn from(ob1: Ob1) -> Self {
        Self::Ob1(Box::new(ob1))
    }
}

impl From<Cm> for Layer {
    fn from(cm: Cm) -> Self {
        Self::Cm(Box::new(cm))
    }
}

/// The same call of whichever layer it is.
macro_rules! either {
    ($layer:expr, $pml:ident => $call:expr) => {
        match $layer {
            Layer::Ob1($pml) => $call,
            Layer::Cm($pml) => $call,
        }
    };
}

impl Layer {
    /// ob1, if it is that: its way to wait is kept apart from that of other layers.
    #[inline(always)]
    pub(crate) fn ob1(&mut self) -> Option<&mut Ob1> {
        match self {
            Self::Ob1(ob1) => Some(ob1),
            Self::Cm(_) => None,
        }
    }

    /// Sends where nothing stands in the way: the short way. `None`, with nothing done, where
    /// something does. What went owns nothing: it was one region.
    #[inline(always)]
    pub(crate) fn send_now(
        &mut self,
        data: &SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Option<RequestId> {
        match self {
            Self::Ob1(ob1) => ob1
                .send_now(data, to, tag, context, mode)
                .then_some(RequestId::COMPLETE),
            Self::Cm(cm) => cm.send_now(data, to, tag, context, mode),
        }
    }

    /// Posts a receive where that is all there is to it: the short way. `None`, with nothing
    /// done, where it may be more. What was posted owns nothing: it was one region.
    #[inline(always)]
    pub(crate) fn post_now(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        match self {
            Self::Ob1(ob1) => ob1.post_now(data, from, tag, context),
            Self::Cm(cm) => cm.post_now(data, from, tag, context),
        }
    }

    /// As [`PointToPoint::take`], for requests that are complete and not persistent: the short way.
    #[inline(always)]
    pub(crate) fn take_complete(&mut self, request: RequestId) -> Option<Status> {
        match self {
            Self::Ob1(ob1) => ob1.take_with(request, |status| *status),
            Self::Cm(cm) => cm.take_complete(request),
        }
    }

    /// Makes progress for a rank that waits, and takes note where it found nothing.
    #[inline]
    pub(crate) fn progress_of_wait(&mut self) -> usize {
        let found = self.progress();
        self.noted(found)
    }

    /// Takes note where progress found nothing while the rank waits. Returns what it found.
    #[inline]
    fn noted(&mut self, found: usize) -> usize {
        if found == 0
            && let Some(ob1) = self.ob1()
        {
            ob1.note_idle();
        }
        found
    }

    /// Whether messages wait for others to leave with.
    #[inline]
    pub(crate) fn has_batches(&mut self) -> bool {
        self.ob1().is_some_and(|ob1| ob1.has_batches())
    }

    /// Whether operations may have ended since this was asked the last time, other than by
    /// [`PointToPoint::progress`], which reports.
    #[inline]
    pub(crate) fn take_ended(&mut self) -> usize {
        either!(self, pml => pml.take_ended())
    }

    /// As [`PointToPoint::isend`].
    #[inline]
    pub(crate) fn isend(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        either!(self, pml => pml.isend(data, to, tag, context, mode))
    }

    /// As [`PointToPoint::irecv`].
    #[inline]
    pub(crate) fn irecv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        either!(self, pml => pml.irecv(data, from, tag, context))
    }

    /// As [`PointToPoint::start`].
    pub(crate) fn start(&mut self, request: RequestId) -> Result<()> {
        either!(self, pml => pml.start(request))
    }

    /// As [`PointToPoint::is_complete`].
    #[inline]
    pub(crate) fn is_complete(&self, request: RequestId) -> bool {
        either!(self, pml => pml.is_complete(request))
    }

    /// As [`PointToPoint::take`].
    #[inline]
    pub(crate) fn take(&mut self, request: RequestId) -> Result<Option<Status>> {
        either!(self, pml => pml.take(request))
    }

    /// As [`PointToPoint::progress`].
    #[inline]
    pub(crate) fn progress(&mut self) -> usize {
        either!(self, pml => pml.progress())
    }

    /// As [`Ob1::progress_for_one`], which is progress for other layers, and takes note where it found nothing.
    #[inline]
    pub(crate) fn progress_for_one(&mut self, events: usize) -> usize {
        let found = match self.ob1() {
            Some(ob1) => ob1.progress_for_one(events),
            None => self.progress(),
        };
        self.noted(found)
    }
}

/// Every other call: those have one indirect call more.
impl Deref for Layer {
    type Target = dyn Pml;

    fn deref(&self) -> &Self::Target {
        either!(self, pml => &**pml)
    }
}

impl DerefMut for Layer {
    fn deref_mut(&mut self) -> &mut Self::Target {
        either!(self, pml => &mut **pml)
    }
}
