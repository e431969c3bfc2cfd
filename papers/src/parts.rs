//! Claims about partitions: how a metric goes with size, number of partitions, noise, computation and caches. They are judged on
//! each transport and policy of aggregation, and on each MPI library.

use serde::Deserialize;
use tagwire_bench::Summary;

use crate::answer::{Answer, Tally, less, quotient};
use crate::choice::Choice;
use crate::compare::{
    ALL, Bound, Range, below, bound, equal, in_range, not_below, pairs, peak_is, within,
};
use crate::judgement::{Judgement, nothing};
use crate::known::Known;
use crate::reference::Number;
use crate::rows::{Place, Rows, Series};
use crate::shape::{
    By, begins, drops, goes_with_size, later, peak_of, peaks, rises, together, until,
};
use crate::words::short;

/// When a claim about partitions holds. `sizes` are the first and the last.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Parts {
    /// At two thirds of the sizes it lies in a published range. What is furthest from 1 is near the published one, but where the range
    /// is a `bound`.
    Within {
        of: Choice,
        figure: String,
        sizes: [u64; 2],
        range: [Number; 2],
        #[serde(default)]
        bound: bool,
    },
    /// Its greatest value is a published one.
    Peak {
        of: Choice,
        figure: String,
        sizes: [u64; 2],
        value: Number,
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
        value: Number,
    },
    /// Its greatest fall comes at larger sizes than another's.
    Later {
        of: Choice,
        than: Choice,
        figure: String,
    },
    /// Its greatest fall is about where another figure has its peak.
    Together {
        of: Choice,
        figure: String,
        peak: String,
    },
    /// Its greatest fall is about where the window of noise, the bandwidth of another series at its largest size, and a part for the
    /// number of partitions say.
    Window {
        of: Choice,
        figure: String,
        wire: Choice,
        bandwidth: String,
        part: f64,
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
        value: Number,
    },
    /// It is at least a value.
    Least {
        of: Choice,
        figure: String,
        sizes: [u64; 2],
        value: Number,
    },
    /// The last size at which it is at least a value is about there.
    Until {
        of: Choice,
        figure: String,
        least: Number,
        value: Number,
    },
}

type Find<'a> = &'a dyn Fn(&Choice, &str) -> Series;

/// The series of partitioned operations of a place that are aggregated by one policy.
struct At<'r> {
    rows: &'r Rows,
    place: &'r Place,
    policy: &'r str,
}

impl At<'_> {
    fn series(&self, of: &Choice, figure: &str) -> Series {
        self.rows.of_parts(self.place, self.policy, of, figure)
    }

    fn ratio(&self, both: [&Choice; 2], figure: &str) -> Series {
        let (place, policy) = (self.place, self.policy);
        self.rows.ratio_of_parts(place, policy, both, figure)
    }

    fn known(&self) -> Known {
        self.place.known()
    }
}

impl Parts {
    /// Judges it on each of some places that has one of its series, by policy.
    pub(crate) fn judge(&self, rows: &Rows, places: &[Place]) -> Vec<Judgement> {
        let mut all = Vec::new();
        for place in places {
            for policy in rows.policies(place) {
                let at = At {
                    rows,
                    place,
                    policy,
                };
                let is_there = |of: &Choice| !at.series(of, self.figure()).is_empty();
                // Not every run of an item has all places.
                if self.choices().iter().any(is_there) {
                    all.push(self.decide(&at).on(named(place, policy)));
                }
            }
        }
        if all.is_empty() {
            all.push(nothing());
        }
        all
    }

    /// Whether it claims a shape, which constant figures do not have.
    #[cfg(test)]
    pub(crate) const fn is_shape(&self) -> bool {
        !matches!(
            self,
            Self::Within { .. }
                | Self::Equal { .. }
                | Self::Least { .. }
                | Self::Below { not: true, .. }
        )
    }

    /// Returns the figure that it is about.
    pub(crate) fn figure(&self) -> &str {
        match self {
            Self::Within { figure, .. }
            | Self::Peak { figure, .. }
            | Self::Rises { figure, .. }
            | Self::Sizes { figure, .. }
            | Self::Jumps { figure, .. }
            | Self::Peaks { figure, .. }
            | Self::Drops { figure, .. }
            | Self::Later { figure, .. }
            | Self::Together { figure, .. }
            | Self::Window { figure, .. }
            | Self::Below { figure, .. }
            | Self::Equal { figure, .. }
            | Self::Begins { figure, .. }
            | Self::Least { figure, .. }
            | Self::Until { figure, .. } => figure,
        }
    }

