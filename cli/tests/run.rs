//! `tagwire run`: ranks, their environment, and the job's exit status.

use crate::command::{Outcome, tagwire};

fn run(arguments: &[&str]) -> Outcome {
    tagwire().arg("run").args(arguments).outcome()
}

#[test]
fn every_rank_runs_and_knows_itself() {
    let script = "echo rank $TAGWIRE_RANK of $TAGWIRE_SIZE";
    let outcome = run(&["-n", "3", "--", "sh", "-c", script]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"]);
}

#[test]
fn options_behind_the_program_are_the_programs() {
    for arguments in [
        &["-n", "1", "echo", "-x", "--tag-output", "-n"][..],
        &["-n", "1", "--", "echo", "-x", "--tag-output", "-n"],
    ] {
        let outcome = run(arguments);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert_eq!(outcome.stdout, "-x --tag-output -n\n");
    }
}

#[test]
fn the_first_failure_is_the_jobs_status() {
    let script = "[ $TAGWIRE_RANK = 1 ] && exit 37; sleep 30";
    let outcome = run(&["-n", "2", "--", "sh", "-c", script]);
    assert_eq!(outcome.status, 37, "{outcome:?}");
    assert!(outcome.stderr.contains("rank 1"), "{outcome:?}");
}

#[test]
fn others_go_on_when_told_to() {
    let script = "[ $TAGWIRE_RANK = 1 ] && exit 37; sleep 0.2; echo done";
    let outcome = run(&[
        "-n",
        "2",
        "--on-failure",
        "continue",
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (37, "done\n"),
        "{outcome:?}"
    );
}

#[test]
fn output_is_tagged_when_asked_for() {
    let outcome = run(&["-n", "2", "--tag-output", "--", "sh", "-c", "echo hello"]);
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] hello", "[1] hello"]);
}

#[test]
fn settings_reach_the_ranks() {
    let show = ["sh", "-c", "echo $TAGWIRE_LOG"];
    let flag = tagwire()
        .args(["run", "-n", "1", "--log", "error", "--"])
        .args(show)
        .env("TAGWIRE_LOG", "info")
        .outcome();
    assert_eq!(flag.stdout, "error\n", "{flag:?}");
    let inherited = tagwire()
        .args(["run", "-n", "1", "--"])
        .args(show)
        .env("TAGWIRE_LOG", "info")
        .outcome();
    assert_eq!(inherited.stdout, "info\n", "{inherited:?}");
}

#[test]
fn a_bound_rank_has_its_cpu_only() {
    let allowed = "grep Cpus_allowed_list /proc/self/status";
    let all = run(&["-n", "1", "--", "sh", "-c", allowed]).stdout;
    let all = all.split_whitespace().last().unwrap().to_owned();
    let first: String = all.chars().take_while(char::is_ascii_digit).collect();
    let outcome = run(&["-n", "2", "--bind", &first, "--", "sh", "-c", allowed]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for line in outcome.stdout.lines() {
        assert_eq!(line.split_whitespace().last(), Some(first.as_str()));
    }
    assert_eq!(outcome.stdout.lines().count(), 2);
}

#[test]
fn a_program_that_is_not_there_is_127_and_one_that_is_none_126() {
    let missing = run(&["-n", "2", "--", "no-such-program-anywhere"]);
    assert_eq!(missing.status, 127, "{missing:?}");
    assert!(
        missing.stderr.contains("no-such-program-anywhere"),
        "{missing:?}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let none = run(&["-n", "2", "--", file.path().to_str().unwrap()]);
    assert_eq!(none.status, 126, "{none:?}");
}

#[test]
fn a_job_that_takes_too_long_is_ended() {
    let outcome = run(&["-n", "2", "--timeout", "100ms", "--", "sleep", "60"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
}

#[test]
fn inside_a_job_info_names_the_launcher() {
    let program = env!("CARGO_BIN_EXE_tagwire");
    let outcome = run(&["-n", "2", "--tag-output", "--", program, "info", "launcher"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(
        outcome
            .stdout
            .contains("[1]   - tagwire run: taken, rank 1 of 2"),
        "{outcome:?}"
    );
    assert!(!outcome.stdout.contains("TAGWIRE_SECRET="), "{outcome:?}");
}

#[test]
fn habits_of_mpiexec_are_understood() {
    let said = "echo $FOO; pwd";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let path = path.to_str().unwrap();
    let outcome = run(&[
        "--tag-output",
        "-np",
        "2",
        "-x",
        "FOO=a=b",
        "-x",
        "PATH",
        "--wdir",
        path,
        "-t",
        "shm",
        "--",
        "sh",
        "-c",
        said,
    ]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for rank in 0..2 {
        for line in ["a=b", path] {
            assert!(
                outcome.stdout.contains(&format!("[{rank}] {line}\n")),
                "{outcome:?}"
            );
        }
    }
    // The program's own are left alone.
    let outcome = run(&["-np", "1", "echo", "-np", "3"]);
    assert_eq!(outcome.stdout, "-np 3\n", "{outcome:?}");
}

#[test]
fn each_rank_has_a_file_of_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/out");
    let script = "echo out $TAGWIRE_RANK; echo err >&2; echo out again";
    for _ in 0..2 {
        let outcome = run(&[
            "-n",
            "2",
            "--output-dir",
            path.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            script,
        ]);
        assert_eq!((outcome.status, &*outcome.stdout), (0, ""), "{outcome:?}");
        for rank in 0..2 {
            let text = std::fs::read_to_string(path.join(format!("rank-{rank}.txt"))).unwrap();
            assert_eq!(text, format!("out {rank}\nerr\nout again\n"));
        }
    }
}

#[test]
fn what_cannot_be_run_so_is_named() {
    for (arguments, part) in [
        (&["--wdir", "/no/such", "--", "true"][..], "/no/such"),
        (
            &["--output-dir", "/dev/null/x", "--", "true"],
            "/dev/null/x",
        ),
        (
            &["--output-dir", "x", "--tag-output", "--", "true"],
            "--tag-output",
        ),
        (
            &["-x", "TAGWIRE_NO_SUCH_THING", "--", "true"],
            "-x TAGWIRE_NO_SUCH_THING",
        ),
        (&["-x", "=1", "--", "true"], "without a name"),
        (
            &["--", "true", ":", "-n", "1", "--timeout", "5", "--", "true"],
            "--timeout is of the whole job: it goes in front of the first program",
        ),
        (&["--", "true", ":", "-np", "0", "true"], "0 is not in 1.."),
    ] {
        let outcome = run(&[&["-n", "1"], arguments].concat());
        assert_ne!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    let outcome = run(&["-n", "1", "--", "echo", "a", ":", "b"]);
    assert_eq!((outcome.status, &*outcome.stdout), (0, "a : b\n"));
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
}

#[test]
fn a_job_may_have_several_programs() {
    let said = "echo $TAGWIRE_RANK of $TAGWIRE_SIZE: program $TAGWIRE_APPNUM, $FOO";
    let words = [
        "-n",
        "1",
        "-x",
        "FOO=one",
        "--tag-output",
        "--",
        "sh",
        "-c",
        said,
        ":",
        "-np",
        "2",
        "-x",
        "FOO=two",
        "sh",
        "-c",
        said,
        "-n",
        ":",
        "-n",
        "1",
        "echo",
        "last",
    ];
    let outcome = run(&words);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let mut lines: Vec<_> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    let expected = [
        "[0] 0 of 4: program 0, one",
        "[1] 1 of 4: program 1, two",
        "[2] 2 of 4: program 1, two",
        "[3] last",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn input_is_nobodys_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("input");
    std::fs::write(&file, "42\n").unwrap();
    for (options, expected) in [
        (&[][..], ""),
        (&["--stdin", "none"], ""),
        (&["--stdin", "rank0"], "[0] 42\n"),
        (&["--stdin", "1"], "[1] 42\n"),
    ] {
        let line = ["run", "-n", "2", "--tag-output"];
        let outcome = tagwire()
            .args(line.iter().chain(options).chain(&["cat"]))
            .stdin_from(&file)
            .outcome();
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (0, expected),
            "{outcome:?}"
        );
    }
    let outcome = tagwire()
        .args(["run", "-n", "3", "--stdin", "all", "--tag-output", "cat"])
        .stdin_from(&file)
        .outcome();
    let mut lines: Vec<_> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 42", "[1] 42", "[2] 42"]);
}

#[test]
fn a_timeout_may_be_in_seconds() {
    let outcome = run(&["-n", "1", "--timeout", "0.1", "--", "sleep", "60"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("within 100ms"), "{outcome:?}");
}
