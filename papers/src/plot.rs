//! Plots of items: what was measured over sizes, with the published values and ranges that have a place there.

use std::collections::BTreeSet;

use serde_json::Value;
use tagwire_bench::Summary;
use tagwire_bench::naming::SIZE;

use crate::drawn::Shows;
use crate::item::Item;
use crate::outcome::Measured;
use crate::predicate::Predicate;
use crate::projection::{PROFILE, projected};
use crate::reference::by_id;
use crate::rows::Rows;

/// A plot of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The figure of `tagwire bench` that it shows, whose name ends in its unit.
    pub figure: String,
    /// What it is drawn over: `size` in bytes, `short_message` by its number, `arrival_in_us`, or `ranks`.
    pub over: &'static str,
    /// What it draws.
    pub lines: Vec<Line>,
}

/// A series of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is of.
    pub name: String,
    /// Whether a paper publishes it.
    pub is_published: bool,
    /// Places and values: the median over launches with the extremes, or a published value.
    pub points: Vec<(u64, Summary)>,
}

/// More series cannot be told apart.
const MOST: usize = 9;

impl Plot {
    /// Returns the plot of an item's first figure by its rows; `None` where nothing of it was measured.
    pub(crate) fn of_rows(item: &Item, rows: &Rows) -> Option<Self> {
        match item.plot {
            Some(Shows::Shorts) => return Self::of_shorts(rows),
            Some(Shows::Arrivals) => return Self::of_arrivals(rows),
            Some(Shows::Gains) => return Self::of_gains(rows),
            None => {}
        }
        let figure = item.claims.first()?.predicate.figure();
        let mut lines: Vec<Line> = Vec::new();
        let mut add = |name: String, points: Vec<(u64, Summary)>| {
            let is_new = !lines.iter().any(|line| line.name == name);
            if !points.is_empty() && is_new && lines.len() < MOST {
                lines.push(Line {
                    name,
                    is_published: false,
                    points,
                });
            }
        };
        let claims = item.claims.iter();
        for claim in claims.filter(|claim| claim.predicate.figure() == figure) {
            for place in rows.places() {
                for (name, series) in claim.predicate.series(rows, &place) {
                    let name = match name.is_empty() {
                        true => place.name(),
                        false => format!("{name}, {}", place.name()),
                    };
                    add(name, series.into_iter().collect());
                }
            }
        }
        Self::with_published(item, figure, lines)
    }

    /// The time of each short message, by its number from 1 on: the median over launches.
    fn of_shorts(rows: &Rows) -> Option<Self> {
        let mut lines = Vec::new();
        for place in rows.places() {
            for unit in rows.units_at(&place) {
                let of = rows.of_place_and_unit(&place, unit);
                let launches = of.filter_map(|row| row["samples"]["short_us"].as_array());
                let launches: Vec<&Vec<Value>> = launches.collect();
                let count = launches.iter().map(|times| times.len()).min().unwrap_or(0);
                let point = |number: usize| {
                    let times = launches.iter().filter_map(|times| times[number].as_f64());
                    let all = Summary::of(&times.collect::<Vec<_>>())?;
                    // 96 intervals would hide what they are of.
                    Some((number as u64 + 1, exactly(all.median)))
                };
                lines.push(Line {
                    name: format!("{unit}, {}", place.name()),
                    is_published: false,
                    points: (0..count).filter_map(point).collect(),
                });
            }
        }
        Self::of_lines("short_us", "short_message", lines)
    }

    /// How many threads arrive in each bin of a histogram, in the first launch.
    fn of_arrivals(rows: &Rows) -> Option<Self> {
        let mut lines = Vec::new();
        for place in rows.places() {
            for unit in rows.units_at(&place) {
                let mut of = rows.of_place_and_unit(&place, unit);
                let histogram = of.find_map(|row| bins(row["histogram"].as_str()?));
                lines.push(Line {
                    name: format!("{unit}, {}", place.name()),
                    is_published: false,
                    points: histogram.unwrap_or_default(),
                });
            }
        }
        Self::of_lines("threads_that_arrive", "arrival_in_us", lines)
    }

