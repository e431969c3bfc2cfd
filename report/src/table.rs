//! Tables: what is behind the plots, for every format.

use tagwire_bench::{Sense, Summary, Verdict};

use crate::judge::{Compared, compared};
use crate::metric::Unit;
use crate::model::{Plot, Point, Role};
use crate::number;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The heads of columns; the first one is that of the rows' names.
    pub heads: Vec<String>,
    /// The rows: as many cells as heads.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// What stands behind it, smaller.
    pub note: String,
    /// What it means.
    pub mark: Mark,
}

/// What a cell means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    /// Nothing but what it says.
    #[default]
    None,
    /// It got worse.
    Worse,
    /// It got better.
    Better,
    /// It was measured beside other load.
    Doubtful,
    /// It differs from the others of its row.
    Differs,
}

impl Cell {
    /// Returns a cell with a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// A point with its interval.
fn measured(point: &Point, unit: Unit) -> Cell {
    let Summary { median, min, max } = point.estimate;
    let [median, min, max] = [median, min, max].map(|value| number::value(value, unit));
    Cell {
        text: median,
        note: format!("{min} to {max}"),
        mark: match point.is_disturbed {
            true => Mark::Doubtful,
            false => Mark::None,
        },
    }
}

/// The head of a column of figures.
fn head(name: &str, unit: Unit) -> String {
    match unit.symbol() {
        "" => name.to_owned(),
        symbol => format!("{name}, {symbol}"),
    }
}

/// Returns the figures of a plot: a row for each value of the variable, a column for each series, and their ratio to the
/// first one.
#[must_use]
pub fn figures(plot: &Plot) -> Table {
    let unit = plot.metric.unit;
    let first = plot
        .series
        .first()
        .filter(|series| series.role == Role::Measured);
    let has_ratio = plot.metric.sense != Sense::Share && plot.series.len() > 1;
    let mut heads = vec![plot.x.title()];
    for (place, series) in plot.series.iter().enumerate() {
        heads.push(head(&series.name, unit));
        if place > 0 && has_ratio && series.role != Role::Published {
            heads.push("to first".to_owned());
        }
    }
    let row = |x: f64| {
        let mut cells = vec![Cell::new(plot.x.value(x))];
        let first = first.and_then(|first| first.at(x));
        for (place, series) in plot.series.iter().enumerate() {
            let point = series.at(x);
            let mut cell = point.map_or_else(Cell::default, |point| measured(point, unit));
            if series.role == Role::Published && point.is_some() {
                cell.note = "other machine".to_owned();
            }
            cells.push(cell);
            if place > 0 && has_ratio && series.role != Role::Published {
                let is_positive = |point: &Point| point.estimate.median > 0.0;
                let both = first.zip(point);
                let both = both.filter(|(first, point)| is_positive(first) && is_positive(point));
                let ratio = both.map(|(first, point)| {
                    number::ratio(
                        plot.metric
                            .sense
                            .ratio(point.estimate.median, first.estimate.median),
                    )
                });
                cells.push(Cell::new(ratio.unwrap_or_default()));
            }
        }
        cells
    };
    Table {
        heads,
        rows: plot.xs().into_iter().map(row).collect(),
    }
}

/// Returns how a plot compares with its base, `None` where nothing does.
#[must_use]
pub fn comparison(plot: &Plot) -> Option<Table> {
    let all = compared(plot);
    if all.is_empty() {
        return None;
    }
    let unit = plot.metric.unit;
    let row = |compared: &Compared| {
        let is_doubtful = !compared.is_trusted();
        let (verdict, mark) = match compared.change.verdict {
            Verdict::Worse if is_doubtful => ("would be worse", Mark::Doubtful),
            Verdict::Better if is_doubtful => ("would be better", Mark::Doubtful),
            Verdict::Worse => ("worse", Mark::Worse),
            Verdict::Better => ("better", Mark::Better),
            Verdict::Noise => ("within the noise", Mark::None),
            Verdict::Same => ("same", Mark::None),
        };
        vec![
            Cell::new(plot.series[compared.series].name.clone()),
            Cell::new(plot.x.value(compared.new.x)),
            measured(&compared.base, unit),
            measured(&compared.new, unit),
            Cell {
                text: number::ratio(compared.change.ratio),
                note: format!(
                    "{} to {}",
                    number::ratio(compared.interval.0),
                    number::ratio(compared.interval.1)
                ),
                mark,
            },
            Cell {
                text: verdict.to_owned(),
                note: if is_doubtful {
                    "not to be trusted".to_owned()
                } else {
                    String::new()
                },
                mark,
            },
        ]
    };
    Some(Table {
        heads: vec![
            "Series".to_owned(),
            plot.x.title(),
            head("Base", unit),
            head("New", unit),
            "New / base".to_owned(),
            "Verdict".to_owned(),
        ],
        rows: all.iter().map(row).collect(),
    })
}
