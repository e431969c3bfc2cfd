//! What intervals say of a question: yes, no, or neither.
//!
//! The interval of a figure at a size goes from the least launch to the greatest. A question about two figures is open where their
//! intervals overlap: more launches, or a quieter machine, may answer it.

use tagwire_bench::Summary;

use crate::judgement::Verdict;

/// What intervals say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// Intervals overlap.
    Open,
}

/// How far two figures may lie apart that are the same: a tenth.
const ALIKE: f64 = 1.1;

/// Within which factor figures have to be known before they are called the same.
const KNOWN_ALIKE: f64 = 1.25;

impl Answer {
    pub(crate) fn of(yes: bool, no: bool) -> Self {
        match (yes, no) {
            (true, _) => Self::Yes,
            (false, true) => Self::No,
            (false, false) => Self::Open,
        }
    }

    /// Whether both are so.
    pub(crate) fn and(self, other: Self) -> Self {
        Self::of(
            self == Self::Yes && other == Self::Yes,
            self == Self::No || other == Self::No,
        )
    }

    /// Returns the verdict on a claim that is this one question.
    pub(crate) const fn verdict(self) -> Verdict {
        match self {
            Self::Yes => Verdict::Holds,
            Self::No => Verdict::Fails,
            Self::Open => Verdict::Undecided,
        }
    }
}

/// Whether one figure is below another.
pub(crate) fn less(one: &Summary, other: &Summary) -> Answer {
    Answer::of(one.max < other.min, one.min >= other.max)
}

/// Whether two figures are the same, by their ratio where both are above 0.
pub(crate) fn same(one: &Summary, other: &Summary) -> Answer {
    if one.min <= 0.0 || other.min <= 0.0 {
        let is_zero = one.max == 0.0 && other.max == 0.0 && one.min == 0.0 && other.min == 0.0;
        return Answer::of(
            is_zero,
            less(one, other) == Answer::Yes || less(other, one) == Answer::Yes,
        );
    }
    is_one(&quotient(one, other))
}

/// Whether a ratio is 1: it is known to be within a quarter, and its median is within a tenth.
pub(crate) fn is_one(ratio: &Summary) -> Answer {
    Answer::of(
        ratio.min >= 1.0 / KNOWN_ALIKE
            && ratio.max <= KNOWN_ALIKE
            && (1.0 / ALIKE..=ALIKE).contains(&ratio.median),
        ratio.max < 1.0 / ALIKE || ratio.min > ALIKE,
    )
}

/// Returns the ratio of two figures, both of which are above 0.
pub(crate) fn quotient(of: &Summary, over: &Summary) -> Summary {
    Summary {
        min: of.min / over.max,
        median: of.median / over.median,
        max: of.max / over.min,
    }
}

/// What lies about a published value: near it, by a quarter of its distance from no effect; and within reach of it, by half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Band {
    near: [f64; 2],
    reach: [f64; 2],
}

impl Band {
    /// Returns what lies about a ratio, or between two: no effect is 1. About 1 itself are figures that are the same.
    pub(crate) fn of_ratios(one: f64, other: f64) -> Self {
        let about = |value: f64, part: f64, alike: f64| {
            // Of a ratio below 1 the distance is that of its inverse: half and twice are as far from 1.
            let far = |value: f64| match value < 1.0 {
                true => 1.0 - 1.0 / value,
                false => value - 1.0,
            };
            let back = |far: f64| match far < 0.0 {
                true => 1.0 / (1.0 - far),
                false => 1.0 + far,
            };
            match far(value).abs() < SAME {
                true => [1.0 / alike, alike],
                false => {
                    let ends = [1.0 - part, 1.0 + part].map(|part| back(far(value) * part));
                    [ends[0].min(ends[1]), ends[0].max(ends[1])]
                }
            }
        };
        let hull = |part, alike| {
            let (one, other) = (about(one, part, alike), about(other, part, alike));
            [one[0].min(other[0]), one[1].max(other[1])]
        };
        Self {
            near: hull(NEAR, ALIKE),
            reach: hull(REACH, KNOWN_ALIKE),
        }
    }

