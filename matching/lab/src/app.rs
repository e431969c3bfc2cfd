//! `tagwire match app`: the patterns of applications, as traces.

use clap::Args;
use tagwire_matching::Engines;

use crate::apps::{APPS, AppName};
use crate::arrange::{self, ArrangeArgs, Arranged, Real};
use crate::error::{Error, Result};
use crate::output::{Circumstances, print};
use crate::real::{RealArgs, play};

/// The options.
#[derive(Debug, Clone, Args)]
pub struct AppArgs {
    /// The application, with parameters behind a colon: halo27:x=8,messages=4 [default: list them]
    #[arg(value_name = "NAME")]
    app: Option<String>,

    /// Also have real ranks of a job in this process, under ob1, post and send what the application does
    #[arg(long)]
    real: bool,

    #[command(flatten)]
    ranks: RealArgs,

    #[command(flatten)]
    arrange: ArrangeArgs,
}

pub(crate) const AFTER_HELP: &str = "\
Figures are of the program's receives over all ranks; depth: receives that a list compares to find the one that takes a
message; theory: the mean that the application is known to have under this model.
--real: a row 'real' for what the engines of real ranks were given over --transport, a thread for each, at most 256. Its order of
arrivals is that of this machine and of this run, and has no theory. Messages have at least 8 bytes and at most 64 KiB.

Exit status: 0 good, 1 usage, 2 ranks cannot be run, or an output could not be written.

Examples:
  tagwire match app                                          what there is
  tagwire match app halo27:messages=4 --traces halo          four models, and the traces
  tagwire match replay halo/causal --engine list,bins        their cost on engines
  tagwire match app threads:x=32,y=32 --real                 the order in which real ranks have them come";

/// Prints what is asked for; returns the exit status.
pub(crate) fn run(args: &AppArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    match args.real {
        true => args.ranks.check(args.ranks.way())?,
        false => args.ranks.check_unused("--real")?,
    }
    let Some(name) = &args.app else {
        let texts: Vec<String> = APPS.iter().map(ToString::to_string).collect();
        print(&texts.join("\n"))?;
        return Ok(0);
    };
    let app = AppName::parse(name)?;
    let depth = app.depth();
    let scripts = app.scripts();
    let way = args.ranks.way();
    let run = || {
        let played = play(&scripts, way, known);
        played.map_err(|why| Error::Script(format!("{app} with real ranks: {why}")))
    };
    let real = Real {
        transport: way.transport,
        run: &run,
    };
    let arranged = Arranged {
        test: "app",
        file: app.name(),
        origin: app.to_string(),
        scripts: &scripts,
        real: args.real.then_some(real),
        theory: &|model| match model {
            "posted" => depth.posted,
            "shuffled" => depth.shuffled,
            _ => None,
        },
    };
    arrange::run(&arranged, &args.arrange, from)
}
