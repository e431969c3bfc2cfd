//! `kill -9` of a rank in a collective, in each phase: the others' operations fail with its name, soon, and they go on without it.

use std::time::Duration;

use crate::process::{Job, KILLED, has};

const RANKS: u32 = 3;

/// Ways to go: boards and messages in shared memory, a layer that matches in the transport, a network.
fn ways(test: &str) -> Vec<Vec<&'static str>> {
    let mut ways = vec![vec![], vec!["--pml", "cm"]];
    for transport in ["ofi:tcp;ofi_rxm", "ucx:tcp,self"] {
        if has(test, transport) {
            ways.push(vec!["--transport", transport]);
        }
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

fn dies(test: &str, scenario: &[&str]) {
    for way in ways(test) {
        let what = format!("{way:?} {scenario:?}");
        eprintln!("{what}");
        finish(start(&way, scenario), &what);
    }
}

/// The others have entered, and wait.
#[test]
fn a_rank_dies_before_it_enters() {
    for what in [
        "barrier",
        "broadcast",
        "reduce-to-it",
        "allreduce",
        "scan",
        "reduce-scatter",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
    ] {
        dies("a_rank_dies_before_it_enters", &["absent", what]);
    }
}

/// It has given its numbers, or a part of them, and combines: in a line, in a piece of several, in a long one by parts.
#[test]
fn a_rank_dies_while_it_combines() {
    for (what, len) in [
        ("allreduce", "3"),
        ("allreduce", "3000"),
        ("allreduce", "300000"),
        ("reduce", "100000"),
        ("scan", "1000"),
    ] {
        dies("a_rank_dies_while_it_combines", &["within", what, len]);
    }
}

/// Some of its messages are under way, or none yet.
#[test]
fn a_rank_dies_amid_nonblocking_ones() {
    for (what, steps) in [
        ("barrier", "0"),
        ("broadcast", "1"),
        ("allreduce", "3"),
        ("allgather", "10"),
        ("alltoall", "30"),
    ] {
        dies("a_rank_dies_amid_nonblocking_ones", &["amid", what, steps]);
    }
}

/// Wherever it is: the kill comes from outside.
#[test]
fn a_rank_dies_anywhere() {
    for way in ways("a_rank_dies_anywhere") {
        for pause in [0, 3, 7, 12] {
            let mut job = start(&way, &["any"]);
            job.hear("1 ready");
            std::thread::sleep(Duration::from_millis(pause));
            job.kill(1);
            finish(job, &format!("{way:?} after {pause} ms"));
        }
    }
}
