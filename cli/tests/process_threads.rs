//! Sessions that several threads call, and scopes that end in bad ways.

use crate::process::{Job, Line, Outcome, rank};

/// The exit status after `abort`.
const ABORTED: i32 = 128 + 6;

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
        &["--pml", "ob1", "--engine", "list"],
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

/// The end of the scope would wait for ever; the buffer cannot be given back either.
#[test]
fn a_scope_left_by_a_panic_does_not_wait_for_ever() {
    let options = ["--close-timeout", "300ms"];
    let outcome = Job::of_ranks(2, &options, &["panic-unmatched"]).finish();
    assert_eq!(outcome.status, ABORTED, "{outcome:#?}");
    let errors = outcome.errors();
    let line = errors
        .lines()
        .find(|line| line.contains("left by a panic"))
        .unwrap_or_else(|| panic!("no word of why: {outcome:#?}"));
    for part in ["rank 1", "77", "close-timeout", "1048576 bytes"] {
        assert!(line.contains(part), "'{part}' is not named: {line}");
    }
}

#[test]
fn a_panic_while_a_buffer_is_lent_ends_the_process() {
    for scenario in ["panic-in-recv", "panic-at-scopes-end"] {
        let outcome = Line::of(&rank(), [scenario]).finish();
        assert_eq!(outcome.status, ABORTED, "{scenario}: {outcome:#?}");
        let errors = outcome.errors();
        assert!(errors.contains("buffers are lent"), "{scenario}: {errors}");
    }
}

#[test]
fn a_program_that_only_uses_the_library_has_its_log() {
    for (level, said) in [("debug", true), ("warn", false)] {
        let outcome = run(2, &["--log", level], "exchange");
        let opened = outcome.errors().contains("rank 1: debug: opened");
        assert_eq!(opened, said, "{level}: {outcome:#?}");
    }
}
