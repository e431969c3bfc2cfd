//! Reductions of vectors that come from a device, between processes, as a user calls them.

use crate::process::{Line, Outcome, has, results, wheel};
use serde_json::Value;

fn bench(line: &str) -> Outcome {
    Line::new(["bench"]).args(line.split_whitespace()).finish()
}

/// Runs a command with every result checked, and returns its rows.
fn measure(line: &str) -> Vec<Value> {
    let outcome = bench(&format!("{line} -c --timeout 60 --format json"));
    assert_eq!(outcome.status, 0, "{line}: {outcome:#?}");
    let document = results(&outcome.stdout.join("\n"));
    document["rows"].as_array().unwrap().clone()
}

fn series(rows: &[Value]) -> Vec<&str> {
    let names = rows.iter().map(|row| row["series"].as_str().unwrap());
    names.collect()
}

/// Partitions of no element, of unlike lengths and of alike ones.
fn all(options: &str) {
    let line = "allreduce -n 4 --algorithm native,multilane,pr --callback direct,deferred -m 8,40,64K -i 5";
    let rows = measure(&format!("{line} {options}"));
    let names = ["native/1", "multilane/1", "pr:direct/1", "pr:deferred/1"];
    assert_eq!(series(&rows), names.repeat(3), "{options}");
    for row in rows {
        assert_eq!(row["validated"], true, "{row}");
        assert_eq!(row["group_size"], 2, "{row}");
        let producer = row["producer"].as_str().unwrap();
        assert!(producer.contains("stand-in for a device"), "{row}");
        for figure in ["time_us", "compute_us", "copy_us", "harness_us"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}: {row}");
        }
        let overlap = row["overlap_pct"].as_f64().unwrap();
        assert!((0.0..=100.0).contains(&overlap), "{row}");
    }
}

#[test]
fn every_algorithm_runs_on_both_layers_of_ours() {
    all("-t shm");
    all("-t shm -p cm");
}

#[test]
fn every_algorithm_runs_over_a_network() {
    if has("every_algorithm_runs_over_a_network", "ofi:tcp") {
        all("-t ofi:tcp");
    }
}

#[test]
fn every_algorithm_runs_on_a_foreign_library() {
    let test = "every_algorithm_runs_on_a_foreign_library";
    if let Some(library) = wheel(test, "mpich", "libmpi_abi.so.1") {
        all(&format!("-t mpi:{}", library.display()));
    }
}

#[test]
fn ranks_share_an_engine() {
    let rows =
        measure("allreduce -t shm -n 4 --engine-sharing 2 --algorithm multilane,pr -m 40,64K -i 5");
    assert_eq!(series(&rows), ["multilane/1", "pr:deferred/1"].repeat(2));
    for row in rows {
        assert_eq!(row["validated"], true, "{row}");
        let producer = row["producer"].as_str().unwrap();
        assert!(producer.contains("shared by 2 ranks"), "{row}");
    }
}

#[test]
fn copies_are_one_row_for_each_number_of_pieces() {
    let rows = measure("device-copy --partitions 1,20 -m 40,1M -i 5");
    assert_eq!(series(&rows), ["copies:1", "copies:20"].repeat(2));
    assert!(
        rows.iter()
            .all(|row| row["copy_us"].as_f64() >= row["moved_us"].as_f64())
    );
}

#[test]
fn tables_have_the_columns_of_the_paper() {
    let outcome = bench("allreduce -n 2 --producer engine -m 800 -i 5");
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let text = outcome.stdout.join("\n");
    for title in [
        "1 Time (us)",
        "3 Over lanes (%)",
        "3 Over native (x)",
        "Series 3: pr:deferred/1",
    ] {
        assert!(text.contains(title), "{title}: {text}");
    }
}

#[test]
fn bad_requests_name_what_fits() {
    for (line, reason) in [
        (
            "allreduce -n 4 --algorithm pr --group-size 3",
            "it is one of 1, 2, 4",
        ),
        ("allreduce --algorithm pr -m 12", "no multiple of 8"),
        ("allreduce --algorithm lanes", "multilane"),
        (
            "allreduce -n 4 --producer engine --engine-sharing 3",
            "--engine-sharing 3 does not divide 4 ranks: it is one of 1, 2, 4",
        ),
        ("allreduce -m 8 --engine-sharing 2", "with --algorithm"),
        ("allreduce --producer cuda", "[possible values: engine]"),
        (
            "allreduce --producer engine --engine-rate 10",
            "such as 10GB/s",
        ),
        ("device-copy --partitions 0", "from 1 to"),
    ] {
        let outcome = bench(line);
        assert_eq!(outcome.status, 1, "{line}: {outcome:#?}");
        assert!(
            outcome.stderr.join("\n").contains(reason),
            "{line}: {outcome:#?}"
        );
    }
}
