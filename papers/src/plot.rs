//! Plots of items: what was measured over sizes, with the published values and ranges that have a place there.

use std::collections::BTreeSet;

use tagwire_bench::Summary;

use crate::item::Item;
use crate::outcome::Measured;
use crate::predicate::Predicate;
use crate::rows::Rows;

/// A plot of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The figure of `tagwire bench` that it shows, whose name ends in its unit.
    pub figure: String,
    /// What it draws over sizes in bytes.
    pub lines: Vec<Line>,
}

/// A series of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is of.
    pub name: String,
    /// Whether a paper publishes it.
    pub is_published: bool,
    /// Sizes and values: the median over launches with the extremes, or a published value.
    pub points: Vec<(u64, Summary)>,
}

/// More series cannot be told apart.
const MOST: usize = 9;

impl Plot {
    /// Returns the plot of an item's first figure by its rows; `None` where nothing of it was measured.
    pub(crate) fn of_rows(item: &Item, rows: &Rows) -> Option<Self> {
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

    /// Returns it by medians that an earlier version has stored.
    pub(crate) fn of_measured(item: &Item, all: &[Measured]) -> Option<Self> {
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
        let exactly = |value: f64| Summary {
            min: value,
            median: value,
            max: value,
        };
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
            lines,
        })
    }
}
