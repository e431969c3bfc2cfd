//! What a command line gets that cannot be understood: exit status 1 and the nearest right name.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tagwire_base::nearest::nearest;

use crate::cli;
use crate::failure::status;

/// Prints what clap has to say, and gives the exit status: 0 for help that was asked for.
pub fn report(mut error: clap::Error, arguments: &[OsString]) -> ExitCode {
    suggest(&mut error, arguments);
    // Whether anybody reads it changes nothing.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(status::USAGE),
    }
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
