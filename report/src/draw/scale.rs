//! Axes: from values to places along them, and the labels that fit.

use crate::metric::Unit;
use crate::model::Variable;
use crate::number;

/// What the values along an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes, by powers of two.
    Bytes,
    /// Counts, by powers of two.
    Count,
    /// Values of a metric, by powers of ten.
    Value(Unit),
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    kind: Kind,
    /// The base of the logarithm; `None` for a linear axis.
    base: Option<f64>,
    /// The ends, as places.
    low: f64,
    high: f64,
    /// Where zero is on a logarithmic axis.
    zero: Option<f64>,
    /// The values of a variable: where all of them have room, they are the labels.
    own: Vec<f64>,
}

/// A label and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its place.
    pub place: f64,
    /// What is written.
    pub label: String,
}

/// From which quotient of the greatest and the least value on an axis is logarithmic.
const SPAN: f64 = 10.0;
/// Where an axis ends: differences of places stay numbers.
const FAR: f64 = 1e300;

impl Scale {
    /// Returns the axis of a variable with these values.
    #[must_use]
    pub fn of_variable(variable: &Variable, values: &[f64]) -> Self {
        let kind = if variable.is_bytes() {
            Kind::Bytes
        } else {
            Kind::Count
        };
        let positive = || values.iter().copied().filter(|value| *value > 0.0);
        let least = positive().fold(f64::MAX, f64::min);
        let greatest = positive().fold(0.0, f64::max);
        let zero = values.iter().any(|value| *value <= 0.0);
        if greatest / least < SPAN {
            return Self::linear(kind, values, 0.03);
        }
        let (first, last) = (least.log2(), greatest.log2());
        let zero = zero.then_some(first - 1.0);
        let scale = Self::padded(kind, Some(2.0), zero.unwrap_or(first), last, zero, 0.03);
        Self {
            own: values.to_vec(),
            ..scale
        }
    }

    /// Returns the axis of ratios to a base with these values, the ends of intervals among them.
    #[must_use]
    pub fn of_ratios(values: &[f64]) -> Self {
        let scale = Self::of_metric(Unit::None, values);
        if scale.base.is_some() {
            scale
        } else {
            Self::linear(Kind::Value(Unit::None), values, 0.08)
        }
    }

    /// Returns the axis of parts of a whole, in percent: from nothing to all.
    #[must_use]
    pub fn of_parts() -> Self {
        Self::padded(Kind::Value(Unit::Percent), None, 0.0, 100.0, None, 0.0)
    }

    /// Returns the axis of a metric with these values, the ends of intervals among them.
    #[must_use]
    pub fn of_metric(unit: Unit, values: &[f64]) -> Self {
        let kind = Kind::Value(unit);
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let greatest = values.iter().copied().fold(f64::MIN, f64::max);
        if unit == Unit::Percent || least <= 0.0 || greatest / least < SPAN {
            let mut values = values.to_vec();
            // Lengths from zero do not mislead.
            values.push(0.0);
            return Self::linear(kind, &values, 0.05);
        }
        Self::padded(
            kind,
            Some(10.0),
            least.log10(),
            greatest.log10(),
            None,
            0.05,
        )
    }

    /// Returns an axis of so many rows, without labels.
    #[must_use]
    pub fn of_rows(rows: f64) -> Self {
        Self {
            kind: Kind::Count,
            base: None,
            low: 0.0,
            high: rows,
            zero: None,
            own: Vec::new(),
        }
    }

    fn linear(kind: Kind, values: &[f64], padding: f64) -> Self {
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let greatest = values.iter().copied().fold(f64::MIN, f64::max);
        let mut scale = Self::padded(kind, None, least, greatest, None, padding);
        if least == 0.0 {
            scale.low = 0.0;
        }
        scale
    }

    fn padded(
        kind: Kind,
        base: Option<f64>,
        low: f64,
        high: f64,
        zero: Option<f64>,
        padding: f64,
    ) -> Self {
        let (low, high) = (low.clamp(-FAR, FAR), high.clamp(-FAR, FAR));
        // One value has some room on both sides.
        let span = if high > low {
            high - low
        } else {
            low.abs().max(1.0)
        };
        Self {
            kind,
            base,
            low: low - padding * span,
            high: high + padding * span,
            zero,
            own: Vec::new(),
        }
    }

