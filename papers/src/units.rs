//! Claims about units: threads against processes, or a thread that helps against none. They are judged on each transport and
//! layer, and on each MPI library by itself.

use serde::Deserialize;

use tagwire_bench::Summary;

use crate::compare::{
    WIDENED, below, crossover, equal, is_clearly_below, nothing, pairs, peak_is, short, within,
};
use crate::judgement::Judgement;
use crate::rows::{Place, Rows, Series, is_peer};

/// When a claim about units holds. A unit is named as in the rows: `threads:4`, `blocked-thread`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Comparison {
    /// The published ratio, or an end of its range, lies in ours, widened by a quarter; or ours in the range.
    Ratio {
        of: String,
        over: String,
        figure: String,
        size: u64,
        value: f64,
        /// The other end of a range.
        to: Option<f64>,
    },
    /// One is below the other, as for layers.
    Below {
        low: String,
        high: String,
        figure: String,
    },
    /// Both are the same, as for layers.
    Equal {
        one: String,
        other: String,
        figure: String,
    },
    /// It is at least a value at all sizes.
    Least {
        of: String,
        figure: String,
        value: f64,
    },
    /// It is at most a value at all sizes.
    Most {
        of: String,
        figure: String,
        value: f64,
    },
    /// Its greatest value at all sizes is a published one, widened by a quarter.
    Peak {
        of: String,
        figure: String,
        value: f64,
    },
    /// From about a size on one is below the other, as for layers.
    Crossover {
        low: String,
        high: String,
        figure: String,
        value: u64,
    },
    /// Its ratio over another is clearly lower at the largest size than at the smallest.
    Nears {
        of: String,
        over: String,
        figure: String,
    },
    /// It is lower in one library than in another, of those whose names begin so; or its ratio over another unit is.
    Between {
        of: String,
        over: Option<String>,
        figure: String,
        low: String,
        high: String,
    },
}

const ALL: [u64; 2] = [0, u64::MAX];

/// A ratio whose interval is wider than this factor says nothing: every claim would hold.
const SCATTER: f64 = 4.0;

impl Comparison {
    /// The figure that it is about.
    pub(crate) fn figure(&self) -> &str {
        match self {
            Self::Ratio { figure, .. }
            | Self::Below { figure, .. }
            | Self::Equal { figure, .. }
            | Self::Least { figure, .. }
            | Self::Most { figure, .. }
            | Self::Peak { figure, .. }
            | Self::Crossover { figure, .. }
            | Self::Nears { figure, .. }
            | Self::Between { figure, .. } => figure,
        }
    }

    /// Judges it on each place.
    pub(crate) fn judge(&self, rows: &Rows) -> Vec<Judgement> {
        let places = rows.places();
        if let Self::Between { low, high, .. } = self {
            return vec![self.between(rows, &places, low, high)];
        }
        let decide = |place: &Place| self.decide(&|unit, figure| rows.of_unit(place, unit, figure));
        let all = places.iter().map(|place| decide(place).on(place.name()));
        let all: Vec<Judgement> = all.collect();
        match all.is_empty() {
            true => vec![Judgement::not_testable(
                "nothing was measured for it: it needs -t shm, a network such as ofi:tcp, or mpi:PREFIX",
            )],
            false => all,
        }
    }

    fn decide(&self, series: &dyn Fn(&str, &str) -> Series) -> Judgement {
        match self {
            Self::Ratio {
                of,
                over,
                figure,
                size,
                value,
                to,
            } => {
                let (of, over) = (series(of, figure), series(over, figure));
                match (of.get(size), over.get(size)) {
                    (Some(of), Some(over)) => ratio(of, over, *value, to.unwrap_or(*value)),
                    _ => nothing(),
                }
            }
            Self::Below { low, high, figure } => {
                below(&pairs(&series(low, figure), &series(high, figure), ALL))
            }
            Self::Equal { one, other, figure } => {
                equal(&pairs(&series(one, figure), &series(other, figure), ALL))
            }
            Self::Least { of, figure, value } => {
                let points = within(&series(of, figure), ALL);
                let found = points.into_iter().min_by(by_median);
                bound(found, "least", *value, |median| median >= *value)
            }
            Self::Most { of, figure, value } => {
                let points = within(&series(of, figure), ALL);
                let found = points.into_iter().max_by(by_median);
                bound(found, "most", *value, |median| median <= *value)
            }
            Self::Peak { of, figure, value } => peak_is(&series(of, figure), *value),
            Self::Crossover {
                low,
                high,
                figure,
                value,
            } => {
                let pairs = pairs(&series(low, figure), &series(high, figure), ALL);
                crossover(&pairs, *value, false)
            }
            Self::Nears { of, over, figure } => {
                nears(&pairs(&series(of, figure), &series(over, figure), ALL))
            }
            Self::Between { .. } => nothing(),
        }
    }

