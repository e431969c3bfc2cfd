//! What is printed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::depth::Format;
use crate::error::{Error, Result};

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::Output("standard output".to_owned(), error))
}

/// Where rows come from, for the files that keep them. What is told is made when a file is: instructions are those of runs without.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// Returns the command, as it was typed.
    pub command: fn() -> String,
    /// Returns the build and the machine, under the names that `tagwire bench` has for them.
    pub environment: fn() -> Value,
}

/// The rows of a test, as JSON (schema `tagwire.match/1`) and CSV.
#[derive(Debug)]
pub(crate) struct Table {
    test: &'static str,
    rows: Vec<Value>,
}

impl Table {
    pub(crate) fn new<R: Serialize>(test: &'static str, rows: &[R]) -> Self {
        let value = |row| serde_json::to_value(row).expect("its keys are text");
        Self {
            test,
            rows: rows.iter().map(value).collect(),
        }
    }

    fn json(&self, from: &Circumstances) -> String {
        document(self.test, from, [("rows", json!(self.rows))])
    }

    /// A column for each figure; those of a group of figures have its name before theirs.
    fn csv(&self, from: &Circumstances) -> String {
        let rows: Vec<Vec<(String, String)>> =
            self.rows.iter().map(|row| fields(row, "")).collect();
        let mut heads: Vec<&String> = Vec::new();
        for (head, _) in rows.iter().flatten() {
            if !heads.contains(&head) {
                heads.push(head);
            }
        }
        let names: Vec<&str> = heads.iter().map(|head| head.as_str()).collect();
        let mut text = names.join(",") + "\n";
        for row in &rows {
            let of = |head: &String| row.iter().find(|(name, _)| name == head);
            let line: Vec<&str> = heads
                .iter()
                .map(|head| of(head).map_or("", |(_, value)| value.as_str()))
                .collect();
            text.push_str(&line.join(","));
            text.push('\n');
        }
        beside(&text, from)
    }
}

/// Returns a table whose rows have the build, the machine and the command in columns behind their own, as those of `bench` have.
pub(crate) fn beside(csv: &str, from: &Circumstances) -> String {
    let environment = (from.environment)();
    let mut columns: Vec<(String, String)> = environment
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let value = match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (format!("environment.{name}"), value)
        })
        .collect();
    columns.push(("command".to_owned(), (from.command)()));
    let (names, values): (Vec<String>, Vec<String>) = columns
        .into_iter()
        .map(|(name, value)| (name, quoted(&value)))
        .unzip();
    let (names, values) = (names.join(","), values.join(","));
    let mut lines = csv.lines();
    let head = lines.next().unwrap_or_default();
    let mut text = format!("{head},{names}\n");
    for line in lines {
        text.push_str(&format!("{line},{values}\n"));
    }
    text
}

/// A field of a table.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn fields(row: &Value, before: &str) -> Vec<(String, String)> {
    let none = Map::new();
    let all = row.as_object().unwrap_or(&none).iter();
    let field = |(name, value): (&String, &Value)| {
        let name = format!("{before}{name}");
        match value {
            Value::Object(_) => fields(value, &format!("{name}_")),
            Value::Null => vec![(name, String::new())],
            Value::String(text) => vec![(name, quoted(text))],
            other => vec![(name, other.to_string())],
        }
    };
    all.flat_map(field).collect()
}

/// Returns a file of results, in JSON.
pub(crate) fn document(
    test: &str,
    from: &Circumstances,
    rest: impl IntoIterator<Item = (&'static str, Value)>,
) -> String {
    let head = [
        ("schema", json!(SCHEMA)),
        ("test", json!(test)),
        ("command", json!((from.command)())),
        ("environment", (from.environment)()),
    ];
    let all = head.into_iter().chain(rest);
    let all: Map<String, Value> = all.map(|(key, value)| (key.to_owned(), value)).collect();
    let text = serde_json::to_string_pretty(&all);
    text.expect("its keys are text and its numbers finite") + "\n"
}

/// The schema's name and version. Keys may be added within a version, never changed or removed.
const SCHEMA: &str = "tagwire.match/1";

/// How rows are printed, and the file that keeps them.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// How the rows are printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,

    /// Also write the rows to this file: .json or .csv
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl OutputArgs {
    /// Text, and no file.
    #[cfg(test)]
    pub(crate) const TEXT: Self = Self {
        format: Format::Text,
        output: None,
    };

    /// Returns the file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Refuses a file of another kind before anything is measured.
    pub(crate) fn check(&self) -> Result<()> {
        check_output(self.path())
    }

    /// Prints the rows, as `text` where text is wanted, and writes them to the file.
    pub(crate) fn deliver(&self, text: &str, table: &Table, from: &Circumstances) -> Result<()> {
        deliver(text, table, (self.format, self.path()), from)
    }
}

/// Prints the rows, as `text` where text is wanted, and writes them to a file.
pub(crate) fn deliver(
    text: &str,
    table: &Table,
    (format, output): (Format, Option<&Path>),
    from: &Circumstances,
) -> Result<()> {
    match format {
        Format::Text => print(text)?,
        Format::Json => print(&table.json(from))?,
        Format::Csv => print(&table.csv(from))?,
    }
    let Some(path) = output else { return Ok(()) };
    let text = match is_csv(path) {
        true => table.csv(from),
        false => table.json(from),
    };
    fs::write(path, text).map_err(|error| Error::Output(path.display().to_string(), error))
}

/// Refuses a file of another kind before anything is measured.
pub(crate) fn check_output(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let is_known = is_csv(path) || path.extension().is_some_and(|kind| kind == "json");
    match is_known {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "'{}' is to be written as what? Its name ends with .json or .csv",
            path.display()
        ))),
    }
}

pub(crate) fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "csv")
}
