//! Instructions of a match: this program runs itself under callgrind, with few matches and with many.

use std::process::Command;

use tagwire_matching::EngineName;

use super::axes::{Layout, Queue, WildKind};
use super::scenario::Scenario;
use crate::error::{Error, Result};

/// Refuses where there is no valgrind.
pub(super) fn require() -> Result<()> {
    let found = Command::new(VALGRIND).arg("--version").output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(&String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(Error::Callgrind(format!(
            "'{VALGRIND} --version' cannot be run: {error}; without --count instructions nothing needs it"
        ))),
    }
}

/// Returns the instructions of a match, the loop around it included: the difference of two runs, by the difference of their
/// matches. Both fill their queue alike.
pub(super) fn per_match(engine: &EngineName, scenario: &Scenario) -> Result<f64> {
    let few = collected(engine, scenario, FEW)?;
    let many = collected(engine, scenario, MOST)?;
    Ok(many.saturating_sub(few) as f64 / f64::from(MOST - FEW))
}

fn collected(engine: &EngineName, scenario: &Scenario, matches: u32) -> Result<u64> {
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let word = |name: &str, value: String| format!("--{name}={value}");
    let output = Command::new(VALGRIND)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["match", "depth"])
        .arg(word("engine", engine.to_string()))
        .arg(word("queue", queue(scenario.queue).to_owned()))
        .arg(word("ahead", scenario.ahead.to_string()))
        .arg(word("behind", scenario.behind.to_string()))
        .arg(word("wild", scenario.wild.to_string()))
        .arg(word("wild-kind", kind(scenario.kind).to_owned()))
        .arg(word("layout", layout(scenario.layout).to_owned()))
        .arg(word("seed", scenario.seed.to_string()))
        .arg(word("only-matches", matches.to_string()))
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    match count.and_then(|count| count.trim().parse().ok()) {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(failed(&said)),
    }
}

fn failed(said: &str) -> Error {
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Error::Callgrind(last.unwrap_or("valgrind said nothing").to_owned())
}

const fn queue(queue: Queue) -> &'static str {
    match queue {
        Queue::Posted => "posted",
        Queue::Unexpected => "unexpected",
    }
}

const fn kind(kind: WildKind) -> &'static str {
    match kind {
        WildKind::Source => "source",
        WildKind::Tag => "tag",
        WildKind::Both => "both",
    }
}

const fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::Fresh => "fresh",
        Layout::Shuffled => "shuffled",
    }
}

const VALGRIND: &str = "valgrind";
/// Matches of the two runs.
const FEW: u32 = 4;
pub(super) const MOST: u32 = 36;
