//! How series are compared.

use std::fmt::Write as _;

use tagwire_bench::Summary;

use crate::answer::{Answer, Band, Extreme, Tally, is_one, less, quotient, same};
use crate::judgement::{Judgement, Verdict, nothing};
use crate::rows::Series;
use crate::shape::{NEAR, Step, peak_of};
use crate::words::{short, told};

/// All sizes.
pub(crate) const ALL: [u64; 2] = [0, u64::MAX];

/// A size with the figures of two series.
pub(crate) type Pair = (u64, Summary, Summary);

/// Returns the points of a series between two sizes.
pub(crate) fn within(series: &Series, [first, last]: [u64; 2]) -> Vec<(u64, Summary)> {
    let sizes = series.range(first..=last);
    sizes.map(|(size, point)| (*size, *point)).collect()
}

/// Returns the points of two series at the sizes that both have.
pub(crate) fn pairs(one: &Series, other: &Series, sizes: [u64; 2]) -> Vec<Pair> {
    let of = |(size, point)| Some((size, point, *other.get(&size)?));
    within(one, sizes).into_iter().filter_map(of).collect()
}

/// Judges whether one series is below another: at two thirds of the sizes by disjoint intervals, and never the reverse.
pub(crate) fn below(pairs: &[Pair]) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let tally = Tally::of(pairs.iter().map(|(_, one, other)| less(one, other)));
    let mut evidence = format!(
        "below at {} of {} sizes, above at {}",
        tally.yes, tally.all, tally.no
    );
    if let [(size, one, other)] = pairs {
        let _ = write!(evidence, ": {} and {} at {size} B", told(one), told(other));
    }
    Judgement::new(tally.order(), evidence)
}

/// Judges whether one series is not below another, at two thirds of the sizes.
pub(crate) fn not_below(pairs: &[Pair]) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    // The other way round: at least as great.
    let of = |(_, one, other): &Pair| match less(one, other) {
        Answer::Yes => Answer::No,
        Answer::No => Answer::Yes,
        Answer::Open => Answer::Open,
    };
    let tally = Tally::of(pairs.iter().map(of));
    let evidence = format!(
        "below at {} of {} sizes, not below at {}",
        tally.no, tally.all, tally.yes
    );
    Judgement::new(tally.most(), evidence)
}

/// Judges whether two series are the same, at two thirds of the sizes: by the ratio of each launch where they share launches.
pub(crate) fn equal(pairs: &[Pair], ratios: &Series) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let tally = Tally::of(pairs.iter().map(|(size, one, other)| {
        let ratio = ratios.get(size);
        ratio.map_or_else(|| same(one, other), is_one)
    }));
    let mut evidence = format!(
        "the same at {} of {} sizes, apart at {}",
        tally.yes, tally.all, tally.no
    );
    if let [(size, one, other)] = pairs {
        let _ = write!(evidence, ": {} and {} at {size} B", told(one), told(other));
    }
    Judgement::new(tally.most(), evidence)
}

/// Judges whether one is below the other from about a size on, and not before; with `above`, up to about that size, and not behind.
pub(crate) fn crossover(pairs: &[Pair], value: u64, above: bool) -> Judgement {
    if pairs.len() < 2 {
        return nothing();
    }
    let mut answers: Vec<(u64, Answer)> = pairs
        .iter()
        .map(|(size, one, other)| (*size, less(one, other)))
        .collect();
    if above {
        answers.reverse();
    }
    // From the side on which it has to be below.
    let tail = answers
        .iter()
        .rev()
        .take_while(|(_, answer)| *answer == Answer::Yes);
    let (count, all) = (tail.count(), answers.len());
    let word = if above { "up to" } else { "from" };
    let published = format!("published {word} {value} B");
    if count == 0 {
        let (size, answer) = answers[all - 1];
        let text = format!("not at {size} B; {published}");
        let is_reverse = answer == Answer::No;
        return Judgement::new(Answer::of(false, is_reverse).verdict(), text);
    }
    let begin = answers[all - count].0;
    let reverse = answers[..all - count]
        .iter()
        .rfind(|(_, answer)| *answer == Answer::No);
    let Some((end, _)) = reverse else {
        let text = match count == all {
            true => format!("at every size; {published}"),
            false => format!("{word} {begin} B, and nowhere the reverse; {published}"),
        };
        // A crossing may lie before the first size.
        let first = answers[0].0.max(1) as f64;
        let is_far = match above {
            true => first > value as f64 * NEAR,
            false => first * NEAR < value as f64,
        };
        return Judgement::new(Answer::of(false, count == all && is_far).verdict(), text);
    };
    let step = Step {
        from: begin.min(*end),
        to: begin.max(*end),
    };
    let evidence = format!("{word} {begin} B; {published}");
    Judgement::new(step.is_about(value, NEAR).verdict(), evidence)
}

