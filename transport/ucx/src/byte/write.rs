//! Puts with an immediate value: writes, each of which is one message.
//!
//! ```text
//!     writing                               owning
//!     Write(registration, range, value), bytes
//!                                  ---->    looks the registration up, copies: notice(value)
//!
//!     Write, by rendezvous         ---->    looks it up, receives into the memory
//!                                  <--->    as UCX does that: reads them, say
//!                                           the receive ends: notice(value)
//! ```
//!
//! The second is for more than 64 KiB. There is no reply: a write is complete once its bytes are the
//! caller's again, which says nothing of where they are. Who wants to know asks (`Flush`), and is
//! told once so many writes are dealt with.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use tagwire_transport::{Class, EndpointId, Post, RemoteMemory, SendBuffer, Token};
use tagwire_ucx_sys::Started;
use zerocopy::IntoBytes;

use super::Ucx;
use crate::contact::Landing;
use crate::operations::Purpose;
use crate::wire::{Access, ControlKind, Write};

impl Ucx {
    /// Writes to a peer's memory, and has the peer told `immediate` then. It counts among the
    /// messages to that peer.
    ///
    /// One that the peer refuses ends with [`Outcome::Impossible`] where it goes by rendezvous, since
    /// UCX reports that; else as all others do.
    ///
    /// [`Outcome::Impossible`]: tagwire_transport::Outcome::Impossible
    pub(super) fn write(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: u64,
        token: Token,
    ) -> Post {
        let Some(region) = data.region() else {
            return Post::Unsupported;
        };
        let endpoint = match self.way(to, Class::Data) {
            Ok(endpoint) => endpoint,
            Err(post) => return post,
        };
        let core = &self.core;
        let (owner, len) = (core.links[to.index()].rank, region.len() as u64);
        let Some(access) = Access::of(owner, target, len, core.secret()) else {
            return Post::Unsupported;
        };
        let header = Write {
            session: core.session().into(),
            access: Access {
                tag: immediate.into(),
                ..access
            },
        };
        let purpose = Purpose::Write(token, len);
        let post = self.send_lent((to, endpoint), purpose, header.as_bytes(), region);
        if post == Post::Posted {
            self.core.links[to.index()].written += 1;
        }
        post
    }

    /// Has the peer say when all that was written to it so far is dealt with; returns how many
    /// writes that is.
    pub(super) fn ask_for_writes(&mut self, to: EndpointId) -> u64 {
        let link = &mut self.core.links[to.index()];
        let written = link.written;
        if std::mem::replace(&mut link.asked, written) < written {
            self.tell_count(to, ControlKind::Flush, written);
        }
        written
    }

    /// Fetches the bytes of writes that have come without them.
    pub(super) fn land_writes(&mut self) {
        let landings = std::mem::take(&mut self.core.shared.inbox.borrow_mut().landings);
        for landing in landings {
            self.land(&landing);
        }
    }

    fn land(&mut self, landing: &Landing) {
        let Landing {
            from,
            access,
            message,
        } = *landing;
        let core = &mut self.core;
        // Once more: since it came, the memory may have been taken back, or the peer have failed.
        let part = core.shared.memory.borrow().writable_part(&access);
        let Some(part) = part.filter(|_| !core.links[from.index()].closed) else {
            // SAFETY: kept by the handler, and not received.
            unsafe { core.worker.release(message) };
            core.end_landing(from, None);
            return;
        };
        let slot = access.registration.get();
        let purpose = Purpose::Land(slot, access.tag.get());
        let index = core.operations.take(&core.shared, purpose, Some(from.0));
        let mark = &core.operations.get(index).mark;
        // SAFETY: kept by the handler, which has compared its length with the access, and received
        // once. The memory was registered as one to be written, so lent, and `forget` waits for the
        // end.
        let started = unsafe {
            core.worker
                .receive_write(message, part.start.cast_mut(), part.len, mark)
        };
        if let Started::Open(request) = started {
            core.operations.get_mut(index).request = NonNull::new(request);
            core.shared.memory.borrow_mut().begin_answer(slot);
        } else {
            core.operations.give(index);
            core.end_landing(from, None);
            core.fail(from);
        }
    }

    /// Says, and hears, how many writes are dealt with.
    pub(super) fn tell_of_writes(&mut self) {
        let mut inbox = self.core.shared.inbox.borrow_mut();
        let unanswered = std::mem::take(&mut inbox.unanswered);
        for (to, count) in inbox.flushed.drain(..) {
            let link = &mut self.core.links[to.index()];
            link.flushed = count.min(link.written).max(link.flushed);
        }
        drop(inbox);
        for (from, count) in unanswered {
            self.tell_count(from, ControlKind::Flushed, count);
        }
    }

    fn tell_count(&mut self, to: EndpointId, kind: ControlKind, count: u64) {
        let mut control = self.core.control(kind, to);
        control.b = count.into();
        self.core.send_control(to, &control, &[]);
    }
}
