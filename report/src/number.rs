//! Numbers as people read them.

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

/// Three digits that count; from 1000 on whole numbers with their thousands apart.
#[must_use]
pub fn plain(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    if size >= 1e15 {
        return format!("{value:.2e}");
    }
    if size >= 999.5 {
        return grouped(value);
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    if size < 1e-4 {
        return format!("{value:.2e}");
    }
    #[allow(clippy::cast_possible_truncation, reason = "between -4 and 3")]
    let before = size.log10().floor() as i32 + 1;
    let digits = usize::try_from(3 - before).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A whole number with commas between its thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 {
        format!("-{text}")
    } else {
        text
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

/// Returns a number of bytes with the largest unit that leaves it whole: `64 KiB`, `1000 B`.
#[must_use]
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut count, mut unit) = (count, 0);
    while count >= 1024.0 && count % 1024.0 == 0.0 && unit + 1 < UNITS.len() {
        count /= 1024.0;
        unit += 1;
    }
    // What is no power of two keeps a fraction, where it is a short one.
    while count >= 10_240.0 && unit + 1 < UNITS.len() {
        count /= 1024.0;
        unit += 1;
    }
    format!("{} {}", plain(count).replace(',', ""), UNITS[unit])
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
    fn three_digits_count() {
        for (number, text) in [
            (0.0, "0"),
            (0.0765, "0.0765"),
            (0.076_543, "0.0765"),
            (1.0, "1"),
            (1.238, "1.24"),
            (43.42, "43.4"),
            (999.4, "999"),
            (999.6, "1,000"),
            (26_234.6, "26,235"),
            (1_234_567.0, "1,234,567"),
            (-12.34, "-12.3"),
            (0.000_012, "1.20e-5"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(plain(number), text);
        }
        assert_eq!(value(42.6e6, Unit::MessagesPerSecond), "42.6 M");
        assert_eq!(with_unit(1.5, Unit::Microseconds), "1.5 µs");
    }

    #[test]
    fn bytes_have_the_unit_that_leaves_them_whole() {
        for (count, text) in [
            (0.0, "0 B"),
            (1.0, "1 B"),
            (1000.0, "1000 B"),
            (1024.0, "1 KiB"),
            (1536.0, "1536 B"),
            (65536.0, "64 KiB"),
            (4_194_304.0, "4 MiB"),
            (1_099_511_627_776.0, "1 TiB"),
            (1_000_000.0, "977 KiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
