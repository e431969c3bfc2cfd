//! `tagwire match cat`: a trace as text, and from text.

use std::path::PathBuf;

use clap::Args;

use crate::error::Result;
use crate::output::print;
use crate::trace::Trace;

/// The options.
#[derive(Debug, Clone, Args)]
pub struct CatArgs {
    /// A trace, binary or of text
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write it to this file, as text where its name ends with .csv and binary else, and print nothing
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Take what comes before something that is wrong
    #[arg(long)]
    partial: bool,
}

pub(crate) const AFTER_HELP: &str = "\
A line for each call: ns,call,matched,source,tag,context,bytes,entry. Lines that begin with # are the header. Sizes are in
quarters of powers of two. An entry is the number of a receive or message among those that were queued, from 0.

Exit status: 0 good, 1 usage, 2 the file cannot be read or is no trace, or the output could not be written.

Examples:
  tagwire match cat traces/halo.0.twm > halo.csv
  tagwire match cat halo.csv -o halo.twm";

/// Prints or writes the trace; returns the exit status.
pub(crate) fn run(args: &CatArgs) -> Result<u8> {
    let trace = Trace::read(&args.file, args.partial)?;
    match &args.output {
        Some(path) => trace.write(path)?,
        None => print(&trace.to_text())?,
    }
    Ok(0)
}
