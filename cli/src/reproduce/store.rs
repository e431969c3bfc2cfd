//! Outcomes that are kept: blocks that other load ran beside are measured again, and what is older than the code that it measures is
//! told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use tagwire_papers::{Item, Needs, Ran, disturbed, job_of};

/// How often a block is measured in one call, where other load runs beside it.
pub const ATTEMPTS: u32 = 3;

/// The crates whose code outcomes measure.
const MEASURED: [&str; 8] = [
    "base",
    "bench",
    "coll",
    "layout",
    "matching",
    "pml",
    "src",
    "transport",
];

/// What of these crates is not in what is measured, as git's exclude patterns: tests, pages, the laboratory of engines, programs of the
/// simulator, and networks that no item is measured over.
const NOT_MEASURED: [&str; 7] = [
    ":(exclude,glob)**/tests/**",
    ":(exclude,glob)**/*.md",
    ":(exclude)bench/sim",
    ":(exclude)matching/lab",
    // Gone: what is stored may be older.
    ":(exclude)matching/bench",
    ":(exclude)transport/dr",
    ":(exclude)transport/sim",
];

/// Returns where the outcome of an item is kept in a folder of them all.
pub fn file_of(folder: &Path, item: &Item) -> PathBuf {
    let stem = item.name.replace('/', "-");
    folder.join(item.paper()).join(format!("{stem}.json"))
}

/// Returns results without the blocks that other load ran beside, as `bench --resume` goes on with them; `None` where there are none. Of
/// a launch goes what comes behind the first such size, too. A row that says so takes its place: `bench` takes the job for one that has
/// failed there, and measures it from that size on.
pub fn without_disturbed(results: &Value) -> Option<Value> {
    let rows = results["rows"].as_array()?;
    // Of each job the sizes in their order, and the first of them that was disturbed.
    let mut jobs: BTreeMap<String, (Vec<u64>, Option<usize>)> = BTreeMap::new();
    for (row, is_disturbed) in rows.iter().zip(disturbed(rows)) {
        let (sizes, cut) = jobs.entry(job_of(row)).or_default();
        let size = row["size"].as_u64().unwrap_or(0);
        let place = sizes.iter().position(|known| *known == size);
        let place = place.unwrap_or_else(|| {
            sizes.push(size);
            sizes.len() - 1
        });
        if is_disturbed {
            *cut = Some(cut.map_or(place, |before| before.min(place)));
        }
    }
    if jobs.values().all(|(_, cut)| cut.is_none()) {
        return None;
    }
    let (mut kept, mut told) = (Vec::new(), Vec::new());
    for row in rows {
        let job = job_of(row);
        let (sizes, cut) = &jobs[&job];
        let size = row["size"].as_u64().unwrap_or(0);
        let place = sizes.iter().position(|known| *known == size);
        match cut {
            Some(cut) if place.is_none_or(|place| place >= *cut) => {
                let unit = format!(
                    "{job} {} {}",
                    row["series"]["unit"], row["series"]["progress"]
                );
                if !told.contains(&unit) {
                    let mut failed = row.clone();
                    failed["error"] = "other load ran beside it".into();
                    failed["sampling"]["iterations"] = 0.into();
                    kept.push(failed);
                    told.push(unit);
                }
            }
            _ => kept.push(row.clone()),
        }
    }
    let mut left = results.clone();
    left["rows"] = Value::Array(kept);
    left["summary"] = Value::Array(Vec::new());
    Some(left)
}

/// Returns the runs of a stored outcome.
pub fn earlier(file: &Path) -> Vec<Ran> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let outcome: Value = serde_json::from_str(&text).unwrap_or_default();
    let runs = outcome["runs"].as_array().into_iter().flatten();
    runs.filter_map(|run| Ran::deserialize(run).ok()).collect()
}

/// Returns a line for each item: what of it is stored, and whether the code that it measures has changed since.
pub fn stored(folder: &Path, date: impl Fn(u64) -> String) -> String {
    let mut out = String::new();
    let items = tagwire_papers::all().iter();
    for item in items.filter(|item| !item.has_tables()) {
        let told = match fs::read_to_string(file_of(folder, item)) {
            Err(_) if item.needs != Needs::Real => item.needs.word().to_owned(),
            Err(_) => "not stored".to_owned(),
            Ok(text) => match serde_json::from_str::<Value>(&text) {
                Ok(outcome) => told(&outcome, &date),
                Err(error) => format!("no outcome: {error}"),
            },
        };
        let _ = writeln!(out, "{:<18} {told}", item.name);
    }
    out
}

