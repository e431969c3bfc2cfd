//! `tagwire bench --resume`: a run that was stopped in the middle ends with the same file as one that was not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::process::{Line, Outcome, results};
use rustix::process::Signal;
use serde_json::Value;

// Unbound, so that launches are summed up wherever the processors of a guest are.
const OPTIONS: &str = "latency -t shm -m 32K:40K:+1K --launches 2 -i 8000 -x 10 --bind none -o";

/// Sizes and launches of [`OPTIONS`].
const ROWS: usize = 9 * 2;

fn line(file: &Path, more: &[&str]) -> Line {
    let options = OPTIONS.split(' ');
    Line::new(["bench"]).args(options).args([file]).args(more)
}

fn resume(file: &Path, more: &[&str]) -> Outcome {
    let more = [&["--resume"], more].concat();
    line(file, &more).finish()
}

fn document(file: &Path) -> Value {
    results(&fs::read_to_string(file).unwrap())
}

fn rows(file: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(file) else {
        return Vec::new();
    };
    results(&text)["rows"].as_array().unwrap().clone()
}

/// Starts a run, and ends its command with a signal once two rows are there.
fn interrupted(file: &Path, signal: Signal) -> Vec<Value> {
    let job = line(file, &[]).start();
    crate::process::eventually("two rows", || rows(file).len() >= 2);
    rustix::process::kill_process(job.launcher(), signal).unwrap();
    let ended = job.finish();
    assert_ne!(ended.status, 0);
    if signal != Signal::KILL {
        assert!(ended.errors().contains("--resume goes on"), "{ended:#?}");
    }
    let left = rows(file);
    assert!((2..ROWS).contains(&left.len()), "{} rows", left.len());
    left
}

#[test]
fn a_killed_run_goes_on_and_measures_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::KILL, Signal::INT] {
        let file = folder.path().join(format!("{}.json", signal.as_raw()));
        let left = interrupted(&file, signal);
        let begun = document(&file)["environment"].clone();
        // The same command again does not overwrite it without a word.
        let text = fs::read_to_string(&file).unwrap();
        let again = line(&file, &[]).finish();
        assert_eq!(again.status, 1, "{again:#?}");
        assert!(
            again.errors().contains("--overwrite measures anew"),
            "{again:#?}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        let outcome = resume(&file, &[]);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let whole = document(&file);
        let all = rows(&file);
        assert_eq!(all[..left.len()], left, "what was there stays as it was");
        let places: BTreeSet<_> = all
            .iter()
            .map(|row| (row["size"].as_u64(), row["launch"].as_u64()))
            .collect();
        assert_eq!((all.len(), places.len()), (ROWS, ROWS));
        for key in ["seed", "started_unix_s"] {
            assert_eq!(whole["environment"][key], begun[key], "{key}");
        }
        let command = whole["command"].as_str().unwrap();
        assert!(!command.contains("--resume"), "{command}");
        let summary = whole["summary"].as_array().unwrap();
        assert!(
            summary.iter().all(|row| row["launches"] == 2),
            "{summary:?}"
        );
        assert_eq!(summary.len(), 9);
        // The table is of all rows, not only of those that came last.
        let lines = outcome.stdout.iter();
        assert_eq!(lines.filter(|line| !line.starts_with('#')).count(), 9);

        // Nothing is left to do.
        let again = resume(&file, &[]);
        assert_eq!(again.status, 0, "{again:#?}");
        assert_eq!(document(&file), whole);
    }
}

#[test]
fn what_is_whole_or_meant_to_be_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let few = ["bench", "ring", "-m", "8,16", "-i", "50"];
    let run = |more: &[&str]| {
        Line::new(few)
            .args(more)
            .args(["-o"])
            .args([&file])
            .finish()
    };
    for more in [&[][..], &[], &["--overwrite"]] {
        let outcome = run(more);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
    }
    let mut left: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let command = left["command"].as_str().unwrap();
    assert!(!command.contains("--overwrite"), "{command}");
    let kept = left["rows"].as_array().unwrap()[..1].to_vec();
    left["rows"] = kept.into();
    fs::write(&file, left.to_string()).unwrap();
    assert_eq!(run(&[]).status, 1);
    assert_eq!(run(&["--overwrite"]).status, 0);
    assert_eq!(rows(&file).len(), 2);
}

#[test]
fn results_are_no_page() {
    for name in ["x.html", "x.svg", "x.md"] {
        let outcome = Line::new(["bench", "ring", "-o", name]).finish();
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        let wanted = format!("-o x.json, and then 'tagwire report x.json -o {name}'");
        assert!(outcome.errors().contains(&wanted), "{outcome:#?}");
    }
    let outcome = Line::new(["bench", "ring", "--plot"]).finish();
    assert!(
        outcome.errors().contains("'tagwire report FILE.json"),
        "{outcome:#?}"
    );
}

#[test]
fn what_cannot_be_gone_on_with_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    // Without a file it is a run like any other.
    let few = ["bench", "ring", "-m", "8", "-i", "50", "--resume", "-o"];
    let begun = Line::new(few).args([&file]).finish();
    assert_eq!(begun.status, 0, "{begun:#?}");
    let text = fs::read_to_string(&file).unwrap();
    let refused = |outcome: Outcome, words: &[&str]| {
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        let errors = outcome.errors();
        assert!(
            words.iter().all(|word| errors.contains(word)),
            "{words:?}: {errors}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    };
    refused(
        resume(&file, &[]),
        &["a.json", "another command", "ring -m 8 -i 50"],
    );
    let other = text.replace("\"kernel\": \"", "\"kernel\": \"0.");
    fs::write(&file, &other).unwrap();
    let outcome = Line::new(few).args([&file]).finish();
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(outcome.errors().contains("kernel was \"0."), "{outcome:#?}");
    fs::write(&file, &text).unwrap();

    let bench = |more: &[&str]| {
        Line::new(["bench", "latency", "--resume"])
            .args(more)
            .finish()
    };
    refused(bench(&[]), &["--output"]);
    refused(bench(&["-o", "a.csv"]), &["does not end in .csv"]);
    refused(bench(&["-o", "b.json", "--profile"]), &["--profile"]);
}
