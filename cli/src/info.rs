//! `tagwire info`: what is here, what would be used, and why not the rest.

use std::process::ExitCode;

use clap::Args;
use tagwire_base::Config;
use tagwire_base::topology::Topology;

use crate::failure::Failure;
use crate::output;

mod conformance;
mod messages;
mod pmls;
mod report;
mod shm;
mod text;
mod transports;
mod why_not;

/// The options of `tagwire info`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct InfoOptions {
    /// Tell why this transport, matching engine or pml would not be used, and what would change
    /// that
    #[arg(long, value_name = "NAME", conflicts_with_all = ["json", "settings_markdown"])]
    why_not: Option<String>,

    /// Print one JSON document (schema tagwire.info/1)
    #[arg(long)]
    json: bool,

    /// Print the documentation of all settings, which is docs/settings.md
    #[arg(long, conflicts_with = "json")]
    settings_markdown: bool,
}

const AFTER_HELP: &str = "\
Prints version and commit, who launched this process, the machine, every transport with its
capabilities and limits and what the libraries offer, what would carry messages of which size to
which ranks, matching engines, pmls, and every setting with its value, where the value came from,
its default, its range and who reads it. Sizes are bytes; K is 1024. Options of the other commands,
such as --transport and --pml, show what they would change.

Exit status: 0 good, 1 usage (an unknown name or a bad setting), 2 the output could not be written.

Examples:
  tagwire info
  tagwire info --why-not shm
  tagwire info --json | jq .transports";

/// Prints what was asked for.
pub fn info(options: &InfoOptions, settings: &[(String, String)]) -> Result<ExitCode, Failure> {
    let text = if options.settings_markdown {
        tagwire::settings::page()
    } else {
        let given = settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let config = Config::from_process(&tagwire::settings::registry(), given)?;
        let topology = Topology::of_machine();
        if let Some(name) = &options.why_not {
            why_not::explain(name, &config, &topology)?
        } else {
            let report = report::gather(&config, topology);
            if options.json {
                report.to_json()?
            } else {
                text::render(&report)
            }
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
