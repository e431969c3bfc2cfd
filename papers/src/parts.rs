//! Claims about partitions: how a metric goes with size, number of partitions, noise, computation and caches. They are judged on
//! each transport and policy of aggregation, and on each MPI library.

use serde::Deserialize;

use tagwire_bench::Summary;

use crate::choice::Choice;
use crate::compare::{
    NEAR, WIDENED, below, equal, is_clearly_below, nothing, pairs, peak_is, peak_of, short, within,
};
use crate::judgement::Judgement;
use crate::rows::{Place, Rows, Series};

/// When a claim about partitions holds. `sizes` are the first and the last.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Parts {
    /// At two thirds of the sizes it lies in a range, widened by a quarter.
    Within {
        of: Choice,
        figure: String,
        sizes: [u64; 2],
        range: [f64; 2],
    },
    /// Its greatest value at all sizes is a published one, widened by a quarter.
    Peak {
        of: Choice,
        figure: String,
        value: f64,
    },
    /// It rises with the number of partitions, at two thirds of the sizes; with `peak`, its greatest value does.
    Rises {
        of: Choice,
        partitions: Vec<u32>,
        figure: String,
        sizes: [u64; 2],
        #[serde(default)]
        peak: bool,
    },
    /// It rises with size, or falls with it.
    Sizes {
        of: Choice,
        figure: String,
        rises: bool,
    },
    /// From the second to the third number of partitions it grows more than from the first to the second.
    Jumps {
        of: Choice,
        partitions: [u32; 3],
        figure: String,
        sizes: [u64; 2],
    },
    /// It is greatest between the ends, and the last value is half of that at most.
    Peaks { of: Choice, figure: String },
    /// Its greatest fall from a size to the next is about there.
    Drops {
        of: Choice,
        figure: String,
        value: u64,
    },
    /// Its greatest fall comes at larger sizes than another's.
    Later {
        of: Choice,
        than: Choice,
        figure: String,
    },
    /// Its greatest fall is about where another figure is greatest.
    Together {
        of: Choice,
        figure: String,
        peak: String,
    },
    /// One is below the other; with `not`, it is not.
    Below {
        low: Choice,
        high: Choice,
        figure: String,
        sizes: [u64; 2],
        #[serde(default)]
        not: bool,
    },
    /// Both are the same.
    Equal {
        one: Choice,
        other: Choice,
        figure: String,
        sizes: [u64; 2],
    },
    /// The first size at which it is clearly above the other is about there.
    Begins {
        of: Choice,
        over: Choice,
        figure: String,
        value: u64,
    },
    /// It is at least a value at all sizes.
    Least {
        of: Choice,
        figure: String,
        sizes: [u64; 2],
        value: f64,
    },
    /// The last size at which it is at least a value is about there.
    Until {
        of: Choice,
        figure: String,
        least: f64,
        value: u64,
    },
}

const ALL: [u64; 2] = [0, u64::MAX];

/// The rank correlation from which on something rises.
const RISES: f64 = 0.7;

type Find<'a> = &'a dyn Fn(&Choice, &str) -> Series;

impl Parts {
    /// Judges it on each place, by policy.
    pub(crate) fn judge(&self, rows: &Rows) -> Vec<Judgement> {
        let mut all = Vec::new();
        for place in rows.places() {
            for policy in rows.policies(&place) {
                let find = |of: &Choice, figure: &str| rows.of_parts(&place, policy, of, figure);
                all.push(self.decide(&find).on(named(&place, policy)));
            }
        }
        if all.is_empty() {
            all.push(nothing());
        }
        all
    }

