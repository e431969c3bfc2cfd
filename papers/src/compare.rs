//! How series are compared.

use std::fmt::Write as _;

use tagwire_bench::Summary;

use crate::judgement::Judgement;
use crate::rows::Series;

/// How far a published ratio may lie outside ours.
pub(crate) const WIDENED: f64 = 0.25;

/// Sizes of a crossing agree within this factor.
pub(crate) const NEAR: f64 = 4.0;

/// Returns the points of a series between two sizes.
pub(crate) fn within(series: &Series, [first, last]: [u64; 2]) -> Vec<(u64, Summary)> {
    let sizes = series.range(first..=last);
    sizes.map(|(size, point)| (*size, *point)).collect()
}

/// Returns the points of two series at the sizes that both have.
pub(crate) fn pairs(one: &Series, other: &Series, sizes: [u64; 2]) -> Vec<(u64, Summary, Summary)> {
    let of = |(size, point)| Some((size, point, *other.get(&size)?));
    within(one, sizes).into_iter().filter_map(of).collect()
}

/// Returns the judgement of what was not measured.
pub(crate) fn nothing() -> Judgement {
    Judgement::not_testable("no size of it was measured")
}

/// Whether the intervals are disjoint, the first one the lower.
pub(crate) fn is_clearly_below(one: &Summary, other: &Summary) -> bool {
    one.max < other.min
}

/// Judges whether one series is below another: at two thirds of the sizes by disjoint intervals, and never the reverse.
pub(crate) fn below(pairs: &[(u64, Summary, Summary)]) -> Judgement {
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
pub(crate) fn equal(pairs: &[(u64, Summary, Summary)]) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let is_equal = |(_, one, other): &&(u64, Summary, Summary)| {
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

/// Judges whether one is below the other from about a size on; with `above`, up to about that size.
pub(crate) fn crossover(pairs: &[(u64, Summary, Summary)], value: u64, above: bool) -> Judgement {
    let is_below = |(_, one, other): &(u64, Summary, Summary)| one.median < other.median;
    let (found, missing) = match above {
        // The last of the sizes from the first on.
        true => (
            pairs.iter().take_while(|pair| is_below(pair)).last(),
            "at no size",
        ),
        false => (
            pairs.iter().rev().take_while(|pair| is_below(pair)).last(),
            "not at the largest size",
        ),
    };
    if pairs.is_empty() {
        return nothing();
    }
    let Some((size, ..)) = found else {
        return Judgement::new(false, format!("{missing}; published {value} B"));
    };
    let (word, is_all) = match above {
        true => ("up to", pairs.iter().all(is_below)),
        false => ("from", pairs.iter().all(is_below)),
    };
    let factor = (*size).max(1) as f64 / value.max(1) as f64;
    let is_near = (1.0 / NEAR..=NEAR).contains(&factor);
    let evidence = match is_all {
        true => format!("at every size; published {word} {value} B"),
        false => format!("{word} {size} B; published {value} B"),
    };
    Judgement::new(is_near && !is_all, evidence)
}

/// Returns where a series is greatest.
pub(crate) fn peak_of(series: &Series) -> Option<(u64, Summary)> {
    let points = series.iter().map(|(size, point)| (*size, *point));
    points.max_by(|one, other| one.1.median.total_cmp(&other.1.median))
}

/// Judges whether the greatest value is a published one, widened by a quarter.
pub(crate) fn peak_is(series: &Series, value: f64) -> Judgement {
    let Some((size, point)) = peak_of(series) else {
        return nothing();
    };
    let holds = point.min * (1.0 - WIDENED) <= value && value <= point.max * (1.0 + WIDENED);
    let (ours, value) = (short(point.median), short(value));
    Judgement::new(
        holds,
        format!("{ours} at the most, at {size} B; published {value}"),
    )
}
