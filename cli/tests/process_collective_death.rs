//! `kill -9` of a rank in a collective, in each phase: the others' operations fail with its name, soon, and they go on without it.

use std::time::Duration;

use crate::process::{Job, KILLED, has};

const RANKS: u32 = 3;

/// Ways to go: boards and messages in shared memory, a layer that matches in the transport, and a network, one after the other by
/// turns: to collectives they are alike.
fn ways(test: &str, turn: usize) -> Vec<Vec<&'static str>> {
    let mut ways = vec![vec![], vec!["--pml", "cm"]];
    let networks = ["ofi:tcp;ofi_rxm", "ucx:tcp,self"].into_iter();
    let networks: Vec<_> = networks.filter(|network| has(test, network)).collect();
    if !networks.is_empty() {
        ways.push(vec!["--transport", networks[turn % networks.len()]]);
    }
    ways
}

/// Starts a job of which rank 1 dies in this way.
fn start(way: &[&str], scenario: &[&str]) -> Job {
    let options = [&["--on-failure", "continue"], way].concat();
    Job::of_ranks(RANKS, &options, &[&["death-collective"], scenario].concat())
}

/// Waits until the others have gone on.
fn finish(job: Job, what: &str) {
    let outcome = job.finish();
    assert_eq!(outcome.status, KILLED, "{what}: {outcome:#?}");
    for rank in (0..RANKS).filter(|rank| *rank != 1) {
        outcome.line(&format!("{rank} went on"));
    }
}

/// Runs each scenario in each of its ways.
fn die(test: &str, scenarios: &[&[&str]]) {
    for (turn, scenario) in scenarios.iter().enumerate() {
        for way in ways(test, turn) {
            let what = format!("{way:?} {scenario:?}");
            eprintln!("{what}");
            finish(start(&way, scenario), &what);
        }
    }
}

/// The others have entered, and wait.
#[test]
fn a_rank_dies_before_it_enters() {
    die(
        "a_rank_dies_before_it_enters",
        &[
            &["absent", "barrier"],
            &["absent", "broadcast"],
            &["absent", "reduce-to-it"],
            &["absent", "allreduce"],
            &["absent", "scan"],
            &["absent", "reduce-scatter"],
            &["absent", "gather"],
            &["absent", "scatter"],
            &["absent", "allgather"],
            &["absent", "alltoall"],
        ],
    );
}

/// It has given its numbers, or a part of them, and combines: in a line, in a piece of several, in a long one by parts.
#[test]
fn a_rank_dies_while_it_combines() {
    die(
        "a_rank_dies_while_it_combines",
        &[
            &["within", "allreduce", "3"],
            &["within", "allreduce", "3000"],
            &["within", "allreduce", "300000"],
            &["within", "reduce", "100000"],
            &["within", "scan", "1000"],
        ],
    );
}

/// Some of its messages are under way, or none yet.
#[test]
fn a_rank_dies_amid_nonblocking_ones() {
    die(
        "a_rank_dies_amid_nonblocking_ones",
        &[
            &["amid", "barrier", "0"],
            &["amid", "broadcast", "1"],
            &["amid", "allreduce", "3"],
            &["amid", "allgather", "10"],
            &["amid", "alltoall", "30"],
        ],
    );
}

/// Wherever it is: the kill comes from outside.
#[test]
fn a_rank_dies_anywhere() {
    for (turn, pause) in [0, 3, 7, 12].into_iter().enumerate() {
        for way in ways("a_rank_dies_anywhere", turn) {
            let mut job = start(&way, &["any"]);
            job.hear("1 ready");
            std::thread::sleep(Duration::from_millis(pause));
            job.kill(1);
            finish(job, &format!("{way:?} after {pause} ms"));
        }
    }
}
