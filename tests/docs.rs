//! What the README says of speed is what docs/performance.md says.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;

/// The rows of the tables of a page: their cells.
fn rows(page: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(format!("{}/{page}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = |line: &str| {
        line.trim_end_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    lines.map(cells).collect()
}

/// A figure without its extremes.
fn median(cell: &str) -> &str {
    cell.split(" (").next().unwrap()
}

#[test]
fn the_readme_quotes_the_measured_table() {
    let measured = rows("docs/performance.md");
    let mut quoted = 0;
    for row in rows("README.md") {
        let [what, figures @ ..] = &row[..] else {
            continue;
        };
        if !what.contains(", us") && !what.contains("/s") {
            continue;
        }
        let Some(source) = measured.iter().find(|row| row[0] == *what) else {
            panic!("docs/performance.md has no row '{what}'");
        };
        let medians: Vec<_> = source[1..].iter().map(|cell| median(cell)).collect();
        assert_eq!(figures, medians, "{what}");
        quoted += 1;
    }
    assert!(quoted >= 5, "{quoted} rows of the README are figures");
}
