//! The short ways of the thread that opened a rank.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{RecvBuffer, SendBuffer};

use super::Messenger;
use crate::pml::Pml;
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
        let mut layer = self.0.pml.enter_by_bias()?;
        layer.value().send_now(data, to, tag, context, mode)
    }

    /// Sends a copy of `data`, over ob1. Returns whether it went.
    #[inline(always)]
    #[must_use]
    pub fn send_copy(self, data: &[u8], to: Rank, tag: Tag, context: ContextId) -> bool {
        let Some(mut layer) = self.0.pml.enter_by_bias() else {
            return false;
        };
        let Some(pml) = layer.value().ob1() else {
            return false;
        };
        pml.send_bytes_now(data, to, tag, context)
    }

    /// Posts a receive into one region, as [`Messenger::irecv`], where it is simply queued. What was posted owns nothing: the
    /// caller forgets it.
    #[inline(always)]
    #[must_use]
    pub fn recv(
        self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        let mut layer = self.0.pml.enter_by_bias()?;
        layer.value().post_now(data, from, tag, context)
    }

    /// Makes progress for a moment, and takes the end of a request if it has come. Every so often it does nothing, so that the
    /// caller's long way looks after peers and what layers above have under way.
    // Not what `Messenger::wait` calls: a status that goes through one more value costs 15 instructions there.
    #[inline(always)]
    #[must_use]
    pub fn wait(self, request: RequestId) -> Option<Status> {
        let messenger = self.0;
        if !messenger.count_unless_due() {
            return None;
        }
        let mut layer = messenger.pml.enter_by_bias()?;
        let pml = layer.value().ob1()?;
        let (mut events, mut polls) = (0, messenger.polls_inside());
        while !pml.is_takeable(request) && polls > 0 {
            polls -= 1;
            events += pml.progress();
        }
        let status = pml.take_complete(request);
        drop(layer);
        messenger.after_progress(events);
        status
    }

    /// Makes progress once, and takes the end of a request if it has come: `Some(None)` where it has not.
    #[inline(always)]
    #[must_use]
    pub fn test(self, request: RequestId) -> Option<Option<Status>> {
        self.0.progress_now(|layer| layer.take_complete(request))
    }

    /// Makes progress once, and returns whether a [probe](Messenger::probe) finds nothing then; `false` where that cannot be told.
    #[inline(always)]
    #[must_use]
    pub fn has_nothing(self, from: SourceSelector, context: ContextId) -> bool {
        let found = self
            .0
            .progress_now(|layer| layer.has_nothing(from, context));
        found.unwrap_or(false)
    }
}
