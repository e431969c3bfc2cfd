//! The command line: subcommands and their options, and one flag for each setting.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use tagwire_base::config::{Kind, Registry, Setting};

use crate::{info, mpi, pages, report, reproduce, run, stamp};

mod help;

pub use help::tests;

/// Tagged messages between processes, with no MPI installed.
#[derive(Debug, Parser)]
#[command(name = "tagwire", version = stamp::VERSION_LINE, propagate_version = true, after_help = AFTER_HELP)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

/// What is asked for.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// What is here, what would be used, and why not the rest
    Info(info::InfoOptions),
    /// Run a program as several ranks on this machine
    Run(run::RunOptions),
    /// Measure: latency, bandwidth, message rate and more, beside other libraries
    #[command(after_long_help = AFTER_BENCH)]
    Bench(Box<tagwire_bench::BenchArgs>),
    /// Measure which algorithms are fastest here, and write their table
    #[command(after_help = AFTER_TUNE)]
    Tune(Box<tagwire_bench::TuneArgs>),
    /// Compare two results of 'bench'; the exit status says whether it got worse
    #[command(after_help = AFTER_COMPARE)]
    Compare(tagwire_bench::CompareArgs),
    /// Measure figures of papers here, and say which of their claims hold
    #[command(after_help = AFTER_REPRODUCE)]
    Reproduce(reproduce::ReproduceOptions),
    /// Programs whose ranks run on a simulated machine, in virtual time
    #[command(after_help = AFTER_SIM)]
    Sim(tagwire_bench_sim::SimArgs),
    /// Plots and tables of results of 'bench': a page for a browser, or files for papers
    #[command(after_help = AFTER_REPORT)]
    Report(report::ReportOptions),
    /// Matching engines: what there are, whether they keep MPI's order, what a match costs
    #[command(after_help = AFTER_MATCH)]
    Match(tagwire_lab::MatchArgs),
    /// MPI programs on Tagwire, with no MPI installed
    #[command(after_help = AFTER_MPI)]
    Mpi(mpi::MpiOptions),
    /// Print what a shell completes the options and names of this command by
    #[command(after_help = AFTER_COMPLETIONS)]
    Completions(pages::CompletionOptions),
    /// Write the manual pages of this command
    #[command(after_help = AFTER_MAN)]
    Man(pages::ManOptions),
    /// Print the version, as --version does
    #[command(after_help = AFTER_VERSION)]
    Version,
}

const AFTER_HELP: &str = "\
Sizes are bytes; K, M and G behind a number are 1024, 1024^2 and 1024^3.
Durations have a unit: us, ms or s.

Exit status: 0 good, 1 usage, 2 run failed, 3 validation failed, 4 threshold or
baseline violated, 5 'info --why-not' of something that cannot be used here, 6 'compare' cannot tell.
'run' ends with the status of its job.

Examples:
  tagwire info                                 what is here
  tagwire run -n 4 --tag-output -- ./program   four ranks of a program
  tagwire bench latency                        half round trips between two ranks
  tagwire compare old.json new.json            whether it got worse
  tagwire report results.json -o report.html   plots to open in a browser
  tagwire tune coll -o here.toml               which algorithms are fastest here
  tagwire reproduce mtl --quick                which claims of a paper hold here
  tagwire mpi install ~/tagwire-mpi            mpicc and a library for MPI programs";

const AFTER_SIM: &str = "\
The ranks are ob1 and the collectives, unchanged, in one process. The same options give the same rows. What the run
has cost is on standard error. A file of a machine has a line for each value, as 'latency = 0.9us'; needed are
latency, overhead-send, overhead-recv and per-byte.
Message sizes are bytes; K is 1024. Times have a unit: ns, us, ms or s.

Exit status: 0 good, 1 usage, 2 run failed.

Examples:
  tagwire sim list                                   programs, and machines with the sources of their values
  tagwire sim stencil -n 4096                        8 neighbours and a barrier, on the default machine
  tagwire sim halo3d -n 64 -m 64K --compute 10ms     6 neighbours
  tagwire sim allreduce -n 1000 --seed 7 --delay 5us messages that are late as the seed says
  tagwire sim ring -n 8 --kill 3@20us                a rank dies";

const AFTER_COMPLETIONS: &str = "\
Exit status: 0 good, 1 usage, 2 the output could not be written.

Examples:
  tagwire completions bash > ~/.local/share/bash-completion/completions/tagwire
  tagwire completions zsh > ~/.zfunc/_tagwire
  tagwire completions fish > ~/.config/fish/completions/tagwire.fish";