fn told(outcome: &Value, date: impl Fn(u64) -> String) -> String {
    let how = match outcome["quick"].as_bool() {
        Some(false) => "full",
        _ => "quick",
    };
    let runs = outcome["runs"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(first) = runs.first() else {
        return format!("{how}, of an earlier version: without rows, commit and load");
    };
    let times = runs
        .iter()
        .filter_map(|run| run["environment"]["started_unix_s"].as_u64());
    let day = times.max().map_or_else(String::new, date);
    let day = day.split(' ').next().unwrap_or_default();
    let mut commits: Vec<&str> = runs
        .iter()
        .filter_map(|run| run["environment"]["commit"].as_str())
        .collect();
    commits.dedup();
    let age = match commits.first() {
        Some(commit) => age(commit),
        None => "of no commit".to_owned(),
    };
    let host = first["environment"]["host"].as_str().unwrap_or("unknown");
    format!(
        "{how}, {day}, commit {}, host {host}: {age}",
        commits.join(" and ")
    )
}

/// Whether the code has changed since a commit, by git, where that knows it.
fn age(commit: &str) -> String {
    let known = commit.split(['-', '+', ' ']).next().unwrap_or(commit);
    let is_name = !known.is_empty() && known.bytes().all(|letter| letter.is_ascii_hexdigit());
    if !is_name {
        return "its commit has no name".to_owned();
    }
    let root = Command::new("git")
        .args(["rev-parse", "--show-toplevel"])
        .output();
    let root = root.ok().filter(|found| found.status.success());
    let root = root.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned());
    let Some(root) = root else {
        return "not known whether it is older than its code: no git tree is here".to_owned();
    };
    let changed = Command::new("git")
        .args(["-C", &root, "diff", "--name-only", known, "--"])
        .args(MEASURED)
        .args(NOT_MEASURED)
        .output();
    match changed {
        Ok(found) if found.status.success() => {
            let files = String::from_utf8_lossy(&found.stdout).into_owned();
            let crates = MEASURED.iter().filter(|name| {
                let of = format!("{name}/");
                files.lines().any(|file| file.starts_with(&of))
            });
            let crates: Vec<&str> = crates.copied().collect();
            match crates.is_empty() {
                true => "of the code that is here".to_owned(),
                false => format!("older than its code ({})", crates.join(", ")),
            }
        }
        _ => format!("not known whether it is older than its code: git has no commit {known}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_goes_from_its_first_disturbed_size_on() {
        let row = |launch: u32, size: u64, load: f64| json!({"size": size, "series": {"transport": "shm"}, "sampling": {"launch": launch}, "figures": {"other_load_pct": load}});
        let results = |rows: Vec<Value>| json!({"rows": rows, "summary": [1]});
        let quiet = results(vec![row(0, 1, 1.0), row(0, 2, 5.0)]);
        assert_eq!(without_disturbed(&quiet), None);
        let noisy = results(vec![
            row(0, 1, 1.0),
            row(0, 2, 5.1),
            row(0, 4, 1.0),
            row(1, 1, 2.0),
            row(1, 2, 2.0),
        ]);
        let left = without_disturbed(&noisy).expect("a row was disturbed");
        let failed = json!({
            "size": 2, "series": {"transport": "shm"}, "sampling": {"launch": 0, "iterations": 0},
            "figures": {"other_load_pct": 5.1}, "error": "other load ran beside it",
        });
        assert_eq!(
            left["rows"],
            json!([row(0, 1, 1.0), failed, row(1, 1, 2.0), row(1, 2, 2.0)])
        );
        assert_eq!(left["summary"], json!([]));
    }

    #[test]
    fn tests_and_what_no_item_runs_over_make_no_outcome_older() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let listed = Command::new("git")
            .args(["-C", root, "ls-files", "--"])
            .args(MEASURED)
            .args(NOT_MEASURED)
            .output();
        let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
            eprintln!("skipped: this is no git tree");
            return;
        };
        let files = String::from_utf8_lossy(&listed.stdout).into_owned();
        let files: Vec<&str> = files.lines().collect();
        for counts in [
            "pml/src/ob1/core.rs",
            "transport/ofi/src/lib.rs",
            "src/lib.rs",
        ] {
            assert!(files.contains(&counts), "{counts}");
        }
        for does_not in [
            "/tests/",
            ".md",
            "bench/sim/",
            "matching/lab/",
            "transport/sim/",
        ] {
            let found = files.iter().find(|file| file.contains(does_not));
            assert_eq!(found, None);
        }
    }

    #[test]
    fn what_git_does_not_know_is_said() {
        assert!(age("0000000000000000000000000000000000000000").contains("not known"));
        assert!(age("--output=x").contains("no name"));
    }

    #[test]
    fn outcomes_are_told_by_what_they_have() {
        let before = json!({"schema": "tagwire.reproduce/1", "quick": true});
        assert!(told(&before, |_| String::new()).contains("quick, of an earlier version"));
        let now = json!({"quick": false, "runs": [{"environment": {"commit": "--x", "host": "h", "started_unix_s": 5}}]});
        let text = told(&now, |seconds| format!("{seconds} UTC"));
        assert!(text.starts_with("full, 5, commit --x, host h"), "{text}");
    }
}
