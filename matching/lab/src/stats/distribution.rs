//! How often values were, with their weights.

use std::collections::BTreeMap;

use serde::Serialize;

/// Values with how often, or for how long, they were.
#[derive(Debug, Clone, Default)]
pub(crate) struct Distribution {
    weights: BTreeMap<u64, u64>,
    weight: u64,
    sum: f64,
}

/// What is shown of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Distribution {
    pub(crate) fn note(&mut self, value: u64) {
        self.note_for(value, 1);
    }

    pub(crate) fn note_for(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        *self.weights.entry(rounded(value)).or_default() += weight;
        self.weight += weight;
        self.sum += value as f64 * weight as f64;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (value, weight) in &other.weights {
            *self.weights.entry(*value).or_default() += weight;
        }
        self.weight += other.weight;
        self.sum += other.sum;
    }

    pub(crate) const fn count(&self) -> u64 {
        self.weight
    }

    pub(crate) fn mean(&self) -> f64 {
        match self.weight {
            0 => 0.0,
            weight => self.sum / weight as f64,
        }
    }

    /// The least value that so many in a hundred do not pass.
    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.weight) * u128::from(percent)).div_ceil(100);
        let mut passed = 0_u128;
        for (value, weight) in &self.weights {
            passed += u128::from(*weight);
            if passed >= wanted {
                return *value;
            }
        }
        0
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        Quantiles {
            count: self.weight,
            mean: self.mean(),
            p50: self.percentile(50),
            p99: self.percentile(99),
            max: self.weights.last_key_value().map_or(0, |(value, _)| *value),
        }
    }
}

/// The value with four or five digits in binary steps, so that times take a bounded number of places; up to 8,191 exactly.
const fn rounded(value: u64) -> u64 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(13);
    value >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_exact_and_percentiles_are_values() {
        let mut values = Distribution::default();
        for value in 1..=100 {
            values.note(value);
        }
        let Quantiles {
            count,
            mean,
            p50,
            p99,
            max,
        } = values.quantiles();
        assert_eq!((count, mean, p50, p99, max), (100, 50.5, 50, 99, 100));
        let mut long = Distribution::default();
        long.note_for(1_000_001, 3);
        long.note_for(7, 1);
        long.add(&values);
        assert_eq!(long.quantiles().mean, (3_000_003.0 + 7.0 + 5050.0) / 104.0);
        assert!(long.quantiles().max.abs_diff(1_000_001) < 256);
        assert_eq!(Distribution::default().quantiles(), Quantiles::default());
    }
}
