//! Repeatable randomness.

/// The generator of Steele, Lea and Flood (*Fast splittable pseudorandom number generators*,
/// OOPSLA 2014): one addition and a mix per number. Good enough to be nasty with, no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The sequence that `seed` names.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Sequence number `stream` of `seed`, apart from the others of the same seed.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        let start = Self::new(seed).next_u64();
        Self::new(start ^ Self::new(stream).next_u64())
    }

    /// The next number, over all 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound - 1`; 0 when there is none.
    pub const fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product: the bias of small bounds is beyond any test's notice.
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns the numbers below `count`, in an order that is drawn.
    #[must_use]
    pub fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut list: Vec<u32> = (0..count).collect();
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
        list
    }

    /// The next `len` bytes: eight of each number.
    #[must_use]
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let (words, rest) = bytes.as_chunks_mut();
        words
            .iter_mut()
            .for_each(|word| *word = self.next_u64().to_le_bytes());
        if !rest.is_empty() {
            let last = self.next_u64().to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
        bytes
    }

    /// True `percent` times of a hundred.
    pub const fn chance(&mut self, percent: u8) -> bool {
        self.below(100) < percent as u64
    }
}