    /// What a program gains whose sends and receives get faster by our factor, and by the published one: by the shares of profiles
    /// over ranks, beside what follows from the published shares.
    fn of_gains(rows: &Rows) -> Option<Self> {
        let published = |id: &str| by_id(id).ok()?.value.as_f64();
        let mut lines = Vec::new();
        for place in rows.places() {
            let shares = rows.of_unit(&place, PROFILE, "share_pct");
            let mut add = |name: &str, factor: f64| {
                let gain = |share: f64| projected(share, factor);
                let points = shares.iter().map(|(ranks, share)| {
                    let point = Summary {
                        min: gain(share.min),
                        median: gain(share.median),
                        max: gain(share.max),
                    };
                    (*ranks, point)
                });
                lines.push(Line {
                    name: format!("sweep, factor {factor:.1} ({name}), {}", place.name()),
                    is_published: false,
                    points: points.collect(),
                });
            };
            let factors = rows.factors();
            if let Some((_, factor)) = factors.iter().find(|(name, _)| *name == place.name()) {
                add("ours", *factor);
            }
            if let Some(factor) = published("000/fig13/factor-applied-to-send-receive-time") {
                add("published", factor);
            }
        }
        let of_nodes = [128, 256].map(|nodes| {
            let value = published(&format!("000/fig13/projected-speedup/{nodes}"))?;
            Some((nodes, exactly(value)))
        });
        lines.retain(|line| !line.points.is_empty());
        if !lines.is_empty() {
            lines.push(Line {
                name: "SNAP, derived".to_owned(),
                is_published: true,
                points: of_nodes.into_iter().flatten().collect(),
            });
        }
        Self::of_lines("projected_speedup", "ranks", lines)
    }

    fn of_lines(figure: &str, over: &'static str, mut lines: Vec<Line>) -> Option<Self> {
        lines.retain(|line| !line.points.is_empty());
        lines.truncate(MOST);
        (!lines.is_empty()).then(|| Self {
            figure: figure.to_owned(),
            over,
            lines,
        })
    }

    /// Returns it by medians that an earlier version has stored.
    pub(crate) fn of_measured(item: &Item, all: &[Measured]) -> Option<Self> {
        if item.plot.is_some() {
            // What it shows is in rows alone.
            return None;
        }
        let figure = item.claims.first()?.predicate.figure();
        let mut lines: Vec<Line> = Vec::new();
        for one in all.iter().filter(|one| one.figure == figure) {
            let name = format!("{}, {}", one.unit, one.on);
            let point = Summary {
                min: one.low,
                median: one.median,
                max: one.high,
            };
            match lines.iter().position(|line| line.name == name) {
                Some(place) => lines[place].points.push((one.size, point)),
                None if lines.len() < MOST => lines.push(Line {
                    name,
                    is_published: false,
                    points: vec![(one.size, point)],
                }),
                None => {}
            }
        }
        Self::with_published(item, figure, lines)
    }

    fn with_published(item: &Item, figure: &str, mut lines: Vec<Line>) -> Option<Self> {
        if lines.is_empty() {
            return None;
        }
        for point in item.points() {
            if point.figure == figure {
                lines.push(Line {
                    name: point.of,
                    is_published: true,
                    points: vec![(point.size, exactly(point.value))],
                });
            }
        }
        // A range is drawn by its ends, over the sizes that it is of; those of what is drawn come first.
        let drawn: BTreeSet<u64> = lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.0))
            .collect();
        let measured: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
        for claim in &item.claims {
            let Predicate::Units(comparison) = &claim.predicate else {
                continue;
            };
            let Some(([low, high], of)) = comparison.range() else {
                continue;
            };
            let is_drawn = of
                .iter()
                .any(|unit| measured.iter().any(|name| name.starts_with(unit.as_str())));
            if !is_drawn || comparison.figure() != figure || lines.len() > MOST + MOST {
                continue;
            }
            let [first, last] = comparison.sizes();
            let sizes: Vec<u64> = drawn.range(first..=last).copied().collect();
            let what = claim.says.trim_end_matches('.');
            for (word, value) in [("least", low), ("most", high)] {
                lines.push(Line {
                    name: format!("{what}: {word}"),
                    is_published: true,
                    points: sizes.iter().map(|size| (*size, exactly(value))).collect(),
                });
            }
        }
        Some(Self {
            figure: figure.to_owned(),
            over: SIZE,
            lines,
        })
    }
}

/// A value without an interval.
const fn exactly(value: f64) -> Summary {
    Summary {
        min: value,
        median: value,
        max: value,
    }
}

