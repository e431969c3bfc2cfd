//! Tables of what was measured by turns: medians over launches, with the extremes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tagwire_bench::number::plain;
use tagwire_bench::{Summary, line_transfer};

use crate::error::{Error, Result};
use crate::item::Item;
use crate::outcome::wrong_schema;
use crate::rows::Rows;
use crate::turn::filled;

/// Lines and columns of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    title: String,
    ratio: String,
    columns: Vec<String>,
    lines: Vec<Line>,
}

/// A figure, by columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    line: String,
    /// Its key in rows.
    figure: String,
    /// What values are multiplied with where they are shown.
    scale: f64,
    /// Whether a table of several machines has it.
    chief: bool,
    /// Of each column the value of each launch.
    values: Vec<Vec<f64>>,
}

/// What of an outcome tables are made of.
#[derive(Deserialize)]
struct Stored {
    schema: String,
    environment: Value,
    tables: Vec<Table>,
}

impl Table {
    /// Returns the tables of an item.
    pub(crate) fn all(item: &Item, rows: &Rows) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (number, turn) in item.turns.iter().enumerate() {
            let mut of_turn: Vec<_> = rows.of_turn(number, turn.advice).collect();
            of_turn.sort_by_key(|(row, _)| row["size"].as_u64());
            for (row, build) in of_turn {
                for (key, figure) in turn.figures() {
                    let Some(value) = row[key].as_f64() else {
                        continue;
                    };
                    let title = title(&filled(&turn.table, row, figure), row);
                    let empty = Self {
                        ratio: turn.ratio.clone(),
                        columns: Vec::new(),
                        lines: Vec::new(),
                        title: title.clone(),
                    };
                    let table = one(&mut all, |table| table.title == title, empty);
                    let line = Line {
                        line: filled(&turn.line, row, figure),
                        figure: key.to_owned(),
                        scale: turn.scale,
                        chief: turn.chief,
                        values: Vec::new(),
                    };
                    all[table].add(line, turn.column(row, figure, build), value);
                }
            }
        }
        own_first(&mut all);
        all
    }

    /// Makes a column the first one, which it may not have.
    fn begin_with(&mut self, column: &str) {
        let place = one(
            &mut self.columns,
            |known| known == column,
            column.to_owned(),
        );
        self.columns[..=place].rotate_right(1);
        for line in &mut self.lines {
            line.values
                .resize(line.values.len().max(place + 1), Vec::new());
            line.values[..=place].rotate_right(1);
        }
    }

    /// Whether it has a chief line in which ours and others compare.
    fn is_chief(&self) -> bool {
        let mut lines = self.lines.iter();
        !self.is_mixed()
            && lines.any(|line| line.chief && line.median(0).is_some() && line.best().is_some())
    }

    /// Whether its values were measured while the ranks' CPUs moved: each for its own part of the time, so that they do not compare.
    fn is_mixed(&self) -> bool {
        self.title.ends_with(line_transfer::MOVED)
    }

    /// The column of ours and the best of the others in a line, and the first over the second.
    fn chief_cells(&self, line: &str) -> Option<[String; 3]> {
        let line = self.lines.iter().find(|known| known.line == line)?;
        let (own, (best, place)) = (line.median(0)?, line.best()?);
        let best_of = format!("{} ({})", plain(best), self.columns[place]);
        Some([plain(own), best_of, format!("{:.2}", own / best)])
    }

    /// Adds a value to a column of a line, each of which is there once.
    fn add(&mut self, line: Line, column: String, value: f64) {
        let name = line.line.clone();
        let line = one(&mut self.lines, |known| known.line == name, line);
        let column = one(&mut self.columns, |known| *known == column, column.clone());
        let values = &mut self.lines[line].values;
        values.resize(values.len().max(column + 1), Vec::new());
        values[column].push(value);
    }

    /// Returns it in Markdown.
    fn markdown(&self) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            let _ = writeln!(out, "**{}**\n", self.title);
        }
        let base = self.columns.iter().position(|name| *name == self.ratio);
        let mut heads = vec!["what".to_owned()];
        heads.extend_from_slice(&self.columns);
        let others = self.columns.iter().filter(|name| **name != self.ratio);
        match (base, &*self.ratio) {
            (Some(_), ratio) => heads.extend(others.map(|name| format!("{name} / {ratio}"))),
            (None, "best") => {
                heads.extend(self.columns.first().map(|name| format!("{name} / best")))
            }
            (None, _) => {}
        }
        out += &head(&heads);
        for line in &self.lines {
            let ratio = |of: usize, by: Option<f64>| {
                let ratio = line.median(of).zip(by).map(|(of, by)| of / by);
                ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            let columns = 0..self.columns.len();
            let mut cells = vec![line.line.clone()];
            cells.extend(columns.clone().map(|column| line.cell(column)));
            match (base, &*self.ratio) {
                (Some(base), _) => {
                    let others = columns.filter(|column| *column != base);
                    cells.extend(others.map(|column| ratio(column, line.median(base))));
                }
                (None, "best") => {
                    let best = line.best().filter(|_| !self.is_mixed());
                    cells.push(ratio(0, best.map(|(best, _)| best)));
                }
                (None, _) => {}
            }
            out += &row(&cells);
        }
        out
    }
}