    /// Of two libraries.
    fn between(&self, rows: &Rows, places: &[Place], low: &str, high: &str) -> Judgement {
        let Self::Between {
            of, over, figure, ..
        } = self
        else {
            return nothing();
        };
        let of_library = |name: &str| {
            let mut peers = places.iter().filter(|place| is_peer(&place.transport));
            let place = peers.find(|place| place.name().starts_with(name))?;
            let series = rows.of_unit(place, of, figure);
            let (size, point) = series.first_key_value()?;
            let Some(over) = over else {
                return Some(*point);
            };
            let base = *rows.of_unit(place, over, figure).get(size)?;
            (base.min > 0.0).then(|| quotient(point, &base))
        };
        match (of_library(low), of_library(high)) {
            (Some(one), Some(other)) => {
                let evidence = format!("{low}: {}; {high}: {}", told(&one), told(&other));
                Judgement::new(is_clearly_below(&one, &other), evidence)
            }
            _ => Judgement::not_testable(format!("it needs {low} and {high} by -t mpi:PREFIX")),
        }
    }
}

fn nears(pairs: &[(u64, Summary, Summary)]) -> Judgement {
    let [first, .., last] = pairs else {
        return nothing();
    };
    let ratio = |(_, of, over): &(u64, Summary, Summary)| quotient(of, over);
    let (before, after) = (ratio(first), ratio(last));
    let evidence = format!(
        "{} at {} B, {} at {} B",
        told(&before),
        first.0,
        told(&after),
        last.0
    );
    Judgement::new(is_clearly_below(&after, &before), evidence)
}

fn by_median(one: &(u64, Summary), other: &(u64, Summary)) -> std::cmp::Ordering {
    one.1.median.total_cmp(&other.1.median)
}

fn bound(
    found: Option<(u64, Summary)>,
    word: &str,
    value: f64,
    holds: impl Fn(f64) -> bool,
) -> Judgement {
    let Some((size, point)) = found else {
        return nothing();
    };
    let evidence = format!(
        "{} at the {word}, at {size} B; claimed at the {word} {value}",
        short(point.median)
    );
    Judgement::new(holds(point.median), evidence)
}

fn quotient(of: &Summary, over: &Summary) -> Summary {
    Summary {
        min: of.min / over.max,
        median: of.median / over.median,
        max: of.max / over.min,
    }
}

fn ratio(of: &Summary, over: &Summary, one: f64, other: f64) -> Judgement {
    if over.min <= 0.0 {
        return Judgement::not_testable("one of the figures is 0");
    }
    let ours = quotient(of, over);
    if ours.max > SCATTER * ours.min {
        let text = format!("{}: launches scatter too much", told(&ours));
        return Judgement::not_testable(text);
    }
    let (low, high) = (ours.min * (1.0 - WIDENED), ours.max * (1.0 + WIDENED));
    let holds = low <= one.max(other) && one.min(other) <= high;
    let published = match one == other {
        true => short(one),
        false => format!("{} to {}", short(one), short(other)),
    };
    Judgement::new(holds, format!("{}; published {published}", told(&ours)))
}

