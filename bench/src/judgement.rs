//! What is within the noise: the launches of a measurement, and how two of them compare.
//!
//! `compare` and the reports judge by the same rule.

use serde::Serialize;

use crate::load::{OTHERS, SWITCHES, WAIT, is_disturbed};
use crate::record::Quantity;
use crate::stats::Summary;

/// From which change on figures count as different when no threshold is given, in percent.
pub const NOTABLE: f64 = 5.0;

/// How many launches tell their own noise.
const ENOUGH_LAUNCHES: usize = 3;

/// Which way a quantity is good, and how two of its values are put in relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// A time or a cost.
    LessIsBetter,
    /// A rate.
    MoreIsBetter,
    /// A share in percent, of which more is better. It may be none or less, so that below 1 % all are the same.
    Share,
}

impl From<Quantity> for Sense {
    fn from(quantity: Quantity) -> Self {
        match quantity {
            _ if quantity.is_share() => Self::Share,
            _ if quantity.less_is_better => Self::LessIsBetter,
            _ => Self::MoreIsBetter,
        }
    }
}

impl Sense {
    /// Returns `part` over `whole`: 1 for two zeros.
    #[must_use]
    pub fn ratio(self, part: f64, whole: f64) -> f64 {
        match (self, part, whole) {
            (Self::Share, ..) => part.max(1.0) / whole.max(1.0),
            (_, 0.0, 0.0) => 1.0,
            _ => part / whole,
        }
    }

    /// Whether `a` is better than `b`.
    #[must_use]
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match self {
            Self::LessIsBetter => a < b,
            Self::MoreIsBetter | Self::Share => a > b,
        }
    }
}

/// All launches of the same thing.
#[derive(Debug, Clone, Default)]
pub struct Launches {
    medians: Vec<f64>,
    /// The least and the greatest block of each launch.
    bounds: Vec<(f64, f64)>,
    /// Launches beside which other processes ran.
    disturbed: usize,
}

impl Launches {
    /// Adds a launch, by the figures of its blocks. The median has to be finite.
    pub fn add(&mut self, blocks: Summary, is_disturbed: bool) {
        debug_assert!(blocks.median.is_finite());
        self.medians.push(blocks.median);
        self.bounds.push((blocks.min, blocks.max));
        self.disturbed += usize::from(is_disturbed);
    }

    /// Returns how many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.medians.len()
    }

    /// Returns the median of the launches and their extremes, `None` before the first one.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&self.medians)
    }

    /// Whether the median is not to be trusted: other processes ran beside half of the launches or more.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        2 * self.disturbed >= self.count().max(1)
    }

    /// Returns the median and where the figure lies if it is measured again: between the extremes of the launches, or,
    /// when there are too few of them, of the blocks inside the launches. `None` before the first launch.
    #[must_use]
    pub fn estimate(&self) -> Option<Summary> {
        let launches = self.summary()?;
        if self.count() >= ENOUGH_LAUNCHES {
            return Some(launches);
        }
        let widen = |all: Summary, &(min, max): &(f64, f64)| Summary {
            min: all.min.min(min),
            max: all.max.max(max),
            ..all
        };
        Some(self.bounds.iter().fold(launches, widen))
    }
}

/// What became of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse than the threshold, and outside the noise.
    Worse,
    /// Better than the threshold, and outside the noise.
    Better,
    /// Beyond the threshold, but the measured intervals overlap.
    Noise,
    /// Within the threshold.
    Same,
}

/// How a figure compares with another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// New over base.
    pub ratio: f64,
    /// How much worse it is, in percent of base; negative when it is better.
    pub worse_pct: f64,
    /// What that means.
    pub verdict: Verdict,
}

impl Change {
    /// Compares two estimates; a change of up to `threshold` percent is none.
    #[must_use]
    pub fn of(sense: Sense, base: Summary, new: Summary, threshold: f64) -> Self {
        let ratio = sense.ratio(new.median, base.median);
        let worse_pct = 100.0
            * match sense {
                Sense::LessIsBetter => ratio - 1.0,
                Sense::MoreIsBetter | Sense::Share => 1.0 - ratio,
            };
        let overlap = base.min <= new.max && new.min <= base.max;
        let verdict = match worse_pct {
            change if change.abs() <= threshold => Verdict::Same,
            _ if overlap => Verdict::Noise,
            change if change > 0.0 => Verdict::Worse,
            _ => Verdict::Better,
        };
        Self {
            ratio,
            worse_pct,
            verdict,
        }
    }
}

