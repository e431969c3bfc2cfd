//! Figures in words.

use tagwire_bench::Summary;

/// Returns a figure with three digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns a figure with its interval.
pub(crate) fn told(point: &Summary) -> String {
    let [median, low, high] = [point.median, point.min, point.max].map(short);
    format!("{median} ({low}..{high})")
}
