//! Patterns of applications between processes, as a user calls them.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod process;

use process::{Line, Outcome, has, wheel};
use serde_json::Value;

/// Each pattern with few iterations, and its series of our own.
const PATTERNS: &[(&str, &[&str])] = &[
    (
        "halo3d --grid 2x2x1 --threads 8 -m 4K -i 5 --compute-time 200us --noise uniform",
        &[
            "single@1",
            "multiple@8",
            "partitioned:default@8",
            "partitioned:each@8",
            "partitioned:messages@8",
        ],
    ),
    (
        "sweep3d --grid 2x2 --threads 2 --slices 4 -m 64K -i 5 --accounting artefact",
        &[
            "single/artefact@1",
            "multiple/artefact@2",
            "partitioned:default/artefact@2",
            "partitioned:each/artefact@2",
            "partitioned:messages/artefact@2",
        ],
    ),
    (
        "cmb --grid 2x2x2 --threads 2 -m 4K -i 10 --compute-time 300us --policy default",
        &[
            "7-point/bsp@2",
            "7-point/bsp-all@2",
            "7-point/bins:2@2",
            "7-point/each@2",
            "7-point/each:default@2",
        ],
    ),
];

fn bench(line: &str) -> Outcome {
    Line::new(["bench"]).args(line.split_whitespace()).finish()
}

/// Runs a pattern with every byte checked, and returns its rows.
fn measure(line: &str) -> Vec<Value> {
    let outcome = bench(&format!("{line} -c --timeout 60 --format json"));
    assert_eq!(outcome.status, 0, "{line}: {outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout.join("\n")).unwrap();
    document["rows"].as_array().unwrap().clone()
}

fn all(options: &str, names: impl Fn(&[&str]) -> Vec<String>) {
    for (line, own) in PATTERNS {
        let rows = measure(&format!("{line} {options}"));
        let series: Vec<_> = rows
            .iter()
            .map(|row| row["series"].as_str().unwrap())
            .collect();
        assert_eq!(series, names(own), "{line} {options}");
        for row in rows {
            assert_eq!(row["validated"], true, "{row}");
            assert!(row["throughput_mb_s"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["harness_us"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
}

fn ours(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn every_pattern_runs_on_every_middleware_of_ours() {
    all("-t shm", ours);
    all("-t shm -p cm", ours);
}

#[test]
fn every_pattern_runs_over_a_network() {
    if has("every_pattern_runs_over_a_network", "ucx:tcp") {
        all("-t ucx:tcp", ours);
    }
}

/// A library decides itself how partitions go together.
#[test]
fn every_pattern_runs_on_a_foreign_library() {
    let test = "every_pattern_runs_on_a_foreign_library";
    let Some(library) = wheel(test, "mpich", "libmpi_abi.so.1") else {
        return;
    };
    let of_library = |names: &[&str]| {
        let mut all: Vec<String> = Vec::new();
        for name in names {
            let policies = [":default", ":each", ":messages"];
            let mut name = (*name).to_owned();
            for policy in policies {
                name = name.replace(policy, ":library");
            }
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    };
    all(&format!("-t mpi:{}", library.display()), of_library);
}

#[test]
fn bad_requests_name_what_fits() {
    for (line, reason) in [
        ("sweep3d --grid 2x2 -n 6", "--grid 3x2"),
        ("halo3d --threads 5", "1, 8, 27 or 64"),
        ("sweep3d -m 100", "multiples of 16"),
        ("cmb --granularity bins:3", "bins of 1, 2, 4 do"),
        ("cmb --arrivals kde:/nowhere", "cannot be read"),
    ] {
        let outcome = bench(line);
        assert_eq!(outcome.status, 1, "{line}: {outcome:#?}");
        assert!(
            outcome.stderr.join("\n").contains(reason),
            "{line}: {outcome:#?}"
        );
    }
}
