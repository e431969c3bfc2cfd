//! A table with generations: a handle that comes back from a peer is checked before use.

use std::fmt;

const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;
const NIL: u32 = u32::MAX;

/// Names an entry of a [`Slab`]: generation above, slot below.
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
    pub(crate) const fn new(slot: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The generation of the slot's next use.
    #[inline]
    pub(crate) const fn next_generation(self) -> u32 {
        (self.generation() + 1) & GENERATION_MASK
    }

    /// The slot, as an index.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0 as u32
    }

    /// As one word for the wire: generation above, slot below. The upper 8 bits are zero.
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

#[derive(Debug)]
enum Content<T> {
    Vacant { next: u32 },
    Full(T),
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    content: Content<T>,
}

/// A table whose entries keep their place, with a free list through the vacant ones.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    first_vacant: u32,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            first_vacant: NIL,
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    /// How many entries are in use.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none is in use.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot that the next [`Slab::insert`] takes.
    #[inline]
    #[must_use]
    pub fn next_slot(&self) -> u32 {
        if self.first_vacant == NIL {
            self.entries.len() as u32
        } else {
            self.first_vacant
        }
    }

    /// Puts `value` in the next slot.
    ///
    /// # Panics
    /// When 2^32 - 1 entries are in use, which no memory holds.
    #[inline]
    pub fn insert(&mut self, value: T) -> Handle {
        self.len += 1;
        let slot = self.first_vacant;
        if let Some(entry) = self.entries.get_mut(slot as usize)
            && let Content::Vacant { next } = entry.content
        {
            self.first_vacant = next;
            entry.content = Content::Full(value);
            return Handle::new(slot, entry.generation);
        }
        self.grow(value)
    }

    /// As [`Slab::insert`], of a value that knows its handle.
    pub fn insert_with(&mut self, make: impl FnOnce(Handle) -> T) -> Handle {
        let slot = self.next_slot();
        let entry = self.entries.get(slot as usize);
        let generation = entry.map_or(0, |entry| entry.generation);
        self.insert(make(Handle::new(slot, generation)))
    }

    #[cold]
    fn grow(&mut self, value: T) -> Handle {
        let slot = u32::try_from(self.entries.len()).expect("fewer than 2^32 entries");
        assert!(slot != NIL, "fewer than 2^32 - 1 entries");
        self.entries.push(Entry {
            generation: 0,
            content: Content::Full(value),
        });
        Handle::new(slot, 0)
    }

    /// The entry, unless `handle` is stale.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<&T> {
        match self.entries.get(handle.slot() as usize) {
            Some(Entry {
                generation,
                content: Content::Full(value),
            }) if *generation == handle.generation() => Some(value),
            _ => None,
        }
    }

    /// The entry, unless `handle` is stale.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.entries.get_mut(handle.slot() as usize) {
            Some(Entry {
                generation,
                content: Content::Full(value),
            }) if *generation == handle.generation() => Some(value),
            _ => None,
        }
    }

    /// The entry in `slot`, whatever its generation: for slots that never left this process.
    #[inline]
    #[must_use]
    pub fn at_mut(&mut self, slot: u32) -> Option<(Handle, &mut T)> {
        match self.entries.get_mut(slot as usize) {
            Some(Entry {
                generation,
                content: Content::Full(value),
            }) => Some((Handle::new(slot, *generation), value)),
            _ => None,
        }
    }

    /// The entry in `slot`, whatever its generation.
    #[inline]
    #[must_use]
    pub fn at(&self, slot: u32) -> Option<(Handle, &T)> {
        match self.entries.get(slot as usize) {
            Some(Entry {
                generation,
                content: Content::Full(value),
            }) => Some((Handle::new(slot, *generation), value)),
            _ => None,
        }
    }

    /// Takes the entry out; its handle is stale from now on.
    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let entry = self.entries.get_mut(handle.slot() as usize)?;
        if entry.generation != handle.generation()
            || matches!(entry.content, Content::Vacant { .. })
        {
            return None;
        }
        let vacant = Content::Vacant {
            next: self.first_vacant,
        };
        let content = std::mem::replace(&mut entry.content, vacant);
        entry.generation = (entry.generation + 1) & GENERATION_MASK;
        self.first_vacant = handle.slot();
        self.len -= 1;
        match content {
            Content::Full(value) => Some(value),
            Content::Vacant { .. } => None,
        }
    }

    /// All entries in use, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(slot, entry)| match &entry.content {
                Content::Full(value) => Some((Handle::new(slot as u32, entry.generation), value)),
                Content::Vacant { .. } => None,
            })
    }

    /// All entries in use, by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Handle, &mut T)> {
        self.entries
            .iter_mut()
            .enumerate()
            .filter_map(|(slot, entry)| match &mut entry.content {
                Content::Full(value) => Some((Handle::new(slot as u32, entry.generation), value)),
                Content::Vacant { .. } => None,
            })
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
        let second = slab.insert("b");
        assert_eq!(slab.remove(first), Some("a"));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.next_slot(), 0);
        let third = slab.insert("c");
        assert_eq!(third.slot(), first.slot());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get(third), Some(&"c"));
        assert_eq!(
            slab.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            ["c", "b"]
        );
        assert_eq!(Handle::from_wire(third.to_wire()), third);
        assert_eq!(slab.get(Handle::from_wire(u64::MAX)), None);
        assert_eq!(slab.get(second), Some(&"b"));
    }
}
