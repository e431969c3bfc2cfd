//! Claims about effects: by how much one unit is more than another, on each place, between places, or as a projection of a program.

use serde::Deserialize;
use tagwire_bench::Summary;

use crate::answer::{Answer, Band, is_one, less};
use crate::compare::ratio;
use crate::judgement::{Judgement, nothing};
use crate::places::{At, at_each};
use crate::projection::projected;
use crate::reference::Number;
use crate::rows::{Place, Rows, is_peer};
use crate::words::{short, told};

/// When a claim about an effect holds. Units are named as in [`crate::units::Comparison`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Effect {
    /// Our ratio is the published one.
    Ratio {
        of: String,
        over: String,
        figure: String,
        size: u64,
        value: Number,
    },
    /// Our ratio lies between two quotients of published values.
    Quotient {
        of: String,
        over: String,
        figure: String,
        size: u64,
        least: [Number; 2],
        most: [Number; 2],
    },
    /// One is lower than another by a published part, in percent.
    Lower {
        of: String,
        than: String,
        figure: String,
        size: u64,
        value: Number,
    },
    /// One is lower than another by at least a published part, in percent.
    Loses {
        of: String,
        than: String,
        figure: String,
        size: u64,
        value: Number,
    },
    /// What one loses against another is less than in the results of another item.
    Smaller {
        of: String,
        than: String,
        item: String,
        figure: String,
        size: u64,
    },
    /// A program of which a share of the time gets faster by our factor gains as much as by the published one.
    Gain {
        of: String,
        /// The factor.
        figure: String,
        size: u64,
        /// In percent; of several each.
        shares: Vec<Number>,
        factor: Number,
    },
    /// It is lower in one library than in another, of those whose names begin so; or its ratio over another unit is.
    Between {
        of: String,
        over: Option<String>,
        figure: String,
        low: String,
        high: String,
    },
    /// Its ratio over another is closer to 1 on a network than on shared memory.
    Masked {
        of: String,
        over: String,
        figure: String,
        size: u64,
    },
}

impl Effect {
    /// Whether it claims an effect, which constant figures do not have: a ratio of about 1 is none.
    #[cfg(test)]
    pub(crate) fn is_shape(&self) -> bool {
        match self {
            Self::Ratio { value, .. } => (value.value() - 1.0).abs() > 0.02,
            _ => true,
        }
    }

    /// Whether it compares figures of one place alone, each place by itself.
    pub(crate) const fn is_of_one_place(&self) -> bool {
        !matches!(self, Self::Between { .. } | Self::Masked { .. })
    }

    /// Returns the figure that it is about.
    pub(crate) fn figure(&self) -> &str {
        match self {
            Self::Ratio { figure, .. }
            | Self::Quotient { figure, .. }
            | Self::Lower { figure, .. }
            | Self::Loses { figure, .. }
            | Self::Smaller { figure, .. }
            | Self::Gain { figure, .. }
            | Self::Between { figure, .. }
            | Self::Masked { figure, .. } => figure,
        }
    }

    /// Returns the units that it is about.
    pub(crate) fn units(&self) -> Vec<&str> {
        match self {
            Self::Ratio { of, over, .. }
            | Self::Quotient { of, over, .. }
            | Self::Masked { of, over, .. } => vec![of, over],
            Self::Lower { of, than, .. }
            | Self::Loses { of, than, .. }
            | Self::Smaller { of, than, .. } => vec![of, than],
            Self::Gain { of, .. } => vec![of],
            Self::Between { of, over, .. } => {
                [of].into_iter().chain(over).map(String::as_str).collect()
            }
        }
    }

