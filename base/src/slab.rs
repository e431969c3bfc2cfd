//! Tables whose entries keep their place. What names an entry may come back from a peer, or late: it is checked before use.

use std::fmt;

const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;
const NIL: u32 = u32::MAX;

/// Marks a slot that is not in use: no handle has so high a generation.
const VACANT: u32 = 1 << 31;

/// Names an entry of a [`Slab`] or of [`Slots`]: generation above, slot below. A slot that is used again has another
/// generation, so that no name of an entry that is gone names the one in its place.
///
/// One word, since two halves that a call returns through memory are stored as two and loaded as one: the
/// processor cannot forward that, and the load waits for both stores. In the loop of a receiver that
/// was a quarter of the time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(u64);

impl Handle {
    /// Names nothing.
    pub const NONE: Self = Self::new(NIL, 0);

    /// Names `slot` in its `generation`.
    #[inline]
    #[must_use]
    pub const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    /// Returns how often the slot was used before, counted in 24 bits.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the generation of the slot's next use.
    #[inline]
    const fn next_generation(self) -> u32 {
        (self.generation() + 1) & GENERATION_MASK
    }

    /// Returns the slot, as an index.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0 as u32
    }

    /// Returns the handle as one word for the wire: generation above, slot below. The upper 8 bits are zero.
    #[inline]
    #[must_use]
    pub const fn to_wire(self) -> u64 {
        self.0
    }

    /// Takes back what [`Handle::to_wire`] gave; other values name nothing.
    #[inline]
    #[must_use]
    pub const fn from_wire(word: u64) -> Self {
        Self::new(word as u32, (word >> 32) as u32 & GENERATION_MASK)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot(), self.generation())
    }
}

/// What [`Slots`] hold.
pub trait Entry {
    /// The slot falls vacant: lets go of what the entry owns.
    fn vacate(&mut self);
}

impl<T> Entry for Option<T> {
    #[inline(always)]
    fn vacate(&mut self) {
        *self = None;
    }
}

#[derive(Debug)]
struct Slot<T> {
    /// With [`VACANT`] while it is that.
    generation: u32,
    next: u32,
    entry: T,
}

