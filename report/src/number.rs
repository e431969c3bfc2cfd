//! Numbers as people read them.

pub use tagwire_bench::number::{bytes, plain};

use crate::metric::Unit;

/// Returns a value of `unit`, without its symbol: three digits that count, thousands apart, rates by millions.
#[must_use]
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::MessagesPerSecond => scaled(value),
        _ => plain(value),
    }
}

/// Returns a value with its unit: `1.25 µs`.
#[must_use]
pub fn with_unit(number: f64, unit: Unit) -> String {
    match unit.symbol() {
        "" => value(number, unit),
        "%" => format!("{} %", value(number, unit)),
        symbol => format!("{} {symbol}", value(number, unit)),
    }
}

/// With k, M or G, each a thousand times the one before.
fn scaled(value: f64) -> String {
    for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= 0.9995 * unit {
            return format!("{} {name}", plain(value / unit));
        }
    }
    plain(value)
}

/// Returns a ratio: `1.25x`.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if !ratio.is_finite() => "-".to_owned(),
        ratio if ratio.abs() >= 100.0 => format!("{}x", plain(ratio)),
        ratio if ratio.abs() >= 10.0 => format!("{ratio:.1}x"),
        ratio => format!("{ratio:.2}x"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_behind_values() {
        assert_eq!(value(42.6e6, Unit::MessagesPerSecond), "42.6 M");
        assert_eq!(with_unit(1.5, Unit::Microseconds), "1.5 µs");
    }
}