    /// Returns the numbers that it has.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        match self {
            Self::Ratio { value, .. } | Self::Lower { value, .. } | Self::Loses { value, .. } => {
                vec![*value]
            }
            Self::Quotient { least, most, .. } => [*least, *most].concat(),
            Self::Gain { shares, factor, .. } => shares.iter().copied().chain([*factor]).collect(),
            Self::Smaller { .. } | Self::Between { .. } | Self::Masked { .. } => Vec::new(),
        }
    }

    /// Returns the size that it is about; `None` where it is all.
    pub(crate) const fn size(&self) -> Option<u64> {
        match self {
            Self::Ratio { size, .. }
            | Self::Quotient { size, .. }
            | Self::Lower { size, .. }
            | Self::Loses { size, .. }
            | Self::Smaller { size, .. }
            | Self::Gain { size, .. }
            | Self::Masked { size, .. } => Some(*size),
            Self::Between { .. } => None,
        }
    }

    /// Judges it on each of some places, or between them.
    pub(crate) fn judge(&self, rows: &Rows, places: &[Place]) -> Vec<Judgement> {
        match self {
            Self::Between {
                of,
                over,
                figure,
                low,
                high,
            } => {
                let point =
                    |name: &str| of_library(rows, places, name, of, over.as_deref(), figure);
                vec![between((low, point(low)), (high, point(high)))]
            }
            Self::Masked {
                of,
                over,
                figure,
                size,
            } => {
                let ratio = |place: &Place| {
                    let ratios = rows.ratio(place, of, over, figure);
                    ratios.get(size).copied()
                };
                masked(places, &ratio)
            }
            _ => at_each(rows, places, &self.units(), self.figure(), &|at| {
                self.decide(at)
            }),
        }
    }

    fn decide(&self, at: &At<'_>) -> Judgement {
        let Some(size) = self.size() else {
            return nothing();
        };
        let point = |unit: &str| at.series(unit, self.figure()).get(&size).copied();
        let both = |of: &str, over: &str| {
            point(of).zip(point(over))?;
            Some(at.ratio(of, over, self.figure()).get(&size).copied())
        };
        match self {
            Self::Ratio {
                of, over, value, ..
            } => judged(both(of, over), value.band(at.known()), &value.told(None)),
            Self::Quotient {
                of,
                over,
                least,
                most,
                ..
            } => {
                let [least, most] = [least, most].map(|[of, over]| of.value() / over.value());
                let text = format!("{} to {}", short(least), short(most));
                judged(both(of, over), Band::of_ratios(least, most), &text)
            }
            Self::Lower {
                of, than, value, ..
            } => {
                let rest = 1.0 - value.value() / 100.0;
                let text = format!("{}, {} % lower", short(rest), value.value());
                judged(both(of, than), Band::of_ratios(rest, rest), &text)
            }
            Self::Loses {
                of, than, value, ..
            } => {
                let rest = 1.0 - value.value() / 100.0;
                let Some(ours) = both(of, than).flatten() else {
                    return nothing();
                };
                let claimed = Summary {
                    min: rest,
                    median: rest,
                    max: rest,
                };
                let text = format!("{}; published {} at the most", told(&ours), short(rest));
                Judgement::new(less(&ours, &claimed).verdict(), text)
            }
            Self::Smaller { of, than, item, .. } => {
                let other = |unit: &str| format!("{item} {unit}");
                let here = both(of, than).flatten();
                let there = both(&other(of), &other(than)).flatten();
                // Nothing is smaller than no loss.
                let is_none = there.is_some_and(|ratio| is_one(&ratio) == Answer::Yes);
                match (here, there) {
                    (Some(here), Some(there)) => {
                        let end = if is_none { ", which is no loss" } else { "" };
                        let text = format!("{}; {item}: {}{end}", told(&here), told(&there));
                        let answer = less(&there, &here).and(Answer::of(!is_none, is_none));
                        Judgement::new(answer.verdict(), text)
                    }
                    (_, None) => Judgement::not_testable(format!("it needs results of {item}")),
                    (None, _) => nothing(),
                }
            }
            Self::Gain {
                of, shares, factor, ..
            } => match point(of) {
                Some(ours) => gain(&ours, shares, factor.value()),
                None => nothing(),
            },
            Self::Between { .. } | Self::Masked { .. } => nothing(),
        }
    }
}