/// A table whose vacant slots keep what they held, so that a new entry writes just the fields that it needs; with a free
/// list through them.
#[derive(Debug)]
pub struct Slots<T> {
    all: Vec<Slot<T>>,
    first_vacant: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slots<T> {
    /// Returns a table without slots.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            all: Vec::new(),
            first_vacant: NIL,
        }
    }

    /// Returns the handle that the next entry gets; a slot that was never used gets what `blank` makes for it.
    #[inline]
    pub fn next_handle(&mut self, blank: impl FnOnce(u32) -> T) -> Handle {
        if self.first_vacant as usize >= self.all.len() {
            self.grow(blank);
        }
        let number = self.first_vacant;
        Handle::new(number, self.all[number as usize].generation & !VACANT)
    }

    /// Returns a slot for a new entry: its handle, and what the slot held before, or what `blank` makes for it.
    #[inline]
    pub fn occupy(&mut self, blank: impl FnOnce(u32) -> T) -> (Handle, &mut T) {
        if self.first_vacant as usize >= self.all.len() {
            self.grow(blank);
        }
        let vacant = self.occupy_vacant();
        vacant.expect("there is a vacant slot: it was just made")
    }

    /// The same, where a slot is vacant.
    #[inline(always)]
    pub fn occupy_vacant(&mut self) -> Option<(Handle, &mut T)> {
        let number = self.first_vacant;
        let slot = self.all.get_mut(number as usize)?;
        self.first_vacant = slot.next;
        slot.generation &= !VACANT;
        Some((Handle::new(number, slot.generation), &mut slot.entry))
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, blank: impl FnOnce(u32) -> T) {
        let number = u32::try_from(self.all.len()).expect("fewer than 2^32 entries");
        assert!(number != NIL, "fewer than 2^32 - 1 entries");
        let next = self.first_vacant;
        self.all.push(Slot {
            generation: VACANT,
            next,
            entry: blank(number),
        });
        self.first_vacant = number;
    }

    /// Returns the entry, unless `handle` is stale.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<&T> {
        match self.all.get(handle.slot() as usize) {
            Some(slot) if slot.generation == handle.generation() => Some(&slot.entry),
            _ => None,
        }
    }

    /// Returns the entry, unless `handle` is stale.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.all.get_mut(handle.slot() as usize) {
            Some(slot) if slot.generation == handle.generation() => Some(&mut slot.entry),
            _ => None,
        }
    }

    /// Returns the entry in use in slot `number`: for slots that never left this process.
    #[inline]
    #[must_use]
    pub fn at_mut(&mut self, number: u32) -> Option<(Handle, &mut T)> {
        match self.all.get_mut(number as usize) {
            Some(slot) if slot.generation < VACANT => {
                Some((Handle::new(number, slot.generation), &mut slot.entry))
            }
            _ => None,
        }
    }

    /// Returns what slot `number` holds, in use or not.
    #[inline]
    #[must_use]
    pub fn kept(&self, number: u32) -> &T {
        &self.all[number as usize].entry
    }

    /// Returns what slot `number` holds, in use or not.
    #[inline]
    #[must_use]
    pub fn kept_mut(&mut self, number: u32) -> &mut T {
        &mut self.all[number as usize].entry
    }

    /// Returns the handle of slot `number`, whether it is in use or not.
    #[inline]
    #[must_use]
    pub fn handle(&self, number: u32) -> Handle {
        Handle::new(number, self.all[number as usize].generation & !VACANT)
    }

    /// Frees the slot; its handle is stale from now on.
    #[inline(always)]
    pub fn remove(&mut self, handle: Handle)
    where
        T: Entry,
    {
        self.remove_if(handle, |_| Some(()));
    }

    /// Frees the slot of an entry in which `look` finds something, and returns that; its handle is stale from now on.
    #[inline(always)]
    pub fn remove_if<R>(&mut self, handle: Handle, look: impl FnOnce(&T) -> Option<R>) -> Option<R>
    where
        T: Entry,
    {
        let slot = self.all.get_mut(handle.slot() as usize)?;
        if slot.generation != handle.generation() {
            return None;
        }
        let found = look(&slot.entry)?;
        slot.generation = handle.next_generation() | VACANT;
        slot.next = self.first_vacant;
        self.first_vacant = handle.slot();
        slot.entry.vacate();
        Some(found)
    }

    /// Returns all entries in use, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        let used = (0..).zip(&self.all);
        let used = used.filter(|(_, slot)| slot.generation < VACANT);
        used.map(|(number, slot)| (Handle::new(number, slot.generation), &slot.entry))
    }

    /// Returns all entries in use, by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Handle, &mut T)> {
        let used = (0..).zip(&mut self.all);
        let used = used.filter(|(_, slot)| slot.generation < VACANT);
        used.map(|(number, slot)| (Handle::new(number, slot.generation), &mut slot.entry))
    }
}

/// A table whose vacant slots hold nothing.
#[derive(Debug)]
pub struct Slab<T>(Slots<Option<T>>);

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self(Slots::new())
    }
}

