//! What a program gains whose sends and receives get faster (paper 000, figure 13).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::reference::by_id;
use crate::rows::Rows;

/// The item that is a projection.
pub const PROJECTED: &str = "partitioned/fig13";

/// Where the published shares of sends and receives in the time of SNAP are of, with their ids.
const SHARES: [(&str, &str); 4] = [
    (
        "few processes, least",
        "000/fig13/share-of-send-receive-in-run-time/min",
    ),
    (
        "few processes, most",
        "000/fig13/share-of-send-receive-in-run-time/max",
    ),
    (
        "128 nodes",
        "000/fig13/share-of-send-receive-in-run-time/128",
    ),
    (
        "256 nodes",
        "000/fig13/share-of-send-receive-in-run-time/256",
    ),
];

/// Returns the published shares of sends and receives in the time of SNAP, in percent, and where.
#[must_use]
pub fn shares() -> Vec<(&'static str, f64)> {
    let of = |(place, id): (&'static str, &str)| {
        let published = by_id(id).ok()?;
        Some((place, published.value.as_f64()?))
    };
    SHARES.into_iter().filter_map(of).collect()
}

/// The calls of a profile that send, receive or wait: of `tagwire bench`, and of programs of MPI.
const CALLS: [&str; 24] = [
    "isend",
    "irecv",
    "wait_all",
    "send",
    "recv",
    "pstart",
    "pready",
    "parrived",
    "pwait",
    "ssend",
    "rsend",
    "bsend",
    "issend",
    "irsend",
    "sendrecv",
    "wait",
    "wait_any",
    "wait_some",
    "test",
    "test_all",
    "test_any",
    "probe",
    "iprobe",
    "start_all",
];

/// Returns the gain of a program of which a share of the time, in percent, is divided by a factor (Amdahl's law).
#[must_use]
pub fn projected(share: f64, factor: f64) -> f64 {
    let share = share / 100.0;
    1.0 / ((1.0 - share) + share / factor)
}

/// Returns the share of sends, receives and waits in the time of a run, in percent: the mean over the ranks whose profile is in
/// results of `tagwire bench --profile`, or of `bench/mpi_profile`.
///
/// # Errors
/// [`Error::NoShare`] of results without a profile, or whose ranks called in several threads at once.
pub fn share_of_profile(results: &Map<String, Value>) -> Result<f64> {
    share(profiles(results)?.iter())
}

/// The profiles that results have.
fn profiles(results: &Map<String, Value>) -> Result<&Vec<Value>> {
    let profiles = results.get("profiles").and_then(Value::as_array);
    profiles.ok_or(NONE)
}

const NONE: Error = Error::NoShare("it has no results of 'tagwire bench --profile --format json'");

/// The mean share of some profiles.
fn share<'p>(profiles: impl Iterator<Item = &'p Value>) -> Result<f64> {
    let of_rank = |profile: &Value| {
        let calls = profile["calls"].as_array()?.iter();
        let is_meant = |call: &&Value| CALLS.iter().any(|name| call["call"] == *name);
        let inside: f64 = calls
            .filter(is_meant)
            .filter_map(|call| call["total_ms"].as_f64())
            .sum();
        let wall = profile["wall_ms"].as_f64().filter(|wall| *wall > 0.0)?;
        Some(100.0 * inside / wall)
    };
    let shares: Option<Vec<f64>> = profiles.map(of_rank).collect();
    let shares = shares.filter(|all| !all.is_empty()).ok_or(NONE)?;
    let share = shares.iter().sum::<f64>() / shares.len() as f64;
    match share <= 100.0 {
        true => Ok(share),
        false => Err(Error::NoShare(
            "its ranks are in calls for more time than there was, in several threads at once: a profile of one thread is needed, as of \
             'tagwire bench sweep3d --mode single --profile'",
        )),
    }
}

/// Adds rows with the share of sends, receives and waits in each launch to results that have profiles: their unit is `profile`, and
/// their size is the number of ranks.
pub fn add_share(results: &mut Map<String, Value>) {
    let launch = |of: &Value| of["launch"].as_u64().unwrap_or(0);
    let Ok(profiles) = profiles(results) else {
        return;
    };
    let launches: BTreeSet<u64> = profiles.iter().map(launch).collect();
    let of_launches = launches.into_iter().filter_map(|number| {
        let of_one = profiles.iter().filter(|profile| launch(profile) == number);
        Some((number, share(of_one).ok()?))
    });
    let of_launches: Vec<(u64, f64)> = of_launches.collect();
    let ranks = results
        .get("environment")
        .map(|environment| environment["ranks"].clone());
    let Some(rows) = results.get_mut("rows").and_then(Value::as_array_mut) else {
        return;
    };
    let first = rows.first().cloned().unwrap_or_default();
    for (number, share) in of_launches {
        let of_one = rows.iter().filter(|row| launch(row) == number);
        let load = of_one
            .filter_map(|row| row["other_load_pct"].as_f64())
            .reduce(f64::max);
        rows.push(json!({
            "transport": first["transport"], "pml": first["pml"], "launch": number, "other_load_pct": load,
            "unit": PROFILE, "size": ranks, "share_pct": share,
        }));
    }
}