fn told(point: &Summary) -> String {
    let [median, low, high] = [point.median, point.min, point.max].map(short);
    format!("{median} ({low}..{high})")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::judgement::Verdict;
    use crate::rows::tests::{rows_of_sizes, rows_of_units};

    const MPICH: &str = "MPICH Version: 5";
    const OPEN_MPI: &str = "Open MPI v5, package";

    fn judge(
        claim: &str,
        rows: &[(&str, Option<&str>, &str, &[f64])],
    ) -> Vec<(String, Verdict, String)> {
        let claim: Comparison = toml::from_str(claim).unwrap();
        let judged = claim.judge(&rows_of_units(rows)).into_iter();
        judged
            .map(|one| (one.on, one.verdict, one.evidence))
            .collect()
    }

    #[test]
    fn units_are_compared_on_each_place() {
        let claim = "ratio = { of = 'threads:4', over = 'processes:4', figure = 'x', size = 0, value = 0.5 }";
        let judged = judge(
            claim,
            &[
                ("shm", None, "threads:4", &[5.0, 6.0]),
                ("shm", None, "processes:4", &[10.0]),
                ("mpi", Some(MPICH), "threads:4", &[9.0]),
                ("mpi", Some(MPICH), "processes:4", &[10.0]),
                ("mpi", Some(OPEN_MPI), "threads:4", &[9.0]),
            ],
        );
        let verdicts: Vec<_> = judged.iter().map(|it| (&*it.0, it.1)).collect();
        assert_eq!(
            verdicts,
            [
                ("shm (ob1)", Verdict::Holds),
                ("MPICH 5", Verdict::Fails),
                ("Open MPI 5", Verdict::NotTestable)
            ]
        );
        assert!(judged[0].2.contains("0.550 (0.500..0.600)"), "{judged:?}");
        let noisy = [
            ("shm", None, "threads:4", &[1.0, 9.0][..]),
            ("shm", None, "processes:4", &[10.0]),
        ];
        let judged = judge(claim, &noisy);
        assert_eq!(judged[0].1, Verdict::NotTestable);
        assert!(judged[0].2.contains("scatter"), "{judged:?}");
    }

    #[test]
    fn a_range_holds_by_either_end_or_by_what_lies_between() {
        let verdict = |value: f64| {
            let claim =
                "ratio = { of = 'b', over = 'a', figure = 'x', size = 0, value = 2.0, to = 4.0 }";
            judge(
                claim,
                &[("shm", None, "a", &[1.0]), ("shm", None, "b", &[value])],
            )[0]
            .1
        };
        for (value, holds) in [
            (1.5, false),
            (1.7, true),
            (3.0, true),
            (5.0, true),
            (5.5, false),
        ] {
            assert_eq!(verdict(value) == Verdict::Holds, holds, "{value}");
        }
    }

    #[test]
    fn orders_and_bounds() {
        let rows: [(&str, Option<&str>, &str, &[f64]); 2] = [
            ("shm", None, "none", &[10.0, 11.0]),
            ("shm", None, "blocked-thread", &[5.0, 6.0]),
        ];
        for (claim, verdict) in [
            (
                "below = { low = 'blocked-thread', high = 'none', figure = 'x' }",
                Verdict::Holds,
            ),
            (
                "below = { low = 'none', high = 'blocked-thread', figure = 'x' }",
                Verdict::Fails,
            ),
            (
                "equal = { one = 'none', other = 'blocked-thread', figure = 'x' }",
                Verdict::Fails,
            ),
            (
                "most = { of = 'none', figure = 'x', value = 10.5 }",
                Verdict::Holds,
            ),
            (
                "most = { of = 'none', figure = 'x', value = 10.0 }",
                Verdict::Fails,
            ),
            (
                "least = { of = 'none', figure = 'x', value = 10.5 }",
                Verdict::Holds,
            ),
            (
                "least = { of = 'none', figure = 'x', value = 11.0 }",
                Verdict::Fails,
            ),
            (
                "least = { of = 'progress-thread', figure = 'x', value = 1.0 }",
                Verdict::NotTestable,
            ),
        ] {
            assert_eq!(judge(claim, &rows)[0].1, verdict, "{claim}");
        }
        let none = judge("most = { of = 'none', figure = 'x', value = 1.0 }", &[]);
        assert_eq!(none[0].1, Verdict::NotTestable);
    }

    #[test]
    fn peaks_crossings_and_what_nears() {
        let claim = |text: &str, one: &[f64], other: &[f64]| {
            let claim: Comparison = toml::from_str(text).unwrap();
            let rows = rows_of_sizes(&[("pr", one), ("lanes", other)]);
            claim.judge(&rows)[0].verdict
        };
        let (pr, lanes) = ([9.0, 7.0, 5.0], [4.0, 6.0, 9.0]);
        for (text, verdict) in [
            (
                "peak = { of = 'pr', figure = 'x', value = 7.5 }",
                Verdict::Holds,
            ),
            (
                "peak = { of = 'pr', figure = 'x', value = 6.0 }",
                Verdict::Fails,
            ),
            (
                "crossover = { low = 'pr', high = 'lanes', figure = 'x', value = 4 }",
                Verdict::Holds,
            ),
            (
                "crossover = { low = 'pr', high = 'lanes', figure = 'x', value = 4096 }",
                Verdict::Fails,
            ),
            (
                "crossover = { low = 'lanes', high = 'pr', figure = 'x', value = 4 }",
                Verdict::Fails,
            ),
            (
                "nears = { of = 'pr', over = 'lanes', figure = 'x' }",
                Verdict::Holds,
            ),
            (
                "nears = { of = 'lanes', over = 'pr', figure = 'x' }",
                Verdict::Fails,
            ),
        ] {
            assert_eq!(claim(text, &pr, &lanes), verdict, "{text}");
        }
        let nears = "nears = { of = 'pr', over = 'lanes', figure = 'x' }";
        assert_eq!(claim(nears, &[1.0], &[1.0]), Verdict::NotTestable);
    }

    #[test]
    fn libraries_are_compared_by_what_threads_cost_each() {
        let claim =
            "between = { of = 't', over = 'p', figure = 'x', low = 'MPICH', high = 'Open MPI' }";
        let all: [(&str, Option<&str>, &str, &[f64]); 4] = [
            ("mpi", Some(MPICH), "p", &[1.0]),
            ("mpi", Some(MPICH), "t", &[1.5]),
            ("mpi", Some(OPEN_MPI), "p", &[0.1]),
            ("mpi", Some(OPEN_MPI), "t", &[0.4]),
        ];
        assert_eq!(judge(claim, &all)[0].1, Verdict::Holds);
        assert_eq!(judge(claim, &all[..2])[0].1, Verdict::NotTestable);
    }
}
