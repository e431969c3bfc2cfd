//! Exit statuses, nearest names and help of the command.

use std::path::Path;

use crate::command::{Outcome, tagwire};

fn outcome(arguments: &[&str]) -> Outcome {
    tagwire().args(arguments).outcome()
}

/// The subcommands, as the command's own help lists them.
fn subcommands() -> Vec<String> {
    let help = outcome(&["--help"]).stdout;
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    let name = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    list.lines()
        .map(name)
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn help_that_is_asked_for_is_no_error() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["help"],
        &["help", "run"],
        &["--version"],
    ] {
        let outcome = outcome(arguments);
        assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.is_empty(), "{outcome:?}");
        assert!(outcome.stdout.contains("tagwire"), "{outcome:?}");
    }
}

#[test]
fn the_help_of_every_subcommand_has_units_exit_statuses_and_examples() {
    let names = subcommands();
    assert!(names.contains(&"info".to_owned()) && names.contains(&"run".to_owned()));
    for name in names {
        let outcome = outcome(&[&name, "--help"]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let mut parts = vec!["Usage:", "Exit status:"];
        let takes_no_sizes = ["mpi", "completions", "man", "version"];
        parts.extend((!takes_no_sizes.contains(&&*name)).then_some("K is 1024"));
        for part in parts {
            assert!(outcome.stdout.contains(part), "{name} lacks {part}");
        }
        let example = format!("tagwire {name} ");
        let (_, end) = outcome.stdout.split_once("Examples:").unwrap();
        assert!(end.contains(&example), "{name}: {end}");
    }
}

#[test]
fn what_is_not_understood_is_bad_usage() {
    for arguments in [
        &[][..],
        &["run"],
        &["run", "-n"],
        &["run", "-n", "0", "--", "true"],
        &["run", "-n", "-1", "--", "true"],
        &["run", "-n", "two", "--", "true"],
        &["run", "-n", "99999999999", "--", "true"],
        &["run", "-n", "4294967295", "--", "true"],
        &["run", "-n", "1", "--bind", "1-0", "--", "true"],
        &["run", "-n", "1", "--timeout", "5m3", "--", "true"],
        &["run", "-n", "1", "--stdin", "rank", "--", "true"],
        &["run", "-n", "1", "--stdin", "1", "--", "true"],
        &["version", "extra"],
        &["completions"],
        &["completions", "dsh"],
        &["run", "-n", "1", "--timeout", "0", "--", "true"],
        &["bench", "latency", "-t", "null"],
        &["compare"],
        &["compare", "one.json"],
        &["compare", "one.json", "two.json", "--fail-above", "much"],
        &["report"],
        &["report", "one.json", "--format", "pdf"],
        &["info", "extra"],
        &["info", "--log"],
        &["info", "--json", "--settings-markdown"],
    ] {
        let outcome = outcome(arguments);
        assert_eq!(outcome.status, 1, "{arguments:?}: {outcome:?}");
        assert!(outcome.stdout.is_empty(), "{arguments:?}: {outcome:?}");
        assert!(!outcome.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn mistyped_names_get_the_nearest() {
    for (arguments, nearest) in [
        (&["inof"][..], "'info'"),
        (&["rn"], "'run'"),
        (&["bench", "latnecy"], "'latency'"),
        (&["bench", "latency", "-t", "smh"], "'shm'"),
        (&["bench", "latency", "-t", "tcp"], "'ofi:tcp'"),
        (&["bench", "latency", "-t", "shm,rc_verb"], "'ucx:rc_verbs'"),
        (&["bench", "latency", "--engine", "bin"], "'bins'"),
        (&["info", "--jsn"], "'--json'"),
        (&["info", "--lgo", "warn"], "'--log'"),
        (&["info", "--setings"], "'--settings-markdown'"),
        (&["info", "--log", "wran"], "'warn'"),
        (
            &["run", "-n", "1", "--bnd", "core", "--", "true"],
            "'--bind'",
        ),
        (
            &["run", "-n", "1", "--bind", "cores", "--", "true"],
            "'core'",
        ),
        (
            &["run", "-n", "1", "--on-failure", "abrot", "--", "true"],
            "'abort'",
        ),
        (
            &["run", "-n", "1", "--on-failure", "cnt", "--", "true"],
            "'continue'",
        ),
        (
            &["run", "-n", "1", "--log", "degub", "--", "true"],
            "'debug'",
        ),
    ] {
        let outcome = outcome(arguments);
        assert_eq!(outcome.status, 1, "{arguments:?}: {outcome:?}");
        assert!(
            outcome.stderr.contains(nearest),
            "{arguments:?}: {outcome:?}"
        );
    }
}

#[test]
fn what_other_tools_have_is_named_by_what_there_is() {
    for (arguments, hint) in [
        (&["bench", "latency", "--append"][..], "'--resume' goes on"),
        (
            &["bench", "latency", "--plot", "x.png"],
            "'tagwire report FILE.json",
        ),
        (
            &["bench", "latency", "--plot=x.png"],
            "'tagwire report FILE.json",
        ),
        (&["bench", "latency", "--runs", "3"], "'--launches COUNT'"),
        (&["bench", "latency", "--json"], "'--format json'"),
        (&["bench", "latency", "-m", "4KB"], "'4K' or '4KiB'"),
    ] {
        let outcome = outcome(arguments);
        assert_eq!(outcome.status, 1, "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(hint), "{arguments:?}: {outcome:?}");
        assert!(
            !outcome.stderr.contains("similar"),
            "{arguments:?}: {outcome:?}"
        );
    }
    // Of other subcommands it is a mistyped name as ever.
    let other = outcome(&["info", "--plot"]);
    assert!(!other.stderr.contains("'-o FILE.csv'"), "{other:?}");
}

#[test]
fn compare_has_its_own_formats_and_exit_statuses() {
    let help = outcome(&["compare", "--help"]).stdout;
    for part in [
        "verdict",
        "  0  compared",
        "  1  usage",
        "  2  the output",
        "  4  with --fail-above",
        "  6  with --fail-above",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    for part in ["size value", "csv"] {
        assert!(!help.contains(part), "{part}: {help}");
    }
    assert_eq!(
        outcome(&["compare", "a.json", "b.json", "--format", "csv"]).status,
        1
    );
}

#[test]
fn settings_in_the_environment_are_checked() {
    for (name, value, said) in [
        ("TAGWIRE_LOGG", "warn", "did you mean 'TAGWIRE_LOG'?"),
        ("TAGWIRE_LOG", "wran", "did you mean 'warn'?"),
    ] {
        for arguments in [&["info"][..], &["run", "-n", "1", "--", "true"]] {
            let outcome = tagwire().args(arguments).env(name, value).outcome();
            assert_eq!(outcome.status, 1, "{outcome:?}");
            assert!(outcome.stderr.contains(said), "{outcome:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let value = std::ffi::OsStr::from_bytes(b"\xff");
    let outcome = tagwire().arg("info").env("TAGWIRE_LOG", value).outcome();
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("UTF-8"), "{outcome:?}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for arguments in [
        &["info"][..],
        &["info", "--json"],
        &["--help"],
        &["run", "--help"],
    ] {
        let outcome = tagwire().args(arguments).stdout_closed().outcome();
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr.is_empty(), "{outcome:?}");
    }
}

#[test]
fn a_closed_error_pipe_changes_no_status() {
    for arguments in [&["inof"][..], &["info", "--log", "x"], &["run"]] {
        let outcome = tagwire().args(arguments).stderr_closed().outcome();
        assert_eq!(outcome.status, 1, "{arguments:?}: {outcome:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let outcome = outcome(&["compare", "no-such-file.json", "nor-this.json"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("no-such-file.json"), "{outcome:?}");
}

#[test]
fn a_full_disk_is_a_failed_run() {
    let outcome = tagwire()
        .arg("info")
        .stdout_to(Path::new("/dev/full"))
        .outcome();
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(
        outcome.stderr.contains("cannot write to standard output"),
        "{outcome:?}"
    );
}
