//! The table of operations under way.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::{Payload, RecvBuffer, SendBuffer};

use super::common::{Buffer, Common};
use super::matcher::Place;
use super::peer::PeerIndex;
use super::protocols::State;
use crate::slab::{Entry, Handle};
use crate::table::{self, Table};
use crate::types::{SendMode, Status};

/// An operation.
#[derive(Debug)]
pub(super) struct Request {
    pub state: State,
    pub common: Common,
}

impl Request {
    /// Returns a send to `rank`.
    pub(super) fn send(
        data: SendBuffer,
        peer: PeerIndex,
        rank: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Self {
        Self {
            state: State::Queued,
            common: Common::send(data, peer, rank, tag, context, mode),
        }
    }

    /// Returns a receive.
    pub(super) fn recv(
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Self {
        Self {
            state: State::Inactive,
            common: Common {
                from,
                tag,
                context,
                buffer: Buffer::Recv(data),
                ..Common::blank()
            },
        }
    }

    /// Makes the content of a vacant slot a receive: writes only what a receive reads.
    #[inline(always)]
    fn become_recv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) {
        self.settle(State::Inactive);
        let common = &mut self.common;
        common.persistent = false;
        common.detached = false;
        common.context = context;
        common.from = from;
        common.tag = tag;
        // A vacant slot's buffer owns nothing (see `vacate`): there is nothing to drop.
        std::mem::forget(std::mem::replace(&mut common.buffer, Buffer::Recv(data)));
        common.status = Status::EMPTY;
    }

    /// Sets the state of a request that is under way by no protocol: such a state owns nothing, and is not dropped.
    #[inline(always)]
    fn settle(&mut self, state: State) {
        std::mem::forget(std::mem::replace(&mut self.state, state));
    }

    /// A receive waits for its message.
    #[inline(always)]
    pub(super) fn wait(&mut self, place: Place) {
        self.settle(State::Posted(place));
    }

    /// A receive that is under way by no protocol is complete.
    #[inline(always)]
    pub(super) fn complete(&mut self) {
        self.settle(State::Complete);
    }

    /// Whether this send waits for its turn and is what such a receive takes.
    pub(super) fn is_held_for(&self, tag: TagSelector, context: ContextId) -> bool {
        matches!(self.state, State::Queued)
            && self.common.context == context
            && tag.accepts(self.common.status.tag)
    }

    pub(super) const fn is_send(&self) -> bool {
        self.common.is_send()
    }

    /// Whether a peer or the matcher still has something to do for it.
    #[inline]
    pub(super) const fn is_active(&self) -> bool {
        self.state.is_active()
    }

    /// Returns the place of a receive that waits for its message.
    pub(super) const fn place(&self) -> Option<Place> {
        match self.state {
            State::Posted(place) => Some(place),
            _ => None,
        }
    }

    /// Whether it is complete and not persistent.
    #[inline(always)]
    fn is_takeable(&self) -> bool {
        matches!(self.state, State::Complete) && !self.common.persistent
    }

    /// A receive that waits takes a whole message, which is here, and is complete.
    #[inline(always)]
    pub(super) fn take_whole(
        &mut self,
        peer: PeerIndex,
        source: Rank,
        tag: Tag,
        payload: Payload<'_>,
    ) {
        self.settle(State::Complete);
        self.common.take_whole(peer, source, tag, payload);
    }
}

impl Entry for Request {
    #[inline(always)]
    fn vacate(&mut self) {
        let Self { state, common } = self;
        debug_assert!(
            matches!(state, State::Complete | State::Inactive),
            "only what is at rest is freed: its state owns nothing"
        );
        if !common.buffer.is_contiguous() || common.owned.is_some() {
            common.buffer = Buffer::Send(SendBuffer::EMPTY);
            common.owned = None;
        }
    }
}

impl table::Request for Request {
    fn blank() -> Self {
        Self {
            state: State::Inactive,
            common: Common::blank(),
        }
    }

    #[inline]
    fn is_active(&self) -> bool {
        self.state.is_active()
    }

