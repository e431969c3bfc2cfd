//! `tagwire match app`: the patterns of applications, as traces.

use clap::Args;

use crate::apps::{APPS, AppName};
use crate::arrange::{self, ArrangeArgs, Arranged};
use crate::error::Result;
use crate::output::{Circumstances, print};

/// The options.
#[derive(Debug, Clone, Args)]
pub struct AppArgs {
    /// The application, with parameters behind a colon: halo27:x=8,messages=4 [default: list them]
    #[arg(value_name = "NAME")]
    app: Option<String>,

    #[command(flatten)]
    arrange: ArrangeArgs,
}

pub(crate) const AFTER_HELP: &str = "\
Figures are of the program's receives over all ranks; depth: receives that a list compares to find the one that takes a
message; theory: the mean that the application is known to have under this model.

Exit status: 0 good, 1 usage, 2 an output could not be written.

Examples:
  tagwire match app                                          what there is
  tagwire match app halo27:messages=4 --traces halo          four models, and the traces
  tagwire match replay halo/causal --engine list,bins        their cost on engines";

/// Prints what is asked for; returns the exit status.
pub(crate) fn run(args: &AppArgs, from: &Circumstances) -> Result<u8> {
    let Some(name) = &args.app else {
        let texts: Vec<String> = APPS.iter().map(ToString::to_string).collect();
        print(&texts.join("\n"))?;
        return Ok(0);
    };
    let app = AppName::parse(name)?;
    let depth = app.depth();
    let arranged = Arranged {
        test: "app",
        file: app.name(),
        origin: app.to_string(),
        scripts: &app.scripts(),
        theory: &|model| match model {
            "posted" => depth.posted,
            "shuffled" => depth.shuffled,
            _ => None,
        },
    };
    arrange::run(&arranged, &args.arrange, from)
}
