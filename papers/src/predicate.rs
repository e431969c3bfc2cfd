//! When a claim holds.
//!
//! Figures of other machines are not compared with ours: claims are about ratios, orders, and the sizes at which curves cross. The
//! figure at a size is the median over launches, with their least and greatest as its interval.

use serde::Deserialize;

use tagwire_bench::Summary;

use crate::compare::{
    NEAR, WIDENED, below, crossover, equal, is_clearly_below, nothing, pairs, within,
};
use crate::judgement::Judgement;
use crate::parts::Parts;
use crate::rows::{Rows, Series};
use crate::units::Comparison;

/// Whose series: `ob1` and `cm` on a transport, or an MPI library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Who {
    Ob1,
    Cm,
    Peer,
}

/// When a claim holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Predicate {
    /// The published ratio lies in ours, widened by a quarter.
    Ratio {
        of: Who,
        over: Who,
        figure: String,
        size: u64,
        value: f64,
    },
    /// One is below the other: at two thirds of the sizes by disjoint intervals, and never the reverse.
    Below {
        low: Who,
        high: Who,
        figure: String,
        sizes: [u64; 2],
    },
    /// Both are the same: intervals overlap at two thirds of the sizes.
    Equal {
        one: Who,
        other: Who,
        figure: String,
        sizes: [u64; 2],
    },
    /// From about a size on one is below the other; with `above`, up to about a size.
    Crossover {
        low: Who,
        high: Who,
        figure: String,
        value: u64,
        #[serde(default)]
        above: bool,
    },
    /// It is at least a value at all sizes.
    Least {
        of: Who,
        figure: String,
        sizes: [u64; 2],
        value: f64,
    },
    /// It is lower at the large sizes than at the small ones, by more than the intervals.
    Falls {
        of: Who,
        figure: String,
        small: [u64; 2],
        large: [u64; 2],
    },
    /// Its steepest fall from a size to the next is about there.
    Drops { of: Who, figure: String, value: u64 },
    /// It is about units, such as threads and processes.
    Units(Comparison),
    /// It is about partitions.
    Parts(Parts),
}

impl Predicate {
    /// Returns the figure that it is about, where it is about units.
    pub(crate) fn figure_of_units(&self) -> Option<&str> {
        match self {
            Self::Units(comparison) => Some(comparison.figure()),
            _ => None,
        }
    }

    /// Returns whose series it is about, and of which figure.
    fn about(&self) -> (Who, Option<Who>, &str) {
        match self {
            Self::Ratio {
                of, over, figure, ..
            } => (*of, Some(*over), figure),
            Self::Below {
                low, high, figure, ..
            }
            | Self::Crossover {
                low, high, figure, ..
            } => (*low, Some(*high), figure),
            Self::Equal {
                one, other, figure, ..
            } => (*one, Some(*other), figure),
            Self::Least { of, figure, .. }
            | Self::Falls { of, figure, .. }
            | Self::Drops { of, figure, .. } => (*of, None, figure),
            // It is judged by itself.
            Self::Units(_) | Self::Parts(_) => (Who::Peer, None, ""),
        }
    }

    /// Judges it on each transport, beside each MPI library where it is about one.
    pub(crate) fn judge(&self, rows: &Rows) -> Vec<Judgement> {
        match self {
            Self::Units(comparison) => return comparison.judge(rows),
            Self::Parts(parts) => return parts.judge(rows),
            _ => {}
        }
        let (first, second, figure) = self.about();
        let needs_peer = first == Who::Peer || second == Some(Who::Peer);
        let peers = match needs_peer {
            true => rows.transports(true).into_iter().map(Some).collect(),
            false => vec![None],
        };
        let mut all = Vec::new();
        for own in rows.transports(false) {
            for peer in &peers {
                let series = |who| match who {
                    Who::Ob1 => rows.series(own, Some("ob1"), figure),
                    Who::Cm => rows.series(own, Some("cm"), figure),
                    Who::Peer => rows.series(peer.unwrap_or_default(), None, figure),
                };
                let (one, other) = (series(first), second.map(series).unwrap_or_default());
                let on = match peer {
                    Some(peer) => format!("{own} beside {peer}"),
                    None => own.to_owned(),
                };
                all.push(self.decide(&one, &other).on(on));
            }
        }
        if all.is_empty() {
            let why = match needs_peer && rows.transports(true).is_empty() {
                true => "no MPI library was measured: -t mpi:PREFIX",
                false => "nothing was measured on a transport of Tagwire",
            };
            all.push(Judgement::not_testable(why));
        }
        all
    }

