//! Numbers by chance, and how many cases are made of them.

use tagwire_transport::fault::SplitMix64;

/// Returns how many cases a property has: `usual` ones, more where `PROPTEST_CASES` asks for more than its usual 256.
#[must_use]
pub fn cases_of(usual: u64) -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(usual, |cases| (usual * cases).div_ceil(256).max(1))
}

/// Numbers by chance, the same for the same seed on all ranks.
#[derive(Debug, Clone)]
pub struct Chance(SplitMix64);

impl Chance {
    /// Returns those of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        Self(SplitMix64::new(seed))
    }

    /// Returns 64 bits.
    pub const fn word(&mut self) -> u64 {
        self.0.next_u64()
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
