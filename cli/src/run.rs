//! `tagwire run`: a program as several ranks on this machine.

mod elf;
mod libraries;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::OsStringValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use tagwire_base::config::parse;
use tagwire_base::{Config, JobSecret, Rank, Registry};
use tagwire_launch::{Binding, Hosts, JobSpec, OnFailure, Part, StdinPolicy};

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

    /// The file with what all hosts of a job know; --listen makes one that is not there
    ///
    /// It has a text of 1 to 32 bytes, and its owner alone may read it. Without this option --listen draws a secret and says it
    /// on a terminal.
    #[arg(long, value_name = "@FILE")]
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

    /// End the job after this time, with status 2; its ranks tell what they wait for. Without a unit it is in seconds
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,

    /// Who reads standard input: none, rank0, another rank by its number, or all, each of which has all of it
    /// [default: none; mpiexec: rank0]
    #[arg(long, value_name = "none|rank0|N|all", value_parser = input)]
    stdin: Option<StdinPolicy>,

    /// The program and its arguments; '--' before it ends the options of 'run'
    #[arg(
        required = true,
        trailing_var_arg = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,

    /// Further programs, whose ranks follow.
    #[arg(skip)]
    others: Vec<RunOptions>,
}

/// The options that each program of a job has its own of.
const OF_A_PROGRAM: [&str; 4] = ["ranks", "wdir", "variables", "command"];

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailurePolicy {
    /// They are ended: SIGTERM, and SIGKILL 5 s later
    Abort,
    /// They go on
    Continue,
}

const AFTER_HELP: &str = "\
Durations have a unit: us, ms or s, as in 90s. Sizes are bytes; K is 1024.
Behind ' : ' comes a further program of the job, with its own -n, --wdir and -x.

Exit status: 0 when every rank ended with 0; else that of the first rank that failed (128 + n
after signal n); 1 usage; 2 the job could not be run, ran into --timeout or lost a host; 127 no such
program, 126 it cannot be executed. SIGUSR1 makes all ranks tell what they wait for.

Examples:
  tagwire run -n 2 -- ./ring                       two ranks
  tagwire run -n 4 --bind core -- ./halo 512       each on a core of its own
  tagwire run -n 8 --bind 0-3 --timeout 90s -- ./program
  tagwire run -n 2 --of 4 --listen 10.0.0.1:7471 --secret @key -- ./program    two of four here,
  tagwire run -n 2 --connect 10.0.0.1:7471 --secret @key -- ./program          and two elsewhere
  tagwire run -np 2 -x OMP_NUM_THREADS=4 --output-dir out -- ./program
  tagwire run -n 1 ./leader : -n 3 ./worker        two programs, four ranks
  tagwire run -n 2 --log debug -- ./program        a setting for all ranks";

impl RunOptions {
    /// Takes what follows a `:` from the arguments of the program where it is a further program: the words of each.
    pub fn take_further_programs(&mut self) -> Vec<Vec<OsString>> {
        let begins = |words: &[OsString]| {
            let next = words.get(1).filter(|_| words[0] == ":");
            next.is_some_and(|next| {
                ["-n", "-np", "--np", "--ranks"]
                    .iter()
                    .any(|option| next == option)
            })
        };
        let places = (0..self.command.len()).filter(|place| begins(&self.command[*place..]));
        let places: Vec<usize> = places.collect();
        let mut further: Vec<_> = places
            .into_iter()
            .rev()
            .map(|place| self.command.split_off(place).split_off(1))
            .collect();
        further.reverse();
        further
    }

