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
    /// How long it took before blocks were measured again, in seconds; nothing where it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
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
        // What each rank waited for is in the figures of the row; how long they measured is not.
        let keys = rows.iter().filter_map(Value::as_object).flat_map(Map::keys);
        let keys = keys.filter(|key| *key != "load").map(String::as_str);
        let is_timed = rows.iter().any(|row| measured_ms(row).is_some());
        let keys: BTreeSet<&str> = keys.chain(is_timed.then_some(MEASURED_MS)).collect();
        let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
        let value = |row: &Value, key: &str| match key {
            MEASURED_MS => measured_ms(row).into(),
            key => row[key].clone(),
        };
        let of_row = |row: &Value| keys.iter().map(|key| value(row, key)).collect();
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
            seconds: None,
            environment: results.get("environment").cloned().unwrap_or_default(),
            warnings: warnings.map(str::to_owned).collect(),
            rows: Rectangle::of(list("rows").map_or(&[], Vec::as_slice)),
        }
    }

    /// Returns it with how long it took before blocks were measured again, in seconds, where that is known.
    #[must_use]
    pub fn that_took(mut self, seconds: Option<f64>) -> Self {
        self.seconds = seconds;
        self
    }

    /// Returns how long it took before blocks were measured again, in seconds, where that is known.
    #[must_use]
    pub const fn seconds(&self) -> Option<f64> {
        self.seconds
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

/// Ticks in which the kernel counts what others take, in milliseconds. A row is known to two of them.
const TICK_MS: f64 = 10.0;

/// Returns of each row, as `bench` writes it or flat, whether other load ran beside it. Rows that are too short for a part of
/// [`QUIET_PCT`] to be seen in ticks are judged together, by the mean of their job, a launch over a transport or of a library, and each by
/// what is more than ticks explain; where none of a job was counted but long ones, by the busiest of these.
#[must_use]
pub fn disturbed(rows: &[Value]) -> Vec<bool> {
    let load = |row: &Value| row.get("figures").unwrap_or(row)["other_load_pct"].as_f64();
    let known_to = |row: &Value| measured_ms(row).map_or(0.0, |time| 2.0 * TICK_MS * 100.0 / time);
    let is_short = |row: &Value| load(row).is_none() || known_to(row) > QUIET_PCT;
    let mut jobs: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut busiest: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows {
        match (load(row), measured_ms(row)) {
            (Some(load), Some(time)) if is_short(row) => {
                let (sum, times) = jobs.entry(job_of(row)).or_default();
                *sum += load * time;
                *times += time;
            }
            (Some(load), _) => {
                let most = busiest.entry(job_of(row)).or_default();
                *most = most.max(load);
            }
            (None, _) => {}
        }
    }
    let of_job = |row: &Value| {
        let job = job_of(row);
        let mean = jobs.get(&job).map(|(sum, times)| sum / times);
        mean.or_else(|| busiest.get(&job).copied()).unwrap_or(0.0)
    };
    let is_disturbed = |row: &Value| match (is_short(row), load(row)) {
        (false, load) => load.is_some_and(|load| load > QUIET_PCT),
        (true, load) => {
            let is_beyond = load.is_some_and(|load| load > QUIET_PCT + known_to(row));
            is_beyond || of_job(row) > QUIET_PCT
        }
    };
    rows.iter().map(is_disturbed).collect()
}

/// Returns how long ranks measured, of the one that took longest.
fn measured_ms(row: &Value) -> Option<f64> {
    let of_ranks = row["load"].as_array().into_iter().flatten();
    let of_ranks = of_ranks.filter_map(|rank| rank[MEASURED_MS].as_f64());
    let longest = of_ranks.reduce(f64::max);
    longest.or_else(|| row[MEASURED_MS].as_f64())
}

const MEASURED_MS: &str = "measured_ms";

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
    fn short_rows_are_judged_by_their_job_and_by_what_is_beyond_ticks() {
        let row = |launch: u32, load: Option<f64>, time: f64| json!({"launch": launch, "other_load_pct": load, "load": [{MEASURED_MS: time / 2.0}, {MEASURED_MS: time}]});
        // A tick is 10 % of 100 ms.
        let quiet =
            [Some(14.0), Some(0.0), None, Some(0.0), Some(3.0)].map(|load| row(0, load, 100.0));
        assert_eq!(disturbed(&quiet), [false; 5]);
        let loud = [Some(14.0), Some(6.0), None, Some(0.0)].map(|load| row(0, load, 100.0));
        assert_eq!(disturbed(&loud), [true; 4]);
        // One that more ran beside than ticks explain, and long rows, are judged by themselves.
        let mixed = [
            row(0, Some(26.0), 100.0),
            row(0, Some(5.5), 10_000.0),
            row(0, Some(4.5), 10_000.0),
            row(1, Some(0.0), 100.0),
        ];
        assert_eq!(disturbed(&mixed), [true, true, false, false]);
    }

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
        let ran = ran.that_took(Some(2.5));
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