    /// Returns what lies about a difference, such as a gain in percent, or between two: no effect is 0. What is smaller than `known`
    /// cannot be told apart.
    pub(crate) fn of_differences(one: f64, other: f64, known: f64) -> Self {
        let hull = |part: f64, known: f64| {
            let of = |value: f64| (value.abs() * part).max(known);
            [
                (one - of(one)).min(other - of(other)),
                (one + of(one)).max(other + of(other)),
            ]
        };
        Self {
            near: hull(NEAR, known),
            reach: hull(REACH, known * 2.0),
        }
    }

    /// Returns what lies between two values, and nothing about them.
    pub(crate) const fn exactly(low: f64, high: f64) -> Self {
        Self {
            near: [low, high],
            reach: [f64::NEG_INFINITY, f64::INFINITY],
        }
    }

    /// Returns what lies between two ratios, and nothing about them; but where one is 1, figures that are the same as that.
    pub(crate) fn of_ends(low: f64, high: f64) -> Self {
        let end = |value: f64, alike: f64| match (value - 1.0).abs() < SAME {
            true => alike,
            false => value,
        };
        Self::exactly(end(low, 1.0 / ALIKE), end(high, ALIKE))
    }

    /// Whether a figure is what it is about: its median is near, and its interval within reach. It is not where the interval lies
    /// apart from all that is near.
    pub(crate) fn has(&self, point: &Summary) -> Answer {
        let [low, high] = self.near;
        Answer::of(
            (low..=high).contains(&point.median)
                && self.reach[0] <= point.min
                && point.max <= self.reach[1],
            point.max < low || point.min > high,
        )
    }
}

/// The end of a published range that is furthest from no effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extreme {
    pub(crate) value: f64,
    /// Whether it is the lower end.
    pub(crate) is_low: bool,
    pub(crate) band: Band,
}

/// Parts of the distance of a published value from no effect.
const NEAR: f64 = 0.25;
const REACH: f64 = 0.5;

/// From 1 on up to this distance a ratio is 1.
const SAME: f64 = 0.02;

/// How many of several questions have which answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) yes: usize,
    pub(crate) no: usize,
    pub(crate) all: usize,
}