const AFTER_MAN: &str = "\
Exit status: 0 good, 1 usage, 2 a page could not be written.

Examples:
  tagwire man ~/.local/share/man/man1        then 'man tagwire-bench'";

const AFTER_VERSION: &str = "\
Exit status: 0 good, 1 usage, 2 the output could not be written.

Examples:
  tagwire version                            'tagwire info build' says more";

const AFTER_BENCH: &str = "\
Figures: us, MB/s (MB is 10^6 bytes), messages/s. Message sizes are bytes; K is 1024.

Exit status: 0 good, 1 usage, 2 run failed, 3 validation failed (with -c), 6 no row has a figure, 128 + n after signal n.
'tagwire bench TEST --help' shows the options of that test alone.

Examples:
  tagwire bench latency                                  two ranks on shared memory
  tagwire bench bandwidth -m 64K:4M:x2 -c                every byte checked
  tagwire bench latency -m 8 -t shm,mpi --launches 5     beside an MPI library, interleaved
  tagwire bench bibandwidth -m 1M                        both directions at once
  tagwire bench message-rate -n 4 -o rate.json           kept for 'tagwire compare'
  tagwire bench multi-latency -n 4 -m 8                  latency of two pairs at once
  tagwire bench ring -n 4 -m 8                           one message round four ranks
  tagwire bench idle --seconds 1                         what waiting costs
  tagwire bench availability -m 64K,1M -t shm,mpi        what a message leaves of a computing rank
  tagwire bench overlap -m 1K,1M                         what message and work hide of each other
  tagwire bench partitioned --partitions 1,16 -m 16K     what many parts cost against one message
  tagwire bench message-rate --style blocking --units processes:4,threads:4   which is faster
  tagwire bench thread-cost -t shm,mpi --launches 5      what thread safety costs one thread
  tagwire bench concurrent-bandwidth --units threads:4   four threads send long messages at once
  tagwire bench concurrent-latency -m 8 --units processes:2,threads:2
  tagwire bench short-long --long 8M                     who waits beside a long message
  tagwire bench overlap-neighbours --progress none,blocked-thread,progress-thread
  tagwire bench concurrent-allreduce --units threads:2   two groups of one process on each node
  tagwire bench allreduce-compute -n 3 --units threads:2 what an allreduce takes from two threads";

const AFTER_TUNE: &str = "\
Each algorithm of each operation is measured in jobs of its own, by turns. A row is written where another algorithm
than that of the table in the tree is faster by more than the spread of launches. Rows hold for the place that was
measured: the memory of one host, or a network. 'tagwire info collectives --coll-table FILE' shows what is taken.
Times are in us, message sizes in bytes; K is 1024.

Exit status: 0 good, 1 usage, 2 run failed, 128 + n after signal n; without 0 no file is written.

Examples:
  tagwire tune coll -o here.toml                     groups of 2, 4, ... up to the number of cores
  tagwire tune coll --quick -n 2,4 -o here.toml      fewer sizes and launches
  tagwire tune coll -t ofi:tcp -o tcp.toml           over a network
  TAGWIRE_COLL_TABLE=here.toml tagwire run -n 4 -- ./program";

const AFTER_REPRODUCE: &str = "\
A claim holds, fails, is undecided where intervals over launches overlap, or is not testable here. Numbers of other machines
are not compared: claims are about ratios, which agree by their distance from 1; about orders, which hold at two thirds of the
sizes with intervals that do not overlap, and nowhere the other way round; and about sizes at which curves cross or fall.

Results of 'tagwire bench' and a file with the verdicts for each item are left in the folder of -o. Message sizes are
bytes; K is 1024.

Exit status: 0 all runs went well, 1 usage, 2 a run failed, 4 with --fail-on fails: a claim fails, 128 + n after signal n.

Examples:
  tagwire reproduce list                             all measured figures and tables, and what each needs
  tagwire reproduce mtl/fig4                         one figure
  tagwire reproduce threads --quick -t shm,ofi:tcp,mpi:/opt/mpi   another
  tagwire reproduce mtl --quick -t shm,mpi:/opt/mpi  a paper in minutes, beside an MPI library
  tagwire reproduce mtl --resume                     go on after an interruption
  tagwire reproduce all --plan -t shm,mpi:/opt/mpi   how many hours all take
  tagwire reproduce all --store docs/papers -t shm,mpi:/opt/mpi   full and quiet outcomes with their rows, for the pages
  tagwire reproduce list --store docs/papers         which of those are older than the code that they measure";

