//! The receiving half: posting, probing, claiming, cancelling.

use std::ops::Range;

use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};
use tagwire_matching::Pattern;
use tagwire_transport::{Payload, RecvBuffer};

use super::Ob1;
use super::core::Core;
use super::header::Kind;
use super::held::Held;
use super::matcher::Posted;
use super::peeks::Shown;
use super::peer::{PeerIndex, Stream};
use super::protocols::State;
use super::request::Request;
use super::unexpected::{Content, Unexpected};
use crate::contexts::Contexts;
use crate::error::{Error, Result};
use crate::lane::Lane;
use crate::slab::Handle;
use crate::types::{CancelOutcome, MessageId, RequestId, Status};

/// So many slots of messages one look for strays goes through.
pub(super) const LOOKED_AT: u32 = 1024;

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
        if !self.has_nothing(from, context) || data.capacity() >= self.core.expose_from {
            return None;
        }
        let (handle, taken) = self.post_region(data, from, tag, context)?;
        debug_assert!(taken.is_none(), "no message was there to match");
        Some(RequestId(handle))
    }

    /// The same where messages may be here, of which the receive takes one.
    pub(crate) fn post_beside_messages(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<RequestId> {
        if !self.is_simple(from, context) || data.capacity() >= self.core.expose_from {
            return None;
        }
        let (handle, taken) = self.post_region(data, from, tag, context)?;
        if let Some(message) = taken {
            let core = &mut self.core;
            core.receive_unexpected(handle, message);
            // Whoever waits for this one is still to be told its name.
            core.lane.ended = 0;
            if !core.pending.is_empty() {
                self.driver.run_pending(core);
            }
        }
        Some(RequestId(handle))
    }

    /// Enters a receive into one region, and gives it to the matcher. Returns it, with the message that it is to take; `None`, with
    /// nothing done, where the buffer has several regions, no slot is vacant, or the matcher is full.
    #[inline(always)]
    fn post_region(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<(Handle, Option<Handle>)> {
        let Core {
            requests, matcher, ..
        } = &mut self.core;
        let (handle, request) = requests.insert_recv_now(data, from, tag, context)?;
        let pattern = Pattern {
            source: from,
            tag,
            context,
        };
        match matcher.post(pattern, handle.slot()) {
            Posted::Waits(place) => {
                request.wait(place);
                Some((handle, None))
            }
            Posted::Takes(message) => Some((handle, Some(message))),
            Posted::Full => {
                requests.remove(handle);
                None
            }
        }
    }

    /// Whether a receive from there is in order, nobody is gone and nobody short of budget.
    #[inline(always)]
    fn is_simple(&self, from: SourceSelector, context: ContextId) -> bool {
        let core = &self.core;
        let exists = from.is_any() || from.as_u32() < core.lane.size;
        exists && core.lane.is_usable(context) && !core.in_trouble
    }

    /// Whether no message is here that a receive could take, nobody is gone and nobody short of budget: a probe finds nothing.
    #[inline(always)]
    pub(crate) fn has_nothing(&self, from: SourceSelector, context: ContextId) -> bool {
        self.is_simple(from, context) && self.core.matcher.has_nothing_unexpected()
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
                self.core.lane.ended = 0;
                if !self.core.pending.is_empty() {
                    self.driver.run_pending(&mut self.core);
                }
                self.driver.expose(&mut self.core, handle);
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
            Some(rank) if rank.as_u32() >= self.core.lane.size => Err(Error::NoSuchRank {
                rank,
                size: self.core.lane.size,
            }),
            _ => Ok(()),
        }
    }
}

impl Core {
    /// Gives the receive `handle` to the matcher.
    #[inline]
    pub(super) fn post(&mut self, handle: Handle, pattern: Pattern) -> Result<()> {
        match self.matcher.post(pattern, handle.slot()) {
            Posted::Waits(place) => {
                if let Some(request) = self.requests.get_mut(handle) {
                    request.wait(place);
                }
                if self.in_trouble {
                    self.posted_in_trouble(handle, pattern.source);
                }
                Ok(())
            }
            Posted::Takes(message) => {
                self.receive_unexpected(handle, message);
                Ok(())
            }
            Posted::Full => Err(Error::TooManyReceives(self.matcher.bound().set_by)),
        }
    }