    fn decide(&self, find: Find<'_>) -> Judgement {
        match self {
            Self::Within {
                of,
                figure,
                sizes,
                range,
            } => in_range(&within(&find(of, figure), *sizes), *range),
            Self::Peak { of, figure, value } => peak_is(&find(of, figure), *value),
            Self::Rises {
                of,
                partitions,
                figure,
                sizes,
                peak,
            } => {
                let series = by_partitions(find, of, partitions, figure);
                match peak {
                    true => peak_rises(&series),
                    false => rises(&series, *sizes),
                }
            }
            Self::Sizes { of, figure, rises } => goes_with_size(&find(of, figure), *rises),
            Self::Jumps {
                of,
                partitions,
                figure,
                sizes,
            } => {
                let series = by_partitions(find, of, partitions, figure);
                jumps(&series, *sizes)
            }
            Self::Peaks { of, figure } => peaks(&find(of, figure)),
            Self::Drops { of, figure, value } => at(drop_of(&find(of, figure)), *value),
            Self::Later { of, than, figure } => {
                let pair = (drop_of(&find(of, figure)), drop_of(&find(than, figure)));
                later(pair)
            }
            Self::Together { of, figure, peak } => match peak_of(&find(of, peak)) {
                Some((size, _)) => at(drop_of(&find(of, figure)), size),
                None => nothing(),
            },
            Self::Below {
                low,
                high,
                figure,
                sizes,
                not,
            } => {
                let pairs = pairs(&find(low, figure), &find(high, figure), *sizes);
                match not {
                    true => not_below(&pairs),
                    false => below(&pairs),
                }
            }
            Self::Equal {
                one,
                other,
                figure,
                sizes,
            } => equal(&pairs(&find(one, figure), &find(other, figure), *sizes)),
            Self::Begins {
                of,
                over,
                figure,
                value,
            } => {
                let pairs = pairs(&find(of, figure), &find(over, figure), ALL);
                let first = pairs
                    .iter()
                    .find(|(_, of, over)| is_clearly_below(over, of));
                match pairs.is_empty() {
                    true => nothing(),
                    false => at(first.map(|(size, ..)| *size), *value),
                }
            }
            Self::Least {
                of,
                figure,
                sizes,
                value,
            } => least(&within(&find(of, figure), *sizes), *value),
            Self::Until {
                of,
                figure,
                least,
                value,
            } => {
                let points = within(&find(of, figure), ALL);
                let last = points.iter().rfind(|(_, point)| point.median >= *least);
                match points.is_empty() {
                    true => nothing(),
                    false => at(last.map(|(size, _)| *size), *value),
                }
            }
        }
    }
}

/// Returns a place with the policy, where rows name one of ours.
fn named(place: &Place, policy: &str) -> String {
    match policy {
        "library" => place.name(),
        _ => format!("{}, {policy}", place.name()),
    }
}

fn by_partitions(
    find: Find<'_>,
    of: &Choice,
    partitions: &[u32],
    figure: &str,
) -> Vec<(u32, Series)> {
    let series = |&partitions: &u32| {
        let of = Choice {
            partitions,
            ..of.clone()
        };
        (partitions, find(&of, figure))
    };
    let all = partitions.iter().map(series);
    all.filter(|(_, series)| !series.is_empty()).collect()
}

fn in_range(points: &[(u64, Summary)], [low, high]: [f64; 2]) -> Judgement {
    let fits = |(_, point): &&(u64, Summary)| {
        point.min * (1.0 - WIDENED) <= high && low <= point.max * (1.0 + WIDENED)
    };
    let inside = points.iter().filter(fits).count();
    let medians = points.iter().map(|(_, point)| point.median);
    let least = medians.clone().fold(f64::INFINITY, f64::min);
    let most = medians.fold(f64::NEG_INFINITY, f64::max);
    if points.is_empty() {
        return nothing();
    }
    let evidence = format!(
        "in it at {inside} of {} sizes: {} to {}; published {} to {}",
        points.len(),
        short(least),
        short(most),
        short(low),
        short(high)
    );
    Judgement::new(inside * 3 >= points.len() * 2, evidence)
}

/// The values at one size, by the number of partitions.
fn at_size(series: &[(u32, Series)], size: u64) -> Vec<(f64, Summary)> {
    let point =
        |(partitions, series): &(u32, Series)| Some((f64::from(*partitions), *series.get(&size)?));
    series.iter().filter_map(point).collect()
}

