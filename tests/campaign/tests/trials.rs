//! The campaign for a few seconds: the first seeds, which are the same each time. `ci/full` has it go on for longer.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::process::Command;

/// How many trials `ci/test` runs: some twelve seconds of processors.
const TRIALS: u64 = 18;
/// For so many seconds trials are run instead.
const SECONDS: &str = "CAMPAIGN_SECONDS";

#[test]
fn nothing_is_lost_wrong_late_or_left() {
    let seconds = std::env::var(SECONDS).ok();
    let trials = if seconds.is_some() { 100_000 } else { TRIALS };
    let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
    command.args(["run", "--seeds", &format!("0..{trials}")]);
    if let Some(seconds) = &seconds {
        command.args(["--seconds", seconds]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}{errors}");
    assert!(output.status.success(), "{said}{errors}");
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.ends_with("0 finds") && !last.starts_with("0 trials"),
        "{last}"
    );
}
