//! Patterns of applications between processes, as a user calls them.

use crate::process::{Line, Outcome, has, results, wheel};
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
    let document = results(&outcome.stdout.join("\n"));
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

/// Each pattern with remote access, and its series.
const REMOTE: &[(&str, &[&str])] = &[
    (
        "halo3d --grid 2x1x1 --threads 8 -m 4K -i 5 --compute-time 200us --mode multiple,rma",
        &["multiple@8", "rma@8"],
    ),
    (
        "sweep3d --grid 2x2 --threads 2 --slices 4 -m 64K -i 5 --mode single,rma",
        &["single@1", "rma@2"],
    ),
    (
        "cmb --grid 2x2x2 --threads 2 -m 4K,256K -i 10 --compute-time 300us --granularity bsp-all,bins:1,each --interface rma",
        &[
            "7-point/bsp-all@2",
            "7-point/bins:1:rma@2",
            "7-point/each:rma@2",
        ],
    ),
];

fn remote(options: &str) {
    for (line, series) in REMOTE {
        let rows = measure(&format!("{line} {options}"));
        let sizes = rows.len() / series.len();
        for (place, row) in rows.iter().enumerate() {
            assert_eq!(row["series"], series[place % series.len()], "{line}: {row}");
            let is_rma = row["series"].as_str().unwrap().contains("rma");
            let middleware = if is_rma { "rma" } else { "messages" };
            assert_eq!(row["middleware"], middleware, "{row}");
            assert_eq!(row["validated"], true, "{row}");
            assert!(row["harness_us"].as_f64().unwrap() > 0.0, "{row}");
        }
        assert_eq!(sizes, if line.contains("4K,256K") { 2 } else { 1 });
    }
}

/// Ranks of a host write straight into each other's memory: 2, 4 and 8 of them, beside either layer.
#[test]
fn every_pattern_runs_on_remote_access_to_shared_memory() {
    if writes_through_shared_memory() {
        remote("-t shm");
        remote("-t shm -p cm");
    }
}

/// Whether the system lets ranks write to each other's memory.
fn writes_through_shared_memory() -> bool {
    let outcome = bench("put -t shm -m 8 -i 5 -x 0 -c");
    let told = outcome.errors();
    assert!(outcome.status == 0 || told.contains("put"), "{outcome:#?}");
    outcome.status == 0
}

#[test]
fn every_pattern_runs_on_remote_access() {
    for transport in ["ofi:tcp", "ucx:tcp"] {
        if has("every_pattern_runs_on_remote_access", transport) {
            remote(&format!("-t {transport}"));
        }
    }
}

#[test]
fn every_pattern_runs_on_windows_of_a_foreign_library() {
    let test = "every_pattern_runs_on_windows_of_a_foreign_library";
    if let Some(library) = wheel(test, "mpich", "libmpi_abi.so.1") {
        remote(&format!("-t mpi:{}", library.display()));
    }
}

/// A transport without remote writes is refused, and it is said which have them.
#[test]
fn a_transport_without_remote_writes_says_which_have() {
    if !has(
        "a_transport_without_remote_writes_says_which_have",
        "ofi:udp",
    ) {
        return;
    }
    let outcome =
        bench("cmb -m 4K --threads 2 -i 5 --compute-time 100us --interface rma -t ofi:udp");
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let told = outcome.errors();
    assert!(told.contains("has no remote writes"), "{outcome:#?}");
    assert!(told.contains("shm, ofi:tcp and ucx:tcp"), "{outcome:#?}");
}

/// The share of sends and receives is what a projection takes.
#[test]
fn the_profile_of_a_sweep_is_projected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.json");
    let shown = file.to_str().unwrap();
    let line = "sweep3d --grid 2x2 --threads 2 --slices 4 -m 64K -i 5 --compute-time 200us --compute sleep --profile";
    let outcome = bench(&format!("{line} --mode single -o {shown}"));
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document = results(&std::fs::read_to_string(&file).unwrap());
    let profiles = document["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 4, "{profiles:?}");
    for profile in profiles {
        let calls: Vec<_> = profile["calls"].as_array().unwrap().iter().collect();
        let has = |name: &str| calls.iter().any(|call| call["call"] == name);
        assert!(has("send") && has("recv"), "{profile}");
        let share = profile["library_pct"].as_f64().unwrap();
        assert!(share > 0.0 && share < 100.0, "{profile}");
    }
    let project = |options: &[&str]| {
        let line = ["reproduce", "partitioned/fig13"].iter().chain(options);
        Line::new(line).finish()
    };
    let projected = project(&["--profile", shown, "--factor", "2"]);
    assert_eq!(projected.status, 0, "{projected:#?}");
    let lines = projected.stdout.join("\n");
    assert!(lines.contains("of the profile; factor: given"), "{lines}");
    // Partitioned operations have calls of their own.
    let outcome = bench(&format!(
        "{line} --mode partitioned --policy default -o {shown}"
    ));
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let text = std::fs::read_to_string(&file).unwrap();
    for call in ["pstart", "pready", "parrived", "pwait"] {
        assert!(text.contains(&format!("\"{call}\"")), "{call}: {text}");
    }
}

#[test]
fn bad_requests_name_what_fits() {
    for (line, reason) in [
        ("sweep3d --grid 2x2 -n 6", "--grid 3x2"),
        ("halo3d --threads 5", "1, 8, 27 or 64"),
        ("sweep3d -m 100", "multiples of 16"),
        ("cmb --granularity bins:3", "bins of 1, 2, 4 do"),
        ("cmb --arrivals kde:/nowhere", "cannot be read"),
        ("halo3d --interface rma", "--interface has no meaning"),
        ("cmb --mode rma", "--mode has no meaning"),
    ] {
        let outcome = bench(line);
        assert_eq!(outcome.status, 1, "{line}: {outcome:#?}");
        assert!(
            outcome.stderr.join("\n").contains(reason),
            "{line}: {outcome:#?}"
        );
    }
}
