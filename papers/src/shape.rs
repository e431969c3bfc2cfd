//! Shapes of one series over sizes: where it falls, where it is greatest, whether it rises.

use tagwire_bench::Summary;

use crate::answer::{Answer, less};
use crate::judgement::{Judgement, Verdict, nothing};
use crate::rows::Series;
use crate::words::short;

/// The rank correlation from which on something rises.
const RISES: f64 = 0.7;

/// A fall is about a size up to this factor away.
const DROP_NEAR: f64 = 2.0;

/// A crossing, a beginning or an end is about a size up to this factor away.
pub(crate) const NEAR: f64 = 4.0;

/// From one size to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Step {
    /// Whether something that happens in this step happens about a size, by a factor. It is open where sizes are further apart than that.
    pub(crate) fn is_about(self, value: u64, factor: f64) -> Answer {
        let [from, to, value] = [self.from, self.to, value].map(|size| size.max(1) as f64);
        let far = (from / value).max(value / to);
        let is_coarse = to / from > factor;
        Answer::of(far <= factor && !is_coarse, far > factor)
    }
}

/// Where a series falls most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fall {
    /// It falls nowhere.
    Nowhere,
    /// Intervals of all sizes overlap with those of the next.
    Unclear,
    /// In one of these steps: intervals do not tell in which.
    In(Vec<Step>),
}

/// By what a fall is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Difference,
    Ratio,
}

/// Returns where a series falls most from a size to the next.
pub(crate) fn fall_of(points: &[(u64, Summary)], by: By) -> Fall {
    let step = |pair: &[(u64, Summary)]| {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        let (least, most) = match by {
            By::Difference => (before.min - after.max, before.max - after.min),
            By::Ratio => (1.0 - after.max / before.min, 1.0 - after.min / before.max),
        };
        (Step { from, to }, least, most)
    };
    let steps: Vec<_> = points.windows(2).map(step).collect();
    let least = steps
        .iter()
        .map(|step| step.1)
        .fold(f64::NEG_INFINITY, f64::max);
    if least > 0.0 {
        let may = steps.iter().filter(|step| step.2 >= least);
        return Fall::In(may.map(|step| step.0).collect());
    }
    match steps.iter().any(|step| step.2 > 0.0) {
        true => Fall::Unclear,
        false => Fall::Nowhere,
    }
}

impl Fall {
    /// Whether it is about a size.
    pub(crate) fn is_about(&self, value: u64) -> Answer {
        match self {
            Self::Nowhere => Answer::No,
            Self::Unclear => Answer::Open,
            Self::In(steps) => agreed(steps.iter().map(|step| step.is_about(value, DROP_NEAR))),
        }
    }

    /// Whether it comes at larger sizes than another.
    fn is_later(&self, than: &Self) -> Answer {
        match (self, than) {
            (_, Self::Nowhere) => Answer::No,
            (Self::In(of), Self::In(than)) => {
                let pairs = of
                    .iter()
                    .flat_map(|of| than.iter().map(move |than| (of, than)));
                agreed(pairs.map(|(of, than)| Answer::of(of.from >= than.to, of.to <= than.to)))
            }
            _ => Answer::Open,
        }
    }

    pub(crate) fn told(&self) -> String {
        match self {
            Self::Nowhere => "it falls at no size".to_owned(),
            Self::Unclear => "no fall is greater than its intervals".to_owned(),
            Self::In(steps) => {
                let stretches = steps.chunk_by(|step, next| step.to == next.from);
                let all: Vec<_> = stretches.map(told_stretch).collect();
                format!("it falls most {}", all.join(" or "))
            }
        }
    }
}

/// Returns between which sizes the greatest of steps lies that follow one another.
fn told_stretch(steps: &[Step]) -> String {
    match steps {
        [] => String::new(),
        [step] => format!("from {} to {} B", step.from, step.to),
        [first, .., last] => format!("in a step between {} and {} B", first.from, last.to),
    }
}

