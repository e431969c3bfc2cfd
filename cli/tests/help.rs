//! Help that fits on a screen, and what shells and `man` read.

use crate::command::tagwire;

fn said(words: &[&str]) -> String {
    let outcome = tagwire().args(words).outcome();
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{words:?}");
    outcome.stdout
}

#[test]
fn the_first_help_fits_on_a_screen() {
    for (words, most, parts) in [
        (
            &["mpiexec", "--help"][..],
            45,
            &["-wdir DIR", "tagwire run --help"][..],
        ),
        (&["mpirun", "-h"], 45, &["Usage: mpirun -n N"]),
        (
            &["run", "-h"],
            50,
            &["--bind", "--help", "tagwire info settings"],
        ),
        (
            &["bench", "-h"],
            75,
            &["  latency ", "--sizes", "tagwire bench TEST -h"],
        ),
        (
            &["bench", "latency", "-h"],
            75,
            &["--posted", "--sizes", "More: --help"],
        ),
    ] {
        let text = said(words);
        let lines = text.lines().count();
        assert!(lines <= most, "{words:?} has {lines} lines: {text}");
        for part in parts {
            assert!(text.contains(part), "{words:?} lacks {part}: {text}");
        }
        assert!(!text.contains("[env: TAGWIRE_"), "{text}");
    }
    for words in [["run", "--help"], ["bench", "--help"]] {
        assert!(said(&words).contains("[env: TAGWIRE_LOG]"));
    }
}

#[test]
fn the_tests_of_bench_are_listed() {
    let text = said(&["bench", "--list"]);
    let line = "  latency               Half the round trip of a message that goes back and forth between two ranks\n";
    assert!(
        text.starts_with("Tests:\n") && text.contains(line),
        "{text}"
    );
    let says = |line: &str| line.starts_with("  ") && line.split_whitespace().count() > 3;
    assert!(text.lines().skip(1).all(says), "{text}");
}

#[test]
fn shells_complete_names_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let text = said(&["completions", shell]);
        for part in ["allgather", "coll-check", "on-failure"] {
            assert!(text.contains(part), "{shell} lacks {part}");
        }
    }
}

#[test]
fn manual_pages_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    said(&["man", pages.to_str().unwrap()]);
    for (name, part) in [
        ("tagwire.1", "tagwire\\-bench(1)"),
        ("tagwire-run.1", "output\\-dir"),
        ("mpiexec.1", "Usage: mpiexec -n N"),
        ("mpirun.1", "Usage: mpirun -n N"),
    ] {
        let page = std::fs::read_to_string(pages.join(name)).unwrap();
        assert!(
            page.contains(".TH ") && page.contains(part),
            "{name}: {page}"
        );
    }
}

#[test]
fn every_command_says_the_version() {
    let line = said(&["version"]);
    let number = env!("CARGO_PKG_VERSION");
    assert!(line.starts_with(&format!("tagwire {number} (")), "{line}");
    assert_eq!(said(&["--version"]), line);
    for name in ["bench", "run", "info", "mpi"] {
        let of_it = said(&[name, "--version"]);
        assert!(of_it.contains(number), "{of_it}");
    }
}

/// Each that works here is a row of its own; what reaches nobody is not among them.
#[test]
fn all_transports_are_measured() {
    let words = "bench latency -t all --keep-going -m 8 -i 2 -x 0 --format csv";
    let outcome = tagwire().args(words.split(' ')).outcome();
    let rows: Vec<_> = outcome.stdout.lines().collect();
    assert!(rows.iter().any(|row| row.contains("shm")), "{outcome:?}");
    assert!(!rows.iter().any(|row| row.contains("null")), "{outcome:?}");
}