/// Has each table against the best begin with the column that the first one begins with, which is ours: where the ranks' CPUs are placed in
/// another way there may be values of others alone.
fn own_first(tables: &mut [Table]) {
    let beside = |table: &&Table| table.ratio == "best";
    let first = tables.iter().find(beside);
    let Some(own) = first.and_then(|table| table.columns.first().cloned()) else {
        return;
    };
    for table in tables.iter_mut().filter(|table| beside(&&**table)) {
        table.begin_with(&own);
    }
}

/// Returns the place of what is meant, which is added where it is not there.
fn one<T>(all: &mut Vec<T>, is_meant: impl Fn(&T) -> bool, new: T) -> usize {
    let place = all.iter().position(is_meant);
    place.unwrap_or_else(|| {
        all.push(new);
        all.len() - 1
    })
}

impl Line {
    fn point(&self, column: usize) -> Option<Summary> {
        let values = self.values.get(column)?.iter();
        Summary::of(&values.map(|value| value * self.scale).collect::<Vec<_>>())
    }

    fn median(&self, column: usize) -> Option<f64> {
        self.point(column).map(|point| point.median)
    }

    fn cell(&self, column: usize) -> String {
        self.point(column).map_or_else(
            || "-".to_owned(),
            |point| {
                let [low, median, high] = [point.min, point.median, point.max].map(plain);
                format!("{median} ({low}..{high})")
            },
        )
    }

