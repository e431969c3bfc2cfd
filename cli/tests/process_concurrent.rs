//! The tests that compare processes with threads, as a user calls them.

use crate::process::{Line, Outcome, has, results, wheel};
use serde_json::Value;

/// Each test with few iterations, its main figure, and the units or helpers of its rows.
const TESTS: &[(&str, &str, &[&str])] = &[
    (
        "thread-cost -m 0,64 -i 50",
        "latency_us",
        &["processes:1", "threads:1"],
    ),
    (
        "concurrent-bandwidth -m 64K -W 3 -i 3 --units processes:2,threads:2",
        "bandwidth_mb_s",
        &["processes:2", "threads:2"],
    ),
    (
        "concurrent-latency -m 0,100 -i 20 --units processes:2,threads:2",
        "slowest_us",
        &["processes:2", "threads:2"],
    ),
    (
        "message-rate --style blocking --ack-every 16 -m 8 -i 200 --units processes:2,threads:2",
        "rate_msg_s",
        &["processes:2", "threads:2"],
    ),
    (
        "short-long --long 64K -i 2",
        "worst_over_median",
        &["processes:2", "threads:2"],
    ),
    (
        "overlap-neighbours -m 64K -n 3 --passes 1 -i 3",
        "communication_us",
        &["none", "blocked-thread"],
    ),
    (
        "concurrent-allreduce -m 64 -i 20 --units processes:2,threads:2",
        "slowest_us",
        &["processes:2", "threads:2"],
    ),
    (
        "allreduce-compute -m 4K -i 2 -n 2 --units threads:1,threads:2",
        "passes_per_s",
        &["threads:1", "threads:2"],
    ),
];

fn bench(line: &str) -> Outcome {
    Line::new(["bench"]).args(line.split_whitespace()).finish()
}

/// Runs a test with every byte checked, and returns its document.
fn measure(line: &str) -> Value {
    let outcome = bench(&format!("{line} -c -x 1 --timeout 60 --format json"));
    assert_eq!(outcome.status, 0, "{line}: {outcome:#?}");
    results(&outcome.stdout.join("\n"))
}

/// The unit of a row, or who helps it.
fn name(row: &Value) -> &str {
    let key = if row["progress"].is_string() {
        "progress"
    } else {
        "unit"
    };
    row[key].as_str().unwrap()
}

/// Runs all tests with more options, and looks at their rows.
fn all(options: &str) {
    for (line, figure, names) in TESTS {
        let document = measure(&format!("{line} {options}"));
        let rows = document["rows"].as_array().unwrap();
        for wanted in *names {
            let mut of = rows.iter().filter(|row| name(row) == *wanted).peekable();
            assert!(of.peek().is_some(), "{line}: no row of {wanted}: {rows:?}");
            for row in of {
                assert!(row[figure].as_f64().unwrap() > 0.0, "{line}: {row}");
                assert!(row["harness_us"].as_f64().unwrap() >= 0.0, "{line}: {row}");
                assert_eq!(row["validated"], true, "{row}");
                assert!(row["unit"].is_string(), "every row has its unit: {row}");
            }
        }
        assert!(
            rows.iter().all(|row| names.contains(&name(row))),
            "{rows:?}"
        );
        let series = document["summary"].as_array().unwrap();
        let first = series.iter().map(name).next();
        assert_eq!(first, Some(names[0]), "{line}: in the order of the command");
    }
}

#[test]
fn every_test_runs_on_processes_and_threads() {
    all("-t shm");
}

#[test]
fn every_test_runs_where_the_transport_matches() {
    all("-t shm -p cm");
}

#[test]
fn every_test_runs_over_a_network() {
    if has("every_test_runs_over_a_network", "ucx:tcp") {
        all("-t ucx:tcp");
    }
}

/// A library with a level for each kind of unit.
#[test]
fn every_test_runs_on_a_foreign_library() {
    let test = "every_test_runs_on_a_foreign_library";
    if let Some(library) = wheel(test, "mpich", "libmpi_abi.so.1") {
        all(&format!("-t mpi:{}", library.display()));
    }
}

#[test]
fn rows_tell_what_they_are_of() {
    let document =
        measure("concurrent-latency -m 8 -i 20 --units processes:3,threads:3 --launches 2");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in rows {
        let (ranks, threads) = match name(row) {
            "processes:3" => (6, 1),
            _ => (2, 3),
        };
        assert_eq!(
            (&row["ranks"], &row["threads"]),
            (&ranks.into(), &threads.into())
        );
        assert!(
            row["slowest_us"].as_f64() >= row["latency_us"].as_f64(),
            "{row}"
        );
    }
    assert_eq!(document["environment"]["ranks"], 6);
    // Six processes and six threads have fewer cores, unless the machine has many.
    let cores = std::thread::available_parallelism().unwrap().get();
    let crowded = rows.iter().all(|row| row["oversubscribed"] == true);
    assert_eq!(crowded, cores < 6);
    let warnings = document["warnings"].as_array().unwrap();
    let is_warned = |warning: &Value| {
        let text = warning["message"].as_str().unwrap();
        warning["kind"] == "oversubscribed" && text.contains("processes:3, threads:3")
    };
    assert_eq!(warnings.iter().any(is_warned), crowded, "{warnings:?}");
}

