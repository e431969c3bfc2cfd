//! The campaign for a few seconds: the first seeds, which are the same each time. `ci/full` has it go on for longer.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::process::{Command, Output};

/// How many trials `ci/test` runs: some twelve seconds of processors.
const TRIALS: u64 = 18;
/// For so many seconds trials are run instead.
const SECONDS: &str = "CAMPAIGN_SECONDS";

/// Returns the command that runs trials.
fn campaign(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
    command.arg("run").args(arguments);
    command
}

/// Returns how many trials there were, how many of them could not be run, and how many finds.
fn counts(output: &Output) -> [u64; 3] {
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}{errors}");
    let last = said.lines().last().unwrap();
    let numbers = last.split(' ').filter_map(|word| word.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    numbers.try_into().unwrap()
}

#[test]
fn nothing_is_lost_wrong_late_or_left() {
    let seconds = std::env::var(SECONDS).ok();
    let trials = if seconds.is_some() { 100_000 } else { TRIALS };
    let seeds = format!("0..{trials}");
    let mut command = campaign(&["--seeds", &seeds]);
    if let Some(seconds) = &seconds {
        command.args(["--seconds", seconds]);
    }
    let output = command.output().unwrap();
    let [trials, voids, finds] = counts(&output);
    assert!(output.status.success());
    assert!(voids < trials, "nothing was run");
    assert_eq!(finds, 0);
}

/// Finds that were mended: messages that were dropped without memory, and a first contact while a cable was out.
#[test]
fn what_was_found_stays_mended() {
    for (seeds, ground, program, disturbance) in [
        ("16..18", "ucx", "mesh", "memory"),
        ("15..17", "hosts-ucx", "collectives", "flap"),
    ] {
        let mut command = campaign(&["--seeds", seeds, "--ground", ground]);
        command.args(["--program", program, "--disturbance", disturbance]);
        let [_, _, finds] = counts(&command.output().unwrap());
        assert_eq!(finds, 0, "{seeds} on {ground}");
    }
}

/// What runs everywhere, in an environment that somebody has filled with settings of their own.
#[test]
fn settings_around_a_campaign_are_not_those_of_its_trials() {
    let mut command = campaign(&["--seeds", "0..1", "--ground", "shm", "--program", "mesh"]);
    let output = command
        .env("TAGWIRE_FAULT", "no such fault")
        .output()
        .unwrap();
    assert_eq!(counts(&output), [1, 0, 0]);
}

#[test]
fn a_trial_that_runs_everywhere_and_cannot_is_a_find() {
    let mut command = campaign(&["--seeds", "0..1", "--ground", "shm", "--program", "mesh"]);
    let output = command.env("TMPDIR", "/dev/null/none").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(counts(&output), [1, 0, 1]);
}
