//! The point-to-point layers there are. Which one a rank has is chosen when it is opened: a
//! comparison then, and no indirect call, on the way of each message.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{
    Allocation, Buffering, OpenChannel, RecvBuffer, SendBuffer, SendChannel, Waiter,
};

use crate::cm::Cm;
use crate::error::Result;
use crate::ob1::Ob1;
use crate::pml::Pml;
use crate::types::{CancelOutcome, Counters, MessageId, RequestId, SendMode, Status, TagLimits};

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

    /// As [`Pml::take`], for requests that are complete and not persistent: the short way.
    #[inline(always)]
    pub(crate) fn take_complete(&mut self, request: RequestId) -> Option<Status> {
        either!(self, pml => pml.take_complete(request))
    }

    /// Whether messages wait for others to leave with.
    #[inline]
    pub(crate) fn has_batches(&mut self) -> bool {
        self.ob1().is_some_and(|ob1| ob1.has_batches())
    }

    /// Whether operations may have ended since this was asked the last time, other than by
    /// [`Pml::progress`], which tells.
    #[inline]
    pub(crate) fn take_ended(&mut self) -> usize {
        either!(self, pml => pml.take_ended())
    }
}

impl Pml for Layer {
    fn name(&self) -> &'static str {
        either!(self, pml => pml.name())
    }

    fn rank(&self) -> Rank {
        either!(self, pml => pml.rank())
    }

    fn size(&self) -> u32 {
        either!(self, pml => pml.size())
    }

    fn tag_limits(&self) -> TagLimits {
        either!(self, pml => pml.tag_limits())
    }

    #[inline]
    fn isend(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        either!(self, pml => pml.isend(data, to, tag, context, mode))
    }

    #[inline]
    fn irecv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        either!(self, pml => pml.irecv(data, from, tag, context))
    }

    fn probe(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<Status>> {
        either!(self, pml => pml.probe(from, tag, context))
    }

    fn claim(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>> {
        either!(self, pml => pml.claim(from, tag, context))
    }

    fn receive_can_happen(&self, from: SourceSelector) -> Result<()> {
        either!(self, pml => pml.receive_can_happen(from))
    }

    fn irecv_claimed(&mut self, data: RecvBuffer, message: MessageId) -> Result<RequestId> {
        either!(self, pml => pml.irecv_claimed(data, message))
    }

    fn cancel(&mut self, request: RequestId) -> Result<CancelOutcome> {
        either!(self, pml => pml.cancel(request))
    }

    fn send_init(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId> {
        either!(self, pml => pml.send_init(data, to, tag, context, mode))
    }

    fn recv_init(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        either!(self, pml => pml.recv_init(data, from, tag, context))
    }

    fn start(&mut self, request: RequestId) -> Result<()> {
        either!(self, pml => pml.start(request))
    }

    fn free(&mut self, request: RequestId) -> Result<()> {
        either!(self, pml => pml.free(request))
    }

    #[inline]
    fn is_complete(&self, request: RequestId) -> bool {
        either!(self, pml => pml.is_complete(request))
    }

    #[inline]
    fn take(&mut self, request: RequestId) -> Result<Option<Status>> {
        either!(self, pml => pml.take(request))
    }

    #[inline]
    fn progress(&mut self) -> usize {
        either!(self, pml => pml.progress())
    }

    fn look_after_peers(&mut self) {
        either!(self, pml => pml.look_after_peers());
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        either!(self, pml => pml.waiter())
    }

    fn longest_nap(&self) -> Duration {
        either!(self, pml => pml.longest_nap())
    }

    fn failed(&self) -> Vec<Rank> {
        either!(self, pml => pml.failed())
    }

    fn acknowledge_failures(&mut self) -> Vec<Rank> {
        either!(self, pml => pml.acknowledge_failures())
    }

    fn create_context(&mut self) -> Result<ContextId> {
        either!(self, pml => pml.create_context())
    }

    fn free_context(&mut self, context: ContextId) -> Result<()> {
        either!(self, pml => pml.free_context(context))
    }

    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        either!(self, pml => pml.allocate(len))
    }

    fn worth_a_write(&mut self, to: Rank) -> Result<usize> {
        either!(self, pml => pml.worth_a_write(to))
    }

    fn open_channel(
        &mut self,
        from: Rank,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Result<Option<OpenChannel>> {
        either!(self, pml => pml.open_channel(from, data, ends, buffering))
    }

    fn join_channel(
        &mut self,
        to: Rank,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        either!(self, pml => pml.join_channel(to, data, ends, key))
    }

    fn begin_close(&mut self) {
        either!(self, pml => pml.begin_close());
    }

    fn matcher(&self) -> &'static str {
        either!(self, pml => pml.matcher())
    }

    fn counters(&self) -> Counters {
        either!(self, pml => pml.counters())
    }

    fn open_work(&self) -> Option<String> {
        either!(self, pml => pml.open_work())
    }

    fn leave(&mut self) {
        either!(self, pml => pml.leave());
    }

    fn describe(&self, request: RequestId) -> Option<String> {
        either!(self, pml => pml.describe(request))
    }

    fn dump(&self, out: &mut dyn std::fmt::Write) -> std::fmt::Result {
        either!(self, pml => pml.dump(out))
    }
}
