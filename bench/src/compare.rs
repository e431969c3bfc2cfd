//! `tagwire compare`: did it get worse?
//!
//! Rows of two reports are joined by their independent variables: every key that is neither a
//! figure (its name ends in a unit) nor says how often was measured. So reports of later versions
//! with more variables compare as well. The library that a transport of ours uses is one of them only
//! where a report has several: an upgrade of a library is what a comparison is made for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use crate::environment::MPI;
use crate::error::{Error, ExitStatus, Result};
use crate::judgement::{Change, Launches, NOTABLE, Verdict, is_row_disturbed, is_variable};
use crate::record::{Quantity, SCHEMA};
use crate::report::main_quantity;
use crate::stats::Summary;

/// The options of `tagwire compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// The earlier results
    #[arg(value_name = "BASE.json")]
    pub base: PathBuf,

    /// The later results
    #[arg(value_name = "NEW.json")]
    pub new: PathBuf,

    /// Exit with status 4 when a row got worse by more than this and by more than the noise, or
    /// is missing from NEW
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<Threshold>,

    /// How the comparison is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: CompareFormat,
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[non_exhaustive]
pub enum CompareFormat {
    /// A line per row: its variables, both figures, their ratio and spreads, and a verdict
    #[default]
    Text,
    /// One JSON document with the same, an object per row
    Json,
}

/// A part of a figure, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold(f64);

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.trim().parse::<f64>() {
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Self(percent)),
            _ => Err("not a percentage; write 5% or 2.5%".to_owned()),
        }
    }
}

/// Compares two reports and prints what came of it. Errors go to standard error.
#[must_use]
pub fn run_compare(args: &CompareArgs) -> ExitStatus {
    match compare_files(args) {
        Ok(status) => status,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            error.exit_status()
        }
    }
}

fn compare_files(args: &CompareArgs) -> Result<ExitStatus> {
    let (base, new) = (Results::read(&args.base)?, Results::read(&args.new)?);
    let threshold = args.fail_above.map_or(NOTABLE, |threshold| threshold.0);
    let comparison = Comparison::of(&base, &new, threshold);
    if comparison.rows.is_empty() {
        let reason = format!("no row has its counterpart in {}", args.base.display());
        return Err(Error::Input {
            file: args.new.clone(),
            reason,
        });
    }
    let text = match args.format {
        CompareFormat::Text => comparison.to_text(),
        CompareFormat::Json => {
            let text = serde_json::to_string_pretty(&comparison);
            text.map_err(|error| Error::Job(error.to_string()))? + "\n"
        }
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|source| Error::Output {
            what: "to the standard output".to_owned(),
            source,
        })?;
    let violated = args.fail_above.is_some() && comparison.is_violated();
    Ok(if violated {
        ExitStatus::Violated
    } else {
        ExitStatus::Good
    })
}

/// The measured rows of a file, gathered by their variables.
#[derive(Debug)]
struct Results {
    groups: BTreeMap<String, Group>,
    /// The rows of jobs that failed, each with its error.
    failed: Vec<String>,
}

/// All launches of the same thing.
#[derive(Debug)]
struct Group {
    /// Where it comes in the file.
    order: usize,
    /// The library that carried the messages, where that is not in the name.
    library: Option<String>,
    /// What the library opened.
    provider: Option<String>,
    quantity: Quantity,
    launches: Launches,
}