    /// Returns both ends, as places.
    #[must_use]
    pub const fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns the place of a value, within the axis.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let place = match (self.base, self.zero) {
            (None, _) => value,
            (Some(_), Some(zero)) if value <= 0.0 => zero,
            (Some(base), _) => value.log(base),
        };
        // An interval may reach below what a logarithm can show.
        if place.is_finite() {
            place.clamp(self.low, self.high)
        } else {
            self.low
        }
    }

    /// Returns the labels for an axis of `length` pixels whose labels have `width` pixels each.
    #[must_use]
    pub fn ticks(&self, length: f64, width: f64) -> Vec<Tick> {
        let room = (length / width).max(2.0);
        let apart = (self.high - self.low) / room;
        let own: Vec<Tick> = self
            .own
            .iter()
            .map(|value| Tick {
                place: self.place(*value),
                label: self.label(*value),
            })
            .collect();
        let has_room = |pair: &[Tick]| pair[1].place - pair[0].place >= apart;
        if !own.is_empty() && own.windows(2).all(has_room) {
            return own;
        }
        match self.base {
            Some(2.0) => self.octaves(room),
            Some(_) => self.decades(room),
            None => self.steps(room),
        }
    }

    fn octaves(&self, room: f64) -> Vec<Tick> {
        let first = self.zero.map_or(self.low, |zero| zero + 0.5);
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0];
        let fits = |step: &f64| (self.high - self.low) / step <= room;
        let step = steps.into_iter().find(fits).unwrap_or(20.0);
        let zero = self.zero.map(|place| Tick {
            place,
            label: self.label(0.0),
        });
        let exponents = multiples(step, first, self.high);
        let octaves = exponents.map(|place| Tick {
            place,
            label: self.label(place.exp2()),
        });
        // A label beside that of zero needs its room.
        let next = self
            .zero
            .map_or(f64::MIN, |zero| zero + 0.9 * (self.high - self.low) / room);
        zero.into_iter()
            .chain(octaves.filter(|tick| tick.place > next))
            .collect()
    }

    fn decades(&self, room: f64) -> Vec<Tick> {
        // Factors within a decade, and the least distance between two of them.
        let sets: [(&[f64], f64); 3] = [
            (&[1.0, 2.0, 3.0, 5.0, 7.0], 0.146),
            (&[1.0, 2.0, 5.0], 0.301),
            (&[1.0, 3.0], 0.477),
        ];
        let per_label = (self.high - self.low) / room;
        for (factors, distance) in sets {
            let decades = multiples(1.0, self.low.floor(), self.high);
            let all = decades
                .flat_map(|decade| factors.iter().map(move |factor| decade + factor.log10()));
            let all: Vec<f64> = all
                .filter(|place| (self.low..=self.high).contains(place))
                .collect();
            if per_label <= distance && all.len() > 1 {
                return all.into_iter().map(|place| self.power(place)).collect();
            }
        }
        let steps = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0];
        let step = steps.into_iter().find(|step| per_label <= *step);
        multiples(step.unwrap_or(200.0), self.low, self.high)
            .map(|place| self.power(place))
            .collect()
    }

    fn power(&self, place: f64) -> Tick {
        Tick {
            place,
            label: self.label(10_f64.powf(place)),
        }
    }

    fn steps(&self, room: f64) -> Vec<Tick> {
        let span = self.high - self.low;
        let rough = span / room.min(8.0);
        let step = match self.kind {
            Kind::Bytes => rough.log2().ceil().exp2().max(1.0),
            kind => {
                let decade = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .find(|factor| factor * decade >= rough * 0.999);
                let step = step.unwrap_or(10.0) * decade;
                if kind == Kind::Count {
                    step.max(1.0)
                } else {
                    step
                }
            }
        };
        let places = multiples(step, self.low, self.high);
        let ticks = places.map(|place| Tick {
            place,
            label: self.label(if place.abs() < step * 1e-6 {
                0.0
            } else {
                place
            }),
        });
        ticks.collect()
    }

    fn label(&self, value: f64) -> String {
        match self.kind {
            Kind::Bytes => number::bytes(value),
            Kind::Count => number::plain(value),
            Kind::Value(unit) => number::value(value, unit),
        }
    }

    /// Returns the axis for the page's script: base (0 for a linear one), ends, and how labels are written.
    #[must_use]
    pub fn data(&self) -> String {
        let labels = match self.kind {
            Kind::Bytes => "bytes",
            Kind::Value(Unit::MessagesPerSecond) => "si",
            Kind::Count | Kind::Value(_) => "plain",
        };
        format!(
            "{} {:.6} {:.6} {labels}",
            self.base.unwrap_or(0.0),
            self.low,
            self.high
        )
    }
}

