//! Gets, checked by whose memory it is.
//!
//! ```text
//!     asking                                owning
//!     receive under tag T posted
//!     Get(registration, range, T)  ---->    looks the registration up
//!                                  <----    tagged send of the range under T    or Refused(T)
//!     the receive ends
//! ```
//!
//! UCX's own remote access is not used: over TCP and shared memory it is software that writes and
//! reads wherever a peer says, and a key goes on working after its memory was taken back. The
//! tagged send is as good: UCX moves long ones by whatever the transport has, straight from one
//! buffer to the other.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use tagwire_transport::byte::{RegistrationHandle, RemoteMemory};
use tagwire_transport::{EndpointId, Error, Post, RecvBuffer, Result, Token};
use tagwire_ucx_sys::Started;
use zerocopy::IntoBytes;

use super::Ucx;
use crate::NAME;
use crate::operations::Purpose;
use crate::wire::{Access, ControlKind, Key};
use crate::worker::Piece;

/// Largest single get.
pub(super) const MAX_REMOTE: u64 = 1 << 40;

/// Gets from one peer that may be under way.
const MAX_GETS: usize = 64;

/// How long the end of a registration may wait for an answer out of it that is under way.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Memory that peers may reach.
#[derive(Debug)]
struct Registered {
    generation: u32,
    memory: Option<Piece>,
    /// Answers that UCX reads from it.
    answers: u32,
}

/// The registrations of a rank, each under a slot and a generation.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    slots: Vec<Registered>,
    free: Vec<u32>,
}

impl Registrations {
    fn add(&mut self, memory: Piece) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Registered {
                generation: 0,
                memory: None,
                answers: 0,
            });
            self.slots.len() as u32 - 1
        });
        let registered = &mut self.slots[slot as usize];
        registered.memory = Some(memory);
        (slot, registered.generation)
    }

    /// The part of the memory that a peer names, if it may have it.
    fn part(&self, access: &Access) -> Option<Piece> {
        let registered = self.slots.get(access.registration.get() as usize)?;
        if registered.generation != access.generation.get() {
            return None;
        }
        let memory = registered.memory?;
        let offset = usize::try_from(access.offset.get()).ok()?;
        let len = usize::try_from(access.length.get()).ok()?;
        let fits = offset.checked_add(len)? <= memory.len;
        fits.then(|| Piece {
            start: memory.start.wrapping_add(offset),
            len,
        })
    }
}

impl Ucx {
    /// Lets peers reach memory.
    pub(super) fn reach(
        &mut self,
        region: Option<(*const u8, usize)>,
    ) -> Result<RegistrationHandle> {
        let (start, len) = region.ok_or(Error::Unsupported {
            transport: NAME,
            what: "registration of memory in pieces",
        })?;
        let name = self.memory.add(Piece { start, len });
        let (owner, secret) = (self.core.rank, self.core.secret());
        let key = Key::new(owner, name, (start.addr() as u64, len as u64), secret);
        Ok(RegistrationHandle {
            id: u64::from(name.1) << 32 | u64::from(name.0),
            key: key.as_bytes().to_vec(),
        })
    }

    /// Lets nobody reach it any more. What UCX reads of it just now ends before that.
    pub(super) fn forget(&mut self, handle: &RegistrationHandle) {
        let (slot, generation) = (handle.id as u32, (handle.id >> 32) as u32);
        let Some(registered) = self.memory.slots.get_mut(slot as usize) else {
            return;
        };
        if registered.generation != generation || registered.memory.take().is_none() {
            return;
        }
        registered.generation = generation.wrapping_add(1);
        self.memory.free.push(slot);
        let start = Instant::now();
        while self.memory.slots[slot as usize].answers > 0 && start.elapsed() < ANSWER_TIME {
            // Messages that come meanwhile are told of by the next call of progress.
            self.core.worker.progress();
            self.core.shared.dirty.set(true);
            self.core.attend();
            self.serve();
        }
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
        let Some(link) = core
            .links
            .get(from.index())
            .filter(|link| link.endpoint.is_some())
        else {
            return Post::Gone;
        };
        let Some(region) = data.region() else {
            return Post::Unsupported;
        };
        let len = region.len() as u64;
        let key = Key::read(link.rank, source.key, core.secret());
        let place = key.and_then(|key| Some((key, key.offset_of(source.address, len)?)));
        let Some((key, offset)) = place else {
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
                .receive_tagged(region.as_ptr(), region.len(), (tag, !0), mark)
        };
        let Started::Open(request) = started else {
            core.operations.give(index);
            return Post::Unsupported;
        };
        core.operations.get_mut(index).request = NonNull::new(request);
        core.links[from.index()].gets += 1;
        let access = Access {
            registration: key.registration,
            generation: key.generation,
            offset: offset.into(),
            length: len.into(),
            tag: tag.into(),
        };
        let control = core.control(ControlKind::Get, from);
        core.send_control(from, &control, access.as_bytes());
        Post::Posted
    }

    /// Answers what peers ask for, and takes note of what has been answered.
    pub(super) fn serve(&mut self) {
        let accesses = std::mem::take(&mut self.core.shared.inbox.borrow_mut().accesses);
        for (from, kind, access) in accesses {
            match kind {
                ControlKind::Get => self.answer(from, &access),
                _ => self.refused(from, &access),
            }
        }
        for slot in self.core.served.drain(..) {
            self.memory.slots[slot as usize].answers -= 1;
        }
    }

    fn answer(&mut self, to: EndpointId, access: &Access) {
        let Some(endpoint) = self.core.links[to.index()].endpoint else {
            return;
        };
        let Some(part) = self.memory.part(access) else {
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
                .send_tagged(endpoint, access.tag.get(), part, false, mark)
        };
        let open = matches!(started, Started::Open(_));
        core.note_start(to, index, started);
        self.memory.slots[slot as usize].answers += u32::from(open);
    }

    /// The owner refused: the receive that waits is taken back.
    fn refused(&mut self, from: EndpointId, access: &Access) {
        let Some(index) = self.core.operations.find(access.tag.get()) else {
            return;
        };
        let operation = self.core.operations.get(index);
        let is_get = matches!(operation.purpose, Purpose::Get(..));
        if is_get && operation.link == Some(from.0) {
            self.core.cancel(operation);
        }
    }
}