/// What several answers agree on; it is open where they do not.
fn agreed(answers: impl Iterator<Item = Answer> + Clone) -> Answer {
    Answer::of(
        answers.clone().all(|one| one == Answer::Yes),
        answers.clone().all(|one| one == Answer::No),
    )
}

/// Judges whether a series falls most about a size.
pub(crate) fn drops(points: &[(u64, Summary)], value: u64, by: By) -> Judgement {
    if points.len() < 2 {
        return nothing();
    }
    let fall = fall_of(points, by);
    let evidence = format!("{}; published {value} B", fall.told());
    Judgement::new(fall.is_about(value).verdict(), evidence)
}

/// Judges whether one series falls at larger sizes than another.
pub(crate) fn later(of: &[(u64, Summary)], than: &[(u64, Summary)]) -> Judgement {
    if of.len() < 2 || than.len() < 2 {
        return nothing();
    }
    let (of, than) = (fall_of(of, By::Difference), fall_of(than, By::Difference));
    let evidence = format!("{}; the other: {}", of.told(), than.told());
    Judgement::new(of.is_later(&than).verdict(), evidence)
}

/// Judges whether one series falls where another has its peak.
pub(crate) fn together(of: &[(u64, Summary)], peak: &Series) -> Judgement {
    let (Some((size, greatest)), Some((last, _))) = (peak_of(peak), peak.last_key_value()) else {
        return nothing();
    };
    if of.len() < 2 {
        return nothing();
    }
    let fall = fall_of(of, By::Difference);
    let evidence = format!("{}; the other is greatest at {size} B", fall.told());
    if size == *last && fall != Fall::Nowhere {
        let text = format!("{evidence}, the last size: that is no peak");
        return Judgement::new(Verdict::Undecided, text);
    }
    // Which size is the greatest, intervals may not tell.
    let may = peak
        .iter()
        .filter(|(_, point)| less(point, &greatest) != Answer::Yes);
    let about = may.map(|(size, _)| fall.is_about(*size));
    Judgement::new(agreed(about).verdict(), evidence)
}

/// Returns where a series is greatest.
pub(crate) fn peak_of(series: &Series) -> Option<(u64, Summary)> {
    let points = series.iter().map(|(size, point)| (*size, *point));
    points.max_by(|one, other| one.1.median.total_cmp(&other.1.median))
}

/// Judges whether a series rises to a peak, and ends at half of it at most.
pub(crate) fn peaks(series: &Series) -> Judgement {
    let (Some((size, peak)), Some((_, begin)), Some((last, end)), false) = (
        peak_of(series),
        series.first_key_value(),
        series.last_key_value(),
        series.len() < 3,
    ) else {
        return nothing();
    };
    let evidence = format!(
        "{} at {size} B, {} at {last} B",
        short(peak.median),
        short(end.median)
    );
    let rises = less(begin, &peak);
    if size == *last && rises != Answer::No {
        let text = format!("{evidence}: it still rises at the last size");
        return Judgement::new(Verdict::Undecided, text);
    }
    let falls = Answer::of(end.max <= peak.min / 2.0, end.min > peak.max / 2.0);
    Judgement::new(rises.and(falls).verdict(), evidence)
}

/// Judges where something begins, or ends, by the answers at each size in their order: at the first `Yes` behind all that are not,
/// or at the last one before them.
pub(crate) fn begins(answers: &[(u64, Answer)], value: u64, what: &str) -> Judgement {
    if answers.is_empty() {
        return nothing();
    }
    let Some(place) = answers
        .iter()
        .position(|(_, answer)| *answer == Answer::Yes)
    else {
        let is_never = answers.iter().all(|(_, answer)| *answer == Answer::No);
        let text = format!("{what} at no size; published {value} B");
        return Judgement::new(Answer::of(false, is_never).verdict(), text);
    };
    let to = answers[place].0;
    let evidence = format!("{what} from {to} B on; published {value} B");
    let before = answers[..place].iter();
    // Where the one before is not known, it may begin there.
    match before.rev().find(|(_, answer)| *answer == Answer::No) {
        Some((from, _)) => {
            let step = Step { from: *from, to };
            Judgement::new(step.is_about(value, NEAR).verdict(), evidence)
        }
        None if place == 0 => {
            let text = format!("{evidence}: at every size");
            let is_far = (to as f64) * NEAR < value as f64;
            Judgement::new(Answer::of(false, is_far).verdict(), text)
        }
        None => Judgement::new(Verdict::Undecided, evidence),
    }
}

