//! Gets and puts, checked by whose memory it is. (Puts with an immediate value are
//! [writes](super::write).)
//!
//! ```text
//!     asking                                owning
//!     receive under tag T posted
//!     Get(registration, range, T)  ---->    looks the registration up
//!                                  <----    tagged send of the range under T    or Refused(T)
//!     the receive ends
//!
//!     Put(registration, range, P)  ---->    looks the registration up, posts a receive under T
//!                                  <----    Ready(P, T)                                or Refused(P)
//!     tagged send under T          ---->    the receive ends
//!     the put ends                 <----    Placed(P)
//!
//!     Put(registration, range, P), short bytes
//!                                  ---->    looks the registration up, copies
//!     the put ends                 <----    Placed(P)                            or Refused(P)
//! ```
//!
//! UCX's own remote access is not used: over TCP and shared memory it is software that writes and
//! reads wherever a peer says, and a key goes on working after its memory was taken back. The
//! tagged send is as good: UCX moves long ones by whatever the transport has, straight from one
//! buffer to the other.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::time::Duration;

use tagwire_transport::{
    EndpointId, Error, Post, RecvBuffer, RegistrationHandle, RemoteMemory, Result, SendBuffer,
    Token,
};
use tagwire_ucx_sys::{Started, UCS_ERR_CANCELED, UCS_OK};
use zerocopy::IntoBytes;

use super::Ucx;
use crate::NAME;
use crate::layout::access_tag;
use crate::operations::Purpose;
use crate::piece::Piece;
use crate::wire::{Access, ControlKind, Key, SHORT_PUT};

/// Largest single get.
pub(super) const MAX_REMOTE: u64 = 1 << 40;

/// Gets from one peer that may be under way.
const MAX_GETS: usize = 64;

/// Puts to one peer that may be under way.
const MAX_PUTS: usize = 64;

/// How long the end of a registration waits for peers that read it or write to it just now; then they count as failed.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// How long it waits then for UCX, which ends what is under way to them.
const CLOSE_TIME: Duration = Duration::from_secs(1);

impl Ucx {
    /// Lets peers reach memory.
    pub(super) fn reach(
        &mut self,
        region: Option<(*const u8, usize)>,
        writable: bool,
    ) -> Result<RegistrationHandle> {
        let (start, len) = region.ok_or(Error::Unsupported {
            transport: NAME,
            what: "registration of memory in pieces",
        })?;
        let memory = &self.core.shared.memory;
        let name = memory.borrow_mut().add(Piece { start, len }, writable);
        let (owner, secret) = (self.core.rank, self.core.secret());
        let key = Key::new(owner, name, (start.addr() as u64, len as u64), secret);
        Ok(RegistrationHandle {
            id: u64::from(name.1) << 32 | u64::from(name.0),
            key: key.as_bytes().to_vec(),
        })
    }

    /// Lets nobody reach it any more. What UCX reads of it just now ends before that; a peer that does not take it in time counts as failed.
    pub(super) fn forget(&mut self, handle: &RegistrationHandle) {
        let (slot, generation) = (handle.id as u32, (handle.id >> 32) as u32);
        let memory = &self.core.shared.memory;
        if !memory.borrow_mut().end((slot, generation)) {
            return;
        }
        self.wait_for_answers(slot, ANSWER_TIME);
        if !self.is_in_use(slot) {
            return;
        }
        // Only the end of their connections has UCX let go of it.
        for link in self.core.operations.users_of(slot) {
            self.core.fail(EndpointId(link));
        }
        self.wait_for_answers(slot, CLOSE_TIME);
        if self.is_in_use(slot) {
            tracing::error!(
                "ucx: rank {} takes memory back that UCX has not let go of {CLOSE_TIME:?} after its peers were given up",
                self.core.rank
            );
        }
    }

    /// Has UCX go on until it has let go of a registration's memory, but no longer than `most`.
    fn wait_for_answers(&mut self, slot: u32, most: Duration) {
        let deadline = self.core.clock.now() + most;
        while self.is_in_use(slot) && self.core.clock.now() < deadline {
            // Messages that come meanwhile are told of by the next call of progress.
            self.core.worker.progress();
            self.core.shared.stir();
            self.core.attend();
            self.serve();
        }
    }

    fn is_in_use(&self, slot: u32) -> bool {
        self.core.shared.memory.borrow().is_in_use(slot)
    }