/// The bins of a histogram of `bench`: where the first begins and how wide they are, in microseconds, and the counts.
fn bins(text: &str) -> Option<Vec<(u64, Summary)>> {
    let mut parts = text.split(':');
    let first: u64 = parts.next()?.parse().ok()?;
    let width: u64 = parts.next()?.parse().ok()?;
    let counts = parts.next()?.split(',').zip(0..);
    counts
        .map(|(count, place)| {
            let begin = first.checked_add(width.checked_mul(place)?)?;
            Some((begin, exactly(count.parse().ok()?)))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item::find;
    use crate::rows::tests::of_rows;

    fn medians(line: &Line) -> Vec<(u64, f64)> {
        line.points
            .iter()
            .map(|point| (point.0, point.1.median))
            .collect()
    }

    #[test]
    fn short_messages_are_drawn_by_their_number() {
        let row = |launch: u32, times: [f64; 2]| {
            json!({
                "transport": "shm", "pml": "ob1", "unit": "threads:2", "size": 128, "launch": launch, "samples": {"short_us": times}
            })
        };
        let rows = of_rows(vec![row(0, [1.0, 5.0]), row(1, [3.0, 5.0])]);
        let plot = Plot::of_rows(find("threads/fig10").unwrap()[0], &rows).unwrap();
        assert_eq!((&*plot.figure, plot.over), ("short_us", "short_message"));
        assert_eq!(medians(&plot.lines[0]), [(1, 2.0), (2, 5.0)]);
    }

    #[test]
    fn gains_are_drawn_over_ranks_beside_those_of_published_shares() {
        let row = |unit: &str, key: &str, size: u64, value: f64| {
            let mut row = json!({"transport": "shm", "pml": "ob1", "unit": unit, "size": size});
            row[key] = value.into();
            row
        };
        let rows = of_rows(vec![
            row("profile", "share_pct", 4, 50.0),
            row(
                "partitioned:default/artefact@16",
                "ratio_to_single",
                16,
                2.0,
            ),
        ]);
        let plot = Plot::of_rows(find("partitioned/fig13").unwrap()[0], &rows).unwrap();
        let names: Vec<&str> = plot.lines.iter().map(|line| &*line.name).collect();
        assert_eq!(
            names,
            [
                "sweep, factor 2.0 (ours), shm (ob1)",
                "sweep, factor 15.1 (published), shm (ob1)",
                "SNAP, derived"
            ]
        );
        assert_eq!(medians(&plot.lines[0]), [(4, projected(50.0, 2.0))]);
        assert_eq!(medians(&plot.lines[2]), [(128, 1.235), (256, 2.036)]);
    }

    #[test]
    fn arrivals_are_drawn_as_histograms() {
        let row = json!({"transport": "shm", "pml": "ob1", "series": "kernel:spmv/bsp@16", "size": 256, "histogram": "140:10:3,0,2"});
        let plot = Plot::of_rows(find("cmb/fig4").unwrap()[0], &of_rows(vec![row])).unwrap();
        assert_eq!(plot.over, "arrival_in_us");
        assert_eq!(
            medians(&plot.lines[0]),
            [(140, 3.0), (150, 0.0), (160, 2.0)]
        );
        for wrong in [
            "",
            "1",
            "1:2",
            "a:1:1",
            "1:1:x",
            "1:18446744073709551615:1,1,1",
        ] {
            assert_eq!(bins(wrong), None, "{wrong}");
        }
    }

    /// The ranges of panels stand over the sizes that they are of.
    #[test]
    fn published_ranges_are_drawn_by_their_ends() {
        let row = |size: u64| {
            json!({
                "transport": "shm", "pml": "ob1", "series": "7-point-ring/bins:2@16", "size": size, "speedup_pct": 1.0
            })
        };
        let rows = of_rows(vec![row(256), row(4_194_304)]);
        let plot = Plot::of_rows(find("cmb/fig5").unwrap()[0], &rows).unwrap();
        let published: Vec<&Line> = plot.lines.iter().filter(|line| line.is_published).collect();
        let least = published
            .iter()
            .find(|line| line.name.ends_with("2 to 16 bins, all buffers: least"));
        assert_eq!(medians(least.unwrap()), [(256, 0.412), (4_194_304, 0.412)]);
    }
}
