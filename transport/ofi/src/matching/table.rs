//! Operations of this rank by number, each with a generation.

/// Things by slot; a slot that is used again has another generation.
#[derive(Debug)]
pub(super) struct Table<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Table<T> {
    /// Enters a thing; returns its slot.
    #[inline]
    pub(super) fn enter(&mut self, thing: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].1 = Some(thing);
            return slot;
        }
        self.slots.push((0, Some(thing)));
        self.slots.len() as u32 - 1
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.1.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.1.as_mut()
    }

    /// Takes a thing out; its slot gets another generation.
    #[inline]
    pub(super) fn take(&mut self, slot: u32) -> Option<T> {
        let (generation, thing) = self.slots.get_mut(slot as usize)?;
        let taken = thing.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(slot);
        Some(taken)
    }

    /// The number of the thing in `slot`: the slot in the lower `slot_bits`, as much of the
    /// generation above it as there is room for in `bits`. `None` where the slot does not fit.
    pub(super) fn number(&self, slot: u32, slot_bits: u32, bits: u32) -> Option<u64> {
        let (generation, _) = self.slots.get(slot as usize)?;
        let generation = u64::from(*generation) & ((1 << (bits - slot_bits)) - 1);
        (u64::from(slot) >> slot_bits == 0).then_some(generation << slot_bits | u64::from(slot))
    }

    /// The slot that `number` names, if what it named is still there.
    pub(super) fn slot(&self, number: u64, slot_bits: u32, bits: u32) -> Option<u32> {
        let slot = (number & ((1 << slot_bits) - 1)) as u32;
        let there = self.get(slot).is_some() && self.number(slot, slot_bits, bits) == Some(number);
        there.then_some(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(slot, (_, thing))| Some((slot, thing.as_ref()?)))
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
