use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use super::*;
use crate::item::{all, find};
use crate::run::Run;

/// A run of a turn.
fn of_turn(turn: usize) -> Run {
    Run {
        arguments: Vec::new(),
        environment: &[],
        turn: Some(turn),
        is_own: true,
    }
}

/// Rows that runs of an item have left, each in a file of its own: the turn, the build and the rows.
fn rows(files: &[(usize, &str, Value)]) -> Rows {
    let mut all = Rows::default();
    for (turn, build, rows) in files {
        let environment = json!({"commit": "abc", "launches": 3, "started_unix_s": 86_400, "cores": 2, "cpu_model": "M", "kernel": "6"});
        let results = json!({"environment": environment, "rows": rows});
        all.add(results.as_object().unwrap().clone(), &of_turn(*turn), build);
    }
    all
}

fn latencies(transport: &str, library: Option<&str>, values: &[f64]) -> Value {
    let row = |(value, launch)| json!({"transport": transport, "library": library, "pml": "ob1", "size": 8, "launch": launch, "latency_us": value});
    values.iter().zip(0..).map(row).collect()
}

fn peers() -> Rows {
    rows(&[
        (0, "", latencies("shm", None, &[0.3, 0.1, 0.2])),
        (
            0,
            "",
            latencies("mpi", Some("MPICH Version: 5.0.2"), &[0.8]),
        ),
        (
            0,
            "",
            latencies("tool:ucx_perftest:self,sm", Some("UCX 1.22.0"), &[0.16]),
        ),
        (
            1,
            "",
            json!([{"transport": "shm", "size": 8, "rate_msg_s": 12_345_678.0}]),
        ),
    ])
}

fn outcome(rows: &Rows) -> String {
    let item = find("performance/peers").unwrap()[0];
    let outcome = crate::Outcome::of(item, rows, false, Vec::new(), Vec::new());
    serde_json::to_string(&outcome).unwrap()
}

const LINE: &str =
    "| latency, 8 B, us | 0.2 (0.1..0.3) | 0.8 (0.8..0.8) | 0.16 (0.16..0.16) | 1.25 |";

#[test]
fn a_line_has_ours_the_others_and_the_ratio_to_the_best() {
    let item = find("performance/peers").unwrap()[0];
    let tables = Table::all(item, &peers());
    assert_eq!(
        markdown(&tables),
        format!(
            "| what | Tagwire | MPICH 5.0.2 | UCX 1.22.0 | Tagwire / best |\n|---|---|---|---|---|\n{LINE}\n\
             | message rate, 8 B, window 64, M/s | 12.3 (12.3..12.3) | - | - | - |\n"
        )
    );
}