/// Judges a ratio by a published one.
pub(crate) fn ratio(ours: &Summary, band: Band, published: &str) -> Judgement {
    let evidence = format!("{}; published {published}", told(ours));
    Judgement::new(band.has(ours).verdict(), evidence)
}

/// Judges whether the greatest value of a series is a published one.
pub(crate) fn peak_is(points: &[(u64, Summary)], band: Band, published: &str) -> Judgement {
    let series: Series = points.iter().copied().collect();
    let Some((size, point)) = peak_of(&series) else {
        return nothing();
    };
    let text = format!(
        "{} at the most, at {size} B; published {published}",
        told(&point)
    );
    Judgement::new(band.has(&point).verdict(), text)
}

/// A bound that values keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Least,
    Most,
}

/// Judges whether all values keep to a bound.
pub(crate) fn bound(points: &[(u64, Summary)], bound: Bound, value: f64) -> Judgement {
    let by =
        |one: &&(u64, Summary), other: &&(u64, Summary)| one.1.median.total_cmp(&other.1.median);
    let (found, word) = match bound {
        Bound::Least => (points.iter().min_by(by), "least"),
        Bound::Most => (points.iter().max_by(by), "most"),
    };
    let Some((size, point)) = found else {
        return nothing();
    };
    let keeps = |(_, point): &(u64, Summary)| match bound {
        Bound::Least => Answer::of(point.min >= value, point.max < value),
        Bound::Most => Answer::of(point.max <= value, point.min > value),
    };
    let evidence = format!(
        "{} at the {word}, at {size} B; claimed at the {word} {}",
        told(point),
        short(value)
    );
    Judgement::new(Tally::of(points.iter().map(keeps)).each(), evidence)
}

/// A published range of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    /// What lies in it.
    pub(crate) band: Band,
    /// Its end that is furthest from no effect, and up to which size its figures go. A bound has none: less is as good.
    pub(crate) extreme: Option<(Extreme, u64)>,
}

/// Judges whether values lie in a published range, at two thirds of the sizes, and whether that which is furthest from no effect is near
/// the published one. That is open where the published sizes go further.
pub(crate) fn in_range(points: &[(u64, Summary)], range: Range, published: &str) -> Judgement {
    let Some(sizes_end) = points.iter().map(|point| point.0).max() else {
        return nothing();
    };
    let tally = Tally::of(points.iter().map(|(_, point)| range.band.has(point)));
    let medians = points.iter().map(|(_, point)| point.median);
    let least = medians.clone().fold(f64::INFINITY, f64::min);
    let most = medians.fold(f64::NEG_INFINITY, f64::max);
    let mut evidence = format!(
        "in it at {} of {} sizes, apart at {}: {} to {}; published {published}",
        tally.yes,
        tally.all,
        tally.no,
        short(least),
        short(most),
    );
    let mut verdict = tally.most();
    if let (Verdict::Holds, Some((extreme, last))) = (verdict, range.extreme) {
        let of = if extreme.is_low { least } else { most };
        let point = points.iter().find(|(_, point)| point.median == of);
        let is_near = point.map_or(Answer::Open, |(_, point)| extreme.band.has(point));
        if is_near != Answer::Yes {
            let _ = write!(
                evidence,
                "; {} is not near {}",
                short(of),
                short(extreme.value)
            );
            verdict = is_near.verdict();
        }
        if is_near != Answer::Yes && sizes_end < last {
            let _ = write!(evidence, ", which may lie beyond {sizes_end} B");
            verdict = Verdict::Undecided;
        }
    }
    Judgement::new(verdict, evidence)
}