    /// Adds a program whose ranks follow. `given` are the options that it was given.
    ///
    /// # Errors
    /// Names an option that the whole job has.
    pub fn add_program(&mut self, other: Self, given: &ArgMatches) -> Result<(), String> {
        let is_given = |id: &&str| given.value_source(id) == Some(ValueSource::CommandLine);
        // The group of all options, which is named as this type is, is one of clap's own.
        let ids = given.ids().map(clap::Id::as_str);
        let ids = ids.filter(|id| id.starts_with(char::is_lowercase));
        let mut foreign = ids.filter(is_given).filter(|id| !OF_A_PROGRAM.contains(id));
        if let Some(id) = foreign.next() {
            let option = id.replace('_', "-");
            return Err(format!(
                "--{option} is of the whole job: it goes in front of the first program"
            ));
        }
        self.others.push(other);
        Ok(())
    }

    /// Gives standard input to rank 0, unless it was asked otherwise.
    pub fn have_input_by_default(&mut self) {
        self.stdin.get_or_insert(StdinPolicy::Rank(Rank::new(0)));
    }
}

/// Runs the job; its exit status is the command's.
pub fn run(
    options: &RunOptions,
    settings: &[(String, String)],
    registry: &Registry,
) -> Result<ExitCode, Failure> {
    // What a rank would refuse is refused here, once and before anything starts.
    let config = Config::from_process(registry, pairs(settings))?;
    tagwire_base::log::to_stderr(&config, "tagwire");
    let mut spec = spec(options, &config)?;
    libraries::prepare(&mut spec)?;
    let report = tagwire_launch::run(spec)?;
    Ok(ExitCode::from(
        u8::try_from(report.exit_status).unwrap_or(status::RUN_FAILED),
    ))
}

fn spec(options: &RunOptions, config: &Config) -> Result<JobSpec, Failure> {
    let first = part(options, config)?;
    let mut spec = JobSpec::new(first.ranks, first.program);
    spec.args = first.args;
    spec.env = first.env;
    spec.directory = first.directory;
    for other in &options.others {
        spec.others.push(part(other, config)?);
    }
    spec.hosts = hosts(options)?;
    spec.output.clone_from(&options.output_dir);
    spec.binding = options.bind.clone();
    spec.on_failure = match options.on_failure {
        FailurePolicy::Abort => OnFailure::Abort,
        FailurePolicy::Continue => OnFailure::Continue,
    };
    spec.tag_output = options.tag_output;
    spec.timeout = options.timeout;
    spec.stdin = options.stdin.unwrap_or_default();
    Ok(spec)
}

/// Returns one program of the job.
fn part(options: &RunOptions, config: &Config) -> Result<Part, Failure> {
    let (program, arguments) = options
        .command
        .split_first()
        .ok_or_else(|| Failure::usage("run: which program?"))?;
    let settings = config.to_environment();
    let mut env: Vec<(OsString, OsString)> = settings
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    for variable in &options.variables {
        env.extend(set(variable)?);
    }
    Ok(Part {
        ranks: options.ranks,
        program: program.clone(),
        args: arguments.to_vec(),
        env,
        directory: options.wdir.clone(),
    })
}

/// Returns which part of a job of several hosts is asked for.
fn hosts(options: &RunOptions) -> Result<Option<Hosts>, Failure> {
    let read = match options.listen {
        Some(_) => JobSecret::of_option_or_drawn,
        None => JobSecret::of_option,
    };
    let secret = options.secret.as_deref().map(read).transpose();
    let secret = secret.map_err(|why| Failure::usage(format!("run: --secret {why}")))?;
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
    let is_bare = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let time = match is_bare && !text.is_empty() {
        true => parse::duration(&format!("{text}s"))?,
        false => parse::duration(text)?,
    };
    match time {
        Duration::ZERO => Err("a timeout is longer than nothing".to_owned()),
        time => Ok(time),
    }
}

fn input(text: &str) -> Result<StdinPolicy, String> {
    let number = text.strip_prefix("rank").unwrap_or(text);
    match text {
        "none" | "null" => Ok(StdinPolicy::Null),
        "all" => Ok(StdinPolicy::All),
        _ => match number.parse() {
            Ok(rank) => Ok(StdinPolicy::Rank(Rank::new(rank))),
            Err(_) => Err("it is none, all, rank0, or the number of another rank".to_owned()),
        },
    }
}