impl<T> Slab<T> {
    /// Returns how many entries are in use; looks at each slot.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Returns how many slots there are, vacant ones too: all of a smaller number.
    #[inline]
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.0.all.len() as u32
    }

    /// Returns the slot that the next [`Slab::insert`] takes.
    #[inline]
    #[must_use]
    pub fn next_slot(&self) -> u32 {
        match self.0.first_vacant {
            NIL => self.0.all.len() as u32,
            vacant => vacant,
        }
    }

    /// Puts `value` in the next slot.
    ///
    /// # Panics
    /// When 2^32 - 1 entries are in use, which no memory holds.
    #[inline]
    pub fn insert(&mut self, value: T) -> Handle {
        self.insert_made(|| value).0
    }

    /// As [`Slab::insert`], of what `make` returns, which is called when there is a slot: a long value is made in its place.
    #[inline(always)]
    pub fn insert_made(&mut self, make: impl FnOnce() -> T) -> (Handle, &mut T) {
        let (handle, entry) = self.0.occupy(|_| None);
        // A vacant slot holds nothing to be dropped, which the compiler does not know.
        if entry.is_some() {
            *entry = None;
        }
        (handle, entry.insert(make()))
    }

    /// As [`Slab::insert`], of a value that knows its handle.
    pub fn insert_with(&mut self, make: impl FnOnce(Handle) -> T) -> Handle {
        let handle = self.0.next_handle(|_| None);
        self.insert(make(handle))
    }

    /// Returns the entry, unless `handle` is stale.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<&T> {
        self.0.get(handle)?.as_ref()
    }

    /// Returns the entry, unless `handle` is stale.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.0.get_mut(handle)?.as_mut()
    }

    /// Returns the entry in `slot`, whatever its generation: for slots that never left this process.
    #[inline]
    #[must_use]
    pub fn at_mut(&mut self, slot: u32) -> Option<(Handle, &mut T)> {
        let Slot {
            generation, entry, ..
        } = self.0.all.get_mut(slot as usize)?;
        Some((Handle::new(slot, *generation), entry.as_mut()?))
    }

    /// Returns the entry in `slot`, whatever its generation.
    #[inline]
    #[must_use]
    pub fn at(&self, slot: u32) -> Option<(Handle, &T)> {
        let Slot {
            generation, entry, ..
        } = self.0.all.get(slot as usize)?;
        Some((Handle::new(slot, *generation), entry.as_ref()?))
    }

    /// Takes the entry out; its handle is stale from now on.
    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let slot = self.0.all.get_mut(handle.slot() as usize)?;
        if slot.generation != handle.generation() {
            return None;
        }
        slot.generation = handle.next_generation() | VACANT;
        slot.next = std::mem::replace(&mut self.0.first_vacant, handle.slot());
        slot.entry.take()
    }

    /// Drops the entry, where it is; its handle is stale from now on.
    #[inline]
    pub fn discard(&mut self, handle: Handle) {
        self.0.remove(handle);
    }

    /// Returns all entries in use, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        let used = self.0.iter();
        used.filter_map(|(handle, entry)| Some((handle, entry.as_ref()?)))
    }

    /// Returns all entries in use, by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Handle, &mut T)> {
        let used = self.0.iter_mut();
        used.filter_map(|(handle, entry)| Some((handle, entry.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_handles_name_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert("a");
        assert_eq!(slab.next_slot(), 1);
        let second = slab.insert_with(|handle| if handle.slot() == 1 { "b" } else { "" });
        assert_eq!(slab.remove(first), Some("a"));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(Handle::new(0, first.next_generation())), None);
        assert_eq!(slab.at(0), None);
        assert_eq!(slab.next_slot(), 0);
        let third = slab.insert("c");
        assert_eq!(third.slot(), first.slot());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get(third), Some(&"c"));
        assert_eq!(slab.at(0), Some((third, &"c")));
        assert_eq!(
            slab.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            ["c", "b"]
        );
        assert_eq!(Handle::from_wire(third.to_wire()), third);
        assert_eq!(slab.get(Handle::from_wire(u64::MAX)), None);
        assert_eq!(slab.get(second), Some(&"b"));
        assert_eq!(slab.count(), 2);
    }

    impl Entry for u64 {
        fn vacate(&mut self) {
            *self += 1000;
        }
    }

    #[test]
    fn only_an_entry_in_which_something_is_found_is_removed() {
        let mut slots = Slots::<u64>::new();
        let (handle, entry) = slots.occupy(u64::from);
        *entry = 7;
        let over = |least: u64| move |entry: &u64| (*entry > least).then_some(*entry);
        assert_eq!(slots.remove_if(handle, over(7)), None);
        assert_eq!(slots.get(handle), Some(&7));
        assert_eq!(slots.remove_if(handle, over(6)), Some(7));
        assert_eq!(*slots.kept(handle.slot()), 1007, "it was vacated");
        assert_eq!(slots.remove_if(handle, over(6)), None, "it is stale");
    }

    #[test]
    fn slots_keep_what_they_held_and_handles_go_stale() {
        let mut slots = Slots::<u64>::new();
        let next = slots.next_handle(u64::from);
        let (first, entry) = slots.occupy(u64::from);
        assert_eq!((first, *entry), (next, 0));
        *entry = 7;
        let (second, _) = slots.occupy(u64::from);
        slots.remove(first);
        slots.remove(first);
        assert_eq!(slots.get(first), None);
        assert_eq!(*slots.kept(first.slot()), 1007);
        let next = slots.next_handle(u64::from);
        let (third, entry) = slots.occupy(u64::from);
        assert_eq!((third, *entry), (next, 1007));
        assert_eq!(third.slot(), first.slot());
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut 1));
        assert_eq!(slots.iter().count(), 2);
    }
}
