//! The receiving half: posting, probing, claiming, cancelling.

use tagwire_base::{ContextId, SourceSelector, TagSelector};
use tagwire_matching::{CancelOutcome as Cancelled, Cookie, Engine, Pattern, PostOutcome};
use tagwire_transport::RecvBuffer;

use super::Ob1;
use super::core::Core;
use super::header::Kind;
use super::peer::Stream;
use super::request::{Buffer, Phase};
use super::unexpected::{Content, Unexpected};
use crate::error::{Error, Result};
use crate::slab::Handle;
use crate::types::{CancelOutcome, MessageId, RequestId, Status};

impl Ob1 {
    /// Posts a receive where that is all there is to it: nothing unexpected is here, and nobody is
    /// gone or short of budget. `None`, with nothing done, where it may be more. Else the receive has the buffer, which
    /// is one region: the caller forgets it.
    #[inline(always)]
    pub(crate) fn post_now(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        let exists = from.is_any() || from.as_u32() < self.size;
        if !exists || !self.is_usable(context) {
            return None;
        }
        let core = &mut self.core;
        if core.in_trouble || core.engine.unexpected_len() != 0 {
            return None;
        }
        let requests = &mut core.requests;
        let (handle, request) = requests.insert_recv_now(data, from, tag, context)?;
        let pattern = Pattern {
            source: from,
            tag,
            context,
        };
        match core.engine.post(pattern, Cookie(handle.slot())) {
            PostOutcome::Queued(queued) => {
                request.phase = Phase::Posted;
                request.queued = queued;
                request.order = core.posted;
                core.posted += 1;
                Some(RequestId(handle))
            }
            // No message was there to match, so that it is full.
            _ => {
                core.requests.remove(handle);
                None
            }
        }
    }

    /// Posts a receive, or takes a message that is here already.
    #[inline]
    pub(super) fn start_recv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId> {
        self.check_source(from)?;
        let handle = self.core.requests.insert_recv(data, from, tag, context);
        match self.core.post(
            handle,
            Pattern {
                source: from,
                tag,
                context,
            },
        ) {
            Ok(()) => {
                // Whoever waits for this one is still to be told its name.
                self.core.ended = 0;
                if !self.core.chores.is_empty() {
                    self.run_chores();
                }
                Ok(RequestId(handle))
            }
            Err(error) => {
                self.core.requests.remove(handle);
                Err(error)
            }
        }
    }

    #[inline]
    pub(super) fn check_source(&self, from: SourceSelector) -> Result<()> {
        match from.rank() {
            Some(rank) if rank.as_u32() >= self.size => Err(Error::NoSuchRank {
                rank,
                size: self.size,
            }),
            _ => Ok(()),
        }
    }
}

impl Core {
    /// Gives the receive `handle` to the engine.
    #[inline]
    pub(super) fn post(&mut self, handle: Handle, pattern: Pattern) -> Result<()> {
        match self.engine.post(pattern, Cookie(handle.slot())) {
            PostOutcome::Queued(queued) => {
                if let Some(request) = self.requests.get_mut(handle) {
                    request.phase = Phase::Posted;
                    request.queued = queued;
                    request.order = self.posted;
                }
                self.posted += 1;
                if self.in_trouble {
                    self.posted_in_trouble(handle, pattern.source);
                }
                Ok(())
            }
            PostOutcome::Matched(Cookie(slot)) => {
                if let Some((message, _)) = self.unexpected.at_mut(slot) {
                    self.receive_unexpected(handle, message);
                }
                Ok(())
            }
            PostOutcome::Full => Err(Error::TooManyReceives),
        }
    }

    /// A receive was posted while ranks are gone or budgets are spent.
    #[cold]
    fn posted_in_trouble(&mut self, handle: Handle, from: SourceSelector) {
        if let Some(failure) = self.losses.of_receive(from) {
            if let Some(request) = self.requests.get_mut(handle) {
                let _ = self.engine.cancel(request.queued);
                if let Some(rank) = from.rank() {
                    request.status.source = rank;
                }
            }
            return self.finish(handle, Some(failure));
        }
        self.pull_from_starved(handle);
    }

    /// The receive `handle` takes a message that came before it.
    pub(super) fn receive_unexpected(&mut self, handle: Handle, message: Handle) {
        let Some(Unexpected {
            peer: from,
            tag,
            length,
            charged,
            synchronous,
            content,
            ..
        }) = self.unexpected.remove(message)
        else {
            return;
        };
        self.budget.release(charged);
        match content {
            Content::Rendezvous { .. } => self.counters.unexpected_long += 1,
            _ => self.counters.unexpected_short += 1,
        }
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let source = peer.rank;
        let failure = peer.failure();
        let Some(request) = self.requests.get_mut(handle) else {
            return;
        };
        request.matched(from, source, tag, length);
        match content {
            Content::Rendezvous { sender, source } => match failure {
                Some(failure) => self.finish(handle, Some(failure)),
                None => self.fetch(handle, sender, source),
            },
            content => {
                let here = content.arrived();
                if let Buffer::Recv(data) = &mut request.buffer {
                    data.write(0, here);
                }
                if here.len() == length {
                    self.finish(handle, None);
                } else if let Some(failure) = failure {
                    self.finish(handle, Some(failure));
                } else {
                    request.phase = Phase::Streaming;
                    peer.stream = Stream::Request {
                        receive: handle,
                        offset: here.len(),
                        total: length,
                    };
                }
            }
        }
        if let Some(sender) = synchronous {
            self.say(from, Kind::Matched, sender);
        }
        if !self.budget.starving().is_empty() {
            self.feed_the_starved();
        }
    }

    /// What a probe tells of a message.
    fn describe_message(&self, slot: u32) -> Option<Status> {
        let (_, message) = self.unexpected.at(slot)?;
        let source = self.peers.get(message.peer)?.rank;
        let Unexpected { tag, length, .. } = *message;
        Some(Status {
            source,
            tag,
            length,
            cancelled: false,
            failure: None,
        })
    }

    /// The earliest message that is here and fits.
    pub(super) fn describe_first(&mut self, pattern: Pattern) -> Option<Status> {
        let (_, Cookie(slot)) = self.engine.probe(pattern)?;
        self.describe_message(slot)
    }

    pub(super) fn probe(&mut self, pattern: Pattern) -> Option<Status> {
        let here = self.describe_first(pattern);
        if here.is_some() || self.budget.starving().is_empty() {
            return here;
        }
        self.peek(pattern)
    }

    pub(super) fn claim(&mut self, pattern: Pattern) -> Option<(MessageId, Status)> {
        let Some((_, Cookie(slot))) = self.engine.claim(pattern) else {
            if self.budget.starving().is_empty() {
                return None;
            }
            return self.take_shown(pattern);
        };
        let status = self.describe_message(slot)?;
        let (handle, message) = self.unexpected.at_mut(slot)?;
        message.queued = None;
        Some((MessageId(handle), status))
    }

    pub(super) fn cancel(&mut self, handle: Handle) -> Result<CancelOutcome> {
        let request = self.requests.get_mut(handle).ok_or(Error::StaleRequest)?;
        if request.is_send() {
            return Err(Error::WrongRequest("cancelled: it is a send"));
        }
        if request.phase != Phase::Posted {
            return Ok(CancelOutcome::AlreadyMatched);
        }
        match self.engine.cancel(request.queued) {
            Cancelled::Cancelled(_) => {
                request.status.cancelled = true;
                self.finish(handle, None);
                Ok(CancelOutcome::Cancelled)
            }
            Cancelled::AlreadyMatched => Ok(CancelOutcome::AlreadyMatched),
        }
    }
}
