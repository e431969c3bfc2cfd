//! The `tagwire` command, for programs that have it with engines of their own.
//!
//! ```no_run
//! # type Mine = tagwire_matching::Oracle;
//! fn main() -> std::process::ExitCode {
//!     tagwire_cli::command().engine::<Mine>("mine").main()
//! }
//! ```
//!
//! `docs/engines.md` has what such an engine is made of, and `examples/engine` is one to begin with.
//!
//! Exit status: 0 good, 1 usage, 2 run failed, 3 validation failed, 4 threshold or baseline
//! violated, 5 what `info --why-not` was asked for cannot be used here, 6 `compare` cannot tell. `run` ends with the status of its job.

#![forbid(unsafe_code)]

mod bench;
mod cli;
mod failure;
mod info;
mod manual;
mod mpi;
mod mpiexec;
mod output;
mod pages;
mod predict;
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
use tagwire_base::Registry;
use tagwire_matching::Engines;
use tagwire_matching::kit::FromParameters;

/// The command before it does anything.
#[derive(Debug, Default)]
#[must_use = "it does nothing until `main` is called"]
pub struct Command {
    engines: Engines,
}

/// Returns the command `tagwire`.
pub fn command() -> Command {
    Command::default()
}

impl Command {
    /// Adds the engines of a type under a name: to `match`, to the setting `engine`, and to the ranks of `bench`, which are this
    /// program. Ranks of `run` are other programs, and know it where their session does.
    ///
    /// # Panics
    /// When an engine has the name already, or it is none: empty, or with a colon, a comma or an equals sign.
    pub fn engine<E: FromParameters>(mut self, name: &'static str) -> Self {
        self.engines = self.engines.with::<E>(name);
        self
    }

    /// Does what the arguments of this process ask for. Returns the status that the process is to end with.
    #[must_use]
    pub fn main(self) -> ExitCode {
        outlive_file_limits();
        let engines = self.engines.with_loader(tagwire_foreign::load);
        let arguments: Vec<_> = std::env::args_os().collect();
        if let Some((name, words)) = mpiexec::called(&arguments) {
            return mpiexec::main(name, words);
        }
        let registry = tagwire::settings::registry_with(&engines);
        let invocation = match cli::parse(arguments.iter().cloned(), &registry) {
            Ok(invocation) => invocation,
            Err(error) => return usage::report(error, &arguments),
        };
        match act(&invocation, &registry, &engines) {
            Ok(status) => status,
            Err(failure) => failure.report(),
        }
    }
}

/// Makes a write beyond the limit of file sizes an error of that write. By default it ends the process, without a word.
/// A handler, not ignorance: the programs that this one starts do not inherit it.
fn outlive_file_limits() {
    let seen = std::sync::Arc::default();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, seen);
}

fn act(
    invocation: &Invocation,
    registry: &Registry,
    engines: &Engines,
) -> Result<ExitCode, Failure> {
    match &invocation.action {
        Action::Info(options) => info::info(options, &invocation.settings, registry),
        Action::Run(options) => run::run(options, &invocation.settings, registry),
        Action::Bench(options) => bench::bench(options, &invocation.settings, registry, engines),
        Action::Tune(options) => bench::tune(options, &invocation.settings, registry),
        Action::Match(options) => tagwire_lab::run(options, engines, &CIRCUMSTANCES)
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

/// What files of `match` tell of where their rows come from.
const CIRCUMSTANCES: tagwire_lab::Circumstances = tagwire_lab::Circumstances {
    command: tagwire_bench::command_line,
    environment: || {
        let build = stamp::build();
        let here = tagwire_bench::Here::now(build.version, build.commit, build.profile);
        serde_json::to_value(here).unwrap_or_default()
    },
};
