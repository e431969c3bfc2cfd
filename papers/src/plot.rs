//! Plots of items: what was measured over sizes, with the published values and ranges that have a place there.

use std::collections::BTreeSet;

use serde_json::Value;
use tagwire_bench::Summary;
use tagwire_bench::naming::SIZE;

use crate::drawn::{Draw, Shows};
use crate::item::Item;
use crate::outcome::Measured;
use crate::places::stars;
use crate::predicate::Predicate;
use crate::projection::{PROFILE, projected};
use crate::reference::by_id;
use crate::rows::{Place, Rows, Series};

/// A plot of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Which of the item's plots it is, from 1 on.
    pub number: usize,
    /// What distinguishes it from other plots of the item, and what all its lines have in common.
    pub panel: String,
    /// The figure of `tagwire bench` that it shows, whose name ends in its unit.
    pub figure: String,
    /// What it is drawn over: `size` in bytes, `short_message` by its number, `arrival_in_us`, `ranks`, or `library_pct`.
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
const MOST: usize = 18;

impl Plot {
    /// Returns the plots of an item by its rows; none where nothing of it was measured.
    pub(crate) fn of_rows(item: &Item, rows: &Rows) -> Vec<Self> {
        let one = match item.plot {
            Some(Shows::Shorts) => Self::of_shorts(rows),
            Some(Shows::Arrivals) => Self::of_arrivals(rows),
            Some(Shows::Gains) => Self::of_gains(rows),
            Some(Shows::Projections) => Self::of_projections(item, rows),
            None if item.draw.is_empty() => Self::of_claims(item, rows),
            None => {
                let all = (1..).zip(&item.draw).filter_map(|(number, draw)| {
                    let plot = Self::drawn(item, draw, rows)?;
                    Some(Self { number, ..plot })
                });
                return all.collect();
            }
        };
        one.into_iter().collect()
    }

    /// The plot of what claims about an item's first figure are of.
    fn of_claims(item: &Item, rows: &Rows) -> Option<Self> {
        let figure = item.claims.first()?.predicate.figure();
        let mut lines = Lines::default();
        let claims = item.claims.iter();
        for claim in claims.filter(|claim| claim.predicate.figure() == figure) {
            for place in rows.places() {
                for (name, series) in claim.predicate.series(rows, &place) {
                    lines.add(named(&name, &place), series);
                }
            }
        }
        Self::with_published(item, &Draw::of(figure), lines.all)
    }

    /// A plot as an item describes it.
    fn drawn(item: &Item, draw: &Draw, rows: &Rows) -> Option<Self> {
        let mut lines = Lines::default();
        let others = draw.beside.iter().map(|[key, word]| (&**key, &**word));
        for (figure, word) in [(&*draw.figure, "")].into_iter().chain(others) {
            let mut add = |name: &str, place: &Place, series| {
                let named = named(name, place);
                lines.add(
                    match word {
                        "" => named,
                        word => format!("{word}, {named}"),
                    },
                    series,
                );
            };
            let units: Vec<&str> = draw.units.iter().map(String::as_str).collect();
            for place in rows.places().iter().filter(|place| draw.has(place)) {
                for unit in &units {
                    for star in stars(rows, place, &[unit]) {
                        let unit = unit.replace('*', star);
                        add(&unit, place, rows.of_unit(place, &unit, figure));
                    }
                }
                for policy in rows.policies(place) {
                    for choice in draw.parts.iter().filter(|_| draw.has_policy(policy)) {
                        let name = format!("{}, {policy}", choice.name());
                        let series = rows.of_parts(place, policy, choice, figure);
                        add(&name, place, series);
                    }
                }
                if units.is_empty() && draw.parts.is_empty() {
                    add("", place, rows.of_place(place, figure));
                }
            }
        }
        let mut plot = Self::with_published(item, draw, lines.all)?;
        let shared = plot.leave_out_shared();
        let parts = [draw.panel.clone(), shared];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        plot.panel = parts.join(", ");
        Some(plot)
    }

