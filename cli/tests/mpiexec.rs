//! `mpiexec` as people type it who know another one. `tagwire mpiexec` is what the tree's script starts.

use std::path::Path;

use crate::command::{Outcome, tagwire};

fn mpiexec(line: &str) -> Outcome {
    tagwire().arg("mpiexec").args(line.split(' ')).outcome()
}

/// Runs it with a file as standard input.
fn with_input(name: &str, line: &str, input: &Path) -> Outcome {
    let words = line.split(' ');
    tagwire().arg(name).args(words).stdin_from(input).outcome()
}

#[test]
fn rank_0_reads_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    // More than a pipe holds.
    std::fs::write(&input, "0123456789\n".repeat(100_000)).unwrap();
    for name in ["mpiexec", "mpirun"] {
        let outcome = with_input(name, "-n 2 -l wc -c", &input);
        let mut lines: Vec<_> = outcome.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["[0] 1100000", "[1] 0"], "{outcome:?}");
    }
    let outcome = with_input("mpiexec", "-n 2 --stdin none -l wc -c", &input);
    assert!(outcome.stdout.contains("[0] 0\n"), "{outcome:?}");
    let outcome = with_input("mpiexec", "-n 2 -s all -l wc -c", &input);
    assert!(outcome.stdout.contains("[1] 1100000\n"), "{outcome:?}");
    // Nobody reads it, and it is in nobody's way.
    let outcome = with_input("mpiexec", "-n 2 true", &input);
    assert_eq!(outcome.status, 0, "{outcome:?}");
}

#[test]
fn standard_input_may_be_closed() {
    let script = "exec \"$0\" mpiexec -n 2 -l wc -c <&-";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tagwire")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 0", "[1] 0"]);
}

/// What is left of a pipe is for who comes next.
#[test]
fn a_job_that_does_not_read_takes_nothing() {
    let script = "printf 'a\\nb\\n' | { \"$0\" mpiexec -n 2 true; cat; }";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tagwire")])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"a\nb\n");
}

#[test]
fn habits_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    for (line, expected) in [
        ("-np 1 -genv A b -env C d sh -c echo\u{a0}$A$C", "bd\n"),
        (&format!("-n 1 -wdir {folder} pwd"), &format!("{folder}\n")),
        ("-host localhost -ppn 1 -n 1 -l echo a", "[0] a\n"),
    ] {
        let words = line.split(' ').map(|word| word.replace('\u{a0}', " "));
        let outcome = tagwire().arg("mpiexec").args(words).outcome();
        assert_eq!(outcome.stdout, expected, "{line}: {outcome:?}");
    }
}

#[test]
fn what_has_no_effect_is_a_note() {
    let outcome = mpiexec("-n 1 --mca btl self --map-by core true");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(outcome.stderr, "mpiexec: --mca, --map-by: no effect here\n");
    let outcome = mpiexec("true");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(
        outcome.stderr,
        "mpiexec: 1 rank of true, since there is no -n\n"
    );
}

#[test]
fn what_is_refused_is_so_by_the_name_of_the_command() {
    for (line, said) in [
        (
            "-n 2 -timeuot 5 true",
            "mpiexec: -timeuot is not known here, did you mean '--timeout'?: 'mpiexec --help' lists the options\n",
        ),
        (
            "-n 2 -gdb true",
            "mpiexec: -gdb is not known here: start the debugger as the program, as in 'mpiexec -n 2 xterm -e gdb ./program', or attach it to a rank by its process id\n",
        ),
        (
            "-n 2 -x NO_SUCH_VARIABLE true",
            "mpiexec: -x NO_SUCH_VARIABLE: it is not set here; -x NAME=VALUE sets it\n",
        ),
        (
            "-n 2 -wdir /no/such true",
            "mpiexec: the ranks are to run in '/no/such', which is no directory\n",
        ),
        (
            "-n 2 --stdin 2 true",
            "mpiexec: rank 2 is to read the standard input, and the job has 2\n",
        ),
        (
            "-n 2",
            "mpiexec: which program? mpiexec -n N PROGRAM [ARGUMENTS]\n",
        ),
    ] {
        let outcome = mpiexec(line);
        assert_eq!((outcome.status, &*outcome.stderr), (1, said), "{line}");
    }
    let outcome = mpiexec("-n two true");
    let said = "error: invalid value 'two' for '--ranks <N>': invalid digit found in string";
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.starts_with(said), "{outcome:?}");
    let outcome = tagwire().args(["mpirun", "-n", "2"]).outcome();
    let said = "mpirun: which program? mpirun -n N PROGRAM [ARGUMENTS]\n";
    assert_eq!(outcome.stderr, said);
}

#[test]
fn several_programs_are_one_job() {
    let said = |name: &str| format!("echo {name} $TAGWIRE_RANK/$TAGWIRE_SIZE $A $TAGWIRE_APPNUM");
    let (first, second) = (said("first"), said("second"));
    let words = [
        "mpiexec", "-l", "-n", "1", "-env", "A", "x", "sh", "-c", &first,
    ];
    let more = [
        ":", "-n", "2", "-env", "A", "y", "sh", "-c", &second, ":", "echo", "third",
    ];
    let outcome = tagwire().args(words).args(more).outcome();
    let mut lines: Vec<_> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    let expected = [
        "[0] first 0/4 x 0",
        "[1] second 1/4 y 1",
        "[2] second 2/4 y 1",
        "[3] third",
    ];
    assert_eq!(lines, expected, "{outcome:?}");
}

#[test]
fn it_says_its_version() {
    for word in ["--version", "-V", "-version"] {
        let outcome = mpiexec(word);
        assert_eq!(outcome.status, 0);
        let said = format!("mpiexec of Tagwire {} (", env!("CARGO_PKG_VERSION"));
        assert!(outcome.stdout.starts_with(&said), "{outcome:?}");
    }
}
