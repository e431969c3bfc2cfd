//! The short ways of the thread that opened a rank.

use std::sync::atomic::Ordering;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::shm::Shm;
use tagwire_transport::{Pack, RecvBuffer, SendBuffer};

use super::Messenger;
use crate::ob1::Ob1;
use crate::types::{RequestId, SendMode, Status};

/// What the thread that opened a rank can do at once, while no other has come.
///
/// Each call returns that it has done nothing, where anything stands in its way: another thread, a peer that is not known yet, a
/// message that is long, an error. The call of the same name of the [`Messenger`] does what is to be done then. Their results
/// are small, so that they stay in registers.
#[derive(Debug, Clone, Copy)]
pub struct AtOnce<'m>(pub(super) &'m Messenger);

impl AtOnce<'_> {
    /// Sends one region, as [`Messenger::isend`]. What was sent owns nothing: the caller forgets it.
    #[inline(always)]
    #[must_use]
    pub fn send(
        self,
        data: &SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Option<RequestId> {
        let mut layer = self.0.lanes.main().enter_by_bias()?;
        layer.value().send_now(data, to, tag, context, mode)
    }

    /// Sends what `data` packs, over ob1. Returns whether the message went: nothing is packed where anything stands in its way.
    #[inline]
    #[must_use]
    pub fn send_packed(self, data: &dyn Pack, to: Rank, tag: Tag, context: ContextId) -> bool {
        let Some(mut layer) = self.0.lanes.main().enter_by_bias() else {
            return false;
        };
        let ob1 = layer.value().ob1();
        ob1.is_some_and(|ob1| ob1.send_packed_now(data, to, tag, context))
    }

    /// Posts a receive into one region, as [`Messenger::irecv`], where it is simply queued. What was posted owns nothing: the caller
    /// forgets it.
    #[inline(always)]
    #[must_use]
    pub fn recv(
        self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        let mut layer = self.0.lanes.main().enter_by_bias()?;
        layer.value().post_now(data, from, tag, context)
    }

    /// The same where messages are here, of which it may take one: over ob1.
    // Not in line in `recv`: the answer of two ways costs each receive that is queued nine instructions.
    #[inline(always)]
    pub(super) fn recv_beside_messages(
        self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        let mut layer = self.0.lanes.main().enter_by_bias()?;
        let ob1 = layer.value().ob1()?;
        let posted = ob1.post_beside_messages(data, from, tag, context);
        let ended = ob1.take_ended();
        drop(layer);
        self.0.after_progress(ended);
        posted
    }

    /// Makes progress once, and takes the end of a request if it has come, of which `look` returns what is asked for.
    // What is asked for, and not the status: that costs 40 instructions on its way through registers and memory.
    #[inline(always)]
    #[must_use]
    pub fn wait<R>(self, request: RequestId, look: impl FnOnce(&Status) -> R) -> Option<R> {
        self.waits(|waits| waits.take(request, 1, look))?
    }

    /// Lets `take` take the ends of requests, with what a call costs paid once for all.
    #[inline(always)]
    #[must_use]
    pub fn waits<R>(self, take: impl FnOnce(&mut Waits<'_>) -> R) -> Option<R> {
        let messenger = self.0;
        if !messenger.counts_on() {
            return None;
        }
        let mut layer = messenger.lanes.main().enter_by_bias()?;
        let pml = layer.value().ob1()?;
        let mut waits = Waits { pml, events: 0 };
        let taken = take(&mut waits);
        let events = waits.events;
        drop(layer);
        messenger.after_progress(events);
        Some(taken)
    }

    /// Counts a call that waits for nothing. Returns whether that is all that there is to it.
    #[inline(always)]
    #[must_use]
    pub fn pass(self) -> bool {
        !self.0.lingering.load(Ordering::Relaxed) && self.0.rhythm.count_unless_due()
    }

    /// Makes progress once, and takes the end of a request if it has come: `Some(None)` where it has not.
    #[inline(always)]
    #[must_use]
    pub fn test(self, request: RequestId) -> Option<Option<Status>> {
        self.0.progress_now(|layer| layer.take_complete(request))
    }

    /// Returns whether a request is under way, and progress would do nothing: a [test](AtOnce::test) would find nothing.
    #[inline(always)]
    #[must_use]
    pub fn is_pending(self, request: RequestId) -> bool {
        self.is_quiet_and(|ob1| ob1.is_under_way(request))
    }

    /// Returns whether a [probe](Messenger::probe) would find nothing, and progress would do nothing.
    #[inline(always)]
    #[must_use]
    pub fn has_nothing(self, from: SourceSelector, context: ContextId) -> bool {
        self.is_quiet_and(|ob1| ob1.has_nothing(from, context))
    }

    /// Whether `look` finds so, and progress would do nothing for anybody: a call that makes progress is done then. The clock is
    /// looked at when it is time, and the core is yielded then where ranks take turns.
    #[inline(always)]
    fn is_quiet_and(self, look: impl FnOnce(&Ob1) -> bool) -> bool {
        let messenger = self.0;
        let Some(mut layer) = messenger.lanes.main().enter_by_bias() else {
            return false;
        };
        let ob1 = layer.value().ob1();
        let is_quiet = ob1.is_some_and(|ob1| look(ob1) && ob1.is_quiet());
        drop(layer);
        is_quiet
            && messenger.partitioned.is_idle()
            && messenger.drivers.are_idle()
            && (!messenger.rhythm.count() || messenger.look_at_times(0).is_ok())
    }
}

/// What takes the ends of requests, one after another.
#[derive(Debug)]
pub struct Waits<'l> {
    pml: &'l mut Ob1,
    events: usize,
}

impl Waits<'_> {
    /// Makes progress once where a request is under way, and takes its end if it has come, of which `look` returns what is asked
    /// for. No more than `burst` messages of each peer are delivered: as many as have receives of their own, so that the next one
    /// is not unexpected.
    #[inline(always)]
    #[must_use]
    pub fn take<R>(
        &mut self,
        request: RequestId,
        burst: usize,
        look: impl FnOnce(&Status) -> R,
    ) -> Option<R> {
        if !self.pml.is_takeable(request) {
            self.events += self.pml.progress_by(burst.min(Shm::BURST));
        }
        self.pml.take_with(request, look)
    }
}
