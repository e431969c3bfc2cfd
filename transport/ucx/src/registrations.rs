//! Memory that peers may reach: what they name of it is checked here.

use crate::piece::Piece;
use crate::wire::Access;

/// Memory that peers may reach.
#[derive(Debug)]
struct Registered {
    generation: u32,
    memory: Option<Piece>,
    /// Peers may write to it.
    writable: bool,
    /// Replies that UCX reads from it, and puts that it writes to it.
    answers: u32,
}

/// The registrations of a rank, each under a slot and a generation.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    slots: Vec<Registered>,
    free: Vec<u32>,
}

impl Registrations {
    /// Lets peers reach `memory`; returns the slot and its generation.
    pub(crate) fn add(&mut self, memory: Piece, writable: bool) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Registered {
                generation: 0,
                memory: None,
                writable: false,
                answers: 0,
            });
            self.slots.len() as u32 - 1
        });
        let registered = &mut self.slots[slot as usize];
        registered.memory = Some(memory);
        registered.writable = writable;
        (slot, registered.generation)
    }

    /// Lets peers reach the memory no more; returns whether they could until now. What is under way
    /// goes on.
    pub(crate) fn end(&mut self, (slot, generation): (u32, u32)) -> bool {
        let Some(registered) = self.slots.get_mut(slot as usize) else {
            return false;
        };
        if registered.generation != generation || registered.memory.take().is_none() {
            return false;
        }
        registered.generation = generation.wrapping_add(1);
        self.free.push(slot);
        true
    }

    /// Lets peers reach nothing any more.
    pub(crate) fn end_all(&mut self) {
        for registered in &mut self.slots {
            registered.memory = None;
        }
    }

    /// UCX begins to read or write the memory of `slot`, for a peer.
    pub(crate) fn begin_answer(&mut self, slot: u32) {
        self.slots[slot as usize].answers += 1;
    }

    /// UCX has let go of it.
    pub(crate) fn end_answer(&mut self, slot: u32) {
        self.slots[slot as usize].answers -= 1;
    }

    /// Whether UCX reads or writes it.
    pub(crate) fn is_in_use(&self, slot: u32) -> bool {
        self.slots[slot as usize].answers > 0
    }

    /// The part of the memory that a peer names to read it, if it may have it.
    pub(crate) fn part(&self, access: &Access) -> Option<Piece> {
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

    /// The part that a peer names to write to it, if it may.
    pub(crate) fn writable_part(&self, access: &Access) -> Option<Piece> {
        let part = self.part(access)?;
        self.slots[access.registration.get() as usize]
            .writable
            .then_some(part)
    }
}