    fn decide(&self, one: &Series, other: &Series) -> Judgement {
        match self {
            Self::Ratio { size, value, .. } => ratio(one, other, *size, *value),
            Self::Below { sizes, .. } => below(&pairs(one, other, *sizes)),
            Self::Equal { sizes, .. } => equal(&pairs(one, other, *sizes)),
            Self::Crossover { value, above, .. } => {
                crossover(&pairs(one, other, [0, u64::MAX]), *value, *above)
            }
            Self::Least { sizes, value, .. } => least(&within(one, *sizes), *value),
            Self::Falls { small, large, .. } => falls(&within(one, *small), &within(one, *large)),
            Self::Drops { value, .. } => drops(&within(one, [0, u64::MAX]), *value),
            Self::Units(_) | Self::Parts(_) => nothing(),
        }
    }
}

fn ratio(one: &Series, other: &Series, size: u64, value: f64) -> Judgement {
    let (Some(of), Some(over)) = (one.get(&size), other.get(&size)) else {
        return nothing();
    };
    if over.min <= 0.0 {
        return Judgement::not_testable(format!("one of the figures is {} at {size} B", over.min));
    }
    let (low, high) = (of.min / over.max, of.max / over.min);
    let ours = of.median / over.median;
    let holds = (low * (1.0 - WIDENED)..=high * (1.0 + WIDENED)).contains(&value);
    let evidence = format!("{ours:.2} ({low:.2}..{high:.2}) at {size} B; published {value:.2}");
    Judgement::new(holds, evidence)
}

fn least(points: &[(u64, Summary)], value: f64) -> Judgement {
    let least = points
        .iter()
        .min_by(|one, other| one.1.median.total_cmp(&other.1.median));
    let Some((size, point)) = least else {
        return nothing();
    };
    let evidence = format!("{:.1} at the least, at {size} B", point.median);
    Judgement::new(point.median >= value, evidence)
}

fn falls(small: &[(u64, Summary)], large: &[(u64, Summary)]) -> Judgement {
    let (Some((from, before)), Some((to, after))) = (small.last(), large.first()) else {
        return nothing();
    };
    let evidence = format!(
        "{:.1} at {from} B, {:.1} at {to} B",
        before.median, after.median
    );
    Judgement::new(is_clearly_below(after, before), evidence)
}

