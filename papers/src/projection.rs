//! What a program gains whose sends and receives get faster (paper 000, figure 13).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::item::Item;
use crate::rows::{RESULTS, Rows};

/// The item that is a projection.
pub const PROJECTED: &str = "partitioned/fig13";

/// The published shares of sends and receives in the time of SNAP, in percent, and where.
pub const SHARES: [(&str, f64); 4] = [
    ("few processes, least", 1.0),
    ("few processes, most", 6.0),
    ("128 nodes", 20.4),
    ("256 nodes", 54.5),
];

/// The calls of a profile that send, receive or wait.
const CALLS: [&str; 9] = [
    "isend", "irecv", "wait_all", "send", "recv", "pstart", "pready", "parrived", "pwait",
];

/// Returns the gain of a program of which a share of the time, in percent, is divided by a factor (Amdahl's law).
#[must_use]
pub fn projected(share: f64, factor: f64) -> f64 {
    let share = share / 100.0;
    1.0 / ((1.0 - share) + share / factor)
}

/// Returns the share of sends, receives and waits in the time of a run, in percent: the mean over the ranks whose profile is in
/// a file of results of `tagwire bench --profile`.
///
/// # Errors
/// [`Error::Unreadable`]; [`Error::NoResults`] of a file without a profile, or whose ranks called in several threads at once.
pub fn share_of_profile(file: &Path) -> Result<f64> {
    let text = fs::read_to_string(file).map_err(|source| Error::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let wrong = |what: &str| Error::NoResults {
        file: file.to_owned(),
        what: what.to_owned(),
    };
    let none = || wrong("it has no results of 'tagwire bench --profile --format json'");
    let results: Value = serde_json::from_str(&text).map_err(|_| none())?;
    if results["schema"].as_str() != Some(RESULTS) {
        return Err(none());
    }
    let profiles = results["profiles"].as_array().ok_or_else(none)?;
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
    let shares: Option<Vec<f64>> = profiles.iter().map(of_rank).collect();
    let shares = shares.filter(|all| !all.is_empty()).ok_or_else(none)?;
    let share = shares.iter().sum::<f64>() / shares.len() as f64;
    match share <= 100.0 {
        true => Ok(share),
        false => Err(wrong(
            "its ranks are in calls for more time than there was, in several threads at once: a profile of one thread is needed, as of \
             'tagwire bench sweep3d --mode single --profile'",
        )),
    }
}

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
const SERIES: &str = "partitioned:default/artefact@4";

impl Item {
    /// Whether it is a projection, to which shares and factors can be given.
    #[must_use]
    pub fn is_projected(&self) -> bool {
        self.name == PROJECTED
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::io::Write;

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
        assert_eq!(published, SHARES.map(|(_, share)| share));
        assert!((projected(50.0, 1.0) - 1.0).abs() < 1e-12);
    }

    fn share(text: &str) -> Result<f64> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        share_of_profile(file.path())
    }

    fn results(calls: &str) -> String {
        let other = r#"{"wall_ms": 10.0, "calls": [{"call": "recv", "total_ms": 1.0}]}"#;
        format!(
            r#"{{"schema": "{RESULTS}", "rows": [], "profiles": [{{"wall_ms": 20.0, "calls": [{calls}]}}, {other}]}}"#
        )
    }

    #[test]
    fn a_share_is_that_of_sends_receives_and_waits() {
        let calls = r#"{"call": "send", "total_ms": 3.0}, {"call": "wait_all", "total_ms": 3.0}, {"call": "barrier", "total_ms": 9.0}"#;
        // 30 % and 10 %.
        assert!((share(&results(calls)).unwrap() - 20.0).abs() < 1e-9);
        let many = r#"{"call": "send", "total_ms": 300.0}"#;
        let told = share(&results(many)).unwrap_err().to_string();
        assert!(told.contains("--mode single"), "{told}");
        let whole = results(calls);
        let without = format!(r#"{{"schema": "{RESULTS}", "rows": []}}"#);
        let other = whole.replace(RESULTS, "other/1");
        for text in [&whole[..whole.len() / 2], "", "{}", &without, &other] {
            let told = share(text).unwrap_err().to_string();
            assert!(told.contains("bench --profile"), "{text}: {told}");
        }
    }
}
