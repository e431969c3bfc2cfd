//! The rows of a file, each with its variables and its main figure.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::document::document;
use crate::environment::MPI;
use crate::error::{Error, Result};
use crate::judgement::{is_row_disturbed, is_variable, unmeasured};
use crate::naming::{SIZE, Variables};
use crate::record::Quantity;
use crate::report::quantity_of_row;
use crate::stats::Summary;
use crate::visible;

/// What a file holds.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) environment: Map<String, Value>,
    /// By their series, in the order of the command: that of a file is the random one of launches.
    pub(super) measured: Vec<Measured>,
    /// The rows of jobs that failed, each with its error.
    pub(super) failed: Vec<String>,
}

/// What is read of a row.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) test: String,
    pub(super) variables: Variables,
    /// The library that a transport of ours used, which is no variable.
    pub(super) library: Option<String>,
    /// What the library opened.
    pub(super) provider: Option<String>,
    pub(super) quantity: Quantity,
    pub(super) figure: Summary,
    pub(super) is_disturbed: bool,
}

impl Rows {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let bad = |reason: String| Error::Input {
            file: file.to_path_buf(),
            reason,
        };
        let bytes = std::fs::read(file).map_err(|error| bad(error.to_string()))?;
        Self::parse(&bytes).map_err(bad)
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let document = document(bytes)?;
        let test = document.get("test").and_then(Value::as_str);
        let test = test.ok_or("no key 'test'")?;
        let rows = document.get("rows").and_then(Value::as_array);
        let rows = rows.ok_or("no list 'rows'")?;
        if rows.is_empty() {
            return Err("has no rows".to_owned());
        }
        let environment = document.get("environment").and_then(Value::as_object);
        let environment = environment.cloned().unwrap_or_default();
        let oversubscribed = environment
            .get("oversubscribed")
            .is_some_and(|value| value == true);
        let (failed, rows): (Vec<_>, Vec<_>) = rows
            .iter()
            .enumerate()
            .partition(|(_, row)| why_not(row).is_some());
        let measured = rows.into_iter().map(|(number, row)| {
            Measured::of(test, row, oversubscribed)
                .map_err(|reason| format!("row {number}: {reason}"))
        });
        let mut measured: Vec<Measured> = measured.collect::<Result<_, _>>()?;
        let order = Order::of(&document);
        measured.sort_by_cached_key(|row| order.place(row));
        Ok(Self {
            measured,
            failed: failed
                .into_iter()
                .map(|(_, row)| failed_row(test, row))
                .collect(),
            environment,
        })
    }
}

/// In which order the command has named the series of a file.
struct Order {
    /// What carried the messages: transport and library.
    transports: Vec<(String, Option<String>)>,
    /// The places of series among those over their transport.
    series: BTreeMap<Variables, usize>,
}

impl Order {
    fn of(document: &Map<String, Value>) -> Self {
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        let environment = document.get("environment");
        let transports = list(environment.and_then(|all| all.get("transports")));
        let text =
            |used: &Value, key: &str| used.get(key).and_then(Value::as_str).map(visible::line);
        let carrier = |used: &Value| Some((text(used, "transport")?, text(used, "library")));
        let mut series = BTreeMap::new();
        // Rows of the summary are in the order of the command.
        for row in list(document.get("summary")).unwrap_or_default() {
            let place = series.len();
            if let Some(fields) = row.as_object() {
                series.entry(series_of(variables(fields))).or_insert(place);
            }
        }
        Self {
            transports: transports.iter().flatten().filter_map(carrier).collect(),
            series,
        }
    }

    fn place(&self, row: &Measured) -> (usize, usize) {
        let all = row.all_variables();
        let fits = |(transport, library): &(String, Option<String>)| {
            all.get("transport") == Some(transport) && all.get("library") == library.as_ref()
        };
        let transport = self.transports.iter().position(fits);
        let series = self.series.get(&series_of(all));
        (
            transport.unwrap_or(usize::MAX),
            series.copied().unwrap_or(usize::MAX),
        )
    }
}

/// The variables of a row, as text.
fn variables(fields: &Map<String, Value>) -> Variables {
    let variables = fields.iter().filter(|(key, _)| is_variable(key));
    variables
        .map(|(key, value)| (visible::line(key), word(value)))
        .collect()
}

fn series_of(mut variables: Variables) -> Variables {
    variables.remove(SIZE);
    variables
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => visible::line(text),
        other => other.to_string(),
    }
}

impl Measured {
    fn of(test: &str, row: &Value, oversubscribed: bool) -> Result<Self, String> {
        let fields = row.as_object().ok_or("not an object")?;
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let library = match text("transport") {
            Some(MPI) => None,
            _ => text("library").map(visible::line),
        };
        let mut variables = variables(fields);
        if library.is_some() {
            variables.remove("library");
        }
        let quantity = quantity_of_row(test, |key| fields.contains_key(key));
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
        Ok(Self {
            test: visible::line(test),
            variables,
            is_disturbed: is_row_disturbed(seen, oversubscribed),
            provider: text("provider").map(visible::line),
            figure: Summary { median, min, max },
            quantity,
            library,
        })
    }

    /// Returns the variables, the library's version among them.
    pub(super) fn all_variables(&self) -> Variables {
        let mut all = self.variables.clone();
        if let Some(library) = &self.library {
            all.insert("library".to_owned(), library.clone());
        }
        all
    }

    /// Returns the value of a variable, the library's version among them; "none" where it has none.
    pub(super) fn value(&self, key: &str) -> &str {
        let library = self.library.as_ref().filter(|_| key == "library");
        let value = self.variables.get(key).or(library);
        value.map_or("none", String::as_str)
    }

    /// Returns the variables as text, the size first, without those that are `removed`.
    pub(super) fn name(&self, removed: &[String]) -> String {
        let size = self.variables.iter().filter(|(key, _)| *key == "size");
        let others = self.variables.iter().filter(|(key, _)| *key != "size");
        let kept = size.chain(others).filter(|(key, _)| !removed.contains(key));
        kept.fold(self.test.clone(), |name, (key, value)| {
            format!("{name} {key}={value}")
        })
    }
}

/// Why a row has no figures, none where it has.
fn why_not(row: &Value) -> Option<String> {
    let unmeasured = || unmeasured(|key| row.get(key).and_then(Value::as_f64));
    let error = row.get("error").map(word);
    error.or_else(|| unmeasured().map(str::to_owned))
}

/// A row without figures, in words.
fn failed_row(test: &str, row: &Value) -> String {
    let word = |key: &str| word(&row[key]);
    format!(
        "{} size={} transport={}: {}",
        visible::line(test),
        word("size"),
        word("transport"),
        why_not(row).unwrap_or_default()
    )
}
