//! Instructions of this program: it runs itself under callgrind.

use std::process::Command;

use crate::error::{Error, Result};

/// Refuses where there is no valgrind.
pub(crate) fn require() -> Result<()> {
    let found = Command::new(VALGRIND).arg("--version").output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(&String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(Error::Callgrind(format!(
            "'{VALGRIND} --version' cannot be run: {error}; without --count instructions nothing needs it"
        ))),
    }
}

/// Returns the instructions of `tagwire match` with these words, from its start to its end.
pub(crate) fn collected(words: impl IntoIterator<Item = String>) -> Result<u64> {
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let output = Command::new(VALGRIND)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg("match")
        .args(words)
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

/// Returns an option with its value, as one word.
pub(crate) fn option(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn failed(said: &str) -> Error {
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Error::Callgrind(last.unwrap_or("valgrind said nothing").to_owned())
}

const VALGRIND: &str = "valgrind";