fn sizes_of(series: &[(u32, Series)], sizes: [u64; 2]) -> Vec<u64> {
    let all = series.iter().flat_map(|(_, series)| within(series, sizes));
    let mut all: Vec<u64> = all.map(|(size, _)| size).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether values rise: by the correlation of ranks, and from the first to the last by more than both intervals.
fn is_rising(points: &[(f64, Summary)]) -> bool {
    let [first, .., last] = points else {
        return false;
    };
    is_clearly_below(&first.1, &last.1) && correlation(points) > RISES
}

/// Spearman's.
fn correlation(points: &[(f64, Summary)]) -> f64 {
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

fn rises(series: &[(u32, Series)], sizes: [u64; 2]) -> Judgement {
    let at_sizes = sizes_of(series, sizes).into_iter();
    let lists: Vec<_> = at_sizes
        .map(|size| at_size(series, size))
        .filter(|list| list.len() > 1)
        .collect();
    let Some(first) = lists.first() else {
        return nothing();
    };
    let rising = lists.iter().filter(|list| is_rising(list)).count();
    let evidence = format!(
        "it rises at {rising} of {} sizes; at the smallest: {}",
        lists.len(),
        told(first)
    );
    Judgement::new(rising * 3 >= lists.len() * 2, evidence)
}

fn peak_rises(series: &[(u32, Series)]) -> Judgement {
    let peaks = series.iter().filter_map(|(partitions, series)| {
        let (_, point) = peak_of(series)?;
        Some((f64::from(*partitions), point))
    });
    let peaks: Vec<_> = peaks.collect();
    match peaks.len() {
        0 | 1 => nothing(),
        _ => Judgement::new(is_rising(&peaks), told(&peaks)),
    }
}

/// Values by partitions, in words.
fn told(points: &[(f64, Summary)]) -> String {
    let one = |(place, point): &(f64, Summary)| format!("{} with {place}", short(point.median));
    let all: Vec<String> = points.iter().map(one).collect();
    all.join(", ")
}

fn goes_with_size(series: &Series, rises: bool) -> Judgement {
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
    if !rises {
        points.reverse();
        for (place, _) in &mut points {
            *place = -*place;
        }
    }
    Judgement::new(is_rising(&points), evidence)
}

fn jumps(series: &[(u32, Series)], sizes: [u64; 2]) -> Judgement {
    let at_sizes = sizes_of(series, sizes).into_iter();
    let growth = at_sizes.filter_map(|size| match at_size(series, size)[..] {
        [(_, one), (_, two), (_, three)] => {
            Some((size, two.median / one.median, three.median / two.median))
        }
        _ => None,
    });
    let all: Vec<(u64, f64, f64)> = growth.collect();
    let Some((size, before, after)) = all.first() else {
        return nothing();
    };
    let jump = all
        .iter()
        .filter(|(_, before, after)| *after > before * (1.0 + WIDENED))
        .count();
    let evidence = format!(
        "at {jump} of {} sizes; at {size} B it grows by {} after {}",
        all.len(),
        short(*after),
        short(*before)
    );
    Judgement::new(jump * 3 >= all.len() * 2, evidence)
}

fn peaks(series: &Series) -> Judgement {
    let (Some((size, peak)), Some((first, _)), Some((last, end)), false) = (
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
    let is_between = size != *first && size != *last;
    Judgement::new(is_between && end.median <= peak.median / 2.0, evidence)
}

/// The size at which a series has fallen most since the one before; `None` where it never falls.
fn drop_of(series: &Series) -> Option<u64> {
    let points: Vec<_> = series.iter().collect();
    let falls = points
        .windows(2)
        .map(|pair| (*pair[1].0, pair[0].1.median - pair[1].1.median));
    let greatest = falls.max_by(|one, other| one.1.total_cmp(&other.1))?;
    (greatest.1 > 0.0).then_some(greatest.0)
}

/// A size is about another.
fn at(found: Option<u64>, value: u64) -> Judgement {
    let Some(size) = found else {
        return Judgement::new(false, format!("at no size; published {value} B"));
    };
    let factor = size.max(1) as f64 / value.max(1) as f64;
    let holds = (1.0 / NEAR..=NEAR).contains(&factor);
    Judgement::new(holds, format!("at {size} B; expected about {value} B"))
}

fn later((of, than): (Option<u64>, Option<u64>)) -> Judgement {
    match (of, than) {
        (Some(of), Some(than)) => Judgement::new(of > than, format!("at {of} B and at {than} B")),
        (None, Some(than)) => Judgement::new(
            true,
            format!("it does not fall; the other does at {than} B"),
        ),
        _ => nothing(),
    }
}

fn not_below(pairs: &[(u64, Summary, Summary)]) -> Judgement {
    if pairs.is_empty() {
        return nothing();
    }
    let below = pairs
        .iter()
        .filter(|(_, one, other)| is_clearly_below(one, other))
        .count();
    let evidence = format!("below at {below} of {} sizes", pairs.len());
    Judgement::new(below * 3 < pairs.len(), evidence)
}

fn least(points: &[(u64, Summary)], value: f64) -> Judgement {
    let found = points
        .iter()
        .min_by(|one, other| one.1.median.total_cmp(&other.1.median));
    let Some((size, point)) = found else {
        return nothing();
    };
    let evidence = format!("{} at the least, at {size} B", short(point.median));
    Judgement::new(point.median >= value, evidence)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::judgement::Verdict;
    use crate::rows::tests::rows_of_parts;

    /// Partitions, noise, milliseconds, whether the cache is cold, size, values over launches.
    type Sample<'a> = (u32, &'a str, u64, bool, u64, &'a [f64]);

    fn verdict(claim: &str, samples: &[Sample<'_>]) -> Verdict {
        let claim: Parts = toml::from_str(claim).unwrap();
        let judged = claim.judge(&rows_of_parts(samples));
        assert_eq!(judged.len(), 1, "{judged:?}");
        judged[0].verdict
    }

    const OF_8: &str = "{ partitions = 8, ms = 10 }";

    #[test]
    fn rows_are_chosen_by_all_variables() {
        let samples: [Sample<'_>; 4] = [
            (8, "none:0", 10, false, 64, &[1.0]),
            (8, "uniform:4", 10, false, 64, &[2.0]),
            (8, "none:0", 100, false, 64, &[3.0]),
            (8, "none:0", 10, true, 64, &[4.0]),
        ];
        for (of, value) in [
            (OF_8, 1.0),
            ("{ partitions = 8, ms = 10, noise = 'uniform:4' }", 2.0),
            ("{ partitions = 8, ms = 100 }", 3.0),
            ("{ partitions = 8, ms = 10, cold = true }", 4.0),
        ] {
            let holds = |value: f64| {
                let claim = format!(
                    "least = {{ of = {of}, figure = 'x', sizes = [0, 99], value = {value:.1} }}"
                );
                verdict(&claim, &samples)
            };
            assert_eq!(
                (holds(value), holds(value + 0.5)),
                (Verdict::Holds, Verdict::Fails)
            );
        }
        let other = "least = { of = { partitions = 4, ms = 10 }, figure = 'x', sizes = [0, 99], value = 0.0 }";
        assert_eq!(verdict(other, &samples), Verdict::NotTestable);
    }

    #[test]
    fn what_rises_with_partitions_or_falls_with_size() {
        let with = |values: [f64; 3]| {
            let one = |partitions, values: &[f64]| -> Vec<(u32, u64, f64)> {
                values
                    .iter()
                    .map(|value| (partitions, 64, *value))
                    .collect()
            };
            let all: Vec<(u32, u64, f64)> = [1, 2, 4]
                .into_iter()
                .zip(&values)
                .flat_map(|(partitions, value)| one(partitions, &[*value]))
                .collect();
            let values: Vec<[f64; 1]> = all.iter().map(|(.., value)| [*value]).collect();
            let samples: Vec<Sample<'_>> = all
                .iter()
                .zip(&values)
                .map(|((partitions, size, _), value)| {
                    (*partitions, "none:4", 10, false, *size, &value[..])
                })
                .collect();
            verdict(
                "rises = { of = { partitions = 0, ms = 10 }, partitions = [1, 2, 4], figure = 'x', sizes = [0, 99] }",
                &samples,
            )
        };
        assert_eq!(with([1.0, 2.0, 3.0]), Verdict::Holds);
        assert_eq!(with([3.0, 2.0, 1.0]), Verdict::Fails);
        assert_eq!(with([1.0, 0.5, 0.9]), Verdict::Fails);
        let samples: [Sample<'_>; 3] = [
            (8, "none:4", 10, false, 64, &[9.0]),
            (8, "none:4", 10, false, 1024, &[5.0, 6.0]),
            (8, "none:4", 10, false, 65536, &[1.0, 2.0]),
        ];
        for (rises, expected) in [(false, Verdict::Holds), (true, Verdict::Fails)] {
            let claim = format!("sizes = {{ of = {OF_8}, figure = 'x', rises = {rises} }}");
            assert_eq!(verdict(&claim, &samples), expected);
        }
    }

    #[test]
    fn peaks_drops_and_jumps() {
        let samples: [Sample<'_>; 4] = [
            (8, "none:4", 10, false, 64, &[2.0]),
            (8, "none:4", 10, false, 1024, &[9.0, 10.0]),
            (8, "none:4", 10, false, 4096, &[8.0]),
            (8, "none:4", 10, false, 65536, &[1.0]),
        ];
        let holds = |claim: &str| verdict(&claim.replace("OF", OF_8), &samples) == Verdict::Holds;
        assert!(holds("peaks = { of = OF, figure = 'x' }"));
        assert!(holds("peak = { of = OF, figure = 'x', value = 11.0 }"));
        assert!(!holds("peak = { of = OF, figure = 'x', value = 59.4 }"));
        assert!(holds("drops = { of = OF, figure = 'x', value = 32768 }"));
        assert!(!holds("drops = { of = OF, figure = 'x', value = 64 }"));
        assert!(holds(
            "until = { of = OF, figure = 'x', least = 7.0, value = 4096 }"
        ));
        assert!(!holds(
            "until = { of = OF, figure = 'x', least = 7.0, value = 65537 }"
        ));
        assert!(holds(
            "within = { of = OF, figure = 'x', sizes = [64, 4096], range = [8.0, 12.0] }"
        ));
        assert!(!holds(
            "within = { of = OF, figure = 'x', sizes = [0, 999], range = [8.0, 12.0] }"
        ));
        // The greatest value is at 1024 B, the greatest fall at 65536 B.
        assert!(!holds("together = { of = OF, figure = 'x', peak = 'x' }"));
        let jump = |last: &[f64]| {
            let samples: [Sample<'_>; 3] = [
                (8, "none:4", 10, false, 64, &[1.0]),
                (16, "none:4", 10, false, 64, &[2.0]),
                (32, "none:4", 10, false, 64, last),
            ];
            let claim =
                "jumps = { of = OF, partitions = [8, 16, 32], figure = 'x', sizes = [0, 99] }";
            verdict(&claim.replace("OF", OF_8), &samples)
        };
        assert_eq!(
            (jump(&[6.0]), jump(&[4.0])),
            (Verdict::Holds, Verdict::Fails)
        );
    }

    #[test]
    fn two_series_are_compared() {
        let samples: [Sample<'_>; 6] = [
            (16, "none:4", 10, false, 64, &[5.0]),
            (16, "none:4", 10, false, 1024, &[5.0]),
            (16, "none:4", 10, false, 4096, &[1.0]),
            (32, "none:4", 10, false, 64, &[5.0, 6.0]),
            (32, "none:4", 10, false, 1024, &[8.0]),
            (32, "none:4", 10, false, 4096, &[9.0]),
        ];
        let pair =
            "{ partitions = 16, ms = 10 }, HIGH = { partitions = 32, ms = 10 }, figure = 'x'";
        let holds = |form: &str, high: &str| {
            let claim = form.replace("PAIR", &pair.replace("HIGH", high));
            verdict(&claim, &samples) == Verdict::Holds
        };
        assert!(holds("below = { low = PAIR, sizes = [64, 4096] }", "high"));
        assert!(!holds(
            "below = { low = PAIR, sizes = [64, 4096], not = true }",
            "high"
        ));
        assert!(!holds(
            "equal = { one = PAIR, sizes = [64, 4096] }",
            "other"
        ));
        assert!(holds("equal = { one = PAIR, sizes = [64, 64] }", "other"));
        // 16 falls at 4096 B, and 32 nowhere.
        assert!(!holds("later = { of = PAIR }", "than"));
        let begins = "begins = { of = { partitions = 32, ms = 10 }, over = { partitions = 16, ms = 10 }, figure = 'x', value = VALUE }";
        let begins = |value: &str| verdict(&begins.replace("VALUE", value), &samples);
        assert_eq!(
            (begins("2048"), begins("65536")),
            (Verdict::Holds, Verdict::Fails)
        );
    }
}
