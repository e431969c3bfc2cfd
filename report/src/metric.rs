//! Metrics: the figures that get a plot, with name, unit, and which way is good.

use tagwire_bench::{Quantity, Sense};

use crate::matching;

/// What the values of a metric are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// 10^6 bytes per second.
    MegabytesPerSecond,
    /// Messages per second.
    MessagesPerSecond,
    /// Percent.
    Percent,
    /// A ratio or a share of 1.
    None,
}

impl Unit {
    fn of_key(key: &str) -> Self {
        let ends = |end: &str| key.ends_with(end);
        match () {
            () if ends("_us") => Self::Microseconds,
            () if ends("_mb_s") => Self::MegabytesPerSecond,
            () if ends("_msg_s") => Self::MessagesPerSecond,
            () if ends("_pct") => Self::Percent,
            () => Self::None,
        }
    }

    /// Returns the unit's symbol; empty for a ratio.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::MegabytesPerSecond => "MB/s",
            Self::MessagesPerSecond => "messages/s",
            Self::Percent => "%",
            Self::None => "",
        }
    }
}

/// A figure that gets a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its key in the rows.
    pub key: String,
    /// Its name, as a title has it.
    pub name: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub sense: Sense,
    /// Whether series are held against each other by it.
    pub is_judged: bool,
    /// The keys of the least and the greatest block.
    pub bounds: (String, String),
}

impl Metric {
    /// Returns the metrics among `keys`: the quantities of the suite in its order, then percentiles, then those of the laboratory.
    #[must_use]
    pub fn among(keys: &[&str]) -> Vec<Self> {
        let quantities = Quantity::ALL.into_iter().map(Self::from);
        let percentiles = keys.iter().filter_map(|key| Self::percentile(key));
        let all = quantities.chain(percentiles).chain(matching::metrics());
        all.filter(|metric| keys.contains(&metric.key.as_str()))
            .collect()
    }

    /// The metric of a key such as `p99_9_us`.
    fn percentile(key: &str) -> Option<Self> {
        let number = key.strip_prefix('p')?.strip_suffix("_us")?;
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if number.is_empty() || !number.split('_').all(is_number) {
            return None;
        }
        Some(Self {
            key: key.to_owned(),
            name: format!("Percentile {}", number.replace('_', ".")),
            unit: Unit::Microseconds,
            sense: Sense::LessIsBetter,
            is_judged: true,
            bounds: (String::new(), String::new()),
        })
    }

    /// Returns the name with the unit: `Latency (µs)`.
    #[must_use]
    pub fn title(&self) -> String {
        match self.unit.symbol() {
            "" => self.name.clone(),
            symbol => format!("{} ({symbol})", self.name),
        }
    }

    /// Whether the values are parts of a core's time: from 0 to 100 %, but for the noise.
    #[must_use]
    pub fn is_part_of_a_core(&self) -> bool {
        let parts = [Quantity::AVAILABILITY, Quantity::AVAILABILITY_ONE_CORE];
        parts.iter().any(|part| part.key() == self.key)
    }

    /// Returns which way is good, in words.
    #[must_use]
    pub const fn direction(&self) -> &'static str {
        match self.sense {
            Sense::LessIsBetter => "less is better",
            Sense::MoreIsBetter | Sense::Share => "more is better",
        }
    }
}

impl From<Quantity> for Metric {
    fn from(quantity: Quantity) -> Self {
        let key = quantity.key();
        // The titles of the text tables: the unit is told apart here.
        let name = match quantity {
            Quantity::RATE => "Message rate",
            Quantity::CPU => "Use of a core",
            Quantity::APPLICATION_AVAILABILITY => "Application availability",
            Quantity::PERCEIVED_BANDWIDTH => "Perceived bandwidth",
            Quantity::BASE => "Iteration without work",
            Quantity::ITER => "Iteration with work",
            Quantity::BASE_ONE_CORE => "Iteration by one core",
            Quantity::AVAILABILITY_ONE_CORE => "Availability, of one core",
            Quantity::TOTAL => "Message and computation at once",
            Quantity::COMMUNICATION => "Message alone",
            Quantity::COMPUTATION => "Computation alone",
            Quantity::PARTITIONED_OVERHEAD => "Overhead over one message",
            _ => quantity.title.split(" (").next().unwrap_or(quantity.stem),
        };
        Self {
            name: name.to_owned(),
            unit: Unit::of_key(&key),
            sense: quantity.into(),
            is_judged: true,
            bounds: quantity.bounds(),
            key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_figures_and_percentiles_are_metrics() {
        let found = Metric::among(&[
            "p99_9_us",
            "latency_us",
            "latency_min_us",
            "part_us",
            "pct",
            "p_us",
        ]);
        let titles: Vec<_> = found.iter().map(Metric::title).collect();
        assert_eq!(titles, ["Latency (µs)", "Percentile 99.9 (µs)"]);
    }
}
