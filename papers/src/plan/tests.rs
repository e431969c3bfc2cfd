#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::item::find;

fn of(line: &str) -> f64 {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    Asked(&words).seconds(false)
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-6 * wanted
}

#[test]
fn jobs_start_and_rows_are_measured() {
    let [start, rank] = start(Carrier::Memory);
    let (job, row) = (start + 2.0 * rank, ROW[0]);
    // Of long messages a row has no fewer rounds than of some others.
    let (_, a_mib) = A_MIB[1];
    let line = "latency -m 0,1M -t shm --launches 5";
    assert!(near(of(line), 5.0 * (job + 2.0 * row + a_mib)));
    let line = "latency --layers -m 0,1M -t shm --launches 5";
    assert!(near(of(line), 5.0 * (job + 6.0 * row + 3.0 * a_mib)));
    // Two jobs, of two ranks and of eight.
    let line = "message-rate -m 0 --units threads:4,processes:4 -t shm --launches 5";
    assert!(near(of(line), 5.0 * (2.0 * job + 6.0 * rank + 2.0 * row)));
    let peers = of("latency -m 0,8 -t mpi:/a,mpi --launches 5");
    assert!(near(
        peers,
        2.0 * of("latency -m 0,8 -t mpi:/a --launches 5")
    ));
    assert!(peers > 2.0 * of("latency -m 0,8 -t shm --launches 5"));
}

#[test]
fn computation_is_counted() {
    let line = "partitioned -m 1K,2K --partitions 1,2 --threads 2 --compute-time 10ms -i 98 -x 2 --launches 3 -t shm";
    let seconds = 3.0 * 2.0 * 2.0 * 100.0 * 3.0 * 0.01;
    assert!(
        (seconds..1.05 * seconds).contains(&of(line)),
        "{}",
        of(line)
    );
    assert!(of("cmb -m 256 -i 50 -t shm") > 50.0 * 0.067);
    // Bulk-synchronous messages once, and two bins each way.
    let bins = "cmb -m 256 --granularity bsp,bins:2 --interface p2p,rma -i 50 -t shm";
    let one = of("cmb -m 256 -i 50 -t shm");
    assert!((2.8 * one..3.0 * one).contains(&of(bins)));
    assert!((milliseconds("4194us") - 4.194).abs() < 1e-9);
}

/// What an item's runs are told to take, and what they took, in seconds.
#[derive(Default)]
struct Stored {
    told: f64,
    took: f64,
}

/// Returns how many jobs rows are of, and after how many seconds those were ended that hung.
fn jobs(rows: &Value) -> (usize, Vec<f64>) {
    let keys = rows["keys"].as_array().unwrap();
    let place = |name: &str| keys.iter().position(|key| key == name);
    let rows = rows["rows"].as_array().unwrap();
    let of = |row: &Value| {
        ["transport", "library", "launch"].map(|key| place(key).map(|at| row[at].to_string()))
    };
    let jobs: BTreeSet<_> = rows.iter().map(of).collect();
    let seconds = |row: &Value| {
        let error = row[place("error")?].as_str()?;
        let (_, limit) = error.split_once("did not end within ")?;
        limit.split(' ').next()?.parse().ok()
    };
    (jobs.len(), rows.iter().filter_map(seconds).collect())
}

/// Returns what is stored of items whose runs say how long they took.
fn stored() -> BTreeMap<String, Stored> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/papers");
    let mut all: BTreeMap<String, Stored> = BTreeMap::new();
    for paper in fs::read_dir(folder).unwrap() {
        let files = fs::read_dir(paper.unwrap().path()).into_iter().flatten();
        let files = files.map(|file| file.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|kind| kind == "json")) {
            let text = fs::read_to_string(&file).unwrap();
            let outcome: Value = serde_json::from_str(&text).unwrap();
            let name = outcome["name"].as_str().unwrap();
            for run in outcome["runs"].as_array().into_iter().flatten() {
                let Some(seconds) = run["seconds"].as_f64() else {
                    continue;
                };
                // Before them stand variables, and the program.
                let words = run["command"].as_str().unwrap().split(' ');
                let words = words.skip_while(|word| *word != "bench").skip(1);
                let words: Vec<String> = words.map(str::to_owned).collect();
                let item = all.entry(name.to_owned()).or_default();
                let told = Asked(&words).seconds(run["is_over_tcp"].as_bool().unwrap());
                let (jobs, hung) = jobs(&run["rows"]);
                let ended = 1.0 - hung.len() as f64 / jobs.max(1) as f64;
                item.told += told * ended + hung.iter().sum::<f64>();
                item.took += seconds;
            }
        }
    }
    all
}

/// An item's runs take as long as is told of them.
#[test]
fn what_stored_runs_took_is_told() {
    let all = stored();
    assert!(all.len() >= 18, "{} items", all.len());
    for (name, Stored { told, took }) in all {
        println!("{name}: {told:.1} s told, {took:.1} s taken");
        // A plan is in minutes: what takes seconds is not told exactly.
        assert!(
            (told - took).abs() <= 0.25 * took + 10.0,
            "{name}: {told:.1} s told, {took:.1} s taken"
        );
    }
}

/// All items go by themselves within the hours of a night.
#[test]
fn a_whole_reproduction_takes_ten_hours_at_most() {
    let transports: Vec<String> = ["shm", "ofi:tcp", "mpi:/a", "mpi:/b", "mpi:/c"]
        .map(str::to_owned)
        .into();
    let items = find("all").unwrap_or_default();
    let runs = items
        .iter()
        .flat_map(|item| item.runs(&transports, "", false));
    let hours: f64 = runs.map(|run| run.seconds()).sum::<f64>() / 3600.0;
    let told = plan(&items, &transports, false);
    assert!(hours <= 10.0, "{told}");
    assert!(told.contains(&format!("about {hours:.1} hours")), "{told}");
}
