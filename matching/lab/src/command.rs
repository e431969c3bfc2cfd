//! The command line of `tagwire match`.

use clap::{Args, Subcommand};
use tagwire_matching::Engines;

use crate::app::{self, AppArgs};
use crate::arrange;
use crate::cat::{self, CatArgs};
use crate::check::{self, CheckArgs};
use crate::depth::{self, DepthArgs};
use crate::error::Result;
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
    /// Check engines on random programs, show the shortest one that fails, and how operations grow with the queues
    #[command(after_help = check::AFTER_HELP)]
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
        Action::Check(args) => check::run(args, engines, from),
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
    Ok(0)
}
