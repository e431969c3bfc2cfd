//! The table of requests under way: a [`Slab`](crate::slab::Slab) whose vacant slots keep what
//! they held, so that a new request writes just the fields that it needs.

use crate::error::{Error, Result};
use crate::slab::Handle;
use crate::types::{RequestId, Status};

/// What a [`Table`] holds.
pub(crate) trait Entry {
    /// What a slot holds before its first use.
    fn blank() -> Self;

    /// The slot falls vacant: lets go of what the entry owns.
    fn vacate(&mut self);
}

/// Marks a slot that is not in use: no handle has so high a generation.
const VACANT: u32 = 1 << 31;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    next: u32,
    entry: T,
}

/// Requests by handle.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    first_vacant: u32,
}

impl<T: Entry> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            first_vacant: u32::MAX,
        }
    }

    /// The handle that the next [`occupy`](Table::occupy) gives.
    #[inline]
    pub(crate) fn next_handle(&mut self) -> Handle {
        if self.first_vacant as usize >= self.slots.len() {
            self.grow();
        }
        let number = self.first_vacant;
        Handle::new(number, self.slots[number as usize].generation & !VACANT)
    }

    /// A slot for a new entry: its handle, and what the slot held before.
    #[inline]
    pub(crate) fn occupy(&mut self) -> (Handle, &mut T) {
        if self.first_vacant as usize >= self.slots.len() {
            self.grow();
        }
        let vacant = self.occupy_vacant();
        vacant.expect("there is a vacant slot: it was just made")
    }

    /// The same, where a slot is vacant.
    #[inline(always)]
    pub(crate) fn occupy_vacant(&mut self) -> Option<(Handle, &mut T)> {
        let number = self.first_vacant;
        let slot = self.slots.get_mut(number as usize)?;
        self.first_vacant = slot.next;
        slot.generation &= !VACANT;
        Some((Handle::new(number, slot.generation), &mut slot.entry))
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let number = u32::try_from(self.slots.len()).expect("fewer than 2^32 requests");
        let next = self.first_vacant;
        self.slots.push(Slot {
            generation: VACANT,
            next,
            entry: T::blank(),
        });
        self.first_vacant = number;
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        match self.slots.get(handle.slot() as usize) {
            Some(slot) if slot.generation == handle.generation() => Some(&slot.entry),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.slots.get_mut(handle.slot() as usize) {
            Some(slot) if slot.generation == handle.generation() => Some(&mut slot.entry),
            _ => None,
        }
    }

    /// The entry in use in slot `number`.
    #[inline]
    pub(crate) fn at_mut(&mut self, number: u32) -> Option<(Handle, &mut T)> {
        match self.slots.get_mut(number as usize) {
            Some(slot) if slot.generation < VACANT => {
                Some((Handle::new(number, slot.generation), &mut slot.entry))
            }
            _ => None,
        }
    }

    /// Frees the slot; its handle is stale from now on.
    #[inline(always)]
    pub(crate) fn remove(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle.slot() as usize) else {
            return;
        };
        if slot.generation != handle.generation() {
            return;
        }
        slot.generation = handle.next_generation() | VACANT;
        slot.next = self.first_vacant;
        self.first_vacant = handle.slot();
        slot.entry.vacate();
    }

    /// All entries in use, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        let used = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.generation < VACANT);
        used.map(|(number, slot)| (Handle::new(number as u32, slot.generation), &slot.entry))
    }
}

/// A request, as far as its owner is concerned.
pub(crate) trait Request: Entry {
    /// Whether something is still to be done for it.
    fn is_active(&self) -> bool;

    /// Whether it was started often, and is not now.
    fn is_inactive(&self) -> bool;

    fn is_persistent(&self) -> bool;

    fn status(&self) -> Status;

    /// Its end was taken: it may be started again.
    fn deactivate(&mut self);
}

impl<T: Request> Table<T> {
    /// As [`PointToPoint::is_complete`](crate::PointToPoint::is_complete).
    #[inline]
    pub(crate) fn is_complete(&self, request: RequestId) -> bool {
        request == RequestId::COMPLETE
            || self
                .get(request.0)
                .is_none_or(|request| !request.is_active())
    }

    /// As [`PointToPoint::take`](crate::PointToPoint::take).
    #[inline]
    pub(crate) fn take_end(&mut self, request: RequestId) -> Result<Option<Status>> {
        if request == RequestId::COMPLETE {
            return Ok(Some(Status::EMPTY));
        }
        let entry = self.get_mut(request.0).ok_or(Error::StaleRequest)?;
        if entry.is_active() {
            return Ok(None);
        }
        if entry.is_inactive() {
            return Ok(Some(Status::EMPTY));
        }
        let status = entry.status();
        match entry.is_persistent() {
            true => entry.deactivate(),
            false => self.remove(request.0),
        }
        Ok(Some(status))
    }

    /// Returns a persistent request that is inactive, to be `done` something with: started, or freed.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn at_rest(&mut self, request: RequestId, done: &'static str) -> Result<&mut T> {
        let entry = self.get_mut(request.0).ok_or(Error::StaleRequest)?;
        match entry.is_persistent() && entry.is_inactive() {
            true => Ok(entry),
            false => Err(Error::WrongRequest(done)),
        }
    }

    /// As [`PointToPoint::free`](crate::PointToPoint::free).
    pub(crate) fn free(&mut self, request: RequestId) -> Result<()> {
        self.at_rest(request, "freed: it is not persistent and inactive")?;
        self.remove(request.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Entry for u64 {
        fn blank() -> Self {
            0
        }

        fn vacate(&mut self) {
            *self += 1000;
        }
    }

    #[test]
    fn slots_keep_what_they_held_and_handles_go_stale() {
        let mut table = Table::<u64>::new();
        let next = table.next_handle();
        let (first, entry) = table.occupy();
        assert_eq!(first, next);
        *entry = 7;
        let (second, _) = table.occupy();
        table.remove(first);
        table.remove(first);
        assert_eq!(table.get(first), None);
        let next = table.next_handle();
        let (third, entry) = table.occupy();
        assert_eq!((third, *entry), (next, 1007));
        assert_eq!(third.slot(), first.slot());
        assert_eq!(table.get_mut(first), None);
        assert_eq!(table.get_mut(second), Some(&mut 0));
        assert_eq!(table.iter().count(), 2);
    }
}