/// Judges a ratio where both of its figures are there.
fn judged(both: Option<Option<Summary>>, band: Band, published: &str) -> Judgement {
    match both {
        Some(Some(ours)) => ratio(&ours, band, published),
        Some(None) => Judgement::not_testable("one of the figures is 0"),
        None => nothing(),
    }
}

/// Judges the gain of a program, in percent: that of our factor by that of the published one. No gain is 0.
fn gain(ours: &Summary, shares: &[Number], factor: f64) -> Judgement {
    if ours.min <= 0.0 {
        return Judgement::not_testable("the factor is 0");
    }
    let gain = |share: Number, factor: f64| 100.0 * (projected(share.value(), factor) - 1.0);
    let (mut answers, mut told_of) = (Vec::new(), Vec::new());
    for &share in shares {
        let published = gain(share, factor);
        let here = Summary {
            min: gain(share, ours.min),
            median: gain(share, ours.median),
            max: gain(share, ours.max),
        };
        answers.push(Band::of_differences(published, published, 0.0).has(&here));
        told_of.push(format!(
            "{} % faster at a share of {} %, published {}",
            told(&here),
            share.value(),
            short(published)
        ));
    }
    let verdict = crate::answer::Tally::of(answers).each();
    Judgement::new(
        verdict,
        format!("factor {}: {}", told(ours), told_of.join("; ")),
    )
}

/// The figure of a library, or its ratio over another unit.
fn of_library(
    rows: &Rows,
    places: &[Place],
    name: &str,
    of: &str,
    over: Option<&str>,
    figure: &str,
) -> Option<Summary> {
    let mut peers = places.iter().filter(|place| is_peer(&place.transport));
    let place = peers.find(|place| place.name().starts_with(name))?;
    let series = match over {
        None => rows.of_unit(place, of, figure),
        Some(over) => rows.ratio(place, of, over, figure),
    };
    series.first_key_value().map(|(_, point)| *point)
}

fn between(
    (low, of_low): (&str, Option<Summary>),
    (high, of_high): (&str, Option<Summary>),
) -> Judgement {
    match (of_low, of_high) {
        (Some(one), Some(other)) => {
            let evidence = format!("{low}: {}; {high}: {}", told(&one), told(&other));
            Judgement::new(less(&one, &other).verdict(), evidence)
        }
        _ => Judgement::not_testable(format!("it needs {low} and {high} by -t mpi:PREFIX")),
    }
}

/// On each network beside shared memory: how far from 1 a ratio is.
fn masked(places: &[Place], ratio: &dyn Fn(&Place) -> Option<Summary>) -> Vec<Judgement> {
    let own = places.iter().filter(|place| !place.is_foreign());
    let (shared, others): (Vec<&Place>, Vec<&Place>) = own.partition(|place| place.is_shared());
    let shared = shared.iter().find_map(|place| ratio(place));
    let of = |place: &&Place| {
        let (here, shared) = (ratio(place)?, shared?);
        let evidence = format!("{}; on shared memory {}", told(&here), told(&shared));
        let verdict = less(&away(&here), &away(&shared)).verdict();
        Some(Judgement::new(verdict, evidence).on(place.name()))
    };
    let judged: Vec<_> = others.iter().filter_map(of).collect();
    match judged.is_empty() {
        true => vec![Judgement::not_testable(
            "it needs -t shm and a network such as ofi:tcp",
        )],
        false => judged,
    }
}

/// How far from 1 a ratio is, as a factor of at least 1.
fn away(ratio: &Summary) -> Summary {
    let of = |value: f64| value.max(1.0 / value);
    let ends = [of(ratio.min), of(ratio.max)];
    Summary {
        // An interval with 1 in it may be 1.
        min: match ratio.min <= 1.0 && ratio.max >= 1.0 {
            true => 1.0,
            false => ends[0].min(ends[1]),
        },
        median: of(ratio.median),
        max: ends[0].max(ends[1]),
    }
}
