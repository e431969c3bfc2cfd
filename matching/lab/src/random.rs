//! Numbers that a seed determines (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) const fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * end as u64) >> 32) as u32
    }

    /// A number of `from..end`.
    pub(crate) const fn between(&mut self, from: u32, end: u32) -> u32 {
        from + self.below(end - from)
    }

    pub(crate) const fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < chance
    }

    /// Puts a list into a random order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (2..=list.len()).rev() {
            list.swap(end - 1, self.below(end as u32) as usize);
        }
    }
}
