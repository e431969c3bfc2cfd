//! Objects by handle.
//!
//! A handle has 31 bits, so that programs which keep it in an `int` run:
//!
//! ```text
//!     30        29 .. 26   25 .. 20     19 .. 0
//!      0          kind    generation     slot
//! ```
//!
//! One that was freed, or is of another kind, finds nothing.

use std::sync::{Arc, PoisonError, RwLock};

const SLOT_BITS: u32 = 20;
const GENERATION_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const GENERATIONS: usize = 1 << GENERATION_BITS;

/// What a handle is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Comm = 1,
    Group = 2,
    Datatype = 3,
    Op = 4,
    Message = 7,
    Info = 10,
    Errhandler = 11,
    /// Of attributes.
    Key = 12,
    Session = 13,
}

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Table<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
}

#[derive(Debug)]
struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: usize,
    value: Option<Arc<T>>,
}

impl<T> Slots<T> {
    /// Returns a free slot, and the handle of what it will hold.
    fn open(&mut self, kind: Kind) -> Option<(usize, &mut Slot<T>)> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.all.len() < SLOTS => {
                self.all.push(Slot {
                    generation: 0,
                    value: None,
                });
                self.all.len() - 1
            }
            None => return None,
        };
        let slot = &mut self.all[place];
        let kind = (kind as usize) << (SLOT_BITS + GENERATION_BITS);
        Some((kind | slot.generation << SLOT_BITS | place, slot))
    }

    /// Makes a slot free.
    fn close(&mut self, place: usize) {
        let slot = &mut self.all[place];
        slot.generation = (slot.generation + 1) % GENERATIONS;
        self.free.push(place);
    }
}

impl<T> Table<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        let slots = Slots {
            all: Vec::new(),
            free: Vec::new(),
        };
        Self {
            kind,
            slots: RwLock::new(slots),
        }
    }

    /// Takes an object in, which `make` makes for its handle. `None` where there are too many.
    pub(crate) fn insert_with(&self, make: impl FnOnce(usize) -> T) -> Option<usize> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let (handle, slot) = slots.open(self.kind)?;
        slot.value = Some(Arc::new(make(handle)));
        Some(handle)
    }

    /// Puts another object in the place of one.
    pub(crate) fn replace(&self, handle: usize, with: impl FnOnce(&T) -> T) {
        let Some(old) = self.get(handle) else {
            return;
        };
        let new = Arc::new(with(&old));
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = self
            .parts(handle)
            .and_then(|(place, _)| slots.all.get_mut(place));
        if let Some(slot) = slot {
            slot.value = Some(new);
        }
    }

    /// Returns an object.
    pub(crate) fn get(&self, handle: usize) -> Option<Arc<T>> {
        let (place, generation) = self.parts(handle)?;
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.all.get(place)?;
        (slot.generation == generation)
            .then(|| slot.value.clone())
            .flatten()
    }

    /// Takes an object out.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let (place, generation) = self.parts(handle)?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.all.get_mut(place)?;
        if slot.generation != generation {
            return None;
        }
        let value = slot.value.take()?;
        slots.close(place);
        Some(value)
    }

    /// Returns all objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots
            .all
            .iter()
            .filter_map(|slot| slot.value.clone())
            .collect()
    }

    fn parts(&self, handle: usize) -> Option<(usize, usize)> {
        let kind = handle >> (SLOT_BITS + GENERATION_BITS);
        let generation = handle >> SLOT_BITS & (GENERATIONS - 1);
        (kind == self.kind as usize).then_some((handle & (SLOTS - 1), generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_replaced_under_its_handle() {
        let table = Table::new(Kind::Comm);
        let one = table.insert_with(|_| 7).unwrap();
        table.replace(one, |old| old + 1);
        assert_eq!(table.get(one).as_deref(), Some(&8));
        assert_eq!(table.remove(one).as_deref(), Some(&8));
        table.replace(one, |old| old + 1);
        assert!(table.get(one).is_none());
    }

    #[test]
    fn handles_that_were_freed_find_nothing() {
        let table = Table::new(Kind::Comm);
        let first = table.insert_with(|handle| handle).unwrap();
        assert!((4096..1 << 30).contains(&first));
        assert_eq!(table.get(first).as_deref(), Some(&first));
        assert_eq!(table.remove(first).as_deref(), Some(&first));
        let second = table.insert_with(|handle| handle).unwrap();
        assert_ne!(first, second);
        assert!(table.get(first).is_none() && table.remove(first).is_none());
        assert!(Table::<usize>::new(Kind::Group).get(second).is_none());
        for foreign in [0, 1, 0x101, usize::MAX, second | 1 << 40, second + 1] {
            assert!(table.get(foreign).is_none(), "{foreign:#x}");
        }
    }
}