    /// Asks for a peer's bytes.
    pub(super) fn ask(
        &mut self,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let core = &mut self.core;
        let Some(link) = core.open_link(from) else {
            return core.absences.no_way(from);
        };
        let Some(region) = data.region() else {
            return Post::Unsupported;
        };
        let len = region.len() as u64;
        let Some(access) = Access::of(link.rank, source, len, core.secret()) else {
            return Post::Unsupported;
        };
        if link.gets >= MAX_GETS {
            return Post::Busy;
        }
        let purpose = Purpose::Get(token, len);
        let index = core.operations.take(&core.shared, purpose, Some(from.0));
        let tag = core.operations.name(index);
        let mark = &core.operations.get(index).mark;
        // SAFETY: the region is lent until the token completes, which it does once the mark ended.
        let started = unsafe {
            core.worker
                .receive_tagged(region.as_ptr(), region.len(), access_tag(tag), !0, mark)
        };
        let Started::Open(request) = started else {
            core.operations.give(index);
            return Post::Unsupported;
        };
        core.operations.get_mut(index).request = NonNull::new(request);
        core.links[from.index()].gets += 1;
        let access = Access {
            tag: tag.into(),
            ..access
        };
        let control = core.control(ControlKind::Get, from);
        core.send_control(from, &control, access.as_bytes());
        Post::Posted
    }

    /// Serves what peers ask for, and takes note of what has been served.
    pub(crate) fn serve(&mut self) {
        self.land_writes();
        let accesses = std::mem::take(&mut self.core.shared.inbox.borrow_mut().accesses);
        for (from, kind, access) in accesses {
            match kind {
                ControlKind::Get => self.answer(from, &access),
                ControlKind::Put => self.admit(from, &access),
                ControlKind::Ready => self.deliver_put(from, &access),
                ControlKind::Placed => self.placed(from, &access),
                _ => self.refused(from, &access),
            }
        }
        let puts = std::mem::take(&mut self.core.shared.inbox.borrow_mut().puts);
        for (from, access, bytes) in puts {
            self.take_put(from, &access, &bytes);
        }
        for slot in self.core.served.drain(..) {
            self.core.shared.memory.borrow_mut().end_answer(slot);
        }
        for (from, put) in std::mem::take(&mut self.core.filled) {
            self.tell_access(from, ControlKind::Placed, put, 0);
        }
        self.tell_of_writes();
    }

    fn answer(&mut self, to: EndpointId, access: &Access) {
        let Some(endpoint) = self.core.links[to.index()].endpoint else {
            return;
        };
        let part = self.core.shared.memory.borrow().part(access);
        let Some(part) = part else {
            let control = self.core.control(ControlKind::Refused, to);
            self.core.send_control(to, &control, access.as_bytes());
            return;
        };
        let slot = access.registration.get();
        let core = &mut self.core;
        let index = core
            .operations
            .take(&core.shared, Purpose::Serve(slot), Some(to.0));
        let mark = &core.operations.get(index).mark;
        // SAFETY: the memory is registered, so lent, and `forget` waits for the end.
        let started = unsafe {
            core.worker
                .send_tagged(endpoint, access_tag(access.tag.get()), part, false, mark)
        };
        let open = matches!(started, Started::Open(_));
        core.note_start(to, index, started);
        if open {
            core.shared.memory.borrow_mut().begin_answer(slot);
        }
    }

    /// The owner refused: the receive that waits is taken back.
    fn refused(&mut self, from: EndpointId, access: &Access) {
        let Some(index) = self.named(from, access.tag.get()) else {
            return;
        };
        match self.core.operations.get(index).purpose {
            Purpose::Get(..) => self.core.cancel(self.core.operations.get(index)),
            Purpose::Put(..) => self.core.end_put(index, UCS_ERR_CANCELED),
            _ => {}
        }
    }

    /// The operation with `peer` of that name.
    fn named(&self, peer: EndpointId, name: u64) -> Option<u32> {
        let index = self.core.operations.find(name)?;
        (self.core.operations.get(index).link == Some(peer.0)).then_some(index)
    }

    /// Says something of an access to the peer that asked for it.
    fn tell_access(&mut self, to: EndpointId, kind: ControlKind, name: u64, offset: u64) {
        let access = Access {
            registration: 0.into(),
            generation: 0.into(),
            offset: offset.into(),
            length: 0.into(),
            tag: name.into(),
        };
        let control = self.core.control(kind, to);
        self.core.send_control(to, &control, access.as_bytes());
    }