/// Judges up to which size something is so, as [`begins`] does.
pub(crate) fn until(answers: &[(u64, Answer)], value: u64, what: &str) -> Judgement {
    if answers.is_empty() {
        return nothing();
    }
    let Some(place) = answers
        .iter()
        .rposition(|(_, answer)| *answer == Answer::Yes)
    else {
        let is_never = answers.iter().all(|(_, answer)| *answer == Answer::No);
        let text = format!("{what} at no size; published {value} B");
        return Judgement::new(Answer::of(false, is_never).verdict(), text);
    };
    let from = answers[place].0;
    let evidence = format!("{what} up to {from} B; published {value} B");
    match answers[place..]
        .iter()
        .find(|(_, answer)| *answer == Answer::No)
    {
        Some((to, _)) => {
            let step = Step { from, to: *to };
            Judgement::new(step.is_about(value, NEAR).verdict(), evidence)
        }
        None if place + 1 == answers.len() => {
            let text = format!("{evidence}, the last size");
            let is_far = from as f64 > value as f64 * NEAR;
            Judgement::new(Answer::of(false, is_far).verdict(), text)
        }
        None => Judgement::new(Verdict::Undecided, evidence),
    }
}

/// Whether values rise: from the first to the last by more than both intervals, and by the correlation of ranks.
pub(crate) fn rises(points: &[(f64, Summary)]) -> Answer {
    let [first, .., last] = points else {
        return Answer::Open;
    };
    let ends = less(&first.1, &last.1);
    Answer::of(
        ends == Answer::Yes && correlation(points) > RISES,
        ends == Answer::No,
    )
}

/// Spearman's.
pub(crate) fn correlation(points: &[(f64, Summary)]) -> f64 {
    let rank = |value: f64, all: &[f64]| {
        let less = all.iter().filter(|other| **other < value).count();
        let same = all.iter().filter(|other| **other == value).count();
        less as f64 + (same as f64 - 1.0) / 2.0
    };
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        values.iter().map(|value| rank(*value, &values)).collect()
    };
    let one = ranks(points.iter().map(|(place, _)| *place).collect());
    let other = ranks(points.iter().map(|(_, point)| point.median).collect());
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product = |one: &[f64], other: &[f64]| -> f64 {
        let both = one.iter().zip(other);
        both.map(|(one, other)| (one - middle) * (other - middle))
            .sum()
    };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    match scale > 0.0 {
        true => product(&one, &other) / scale,
        false => 0.0,
    }
}

/// Judges whether a series rises with size, or falls.
pub(crate) fn goes_with_size(series: &Series, is_rising: bool) -> Judgement {
    let mut points: Vec<_> = series
        .iter()
        .map(|(size, point)| (*size as f64, *point))
        .collect();
    let ([first, .., last], false) = (&points[..], points.len() < 3) else {
        return nothing();
    };
    let (from, to) = (short(first.1.median), short(last.1.median));
    let evidence = format!(
        "{from} at {} B, {to} at {} B, correlation {:.2}",
        first.0,
        last.0,
        correlation(&points)
    );
    if !is_rising {
        points.reverse();
        for (place, _) in &mut points {
            *place = -*place;
        }
    }
    Judgement::new(rises(&points).verdict(), evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_follow_one_another_are_told_as_one() {
        let step = |from, to| Step { from, to };
        let fall = Fall::In(vec![step(1, 2), step(2, 4), step(8, 16)]);
        assert_eq!(
            fall.told(),
            "it falls most in a step between 1 and 4 B or from 8 to 16 B"
        );
    }
}
