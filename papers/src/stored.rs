//! What an outcome stores of its runs: the rows that they left, and under what circumstances.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::run::Run;

/// Other processes and the hypervisor took at most this part of the cores where it is quiet, in percent: as `other_load_pct` of rows.
pub const QUIET_PCT: f64 = 5.0;

/// The key of the times of each message or round.
const SAMPLES: &str = "samples";

/// A run with what it left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// The command line.
    command: String,
    /// Whether MPI libraries were told to use TCP on one host.
    is_over_tcp: bool,
    /// How often blocks were measured that other load ran beside.
    attempts: u32,
    /// Where it was measured, as results of `bench` have it.
    environment: Value,
    /// What `bench` warned of.
    warnings: Vec<String>,
    rows: Rectangle,
}

/// Rows with their keys named once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rectangle {
    keys: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rectangle {
    fn of(rows: &[Value]) -> Self {
        // What each rank waited for is in the figures of the row.
        let keys = rows.iter().filter_map(Value::as_object).flat_map(Map::keys);
        let keys: BTreeSet<&String> = keys.filter(|key| *key != "load").collect();
        let keys: Vec<String> = keys.into_iter().cloned().collect();
        let of_row = |row: &Value| keys.iter().map(|key| row[key].clone()).collect();
        Self {
            rows: rows.iter().map(of_row).collect(),
            keys,
        }
    }

    fn rows(&self) -> impl Iterator<Item = Value> {
        self.rows.iter().map(|row| {
            let fields = self.keys.iter().cloned().zip(row.iter().cloned());
            let fields = fields.filter(|(_, value)| !value.is_null());
            Value::Object(fields.collect())
        })
    }
}

impl Ran {
    /// Returns what a run left, of flat results of `bench`.
    #[must_use]
    pub fn new(run: &Run, command: String, results: &Map<String, Value>, attempts: u32) -> Self {
        let list = |key: &str| results.get(key).and_then(Value::as_array);
        let warnings = list("warnings").into_iter().flatten();
        let warnings = warnings.filter_map(|warning| warning["message"].as_str());
        Self {
            command,
            is_over_tcp: run.is_over_tcp(),
            attempts,
            environment: results.get("environment").cloned().unwrap_or_default(),
            warnings: warnings.map(str::to_owned).collect(),
            rows: Rectangle::of(list("rows").map_or(&[], Vec::as_slice)),
        }
    }

    /// Returns it without the time of each message or round: most of its size, which plots of short messages alone need.
    pub(crate) fn without_samples(mut self) -> Self {
        if let Some(place) = self.rows.keys.iter().position(|key| key == SAMPLES) {
            self.rows.keys.remove(place);
            for row in &mut self.rows.rows {
                row.remove(place);
            }
        }
        self
    }

    /// Returns the command line.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns how often blocks were measured that other load ran beside.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns what `bench` warned of.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    /// Whether MPI libraries were told to use TCP on one host.
    pub(crate) const fn is_over_tcp(&self) -> bool {
        self.is_over_tcp
    }

    /// Returns a word of the environment.
    pub(crate) fn environment(&self, key: &str) -> Option<&str> {
        self.environment[key].as_str()
    }

    /// Returns the environment.
    pub(crate) const fn circumstances(&self) -> &Value {
        &self.environment
    }

    /// Returns the rows that nothing else ran beside, and how many there are of others.
    pub(crate) fn quiet(&self) -> (Vec<Value>, usize) {
        let rows: Vec<Value> = self.rows.rows().collect();
        let disturbed = disturbed(&rows);
        let count = disturbed.iter().filter(|is_so| **is_so).count();
        let quiet = rows.into_iter().zip(disturbed).filter(|(_, is_so)| !is_so);
        (quiet.map(|(row, _)| row).collect(), count)
    }

    /// Returns the greatest load of others beside rows, in percent.
    pub(crate) fn most_load(&self, rows: &[Value]) -> Option<f64> {
        let loads = rows.iter().filter_map(|row| row["other_load_pct"].as_f64());
        loads.reduce(f64::max)
    }
}

/// Returns of each row, as `bench` writes it or flat, whether other load ran beside it. What was too short for the kernel to count is
/// taken for the busiest of its job: a launch over a transport, or of a library.
#[must_use]
pub fn disturbed(rows: &[Value]) -> Vec<bool> {
    let load = |row: &Value| row.get("figures").unwrap_or(row)["other_load_pct"].as_f64();
    let mut jobs: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows {
        if let Some(load) = load(row) {
            let most = jobs.entry(job_of(row)).or_insert(load);
            *most = most.max(load);
        }
    }
    let of = |row: &Value| load(row).or_else(|| jobs.get(&job_of(row)).copied());
    rows.iter()
        .map(|row| of(row).is_some_and(|load| load > QUIET_PCT))
        .collect()
}

/// Returns what the job of a row is told by.
#[must_use]
pub fn job_of(row: &Value) -> String {
    let series = row.get("series").filter(|series| series.is_object());
    let series = series.unwrap_or(row);
    let launch = &row.get("sampling").unwrap_or(row)["launch"];
    format!("{} {} {launch}", series["transport"], series["library"])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item::find;

    #[test]
    fn rows_come_back_and_those_beside_load_are_counted() {
        let run = &find("mtl/fig4").unwrap()[0].runs(&["shm".to_owned()], "", true)[0];
        let results = json!({
            "environment": {"commit": "abc"},
            "warnings": [{"kind": "spread", "message": "launches differ", "advice": ""}],
            "rows": [
                {"size": 1, "rate_msg_s": 2.5, "other_load_pct": 1.5, "launch": 0},
                {"size": 2, "rate_msg_s": 3.5, "other_load_pct": 40.0, "launch": 1},
                {"size": 4, "pml": "cm", "load": [1], "launch": 0},
                {"size": 4, "launch": 1},
            ],
        });
        let ran = Ran::new(run, "tagwire x".to_owned(), results.as_object().unwrap(), 3);
        let text = serde_json::to_string(&ran).unwrap();
        let back: Ran = serde_json::from_str(&text).unwrap();
        assert_eq!(back, ran);
        let (quiet, left_out) = back.quiet();
        assert_eq!(
            quiet,
            [
                json!({"size": 1, "rate_msg_s": 2.5, "other_load_pct": 1.5, "launch": 0}),
                json!({"size": 4, "pml": "cm", "launch": 0})
            ]
        );
        assert_eq!((left_out, back.most_load(&quiet)), (2, Some(1.5)));
        assert!(!text.contains("samples"), "{text}");
        let with = json!({"rows": [{"size": 1, "samples": {"time_us": [1, 2]}, "x": 3}]});
        let with = Ran::new(run, String::new(), with.as_object().unwrap(), 1);
        let without = with.without_samples().quiet().0;
        assert_eq!(without, [json!({"size": 1, "x": 3})]);
        assert_eq!(
            (back.environment("commit"), &back.warnings[..]),
            (Some("abc"), &["launches differ".to_owned()][..])
        );
    }
}