    /// Leaves out of names what all lines of ours have in them, and returns that.
    fn leave_out_shared(&mut self) -> String {
        let own = || self.lines.iter().filter(|line| !line.is_published);
        let names: Vec<Vec<&str>> = own().map(|line| line.name.split(", ").collect()).collect();
        let Some((first, others)) = names.split_first() else {
            return String::new();
        };
        let is_shared = |part: &&&str| others.iter().all(|name| name.contains(part));
        let shared: Vec<String> = first
            .iter()
            .filter(is_shared)
            .map(|part| (*part).to_owned())
            .collect();
        if others.is_empty() || names.iter().any(|name| name.len() == shared.len()) {
            return String::new();
        }
        for line in self.lines.iter_mut().filter(|line| !line.is_published) {
            let parts = line.name.split(", ");
            let own = parts.filter(|part| !shared.iter().any(|one| one == part));
            line.name = own.collect::<Vec<_>>().join(", ");
        }
        shared.join(", ")
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

    /// By how many percent programs are faster with one library than with another, over the share of their time in the library: as
    /// published, as an item's claims project it, and as their skeletons are on a simulated machine.
    fn of_projections(item: &Item, rows: &Rows) -> Option<Self> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is 0 to 100 percent"
        )]
        let place = |share: f64| share.round() as u64;
        let of_claims = item.claims.iter();
        let mut all: Vec<_> = of_claims
            .filter_map(|claim| {
                let mut of = claim.predicate.projections(rows)?;
                let simulated = claim.simulated.iter();
                of.ours.extend(simulated.flat_map(|of| of.gains(rows)));
                Some(of)
            })
            .collect();
        all.sort_by(|one, other| one.share.total_cmp(&other.share));
        let mut lines = Vec::new();
        for of in &all {
            for (name, gain) in &of.ours {
                push(&mut lines, name, false, (place(of.share), *gain));
            }
        }
        if lines.is_empty() {
            return None;
        }
        for of in &all {
            let point = (place(of.share), exactly(of.value));
            push(&mut lines, &of.published, true, point);
        }
        Self::of_lines("faster_pct", "library_pct", lines)
    }

    fn of_lines(figure: &str, over: &'static str, mut lines: Vec<Line>) -> Option<Self> {
        lines.retain(|line| !line.points.is_empty());
        lines.truncate(MOST);
        (!lines.is_empty()).then(|| Self {
            number: 1,
            panel: String::new(),
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
            push(&mut lines, &name, false, (one.size, point));
        }
        lines.truncate(MOST);
        Self::with_published(item, &Draw::of(figure), lines)
    }

    fn with_published(item: &Item, draw: &Draw, mut lines: Vec<Line>) -> Option<Self> {
        if lines.is_empty() {
            return None;
        }
        let figure_of_points = draw.points.as_ref().unwrap_or(&draw.figure);
        for point in item.points() {
            if point.figure == *figure_of_points {
                lines.push(Line {
                    name: point.of,
                    is_published: true,
                    points: vec![(point.size, exactly(point.value))],
                });
            }
        }
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
            // A range stands beside the lines that it is of, all of which are drawn.
            let is_drawn = of
                .iter()
                .all(|unit| measured.iter().any(|name| name.starts_with(unit.as_str())));
            if !is_drawn || comparison.figure() != draw.figure || !draw.is_on(claim.on) {
                continue;
            }
            let [first, last] = comparison.sizes();
            let ends = Summary {
                min: low,
                median: f64::midpoint(low, high),
                max: high,
            };
            let points = drawn.range(first..=last).map(|size| (*size, ends));
            let line = Line {
                name: claim.says.trim_end_matches('.').to_owned(),
                is_published: true,
                points: points.collect(),
            };
            if !line.points.is_empty() {
                lines.push(line);
            }
        }
        Some(Self {
            number: 1,
            panel: String::new(),
            figure: draw.figure.clone(),
            over: SIZE,
            lines,
        })
    }
}

