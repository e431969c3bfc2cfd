//! Operations of this rank by number.

use tagwire_base::slab::Slab;

/// Things by slot.
#[derive(Debug)]
pub(super) struct Table<T>(Slab<T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Slab::default())
    }
}

impl<T> Table<T> {
    /// Enters a thing; returns its slot.
    #[inline]
    pub(super) fn enter(&mut self, thing: T) -> u32 {
        self.0.insert(thing).slot()
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.0.at(slot).map(|(_, thing)| thing)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.0.at_mut(slot).map(|(_, thing)| thing)
    }

    /// Takes a thing out; its slot gets another generation.
    #[inline]
    pub(super) fn take(&mut self, slot: u32) -> Option<T> {
        let (handle, _) = self.0.at(slot)?;
        self.0.remove(handle)
    }

    /// The number of the thing in `slot`: the slot in the lower `slot_bits`, as much of the
    /// generation above it as there is room for in `bits`. `None` where the slot does not fit, or is vacant.
    pub(super) fn number(&self, slot: u32, slot_bits: u32, bits: u32) -> Option<u64> {
        let (handle, _) = self.0.at(slot)?;
        let generation = u64::from(handle.generation()) & ((1 << (bits - slot_bits)) - 1);
        (u64::from(slot) >> slot_bits == 0).then_some(generation << slot_bits | u64::from(slot))
    }

    /// The slot that `number` names, if what it named is still there.
    pub(super) fn slot(&self, number: u64, slot_bits: u32, bits: u32) -> Option<u32> {
        let slot = (number & ((1 << slot_bits) - 1)) as u32;
        (self.number(slot, slot_bits, bits) == Some(number)).then_some(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.0.iter().map(|(handle, thing)| (handle.slot(), thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_what_is_gone_name_nothing() {
        let mut table = Table::default();
        let slot = table.enter('a');
        let number = table.number(slot, 18, 24).unwrap();
        assert_eq!(table.slot(number, 18, 24), Some(slot));
        assert_eq!(table.take(slot), Some('a'));
        assert_eq!(table.slot(number, 18, 24), None);
        assert_eq!(table.enter('b'), slot);
        assert_eq!(table.slot(number, 18, 24), None);
        assert_ne!(table.number(slot, 18, 24), Some(number));
    }
}