const AFTER_MATCH: &str = "\
Numbers of entries and of bytes: K is 1024.

Exit status: 0 good, 1 usage, 2 the output could not be written, 3 an engine failed its check.

Examples:
  tagwire match list                                 engines, their parameters, where they were published
  tagwire match check ucx:bins=64                    10^6 operations against the rules of MPI
  tagwire match depth --engine list,bins             a match behind 0 to 64K receives";

const AFTER_MPI: &str = "\
Exit status: 0 good, 1 usage, or a library that is not there, 2 the tree could not be written.

Examples:
  tagwire mpi install ~/tagwire-mpi                  a tree with mpicc, mpi.h, libmpi_abi.so.1 and mpiexec
  ~/tagwire-mpi/bin/mpicc program.c -o program       any compiler's options
  ~/tagwire-mpi/bin/mpiexec -n 4 ./program           or srun --mpi=pmi2, prterun, mpiexec of MPICH";

const AFTER_COMPARE: &str = "\
Both files are results of 'tagwire bench -o FILE.json'. Rows are joined by their
variables: size, transport, layer and so on. Message sizes are bytes; K is 1024.
A change counts when it is over the threshold (--fail-above, else 5 %) and outside
of what was measured on the other side. Rows that were measured beside other load
are named as not to be trusted, and circumstances that differ are named. --by compares
the values of one variable, within one file too, and 'series' what a report shows as
series; --ignore joins whatever they are.
Both files may be CSV.

Exit status:
  0  compared; with --fail-above also: nothing got worse
  1  usage: an unknown option, a file that is no report, no row in common
  2  the output could not be written
  4  with --fail-above: a row got worse by more, or is missing from NEW.json
  6  with --fail-above: cannot tell, since rows were measured beside other load

Examples:
  tagwire compare before.json after.json
  tagwire compare before.json after.json --fail-above 5%
  tagwire compare both.json --by transport           all others against the first one of -t
  tagwire compare lat.json --by series --base shm    also of two MPI libraries
  tagwire compare list.json bins.json --by engine
  tagwire compare shm.json ucx.json --ignore transport";

const AFTER_REPORT: &str = "\
Rows of several files stand side by side: each transport, library, layer and so on is a series, and so is each file
where they have the same. Points are medians over launches, with the interval from the least launch to the greatest
(from the least block to the greatest where there are fewer than three launches). 'Ahead' and 'worse' mean by more than
5 %, with intervals that do not overlap, as for 'tagwire compare'. Nothing is loaded from the network, and a file that
is there is replaced as a whole or not at all. Figures: us, MB/s (MB is 10^6 bytes), messages/s. Message sizes are bytes;
K is 1024.

Exit status: 0 good, 1 a file that is no report, is cut off or of another version, or an output that cannot be written.

Examples:
  tagwire bench latency -t shm,mpi --launches 5 -o both.json
  tagwire report both.json -o report.html                    one page: summary, plots, tables, environment
  tagwire report --base before.json after.json -o diff.html  what got worse, what got better
  tagwire report both.json -o latency.svg                    one plot, for a paper
  tagwire report *.json --format svg -o plots                a folder of plots
  tagwire report both.json --format md                       for a pull request
  tagwire report part.json -o part.html --x partitions       another variable along the axis";

/// A command line that has been understood.
#[derive(Debug)]
pub struct Invocation {
    /// What is asked for.
    pub action: Action,
    /// Settings that were given as flags, with their values as written.
    pub settings: Vec<(String, String)>,
}

/// Understands a command line.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    registry: &Registry,
) -> Result<Invocation, clap::Error> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = match help::test_to_explain(&arguments) {
        Some(test) => command(registry).mut_subcommand("bench", |bench| help::only(bench, test)),
        None => command(registry),
    };
    let command = match arguments.iter().any(|word| word == "-h") {
        true => help::of_one_screen(command, help::test_to_explain(&arguments)),
        false => command,
    };
    spell_out_np(&command, &mut arguments);
    let run = command.find_subcommand("run").cloned();
    let matches = command.try_get_matches_from(arguments)?;
    let settings = matches
        .subcommand()
        .map(|(_, matches)| given_settings(registry, matches))
        .unwrap_or_default();
    let Cli { mut action } = Cli::from_arg_matches(&matches)?;
    if let (Action::Run(options), Some(run)) = (&mut action, run) {
        let run = run.bin_name("tagwire run");
        for mut words in options.take_further_programs() {
            spell_out_np_of_run(&run, words.iter_mut());
            add_program(&run, options, words)?;
        }
    }
    Ok(Invocation { action, settings })
}

