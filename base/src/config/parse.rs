//! How values are written: sizes, durations and switches. The same words hold for
//! settings, for the options of the command and for the files of results.

use std::time::Duration;

/// The letters that multiply a size, largest first. K is 1024, as everywhere in Tagwire.
const UNITS: [(char, u32); 3] = [('G', 30), ('M', 20), ('K', 10)];

const SECOND_NS: u64 = 1_000_000_000;

/// A size in bytes: a whole number, with K, M or G behind it for 1024, 1024^2, 1024^3 bytes.
///
/// ```
/// use tagwire_base::config::parse::bytes;
///
/// assert_eq!(bytes("4K"), Ok(4096));
/// assert!(bytes("4KB").is_err());
/// ```
///
/// # Errors
/// What is accepted, when `text` is something else or is beyond 64 bits.
pub fn bytes(text: &str) -> Result<u64, String> {
    let last = text.chars().last().map(|c| c.to_ascii_uppercase());
    let unit = UNITS.iter().find(|(letter, _)| Some(*letter) == last);
    let (digits, shift) = match unit {
        Some((_, shift)) => (&text[..text.len() - 1], *shift),
        None => (text, 0),
    };
    integer(digits)
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| {
            "expected a size in bytes such as 8, 4K, 2M or 1G (K is 1024), below 2^64".to_owned()
        })
}

/// A size as [`bytes`] reads it, with the largest unit that leaves a whole number.
///
/// ```
/// use tagwire_base::config::parse::format_bytes;
///
/// assert_eq!(format_bytes(65_536), "64K");
/// assert_eq!(format_bytes(1_000), "1000");
/// ```
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    for (letter, shift) in UNITS {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{letter}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// A duration: a number, whole or with a decimal point, and its unit: us, ms or s. A bare 0
/// needs none.
///
/// ```
/// use std::time::Duration;
/// use tagwire_base::config::parse::duration;
///
/// assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1500)));
/// assert!(duration("5").is_err());
/// ```
///
/// # Errors
/// What is accepted, when `text` is something else or is beyond what 64 bits of nanoseconds hold
/// (584 years).
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 50us, 1.5ms or 10s".to_owned();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (number, unit_ns) = if let Some(number) = text.strip_suffix("us") {
        (number, 1_000)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1_000_000)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, SECOND_NS)
    } else {
        return Err(expected());
    };
    decimal_ns(number, unit_ns)
        .map(Duration::from_nanos)
        .ok_or_else(expected)
}

/// `number`, which may have a decimal point, times `unit_ns`; exact, and `None` where a fraction
/// of a nanosecond would be left.
fn decimal_ns(number: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut total = integer(whole).ok()?.checked_mul(unit_ns)?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut unit = unit_ns;
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        if digit != 0 && !unit.is_multiple_of(10) {
            return None;
        }
        unit /= 10;
        total = total.checked_add(digit * unit)?;
    }
    Some(total)
}

/// A duration as [`duration`] reads it, in the largest unit that leaves a whole number, or in
/// microseconds with a decimal point.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    for (unit, unit_ns) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if ns.is_multiple_of(unit_ns) {
            return format!("{}{unit}", ns / unit_ns);
        }
    }
    let text = format!("{}.{:03}", ns / 1000, ns % 1000);
    format!("{}us", text.trim_end_matches('0'))
}

/// A whole number in decimal digits.
///
/// # Errors
/// What is accepted, when `text` is something else or is beyond 64 bits.
pub fn integer(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| "expected a whole number below 2^64".to_owned())
}

/// A switch: on or off; also yes or no, true or false, 1 or 0.
///
/// # Errors
/// What is accepted, when `text` is something else.
pub fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_in_every_unit() {
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("3k"), Ok(3072));
        assert_eq!(bytes("2M"), Ok(2 << 20));
        assert_eq!(bytes("17179869183G"), Ok(((1 << 34) - 1) << 30));
    }

    #[test]
    fn what_is_no_size() {
        for text in [
            "",
            "K",
            "-1",
            "+1",
            "1.5K",
            "4 K",
            "4KB",
            "0x10",
            "17179869184G",
            "K4",
            "４K",
            "4µ",
            "18446744073709551616",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_in_every_unit() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("7us"), Ok(Duration::from_micros(7)));
        assert_eq!(duration("0.001us"), Ok(Duration::from_nanos(1)));
        assert_eq!(duration("2.50s"), Ok(Duration::from_millis(2500)));
        assert_eq!(duration("1.000000001s"), Ok(Duration::new(1, 1)));
    }

    #[test]
    fn what_is_no_duration() {
        for text in [
            "",
            "s",
            "5",
            "5m",
            "5 s",
            "-1s",
            ".5s",
            "1.s",
            "1.5.5s",
            "1e3s",
            "0.0001us",
            "1h",
            "99999999999999s",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn switches() {
        assert_eq!(flag("ON"), Ok(true));
        assert_eq!(flag("0"), Ok(false));
        assert!(flag("maybe").is_err());
    }

    proptest! {
        #[test]
        fn written_sizes_are_read_back(size: u64) {
            prop_assert_eq!(bytes(&format_bytes(size)), Ok(size));
        }

        #[test]
        fn written_round_sizes_are_read_back_and_short(number in 1u64..1024, shift in 0u32..4) {
            let size = number << (10 * shift);
            let text = format_bytes(size);
            prop_assert!(text.len() <= 5, "{}", text);
            prop_assert_eq!(bytes(&text), Ok(size));
        }

        #[test]
        fn written_durations_are_read_back(ns: u64) {
            let time = Duration::from_nanos(ns);
            prop_assert_eq!(duration(&format_duration(time)), Ok(time));
        }

        #[test]
        fn no_text_breaks_a_parser(text in any::<String>()) {
            let _ = (bytes(&text), duration(&text), integer(&text), flag(&text));
        }

        #[test]
        fn digits_with_anything_behind_break_no_parser(text in "[0-9.]{0,24}.{0,3}") {
            let _ = (bytes(&text), duration(&text), integer(&text));
        }
    }
}
