//! What a command line gets that cannot be understood: exit status 1 and the nearest right name.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use tagwire_base::nearest::nearest;

use crate::cli;
use crate::failure::status;

/// What users of other tools look for in `bench` and `compare`, and what there is instead.
const WISHES: &[(&[&str], &str)] = &[
    (
        &["--append", "--continue"],
        "'--resume' goes on with an interrupted run: it measures what the file of -o lacks",
    ),
    (
        &["--plot", "--graph", "--gnuplot", "--markdown", "--html"],
        "'-o FILE.json' keeps the results, and 'tagwire report FILE.json -o FILE.html' makes a page with plots and tables of them; also .svg and .md",
    ),
    (
        &["--runs", "--repeat", "--repetitions", "--trials"],
        "'--launches COUNT' starts the job so many times",
    ),
    (
        &["--csv"],
        "'--format csv' prints it, '-o FILE.csv' keeps it",
    ),
    (
        &["--json"],
        "'--format json' prints it, '-o FILE.json' keeps it",
    ),
    (
        &["--size", "--message-size", "--msg-size"],
        "'-m SIZES', or '--sizes'",
    ),
    (
        &["--duration", "--time"],
        "the number of iterations follows from the time by itself; '-i COUNT' fixes it",
    ),
    (
        &["--server", "-s"],
        "'--listen HOST:PORT' waits for the other machine, where '--connect HOST:PORT' is given",
    ),
    (
        &["--client"],
        "'--connect HOST:PORT' reaches the machine where '--listen HOST:PORT' waits",
    ),
    (&["--np"], "'-n COUNT', or '--ranks'"),
];

/// Prints what clap has to say, and gives the exit status: 0 for help that was asked for.
pub fn report(mut error: clap::Error, arguments: &[OsString]) -> ExitCode {
    if !grant(&mut error, arguments) {
        suggest(&mut error, arguments);
    }
    // Whether anybody reads it changes nothing.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(status::USAGE),
    }
}

/// Names what there is instead of an option of other tools; `false` where it is none.
fn grant(error: &mut clap::Error, arguments: &[OsString]) -> bool {
    let measures = arguments
        .get(1)
        .is_some_and(|name| name == "bench" || name == "compare");
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    let wish = wish(given).filter(|_| measures && error.kind() == ErrorKind::UnknownArgument);
    let Some(wish) = wish else {
        return false;
    };
    // What is spelt like it is something else.
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    let tips = vec![StyledStr::from(wish)];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    true
}

fn wish(given: &str) -> Option<&'static str> {
    let name = given.split('=').next()?;
    let known = |(names, _): &&(&[&str], &str)| names.contains(&name);
    WISHES.iter().find(known).map(|(_, hint)| *hint)
}

/// Adds the nearest name where clap, which asks for more likeness than we do, has none.
fn suggest(error: &mut clap::Error, arguments: &[OsString]) {
    let (given, suggestion) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        ErrorKind::InvalidSubcommand => (
            ContextKind::InvalidSubcommand,
            ContextKind::SuggestedSubcommand,
        ),
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        _ => return,
    };
    let (None, Some(ContextValue::String(given))) = (error.get(suggestion), error.get(given))
    else {
        return;
    };
    let known = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.clone(),
        _ => names(error.kind(), arguments),
    };
    let Some(name) = nearest(given, known.iter().map(String::as_str)) else {
        return;
    };
    let name = name.to_owned();
    let value = match suggestion {
        ContextKind::SuggestedSubcommand => ContextValue::Strings(vec![name]),
        _ => ContextValue::String(name),
    };
    error.insert(suggestion, value);
}

/// The names that could have been meant: subcommands, or the options of the one in use.
fn names(kind: ErrorKind, arguments: &[OsString]) -> Vec<String> {
    let command = cli::command(&tagwire::settings::registry());
    let subcommands = command.get_subcommands();
    if kind == ErrorKind::InvalidSubcommand {
        return subcommands.map(|c| c.get_name().to_owned()).collect();
    }
    let in_use = command
        .get_subcommands()
        .find(|subcommand| {
            arguments
                .get(1)
                .is_some_and(|name| name == subcommand.get_name())
        })
        .unwrap_or(&command);
    in_use
        .get_arguments()
        .filter_map(|option| option.get_long().map(|name| format!("--{name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has become an option of its own needs no hint, and would not reach it.
    #[test]
    fn no_wish_is_an_option_that_there_is() {
        let words = ["tagwire", "bench"].map(OsString::from);
        let options = names(ErrorKind::UnknownArgument, &words);
        for (wishes, _) in WISHES {
            for name in *wishes {
                assert!(!options.contains(&(*name).to_owned()), "{name}");
            }
        }
    }

    #[test]
    fn wishes_may_have_values() {
        assert!(wish("--plot=out.png").is_some_and(|hint| hint.contains("tagwire report")));
        assert_eq!(wish("--plots"), None);
    }
}
