//! The rows of a file, each with its variables and its main figure.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::document::document;
use crate::environment::MPI;
use crate::error::{Error, Result};
use crate::judgement::{is_row_disturbed, is_variable};
use crate::record::Quantity;
use crate::report::quantity_of_row;
use crate::stats::Summary;

/// What a file holds.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) environment: Map<String, Value>,
    pub(super) measured: Vec<Measured>,
    /// The rows of jobs that failed, each with its error.
    pub(super) failed: Vec<String>,
}

/// What is read of a row.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) test: String,
    pub(super) variables: BTreeMap<String, String>,
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
            .partition(|(_, row)| row.get("error").is_some());
        let measured = rows.into_iter().map(|(number, row)| {
            Measured::of(test, row, oversubscribed)
                .map_err(|reason| format!("row {number}: {reason}"))
        });
        Ok(Self {
            measured: measured.collect::<Result<_, _>>()?,
            failed: failed
                .into_iter()
                .map(|(_, row)| failed_row(test, row))
                .collect(),
            environment,
        })
    }
}

impl Measured {
    fn of(test: &str, row: &Value, oversubscribed: bool) -> Result<Self, String> {
        let fields = row.as_object().ok_or("not an object")?;
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let library = match text("transport") {
            Some(MPI) => None,
            _ => text("library").map(str::to_owned),
        };
        let is_told = |key: &str| key == "library" && library.is_some();
        let variables = fields
            .iter()
            .filter(|(key, _)| is_variable(key) && !is_told(key));
        let word = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
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
            test: test.to_owned(),
            variables: variables
                .map(|(key, value)| (key.clone(), word(value)))
                .collect(),
            is_disturbed: is_row_disturbed(seen, oversubscribed),
            provider: text("provider").map(str::to_owned),
            figure: Summary { median, min, max },
            quantity,
            library,
        })
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