fn drops(points: &[(u64, Summary)], value: u64) -> Judgement {
    let falls = points
        .windows(2)
        .map(|pair| (pair[1].0, pair[1].1.median / pair[0].1.median));
    let Some((size, rest)) = falls.min_by(|one, other| one.1.total_cmp(&other.1)) else {
        return nothing();
    };
    let factor = size.max(1) as f64 / value.max(1) as f64;
    let evidence = format!(
        "the steepest fall is to {:.0} % at {size} B; published {value} B",
        rest * 100.0
    );
    Judgement::new(
        rest < 1.0 && (1.0 / NEAR..=NEAR).contains(&factor),
        evidence,
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::judgement::Verdict;
    use crate::rows::tests::rows;

    fn verdict(predicate: &str, series: &[(&str, &str, u64, &[f64])]) -> Verdict {
        let predicate: Predicate = toml::from_str(predicate).unwrap();
        let judged = predicate.judge(&rows(series));
        assert_eq!(judged.len(), 1, "{judged:?}");
        judged[0].verdict
    }

    #[test]
    fn ratios_hold_within_a_quarter_of_our_interval() {
        let claim = "ratio = { of = 'ob1', over = 'cm', figure = 'x', size = 0, value = 1.25 }";
        let of = |ob1: &[f64]| verdict(claim, &[("shm", "ob1", 0, ob1), ("shm", "cm", 0, &[1.0])]);
        assert_eq!(of(&[1.01]), Verdict::Holds);
        assert_eq!(of(&[0.99]), Verdict::Fails);
        assert_eq!(of(&[0.5, 1.01]), Verdict::Holds);
        assert_eq!(of(&[1.7]), Verdict::Fails);
        assert_eq!(
            verdict(claim, &[("shm", "ob1", 0, &[1.0])]),
            Verdict::NotTestable
        );
    }

    #[test]
    fn orders_need_two_thirds_and_no_reverse() {
        let claim = "below = { low = 'cm', high = 'ob1', figure = 'x', sizes = [1, 8] }";
        let of = |cm: [&[f64]; 3]| {
            let mut all: Vec<(&str, &str, u64, &[f64])> = vec![
                ("shm", "ob1", 1, &[2.0, 3.0]),
                ("shm", "ob1", 2, &[2.0, 3.0]),
                ("shm", "ob1", 4, &[2.0, 3.0]),
                // Outside of the sizes.
                ("shm", "ob1", 16, &[2.0]),
                ("shm", "cm", 16, &[9.0]),
            ];
            for (size, values) in [1, 2, 4].into_iter().zip(cm) {
                all.push(("shm", "cm", size, values));
            }
            verdict(claim, &all)
        };
        assert_eq!(of([&[1.0], &[1.0], &[1.0]]), Verdict::Holds);
        assert_eq!(of([&[1.0], &[1.0], &[1.0, 2.5]]), Verdict::Holds);
        assert_eq!(of([&[1.0], &[2.5], &[1.0, 2.5]]), Verdict::Fails);
        assert_eq!(of([&[1.0], &[1.0], &[4.0]]), Verdict::Fails);
        assert_eq!(
            verdict(claim, &[("shm", "cm", 1, &[1.0])]),
            Verdict::NotTestable
        );
    }

    #[test]
    fn the_same_is_an_overlap() {
        let claim = "equal = { one = 'cm', other = 'ob1', figure = 'x', sizes = [1, 8] }";
        let of = |cm: &[f64]| {
            verdict(
                claim,
                &[("shm", "ob1", 1, &[2.0, 3.0]), ("shm", "cm", 1, cm)],
            )
        };
        assert_eq!(of(&[2.5]), Verdict::Holds);
        assert_eq!(of(&[1.0, 2.0]), Verdict::Holds);
        assert_eq!(of(&[1.0]), Verdict::Fails);
    }

    #[test]
    fn crossings_agree_within_a_factor_of_four() {
        let mut all: Vec<(&str, &str, u64, &[f64])> = Vec::new();
        for size in [1, 8, 64, 512] {
            all.push(("shm", "cm", size, &[2.0]));
        }
        for (size, peer) in [(1, [1.0]), (8, [1.5]), (64, [3.0]), (512, [4.0])] {
            all.push(("mpi:/x", "", size, Box::leak(Box::new(peer))));
        }
        let of = |value: u64, above: bool| {
            let claim = format!(
                "crossover = {{ low = 'cm', high = 'peer', figure = 'x', value = {value}, above = {above} }}"
            );
            verdict(&claim, &all)
        };
        assert_eq!(of(100, false), Verdict::Holds);
        assert_eq!(of(8, false), Verdict::Fails);
        assert_eq!(of(100, true), Verdict::Fails);
        let claim =
            "crossover = { low = 'peer', high = 'cm', figure = 'x', value = 8, above = true }";
        assert_eq!(verdict(claim, &all), Verdict::Holds);
    }

    #[test]
    fn values_falls_and_drops() {
        let all: Vec<(&str, &str, u64, &[f64])> = vec![
            ("shm", "cm", 1024, &[95.0, 96.0]),
            ("shm", "cm", 4096, &[90.0, 92.0]),
            ("shm", "cm", 65536, &[30.0, 40.0]),
            ("shm", "cm", 1048576, &[32.0]),
        ];
        let least = |value: f64| {
            let claim = format!(
                "least = {{ of = 'cm', figure = 'x', sizes = [1, 4096], value = {value:.1} }}"
            );
            verdict(&claim, &all)
        };
        assert_eq!((least(90.0), least(92.0)), (Verdict::Holds, Verdict::Fails));
        let falls =
            "falls = { of = 'cm', figure = 'x', small = [1, 4096], large = [65536, 1048576] }";
        assert_eq!(verdict(falls, &all), Verdict::Holds);
        let falls =
            "falls = { of = 'cm', figure = 'x', small = [1, 65536], large = [1048576, 1048576] }";
        assert_eq!(verdict(falls, &all), Verdict::Fails);
        let drops = |value: u64| {
            verdict(
                &format!("drops = {{ of = 'cm', figure = 'x', value = {value} }}"),
                &all,
            )
        };
        assert_eq!(
            (drops(65536), drops(1024)),
            (Verdict::Holds, Verdict::Fails)
        );
    }

    #[test]
    fn without_a_peer_nothing_is_said_of_it() {
        let claim = "below = { low = 'peer', high = 'ob1', figure = 'x', sizes = [0, 0] }";
        let judged: Predicate = toml::from_str(claim).unwrap();
        let judged = judged.judge(&rows(&[("shm", "ob1", 0, &[1.0])]));
        assert_eq!(judged[0].verdict, Verdict::NotTestable);
        assert!(judged[0].evidence.contains("-t mpi:PREFIX"));
    }
}