    /// Returns the series that it is about: each with the numbers of partitions.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        let by = |of: &Choice, all: &[u32]| -> Vec<Choice> {
            all.iter().map(|&number| of.with(number)).collect()
        };
        match self {
            Self::Rises { of, partitions, .. } => by(of, partitions),
            Self::Jumps { of, partitions, .. } => by(of, partitions),
            Self::Later { of, than, .. } => vec![of.clone(), than.clone()],
            Self::Window { of, wire, .. } => vec![of.clone(), wire.clone()],
            Self::Below { low, high, .. } => vec![low.clone(), high.clone()],
            Self::Equal { one, other, .. } => vec![one.clone(), other.clone()],
            Self::Begins { of, over, .. } => vec![of.clone(), over.clone()],
            Self::Within { of, .. }
            | Self::Peak { of, .. }
            | Self::Sizes { of, .. }
            | Self::Peaks { of, .. }
            | Self::Drops { of, .. }
            | Self::Together { of, .. }
            | Self::Least { of, .. }
            | Self::Until { of, .. } => vec![of.clone()],
        }
    }

    /// Returns the numbers that it has.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        match self {
            Self::Within { range, .. } => range.to_vec(),
            Self::Until { least, value, .. } => vec![*least, *value],
            Self::Peak { value, .. }
            | Self::Drops { value, .. }
            | Self::Begins { value, .. }
            | Self::Least { value, .. } => vec![*value],
            _ => Vec::new(),
        }
    }

    /// Returns the sizes that it is about: the first and the last.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> [u64; 2] {
        match self {
            Self::Within { sizes, .. }
            | Self::Peak { sizes, .. }
            | Self::Rises { sizes, .. }
            | Self::Jumps { sizes, .. }
            | Self::Below { sizes, .. }
            | Self::Equal { sizes, .. }
            | Self::Least { sizes, .. } => *sizes,
            Self::Drops { value, .. } | Self::Begins { value, .. } | Self::Until { value, .. } => {
                [value.size(), value.size()]
            }
            Self::Sizes { .. }
            | Self::Peaks { .. }
            | Self::Later { .. }
            | Self::Window { .. }
            | Self::Together { .. } => ALL,
        }
    }

    /// Returns the series that it is about at a place, by policy, with their names.
    pub(crate) fn series(&self, rows: &Rows, place: &Place) -> Vec<(String, Series)> {
        let figure = self.figure();
        let policies = rows.policies(place).into_iter();
        let all = policies.flat_map(|policy| {
            let of = move |choice: Choice| {
                let name = format!("{}, {policy}", choice.name());
                (name, rows.of_parts(place, policy, &choice, figure))
            };
            self.choices().into_iter().map(of)
        });
        all.collect()
    }

    fn decide(&self, at: &At<'_>) -> Judgement {
        let find = &|of: &Choice, figure: &str| at.series(of, figure);
        let points = |of: &Choice, figure: &str| within(&find(of, figure), ALL);
        match self {
            Self::Within {
                of,
                figure,
                sizes,
                range: [low, high],
                bound,
            } => {
                let ends = [low.value(), high.value()];
                let extreme = || (high.extreme(ends, at.known()), sizes[1]);
                let range = Range {
                    band: high.between(ends, at.known()),
                    // Between a value and itself is what is near it.
                    extreme: (ends[0] < ends[1] && !bound).then(extreme),
                };
                let text = low.told(Some(*high));
                in_range(&within(&find(of, figure), *sizes), range, &text)
            }
            Self::Peak {
                of,
                figure,
                sizes,
                value,
            } => peak_is(
                &within(&find(of, figure), *sizes),
                value.band(at.known()),
                &value.told(None),
            ),
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
                    false => rises_with(&series, *sizes),
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
            Self::Drops { of, figure, value } => {
                drops(&points(of, figure), value.size(), By::Difference)
            }
            Self::Later { of, than, figure } => later(&points(of, figure), &points(than, figure)),
            Self::Together { of, figure, peak } => together(&points(of, figure), &find(of, peak)),
            Self::Window {
                of,
                figure,
                wire,
                bandwidth,
                part,
            } => match find(wire, bandwidth).last_key_value() {
                Some((_, wire)) => {
                    // Megabytes a second are bytes a microsecond.
                    let size = of.window_us() * wire.median * part;
                    let text = format!("window x {} MB/s: ", short(wire.median));
                    drops(&points(of, figure), size as u64, By::Difference).after(&text)
                }
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
            } => equal(
                &pairs(&find(one, figure), &find(other, figure), *sizes),
                &at.ratio([one, other], figure),
            ),
            Self::Begins {
                of,
                over,
                figure,
                value,
            } => {
                let pairs = pairs(&find(of, figure), &find(over, figure), ALL);
                let answers = pairs.iter().map(|(size, of, over)| (*size, less(over, of)));
                begins(&answers.collect::<Vec<_>>(), value.size(), "above")
            }
            Self::Least {
                of,
                figure,
                sizes,
                value,
            } => bound(
                &within(&find(of, figure), *sizes),
                Bound::Least,
                value.value(),
            ),
            Self::Until {
                of,
                figure,
                least,
                value,
            } => {
                let least = least.value();
                let answer = |(size, point): &(u64, Summary)| {
                    (*size, Answer::of(point.min >= least, point.max < least))
                };
                let answers: Vec<_> = points(of, figure).iter().map(answer).collect();
                until(
                    &answers,
                    value.size(),
                    &format!("at least {}", short(least)),
                )
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
    let series = |&number: &u32| (number, find(&of.with(number), figure));
    let all = partitions.iter().map(series);
    all.filter(|(_, series)| !series.is_empty()).collect()
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

fn rises_with(series: &[(u32, Series)], sizes: [u64; 2]) -> Judgement {
    let at_sizes = sizes_of(series, sizes).into_iter();
    let lists: Vec<_> = at_sizes
        .map(|size| at_size(series, size))
        .filter(|list| list.len() > 1)
        .collect();
    let Some(first) = lists.first() else {
        return nothing();
    };
    let tally = Tally::of(lists.iter().map(|list| rises(list)));
    let evidence = format!(
        "it rises at {} of {} sizes, and does not at {}; at the smallest: {}",
        tally.yes,
        tally.all,
        tally.no,
        by_number(first)
    );
    Judgement::new(tally.most(), evidence)
}

fn peak_rises(series: &[(u32, Series)]) -> Judgement {
    let peaks = series.iter().filter_map(|(partitions, series)| {
        let (_, point) = peak_of(series)?;
        Some((f64::from(*partitions), point))
    });
    let peaks: Vec<_> = peaks.collect();
    match peaks.len() {
        0 | 1 => nothing(),
        _ => Judgement::new(rises(&peaks).verdict(), by_number(&peaks)),
    }
}

/// Values by partitions, in words.
fn by_number(points: &[(f64, Summary)]) -> String {
    let one = |(place, point): &(f64, Summary)| format!("{} with {place}", short(point.median));
    let all: Vec<String> = points.iter().map(one).collect();
    all.join(", ")
}

fn jumps(series: &[(u32, Series)], sizes: [u64; 2]) -> Judgement {
    let at_sizes = sizes_of(series, sizes).into_iter();
    let growth = at_sizes.filter_map(|size| match at_size(series, size)[..] {
        [(_, one), (_, two), (_, three)] if one.min > 0.0 && two.min > 0.0 => {
            Some((size, quotient(&two, &one), quotient(&three, &two)))
        }
        _ => None,
    });
    let all: Vec<(u64, Summary, Summary)> = growth.collect();
    let Some((size, before, after)) = all.first() else {
        return nothing();
    };
    // A jump is more than the growth before it, by a quarter.
    let is_jump = |(_, before, after): &(u64, Summary, Summary)| {
        let more = Summary {
            min: before.min,
            median: before.median,
            max: before.max.max(before.median * JUMP),
        };
        less(&more, after)
    };
    let tally = Tally::of(all.iter().map(is_jump));
    let evidence = format!(
        "at {} of {} sizes, not at {}; at {size} B it grows by {} after {}",
        tally.yes,
        tally.all,
        tally.no,
        short(after.median),
        short(before.median)
    );
    Judgement::new(tally.most(), evidence)
}

const JUMP: f64 = 1.25;
