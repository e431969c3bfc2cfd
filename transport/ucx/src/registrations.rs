//! Memory that peers may reach: what they name of it is checked here.

use tagwire_base::slab::{Entry, Handle, Slots};

use crate::piece::Piece;
use crate::wire::Access;

/// Memory that peers may reach.
#[derive(Debug, Default)]
struct Registered {
    memory: Option<Piece>,
    /// Peers may write to it.
    writable: bool,
    /// Replies that UCX reads from it, and puts that it writes to it; it goes on with them when the memory is reached no
    /// more.
    answers: u32,
}

impl Entry for Registered {
    fn vacate(&mut self) {
        self.memory = None;
    }
}

/// Returns the handle of a slot and its generation.
fn handle(slot: u32, generation: u32) -> Handle {
    Handle::from_wire(u64::from(generation) << 32 | u64::from(slot))
}

/// The registrations of a rank, each under a slot and a generation.
#[derive(Debug, Default)]
pub(crate) struct Registrations(Slots<Registered>);

impl Registrations {
    /// Lets peers reach `memory`; returns the slot and its generation.
    pub(crate) fn add(&mut self, memory: Piece, writable: bool) -> (u32, u32) {
        let (handle, registered) = self.0.occupy(|_| Registered::default());
        registered.memory = Some(memory);
        registered.writable = writable;
        (handle.slot(), handle.generation())
    }

    /// Lets peers reach the memory no more; returns whether they could until now. What is under way
    /// goes on.
    pub(crate) fn end(&mut self, (slot, generation): (u32, u32)) -> bool {
        let handle = handle(slot, generation);
        let could = self.0.get(handle).is_some_and(|one| one.memory.is_some());
        if could {
            self.0.remove(handle);
        }
        could
    }

    /// Lets peers reach nothing any more.
    pub(crate) fn end_all(&mut self) {
        for (_, registered) in self.0.iter_mut() {
            registered.memory = None;
        }
    }

    /// UCX begins to read or write the memory of `slot`, for a peer.
    pub(crate) fn begin_answer(&mut self, slot: u32) {
        self.0.kept_mut(slot).answers += 1;
    }

    /// UCX has let go of it.
    pub(crate) fn end_answer(&mut self, slot: u32) {
        self.0.kept_mut(slot).answers -= 1;
    }

    /// Whether UCX reads or writes it.
    pub(crate) fn is_in_use(&self, slot: u32) -> bool {
        self.0.kept(slot).answers > 0
    }

    /// The part of the memory that a peer names to read it, if it may have it.
    pub(crate) fn part(&self, access: &Access) -> Option<Piece> {
        let handle = handle(access.registration.get(), access.generation.get());
        let memory = self.0.get(handle)?.memory?;
        let offset = usize::try_from(access.offset.get()).ok()?;
        let len = usize::try_from(access.length.get()).ok()?;
        let fits = offset.checked_add(len)? <= memory.len;
        fits.then(|| Piece {
            start: memory.start.wrapping_add(offset),
            len,
        })
    }

    /// The part that a peer names to write to it, if it may.
    pub(crate) fn writable_part(&self, access: &Access) -> Option<Piece> {
        let part = self.part(access)?;
        self.0
            .kept(access.registration.get())
            .writable
            .then_some(part)
    }
}