/// Lines that are measured, each name once.
#[derive(Default)]
struct Lines {
    all: Vec<Line>,
}

impl Lines {
    fn add(&mut self, name: String, series: Series) {
        let is_new = !self.all.iter().any(|line| line.name == name);
        if !series.is_empty() && is_new && self.all.len() < MOST {
            self.all.push(Line {
                name,
                is_published: false,
                points: series.into_iter().collect(),
            });
        }
    }
}

/// Adds a point to the line with a name, or to a new one.
fn push(lines: &mut Vec<Line>, name: &str, is_published: bool, point: (u64, Summary)) {
    let mut known = lines.iter_mut();
    match known.find(|line| line.name == name && line.is_published == is_published) {
        Some(line) => line.points.push(point),
        None => lines.push(Line {
            name: name.to_owned(),
            is_published,
            points: vec![point],
        }),
    }
}

/// A name with its place.
fn named(name: &str, place: &Place) -> String {
    match name {
        "" => place.name(),
        name => format!("{name}, {}", place.name()),
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
        let plot = Plot::of_rows(find("threads/fig10").unwrap()[0], &rows).remove(0);
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
        let plot = Plot::of_rows(find("partitioned/fig13").unwrap()[0], &rows).remove(0);
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
        let plot = Plot::of_rows(find("cmb/fig4").unwrap()[0], &of_rows(vec![row])).remove(0);
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

    /// The ranges of panels stand over the sizes that they are of, beside the lines of the same panel.
    #[test]
    fn published_ranges_are_drawn_with_their_panel() {
        let row = |unit: &str, size: u64| {
            json!({
                "transport": "shm", "pml": "ob1", "series": unit, "size": size, "speedup_pct": 1.0
            })
        };
        let units = ["bins:2", "bins:4", "bins:8", "each"];
        let units = units.map(|unit| format!("7-point-ring/{unit}@16"));
        let all = units
            .iter()
            .flat_map(|unit| [256, 4_194_304].map(|size| row(unit, size)));
        let plots = Plot::of_rows(find("cmb/fig5").unwrap()[0], &of_rows(all.collect()));
        let panels: Vec<&str> = plots.iter().map(|plot| &*plot.panel).collect();
        assert_eq!(panels, ["a: Manzano, 7 points, shm (ob1)"]);
        let (published, own): (Vec<&Line>, Vec<&Line>) =
            plots[0].lines.iter().partition(|line| line.is_published);
        let names: Vec<&str> = own.iter().map(|line| &*line.name).collect();
        assert_eq!(names, units);
        let names: Vec<&str> = published.iter().map(|line| &*line.name).collect();
        assert_eq!(
            names,
            [
                "Panel a: Manzano, 7 points, two-sided messages in 2 to 16 bins, all buffers",
                "Panel a: Manzano, 7 points, two-sided messages in 32 bins, below 1 MiB",
                "Panel a: Manzano, 7 points, two-sided messages in 32 bins, from 1 MiB on",
            ]
        );
        let ends: Vec<_> = published[0]
            .points
            .iter()
            .map(|(size, point)| (*size, point.min, point.max))
            .collect();
        assert_eq!(ends, [(256, 0.412, 10.453), (4_194_304, 0.412, 10.453)]);
    }

    /// Figures 5 to 9 of paper 000 show all numbers of partitions, models of noise and modes; libraries stand apart.
    #[test]
    fn plots_have_what_their_figure_is_about() {
        let row = |fields: serde_json::Value, noise: &str, partitions: u32| {
            let mut row = fields;
            for (key, value) in [
                ("policy", "messages"),
                ("noise", noise),
                ("compute", "sleep:10000"),
            ] {
                row[key] = value.into();
            }
            for figure in ["perceived_bandwidth_paper_mb_s", "availability_paper"] {
                row[figure] = 1.0.into();
            }
            row["partitions"] = partitions.into();
            row["size"] = 2048.into();
            row
        };
        let own = || json!({"transport": "shm", "pml": "ob1"});
        let peer = || json!({"transport": "mpi", "library": "MPICH 5"});
        let names = |item: &str, rows: Vec<serde_json::Value>| {
            let plots = Plot::of_rows(find(item).unwrap()[0], &of_rows(rows));
            let of = |plot: Plot| {
                let names = plot.lines.into_iter().map(|line| line.name);
                (plot.panel, names.collect::<Vec<_>>())
            };
            plots.into_iter().map(of).collect::<Vec<_>>()
        };
        let numbers = [1, 2, 4, 8, 16, 32];
        let rows = numbers.map(|number| row(own(), "uniform:4", number));
        let beside = numbers.map(|number| row(peer(), "uniform:4", number));
        let found = names("partitioned/fig5", [rows, beside].concat());
        let wanted = numbers
            .map(|number| format!("{number} partitions"))
            .to_vec();
        let panel = "after 10 ms, uniform:4, 10 ms, messages";
        assert_eq!(found[0], (format!("{panel}, shm (ob1)"), wanted.clone()));
        assert_eq!(found[1].1, wanted);
        assert!(found[1].0.contains("libraries"), "{found:?}");
        let noises = ["single:4", "uniform:4", "normal:4"];
        let found = names(
            "partitioned/fig7",
            noises.map(|noise| row(own(), noise, 16)).to_vec(),
        );
        assert_eq!(found[0].1, noises);
    }

    /// What plots name is what runs measure.
    #[test]
    fn lines_are_measured() {
        for item in crate::item::all()
            .iter()
            .filter(|item| !item.draw.is_empty())
        {
            for draw in &item.draw {
                let has_lines = !draw.parts.is_empty() || !draw.units.is_empty();
                assert!(has_lines || item.paper() == "mtl", "{}", item.name);
                assert!(item.plot.is_none(), "{}", item.name);
            }
            let panels: BTreeSet<&str> = item.draw.iter().map(|draw| &*draw.panel).collect();
            assert_eq!(panels.len(), item.draw.len(), "{}", item.name);
        }
    }

    #[test]
    fn projections_are_drawn_over_the_share_of_the_time_beside_the_published() {
        let library = "Open MPI v5.0.1, of a test";
        let row = |transport: &str, key: &str, by: &str, us: f64| {
            let mut row = json!({"transport": transport, "size": 0, "latency_min_us": us});
            row[key] = by.into();
            row
        };
        let rows = of_rows(vec![
            row("shm", "pml", "ob1", 2.0),
            row("shm", "pml", "cm", 1.0),
            row("mpi", "library", library, 1.0),
        ]);
        let plot = Plot::of_rows(find("mtl/fig5").unwrap()[0], &rows).remove(0);
        assert_eq!((&*plot.figure, plot.over), ("faster_pct", "library_pct"));
        let line = |name: &str, is_published: bool| {
            let is_meant = |line: &&Line| line.name == name && line.is_published == is_published;
            medians(plot.lines.iter().find(is_meant).unwrap())
        };
        let ours = line("cm than ob1, shm", false);
        assert_eq!(ours.len(), 4, "{ours:?}");
        assert!(ours.is_sorted_by(|one, next| one < next), "{ours:?}");
        // Half of what is left of 16.9 % of the time and as much again.
        assert!((ours.iter().find(|point| point.0 == 17).unwrap().1 - 14.457).abs() < 0.001);
        let same = line("cm than Open MPI 5.0.1, shm", false);
        assert!(same.iter().all(|point| point.1.abs() < 1e-9), "{same:?}");
        assert!(line("cm than ob1", true).contains(&(66, 18.0)));
        assert_eq!(line("the vendor's library than cm", true)[0].1, 4.0);
    }
}