impl Results {
    fn read(file: &Path) -> Result<Self> {
        let bad = |reason: String| Error::Input {
            file: file.to_path_buf(),
            reason,
        };
        let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(bad)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        match document.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some(other) => return Err(format!("schema '{other}', expected '{SCHEMA}'")),
            None => return Err(format!("no key 'schema', expected '{SCHEMA}'")),
        }
        let test = document
            .get("test")
            .and_then(Value::as_str)
            .ok_or("no key 'test'")?;
        let rows = document
            .get("rows")
            .and_then(Value::as_array)
            .ok_or("no list 'rows'")?;
        if rows.is_empty() {
            return Err("has no rows".to_owned());
        }
        let oversubscribed = &document["environment"]["oversubscribed"];
        let oversubscribed = oversubscribed.as_bool().unwrap_or(false);
        let (failed, rows): (Vec<_>, Vec<_>) = rows
            .iter()
            .enumerate()
            .partition(|(_, row)| row.get("error").is_some());
        let failed = failed.into_iter().map(|(_, row)| failed_row(test, row));
        let failed = failed.collect();
        let rows = rows.into_iter().map(|(number, row)| {
            read_row(test, row, oversubscribed).map_err(|reason| format!("row {number}: {reason}"))
        });
        let mut rows: Vec<Measured> = rows.collect::<Result<_, _>>()?;
        let all: BTreeSet<_> = rows
            .iter()
            .map(|row| (row.name.clone(), row.library.clone()))
            .collect();
        for row in &mut rows {
            let of_name = (row.name.clone(), None)..;
            let mut same = all.range(of_name).take_while(|(name, _)| *name == row.name);
            if same.nth(1).is_some()
                && let Some(library) = row.library.take()
            {
                let _ = write!(row.name, " library={library}");
            }
        }
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for row in rows {
            let order = groups.len();
            let group = groups.entry(row.name).or_insert_with(|| Group {
                order,
                library: row.library,
                provider: row.provider,
                quantity: main_quantity(test),
                launches: Launches::default(),
            });
            group.launches.add(row.figure, row.is_disturbed);
        }
        Ok(Self { groups, failed })
    }
}

/// What is read of a row.
struct Measured {
    /// Its variables as text.
    name: String,
    /// The library that a transport of ours used.
    library: Option<String>,
    /// What the library opened.
    provider: Option<String>,
    figure: Summary,
    is_disturbed: bool,
}

