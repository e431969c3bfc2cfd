//! `tagwire sim`: ranks on a simulated machine.

use std::process::ExitCode;

use tagwire_bench_sim::{Refusal, SimArgs};

use crate::failure::Failure;
use crate::output;
use crate::predict;

/// Runs a program, and prints its rows and what they have cost.
pub fn sim(args: &SimArgs) -> Result<ExitCode, Failure> {
    if args.program == predict::NAME {
        return predict::run(args);
    }
    let report = tagwire_bench_sim::simulate(args).map_err(|refusal| match refusal {
        Refusal::Usage(_) => Failure::usage(refusal),
        _ => Failure::run(refusal),
    })?;
    output::print(&report.rows)?;
    eprint!("{}", report.cost);
    match report.has_failed {
        true => Err(Failure::run("ranks have ended early")),
        false => Ok(ExitCode::SUCCESS),
    }
}