/// Understands the programs of a job, each the words of `run`, which may have another name. Returns the settings too.
pub fn parse_programs(
    run: &Command,
    programs: Vec<Vec<OsString>>,
) -> Result<(run::RunOptions, Vec<(String, String)>), clap::Error> {
    let mut programs = programs.into_iter();
    let matches = matches_of(run, programs.next().unwrap_or_default())?;
    let mut options = run::RunOptions::from_arg_matches(&matches)?;
    for words in programs {
        add_program(run, &mut options, words)?;
    }
    let settings = given_settings(&tagwire::settings::registry(), &matches);
    Ok((options, settings))
}

fn add_program(
    run: &Command,
    options: &mut run::RunOptions,
    words: Vec<OsString>,
) -> Result<(), clap::Error> {
    let matches = matches_of(run, words)?;
    let other = run::RunOptions::from_arg_matches(&matches)?;
    options
        .add_program(other, &matches)
        .map_err(|message| run.clone().error(ErrorKind::ArgumentConflict, message))
}

fn matches_of(run: &Command, words: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let name = OsString::from(run.get_name().to_owned());
    let words = std::iter::once(name).chain(words);
    run.clone().try_get_matches_from(words)
}

/// Writes `-np`, as other launchers have it, as `--np`: as short options it would be `-n p`. Only in front of the program.
fn spell_out_np(command: &Command, arguments: &mut [OsString]) {
    let run = command
        .get_subcommands()
        .find(|run| run.get_name() == "run");
    if let (Some(run), true) = (run, arguments.get(1).is_some_and(|name| name == "run")) {
        spell_out_np_of_run(run, arguments.iter_mut().skip(2));
    }
}

fn spell_out_np_of_run<'a>(run: &Command, mut words: impl Iterator<Item = &'a mut OsString>) {
    while let Some(word) = words.next() {
        if word == "-np" {
            *word = "--np".into();
        }
        let Some(option) = word
            .to_str()
            .filter(|word| word.starts_with('-') && *word != "--")
        else {
            return;
        };
        let is_named = |arg: &&Arg| {
            let long = option.strip_prefix("--");
            let short = option.strip_prefix('-').and_then(|name| name.parse().ok());
            long.is_some_and(|name| {
                arg.get_long_and_visible_aliases()
                    .is_some_and(|all| all.contains(&name))
            }) || short.is_some_and(|name| arg.get_short() == Some(name))
        };
        let takes_value = run
            .get_arguments()
            .find(is_named)
            .is_some_and(|arg| arg.get_action().takes_values());
        if takes_value {
            words.next();
        }
    }
}

/// Subcommands that only look at files.
const WITHOUT_SETTINGS: &[&str] = &[
    "compare",
    "completions",
    "man",
    "match",
    "mpi",
    "report",
    "reproduce",
    "sim",
    "version",
];

/// The command with all its options.
pub fn command(registry: &Registry) -> Command {
    let names: Vec<String> = Cli::command()
        .get_subcommands()
        .map(|subcommand| subcommand.get_name().to_owned())
        .filter(|name| !WITHOUT_SETTINGS.contains(&name.as_str()))
        .collect();
    names.iter().fold(Cli::command(), |command, name| {
        command.mut_subcommand(name, |subcommand| with_settings(subcommand, registry))
    })
}

/// The settings that have a short option, the same in every subcommand.
const SHORT: [(&str, char); 2] = [("transport", 't'), ("pml", 'p')];

/// Adds a flag for each setting. An option of the subcommand that has a setting's name keeps its
/// help and its checks, and sets the setting as well.
fn with_settings(mut subcommand: Command, registry: &Registry) -> Command {
    for setting in registry.settings() {
        let taken = |option: &Arg| option.get_long() == Some(setting.name());
        if subcommand.get_arguments().any(taken) {
            continue;
        }
        let short = SHORT.iter().find(|(name, _)| *name == setting.name());
        let short = short.map(|(_, letter)| *letter);
        let is_taken = |option: &Arg| option.get_short() == short;
        let free = short.filter(|_| !subcommand.get_arguments().any(is_taken));
        subcommand = subcommand.arg(flag(setting).short(free));
    }
    subcommand
}

fn flag(setting: &Setting) -> Arg {
    let kind = setting.kind();
    let range = match kind {
        Kind::Text { .. } => String::new(),
        _ => format!(" ({})", kind.range()),
    };
    let default = match setting.default_value().to_string() {
        text if text.is_empty() => text,
        text => format!(" [default: {text}]"),
    };
    let (help, variable) = (setting.help(), setting.variable());
    Arg::new(setting.name())
        .long(setting.name())
        .value_name(value_name(&kind))
        .help(format!("{help}{range} [env: {variable}]{default}"))
        .hide_short_help(true)
        .help_heading("Settings")
}

