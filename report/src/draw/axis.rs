//! A scale with its labels, as plotters takes an axis.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::scale::{Scale, Tick};

/// An axis whose values are places of a scale.
#[derive(Debug, Clone)]
pub struct Axis {
    ends: (f64, f64),
    ticks: Vec<Tick>,
}

impl Axis {
    /// Returns the axis of `scale` with these labels.
    #[must_use]
    pub fn new(scale: &Scale, ticks: &[Tick]) -> Self {
        Self {
            ends: scale.ends(),
            ticks: ticks.to_vec(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (place - self.ends.0) / (self.ends.1 - self.ends.0);
        let length = f64::from(last) - f64::from(first);
        #[allow(clippy::cast_possible_truncation, reason = "between both ends")]
        let along = (part * length).round() as i32;
        first + along
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|tick| tick.place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &f64) -> String {
        let found = self.ticks.iter().find(|tick| tick.place == *place);
        found.map_or_else(String::new, |tick| tick.label.clone())
    }
}
