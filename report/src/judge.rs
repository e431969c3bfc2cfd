//! Who is ahead where, by how much, and whether that is beyond the noise.
//!
//! A point is ahead of another where it is better by more than 5 % and their intervals do not overlap, as for `tagwire compare`.

use tagwire_bench::{Change, NOTABLE, Sense, Summary, Verdict};

use crate::metric::{Metric, Unit};
use crate::model::{Plot, Point, Series};

/// How the series stand at one value of the variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The value.
    pub x: f64,
    /// The best ones, by their places, the best median first: one that is ahead of all others, or several that the
    /// noise does not tell apart.
    pub best: Vec<usize>,
    /// The best of the others.
    pub next: Option<usize>,
    /// How many times better the best median is than that of the next; for shares how many points.
    pub lead: f64,
    /// Other processes ran beside one of the points: who is best is not known.
    pub is_doubtful: bool,
}

/// How a series compares with another one over all values that both have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overall {
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// The least ratio, and where.
    pub least: (f64, f64),
    /// The greatest ratio, and where.
    pub greatest: (f64, f64),
    /// Of how many values.
    pub count: usize,
}

/// Returns how the measured series of a plot stand, for each value that two or more of them have.
#[must_use]
pub fn standings(plot: &Plot) -> Vec<Standing> {
    let at = |x: f64| {
        let points = plot
            .measured()
            .filter_map(|(place, series)| Some((place, series.at(x)?)));
        standing(plot.metric.sense, x, points.collect())
    };
    plot.xs().into_iter().filter_map(at).collect()
}

fn standing(sense: Sense, x: f64, mut points: Vec<(usize, &Point)>) -> Option<Standing> {
    if points.len() < 2 {
        return None;
    }
    let median = |point: &Point| point.estimate.median;
    points.sort_by(|(_, a), (_, b)| match sense {
        Sense::LessIsBetter => median(a).total_cmp(&median(b)),
        Sense::MoreIsBetter | Sense::Share => median(b).total_cmp(&median(a)),
    });
    let first = points[0].1;
    let is_behind = |point: &Point| {
        Change::of(sense, first.estimate, point.estimate, NOTABLE).verdict == Verdict::Worse
    };
    let next = points.iter().find(|(_, point)| is_behind(point));
    let best = points.iter().filter(|(_, point)| !is_behind(point));
    let lead = next.map_or(1.0, |(_, next)| match sense {
        Sense::Share => median(first) - median(next),
        Sense::LessIsBetter => sense.ratio(median(next), median(first)),
        Sense::MoreIsBetter => sense.ratio(median(first), median(next)),
    });
    Some(Standing {
        x,
        best: best.map(|(place, _)| *place).collect(),
        next: next.map(|(place, _)| *place),
        lead,
        is_doubtful: points.iter().any(|(_, point)| point.is_disturbed),
    })
}

/// Returns how `series` compares with `base`: its values over the base's, of points that are to be trusted. `None` where they
/// have no such value in common, or a ratio is no positive number.
#[must_use]
pub fn overall(sense: Sense, base: &Series, series: &Series) -> Option<Overall> {
    let ratio = |point: &Point| {
        let base = base.at(point.x).filter(|base| !base.is_disturbed)?;
        Some((
            sense.ratio(point.estimate.median, base.estimate.median),
            point.x,
        ))
    };
    let ratios: Vec<(f64, f64)> = series
        .points
        .iter()
        .filter(|point| !point.is_disturbed)
        .filter_map(ratio)
        .collect();
    if ratios.is_empty()
        || ratios
            .iter()
            .any(|(ratio, _)| !ratio.is_finite() || *ratio <= 0.0)
    {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "counts of points")]
    let mean =
        (ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let by_ratio = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    Some(Overall {
        mean,
        least: *ratios.iter().min_by(by_ratio)?,
        greatest: *ratios.iter().max_by(by_ratio)?,
        count: ratios.len(),
    })
}

/// A point beside its base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The place of the series.
    pub series: usize,
    /// The point of the base.
    pub base: Point,
    /// The new one.
    pub new: Point,
    /// New over base, and what that means.
    pub change: Change,
    /// Between which ratios it lies: from the least new over the greatest base to the greatest over the least.
    pub interval: (f64, f64),
}

impl Compared {
    /// Whether both points are to be trusted.
    #[must_use]
    pub const fn is_trusted(&self) -> bool {
        !self.base.is_disturbed && !self.new.is_disturbed
    }
}

