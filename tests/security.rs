//! Each line of `docs/security.md` is tested: it names tests, and these are there.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../docs/security.md");

/// A line of the page.
struct Line<'a> {
    number: &'a str,
    /// The files that it names, with the tests in each.
    tests: Vec<(&'a str, Vec<&'a str>)>,
}

/// Returns what stands between pairs of backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the numbered lines of a page.
fn lines(page: &str) -> Vec<Line<'_>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.map(|row| row.trim_end_matches('|').split(" | ").map(str::trim));
    cells
        .filter_map(|cells| {
            let cells: Vec<&str> = cells.collect();
            let [number, _, tests] = cells[..] else {
                return None;
            };
            number.parse::<u32>().ok()?;
            let tests = tests.split(';').filter_map(|part| {
                let mut names = quoted(part).into_iter();
                Some((names.next()?, names.collect()))
            });
            Some(Line {
                number,
                tests: tests.collect(),
            })
        })
        .collect()
}

/// Returns what a line lacks.
fn missing(line: &Line<'_>, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let number = line.number;
    if line.tests.is_empty() {
        return vec![format!("line {number} names no test")];
    }
    let lacks = line.tests.iter().flat_map(|(file, names)| {
        let Some(source) = source(file) else {
            return vec![format!("line {number}: there is no {file}")];
        };
        if names.is_empty() {
            return vec![format!("line {number} names no test of {file}")];
        }
        let is_there = |name: &&&str| is_test(&source, name);
        let lacking = names.iter().filter(|name| !is_there(name));
        lacking
            .map(|name| format!("line {number}: {file} has no test {name}"))
            .collect()
    });
    lacks.collect()
}

/// Whether a source has a test of this name: a function under `#[test]`.
fn is_test(source: &str, name: &str) -> bool {
    let Some((before, _)) = source.split_once(&format!("fn {name}(")) else {
        return false;
    };
    let attributes = before.trim_end().rsplit(['}', ';', '{']).next();
    attributes.is_some_and(|attributes| attributes.contains("#[test]"))
}

#[test]
fn each_line_is_tested() {
    let lines = lines(PAGE);
    let numbers: Vec<String> = lines.iter().map(|line| line.number.to_owned()).collect();
    let counted: Vec<String> = (1..=lines.len()).map(|number| number.to_string()).collect();
    assert_eq!(numbers, counted);
    assert!(lines.len() > 20, "{} lines", lines.len());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = |file: &str| fs::read_to_string(root.join(file)).ok();
    let missing: Vec<String> = lines
        .iter()
        .flat_map(|line| missing(line, source))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_line_without_a_test_is_found() {
    let source = |file: &str| {
        (file == "a.rs").then(|| "#[test]\nfn tested() {}\nfn helper() {}\n".to_owned())
    };
    for (tests, lacks) in [
        ("`a.rs`: `tested`", None),
        ("", Some("line 1 names no test")),
        ("none", Some("line 1 names no test")),
        ("`a.rs`", Some("names no test of a.rs")),
        ("`b.rs`: `tested`", Some("there is no b.rs")),
        ("`a.rs`: `tested`, `other`", Some("has no test other")),
        ("`a.rs`: `helper`", Some("has no test helper")),
    ] {
        let page = format!("| line | what | test |\n|---|---|---|\n| 1 | so `x` | {tests} |\n");
        let lines = lines(&page);
        assert_eq!(lines.len(), 1, "{tests}");
        let found = missing(&lines[0], source).join("; ");
        assert_eq!(lacks.is_none(), found.is_empty(), "{tests}: {found}");
        assert!(found.contains(lacks.unwrap_or_default()), "{found}");
    }
}
