#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeMap;
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
    let line = "latency -m 0,8 -t shm --launches 5";
    assert!(near(of(line), 5.0 * (job + 2.0 * row)));
    let line = "latency --layers -m 0,8 -t shm --launches 5";
    assert!(near(of(line), 5.0 * (job + 6.0 * row)));
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

/// A run of a stored outcome: its item, its number, when it began, how often blocks were measured again.
struct Began {
    at: f64,
    item: String,
    number: usize,
    attempts: u64,
}

/// The runs of full outcomes, in the order in which they were made.
fn stored() -> Vec<Began> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/papers");
    let mut all = Vec::new();
    for paper in fs::read_dir(folder).unwrap() {
        let paper = paper.unwrap().path();
        let files = fs::read_dir(&paper).into_iter().flatten();
        for file in files.map(|file| file.unwrap().path()) {
            let is_json = file.extension().is_some_and(|kind| kind == "json");
            let outcome = is_json.then(|| fs::read_to_string(&file).unwrap());
            let Some(outcome) = outcome.map(|text| serde_json::from_str::<Value>(&text).unwrap())
            else {
                continue;
            };
            let runs = outcome["runs"].as_array().into_iter().flatten();
            for (number, run) in runs.enumerate() {
                if let Some(at) = run["environment"]["started_unix_s"].as_f64() {
                    all.push(Began {
                        at,
                        item: outcome["name"].as_str().unwrap().to_owned(),
                        number,
                        attempts: run["attempts"].as_u64().unwrap(),
                    });
                }
            }
        }
    }
    all.sort_by(|one, other| one.at.total_cmp(&other.at));
    all
}

/// Runs begin one after the other. Behind the last run of an item those are measured again that others ran beside: it says nothing of
/// itself where there were such.
#[test]
fn what_stored_runs_took_is_told() {
    let transports: Vec<String> = ["shm", "ofi:tcp", "mpi:/a", "mpi:/b"]
        .map(str::to_owned)
        .into();
    let all = stored();
    let mut items: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for pair in all.windows(2) {
        let [run, next] = pair else { continue };
        let of_item = || all.iter().filter(|other| other.item == run.item);
        let is_last = next.item != run.item;
        if is_last && of_item().any(|run| run.attempts > 1) {
            continue;
        }
        // Another session.
        if next.at - run.at > 3600.0 {
            continue;
        }
        let item = find(&run.item).unwrap()[0];
        let runs = item.runs(&transports, "", false);
        let (took, told) = items.entry(&run.item).or_default();
        *took += next.at - run.at;
        *told += runs[run.number].seconds();
    }
    assert!(items.len() >= 11, "{items:?}");
    for (item, (took, told)) in &items {
        println!("{item}: {told:.1} s told, {took:.1} s taken");
        assert!(
            (0.75..=1.25).contains(&(told / took)),
            "{item}: {told:.1} s told, {took:.1} s taken"
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
