//! Sessions that several threads call, and scopes that end in bad ways.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod process;

use process::{Job, Outcome};

fn run(ranks: u32, options: &[&str], scenario: &str) -> Outcome {
    let outcome = Job::of_ranks(ranks, options, &[scenario]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome
}

#[test]
fn many_threads_exchange_at_once() {
    for options in [
        &[][..],
        &["--shm-cma", "off"],
        &["--wait", "sleep"],
        &["--engine", "list"],
    ] {
        let outcome = run(2, options, "threads");
        for rank in [0, 1] {
            outcome.line(&format!("{rank} exchanged all"));
        }
    }
}

#[test]
fn other_threads_are_refused_where_only_one_may_call() {
    let outcome = run(1, &[], "wrong-thread");
    outcome.line("0 refused others at level Single");
    outcome.line("0 refused others at level Funneled");
}

#[test]
fn scopes_that_panic_and_receives_that_are_dropped_do_no_harm() {
    for options in [&[][..], &["--shm-cma", "off"], &["--eager-limit", "0"]] {
        let outcome = run(2, options, "scopes");
        for rank in [0, 1] {
            outcome.line(&format!("{rank} left all scopes"));
        }
    }
}