    /// A receive was posted while ranks are gone or budgets are spent.
    #[cold]
    fn posted_in_trouble(&mut self, handle: Handle, from: SourceSelector) {
        let Some(failure) = self.lane.losses.of_receive(from) else {
            return self.pull_from_starved(handle);
        };
        if let Some(request) = self.requests.get_mut(handle) {
            if let Some(place) = request.place() {
                self.matcher.withdraw(place);
            }
            if let Some(rank) = from.rank() {
                request.common.status.source = rank;
            }
        }
        self.finish(handle, Some(failure));
    }

    /// The receive `handle` takes a message that came before it.
    #[inline]
    pub(super) fn receive_unexpected(&mut self, handle: Handle, message: Handle) {
        if self.budget.starving().is_empty() && self.receive_short(handle, message) {
            return;
        }
        self.receive_kept(handle, message);
    }

    /// The same of a message that is kept in its entry, all of it. Returns whether it was one.
    #[inline(always)]
    fn receive_short(&mut self, handle: Handle, message: Handle) -> bool {
        let Some(Unexpected {
            peer: from,
            tag,
            charged,
            synchronous: None,
            content: Content::Inline { len, bytes },
            ..
        }) = self.matcher.kept(message)
        else {
            return false;
        };
        let (Some(peer), Some(request)) =
            (self.lane.peers.get(*from), self.requests.get_mut(handle))
        else {
            return false;
        };
        let payload = Payload::from_slice(bytes).slice(0..usize::from(*len));
        request.take_whole(*from, peer.rank, *tag, payload);
        self.budget.release(*charged);
        self.counters.unexpected_short += 1;
        self.lane.ended += 1;
        self.matcher.discard(message);
        true
    }

    /// The same of any message.
    #[inline(never)]
    fn receive_kept(&mut self, handle: Handle, message: Handle) {
        let Some(message) = self.matcher.take(message) else {
            debug_assert!(false, "a message that matched is there");
            return;
        };
        let Unexpected {
            peer: from, length, ..
        } = message;
        self.budget.release(message.charged);
        match message.content {
            Content::Announced(_) => self.counters.unexpected_long += 1,
            _ => self.counters.unexpected_short += 1,
        }
        let (Some(peer), Some(request)) =
            (self.lane.peers.get_mut(from), self.requests.get_mut(handle))
        else {
            debug_assert!(false, "both ends of a message are there");
            return;
        };
        let failure = peer.failure();
        request.common.matched(from, peer.rank, message.tag, length);
        match (message.content, failure) {
            (Content::Announced(_), Some(failure)) => self.finish(handle, Some(failure)),
            (Content::Announced(state), None) => self.fetch(handle, state),
            (content, failure) => {
                let here = content.arrived();
                request.common.write(0, here);
                if here.len() == length {
                    request.complete();
                    self.lane.ended += 1;
                } else if let Some(failure) = failure {
                    self.finish(handle, Some(failure));
                } else {
                    request.state = State::STREAMING;
                    peer.stream = Stream::Request {
                        receive: handle,
                        offset: here.len(),
                        total: length,
                    };
                }
            }
        }
        if let Some(sender) = message.synchronous {
            self.pending.say(from, Kind::MATCHED, sender);
        }
        if !self.budget.starving().is_empty() {
            self.feed_the_starved();
        }
    }

    /// Drops messages that are here and that nobody will receive: such came after their context was closed or broken, and a look at
    /// some slots after the other finds them. It takes the same time whatever is here.
    pub(super) fn drop_some_strays(&mut self) {
        let (from, slots) = (self.strays_from, self.matcher.slots());
        let next = from.saturating_add(LOOKED_AT);
        self.strays_from = if next < slots { next } else { 0 };
        self.drop_messages(from..next.min(slots), Self::is_stray);
    }

    /// Whether nobody will receive a message.
    pub(super) fn is_stray(contexts: &Contexts, message: &Unexpected) -> bool {
        contexts.drops(message.context, message.tag)
    }

    /// Receives, into no room, the messages in these slots that nobody has claimed and that `is_stray` accepts.
    pub(super) fn drop_messages(
        &mut self,
        slots: Range<u32>,
        is_stray: impl Fn(&Contexts, &Unexpected) -> bool,
    ) {
        if self.matcher.has_nothing_unexpected() {
            return;
        }
        let (messages, contexts) = (self.matcher.messages_in(slots), &self.lane.contexts);
        let strays =
            messages.filter(|message| message.queued.is_some() && is_stray(contexts, message));
        let strays = strays.map(|message| Pattern {
            source: SourceSelector::ANY,
            tag: TagSelector::exact(message.tag),
            context: message.context,
        });
        for pattern in strays.collect::<Vec<_>>() {
            let claimed = self.matcher.claim(pattern).map(|(message, _)| message);
            if let Some(message) = claimed {
                self.drop_message(pattern, message);
            }
        }
    }