    /// The best median of the columns after the first, and which it is.
    fn best(&self) -> Option<(f64, usize)> {
        let others = (1..self.values.len()).filter_map(|it| Some((self.median(it)?, it)));
        let by = |one: &(f64, usize), other: &(f64, usize)| one.0.total_cmp(&other.0);
        // Rates and bandwidths.
        match self.figure.ends_with("_s") {
            true => others.max_by(by),
            false => others.min_by(by),
        }
    }
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn head(cells: &[String]) -> String {
    format!("{}|{}\n", row(cells), "---|".repeat(cells.len()))
}

/// Returns tables in Markdown, with empty lines between them.
pub(crate) fn markdown(tables: &[Table]) -> String {
    let all: Vec<_> = tables.iter().map(Table::markdown).collect();
    all.join("\n")
}

/// Returns a page whose tables are made anew from the outcomes that a folder has of machines, each in a folder of its name.
/// Those between `<!-- tables ITEM MACHINE... -->` and `<!-- /tables -->` are all of an item on each machine; those of
/// `<!-- beside ITEM MACHINE... -->` have the chief lines, our column and the best of the others. `date` returns a time since 1970
/// as text.
///
/// # Errors
/// [`Error::Unreadable`]; [`Error::NoOutcome`] where a file is none with tables; [`Error::NoMark`] where an end is missing.
pub fn fill(page: &str, folder: &Path, date: impl Fn(u64) -> String) -> Result<String> {
    let (mut out, mut rest) = (String::new(), page);
    while let Some(place) = rest
        .find("<!-- tables ")
        .into_iter()
        .chain(rest.find("<!-- beside "))
        .min()
    {
        let (before, marked) = rest.split_at(place);
        let mark = marked.lines().next().unwrap_or_default();
        let words: Vec<_> = mark
            .split(' ')
            .filter(|word| *word != "-->")
            .skip(1)
            .collect();
        let end = format!("<!-- /{} -->", words[0]);
        let no_end = || Error::NoMark(mark.to_owned(), end.clone());
        let (_, after) = marked.split_once(&*end).ok_or_else(no_end)?;
        let item = words.get(1).copied().unwrap_or_default();
        let mut machines = Vec::new();
        for machine in words.iter().skip(2) {
            let stored = stored(&folder.join(machine).join(file_of(item)))?;
            machines.push((*machine, stored));
        }
        let tables = match words[0] {
            "beside" => beside(&machines),
            _ => {
                let of = |(name, stored): &(&str, Stored)| {
                    let tables = markdown(&stored.tables);
                    format!("{name}: {}\n\n{tables}", about(stored, &date))
                };
                machines.iter().map(of).collect::<Vec<_>>().join("\n")
            }
        };
        let _ = write!(out, "{before}{mark}\n{tables}{end}");
        rest = after;
    }
    Ok(out + rest)
}

/// Returns the name of an item's outcome.
fn file_of(item: &str) -> String {
    item.replace('/', "-") + ".json"
}

fn stored(file: &Path) -> Result<Stored> {
    let text = fs::read_to_string(file).map_err(|source| Error::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let no_outcome = |what: String| Error::NoOutcome {
        file: file.display().to_string(),
        what,
    };
    let mut stored: Stored =
        serde_json::from_str(&text).map_err(|error| no_outcome(error.to_string()))?;
    own_first(&mut stored.tables);
    match wrong_schema(&text, &stored.schema) {
        None => Ok(stored),
        Some(wrong) => Err(no_outcome(wrong)),
    }
}

/// Where, when and how often it was measured.
fn about(stored: &Stored, date: impl Fn(u64) -> String) -> String {
    let environment = &stored.environment;
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let time = date(environment["started_unix_s"].as_u64().unwrap_or(0));
    format!(
        "{} cores, {}, Linux {}; measured on {} at {}, {} launches by turns.",
        environment["cores"],
        text(&environment["cpu_model"]),
        text(&environment["kernel"]),
        time.split(' ').next().unwrap_or_default(),
        text(&environment["commit"]),
        environment["launches"],
    )
}

/// The chief lines of each machine's first table, against the best of the others there: one for each placing of the ranks' CPUs.
fn beside(machines: &[(&str, Stored)]) -> String {
    let mut tables: Vec<(String, &Table)> = Vec::new();
    for (name, stored) in machines {
        for table in stored.tables.iter().filter(|table| table.is_chief()) {
            let titled = [name, &*table.title];
            let titled = titled.into_iter().filter(|part| !part.is_empty());
            tables.push((titled.collect::<Vec<_>>().join(", "), table));
        }
    }
    let mut heads = vec!["two ranks on one machine".to_owned()];
    for (name, table) in &tables {
        let own = table.columns.first().map_or("-", String::as_str);
        heads.extend([
            format!("{name}: {own}"),
            "best peer".to_owned(),
            "ratio".to_owned(),
        ]);
    }
    let mut out = head(&heads);
    let mut lines: Vec<&str> = Vec::new();
    for line in tables.iter().flat_map(|(_, table)| &table.lines) {
        if line.chief && !lines.contains(&&*line.line) {
            lines.push(&line.line);
        }
    }
    for line in lines {
        let mut cells = vec![line.to_owned()];
        for (_, table) in &tables {
            let own = table.chief_cells(line);
            cells.extend(own.unwrap_or_else(|| ["-"; 3].map(str::to_owned)));
        }
        out += &row(&cells);
    }
    out
}

/// Returns the title of the table that a row belongs to: figures of ranks on threads of one core and of ranks on cores apart do not compare.
fn title(named: &str, row: &Value) -> String {
    let placing = line_transfer::placing(|name| row[name].as_f64());
    let parts = [named, placing.unwrap_or_default()];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