#[test]
fn costs_and_gains_follow_from_rows_of_one_launch() {
    let document = measure("thread-cost -m 8 -i 100 --launches 2");
    let of = |unit: &str, launch: u64, key: &str| {
        let mut rows = document["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["unit"] == unit && row["launch"] == launch);
        row.unwrap()[key].as_f64()
    };
    for launch in 0..2 {
        let latency = |unit| of(unit, launch, "latency_us").unwrap();
        let cost = of("threads:1", launch, "cost_us").unwrap();
        let (threads, processes) = (latency("threads:1"), latency("processes:1"));
        // Each figure has seven significant digits, so that the longer ones are rounded by more.
        assert!((threads - processes - cost).abs() <= 1e-6 * (threads + processes));
        assert_eq!(of("processes:1", launch, "cost_us"), None);
    }
    let document = measure("overlap-neighbours -n 2 -m 8K --passes 1 -i 3");
    let rows = document["rows"].as_array().unwrap();
    let of = |progress: &str| rows.iter().find(|row| row["progress"] == progress).unwrap();
    let (none, helped) = (of("none"), of("blocked-thread"));
    let value = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let gained = value(none, "iteration_us") - value(helped, "iteration_us");
    let hidden = 100.0 * gained / value(none, "communication_us");
    assert!((hidden - value(helped, "hidden_pct")).abs() < 1e-3 * (1.0 + hidden.abs()));
}

#[test]
fn short_messages_have_a_time_each() {
    let document = measure("short-long --long 64K -i 3 --units threads");
    let row = &document["rows"][0];
    let times = |key: &str| row["samples"][key].as_array().unwrap().len();
    assert_eq!((times("short_us"), times("short_first_round_us")), (96, 96));
    let gini = row["gini"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&gini), "{row}");
    assert_eq!(row["long"], 64 << 10);
}

#[test]
fn csv_and_text_name_the_units() {
    let line = "message-rate --style blocking -m 0 -i 50 -x 1 --units processes:1,threads:1";
    let csv = bench(&format!("{line} --format csv"));
    assert_eq!(csv.status, 0, "{csv:#?}");
    let keys: Vec<&str> = csv.stdout[0].split(',').collect();
    let place = keys.iter().position(|key| *key == "unit").unwrap();
    let units = csv.stdout[1..]
        .iter()
        .map(|row| row.split(',').nth(place).unwrap());
    let mut units: Vec<&str> = units.collect();
    units.sort_unstable();
    assert_eq!(units, ["processes:1", "threads:1"]);
    let text = bench(line).stdout.join("\n");
    for part in ["# Series 1: processes:1", "# Series 2: threads:1"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn bad_requests_name_what_fits() {
    for (line, reasons) in [
        (
            "concurrent-latency --units cores:4",
            &["'cores:4'", "processes:N or threads:N"][..],
        ),
        ("concurrent-latency --units threads:0", &["from 1 to 1024"]),
        ("concurrent-latency --units threads:2,threads:2", &["twice"]),
        ("concurrent-latency -n 4", &["no -n", "--units"]),
        ("concurrent-latency -W 4", &["--window"]),
        ("concurrent-latency --raw", &["needs a pml"]),
        ("concurrent-latency --tags shared", &["--tags"]),
        (
            "concurrent-bandwidth --tags shared -c",
            &["-c cannot check"],
        ),
        (
            "thread-cost --units threads:4",
            &["threads:4", "processes:1 and threads:1"],
        ),
        ("thread-cost --units threads:1", &["both are needed"]),
        (
            "short-long --units threads:3",
            &["threads:3", "processes:2, threads:2"],
        ),
        (
            "overlap-neighbours --units threads:2",
            &["processes:N is N ranks"],
        ),
        ("overlap-neighbours -n 1", &["at least 2 ranks"]),
        ("overlap-neighbours --progress thread", &["blocked-thread"]),
        (
            "overlap-neighbours --progress progress-thread -t mpi",
            &["none,blocked-thread"],
        ),
        ("concurrent-allreduce -n 1", &["at least 2 nodes"]),
        ("concurrent-allreduce -m 6", &["size 6", "multiple of 4"]),
        (
            "allreduce-compute --units processes:2",
            &["threads:N compute"],
        ),
        ("message-rate --units threads:4", &["--style blocking"]),
        ("message-rate --ack-every 4", &["--style blocking"]),
        ("message-rate --style blocking --threads 4", &["--threads"]),
        (
            "message-rate --style blocking --ack-every 0",
            &["--ack-every"],
        ),
        (
            "latency --units threads:4",
            &["--units has no meaning for latency"],
        ),
        (
            "latency --style blocking",
            &["--style has no meaning for latency"],
        ),
    ] {
        let outcome = bench(line);
        assert_eq!(outcome.status, 1, "{line}: {outcome:#?}");
        let errors = outcome.errors();
        for reason in reasons {
            assert!(errors.contains(reason), "{line} lacks {reason}: {errors}");
        }
        assert!(
            outcome.stdout.is_empty() && !errors.contains("panicked"),
            "{errors}"
        );
    }
}