/// A row without figures, in words.
fn failed_row(test: &str, row: &Value) -> String {
    let word = |key: &str| match &row[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!(
        "{test} size={} transport={}: {}",
        word("size"),
        word("transport"),
        word("error")
    )
}

/// A row's variables as text, and its main figure.
fn read_row(test: &str, row: &Value, oversubscribed: bool) -> Result<Measured, String> {
    let fields = row.as_object().ok_or("not an object")?;
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let library = match text("transport") {
        Some(MPI) => None,
        _ => text("library").map(str::to_owned),
    };
    let is_told = |key: &str| key == "library" && library.is_some();
    let mut name = test.to_owned();
    let size = fields.iter().filter(|(key, _)| *key == "size");
    let others = fields
        .iter()
        .filter(|(key, _)| *key != "size" && is_variable(key) && !is_told(key));
    for (key, value) in size.chain(others) {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(name, " {key}={value}");
    }
    let quantity = main_quantity(test);
    let figure = |key: &str| {
        let value = fields.get(key).and_then(Value::as_f64);
        value.filter(|value| value.is_finite() && (*value >= 0.0 || quantity.is_share()))
    };
    let median = figure(&quantity.key())
        .ok_or_else(|| format!("'{}' is no number of at least 0", quantity.key()))?;
    let (min, max) = quantity.bounds();
    let (min, max) = (
        figure(&min).unwrap_or(median),
        figure(&max).unwrap_or(median),
    );
    let seen = |key: &str| fields.get(key).and_then(Value::as_f64);
    Ok(Measured {
        is_disturbed: is_row_disturbed(seen, oversubscribed),
        provider: text("provider").map(str::to_owned),
        name,
        figure: Summary { median, min, max },
        library,
    })
}

impl Group {
    fn summary(&self) -> Summary {
        self.launches.summary().expect(HAS_ROW)
    }

    fn estimate(&self) -> Summary {
        self.launches.estimate().expect(HAS_ROW)
    }
}

/// Why a group has figures.
const HAS_ROW: &str = "a group has a row, and rows have finite figures";

#[derive(Debug, Clone, Serialize)]
struct Compared {
    row: String,
    unit: &'static str,
    base: f64,
    new: f64,
    /// New over base.
    ratio: f64,
    /// How much worse it is, in percent of base; negative when it is better.
    worse_pct: f64,
    base_spread_pct: f64,
    new_spread_pct: f64,
    base_launches: usize,
    new_launches: usize,
    /// Other processes ran beside the measurement: the figure is not to be trusted.
    base_disturbed: bool,
    new_disturbed: bool,
    verdict: Verdict,
}

impl Compared {
    /// Which of both is not to be trusted.
    const fn disturbed(&self) -> Option<&'static str> {
        match (self.base_disturbed, self.new_disturbed) {
            (true, true) => Some("both"),
            (true, false) => Some("base"),
            (false, true) => Some("new"),
            (false, false) => None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct Comparison {
    schema: &'static str,
    threshold_pct: f64,
    rows: Vec<Compared>,
    /// Rows that only the base has.
    missing: Vec<String>,
    /// Rows that only the new results have.
    added: Vec<String>,
    /// Jobs of the new results that failed.
    failed: Vec<String>,
}

impl Comparison {
    fn of(base: &Results, new: &Results, threshold: f64) -> Self {
        let mut order: Vec<(&String, &Group)> = base.groups.iter().collect();
        order.sort_by_key(|(_, group)| group.order);
        let (mut rows, mut missing) = (Vec::new(), Vec::new());
        for (name, before) in order {
            match new.groups.get(name) {
                Some(after) => rows.push(compare(name, before, after, threshold)),
                None => missing.push(name.clone()),
            }
        }
        let added = new
            .groups
            .keys()
            .filter(|name| !base.groups.contains_key(*name));
        Self {
            schema: "tagwire.compare/1",
            threshold_pct: threshold,
            rows,
            missing,
            added: added.cloned().collect(),
            failed: new.failed.clone(),
        }
    }

    fn is_violated(&self) -> bool {
        !self.missing.is_empty() || self.rows.iter().any(|row| row.verdict == Verdict::Worse)
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let width = self
            .rows
            .iter()
            .map(|row| row.row.len())
            .max()
            .unwrap_or(0)
            .max(6);
        let _ = writeln!(
            text,
            "# {:<width$} {:>12} {:>12} {:>8} {:>8} {:>8}  verdict (threshold {} %)",
            "row", "base", "new", "ratio", "base +-%", "new +-%", self.threshold_pct
        );
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::Worse => format!("WORSE by {:.1} %", row.worse_pct),
                Verdict::Better => format!("better by {:.1} %", -row.worse_pct),
                Verdict::Noise => "changed within the noise".to_owned(),
                Verdict::Same => "same".to_owned(),
            };
            let doubt = row.disturbed().map_or_else(String::new, |which| {
                format!(", not to be trusted: other load beside {which}")
            });
            let _ = writeln!(
                text,
                "  {:<width$} {:>12.3} {:>12.3} {:>8.3} {:>8.1} {:>8.1}  {verdict}{doubt}",
                row.row, row.base, row.new, row.ratio, row.base_spread_pct, row.new_spread_pct
            );
        }
        if self.rows.iter().any(|row| row.disturbed().is_some()) {
            text += "# Other processes ran on the ranks' CPUs while some rows were measured: measure these again, \
                     on a quiet machine or on idle CPUs (--bind)\n";
        }
        for why in &self.failed {
            let _ = writeln!(text, "# FAILED in the new results: {why}");
        }
        for name in &self.missing {
            let _ = writeln!(text, "# MISSING from the new results: {name}");
        }
        for name in &self.added {
            let _ = writeln!(text, "# only in the new results: {name}");
        }
        text
    }
}

fn compare(name: &str, before: &Group, after: &Group, threshold: f64) -> Compared {
    let (base, new) = (before.summary(), after.summary());
    let change = Change::of(
        before.quantity.into(),
        before.estimate(),
        after.estimate(),
        threshold,
    );
    let mut row = name.to_owned();
    if before.library != after.library {
        let known = |group: &Group| group.library.clone().unwrap_or_else(|| "?".to_owned());
        let _ = write!(row, " library={} -> {}", known(before), known(after));
    }
    if let (Some(old), Some(new)) = (&before.provider, &after.provider)
        && old != new
    {
        let _ = write!(row, " provider={old} -> {new}");
    }
    Compared {
        row,
        unit: before.quantity.unit,
        base: base.median,
        new: new.median,
        ratio: change.ratio,
        worse_pct: change.worse_pct,
        base_spread_pct: before.estimate().spread_pct(),
        new_spread_pct: after.estimate().spread_pct(),
        base_launches: before.launches.count(),
        new_launches: after.launches.count(),
        base_disturbed: before.launches.is_disturbed(),
        new_disturbed: after.launches.is_disturbed(),
        verdict: change.verdict,
    }
}

#[cfg(test)]
mod tests;