impl Tally {
    pub(crate) fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        answers
            .into_iter()
            .fold(Self::default(), |tally, answer| Self {
                yes: tally.yes + usize::from(answer == Answer::Yes),
                no: tally.no + usize::from(answer == Answer::No),
                all: tally.all + 1,
            })
    }

    /// The verdict where two thirds have to be so, and none the reverse.
    pub(crate) const fn order(self) -> Verdict {
        match (self.no, self.yes * 3 >= self.all * 2) {
            (0, true) => Verdict::Holds,
            (0, false) => Verdict::Undecided,
            _ => Verdict::Fails,
        }
    }

    /// The verdict where two thirds have to be so.
    pub(crate) const fn most(self) -> Verdict {
        if self.yes * 3 >= self.all * 2 {
            Verdict::Holds
        } else if self.no * 3 > self.all {
            Verdict::Fails
        } else {
            Verdict::Undecided
        }
    }

    /// The verdict where all have to be so.
    pub(crate) const fn each(self) -> Verdict {
        if self.no > 0 {
            Verdict::Fails
        } else if self.yes == self.all {
            Verdict::Holds
        } else {
            Verdict::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(min: f64, median: f64, max: f64) -> Summary {
        Summary { min, median, max }
    }

    #[test]
    fn overlaps_are_open_and_equal_points_are_not_below() {
        let (low, high) = (point(1.0, 1.0, 2.0), point(3.0, 3.0, 4.0));
        assert_eq!(less(&low, &high), Answer::Yes);
        assert_eq!(less(&high, &low), Answer::No);
        assert_eq!(less(&low, &point(1.5, 2.0, 3.0)), Answer::Open);
        let one = point(1.0, 1.0, 1.0);
        assert_eq!(less(&one, &one), Answer::No);
    }

    #[test]
    fn what_is_the_same_is_known_to_be() {
        let one = point(1.0, 1.0, 1.0);
        assert_eq!(same(&one, &point(0.99, 1.0, 1.05)), Answer::Yes);
        assert_eq!(same(&one, &point(0.5, 1.0, 2.0)), Answer::Open, "noise");
        assert_eq!(same(&one, &point(1.2, 1.22, 1.24)), Answer::No);
        let zero = point(0.0, 0.0, 0.0);
        assert_eq!(same(&zero, &zero), Answer::Yes);
        assert_eq!(same(&zero, &one), Answer::No);
    }

    /// The counter-examples of ratios: a range widened over 1, no gain for a published one, two published ones that one meets.
    #[test]
    fn ratios_keep_to_their_side_of_one() {
        let has = |value: f64, point: Summary| Band::of_ratios(value, value).has(&point);
        assert_eq!(has(0.5, point(1.15, 1.25, 1.3)), Answer::No);
        assert_eq!(has(1.235, point(1.0, 1.0, 1.0)), Answer::No);
        assert_eq!(has(15.1, point(13.0, 14.0, 15.0)), Answer::Yes);
        assert_eq!(has(15.1, point(1.0, 5.0, 11.0)), Answer::No);
        let intel = point(0.45, 0.681, 1.77);
        assert_eq!(
            (has(0.344, intel), has(1.0, intel)),
            (Answer::No, Answer::Open)
        );
        // 26 % lower, with 4 to 49 %: neither 16.8 nor 42.6.
        let loss = point(0.51, 0.74, 0.96);
        assert_eq!(
            (has(0.832, loss), has(0.574, loss)),
            (Answer::Open, Answer::Open)
        );
        assert_eq!(has(0.9997, point(0.95, 0.99, 1.02)), Answer::Yes);
        let range = Band::of_ratios(0.744, 0.901);
        assert_eq!(range.has(&point(0.99, 0.996, 1.0)), Answer::No);
        assert_eq!(range.has(&point(0.75, 0.8, 0.85)), Answer::Yes);
    }

    #[test]
    fn ends_have_nothing_about_them_but_at_one() {
        let range = Band::of_ends(1.0, 1.6);
        let has = |value: f64| range.has(&point(value, value, value));
        assert_eq!(
            [0.9, 0.92, 1.6, 1.61].map(has),
            [Answer::No, Answer::Yes, Answer::Yes, Answer::No]
        );
        assert_eq!(
            Band::exactly(-7.4, -1.1).has(&point(-1.0, -1.0, -1.0)),
            Answer::No
        );
    }

    #[test]
    fn differences_are_about_zero() {
        let gain = Band::of_differences(21.0, 21.0, 0.0);
        assert_eq!(gain.has(&point(19.0, 20.0, 24.0)), Answer::Yes);
        assert_eq!(gain.has(&point(-52.0, -40.0, -39.0)), Answer::No);
        assert_eq!(gain.has(&point(5.0, 20.0, 40.0)), Answer::Open);
        let small = Band::of_differences(0.412, 10.453, 3.0);
        assert_eq!(small.has(&point(-1.0, 0.0, 1.0)), Answer::Yes);
        assert_eq!(small.has(&point(-9.0, -8.0, -7.0)), Answer::No);
    }

    #[test]
    fn tallies() {
        use Answer::{No, Open, Yes};
        for (answers, order, most, each) in [
            (
                [Yes, Yes, Open],
                Verdict::Holds,
                Verdict::Holds,
                Verdict::Undecided,
            ),
            (
                [Yes, Yes, No],
                Verdict::Fails,
                Verdict::Holds,
                Verdict::Fails,
            ),
            (
                [Yes, Open, Open],
                Verdict::Undecided,
                Verdict::Undecided,
                Verdict::Undecided,
            ),
            (
                [Yes, No, No],
                Verdict::Fails,
                Verdict::Fails,
                Verdict::Fails,
            ),
            (
                [Open, Open, Open],
                Verdict::Undecided,
                Verdict::Undecided,
                Verdict::Undecided,
            ),
            (
                [Yes, Yes, Yes],
                Verdict::Holds,
                Verdict::Holds,
                Verdict::Holds,
            ),
        ] {
            let tally = Tally::of(answers);
            assert_eq!(
                (tally.order(), tally.most(), tally.each()),
                (order, most, each)
            );
        }
    }
}