    #[inline]
    fn is_inactive(&self) -> bool {
        matches!(self.state, State::Inactive)
    }

    #[inline]
    fn is_persistent(&self) -> bool {
        self.common.persistent
    }

    #[inline]
    fn status(&self) -> Status {
        self.common.status
    }

    fn deactivate(&mut self) {
        self.state = State::Inactive;
    }
}

/// The requests of a rank. A receive writes just the fields that it needs: nothing of the size of
/// a request is moved on the path of a message.
#[derive(Debug)]
pub(super) struct Requests {
    pub table: Table<Request>,
    /// How many requests walks over all of them have looked at.
    #[cfg(test)]
    pub walked: std::cell::Cell<usize>,
}

impl Requests {
    pub(super) const fn new() -> Self {
        Self {
            table: Table::new(),
            #[cfg(test)]
            walked: std::cell::Cell::new(0),
        }
    }

    /// Takes `request` in.
    pub(super) fn insert(&mut self, request: Request) -> Handle {
        let (handle, slot) = self.table.occupy();
        *slot = request;
        handle
    }

    /// Takes a receive in.
    pub(super) fn insert_recv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Handle {
        let (handle, request) = self.table.occupy();
        request.become_recv(data, from, tag, context);
        handle
    }

    /// The same for a buffer of one region, where a slot is vacant. The receive is one that `data` is given to: the
    /// caller forgets it.
    #[inline(always)]
    #[allow(unsafe_code, reason = "nothing of the size of a buffer is moved here")]
    pub(super) fn insert_recv_now(
        &mut self,
        data: &RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Option<(Handle, &mut Request)> {
        let region = data.region()?;
        let (handle, request) = self.table.occupy_vacant()?;
        // SAFETY: the buffer is lent until this receive is complete. Its slot, vacant after that, keeps the
        // address and does not use it.
        let data = unsafe { RecvBuffer::of(region) };
        request.become_recv(data, from, tag, context);
        Some((handle, request))
    }

    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<&Request> {
        self.table.get(handle)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut Request> {
        self.table.get_mut(handle)
    }

    /// Returns the request in slot `number`, as the matcher names it.
    #[inline]
    pub(super) fn at_mut(&mut self, number: u32) -> Option<(Handle, &mut Request)> {
        self.table.at_mut(number)
    }

    /// Whether the request is there, complete and not persistent.
    #[inline(always)]
    pub(super) fn is_takeable(&self, handle: Handle) -> bool {
        self.get(handle).is_some_and(Request::is_takeable)
    }

    /// Whether the request is there, and has begun and not ended.
    #[inline(always)]
    pub(super) fn is_under_way(&self, handle: Handle) -> bool {
        self.get(handle).is_some_and(Request::is_active)
    }

    /// Returns the status of a request that [is there to be taken](Requests::is_takeable); frees its slot.
    #[inline(always)]
    pub(super) fn take(&mut self, handle: Handle) -> Status {
        let mut status = Status::EMPTY;
        self.table.remove_if(handle, |request| {
            status = request.common.status;
            Some(())
        });
        status
    }

    /// Frees the slot of a request that is there, complete and not persistent. Returns what `look` finds in its status.
    #[inline(always)]
    pub(super) fn take_with<R>(
        &mut self,
        handle: Handle,
        look: impl FnOnce(&Status) -> R,
    ) -> Option<R> {
        self.table.remove_if(handle, |request| {
            request.is_takeable().then(|| look(&request.common.status))
        })
    }

    /// Frees the request's slot; its handle is stale from now on.
    #[inline(never)]
    pub(super) fn remove(&mut self, handle: Handle) {
        self.table.remove(handle);
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn is_empty(&self) -> bool {
        self.table.iter().next().is_none()
    }

    /// Returns all requests in use, by slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Handle, &Request)> {
        let used = self.table.iter();
        #[cfg(test)]
        let used = used.inspect(|_| self.walked.set(self.walked.get() + 1));
        used
    }
}
