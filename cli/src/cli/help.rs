//! Help: all of it by `--help`, what fits on a screen by `-h`.

use std::ffi::OsString;

use clap::{Arg, Command};
use tagwire_bench::TestName;

use super::AFTER_BENCH;

/// The options of `bench` that are on its first screen, and of a test.
const OF_BENCH: &[&str] = &[
    "ranks",
    "transport",
    "sizes",
    "iterations",
    "validate",
    "launches",
    "format",
    "output",
    "resume",
    "bind",
    "timeout",
    "list",
];

/// The options of `run` that are on its first screen.
const OF_RUN: &[&str] = &[
    "ranks",
    "bind",
    "on_failure",
    "tag_output",
    "output_dir",
    "wdir",
    "variables",
    "timeout",
    "stdin",
    "command",
];

const MORE_OF_BENCH: &str = "\
More: 'tagwire bench TEST -h' for a test, --help for all options and examples, 'tagwire info settings' for settings.";

const MORE_OF_TEST: &str = "\
More: --help for all options and examples, 'tagwire info settings' for settings.";

const MORE_OF_RUN: &str = "\
Examples:
  tagwire run -n 4 --bind core -- ./program
  tagwire run -n 1 ./leader : -n 3 ./worker

More: --help for ranks of several hosts, exit statuses and examples; 'tagwire info settings' for settings.";

/// Has the help of `bench`, or of one of its tests, and of `run` fit on a screen.
pub(super) fn of_one_screen(command: Command, test: Option<TestName>) -> Command {
    command
        .mut_subcommand("bench", |bench| match test {
            None => keep(bench, |arg| is_of(OF_BENCH, arg))
                .override_usage("tagwire bench TEST [OPTIONS]")
                .before_help(listed(beginning))
                .mut_arg("test", |test| test.hide(true))
                .after_help(MORE_OF_BENCH),
            Some(test) => keep(bench, |arg| is_of(OF_BENCH, arg) || is_own(test, arg))
                .after_help(MORE_OF_TEST),
        })
        .mut_subcommand("run", |run| {
            keep(run, |arg| is_of(OF_RUN, arg)).after_help(MORE_OF_RUN)
        })
}

fn is_of(names: &[&str], arg: &Arg) -> bool {
    names.contains(&arg.get_id().as_str())
}

/// Whether an option is one that a test has and another has not.
fn is_own(test: TestName, arg: &Arg) -> bool {
    arg.get_long().is_some_and(|name| {
        test.has_option(name) && !TestName::all().all(|other| other.has_option(name))
    })
}

/// Hides all options but those to keep.
fn keep(command: Command, is_kept: impl Fn(&Arg) -> bool) -> Command {
    command.mut_args(|arg| match is_kept(&arg) {
        true => arg,
        false => arg.hide_short_help(true),
    })
}

/// Returns the tests, a line for each.
pub fn tests() -> String {
    listed(|help| help)
}

/// What a line of a terminal has room for behind the name of a test.
const ROOM: usize = 74;

/// Returns the beginning of a sentence where the whole has no room.
fn beginning(help: &str) -> &str {
    let help = help.split(": ").next().unwrap_or(help);
    let end = [", ", " while "]
        .into_iter()
        .filter_map(|word| help.find(word))
        .min();
    match end {
        Some(end) if help.len() > ROOM => &help[..end],
        _ => help,
    }
}

fn listed(shown: impl Fn(&str) -> &str) -> String {
    let width = TestName::all().map(|test| test.name.len()).max();
    let width = width.unwrap_or_default();
    let lines =
        TestName::all().map(|test| format!("  {:width$}  {}\n", test.name, shown(test.about)));
    format!("Tests:\n{}", lines.collect::<String>())
}

/// The test of a `bench` whose help is asked for.
pub(super) fn test_to_explain(arguments: &[OsString]) -> Option<TestName> {
    let words = arguments.get(1..)?;
    let (first, words) = words.split_first()?;
    let asks = words.iter().any(|word| word == "--help" || word == "-h");
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut test = words.find_map(|word| word.parse::<TestName>().ok());
    test.take_if(|_| asks && first == "bench")
}

/// `bench` as far as it has a meaning for one test.
pub(super) fn only(bench: Command, test: TestName) -> Command {
    let hidden = |arg: &Arg| {
        let hides = |name: &str| name == "list" || !test.has_option(name);
        arg.is_positional() || arg.get_long().is_some_and(hides)
    };
    let examples = AFTER_BENCH.lines().filter(|line| {
        let is_example = line.starts_with("  tagwire bench ");
        !line.starts_with('\'') && (!is_example || line.split(' ').nth(4) == Some(test.name))
    });
    let examples = examples.collect::<Vec<_>>().join("\n");
    bench
        .about(test.about)
        .override_usage(format!("tagwire bench {test} [OPTIONS]"))
        .after_long_help(examples)
        .mut_args(|arg| match hidden(&arg) {
            true => arg.hide(true),
            false => arg,
        })
}
