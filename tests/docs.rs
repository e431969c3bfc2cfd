//! What README.md and docs/performance.md say of speed is what docs/results/ has.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn tables(root: &Path, argument: &str) -> Output {
    let script = root.join("bench/tables");
    Command::new(script).arg(argument).output().unwrap()
}

#[test]
fn the_tables_are_those_of_the_stored_results() {
    let output = tables(Path::new(ROOT), "check");
    assert!(output.status.success(), "{output:?}");
}

/// On a copy: another figure in the README is found, written over, and found no more.
#[test]
fn a_figure_that_was_not_measured_is_found() {
    let copy = tempfile::tempdir().unwrap();
    for folder in ["bench", "docs/results"] {
        fs::create_dir_all(copy.path().join(folder)).unwrap();
    }
    let mut files = vec![
        "bench/tables".to_owned(),
        "README.md".to_owned(),
        "docs/performance.md".to_owned(),
    ];
    for entry in fs::read_dir(format!("{ROOT}/docs/results")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        files.push(format!("docs/results/{name}"));
    }
    for file in &files {
        fs::copy(Path::new(ROOT).join(file), copy.path().join(file)).unwrap();
    }
    let readme = copy.path().join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let (before, row) = text.split_once("| latency, 8 B, us | ").unwrap();
    let invented = format!("{before}| latency, 8 B, us | 0.001{row}");
    fs::write(&readme, invented).unwrap();
    let output = tables(copy.path(), "check");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("README.md"));
    assert!(tables(copy.path(), "write").status.success());
    assert!(tables(copy.path(), "check").status.success());
    assert_eq!(fs::read_to_string(&readme).unwrap(), text);
}
