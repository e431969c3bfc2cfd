//! What becomes of a message on a network that loses, repeats and changes some.

use super::config::FaultOptions;
use super::random::SplitMix64;
use super::share::Share;
use crate::message::AmHeader;

/// The most bits of a message that are changed.
const MOST_BITS: u64 = 4;

/// How often a message is lost, comes twice, or is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Messages that never come.
    pub loss: Share,
    /// Messages that come twice.
    pub duplicate: Share,
    /// Messages some bits of which are changed, in the header or the payload.
    pub corrupt: Share,
}

impl Damage {
    /// No message is lost, repeated or changed.
    pub const NONE: Self = Self {
        loss: Share::NONE,
        duplicate: Share::NONE,
        corrupt: Share::NONE,
    };

    /// Returns how often a message comes: 0 to 2 times.
    pub(super) fn copies(&self, random: &mut SplitMix64) -> usize {
        if self.loss.happens(random) {
            return 0;
        }
        1 + usize::from(self.duplicate.happens(random))
    }

    /// Changes the message where that is its lot.
    pub(super) fn strike(&self, header: &mut AmHeader, bytes: &mut [u8], random: &mut SplitMix64) {
        if !self.corrupt.happens(random) {
            return;
        }
        let of_header = u64::from(u64::BITS) * header.0.len() as u64;
        for _ in 0..=random.below(MOST_BITS) {
            let bit = random.below(of_header + 8 * bytes.len() as u64);
            match bit.checked_sub(of_header) {
                None => header.0[(bit / 64) as usize] ^= 1 << (bit % 64),
                Some(bit) => bytes[(bit / 8) as usize] ^= 1 << (bit % 8),
            }
        }
    }
}

impl FaultOptions {
    /// Whether every message comes once and whole.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.damage == Damage::NONE
    }
}