/// The unit of shares of a profile.
pub(crate) const PROFILE: &str = "profile";

impl Rows {
    /// Returns by how much the sweep of [`PROJECTED`] is faster than over one thread, by place.
    #[must_use]
    pub fn factors(&self) -> Vec<(String, f64)> {
        let of_place = |place: &crate::rows::Place| {
            let series = self.of_unit(place, SERIES, "ratio_to_single");
            let (_, point) = series.last_key_value()?;
            Some((place.name(), point.median))
        };
        self.places().iter().filter_map(of_place).collect()
    }
}

/// Whose factor it is.
const SERIES: &str = "partitioned:default/artefact@16";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::published::of_figure;

    #[test]
    fn the_published_shares_give_the_published_gains() {
        for (share, wanted) in [(1.0, 1.009), (6.0, 1.059), (20.4, 1.235), (54.5, 2.036)] {
            let found = projected(share, 15.1);
            assert!((found - wanted).abs() < 1e-3, "{share}: {found}");
        }
        let published: Vec<f64> = of_figure("000 fig 13")
            .filter(|one| one.quantity == "share of send/receive in run time")
            .filter_map(|one| one.value.as_f64())
            .collect();
        let told: Vec<f64> = shares().into_iter().map(|(_, share)| share).collect();
        assert_eq!(published, told);
        assert!((projected(50.0, 1.0) - 1.0).abs() < 1e-12);
    }

    fn share(profiles: &str) -> Result<f64> {
        let results = format!(r#"{{"rows": []{profiles}}}"#);
        share_of_profile(&serde_json::from_str(&results).unwrap())
    }

    fn profiles(calls: &str) -> String {
        let other = r#"{"wall_ms": 10.0, "calls": [{"call": "recv", "total_ms": 1.0}]}"#;
        format!(r#", "profiles": [{{"wall_ms": 20.0, "calls": [{calls}]}}, {other}]"#)
    }

    #[test]
    fn a_share_is_that_of_sends_receives_and_waits() {
        let calls = r#"{"call": "send", "total_ms": 3.0}, {"call": "wait_all", "total_ms": 3.0}, {"call": "barrier", "total_ms": 9.0}"#;
        // 30 % and 10 %.
        assert!((share(&profiles(calls)).unwrap() - 20.0).abs() < 1e-9);
        let many = r#"{"call": "send", "total_ms": 300.0}"#;
        let told = share(&profiles(many)).unwrap_err().to_string();
        assert!(told.contains("--mode single"), "{told}");
        for profiles in ["", r#", "profiles": []"#, r#", "profiles": [{}]"#] {
            let told = share(profiles).unwrap_err().to_string();
            assert!(told.contains("bench --profile"), "{profiles}: {told}");
        }
    }

    #[test]
    fn shares_of_profiles_are_rows_by_ranks() {
        let text = format!(
            r#"{{"environment": {{"ranks": 4}}, "rows": [{{"transport": "shm", "pml": "ob1", "size": 9, "other_load_pct": 2.0}}]{}}}"#,
            profiles(r#"{"call": "send", "total_ms": 6.0}"#)
        );
        let mut results: Map<String, Value> = serde_json::from_str(&text).unwrap();
        // Each launch has a row.
        let mut launches = results.clone();
        let profiles = launches["profiles"].as_array_mut().unwrap();
        profiles[1]["launch"] = 1.into();
        add_share(&mut launches);
        let of_launch = |number: usize| launches["rows"][number]["share_pct"].as_f64().unwrap();
        assert_eq!([1, 2].map(of_launch), [30.0, 10.0]);
        add_share(&mut results);
        let added = &results["rows"][1];
        assert_eq!(
            (&added["unit"], &added["size"], &added["other_load_pct"]),
            (&json!("profile"), &json!(4), &json!(2.0))
        );
        assert!((added["share_pct"].as_f64().unwrap() - 20.0).abs() < 1e-9);
        // Without a profile there is none.
        results.remove("profiles");
        add_share(&mut results);
        assert_eq!(results["rows"].as_array().unwrap().len(), 2);
    }
}
