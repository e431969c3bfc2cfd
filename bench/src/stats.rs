//! Medians and spreads.

/// What a handful of measurements of the same thing say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The middle value.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Summary {
    /// Of these values; `None` when there are none or one is no number.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        if sorted.is_empty() || sorted.iter().any(|value| !value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self {
            median,
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        })
    }

    /// The same of values `by` times as large.
    pub(crate) fn times(self, by: f64) -> Self {
        Self {
            median: self.median * by,
            min: self.min * by,
            max: self.max * by,
        }
    }

    /// How far apart the extremes are, in percent of the median; 0 for a median of 0.
    #[must_use]
    pub fn spread_pct(&self) -> f64 {
        if self.median == 0.0 {
            0.0
        } else {
            100.0 * (self.max - self.min) / self.median
        }
    }
}

/// A small seeded generator (SplitMix64, Steele and others 2014): for orders and for patterns,
/// where the same seed must give the same run.
#[derive(Debug, Clone)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Brings `items` into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.next() % (last as u64 + 1);
            items.swap(
                last,
                usize::try_from(other).expect("an index below a slice's length"),
            );
        }
    }
}

/// Spreads every bit of `value` over all 64.
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn spread_is_relative_to_the_median() {
        let summary = Summary::of(&[9.0, 10.0, 12.0]).unwrap();
        assert_eq!(
            (summary.min, summary.max, summary.spread_pct()),
            (9.0, 12.0, 30.0)
        );
        assert_eq!(Summary::of(&[0.0, 0.0]).unwrap().spread_pct(), 0.0);
    }

    #[test]
    fn a_seed_gives_one_order_of_all() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            Seeded::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut sorted = order(9);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