/// The multiples of `step` between two places.
fn multiples(step: f64, low: f64, high: f64) -> impl Iterator<Item = f64> {
    let first = (low / step - 1e-9).ceil();
    // Ends that are no numbers, or a step that is lost in them, give an end all the same.
    (0..200)
        .map(move |place| (first + f64::from(place)) * step)
        .take_while(move |place| *place <= high + step * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::SIZE;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    fn sizes(values: &[f64], room: f64) -> Vec<String> {
        let scale = Scale::of_variable(&Variable::named(SIZE), values);
        let ticks = scale.ticks(room, 1.0);
        labels(&ticks).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn sizes_are_labelled_in_powers_of_two() {
        let doubling: Vec<f64> = (0..23).map(|exponent| f64::from(exponent).exp2()).collect();
        assert_eq!(
            sizes(&doubling, 14.0),
            [
                "1 B", "4 B", "16 B", "64 B", "256 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB",
                "256 KiB", "1 MiB", "4 MiB"
            ]
        );
        assert_eq!(
            sizes(&doubling, 6.0),
            ["1 B", "32 B", "1 KiB", "32 KiB", "1 MiB"]
        );
        assert_eq!(
            sizes(&[0.0, 1.0, 2.0, 1024.0], 6.0),
            ["0 B", "4 B", "16 B", "64 B", "256 B", "1 KiB"]
        );
        assert_eq!(
            sizes(&[8.0, 16.0, 24.0, 32.0], 6.0),
            ["8 B", "16 B", "24 B", "32 B"]
        );
        assert_eq!(sizes(&[8.0], 6.0), ["8 B"]);
        // Few values are labelled themselves.
        assert_eq!(
            sizes(&[8.0, 1000.0, 65536.0], 6.0),
            ["8 B", "1000 B", "64 KiB"]
        );
    }

    #[test]
    fn values_are_labelled_by_decades() {
        let of = |values: &[f64], room: f64| {
            let scale = Scale::of_metric(Unit::Microseconds, values);
            let ticks = scale.ticks(room, 1.0);
            labels(&ticks)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[0.08, 400.0], 10.0),
            ["0.1", "0.3", "1", "3", "10", "30", "100", "300"]
        );
        assert_eq!(of(&[0.08, 400.0], 5.0), ["0.1", "1", "10", "100"]);
        assert_eq!(of(&[1.0, 4.0], 6.0), ["0", "1", "2", "3", "4"]);
        assert_eq!(of(&[0.0, 0.0], 6.0).first().map(String::as_str), Some("0"));
        // A share below nothing.
        let parts = Scale::of_parts();
        assert_eq!(parts.ends(), (0.0, 100.0));
        assert_eq!((parts.place(-3.0), parts.place(101.0)), (0.0, 100.0));
        let scale = Scale::of_metric(Unit::Percent, &[-20.0, 90.0]);
        assert_eq!(
            labels(&scale.ticks(8.0, 1.0)),
            ["-20", "0", "20", "40", "60", "80"]
        );
    }

    #[test]
    fn whatever_the_values_places_are_within_the_axis() {
        let wild = [
            0.0,
            -5.0,
            1e-300,
            1e-9,
            1.0,
            3.0,
            1e9,
            1e300,
            f64::MAX,
            f64::MIN,
        ];
        for a in wild {
            for b in wild {
                for c in wild {
                    let scale = Scale::of_metric(Unit::None, &[a, b, c]);
                    let (low, high) = scale.ends();
                    for value in [a, b, c] {
                        assert!(
                            (low..=high).contains(&scale.place(value)),
                            "{a:e} {b:e} {c:e}: {scale:?}"
                        );
                    }
                    assert!(
                        scale.ticks(300.0, 30.0).len() < 40,
                        "{a:e} {b:e} {c:e}: {scale:?}"
                    );
                }
            }
        }
    }
}
