//! The campaign for a few seconds: the first seeds, which are the same each time. `ci/full` has it go on for longer.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::process::{Command, Output};

/// How many trials `ci/test` runs: some twelve seconds of processors.
const TRIALS: u64 = 18;
/// For so many seconds trials are run instead.
const SECONDS: &str = "CAMPAIGN_SECONDS";

/// What a trial may be void for where there are root and the command `ip`: MPI programs that are not built, libraries that are not
/// installed.
const MISSING: [&str; 2] = ["is not built", "cannot open"];

/// The programs, and whether one is looked at that is stuck for less than the bound.
const PROGRAMS: [(&str, bool); 6] = [
    ("mesh", true),
    ("collectives", false),
    ("flood", false),
    ("partitioned", false),
    ("mpi", true),
    ("one-sided", false),
];

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
    assert_eq!(finds, 0);
    assert!(voids < trials, "nothing was run");
    if has_hosts() {
        let said = String::from_utf8_lossy(&output.stdout);
        let reasons = said.lines().filter(|line| line.starts_with("  "));
        let missing = reasons.filter(|line| MISSING.iter().any(|text| line.contains(text)));
        let missing = missing.count() as u64;
        assert!(
            voids <= missing,
            "{voids} void trials, {missing} without what they need"
        );
        assert!(2 * voids <= trials, "{voids} of {trials} trials are void");
    }
}

/// Whether two hosts can be made here: this takes root, and the command `ip`.
fn has_hosts() -> bool {
    let name = format!("trials-{}", std::process::id());
    let ip = |verb: &str| {
        let command = Command::new("ip").args(["netns", verb, &name]).output();
        command.is_ok_and(|output| output.status.success())
    };
    ip("add") && ip("delete")
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

/// A rank that makes no progress for a while, and says all the time that it lives; its peers say so too.
#[test]
fn a_rank_that_lives_and_is_stuck_is_found() {
    let of = |program: &str, millis: u32, repeats: &str| {
        let mut command = campaign(&["--seeds", "0..1", "--ground", "shm", "--program", program]);
        command.args(["--disturbance", "late", "--repeats", repeats]);
        let output = command
            .env("CAMPAIGN_STALL", format!("1:{millis}"))
            .output();
        let output = output.unwrap();
        let [_, voids, finds] = counts(&output);
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            voids > 0,
            finds,
        )
    };
    // They wait more than they compute.
    std::thread::scope(|scope| {
        for (program, in_time) in PROGRAMS {
            scope.spawn(move || {
                let (said, is_void, _) = of(program, 2000, "0");
                // Without the compiler of MPI programs these are void.
                let has_stood = [
                    "rank 1 has done nothing for",
                    "rank 1 waits for 0: nothing has ended for",
                    "no message to rank 1 has ended for",
                ];
                let is_found = has_stood.iter().any(|words| said.contains(words));
                assert!(is_void || is_found, "{program}: {said}");
                if in_time {
                    assert_eq!(of(program, 300, "2").2, 0, "{program}");
                }
            });
        }
    });
}

#[test]
fn a_trial_that_runs_everywhere_and_cannot_is_a_find() {
    let mut command = campaign(&["--seeds", "0..1", "--ground", "shm", "--program", "mesh"]);
    let output = command.env("TMPDIR", "/dev/null/none").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(counts(&output), [1, 0, 1]);
}
