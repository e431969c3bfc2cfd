//! The command line of `tagwire match`.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use tagwire_base::config::parse;
use tagwire_matching::{Engines, Grade};

use crate::app::{self, AppArgs};
use crate::arrange;
use crate::cat::{self, CatArgs};
use crate::depth::{self, DepthArgs};
use crate::error::Result;
use crate::gate::Gate;
use crate::import::{self, ImportArgs};
use crate::offload::{self, OffloadArgs};
use crate::order::{self, OrderArgs};
use crate::output::{Circumstances, print};
use crate::refused;
use crate::replay::{self, ReplayArgs};
use crate::stats::{self, StatsArgs};
use crate::threads::{self, ThreadsArgs};

/// Matching engines: what there are, whether they keep MPI's order, what they cost.
#[derive(Debug, Clone, Args)]
pub struct MatchArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Engines with their parameters, sources and limits
    List,
    /// Check engines on random programs, and show the shortest one that fails
    #[command(after_help = AFTER_CHECK)]
    Check(CheckArgs),
    /// Measure one match by entries ahead, entries behind, share of wildcards and engine
    #[command(after_help = depth::AFTER_HELP)]
    Depth(Box<DepthArgs>),
    /// Print a trace as text, or make one from text
    #[command(after_help = cat::AFTER_HELP)]
    Cat(CatArgs),
    /// Count what is in traces: lengths, depths, residence, wildcards, order, drains
    #[command(after_help = stats::AFTER_HELP)]
    Stats(StatsArgs),
    /// Give the calls of traces to engines, and verify and measure every answer
    #[command(after_help = replay::AFTER_HELP)]
    Replay(ReplayArgs),
    /// Make traces of an application's pattern of messages, and count what is in them
    #[command(after_help = format!("{}\n\n{}", arrange::MODELS, app::AFTER_HELP))]
    App(AppArgs),
    /// Make traces of those of other tools, and count what is in them
    #[command(after_help = format!("{}\n\n{}", arrange::MODELS, import::AFTER_HELP))]
    Import(ImportArgs),
    /// Drain a queue of receives in another order than they were posted in
    #[command(after_help = order::AFTER_HELP)]
    Order(OrderArgs),
    /// Drain the receives of a process of threads in a grid, by decomposition and stencil
    #[command(after_help = threads::AFTER_HELP)]
    Threads(ThreadsArgs),
    /// Count which searches end in hardware that holds so many entries, and estimate their time
    #[command(after_help = offload::AFTER_HELP)]
    Offload(Box<OffloadArgs>),
}

#[derive(Debug, Clone, Args)]
struct CheckArgs {
    /// Engines by name, with parameters behind a colon: ucx:bins=64
    #[arg(value_name = "ENGINE", required = true)]
    engines: Vec<String>,

    /// What they are held to [default: what each promises]
    #[arg(long, value_name = "GRADE", value_parser = grade)]
    grade: Option<Grade>,

    /// Operations for each engine, over all programs
    #[arg(long, value_name = "COUNT", default_value = "1000000", value_parser = operations)]
    operations: u64,

    /// What the random programs follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

const AFTER_CHECK: &str = "\
Grades: exact (as the oracle: messages of all sources in the order of arrival), mpi (messages of one source and context
in their order, receives in theirs), free (overtaking allowed). A failure is shown as a program: each line is a call of
the engine with its answer, and 'line 2' names what that call queued.

Exit status: 0 all engines passed, 1 usage, 2 the output could not be written, 3 an engine failed.

Examples:
  tagwire match check ucx                                   10^6 operations
  tagwire match check list,flajslik:bins=16,key=tag         several engines
  tagwire match check source:any=rotate --grade exact       fails: MPI allows more than the oracle does
  tagwire match check chunks:k=7 --operations 1G --seed 7";

/// Does what is asked for, with these engines; files of rows tell of these circumstances. Returns the exit status.
///
/// # Errors
/// What cannot be asked for, and output that cannot be written.
pub fn run(args: &MatchArgs, engines: &Engines, from: &Circumstances) -> Result<u8> {
    refused::caught(|| act(args, engines, from))
}

fn act(args: &MatchArgs, engines: &Engines, from: &Circumstances) -> Result<u8> {
    match &args.action {
        Action::List => list(engines),
        Action::Check(args) => check(args, engines),
        Action::Depth(args) => depth::run(args, engines, from),
        Action::Cat(args) => cat::run(args),
        Action::Stats(args) => stats::run(args, from),
        Action::Replay(args) => replay::run(args, engines, from),
        Action::App(args) => app::run(args, engines, from),
        Action::Import(args) => import::run(args, from),
        Action::Order(args) => order::run(args, engines, from),
        Action::Threads(args) => threads::run(args, engines, from),
        Action::Offload(args) => offload::run(args, engines, from),
    }
}

fn list(engines: &Engines) -> Result<u8> {
    let texts: Vec<String> = engines.descriptions().map(ToString::to_string).collect();
    print(&texts.join("\n"))?;
    Ok(PASSED)
}

fn check(args: &CheckArgs, engines: &Engines) -> Result<u8> {
    let mut status = PASSED;
    for engine in engines.list(&args.engines.join(","))? {
        let grade = args.grade.unwrap_or_else(|| engine.grade());
        let gate = Gate {
            grade,
            seed: args.seed,
            operations: args.operations,
        };
        let seed = args.seed;
        let mut text = String::new();
        match gate.check_named(&engine) {
            Ok(passed) => {
                let (operations, programs) = (passed.operations, passed.programs);
                let _ = writeln!(
                    text,
                    "{engine}: passed as {grade}: {operations} operations in {programs} programs, seed {seed}"
                );
            }
            Err(failed) => {
                let (programs, length) = (failed.programs, failed.program.operations.len());
                let _ = writeln!(
                    text,
                    "{engine}: FAILED as {grade} in program {programs}, seed {seed}; its shortest form, of {length} operations:\n{failed}"
                );
                status = FAILED;
            }
        }
        print(&text)?;
    }
    Ok(status)
}

fn operations(text: &str) -> Result<u64, String> {
    let number = parse::bytes(text).ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number such as 20000 or 1M, and not 0".to_owned())
}

fn grade(text: &str) -> Result<Grade, String> {
    let all = [Grade::Exact, Grade::Mpi, Grade::Free];
    let found = all.into_iter().find(|grade| grade.name() == text);
    found.ok_or_else(|| format!("it is one of {}", Grade::NAMES.join(", ")))
}

/// The exit status when all engines passed, and when one failed.
const PASSED: u8 = 0;
const FAILED: u8 = 3;