/// While the CPUs moved there may be values of others alone: they are none of ours, and none of the lines beside each other. Nor are there any
/// where ours were measured too.
#[test]
fn a_placing_without_ours_has_no_ratio() {
    let item = find("performance/peers").unwrap()[0];
    let at = |transport: &str, value: f64, after: f64| {
        json!({"transport": transport, "library": (transport == "mpi").then_some("M Version: 1"), "pml": "ob1", "size": 8,
            "latency_us": value, "line_transfer_ns": 160.0, "line_transfer_after_ns": after})
    };
    let turn = |rows: Value| (0, "", rows);
    let apart = turn(json!([at("shm", 0.2, 160.0), at("mpi", 0.4, 160.0)]));
    let with_ours = rows(&[
        apart.clone(),
        turn(json!([at("shm", 0.1, 15.0), at("mpi", 0.3, 15.0)])),
    ]);
    let mixed = markdown(&Table::all(item, &with_ours));
    let line = "| latency, 8 B, us | 0.1 (0.1..0.1) | 0.3 (0.3..0.3) | - |\n";
    assert!(mixed.ends_with(line), "{mixed}");
    let rows = rows(&[apart, turn(json!([at("mpi", 0.3, 15.0)]))]);
    let tables = Table::all(item, &rows);
    assert_eq!(
        markdown(&tables),
        "**cores apart**\n\n| what | Tagwire | M 1 | Tagwire / best |\n|---|---|---|---|\n\
         | latency, 8 B, us | 0.2 (0.2..0.2) | 0.4 (0.4..0.4) | 0.50 |\n\n\
         **CPUs that moved meanwhile**\n\n| what | Tagwire | M 1 | Tagwire / best |\n|---|---|---|---|\n\
         | latency, 8 B, us | - | 0.3 (0.3..0.3) | - |\n"
    );
    assert_eq!(
        tables.iter().map(Table::is_chief).collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn builds_are_columns_and_others_are_divided_by_the_base() {
    let item = find("performance/networks").unwrap()[0];
    let layer = |layer: &str, value| json!({"transport": "ofi:tcp", "layer": layer, "size": 8, "latency_us": value});
    let built = rows(&[
        (0, "", json!([layer("ob1", 3.0), layer("raw", 2.0)])),
        (0, "new", json!([layer("ob1", 1.0)])),
    ]);
    let text = markdown(&Table::all(item, &built));
    assert!(text.starts_with("**Layers: latency, us**\n\n| what | ob1 | raw | ob1, new | ob1 / raw | ob1, new / raw |\n"), "{text}");
    assert!(
        text.ends_with("| ofi:tcp, 8 B | 3 (3..3) | 2 (2..2) | 1 (1..1) | 1.50 | 0.50 |\n"),
        "{text}"
    );
}

#[test]
fn pages_have_the_tables_of_stored_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("M/performance-peers.json");
    fs::create_dir(folder.path().join("M")).unwrap();
    fs::write(&stored, outcome(&peers())).unwrap();
    let date = |seconds| format!("{seconds} s");
    let page = "a\n<!-- tables performance/peers M -->\nold\n<!-- /tables -->\n<!-- beside performance/peers M -->\n<!-- /beside -->\nb\n";
    let made = fill(page, folder.path(), date).unwrap();
    assert!(made.starts_with("a\n<!-- tables performance/peers M -->\nM: 2 cores, M, Linux 6; measured on 86400 at abc, 3 launches by turns.\n\n| what |"), "{made}");
    assert!(made.contains(LINE) && !made.contains("old"), "{made}");
    assert!(made.contains("| latency, 8 B, us | 0.2 | 0.16 (UCX 1.22.0) | 1.25 |\n| message rate, 8 B, window 64, M/s | - | - | - |\n<!-- /beside -->\nb\n"), "{made}");
    assert_eq!(fill(&made, folder.path(), date).unwrap(), made);
    let open = fill("<!-- tables performance/peers M -->\n", folder.path(), date);
    assert!(matches!(open, Err(Error::NoMark(..))));
    let other = fs::read_to_string(&stored)
        .unwrap()
        .replace("reproduce/2", "reproduce/9");
    for text in ["{}", "", &*other] {
        fs::write(&stored, text).unwrap();
        let none = fill(page, folder.path(), date);
        assert!(matches!(none, Err(Error::NoOutcome { .. })), "{text}");
    }
    fs::remove_file(&stored).unwrap();
    let none = fill(page, folder.path(), date).unwrap_err().to_string();
    assert!(none.contains("M/performance-peers.json"), "{none}");
}

#[test]
fn what_is_measured_has_its_transports() {
    let transports = [
        "shm",
        "mpi:/a",
        "mpi:/b",
        "tool:ucx_perftest@/u",
        "tool:fabtests",
    ]
    .map(str::to_owned);
    let of = |name: &str| find(name).unwrap()[0].runs(&transports, "", false);
    let lines = |name: &str| {
        of(name)
            .iter()
            .map(|run| run.arguments.join(" "))
            .collect::<Vec<_>>()
    };
    let peers = lines("performance/peers");
    assert_eq!(
        peers[..4],
        ["shm", "mpi:/a", "mpi:/b", "tool:ucx_perftest@/u:self,sm"]
            .map(|name| format!("latency -m 8 -t {name} --timeout 300 --launches 1"))
    );
    let networks = of("performance/networks");
    let over_tcp: BTreeSet<_> = networks
        .iter()
        .filter(|run| !run.environment.is_empty())
        .map(|run| &run.arguments[4])
        .collect();
    assert!(
        over_tcp.iter().all(|name| name.starts_with("mpi:")) && !over_tcp.is_empty(),
        "{over_tcp:?}"
    );
    assert!(lines("performance/one-sided").contains(
        &"get -m 8,1M -t tool:fabtests:tcp;ofi_rxm --timeout 300 --launches 1".to_owned()
    ));
    for item in all().iter().filter(|item| item.has_tables()) {
        assert!(item.claims.is_empty(), "{}", item.name);
        assert!(
            item.runs(&transports[..1], "", true)
                .iter()
                .all(|run| run.is_own),
            "{}",
            item.name
        );
    }
}

#[test]
fn advice_is_a_table_of_what_it_says() {
    let item = find("performance/partitioned").unwrap()[0];
    let turn = item.turns.iter().position(|turn| turn.advice).unwrap();
    let row = json!({"transport": "shm", "size": 4096, "partitions": 4, "policy": "each", "after_join_us": 2.0});
    let results = json!({"rows": [row.clone(), row.clone()], "advice": [row]});
    let mut rows = Rows::default();
    rows.add(results.as_object().unwrap().clone(), &of_turn(turn), "");
    let text = markdown(&Table::all(item, &rows));
    assert!(
        text.ends_with("| 4 KiB: 4 partitions, each | 2 (2..2) |\n"),
        "{text}"
    );
}
