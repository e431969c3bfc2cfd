//! `tagwire run`: a program as several ranks on this machine.

mod elf;
mod libraries;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::OsStringValueParser;
use clap::{Args, ValueEnum};
use tagwire_base::config::parse;
use tagwire_base::{Config, JobSecret};
use tagwire_launch::{Binding, Hosts, JobSpec, OnFailure, StdinPolicy};

use crate::failure::{Failure, status};

/// The options of `tagwire run`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(override_usage = "tagwire run -n N [OPTIONS] [--] PROGRAM [ARGS]...")]
pub struct RunOptions {
    /// How many ranks to start; more than there are cores take turns
    #[arg(short = 'n', long, visible_alias = "np", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,

    /// How many ranks the job has on all hosts; with --listen
    #[arg(long, value_name = "TOTAL", requires = "listen", value_parser = clap::value_parser!(u32).range(2..))]
    of: Option<u32>,

    /// Have the job's first ranks, and wait at this address for other hosts to bring the rest
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "of",
        conflicts_with = "connect"
    )]
    listen: Option<String>,

    /// Bring ranks to the job of the host where --listen waits at this address
    #[arg(long, value_name = "HOST:PORT", requires = "secret")]
    connect: Option<String>,

    /// What all hosts of a job know: a text of 1 to 32 bytes, or @FILE with one; --listen draws one and says it
    #[arg(long, value_name = "TEXT|@FILE")]
    secret: Option<String>,

    /// Where ranks run: none (the scheduler chooses), core (rank i on the i-th core), or a list
    /// of CPUs such as 0,2,4-7 (rank i on the i-th), round robin
    #[arg(long, value_name = "none|core|LIST", default_value = "none", value_parser = binding)]
    bind: Binding,

    /// What happens to the other ranks when one fails
    #[arg(long, value_enum, default_value = "abort")]
    on_failure: FailurePolicy,

    /// Put the rank, in brackets, before each line of output
    #[arg(long)]
    tag_output: bool,

    /// Write what rank N says to the file DIR/rank-N.txt; DIR is made where it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "tag_output")]
    output_dir: Option<PathBuf>,

    /// Run the ranks in this directory; a relative PROGRAM with a slash is looked for from there
    #[arg(long, value_name = "DIR")]
    wdir: Option<PathBuf>,

    /// Set an environment variable for the ranks, which have this command's; NAME alone checks that it is set
    #[arg(short = 'x', value_name = "NAME=VALUE", value_parser = OsStringValueParser::new())]
    variables: Vec<OsString>,

    /// End the job after this time, with status 2; its ranks tell what they wait for
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,

    /// Who reads standard input: null (nobody) or rank0
    #[arg(long, value_enum, default_value = "null")]
    stdin: Input,

    /// The program and its arguments; '--' before it ends the options of 'run'
    #[arg(
        required = true,
        trailing_var_arg = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailurePolicy {
    /// They are ended: SIGTERM, and SIGKILL 5 s later
    Abort,
    /// They go on
    Continue,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Input {
    /// Nobody
    Null,
    /// Rank 0
    #[value(name = "rank0")]
    Rank0,
}

const AFTER_HELP: &str = "\
Durations have a unit: us, ms or s, as in 90s. Sizes are bytes; K is 1024.

Exit status: 0 when every rank ended with 0; else that of the first rank that failed (128 + n
after signal n); 1 usage; 2 the job could not be run, ran into --timeout or lost a host; 127 no such
program, 126 it cannot be executed. SIGUSR1 makes all ranks tell what they wait for.

Examples:
  tagwire run -n 2 -- ./ring                       two ranks
  tagwire run -n 4 --bind core -- ./halo 512       each on a core of its own
  tagwire run -n 8 --bind 0-3 --timeout 90s -- ./program
  tagwire run -n 2 --of 4 --listen 10.0.0.1:7471 -- ./program          two of four ranks here,
  tagwire run -n 2 --connect 10.0.0.1:7471 --secret @key -- ./program  and two on another host
  tagwire run -np 2 -x OMP_NUM_THREADS=4 --output-dir out -- ./program
  tagwire run -n 2 --log debug -- ./program        a setting for all ranks";

/// Runs the job; its exit status is the command's.
pub fn run(options: &RunOptions, settings: &[(String, String)]) -> Result<ExitCode, Failure> {
    let registry = tagwire::settings::registry();
    // What a rank would refuse is refused here, once and before anything starts.
    let config = Config::from_process(&registry, pairs(settings))?;
    tagwire_base::log::to_stderr(&config, "tagwire");
    let spec = spec(options, &config)?;
    libraries::check(&spec)?;
    let report = tagwire_launch::run(spec)?;
    Ok(ExitCode::from(
        u8::try_from(report.exit_status).unwrap_or(status::RUN_FAILED),
    ))
}

fn spec(options: &RunOptions, config: &Config) -> Result<JobSpec, Failure> {
    let (program, arguments) = options
        .command
        .split_first()
        .ok_or_else(|| Failure::usage("run: which program?"))?;
    look_for_colons(arguments)?;
    let mut spec = JobSpec::new(options.ranks, program);
    spec.args = arguments.to_vec();
    spec.env = config
        .to_environment()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    for variable in &options.variables {
        spec.env.extend(set(variable)?);
    }
    spec.hosts = hosts(options)?;
    spec.directory.clone_from(&options.wdir);
    spec.output.clone_from(&options.output_dir);
    spec.binding = options.bind.clone();
    spec.on_failure = match options.on_failure {
        FailurePolicy::Abort => OnFailure::Abort,
        FailurePolicy::Continue => OnFailure::Continue,
    };
    spec.tag_output = options.tag_output;
    spec.timeout = options.timeout;
    spec.stdin = match options.stdin {
        Input::Null => StdinPolicy::Null,
        Input::Rank0 => StdinPolicy::Rank0,
    };
    Ok(spec)
}

/// Returns which part of a job of several hosts is asked for.
fn hosts(options: &RunOptions) -> Result<Option<Hosts>, Failure> {
    let secret = options.secret.as_deref().map(secret).transpose()?;
    match (&options.listen, &options.connect, secret) {
        (Some(address), _, secret) => Ok(Some(Hosts::Listen {
            address: address.clone(),
            total: options.of.unwrap_or_default(),
            secret,
        })),
        (None, Some(address), Some(secret)) => Ok(Some(Hosts::Connect {
            address: address.clone(),
            secret,
        })),
        // A connect without a secret is refused before, with the options' own words.
        (None, _, None) => Ok(None),
        (None, None, Some(_)) => Err(Failure::usage(
            "run: --secret goes with --listen or --connect",
        )),
    }
}

fn secret(option: &str) -> Result<JobSecret, Failure> {
    JobSecret::of_option(option).map_err(|why| Failure::usage(format!("run: --secret {why}")))
}

/// Returns what `NAME=VALUE` sets; nothing where `NAME` alone is inherited.
fn set(variable: &OsStr) -> Result<Option<(OsString, OsString)>, Failure> {
    let bytes = variable.as_bytes();
    let Some(end) = bytes.iter().position(|byte| *byte == b'=') else {
        return match std::env::var_os(variable) {
            Some(_) => Ok(None),
            None => Err(Failure::usage(format!(
                "run: -x {}: it is not set here; -x NAME=VALUE sets it",
                variable.display()
            ))),
        };
    };
    let (name, value) = (&bytes[..end], &bytes[end + 1..]);
    if name.is_empty() {
        return Err(Failure::usage(format!(
            "run: -x {}: a variable without a name",
            variable.display()
        )));
    }
    let owned = |part: &[u8]| OsStr::from_bytes(part).to_owned();
    Ok(Some((owned(name), owned(value))))
}

/// Says what a lone colon is not: `mpiexec -n 1 a : -n 1 b` starts two programs.
fn look_for_colons(arguments: &[OsString]) -> Result<(), Failure> {
    let Some(place) = arguments.iter().position(|argument| argument == ":") else {
        return Ok(());
    };
    let next = arguments.get(place + 1);
    if next.is_some_and(|next| ["-n", "-np", "--np"].iter().any(|option| next == option)) {
        return Err(Failure::usage(
            "run: ':' begins no second program here, a job has one: let it look at its rank (TAGWIRE_RANK), or start 'sh -c' that does",
        ));
    }
    let _ = writeln!(
        std::io::stderr(),
        "note: ':' is an argument of the program: a job of 'tagwire run' has one program"
    );
    Ok(())
}

fn pairs(settings: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

fn binding(text: &str) -> Result<Binding, String> {
    text.parse().map_err(|error: tagwire_launch::Error| {
        match tagwire_base::nearest::nearest(text, ["none", "core"]) {
            Some(name) => format!("{error}; did you mean '{name}'?"),
            None => error.to_string(),
        }
    })
}

fn timeout(text: &str) -> Result<Duration, String> {
    match parse::duration(text)? {
        Duration::ZERO => Err("a timeout is longer than nothing".to_owned()),
        time => Ok(time),
    }
}