const fn value_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Flag { .. } => "on|off",
        Kind::Integer { .. } => "NUMBER",
        Kind::Bytes { .. } => "BYTES",
        Kind::BytesOrAuto { .. } => "BYTES|auto",
        Kind::Duration { .. } => "DURATION",
        Kind::Choice { .. } | Kind::Named { .. } | Kind::Stack { .. } => "NAME",
        _ => "TEXT",
    }
}

fn given_settings(registry: &Registry, matches: &ArgMatches) -> Vec<(String, String)> {
    let value = |setting: &Setting| {
        let name = setting.name();
        // An option that is no text is the subcommand's own affair.
        let value = matches.try_get_one::<String>(name).ok().flatten()?;
        let given = matches.value_source(name) == Some(ValueSource::CommandLine);
        given.then(|| (name.to_owned(), value.clone()))
    };
    registry.settings().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_sound() {
        command(&tagwire::settings::registry()).debug_assert();
    }

    #[test]
    fn every_option_is_explained() {
        let mut command = command(&tagwire::settings::registry());
        command.build();
        for subcommand in command.get_subcommands() {
            assert!(
                subcommand.get_about().is_some(),
                "{}",
                subcommand.get_name()
            );
            for option in subcommand.get_arguments() {
                let name = format!("{} {}", subcommand.get_name(), option.get_id());
                assert!(option.get_help().is_some(), "{name} has no help");
            }
        }
    }

    #[test]
    fn the_help_of_a_test_has_its_options_and_those_of_all() {
        let help = |line: &str| {
            let words = line.split(' ').map(OsString::from);
            parse(words, &tagwire::settings::registry())
                .unwrap_err()
                .to_string()
        };
        let has = |text: &str, option: &str| text.contains(&format!("--{option}"));
        for (test, own, foreign) in [
            (
                "latency",
                &["posted", "unexpected", "raw"][..],
                &["window", "partitions", "seconds"][..],
            ),
            (
                "bandwidth",
                &["window"],
                &["posted", "threads", "noise", "side"],
            ),
            (
                "idle",
                &["seconds"],
                &["window", "percentiles", "advise", "side"],
            ),
            (
                "overlap",
                &["side"],
                &["raw", "layers", "posted", "seconds"],
            ),
            (
                "concurrent-latency",
                &["units", "start"],
                &["ranks", "window", "threads", "tags", "raw", "profile"],
            ),
            (
                "overlap-neighbours",
                &["ranks", "progress", "passes"],
                &["style", "side", "percentiles"],
            ),
            (
                "partitioned",
                &["partitions", "noise-pct", "threads"],
                &["raw", "posted", "profile"],
            ),
        ] {
            for (line, of_all) in [
                (
                    format!("tagwire bench {test} --help"),
                    &["shm-cma", "seed"][..],
                ),
                (format!("tagwire bench -n 2 {test} -h"), &[]),
            ] {
                let text = help(&line);
                let common = ["sizes", "format", "launches"];
                for option in own.iter().chain(&common).chain(of_all) {
                    assert!(has(&text, option), "{line} lacks --{option}: {text}");
                }
                for option in foreign {
                    assert!(
                        !has(&text, &format!("{option} ")),
                        "{line} has --{option}: {text}"
                    );
                }
                assert!(
                    text.contains(&format!("Usage: tagwire bench {test} [OPTIONS]")),
                    "{text}"
                );
                let Some((_, examples)) = text.split_once("Examples:\n") else {
                    assert!(of_all.is_empty(), "{text}");
                    continue;
                };
                let mut examples = examples.lines().peekable();
                assert!(examples.peek().is_some(), "{text}");
                let own = format!("  tagwire bench {test} ");
                assert!(examples.all(|line| line.starts_with(&own)), "{text}");
            }
        }
        let all = help("tagwire bench --help");
        for option in ["window", "partitions", "seconds", "raw"] {
            assert!(has(&all, option), "{all}");
        }
    }

    #[test]
    fn settings_given_as_flags_are_found() {
        let line = ["tagwire", "info", "--log", "error"].map(OsString::from);
        let invocation = parse(line, &tagwire::settings::registry()).unwrap();
        assert_eq!(
            invocation.settings,
            [("log".to_owned(), "error".to_owned())]
        );
    }
}
