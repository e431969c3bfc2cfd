//! The entries of a queue in order, for engines that put another one around: their handles and cookies, and where each is.
//!
//! The engine in it has the number of an entry's slot here as the cookie. So a handle stays the same when its entry moves to
//! another place.

use crate::engine::QueueStats;
use crate::envelope::{Cookie, Handle};
use crate::storage::NIL;

/// The entries of a queue in order. Those in hardware are the first ones: each of them is older than any in software.
#[derive(Debug)]
pub(super) struct Line<T> {
    slots: Vec<Slot<T>>,
    /// The first free slot.
    free: u32,
    /// The oldest entry, and the youngest.
    first: u32,
    last: u32,
    /// The oldest entry in software.
    software: u32,
    len: u32,
    in_hardware: u32,
    /// Most entries in hardware, and in all.
    room: u32,
    capacity: u32,
    queued: u64,
    high_water: u32,
}

/// One entry.
#[derive(Debug, Clone, Copy)]
struct Slot<T> {
    what: T,
    cookie: Cookie,
    sequence: u64,
    next: u32,
    previous: u32,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Hardware,
    /// In the inner engine, under this handle.
    Software(Handle),
}

/// An entry that has left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left<T> {
    pub what: T,
    pub cookie: Cookie,
    /// Its handle in the inner engine, where it was in software.
    pub inner: Option<Handle>,
}

impl<T: Copy> Line<T> {
    /// Returns an empty queue with room for so many entries in hardware, and in all.
    pub fn new(room: u32, capacity: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: NIL,
            first: NIL,
            last: NIL,
            software: NIL,
            len: 0,
            in_hardware: 0,
            room,
            capacity,
            queued: 0,
            high_water: 0,
        }
    }

    /// Puts an entry at the end: into hardware, or where it has a handle of the inner engine, into software.
    pub fn push(&mut self, what: T, cookie: Cookie, inner: Option<Handle>) -> Handle {
        let (slot, sequence) = (self.next_slot(), self.queued);
        let entry = Slot {
            what,
            cookie,
            sequence,
            next: NIL,
            previous: self.last,
            place: inner.map_or(Place::Hardware, Place::Software),
        };
        match self.slots.get_mut(slot as usize) {
            Some(free) => {
                self.free = free.next;
                *free = entry;
            }
            None => self.slots.push(entry),
        }
        match self.slots.get_mut(self.last as usize) {
            Some(last) => last.next = slot,
            None => self.first = slot,
        }
        self.last = slot;
        if inner.is_none() {
            self.in_hardware += 1;
        } else if self.software == NIL {
            self.software = slot;
        }
        self.queued += 1;
        self.len += 1;
        self.high_water = self.high_water.max(self.len);
        Handle {
            slot,
            generation: sequence as u32,
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, slot: u32) -> Option<Left<T>> {
        let entry = *self.slots.get(slot as usize)?;
        let inner = match entry.place {
            Place::Nowhere => return None,
            Place::Hardware => {
                self.in_hardware -= 1;
                None
            }
            Place::Software(handle) => Some(handle),
        };
        match self.slots.get_mut(entry.previous as usize) {
            Some(previous) => previous.next = entry.next,
            None => self.first = entry.next,
        }
        match self.slots.get_mut(entry.next as usize) {
            Some(next) => next.previous = entry.previous,
            None => self.last = entry.previous,
        }
        if self.software == slot {
            self.software = entry.next;
        }
        let freed = &mut self.slots[slot as usize];
        (freed.next, freed.place) = (self.free, Place::Nowhere);
        self.free = slot;
        self.len -= 1;
        Some(Left {
            what: entry.what,
            cookie: entry.cookie,
            inner,
        })
    }

    /// Says under which handle the inner engine has an entry from now on.
    pub fn rename(&mut self, slot: u32, inner: Handle) {
        if let Some(entry) = self.slots.get_mut(slot as usize) {
            entry.place = Place::Software(inner);
        }
    }

    /// Returns the slots of all entries, the oldest first.
    pub fn slots(&self) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.len as usize);
        let mut slot = self.first;
        while let Some(entry) = self.slots.get(slot as usize) {
            slots.push(slot);
            slot = entry.next;
        }
        slots
    }

    /// Moves the oldest entry in software up into hardware; returns the handle that it had in the inner engine.
    pub fn raise(&mut self) -> Option<Handle> {
        let entry = self.slots.get_mut(self.software as usize)?;
        let Place::Software(handle) = entry.place else {
            return None;
        };
        entry.place = Place::Hardware;
        self.software = entry.next;
        self.in_hardware += 1;
        Some(handle)
    }

    /// Returns the slot of the first entry in hardware that fits, and how many were looked at.
    pub fn find(&self, fits: impl Fn(&T) -> bool) -> (Option<u32>, u64) {
        let (mut slot, mut looked) = (self.first, 0);
        while looked < u64::from(self.in_hardware) {
            let Some(entry) = self.slots.get(slot as usize) else {
                break;
            };
            looked += 1;
            if fits(&entry.what) {
                return (Some(slot), looked);
            }
            slot = entry.next;
        }
        (None, looked)
    }

    /// Returns the slot of the entry that a handle names.
    pub fn named(&self, handle: Handle) -> Option<u32> {
        let entry = self.slots.get(handle.slot as usize)?;
        let is_live = entry.place != Place::Nowhere;
        (is_live && entry.sequence as u32 == handle.generation).then_some(handle.slot)
    }

    /// Returns what lies in a slot.
    pub fn entry(&self, slot: u32) -> Option<(T, Cookie)> {
        let entry = self.slots.get(slot as usize)?;
        (entry.place != Place::Nowhere).then_some((entry.what, entry.cookie))
    }

    /// Visits all entries, the oldest first.
    pub fn visit(&self, visit: &mut dyn FnMut(T, Cookie)) {
        let mut slot = self.first;
        while let Some(entry) = self.slots.get(slot as usize) {
            visit(entry.what, entry.cookie);
            slot = entry.next;
        }
    }

    /// Returns the slot that the next entry will have.
    pub const fn next_slot(&self) -> u32 {
        match self.free {
            NIL => self.slots.len() as u32,
            free => free,
        }
    }

    /// Returns whether the next entry goes into hardware: there is room, and nothing older is in software.
    pub const fn takes_hardware(&self) -> bool {
        self.in_hardware < self.room && self.software == NIL && self.len < self.capacity
    }

    /// Returns whether there is room in hardware for one that is in software.
    pub const fn can_raise(&self) -> bool {
        self.in_hardware < self.room && self.software != NIL
    }

    pub const fn has_software(&self) -> bool {
        self.software != NIL
    }

    pub const fn is_drained(&self) -> bool {
        self.in_hardware == 0
    }

    pub const fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns what is known of the entries; searches are counted elsewhere.
    pub fn stats(&self) -> QueueStats {
        QueueStats {
            queued: self.queued,
            high_water: self.high_water,
            ..QueueStats::default()
        }
    }
}
