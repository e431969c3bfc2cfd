//! Numbers as people read them, of any unit.

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
            (-1_234_567.0, "-1,234,567"),
            (0.000_012, "1.20e-5"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(plain(number), text);
        }
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