/// Returns every point of a plot that has a base.
#[must_use]
pub fn compared(plot: &Plot) -> Vec<Compared> {
    let sense = plot.metric.sense;
    let of_series = |(place, series): (usize, &Series)| {
        let base = series.counterpart.map(|base| &plot.series[base]);
        let pairs = series
            .points
            .iter()
            .filter_map(|new| Some((*base?.at(new.x)?, *new)));
        // Ratios of what is nothing, or less, say nothing.
        let is_positive = |point: &Point| point.estimate.median > 0.0;
        let pairs = pairs
            .filter(|(base, new)| sense == Sense::Share || (is_positive(base) && is_positive(new)));
        let pairs = pairs.map(|(base, new)| Compared {
            series: place,
            base,
            new,
            change: Change::of(sense, base.estimate, new.estimate, NOTABLE),
            interval: (
                sense.ratio(new.estimate.min, base.estimate.max),
                sense.ratio(new.estimate.max, base.estimate.min),
            ),
        });
        pairs.collect::<Vec<_>>()
    };
    plot.measured().flat_map(of_series).collect()
}

/// Returns the plot of a plot's ratios to its base, with a line at 1; `None` where nothing compares, or ratios say nothing.
#[must_use]
pub fn ratios(plot: &Plot) -> Option<Plot> {
    let all = compared(plot);
    if all.is_empty() || plot.metric.sense == Sense::Share {
        return None;
    }
    let of_series = |(place, series): (usize, &Series)| {
        let own = all.iter().filter(|compared| compared.series == place);
        let points = own.map(|compared| Point {
            estimate: Summary {
                median: compared.change.ratio,
                min: compared.interval.0,
                max: compared.interval.1,
            },
            is_disturbed: compared.new.is_disturbed || compared.base.is_disturbed,
            launches: compared.new.launches.min(compared.base.launches),
            x: compared.new.x,
        });
        let is_number =
            |point: &Point| point.estimate.max.is_finite() && point.estimate.median.is_finite();
        Series {
            counterpart: None,
            points: points.filter(is_number).collect(),
            ..series.clone()
        }
    };
    let series: Vec<Series> = plot
        .measured()
        .map(of_series)
        .filter(|series| !series.points.is_empty())
        .collect();
    (!series.is_empty()).then(|| Plot {
        id: format!("{}-ratio", plot.id),
        metric: Metric {
            key: format!("{}_ratio", plot.metric.key),
            name: format!("{}, new over base", plot.metric.name),
            unit: Unit::None,
            ..plot.metric.clone()
        },
        is_main: false,
        reference: Some(1.0),
        series,
        ..plot.clone()
    })
}

/// Returns the points of a base that the new results lack, each as series and value.
#[must_use]
pub fn missing(plot: &Plot) -> Vec<(usize, f64)> {
    let bases = plot
        .series
        .iter()
        .enumerate()
        .filter(|(_, series)| series.role == crate::model::Role::Base);
    let lacking = bases.flat_map(|(place, base)| {
        let new = base.counterpart.map(|new| &plot.series[new]);
        let points = base
            .points
            .iter()
            .filter(move |point| new.is_none_or(|new| new.at(point.x).is_none()));
        points.map(move |point| (place, point.x))
    });
    lacking.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::build::Selection;
    use crate::model::Model;
    use crate::read::Results;

    /// Latencies of series, for sizes 8, 16, ...: launches of each.
    fn plot(series: &[(&str, &[&[f64]])]) -> Plot {
        let mut rows = Vec::new();
        for (name, sizes) in series {
            for (place, launches) in sizes.iter().enumerate() {
                for value in *launches {
                    rows.push(format!(
                        "{{\"size\":{},\"transport\":\"{name}\",\"latency_us\":{value}}}",
                        8 << place
                    ));
                }
            }
        }
        let text = format!(
            "{{\"schema\":\"tagwire.bench/2\",\"test\":\"latency\",\"rows\":[{}]}}",
            rows.join(",")
        );
        let results = Results::parse(Path::new("a.json"), text.as_bytes()).unwrap();
        Model::of(&[results], None, &Selection::default())
            .unwrap()
            .plots
            .remove(0)
    }

    #[test]
    fn ahead_is_beyond_the_noise() {
        let plot = plot(&[
            ("a", &[&[1.0, 1.1, 1.2], &[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0]]),
            (
                "b",
                &[&[2.0, 2.2, 2.4], &[2.5, 2.6, 2.7], &[1.04, 1.04, 1.04]],
            ),
            ("c", &[&[3.0, 3.3, 3.6], &[9.0, 9.0, 9.0]]),
        ]);
        let found = standings(&plot);
        assert_eq!((&found[0].best[..], found[0].next), (&[0][..], Some(1)));
        assert!((found[0].lead - 2.0).abs() < 1e-9);
        // Their intervals overlap, but both are ahead of the third.
        assert_eq!((&found[1].best[..], found[1].next), (&[0, 1][..], Some(2)));
        assert!((found[1].lead - 4.5).abs() < 1e-9);
        // Apart, but by less than counts.
        assert_eq!((&found[2].best[..], found[2].next), (&[0, 1][..], None));
        let overall = overall(plot.metric.sense, &plot.series[0], &plot.series[2]).unwrap();
        assert!((overall.mean - 13.5_f64.sqrt()).abs() < 1e-9);
        assert_eq!((overall.greatest.1, overall.count), (16.0, 2));
    }
}