/// Whether other processes disturbed a row, by the `figure`s that it has.
pub fn is_row_disturbed(figure: impl Fn(&str) -> Option<f64>, oversubscribed: bool) -> bool {
    is_disturbed(figure(WAIT), figure(OTHERS), oversubscribed)
}

/// Returns why a row has no figure, though it was measured: availability is a part of a core's time, and what is less than
/// none of it, beyond the noise, measures something else.
pub fn unmeasured(figure: impl Fn(&str) -> Option<f64>) -> Option<&'static str> {
    let (_, greatest) = Quantity::AVAILABILITY.bounds();
    let median = figure(&Quantity::AVAILABILITY.key())?;
    let greatest = figure(&greatest).unwrap_or(median);
    (median < -NOTABLE || greatest < 0.0).then_some(NOTHING_LEFT)
}

/// What [`unmeasured`] says of availability.
const NOTHING_LEFT: &str = "availability was not measured: the work took longer beside a message than alone by more than a message takes; \
     measure again on a quiet machine, or on idle CPUs (--bind)";

/// Whether the key of a row is an independent variable: neither a figure (its name ends in a unit) nor how often was
/// measured. Variables of later versions are known by that too.
#[must_use]
pub fn is_variable(key: &str) -> bool {
    const UNITS: [&str; 8] = [
        "_us", "_ns", "_ms", "_mb_s", "_msg_s", "_per_s", "_pct", "_ratio",
    ];
    const COUNTS: [&str; 4] = ["launch", "launches", "iterations", "repetitions"];
    // What has no unit: ratios and shares, and what is told beside the figures.
    const BARE: [&str; 15] = [
        "speedup_vs_native",
        "overhead",
        "application_availability",
        "early_bird",
        "availability_paper",
        "samples",
        "way",
        "checked",
        "load",
        "provider",
        "worst_over_median",
        "gini",
        "kolmogorov",
        "oversubscribed",
        SWITCHES,
    ];
    !COUNTS.contains(&key)
        && !BARE.iter().any(|stem| key.starts_with(stem))
        && !key.starts_with("ratio_")
        && !UNITS.iter().any(|unit| key.ends_with(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(median: f64, min: f64, max: f64) -> Summary {
        Summary { median, min, max }
    }

    #[test]
    fn three_launches_tell_their_own_noise() {
        let mut launches = Launches::default();
        assert_eq!(launches.estimate(), None);
        launches.add(summary(10.0, 5.0, 20.0), false);
        launches.add(summary(12.0, 11.0, 13.0), true);
        assert_eq!(launches.estimate(), Some(summary(11.0, 5.0, 20.0)));
        assert!(launches.is_disturbed());
        launches.add(summary(11.0, 1.0, 90.0), false);
        assert_eq!(launches.estimate(), Some(summary(11.0, 10.0, 12.0)));
        assert!(!launches.is_disturbed());
    }

    #[test]
    fn less_than_nothing_of_a_core_is_no_figure() {
        let reason = |median: f64, greatest: f64| {
            unmeasured(|key| match key {
                "availability_pct" => Some(median),
                "availability_max_pct" => Some(greatest),
                _ => None,
            })
        };
        assert!(reason(-11_442.0, 3.0).is_some_and(|why| why.contains("not measured")));
        assert!(reason(-0.5, -0.1).is_some());
        assert_eq!(reason(-0.5, 0.5), None);
        assert_eq!(reason(97.0, 99.0), None);
        assert_eq!(
            unmeasured(|key| (key == "overlap_pct").then_some(-50.0)),
            None
        );
    }

    #[test]
    fn shares_below_one_percent_are_the_same() {
        let share = |base, new| {
            let point = |value| summary(value, value, value);
            Change::of(Sense::Share, point(base), point(new), NOTABLE).verdict
        };
        assert_eq!(share(0.1, -3.0), Verdict::Same);
        assert_eq!(share(0.1, 50.0), Verdict::Better);
        assert_eq!(share(50.0, 0.0), Verdict::Worse);
    }
}