    fn drop_message(&mut self, pattern: Pattern, message: Handle) {
        let Pattern {
            source,
            tag,
            context,
        } = pattern;
        let request = Request::recv(RecvBuffer::EMPTY, source, tag, context);
        let handle = self.requests.insert(request);
        self.receive_unexpected(handle, message);
        if self.requests.is_takeable(handle) {
            self.requests.remove(handle);
        } else if let Some(request) = self.requests.get_mut(handle) {
            request.common.detached = true;
        }
    }

    /// Returns what a probe reports of the earliest message that is here and fits.
    pub(super) fn describe_first(&mut self, pattern: Pattern) -> Option<Status> {
        let message = self.matcher.probe(pattern).map(Seen::from)?;
        self.status(message)
    }

    /// Returns the status of the earliest message that `pattern` accepts (MPI-5.0, section 3.8.1).
    pub(super) fn probe(&mut self, pattern: Pattern) -> Option<Status> {
        let here = self.describe_first(pattern);
        if here.is_some() {
            return here;
        }
        let index = self.showing(&pattern)?;
        let shown = self.lane.peers.get(index)?.peeks.shown.as_ref()?;
        self.status(Seen::of(index, shown))
    }

    /// Takes the earliest message that `pattern` accepts out of matching (MPI-5.0, section 3.8.2).
    pub(super) fn claim(&mut self, pattern: Pattern) -> Option<(MessageId, Status)> {
        let found = self.matcher.claim(pattern);
        if let Some((handle, message)) = found.map(|(handle, found)| (handle, found.into())) {
            return Some((MessageId(handle), self.status(message)?));
        }
        let index = self.showing(&pattern)?;
        let shown = self.held().take_shown(index)?;
        let status = self.status(Seen::of(index, &shown))?;
        self.budget.keep(0);
        let message = self.matcher.keep(Unexpected {
            peer: index,
            tag: shown.tag,
            context: shown.context,
            length: shown.length,
            charged: 0,
            queued: None,
            synchronous: None,
            content: Content::Announced(State::ask(shown.sender)),
        });
        Some((MessageId(message), status))
    }

    /// Returns the starved peer that shows a reply to a probe; asks them where none does.
    fn showing(&mut self, pattern: &Pattern) -> Option<PeerIndex> {
        let Self {
            lane: Lane { peers, .. },
            requests,
            pending,
            budget,
            ..
        } = self;
        let mut held = Held {
            peers,
            requests,
            pending,
        };
        held.showing(budget.starving(), pattern)
    }

    /// Returns what a probe reports of a message.
    fn status(&self, message: Seen) -> Option<Status> {
        Some(Status {
            source: self.lane.peers.get(message.peer)?.rank,
            tag: message.tag,
            length: message.length,
            cancelled: false,
            failure: None,
        })
    }

    /// Takes back a receive that has not matched (MPI-5.0, section 3.8.4).
    pub(super) fn cancel(&mut self, handle: Handle) -> Result<CancelOutcome> {
        let request = self.requests.get_mut(handle).ok_or(Error::StaleRequest)?;
        if request.is_send() {
            return Err(Error::WrongRequest("cancelled: it is a send"));
        }
        let Some(place) = request.place() else {
            return Ok(CancelOutcome::AlreadyMatched);
        };
        if !self.matcher.withdraw(place) {
            return Ok(CancelOutcome::AlreadyMatched);
        }
        request.common.status.cancelled = true;
        self.finish(handle, None);
        Ok(CancelOutcome::Cancelled)
    }
}

/// What a probe sees of a message.
#[derive(Debug, Clone, Copy)]
struct Seen {
    peer: PeerIndex,
    tag: Tag,
    length: usize,
}

impl Seen {
    const fn of(peer: PeerIndex, shown: &Shown) -> Self {
        Self {
            peer,
            tag: shown.tag,
            length: shown.length,
        }
    }
}

impl From<&Unexpected> for Seen {
    fn from(message: &Unexpected) -> Self {
        Self {
            peer: message.peer,
            tag: message.tag,
            length: message.length,
        }
    }
}
