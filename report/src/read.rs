//! Reading results: the files that `tagwire bench -o FILE.json` and `tagwire match -o FILE.json` write.
//!
//! Rows are taken by their keys, not by a list of fields, so that variables of later versions are series as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tagwire_bench::{document_of, is_row_disturbed, is_variable, quantity_of_row, unmeasured};

use crate::error::{Error, Result};
use crate::matching;

pub use tagwire_bench::naming::SIZE;

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Results {
    /// Where it lies.
    pub file: PathBuf,
    /// The benchmark.
    pub test: String,
    /// The command, as it was typed.
    pub command: String,
    /// The circumstances.
    pub environment: Map<String, Value>,
    /// What was measured: one for each launch.
    pub rows: Vec<Row>,
    /// The rows without figures, of jobs that failed or did not measure what they should, each in words.
    pub failed: Vec<String>,
    /// What makes the figures doubtful.
    pub warnings: Vec<String>,
}

/// One launch of one case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The independent variables, as text.
    pub variables: BTreeMap<String, String>,
    /// What was measured, by the keys of the file.
    pub figures: BTreeMap<String, f64>,
    /// Other processes ran beside it.
    pub is_disturbed: bool,
}

impl Results {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Read`] where it cannot be read, [`Error::Input`] where it is cut off, of another schema, or has no
    /// figures of its test.
    pub fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).map_err(|source| Error::Read {
            file: file.to_path_buf(),
            source,
        })?;
        Self::parse(file, &bytes)
    }

    /// Reads what a file holds.
    ///
    /// # Errors
    /// [`Error::Input`], as [`read`](Self::read).
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self> {
        let parsed =
            document_of(bytes, &[matching::SCHEMA]).and_then(|document| Self::of(file, &document));
        parsed.map_err(|reason| Error::Input {
            file: file.to_path_buf(),
            reason,
        })
    }

    fn of(file: &Path, document: &Map<String, Value>) -> Result<Self, String> {
        let text = |key: &str| document.get(key).and_then(Value::as_str);
        let test = text("test").ok_or("has no key 'test'")?;
        let rows = document.get("rows").and_then(Value::as_array);
        let rows = rows.ok_or("has no list 'rows'")?;
        let environment = document.get("environment").and_then(Value::as_object);
        let environment = environment.cloned().unwrap_or_default();
        let is_oversubscribed = environment
            .get("oversubscribed")
            .is_some_and(|value| value == true);
        let matching = match text("schema") == Some(matching::SCHEMA) {
            true => Some(matching::Test::in_file(test)?),
            false => None,
        };
        let (mut measured, mut failed) = (Vec::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            let bad = |reason: String| format!("row {number}: {reason}");
            let fields = row.as_object().ok_or_else(|| bad("not an object".into()))?;
            let read = match matching {
                Some(test) => match matching::Test::why_not(fields) {
                    Some(why) => Err(why),
                    None => Ok(test.row(fields).map_err(bad)?),
                },
                None => match why_not(fields) {
                    Some(why) => Err(failure(fields, &why)),
                    None => Ok(Row::of(test, fields, is_oversubscribed).map_err(bad)?),
                },
            };
            match read {
                Ok(row) => measured.push(row),
                Err(why) => failed.push(why),
            }
        }
        if matching.is_some() {
            matching::leave_sums_out(&mut measured);
        }
        if measured.is_empty() {
            return Err(match failed.first() {
                Some(first) => format!("has no figures: no row has any, the first for: {first}"),
                None => "has no rows: nothing was measured".to_owned(),
            });
        }
        Ok(Self {
            file: file.to_path_buf(),
            test: matching.map_or_else(|| test.to_owned(), matching::Test::title),
            command: text("command").unwrap_or("not told").to_owned(),
            environment,
            rows: measured,
            failed,
            warnings: warnings(document),
        })
    }

    /// Returns a value of the environment as text; empty where it was not known.
    #[must_use]
    pub fn circumstance(&self, key: &str) -> String {
        self.environment.get(key).map_or_else(String::new, word)
    }

    /// Returns where a row's transport stands in the command.
    pub(crate) fn place(&self, variables: &BTreeMap<String, String>) -> usize {
        let transports = self.environment.get("transports").and_then(Value::as_array);
        let transports = transports.map_or(&[][..], Vec::as_slice);
        let is_same = |used: &Value, key: &str| {
            used.get(key).and_then(Value::as_str) == variables.get(key).map(String::as_str)
        };
        transports
            .iter()
            .position(|used| is_same(used, "transport") && is_same(used, "library"))
            .unwrap_or(transports.len())
    }
}

/// Returns a short name for each file: its stem, or the whole path where two have the same stem.
#[must_use]
pub fn labels(files: &[Results]) -> Vec<String> {
    let stem = |results: &Results| {
        let stem = results.file.file_stem().unwrap_or(results.file.as_os_str());
        stem.to_string_lossy().into_owned()
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let is_double = |stem: &String| stems.iter().filter(|other| *other == stem).count() > 1;
    let named = files.iter().zip(&stems).map(|(results, stem)| {
        if is_double(stem) {
            results.file.display().to_string()
        } else {
            stem.clone()
        }
    });
    named.collect()
}

impl Row {
    fn of(test: &str, fields: &Map<String, Value>, oversubscribed: bool) -> Result<Self, String> {
        let number = |key: &str| fields.get(key).and_then(Value::as_f64);
        let main = quantity_of_row(test, |key| fields.contains_key(key)).key();
        if number(&main).is_none() {
            return Err(format!("'{main}' is no number"));
        }
        let is_size = |value: &Value| value.as_u64().is_some();
        if fields.get(SIZE).is_some_and(|size| !is_size(size)) {
            return Err("'size' is no number of bytes".to_owned());
        }
        let variables = fields
            .iter()
            .filter(|(key, value)| is_variable(key) && !value.is_null());
        let figures = fields.iter().filter(|(key, _)| !is_variable(key));
        Ok(Self {
            variables: variables
                .map(|(key, value)| (key.clone(), word(value)))
                .collect(),
            is_disturbed: is_row_disturbed(number, oversubscribed),
            figures: figures
                .filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)))
                .collect(),
        })
    }
}

/// A value as text, without the quotes of a string.
pub(crate) fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(word).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Why a row has no figures, none where it has.
fn why_not(fields: &Map<String, Value>) -> Option<String> {
    let figure = |key: &str| fields.get(key).and_then(Value::as_f64);
    let error = fields.get("error").map(word);
    error.or_else(|| unmeasured(figure).map(str::to_owned))
}

fn failure(fields: &Map<String, Value>, error: &str) -> String {
    let named = |key: &str| fields.get(key).map_or_else(|| "?".to_owned(), word);
    format!("{} at size {}: {error}", named("transport"), named(SIZE))
}

fn warnings(document: &Map<String, Value>) -> Vec<String> {
    let warnings = document.get("warnings").and_then(Value::as_array);
    let text = |warning: &Value| {
        let message = warning.get("message")?.as_str()?;
        match warning.get("advice").and_then(Value::as_str) {
            Some(advice) => Some(format!("{message}; try {advice}")),
            None => Some(message.to_owned()),
        }
    };
    warnings.into_iter().flatten().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use tagwire_bench::SCHEMA;

    use super::*;

    fn reason(text: &str) -> String {
        let error = Results::parse(Path::new("a.json"), text.as_bytes()).unwrap_err();
        let text = error.to_string();
        text.strip_prefix("a.json: ").unwrap().to_owned()
    }

    fn with_rows(rows: &str) -> String {
        format!("{{\"schema\":\"{SCHEMA}\",\"test\":\"latency\",\"rows\":[{rows}]}}")
    }

    #[test]
    fn what_is_no_report_is_told_apart() {
        let whole = with_rows("{\"size\":8,\"latency_us\":1}");
        assert!(Results::parse(Path::new("a.json"), whole.as_bytes()).is_ok());
        assert_eq!(reason(""), "is empty");
        assert_eq!(reason(" \n"), "is empty");
        for end in 1..whole.len() {
            assert!(
                reason(&whole[..end]).starts_with("is cut off in line 1"),
                "{end}"
            );
        }
        assert_eq!(
            reason("{\"schema\":\"tagwire.bench/3\"}"),
            "has the schema 'tagwire.bench/3', this version reads 'tagwire.bench/2', 'tagwire.bench/1' and 'tagwire.match/1'"
        );
        assert_eq!(
            reason("{}"),
            "has no key 'schema', expected 'tagwire.bench/2'"
        );
        assert_eq!(reason("[1]"), "is no JSON object");
        assert!(reason("test,size\nlatency,8").starts_with("is cut off"));
        assert!(reason("nonsense").starts_with("is no JSON: "));
        assert_eq!(reason(&with_rows("")), "has no rows: nothing was measured");
        assert_eq!(reason(&with_rows("1")), "row 0: not an object");
        assert_eq!(
            reason(&with_rows("{\"size\":8}")),
            "row 0: 'latency_us' is no number"
        );
        assert_eq!(
            reason(&with_rows("{\"size\":-8,\"latency_us\":1}")),
            "row 0: 'size' is no number of bytes"
        );
        let failed = "{\"size\":8,\"transport\":\"ucx\",\"error\":\"no device\"}";
        assert_eq!(
            reason(&with_rows(failed)),
            "has no figures: no row has any, the first for: ucx at size 8: no device"
        );
    }

    #[test]
    fn unknown_keys_are_variables() {
        let text = with_rows(
            "{\"size\":8,\"colour\":\"red\",\"deep\":true,\"latency_us\":1.5,\"p99_us\":2,\"way\":\"x\"}",
        );
        let results = Results::parse(Path::new("a.json"), text.as_bytes()).unwrap();
        let variables: Vec<_> = results.rows[0].variables.keys().cloned().collect();
        assert_eq!(variables, ["colour", "deep", "size"]);
        assert_eq!(results.rows[0].figures["p99_us"], 2.0);
    }
}