    /// Asks a peer to make room for bytes.
    pub(super) fn offer_put(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let Some(link) = self.core.open_link(to) else {
            return self.core.absences.no_way(to);
        };
        let Some(region) = data.region() else {
            return Post::Unsupported;
        };
        let len = region.len() as u64;
        let Some(access) = Access::of(link.rank, target, len, self.core.secret()) else {
            return Post::Unsupported;
        };
        if self.puts(to).len() >= MAX_PUTS {
            return Post::Busy;
        }
        let core = &mut self.core;
        let index = core
            .operations
            .take(&core.shared, Purpose::Put(token, len), Some(to.0));
        core.operations.get_mut(index).lent = Piece {
            start: region.as_ptr(),
            len: region.len(),
        };
        let access = Access {
            tag: core.operations.name(index).into(),
            ..access
        };
        let control = core.control(ControlKind::Put, to);
        let bytes = data.whole().filter(|bytes| bytes.len() <= SHORT_PUT);
        // They are not to be asked for.
        core.operations.get_mut(index).asked = bytes.is_some_and(|bytes| !bytes.is_empty());
        let question = [access.as_bytes(), bytes.unwrap_or_default()].concat();
        core.send_control(to, &control, &question);
        Post::Posted
    }

    /// The puts to `to` that are under way, by name.
    pub(super) fn puts(&self, to: EndpointId) -> Vec<u64> {
        let operations = &self.core.operations;
        let is_put = |purpose| matches!(purpose, Purpose::Put(..));
        (operations.iter())
            .filter(|(_, slot)| is_put(slot.purpose) && slot.link == Some(to.0))
            .map(|(index, _)| operations.name(index))
            .collect()
    }

    /// A peer has put, with its bytes: places them where it may.
    fn take_put(&mut self, from: EndpointId, access: &Access, bytes: &[u8]) {
        let part = self.core.shared.memory.borrow().writable_part(access);
        let name = access.tag.get();
        let Some(part) = part.filter(|part| part.len == bytes.len()) else {
            return self.tell_access(from, ControlKind::Refused, name, 0);
        };
        // SAFETY: the memory was registered as one to be written, so lent, and has as many bytes, which are nobody's else.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), part.start.cast_mut(), part.len) };
        self.tell_access(from, ControlKind::Placed, name, 0);
    }

    /// A peer wants to put: makes room where it may.
    fn admit(&mut self, from: EndpointId, access: &Access) {
        let slot = access.registration.get();
        let part = self.core.shared.memory.borrow().writable_part(access);
        let Some(part) = part else {
            return self.tell_access(from, ControlKind::Refused, access.tag.get(), 0);
        };
        let core = &mut self.core;
        let purpose = Purpose::Fill(slot, access.tag.get());
        let index = core.operations.take(&core.shared, purpose, Some(from.0));
        let name = core.operations.name(index);
        let mark = &core.operations.get(index).mark;
        // SAFETY: the memory was registered as one to be written, so lent, and `forget` waits for
        // the end.
        let started = unsafe {
            core.worker
                .receive_tagged(part.start.cast_mut(), part.len, access_tag(name), !0, mark)
        };
        let Started::Open(request) = started else {
            core.operations.give(index);
            return self.tell_access(from, ControlKind::Refused, access.tag.get(), 0);
        };
        core.operations.get_mut(index).request = NonNull::new(request);
        core.shared.memory.borrow_mut().begin_answer(slot);
        self.tell_access(from, ControlKind::Ready, name, access.tag.get());
    }

    /// There is room for the bytes of a put: sends them, once.
    fn deliver_put(&mut self, to: EndpointId, access: &Access) {
        let name = access.offset.get();
        let Some(index) = self.named(to, name) else {
            return;
        };
        let Some(endpoint) = self.core.links[to.index()].endpoint else {
            return;
        };
        let core = &mut self.core;
        let put = core.operations.get_mut(index);
        if !matches!(put.purpose, Purpose::Put(..)) || std::mem::replace(&mut put.asked, true) {
            return;
        }
        put.sent = false;
        let part = put.lent;
        let bytes = core
            .operations
            .take(&core.shared, Purpose::PutBytes(name), Some(to.0));
        let mark = &core.operations.get(bytes).mark;
        // SAFETY: the caller lent the region until the put completes, which it does not before
        // this has ended.
        let started = unsafe {
            core.worker
                .send_tagged(endpoint, access_tag(access.tag.get()), part, false, mark)
        };
        if !matches!(started, Started::Open(_)) {
            core.operations.get_mut(index).sent = true;
        }
        core.note_start(to, bytes, started);
    }

    /// A put is where it should be.
    fn placed(&mut self, from: EndpointId, access: &Access) {
        let Some(index) = self.named(from, access.tag.get()) else {
            return;
        };
        let put = self.core.operations.get_mut(index);
        if matches!(put.purpose, Purpose::Put(..)) && put.asked {
            put.placed = true;
            self.core.end_put(index, UCS_OK);
        }
    }
}
