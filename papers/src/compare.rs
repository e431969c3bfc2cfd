//! How series are compared.

use std::fmt::Write as _;

use crate::judgement::Judgement;
use crate::rows::{Point, Series};

/// How far a published ratio may lie outside ours.
pub(crate) const WIDENED: f64 = 0.25;

/// Returns the points of a series between two sizes.
pub(crate) fn within(series: &Series, [first, last]: [u64; 2]) -> Vec<(u64, Point)> {
    let sizes = series.range(first..=last);
    sizes.map(|(size, point)| (*size, *point)).collect()
}

/// Returns the points of two series at the sizes that both have.
pub(crate) fn pairs(one: &Series, other: &Series, sizes: [u64; 2]) -> Vec<(u64, Point, Point)> {
    let of = |(size, point)| Some((size, point, *other.get(&size)?));
    within(one, sizes).into_iter().filter_map(of).collect()
}

/// Returns the judgement of what was not measured.
pub(crate) fn nothing() -> Judgement {
    Judgement::not_testable("no size of it was measured")
}

/// Whether the intervals are disjoint, the first one the lower.
pub(crate) fn is_clearly_below(one: &Point, other: &Point) -> bool {
    one.high < other.low
}

/// Judges whether one series is below another: at two thirds of the sizes by disjoint intervals, and never the reverse.
pub(crate) fn below(pairs: &[(u64, Point, Point)]) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let below = pairs
        .iter()
        .filter(|(_, one, other)| is_clearly_below(one, other));
    let reverse = pairs
        .iter()
        .filter(|(_, one, other)| is_clearly_below(other, one));
    let (below, reverse) = (below.count(), reverse.count());
    let mut evidence = format!(
        "below at {below} of {} sizes, above at {reverse}",
        pairs.len()
    );
    if let [(size, one, other)] = pairs {
        let _ = write!(
            evidence,
            ": {:.3} and {:.3} at {size} B",
            one.median, other.median
        );
    }
    Judgement::new(reverse == 0 && below * 3 >= pairs.len() * 2, evidence)
}

/// Judges whether two series are the same: intervals overlap at two thirds of the sizes.
pub(crate) fn equal(pairs: &[(u64, Point, Point)]) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let is_equal = |(_, one, other): &&(u64, Point, Point)| {
        !is_clearly_below(one, other) && !is_clearly_below(other, one)
    };
    let equal = pairs.iter().filter(is_equal).count();
    let evidence = format!("the same at {equal} of {} sizes", pairs.len());
    Judgement::new(equal * 3 >= pairs.len() * 2, evidence)
}

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
