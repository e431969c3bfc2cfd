//! The `tagwire` command.
//!
//! Exit status: 0 good, 1 usage, 2 run failed, 3 validation failed, 4 threshold or baseline
//! violated, 5 what `info --why-not` was asked for cannot be used here, 6 `compare` cannot tell. `run` ends with the status of its job.

mod bench;
mod cli;
mod failure;
mod info;
mod manual;
mod mpi;
mod mpiexec;
mod output;
mod pages;
mod projection;
mod report;
mod reproduce;
mod results;
mod run;
mod sim;
mod stamp;
mod usage;

use std::process::ExitCode;

use cli::{Action, Invocation};
use failure::Failure;

fn main() -> ExitCode {
    outlive_file_limits();
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some((name, words)) = mpiexec::called(&arguments) {
        return mpiexec::main(name, words);
    }
    let invocation = match cli::parse(arguments.iter().cloned()) {
        Ok(invocation) => invocation,
        Err(error) => return usage::report(error, &arguments),
    };
    match act(&invocation) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

/// Makes a write beyond the limit of file sizes an error of that write. By default it ends the process, without a word.
/// A handler, not ignorance: the programs that this one starts do not inherit it.
fn outlive_file_limits() {
    let seen = std::sync::Arc::default();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, seen);
}

fn act(invocation: &Invocation) -> Result<ExitCode, Failure> {
    match &invocation.action {
        Action::Info(options) => info::info(options, &invocation.settings),
        Action::Run(options) => run::run(options, &invocation.settings),
        Action::Bench(options) => bench::bench(options, &invocation.settings),
        Action::Tune(options) => bench::tune(options, &invocation.settings),
        Action::Match(options) => tagwire_lab::run(options)
            .map(ExitCode::from)
            .map_err(|error| Failure::with_status(error.exit_status(), error)),
        Action::Mpi(options) => mpi::mpi(options, manual::pages),
        Action::Completions(options) => manual::completions(options),
        Action::Man(options) => manual::man(options),
        Action::Version => manual::version(),
        Action::Reproduce(options) => reproduce::reproduce(options),
        Action::Sim(options) => sim::sim(options),
        Action::Report(options) => report::report(options),
        Action::Compare(options) => Ok(tagwire_bench::run_compare(options).code().into()),
    }
}
