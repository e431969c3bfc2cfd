//! Runs of `tagwire bench` that do not go as one wishes: beside other load, over transports that cannot be
//! used, interrupted.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::{Line, Outcome, has, results};
use rustix::process::{Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

/// A library that is nowhere.
const NOWHERE: &str = "ofi@/nonexistent/libfabric.so:tcp";
const NO_MPI: &str = "mpi:/nonexistent/libmpi_abi.so";

/// As few iterations as make a row.
const TINY: &[&str] = &["-m", "8", "-i", "3", "-x", "1"];

fn bench(arguments: &[&str]) -> Outcome {
    Line::new(["bench"]).args(arguments).finish()
}

fn document(file: &Path) -> Value {
    results(&std::fs::read_to_string(file).unwrap())
}

/// A process that never ends by itself, on one CPU.
struct BusyLoop(Child);

impl BusyLoop {
    fn on(cpu: usize) -> Self {
        // A child has the CPUs of the thread that starts it.
        let start = move || {
            let mut one = CpuSet::new();
            one.set(cpu);
            sched_setaffinity(None, &one).unwrap();
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        Self(std::thread::spawn(start).join().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first two CPUs that this test may use.
fn two_cpus(test: &str) -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let two = cpus.next().zip(cpus.next()).map(|(a, b)| [a, b]);
    if two.is_none() {
        eprintln!("SKIPPED: {test} needs two CPUs");
    }
    two
}

/// The scheduler shares a CPU between a rank that spins and another process that never sleeps.
#[test]
fn other_load_is_reported_in_text_in_json_and_by_compare() {
    let Some(cpus) = two_cpus("other_load_is_reported_in_text_in_json_and_by_compare") else {
        return;
    };
    let loops = cpus.map(BusyLoop::on);
    let bind = cpus.map(|cpu| cpu.to_string()).join(",");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busy.json");
    // Long enough for the system's count of a processor's time.
    let outcome = Line::new(["bench", "latency", "-m", "8", "--wait", "spin"])
        .args(["-i", "200000", "--bind", &bind, "-o"])
        .args([&file])
        .finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let load = outcome.line("# Load: measured time in wait for a CPU");
    assert!(
        load.contains("rank 0 ") && load.contains("rank 1 "),
        "{load}"
    );
    let warning = outcome.line("# Warning: other processes ran on the ranks' CPUs (size 8)");
    assert!(warning.contains("--bind"), "{warning}");
    drop(loops);

    let document = document(&file);
    let kinds = document["warnings"].as_array().unwrap().iter();
    assert!(
        kinds.map(|it| &it["kind"]).any(|kind| kind == "other-load"),
        "{document}"
    );
    let row = &document["rows"][0];
    let figure = |key: &str| row[key].as_f64().unwrap();
    assert!(figure("run_queue_wait_pct") > 10.0, "{row}");
    assert!(figure("other_load_pct") > 10.0, "{row}");
    assert!(figure("involuntary_switches") > 0.0, "{row}");
    let ranks = row["load"].as_array().unwrap();
    assert_eq!(ranks.len(), 2, "{row}");
    for rank in ranks {
        assert!(rank["run_queue_wait_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert!(rank["measured_ms"].as_f64().unwrap() > 0.0, "{row}");
    }

    let outcome = Line::new(["compare"]).args([&file, &file]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("not to be trusted: other load beside both");
    outcome.line("# 1 of 1 rows cannot be told: other processes ran on the ranks' CPUs");
    let gate = ["compare", "--fail-above", "5%"];
    let outcome = Line::new(gate).args([&file, &file]).finish();
    assert_eq!(outcome.status, 6, "{outcome:#?}");
    let outcome = Line::new(["compare", "--format", "json"])
        .args([&file, &file])
        .finish();
    let compared: Value = serde_json::from_str(&outcome.stdout.join("\n")).unwrap();
    assert_eq!(compared["rows"][0]["new_disturbed"], true, "{compared}");
}

/// Each kind of test has all ranks report.
#[test]
fn every_test_reports_the_load_of_all_its_ranks() {
    for (test, options, ranks) in [
        ("latency", &["--layers"][..], 2),
        ("ring", &["-n", "3"], 3),
        ("idle", &["--seconds", "0.1"], 2),
        ("overlap", &["--side", "send"], 2),
        (
            "partitioned",
            &["--partitions", "2", "--policy", "single", "-m", "64"],
            2,
        ),
    ] {
        let size: &[&str] = if test == "partitioned" {
            &[]
        } else {
            &["-m", "8"]
        };
        let options = [
            &[test],
            options,
            size,
            &["-i", "3", "-x", "1", "--format", "json"],
        ]
        .concat();
        let outcome = bench(&options);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let document = results(&outcome.stdout.join("\n"));
        for row in document["rows"].as_array().unwrap() {
            let load = row["load"].as_array().unwrap();
            assert_eq!(load.len(), ranks, "{test}: {row}");
        }
    }
}

#[test]
fn transports_that_cannot_be_used_are_all_named_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.json");
    let transports = ["shm", NOWHERE, NO_MPI].join(",");
    let outcome = Line::new(["bench", "latency", "-t", &transports, "-o"])
        .args([&file])
        .args(TINY)
        .finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(outcome.stdout.is_empty() && !file.exists(), "{outcome:#?}");
    assert_eq!(outcome.stderr.len(), 1, "{outcome:#?}");
    let errors = outcome.errors();
    for part in ["2 of 3 transports", NOWHERE, NO_MPI, "--keep-going"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}

#[test]
fn what_can_be_measured_is_with_keep_going() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.json");
    let transports = [NO_MPI, "shm", NOWHERE].join(",");
    let outcome = Line::new(["bench", "latency", "--keep-going", "-t", &transports, "-o"])
        .args([&file])
        .args(TINY)
        .finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    for name in [NOWHERE, NO_MPI] {
        outcome.line(&format!("# Error: {name}, launch 0, size 8: "));
    }
    assert_eq!(outcome.stderr.len(), 1, "{outcome:#?}");
    assert!(
        outcome.errors().contains("2 of 3 jobs failed"),
        "{outcome:#?}"
    );
    let document = document(&file);
    let rows = document["rows"].as_array().unwrap();
    let has = |transport: &str, key: &str| {
        let mut rows = rows.iter().filter(|row| row["transport"] == transport);
        rows.any(|row| !row[key].is_null())
    };
    assert!(has("shm", "latency_us") && !has("shm", "error"), "{rows:?}");
    assert!(has(NOWHERE, "error") && has(NO_MPI, "error"), "{rows:?}");
    assert_eq!(document["summary"].as_array().unwrap().len(), 1);
    // A comparison finds what was measured in it.
    let outcome = Line::new(["compare"]).args([&file, &file]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line(&format!(
        "# FAILED in the new results: latency size=8 transport={NOWHERE}"
    ));
}

/// It opens, and has no memory for the messages.
#[test]
fn a_job_that_fails_later_leaves_its_error_as_well() {
    let options = [
        "--memory",
        "arena",
        "--shm-arena",
        "1M",
        "-m",
        "1M",
        "-i",
        "3",
    ];
    let going = ["--keep-going", "--launches", "2", "--format", "json"];
    let outcome = bench(&[&["latency"], &options[..], &going].concat());
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    let document = results(&outcome.stdout.join("\n"));
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    for (launch, row) in rows.iter().enumerate() {
        assert_eq!(row["launch"], launch);
        assert!(
            row["error"].as_str().unwrap().contains("'shm-arena'"),
            "{row}"
        );
    }
    let alone = bench(&[&["latency"], &options[..]].concat());
    assert_eq!((alone.status, alone.stderr.len()), (2, 1), "{alone:#?}");
}

#[test]
fn what_the_library_opened_is_named_and_its_aliases_are_refused() {
    let test = "what_the_library_opened_is_named_and_its_aliases_are_refused";
    if !has(test, "ofi:tcp") {
        return;
    }
    let of = |transport: &str| {
        let outcome = bench(&[&["latency", "--format", "json", "-t", transport], TINY].concat());
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        results(&outcome.stdout.join("\n"))
    };
    let document = of("ofi:tcp");
    let used = &document["environment"]["transports"][0];
    let provider = used["provider"].as_str().unwrap();
    assert!(provider.starts_with("tcp"), "{used}");
    assert_eq!(document["rows"][0]["provider"], provider);
    let text = bench(&[&["latency", "-t", "ofi:tcp"], TINY].concat());
    text.line(&format!("# Provider: {provider}"));

    let mut aliases = vec![format!("ofi@{}:tcp", used["file"].as_str().unwrap())];
    if provider != "tcp" {
        aliases.push(format!("ofi:{provider}"));
    }
    for alias in aliases {
        let outcome = bench(&[&["latency", "-t", "ofi:tcp", "-t", &alias], TINY].concat());
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        assert!(outcome.stdout.is_empty(), "{outcome:#?}");
        for part in ["'ofi:tcp'", &alias, provider] {
            assert!(outcome.errors().contains(part), "{part}: {outcome:#?}");
        }
    }
}

#[test]
fn an_interrupted_run_ends_as_the_signal_says() {
    let mut job = Line::new(["bench", "latency", "-m", "8:1M", "-i", "100000"]).start();
    // The first row: the job runs.
    job.hear("8  ");
    kill_process(job.launcher(), Signal::INT).unwrap();
    let outcome = job.finish();
    assert_eq!(outcome.status, 128 + 2, "{outcome:#?}");
    assert_eq!(outcome.stderr, ["error: interrupted by signal 2 (SIGINT)"]);
    // What was measured is there, with what is to be said of it.
    outcome.line("# Load: ");
}
