//! `tagwire bench put`, `get` and `atomic`, and the lists of `bench partitioned`.

use crate::process::{Line, Outcome, has, results};
use serde_json::Value;

fn bench(arguments: &[&str]) -> Outcome {
    Line::new(["bench"]).args(arguments).finish()
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let outcome = bench(&[arguments, &["--format", "json"]].concat());
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document = results(&outcome.stdout.join("\n"));
    document["rows"].as_array().unwrap().clone()
}

/// Every byte of every operation is checked, one at a time and in windows.
#[test]
fn puts_and_gets_arrive_whole_over_a_network() {
    if !has("puts_and_gets_arrive_whole_over_a_network", "ofi:tcp") {
        return;
    }
    for test in ["put", "get"] {
        let few = ["-m", "1,4K,200000", "-i", "6", "-x", "1", "-W", "4", "-c"];
        let rows = rows(&[&[test, "-t", "ofi:tcp"], &few[..]].concat());
        assert_eq!(rows.len(), 3, "{rows:?}");
        for row in rows {
            for figure in ["latency_us", "bandwidth_mb_s", "rate_msg_s", "harness_us"] {
                assert!(
                    row[figure].as_f64().unwrap() > 0.0,
                    "{test} {figure}: {row}"
                );
            }
            assert_eq!(row["validated"], true);
            assert_eq!(row["window"], 4);
        }
    }
}

#[test]
fn what_a_transport_or_a_test_lacks_is_named() {
    for (arguments, word) in [
        (
            &["atomic", "-t", "shm", "--memory", "heap"][..],
            "--memory arena",
        ),
        (&["atomic", "-m", "16"], "words of 8 bytes"),
        (&["put", "--raw"], "without --raw"),
        (&["get", "--threads", "2"], "--threads has no meaning"),
        (&["put", "-n", "4"], "exactly 2 ranks"),
        (&["get", "-p", "cm"], "--pml has no meaning for get"),
        (
            &["put", "--engine", "bins"],
            "--engine has no meaning for put",
        ),
        (
            &["partitioned", "--partitions", "3", "-m", "64"],
            "no size of -m has 3 partitions",
        ),
        (
            &["partitioned", "-m", "0"],
            "no size of -m has 32 partitions",
        ),
        (
            &["partitioned", "--partitions", "2,2"],
            "'2' is given twice",
        ),
        (
            &["partitioned", "--noise", "single"],
            "it needs --compute-time",
        ),
        (&["partitioned", "--noise-pct", "4"], "that is not given"),
    ] {
        let outcome = bench(&[arguments, &["-i", "3", "-x", "1"]].concat());
        assert_ne!(outcome.status, 0, "{outcome:#?}");
        assert!(outcome.errors().contains(word), "{word}: {outcome:#?}");
    }
    for test in ["put", "get"] {
        let outcome = Line::new(["bench", test, "-t", "shm", "-i", "3", "-x", "1"])
            .env("TAGWIRE_SHM_CMA", "off")
            .finish();
        let word = format!("transport shm has no {test}");
        assert!(outcome.errors().contains(&word), "{outcome:#?}");
    }
}

/// By the system's call, and through the arena.
#[test]
fn operations_on_shared_memory_are_whole() {
    for memory in ["heap", "arena"] {
        for test in ["put", "get"] {
            let few = ["-m", "1,4K,200000", "-i", "6", "-x", "1", "-W", "4", "-c"];
            let rows = rows(&[&[test, "-t", "shm", "--memory", memory], &few[..]].concat());
            assert_eq!(rows.len(), 3, "{rows:?}");
            for row in rows {
                assert!(row["latency_us"].as_f64().unwrap() > 0.0, "{row}");
                assert_eq!(
                    (&row["validated"], &row["window"]),
                    (&true.into(), &4.into())
                );
            }
        }
    }
    let few = ["-i", "6", "-x", "1", "-c"];
    for memory in [&["--memory", "arena"][..], &[]] {
        let rows = rows(&[&["atomic", "-t", "shm"], memory, &few].concat());
        assert_eq!(rows.len(), 1, "{rows:?}");
    }
}

#[test]
fn partitioned_has_a_row_for_each_combination_and_both_definitions() {
    let lists = [
        "--compute-time",
        "0,2ms",
        "--noise",
        "single,normal",
        "--noise-pct",
        "0,50",
        "--cache",
        "hot,cold:64K",
    ];
    let few = [
        "-m",
        "64",
        "--partitions",
        "1,4",
        "--policy",
        "each",
        "-i",
        "2",
        "-x",
        "1",
        "-c",
    ];
    let rows = rows(&[&["partitioned", "--definition", "both"], &few[..], &lists].concat());
    // Without computation one, with it none, single and normal; twice each for caches and partitions.
    assert_eq!(rows.len(), (1 + 3) * 2 * 2, "{rows:?}");
    for row in &rows {
        for figure in [
            "overhead",
            "overhead_paper",
            "perceived_bandwidth_paper_mb_s",
        ] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}: {row}");
        }
        for share in ["availability_paper", "early_bird_paper", "ready_us"] {
            assert!(row[share].is_number(), "{share}: {row}");
        }
    }
    let with = |key: &str, value: &str| rows.iter().filter(|row| row[key] == value).count();
    assert_eq!(with("noise", "normal:50"), 4);
    assert_eq!(with("compute", "sleep:2000"), 12);
    assert_eq!(with("cache", "cold:64K"), 8);
    let outcome = bench(&["partitioned", "--definition", "paper", "--advise"]);
    assert!(
        outcome.errors().contains("--definition ours or both"),
        "{outcome:#?}"
    );
}

/// A report and a comparison of the paper's metrics alone go by the paper's overhead.
#[test]
fn results_of_the_papers_definition_alone_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (file, page) = (folder.path().join("a.json"), folder.path().join("a.html"));
    let few = [
        "-m",
        "64",
        "--partitions",
        "2",
        "--policy",
        "each",
        "-i",
        "2",
        "-x",
        "0",
    ];
    let measured = Line::new(["bench", "partitioned", "--definition", "paper", "-o"])
        .args([&file])
        .args(few)
        .finish();
    assert_eq!(measured.status, 0, "{measured:#?}");
    assert!(
        measured.line("# Size").contains("Paper's ovh. (x)"),
        "{measured:#?}"
    );
    let compared = Line::new(["compare"]).args([&file, &file]).finish();
    assert_eq!(compared.status, 0, "{compared:#?}");
    let report = Line::new(["report"])
        .args([&file])
        .args(["-o"])
        .args([&page])
        .finish();
    assert_eq!(report.status, 0, "{report:#?}");
}