/// Judges whether the ratio of two series is clearly lower at the largest size than at the smallest.
pub(crate) fn nears(ratios: &Series) -> Judgement {
    let (Some((from, before)), Some((to, after)), true) = (
        ratios.first_key_value(),
        ratios.last_key_value(),
        ratios.len() > 1,
    ) else {
        return nothing();
    };
    let evidence = format!("{} at {from} B, {} at {to} B", told(before), told(after));
    Judgement::new(less(after, before).verdict(), evidence)
}

/// Judges whether a series is lower at the large sizes than at the small ones: from the last of these to the first of those.
pub(crate) fn falls(small: &[(u64, Summary)], large: &[(u64, Summary)]) -> Judgement {
    let (Some((from, before)), Some((to, after))) = (small.last(), large.first()) else {
        return nothing();
    };
    let evidence = format!("{} at {from} B, {} at {to} B", told(before), told(after));
    Judgement::new(less(after, before).verdict(), evidence)
}

/// Judges whether the greatest value of a series is at least another.
pub(crate) fn reaches(points: &[(u64, Summary)], value: f64) -> Judgement {
    let series: Series = points.iter().copied().collect();
    let Some((size, point)) = peak_of(&series) else {
        return nothing();
    };
    let some = points.iter().any(|(_, point)| point.min >= value);
    let none = points.iter().all(|(_, point)| point.max < value);
    let text = format!(
        "{} at the most, at {size} B; claimed {} at least",
        told(&point),
        short(value)
    );
    Judgement::new(Answer::of(some, none).verdict(), text)
}

/// Judges whether all values are one.
pub(crate) fn exactly(points: &[(u64, Summary)], value: f64) -> Judgement {
    if points.is_empty() {
        return nothing();
    }
    let is_it = |(_, point): &(u64, Summary)| {
        let is_it = point.min == value && point.max == value;
        Answer::of(is_it, !is_it)
    };
    let tally = Tally::of(points.iter().map(is_it));
    let text = format!("{value} at {} of {} sizes", tally.yes, tally.all);
    Judgement::new(tally.each(), text)
}

/// Judges whether two series differ by less than so much, at two thirds of the sizes.
pub(crate) fn close(pairs: &[Pair], within: f64) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let differences = pairs.iter().map(|(_, one, other)| {
        let (low, high) = (one.min - other.max, one.max - other.min);
        Answer::of(
            low >= -within && high <= within,
            low > within || high < -within,
        )
    });
    let tally = Tally::of(differences);
    let text = format!(
        "within {within} at {} of {} sizes, apart at {}",
        tally.yes, tally.all, tally.no
    );
    Judgement::new(tally.most(), text)
}

/// Judges whether the steepest step up of a series from a size to the next is less steep than another's.
pub(crate) fn smoother(of: &[(u64, Summary)], than: &[(u64, Summary)]) -> Judgement {
    let steepest = |points: &[(u64, Summary)]| {
        let steps = points.windows(2).filter(|pair| pair[0].1.min > 0.0);
        let steps = steps.map(|pair| (pair[1].0, quotient(&pair[1].1, &pair[0].1)));
        steps.max_by(|one, other| one.1.median.total_cmp(&other.1.median))
    };
    let (Some((here, of)), Some((there, than))) = (steepest(of), steepest(than)) else {
        return nothing();
    };
    let text = format!(
        "{} at {here} B; the other: {} at {there} B",
        told(&of),
        told(&than)
    );
    Judgement::new(less(&of, &than).verdict(), text)
}
