//! `mpiexec` and `mpirun`: `tagwire run` for who knows another one (MPI-5.0, section 11.5).

mod habits;
mod hosts;
mod translate;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;

use crate::failure::Failure;
use crate::{cli, mpi, output, run, stamp, usage};
use translate::{Asked, Translation};

const HELP: &str = "\
Starts a program as the ranks of a job on this host.

Usage: mpiexec -n N [OPTIONS] PROGRAM [ARGUMENTS] [: -n M [OPTIONS] PROGRAM [ARGUMENTS]]...

Options:
  -n, -np N                    how many ranks; more than there are cores take turns
  -x NAME=VALUE, -genv NAME VALUE   set a variable for the ranks, which have this command's environment
  -wdir DIR                    where the ranks run
  --bind none|core|LIST        the CPUs of rank i: any, the i-th core, or the i-th of a list such as 0,2,4-7
  --stdin rank0|all|none|N     who reads standard input; rank 0 unless told otherwise
  -l, --tag-output             put the rank before each line of output
  --output-dir DIR             write what rank N says to DIR/rank-N.txt
  --timeout TIME               end the job after this time, in seconds or as in 5m; its ranks tell what they wait for
  --on-failure abort|continue  what happens to the other ranks when one fails
  -t, --transport NAME         what carries messages: auto, shm, ofi:tcp, ucx:tcp and others ('tagwire info' lists them)
  --coll-check on              find ranks that call different collectives
  --configfile FILE            read programs and their options from the lines of a file
  --listen, --connect, --of, --secret   ranks on several hosts, a command on each ('tagwire run --help')
  --version

Options of MPICH's and Open MPI's mpiexec are taken where they mean something here, or have no effect and are named, or
are refused with what there is instead. All options: 'tagwire run --help'. All settings: 'tagwire info settings'.

Exit status: that of the first rank that failed (128 + n after signal n); 1 usage; 2 the job could not be run or ran into
--timeout; 127 no such program; 126 it cannot be executed. SIGUSR1 makes all ranks tell what they wait for.

Examples:
  mpiexec -n 4 ./program
  mpiexec -n 2 --bind core -x OMP_NUM_THREADS=2 ./program input.txt
  mpiexec -n 1 ./leader : -n 3 -wdir data ./worker
";

/// Returns the manual page.
pub fn page(name: &str) -> String {
    let help = HELP.replace("mpiexec", name).replace('\\', "\\e");
    // A line that begins with a dot or a quote is an order.
    let lines = help.lines().map(|line| format!("\\&{line}\n"));
    let lines: String = lines.collect();
    format!(
        ".TH {name} 1\n.SH NAME\n{name} \\- start an MPI program on Tagwire\n.SH DESCRIPTION\n.nf\n{lines}.fi\n.SH SEE ALSO\ntagwire\\-run(1)\n"
    )
}

/// Returns the name by which this command was called, and the words behind it: where it is `mpiexec`, a link to it or its first
/// word says.
pub fn called(arguments: &[OsString]) -> Option<(&'static str, &[OsString])> {
    let named = |word: &OsString| mpi::LAUNCHERS.into_iter().find(|name| word == name);
    let (command, words) = arguments.split_first()?;
    let file = Path::new(command).file_name().map(OsString::from);
    match file.as_ref().and_then(named) {
        Some(name) => Some((name, words)),
        None => {
            let (first, words) = words.split_first()?;
            Some((named(first)?, words))
        }
    }
}

/// Does what the line asks for; the exit status is the job's.
pub fn main(name: &'static str, words: &[OsString]) -> ExitCode {
    let command = command(name);
    match translate::translate(&command, words) {
        Ok(Asked::Help) => said(name, output::print(&HELP.replace("mpiexec", name))),
        Ok(Asked::Version) => said(
            name,
            output::print(&format!("{name} of Tagwire {}\n", stamp::VERSION_LINE)),
        ),
        Ok(Asked::Job(job)) => start(name, &command, job),
        Err(message) => {
            let message = message.replace("mpiexec", name);
            Failure::usage(message).report_as(name)
        }
    }
}

fn said(name: &str, printed: Result<(), Failure>) -> ExitCode {
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report_as(name),
    }
}

fn start(name: &'static str, command: &Command, job: Translation) -> ExitCode {
    for note in &job.notes {
        let _ = writeln!(std::io::stderr(), "{name}: {note}");
    }
    let parsed = cli::parse_programs(command, job.programs);
    let (mut options, settings) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage::report(error, &["tagwire", "run"].map(OsString::from)),
    };
    options.have_input_by_default();
    match run::run(&options, &settings, &tagwire::settings::registry()) {
        Ok(status) => status,
        Err(failure) => failure.report_as(name),
    }
}

/// `tagwire run` by the name of the command.
fn command(name: &'static str) -> Command {
    let all = cli::command(&tagwire::settings::registry());
    let run = all.get_subcommands().find(|run| run.get_name() == "run");
    run.cloned()
        .unwrap_or_default()
        .name(name)
        .bin_name(name)
        .override_usage(format!("{name} -n N [OPTIONS] PROGRAM [ARGS]..."))
}
