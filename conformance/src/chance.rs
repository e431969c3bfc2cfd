//! Numbers by chance, and how many cases are made of them.

/// Returns how many cases a property has: `usual` ones, more where `PROPTEST_CASES` says so, of which the usual number is 256.
#[must_use]
pub fn cases_of(usual: u64) -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(usual, |cases| (usual * cases).div_ceil(256).max(1))
}

/// Numbers by chance, the same for the same seed on all ranks.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Returns those of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Returns 64 bits.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below a limit; 0 where the limit is 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        let limit = if limit == 0 { 1 } else { limit };
        self.word() % limit
    }

    /// Returns one of some values.
    ///
    /// # Panics
    /// Where there is none.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Returns `true` half of the times.
    pub const fn is_true(&mut self) -> bool {
        self.word() & 1 == 1
    }

    /// Returns so many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.word() as u8).collect()
    }
}
