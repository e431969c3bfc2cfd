//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bars::{self, BarsOptions};
use crate::campaign::{self, RunOptions};
use crate::hostile::{self, HostileOptions};
use crate::job;
use crate::plan::Choice;
use crate::rank;
use crate::record::Verdict;
use crate::report;
use crate::stage::RankOptions;

/// Trials that try to break jobs, drawn from seeds
///
/// Exit status: 0 all was as it must be, 1 it was not, 2 the command could not do what was asked for.
#[derive(Debug, Parser)]
#[command(name = "campaign")]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run the trials of a range of seeds
    Run(RunOptions),
    /// Run the trial of one seed, and say all about it
    Trial {
        /// The seed
        seed: u64,
        #[command(flatten)]
        choice: Choice,
    },
    /// Send packets of chance to ranks in this process, as members of their jobs
    Hostile(HostileOptions),
    /// Run what a log lacks of the campaign's bars: kills, cables that are pulled, floods, packets of hostile members
    Bars(BarsOptions),
    /// Write the page that says what was tried, from the logs of runs
    Report {
        /// The logs
        logs: Vec<PathBuf>,
    },
    /// Open a session alone, with the settings of a ground
    #[command(hide = true)]
    Alone,
    /// Be a rank of a trial
    #[command(hide = true)]
    Rank(RankOptions),
    /// Be the launcher of a trial
    #[command(hide = true)]
    Launch {
        /// How many ranks
        ranks: u32,
        /// The program
        program: OsString,
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// Does what the command line asks for.
///
/// # Errors
/// When that cannot be done.
pub fn main() -> Result<ExitCode, String> {
    let good = |is_good: bool| Ok(ExitCode::from(u8::from(!is_good)));
    match Command::parse().action {
        Action::Run(options) => good(campaign::run(&options)? == 0),
        Action::Trial { seed, choice } => {
            println!("{}", crate::plan::Plan::of(seed, &choice)?);
            let record = campaign::one(seed, &choice, campaign::REPEATS)?;
            campaign::tell(&record);
            println!(
                "  {} messages and operations were checked; silent for {} ms, without progress for {} ms, a death was noticed after {} ms; {} ms in all",
                record.checked,
                record.silence_ms,
                record.stall_ms.unwrap_or_default(),
                record.notice_ms,
                record.wall_ms
            );
            good(record.verdict == Verdict::Good || record.verdict == Verdict::Suspect)
        }
        Action::Hostile(options) => good(hostile::run(&options)? == 0),
        Action::Bars(options) => good(bars::run(&options)? == (0, 0)),
        Action::Report { logs } => {
            print!("{}", report::page(&logs)?);
            good(true)
        }
        Action::Alone => {
            let session = tagwire::Session::open().map_err(|why| why.to_string())?;
            session.close().map_err(|why| why.to_string())?;
            good(true)
        }
        Action::Rank(options) => good(rank::run(options)?),
        Action::Launch {
            ranks,
            program,
            arguments,
        } => {
            let status = job::launch(ranks, program, arguments)?;
            Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
        }
    }
}
