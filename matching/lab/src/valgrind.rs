//! This program under valgrind: it runs itself, and the difference of two runs that differ in their operations alone is what
//! these cost.

use std::process::Command;

use crate::error::{Error, Result};

/// Refuses where there is no valgrind; `option` asks for it.
pub(crate) fn require(option: &str) -> Result<()> {
    let found = Command::new(VALGRIND).arg("--version").output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(&String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(Error::Valgrind(format!(
            "'{VALGRIND} --version' cannot be run: {error}; without {option} nothing needs it"
        ))),
    }
}

/// Returns the instructions of `tagwire match` with these words, from its start to its end.
pub(crate) fn instructions(words: impl IntoIterator<Item = String>) -> Result<u64> {
    let callgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    figure(&callgrind, words, "Collected : ")
}

/// Returns how often `tagwire match` with these words allocates memory or resizes it, in whatever language its engines are.
pub(crate) fn allocations(words: impl IntoIterator<Item = String>) -> Result<u64> {
    let memcheck = [
        "--tool=memcheck",
        "--leak-check=no",
        "--undef-value-errors=no",
    ];
    figure(&memcheck, words, "total heap usage: ")
}

/// The number that follows on a text in what a tool says.
fn figure(tool: &[&str], words: impl IntoIterator<Item = String>, text: &str) -> Result<u64> {
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let output = Command::new(VALGRIND)
        .args(tool)
        .arg(program)
        .arg("match")
        .args(words)
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match number_after(&said, text) {
        Some(number) if output.status.success() => Ok(number),
        _ => Err(failed(&said)),
    }
}

/// `12,345 allocs` is 12345.
fn number_after(said: &str, text: &str) -> Option<u64> {
    let rest = said.lines().find_map(|line| line.split(text).nth(1))?;
    let number = rest.split_whitespace().next()?;
    number.replace(',', "").parse().ok()
}

/// Returns an option with its value, as one word.
pub(crate) fn option(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn failed(said: &str) -> Error {
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Error::Valgrind(last.unwrap_or("valgrind said nothing").to_owned())
}

const VALGRIND: &str = "valgrind";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_tools_write_them() {
        let said = "==7== in use at exit: 5 bytes\n==7==   total heap usage: 1,234,567 allocs, 12 frees, 9 bytes allocated\n";
        assert_eq!(number_after(said, "total heap usage: "), Some(1_234_567));
        assert_eq!(
            number_after("==7== Collected : 8901\n", "Collected : "),
            Some(8901)
        );
        assert_eq!(number_after(said, "Collected : "), None);
    }
}
