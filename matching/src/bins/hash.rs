//! The hash that spreads envelopes over bins.

use crate::storage::Selector;

/// Mixes all of a selector's bits into all bits of the result.
///
/// One wide multiplication whose halves are folded together. The tags and ranks of programs are
/// structured (multiples of a stride, a row and a column in one tag, a tag that is a function of
/// the rank); a hash that adds, XORs or takes residues lets such structure through, this one does
/// not.
#[inline]
pub(crate) fn hash(selector: Selector) -> usize {
    let product =
        u128::from(selector.key ^ KEY_SALT) * u128::from(u64::from(selector.kind) ^ KIND_SALT);
    ((product >> 64) as u64 ^ product as u64) as usize
}

/// Random odd numbers with about as many ones as zeros in every byte.
const KEY_SALT: u64 = 0x9d6c_2b53_e1a7_4d35;
const KIND_SALT: u64 = 0xa3b1_95c7_6e4d_38e9;

#[cfg(test)]
mod tests {
    use super::*;

    /// The fullest of 1,024 bins that hold 1,024 keys; a random spread has 5 to 8.
    fn fullest(keys: impl Iterator<Item = (u32, u32)>) -> usize {
        let mut bins = vec![0; 1024];
        for (source, tag) in keys.take(1024) {
            let key = u64::from(source) << 32 | u64::from(tag);
            bins[hash(Selector { key, kind: 0 }) % 1024] += 1;
        }
        bins.into_iter().max().unwrap()
    }

    #[test]
    fn structured_keys_spread() {
        for shift in 0..22 {
            assert!(
                fullest((0..).map(|i| (0, i << shift))) <= 12,
                "tags << {shift}"
            );
            assert!(
                fullest((0..).map(|i| (i << shift, 0))) <= 12,
                "sources << {shift}"
            );
            assert!(
                fullest((0..).map(|i| (i, i << shift))) <= 12,
                "diagonal << {shift}"
            );
        }
        for stride in [3, 10, 60, 1_000, 1_021, 1_023, 4_095, 65_537] {
            assert!(
                fullest((0..).map(|i| (0, i * stride))) <= 12,
                "stride {stride}"
            );
            assert!(
                fullest((0..).map(|i| (i, i * stride))) <= 12,
                "rank and tag {stride}"
            );
            assert!(
                fullest((0..).map(|i| (i % 32, i / 32 * stride))) <= 12,
                "grid {stride}"
            );
        }
    }
}
